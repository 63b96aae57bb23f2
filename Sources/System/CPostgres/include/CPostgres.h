// libpq, which is loaded when something first speaks to PostgreSQL. Its functions have their names
// here too: each goes on to the library's own.
#pragma once
#if __has_include(<libpq-fe.h>)
#include <libpq-fe.h>
#elif __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
#else
#error "there is no libpq-fe.h: apt install libpq-dev"
#endif

/// Loads libpq, unless it is there; needed before any of its functions is called, on any thread.
///
/// - Returns: null, or in words why it cannot be used. A process asks the system once.
const char *rouse_pg_load(void);

// What Swift does not import: constants made by macros that are characters.

/// The field of an error report with its code (SQLSTATE).
static const int rouse_pg_diag_sqlstate = PG_DIAG_SQLSTATE;
/// The field with its first line.
static const int rouse_pg_diag_message = PG_DIAG_MESSAGE_PRIMARY;
/// The field with what it is about, as "Key (app)=(shop) already exists.".
static const int rouse_pg_diag_detail = PG_DIAG_MESSAGE_DETAIL;

/// Notices of the server are not written to standard error.
void rouse_pg_ignore_notices(PGconn *connection);
