#pragma once
#include <microhttpd.h>

// The kernel objects the library is driven with, which Swift's Glibc module lacks.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

// The functions below exist because Swift cannot call a variadic C function. They take the
// library's own types and decide nothing.

static inline struct MHD_Daemon *rouse_mhd_start(
    MHD_socket listen_fd, unsigned int connections, size_t connection_memory, void *owner,
    MHD_AccessHandlerCallback handler,
    void *(*request_line)(void *, const char *, struct MHD_Connection *),
    size_t (*unescape)(void *, struct MHD_Connection *, char *),
    MHD_RequestCompletedCallback completed, MHD_NotifyConnectionCallback connection) {
    return MHD_start_daemon(
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

static inline int rouse_mhd_epoll_fd(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info ? info->epoll_fd : -1;
}

static inline MHD_socket rouse_mhd_connection_fd(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : MHD_INVALID_SOCKET;
}

// Bytes of the request line and the header lines of the request being handled.
static inline size_t rouse_mhd_header_size(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info ? info->header_size : 0;
}
