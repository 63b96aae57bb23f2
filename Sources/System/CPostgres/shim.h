#pragma once
#include <libpq-fe.h>

// What Swift does not import: constants made by macros that are characters.

/// The field of an error report with its code (SQLSTATE).
static const int rouse_pg_diag_sqlstate = PG_DIAG_SQLSTATE;
/// The field with its first line.
static const int rouse_pg_diag_message = PG_DIAG_MESSAGE_PRIMARY;
/// The field with what it is about, as "Key (app)=(shop) already exists.".
static const int rouse_pg_diag_detail = PG_DIAG_MESSAGE_DETAIL;

static inline void rouse_pg_ignore(void *context, const PGresult *result) {}

/// Notices of the server are not written to standard error.
static inline void rouse_pg_ignore_notices(PGconn *connection) {
    PQsetNoticeReceiver(connection, rouse_pg_ignore, 0);
}
