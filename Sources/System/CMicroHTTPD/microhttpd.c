// Declared without the visibility of the library's own.
#define _MHD_EXTERN extern
#include "CMicroHTTPD.h"

#include <pthread.h>

#include "CLibrary.h"

// The functions in use, each once: the table, the look-up and the types come from this list.
#define FUNCTIONS(use) \
    use(MHD_start_daemon) use(MHD_stop_daemon) use(MHD_run) use(MHD_get_timeout) \
    use(MHD_get_daemon_info) use(MHD_get_connection_info) use(MHD_suspend_connection) \
    use(MHD_resume_connection) use(MHD_get_connection_values_n) \
    use(MHD_create_response_from_buffer) use(MHD_create_response_from_callback) \
    use(MHD_add_response_header) use(MHD_queue_response) use(MHD_destroy_response)

#define FIELD(function) __typeof__(&function) function;
static struct {
    FUNCTIONS(FIELD)
} mhd;

#define PLACE(function) {#function, (void **)&mhd.function},
static const struct rouse_function places[] = {FUNCTIONS(PLACE)};

static const struct rouse_library library = {
    "libmicrohttpd.so.12", "libmicrohttpd12", places, sizeof(places) / sizeof(places[0])};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char words[rouse_library_words];

static void load(void) { rouse_library_load(&library, words); }

const char *rouse_mhd_load(void) {
    pthread_once(&once, load);
    return words[0] ? words : 0;
}

// What the program calls. Hidden, so that the library itself finds its own.
#pragma GCC visibility push(hidden)

void MHD_stop_daemon(struct MHD_Daemon *daemon) { mhd.MHD_stop_daemon(daemon); }
enum MHD_Result MHD_run(struct MHD_Daemon *daemon) { return mhd.MHD_run(daemon); }
enum MHD_Result MHD_get_timeout(
    struct MHD_Daemon *daemon, MHD_UNSIGNED_LONG_LONG *milliseconds) {
    return mhd.MHD_get_timeout(daemon, milliseconds);
}
void MHD_suspend_connection(struct MHD_Connection *connection) {
    mhd.MHD_suspend_connection(connection);
}
void MHD_resume_connection(struct MHD_Connection *connection) {
    mhd.MHD_resume_connection(connection);
}
int MHD_get_connection_values_n(
    struct MHD_Connection *connection, enum MHD_ValueKind kind, MHD_KeyValueIteratorN each,
    void *context) {
    return mhd.MHD_get_connection_values_n(connection, kind, each, context);
}
struct MHD_Response *MHD_create_response_from_buffer(
    size_t size, void *buffer, enum MHD_ResponseMemoryMode mode) {
    return mhd.MHD_create_response_from_buffer(size, buffer, mode);
}
struct MHD_Response *MHD_create_response_from_callback(
    uint64_t size, size_t block_size, MHD_ContentReaderCallback reader, void *context,
    MHD_ContentReaderFreeCallback done) {
    return mhd.MHD_create_response_from_callback(size, block_size, reader, context, done);
}
enum MHD_Result MHD_add_response_header(
    struct MHD_Response *response, const char *name, const char *value) {
    return mhd.MHD_add_response_header(response, name, value);
}
enum MHD_Result MHD_queue_response(
    struct MHD_Connection *connection, unsigned int status, struct MHD_Response *response) {
    return mhd.MHD_queue_response(connection, status, response);
}
void MHD_destroy_response(struct MHD_Response *response) { mhd.MHD_destroy_response(response); }

#pragma GCC visibility pop

struct MHD_Daemon *rouse_mhd_start(
    MHD_socket listen_fd, unsigned int connections, size_t connection_memory, void *owner,
    MHD_AccessHandlerCallback handler,
    void *(*request_line)(void *, const char *, struct MHD_Connection *),
    size_t (*unescape)(void *, struct MHD_Connection *, char *),
    MHD_RequestCompletedCallback completed, MHD_NotifyConnectionCallback connection) {
    return mhd.MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handler, owner,
        MHD_OPTION_LISTEN_SOCKET, listen_fd,
        MHD_OPTION_CONNECTION_LIMIT, connections,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_memory,
        MHD_OPTION_CONNECTION_TIMEOUT, 0u,
        MHD_OPTION_URI_LOG_CALLBACK, request_line, owner,
        MHD_OPTION_UNESCAPE_CALLBACK, unescape, owner,
        MHD_OPTION_NOTIFY_COMPLETED, completed, owner,
        MHD_OPTION_NOTIFY_CONNECTION, connection, owner,
        MHD_OPTION_END);
}

int rouse_mhd_epoll_fd(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info =
        mhd.MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info ? info->epoll_fd : -1;
}

MHD_socket rouse_mhd_connection_fd(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        mhd.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : MHD_INVALID_SOCKET;
}

size_t rouse_mhd_header_size(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        mhd.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info ? info->header_size : 0;
}
