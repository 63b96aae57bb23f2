#pragma once
#include <sqlite3.h>

// What Swift does not import: constants made by macros with arithmetic, casts to function
// pointers, and variadic functions.

static const int rouse_sqlite_ioerr_read = SQLITE_IOERR_READ;
static const int rouse_sqlite_ioerr_write = SQLITE_IOERR_WRITE;
static const int rouse_sqlite_ioerr_fsync = SQLITE_IOERR_FSYNC;
static const int rouse_sqlite_ioerr_dir_fsync = SQLITE_IOERR_DIR_FSYNC;
static const int rouse_sqlite_ioerr_shmsize = SQLITE_IOERR_SHMSIZE;
static const int rouse_sqlite_ioerr_close = SQLITE_IOERR_CLOSE;

/// Binds the bytes themselves: they stay where they are until the statement is reset. A null
/// pointer with length 0 is the empty text, not null.
static inline int rouse_sqlite_bind_text(
    sqlite3_stmt *statement, int position, const char *text, int length) {
    return sqlite3_bind_text(
        statement, position, text ? text : "", length, SQLITE_STATIC);
}

/// The same for a blob.
static inline int rouse_sqlite_bind_blob(
    sqlite3_stmt *statement, int position, const void *bytes, int length) {
    return sqlite3_bind_blob(
        statement, position, bytes ? bytes : "", length, SQLITE_STATIC);
}

/// Sets one of the switches of `sqlite3_db_config`.
static inline int rouse_sqlite_set(sqlite3 *database, int option, int on) {
    return sqlite3_db_config(database, option, on, (int *)0);
}

/// Stops SQLite from counting the memory it has allocated, under a mutex that all connections
/// share. Only before the first connection of the process.
static inline int rouse_sqlite_count_no_memory(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}
