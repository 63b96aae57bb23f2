// libmicrohttpd, which is loaded when something first listens for HTTP. Its functions have their
// names here too: each goes on to the library's own.
#pragma once
#include <microhttpd.h>

// The kernel objects the library is driven with, which Swift's Glibc module lacks.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

/// Loads libmicrohttpd, unless it is there; needed before any of its functions is called, on any
/// thread.
///
/// - Returns: null, or in words why it cannot be used. A process asks the system once.
const char *rouse_mhd_load(void);

// The functions below exist because Swift cannot call a variadic C function. They take the
// library's own types and decide nothing.

struct MHD_Daemon *rouse_mhd_start(
    MHD_socket listen_fd, unsigned int connections, size_t connection_memory, void *owner,
    MHD_AccessHandlerCallback handler,
    void *(*request_line)(void *, const char *, struct MHD_Connection *),
    size_t (*unescape)(void *, struct MHD_Connection *, char *),
    MHD_RequestCompletedCallback completed, MHD_NotifyConnectionCallback connection);

int rouse_mhd_epoll_fd(struct MHD_Daemon *daemon);

MHD_socket rouse_mhd_connection_fd(struct MHD_Connection *connection);

/// Bytes of the request line and the header lines of the request being handled.
size_t rouse_mhd_header_size(struct MHD_Connection *connection);
