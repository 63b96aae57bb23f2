#include "CPostgres.h"

#include <pthread.h>

#include "CLibrary.h"

// The functions in use, each once: the table, the look-up and the types come from this list.
#define FUNCTIONS(use) \
    use(PQconnectdbParams) use(PQfinish) use(PQconninfoParse) use(PQconninfoFree) \
    use(PQfreemem) use(PQsetNoticeReceiver) use(PQhost) use(PQport) use(PQdb) use(PQstatus) \
    use(PQtransactionStatus) use(PQserverVersion) use(PQerrorMessage) use(PQsocket) \
    use(PQsetnonblocking) use(PQenterPipelineMode) use(PQpipelineSync) use(PQflush) \
    use(PQisBusy) use(PQconsumeInput) use(PQnotifies) use(PQexecParams) use(PQsendPrepare) \
    use(PQsendQueryPrepared) use(PQgetResult) use(PQclear) use(PQresultStatus) \
    use(PQresultErrorMessage) use(PQresultErrorField) use(PQntuples) use(PQnfields) \
    use(PQgetisnull) use(PQgetlength) use(PQgetvalue) use(PQbackendPID)

#define FIELD(function) __typeof__(&function) function;
static struct {
    FUNCTIONS(FIELD)
} pq;

#define PLACE(function) {#function, (void **)&pq.function},
static const struct rouse_function places[] = {FUNCTIONS(PLACE)};

static const struct rouse_library library = {
    "libpq.so.5", "libpq5", places, sizeof(places) / sizeof(places[0])};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char words[rouse_library_words];

static void load(void) { rouse_library_load(&library, words); }

const char *rouse_pg_load(void) {
    pthread_once(&once, load);
    return words[0] ? words : 0;
}

// What the program calls. Hidden, so that the library itself finds its own.
#pragma GCC visibility push(hidden)

PGconn *PQconnectdbParams(const char *const *keywords, const char *const *values, int expand) {
    return pq.PQconnectdbParams(keywords, values, expand);
}
void PQfinish(PGconn *connection) { pq.PQfinish(connection); }
PQconninfoOption *PQconninfoParse(const char *text, char **message) {
    return pq.PQconninfoParse(text, message);
}
void PQconninfoFree(PQconninfoOption *options) { pq.PQconninfoFree(options); }
void PQfreemem(void *memory) { pq.PQfreemem(memory); }
PQnoticeReceiver PQsetNoticeReceiver(PGconn *connection, PQnoticeReceiver receiver, void *context) {
    return pq.PQsetNoticeReceiver(connection, receiver, context);
}
char *PQhost(const PGconn *connection) { return pq.PQhost(connection); }
char *PQport(const PGconn *connection) { return pq.PQport(connection); }
char *PQdb(const PGconn *connection) { return pq.PQdb(connection); }
ConnStatusType PQstatus(const PGconn *connection) { return pq.PQstatus(connection); }
PGTransactionStatusType PQtransactionStatus(const PGconn *connection) {
    return pq.PQtransactionStatus(connection);
}
int PQserverVersion(const PGconn *connection) { return pq.PQserverVersion(connection); }
char *PQerrorMessage(const PGconn *connection) { return pq.PQerrorMessage(connection); }
int PQsocket(const PGconn *connection) { return pq.PQsocket(connection); }
int PQbackendPID(const PGconn *connection) { return pq.PQbackendPID(connection); }
int PQsetnonblocking(PGconn *connection, int is_on) {
    return pq.PQsetnonblocking(connection, is_on);
}
int PQenterPipelineMode(PGconn *connection) { return pq.PQenterPipelineMode(connection); }
int PQpipelineSync(PGconn *connection) { return pq.PQpipelineSync(connection); }
int PQflush(PGconn *connection) { return pq.PQflush(connection); }
int PQisBusy(PGconn *connection) { return pq.PQisBusy(connection); }
int PQconsumeInput(PGconn *connection) { return pq.PQconsumeInput(connection); }
PGnotify *PQnotifies(PGconn *connection) { return pq.PQnotifies(connection); }
PGresult *PQexecParams(
    PGconn *connection, const char *sql, int count, const Oid *types, const char *const *values,
    const int *lengths, const int *formats, int result_format) {
    return pq.PQexecParams(connection, sql, count, types, values, lengths, formats, result_format);
}
int PQsendPrepare(
    PGconn *connection, const char *name, const char *sql, int count, const Oid *types) {
    return pq.PQsendPrepare(connection, name, sql, count, types);
}
int PQsendQueryPrepared(
    PGconn *connection, const char *name, int count, const char *const *values,
    const int *lengths, const int *formats, int result_format) {
    return pq.PQsendQueryPrepared(connection, name, count, values, lengths, formats, result_format);
}
PGresult *PQgetResult(PGconn *connection) { return pq.PQgetResult(connection); }
void PQclear(PGresult *result) { pq.PQclear(result); }
ExecStatusType PQresultStatus(const PGresult *result) { return pq.PQresultStatus(result); }
char *PQresultErrorMessage(const PGresult *result) { return pq.PQresultErrorMessage(result); }
char *PQresultErrorField(const PGresult *result, int field) {
    return pq.PQresultErrorField(result, field);
}
int PQntuples(const PGresult *result) { return pq.PQntuples(result); }
int PQnfields(const PGresult *result) { return pq.PQnfields(result); }
int PQgetisnull(const PGresult *result, int row, int column) {
    return pq.PQgetisnull(result, row, column);
}
int PQgetlength(const PGresult *result, int row, int column) {
    return pq.PQgetlength(result, row, column);
}
char *PQgetvalue(const PGresult *result, int row, int column) {
    return pq.PQgetvalue(result, row, column);
}

#pragma GCC visibility pop

static void ignore(void *context, const PGresult *result) {}

void rouse_pg_ignore_notices(PGconn *connection) { PQsetNoticeReceiver(connection, ignore, 0); }
