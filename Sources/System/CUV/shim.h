#pragma once
#include <sys/socket.h>
#include <uv.h>

// accept4 and pthread_setname_np are GNU extensions: Swift's Glibc module is built without
// _GNU_SOURCE, so their prototypes are hidden from it although glibc exports both.
extern int accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags);
extern int pthread_setname_np(pthread_t thread, const char *name);

// The kernel's SOCK_* values are C enumeration constants of a type of their own; as int they fit
// socket(2) and accept4 without conversions at each call.
static inline int rouse_sock_nonblock_cloexec(void) { return SOCK_NONBLOCK | SOCK_CLOEXEC; }
static inline int rouse_sock_stream(void) { return SOCK_STREAM; }
static inline int rouse_sock_datagram(void) { return SOCK_DGRAM; }
