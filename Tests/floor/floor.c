/*
 * The floor of `rouse bench publish --floor Tests/floor/floor.c`: the least that a server of the
 * same job does. It takes a message from a backend, appends it to one log, waits until that is on
 * disk (fdatasync, one for all that came meanwhile), and only then answers the backend and sends
 * the message to the connected device, or to the first N. There are no users, no feeds, no accounts, no alerts,
 * no history and no second try: what Rouse costs above this is what Rouse does besides.
 *
 * Devices speak a framing of the floor's own over TLS 1.3:
 *   device: its number in decimal and a newline; then an 'A' for each message it took
 *   server: a '.' once the device is known; then messages, each behind its length in 4 bytes,
 *           most significant first
 * Backends speak as much HTTP/1.1 as the tool does, without TLS:
 *   POST /v1/conversations/NUMBER/messages with a content-length; the body is the message;
 *   with -N it is for the devices 0 to N - 1
 *
 * usage: floor CERTIFICATE KEY LOG
 * It prints {"device_port":N,"api_port":N} once it serves, and ends with its standard input.
 * One thread for the sockets, one for the log, as in a server that is not to stall.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DEVICES_MAX = 1 << 17, REQUEST_MAX = 64 * 1024, EVENTS = 256 };

enum kind { STDIN, DEVICE_LISTENER, API_LISTENER, SYNCED, DEVICE, API };

struct connection {
    enum kind kind;
    int fd;
    SSL *ssl;        /* of devices */
    long number;     /* a device's, once it is known; else -1 */
    char *in;        /* a request half received, or the number */
    size_t in_count, in_space;
    char *out;       /* what the socket did not take */
    size_t out_count;
    int pending;     /* messages of it that are not answered; frees wait for 0 */
    int gone;
    struct connection *next_grave;
};

struct message {
    struct message *next;
    struct connection *from;
    long to;
    uint32_t length;
    char body[];
};

static int poller, log_file, synced;
static SSL_CTX *tls;
static struct connection *devices[DEVICES_MAX];

/* What waits for the log, and what is in it and on disk. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct message *to_log, **to_log_end = &to_log;
static struct message *on_disk, **on_disk_end = &on_disk;

static void fail(const char *what) {
    fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void *allocated(void *memory) {
    if (!memory) fail("memory");
    return memory;
}

/* ---- the log ---- */

static void append(const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = write(log_file, bytes, count);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail("log");
        bytes += written;
        count -= (size_t)written;
    }
}

static void *log_thread(void *unused) {
    char *group = NULL;
    size_t space = 0;
    pthread_setname_np(pthread_self(), "log");
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (!to_log) pthread_cond_wait(&more, &mutex);
        struct message *first = to_log, **end = to_log_end;
        to_log = NULL;
        to_log_end = &to_log;
        pthread_mutex_unlock(&mutex);

        size_t count = 0;
        for (struct message *m = first; m; m = m->next) {
            size_t needed = count + 12 + m->length;
            if (needed > space) group = allocated(realloc(group, space = needed * 2));
            int64_t to = m->to;
            memcpy(group + count, &to, 8);
            memcpy(group + count + 8, &m->length, 4);
            memcpy(group + count + 12, m->body, m->length);
            count = needed;
        }
        append(group, count);
        if (fdatasync(log_file) != 0) fail("fdatasync");

        pthread_mutex_lock(&mutex);
        *on_disk_end = first;
        on_disk_end = end;
        pthread_mutex_unlock(&mutex);
        uint64_t one = 1;
        if (write(synced, &one, 8) != 8) fail("eventfd");
    }
    return unused;
}

/* ---- connections ---- */

static void watch(struct connection *c, uint32_t events, int operation) {
    struct epoll_event event = {.events = events, .data.ptr = c};
    if (epoll_ctl(poller, operation, c->fd, &event) != 0) fail("epoll_ctl");
}

static struct connection *connection_new(enum kind kind, int fd) {
    struct connection *c = allocated(calloc(1, sizeof *c));
    c->kind = kind;
    c->fd = fd;
    c->number = -1;
    watch(c, EPOLLIN, EPOLL_CTL_ADD);
    return c;
}

/* Those that are gone are freed after the round of events that may still name them. */
static struct connection *graves;

static void connection_free(struct connection *c) {
    c->next_grave = graves;
    graves = c;
}

static void end(struct connection *c) {
    if (c->gone) return;
    c->gone = 1;
    if (c->number >= 0 && devices[c->number] == c) devices[c->number] = NULL;
    close(c->fd);
    if (c->ssl) SSL_free(c->ssl);
    c->ssl = NULL;
    free(c->in);
    free(c->out);
    c->in = c->out = NULL;
    if (c->pending == 0) connection_free(c);
}

/* Sends what is kept; a TLS write that has to be repeated is repeated with the same bytes. */
static void flush(struct connection *c) {
    while (c->out_count > 0) {
        ssize_t sent;
        if (c->ssl) {
            /* An error of another connection would be taken for this one's. */
            ERR_clear_error();
            sent = SSL_write(c->ssl, c->out, (int)c->out_count);
            if (sent <= 0) {
                int why = SSL_get_error(c->ssl, (int)sent);
                if (why != SSL_ERROR_WANT_WRITE && why != SSL_ERROR_WANT_READ) return end(c);
                return watch(c, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
            }
        } else {
            sent = send(c->fd, c->out, c->out_count, MSG_NOSIGNAL);
            if (sent < 0 && errno == EINTR) continue;
            if (sent < 0 && errno != EAGAIN) return end(c);
            if (sent < 0) return watch(c, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
        }
        c->out_count -= (size_t)sent;
        memmove(c->out, c->out + sent, c->out_count);
    }
    free(c->out);
    c->out = NULL;
}

static void connection_send(struct connection *c, const char *bytes, size_t count) {
    if (c->gone) return;
    int was_empty = c->out_count == 0;
    c->out = allocated(realloc(c->out, c->out_count + count));
    memcpy(c->out + c->out_count, bytes, count);
    c->out_count += count;
    if (was_empty) flush(c);
}

/* What is on disk: answers to backends, messages to devices. */
static void deliver(void) {
    uint64_t count;
    if (read(synced, &count, 8) != 8) return;
    pthread_mutex_lock(&mutex);
    struct message *next = on_disk;
    on_disk = NULL;
    on_disk_end = &on_disk;
    pthread_mutex_unlock(&mutex);
    while (next) {
        struct message *m = next;
        next = m->next;
        static const char answer[] = "HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n";
        m->from->pending--;
        if (m->from->gone) {
            if (m->from->pending == 0) connection_free(m->from);
        } else {
            connection_send(m->from, answer, sizeof answer - 1);
        }
        static char frame[4 + REQUEST_MAX];
        uint32_t length = htonl(m->length);
        memcpy(frame, &length, 4);
        memcpy(frame + 4, m->body, m->length);
        long first = m->to < 0 ? 0 : m->to, after = m->to < 0 ? -m->to : m->to + 1;
        for (long number = first; number < after; number++)
            if (devices[number]) connection_send(devices[number], frame, 4 + m->length);
        free(m);
    }
}

/* ---- what comes ---- */

static void keep(struct connection *c, const char *bytes, size_t count) {
    if (c->in_count + count + 1 > c->in_space) {
        c->in_space = c->in_count + count + 1;
        c->in = allocated(realloc(c->in, c->in_space));
    }
    memcpy(c->in + c->in_count, bytes, count);
    c->in_count += count;
    c->in[c->in_count] = 0;
}

/* Takes the requests that are whole. */
static void api_received(struct connection *c, const char *bytes, size_t count) {
    keep(c, bytes, count);
    for (;;) {
        char *head_end = memmem(c->in, c->in_count, "\r\n\r\n", 4);
        long to = -1;
        size_t length = 0;
        if (c->in_count > REQUEST_MAX) return end(c);
        if (!head_end) return;
        for (char *line = c->in; line < head_end; line = strstr(line, "\r\n") + 2)
            if (strncasecmp(line, "content-length:", 15) == 0)
                length = strtoul(line + 15, NULL, 10);
        if (sscanf(c->in, "POST /v1/conversations/%ld/messages ", &to) != 1) return end(c);
        if (to <= -DEVICES_MAX || to >= DEVICES_MAX || length > REQUEST_MAX) return end(c);
        size_t whole = (size_t)(head_end - c->in) + 4 + length;
        if (c->in_count < whole) return;

        struct message *m = allocated(malloc(sizeof *m + length));
        m->next = NULL;
        m->from = c;
        m->to = to;
        m->length = (uint32_t)length;
        memcpy(m->body, head_end + 4, length);
        c->pending++;
        pthread_mutex_lock(&mutex);
        *to_log_end = m;
        to_log_end = &m->next;
        pthread_cond_signal(&more);
        pthread_mutex_unlock(&mutex);
        c->in_count -= whole;
        memmove(c->in, c->in + whole, c->in_count + 1);
    }
}

/* The number at first; after it only acknowledgements, which nothing depends on. */
static void device_received(struct connection *c, const char *bytes, size_t count) {
    if (c->number >= 0) return;
    keep(c, bytes, count);
    if (c->in_count > 32) return end(c);
    if (!memchr(c->in, '\n', c->in_count)) return;
    long number = strtol(c->in, NULL, 10);
    if (number < 0 || number >= DEVICES_MAX) return end(c);
    free(c->in);
    c->in = NULL;
    c->in_count = c->in_space = 0;
    c->number = number;
    devices[number] = c;
    connection_send(c, ".", 1);
}

static void readable(struct connection *c) {
    static char bytes[64 * 1024];
    while (!c->gone) {
        ssize_t count;
        if (c->ssl) {
            ERR_clear_error();
            count = SSL_read(c->ssl, bytes, sizeof bytes);
            if (count <= 0) {
                int why = SSL_get_error(c->ssl, (int)count);
                if (why == SSL_ERROR_WANT_READ) return;
                if (why == SSL_ERROR_WANT_WRITE)
                    return watch(c, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
                return end(c);
            }
            device_received(c, bytes, (size_t)count);
        } else {
            count = recv(c->fd, bytes, sizeof bytes, 0);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0 && errno == EAGAIN) return;
            if (count <= 0) return end(c);
            api_received(c, bytes, (size_t)count);
        }
    }
}

static void writable(struct connection *c) {
    watch(c, EPOLLIN, EPOLL_CTL_MOD);
    flush(c);
}

static void accept_all(struct connection *listener) {
    for (;;) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
        if (fd < 0) return;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        int is_device = listener->kind == DEVICE_LISTENER;
        struct connection *c = connection_new(is_device ? DEVICE : API, fd);
        if (!is_device) continue;
        c->ssl = allocated(SSL_new(tls));
        SSL_set_fd(c->ssl, fd);
        SSL_set_accept_state(c->ssl);
    }
}

/* ---- the start ---- */

/* Takes the first protocol a device offers: the floor has no name of its own for its framing. */
static int protocol(SSL *ssl, const unsigned char **out, unsigned char *count,
                    const unsigned char *in, unsigned int in_count, void *unused) {
    (void)ssl, (void)unused;
    if (in_count < 1 || in[0] + 1u > in_count) return SSL_TLSEXT_ERR_NOACK;
    *out = in + 1;
    *count = in[0];
    return SSL_TLSEXT_ERR_OK;
}

static int listening(enum kind kind) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 4096) != 0
        || getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        fail("listen");
    connection_new(kind, fd);
    return ntohs(address.sin_port);
}

int main(int count, char **words) {
    if (count != 4) {
        fprintf(stderr, "usage: floor CERTIFICATE KEY LOG\n");
        return 64;
    }
    signal(SIGPIPE, SIG_IGN);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    tls = allocated(SSL_CTX_new(TLS_server_method()));
    SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION);
    SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                              | SSL_MODE_ENABLE_PARTIAL_WRITE);
    /* As the server it is beside, which gives none. */
    SSL_CTX_set_num_tickets(tls, 0);
    SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_alpn_select_cb(tls, protocol, NULL);
    if (SSL_CTX_use_certificate_chain_file(tls, words[1]) != 1
        || SSL_CTX_use_PrivateKey_file(tls, words[2], SSL_FILETYPE_PEM) != 1)
        fail("certificate");
    log_file = open(words[3], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    poller = epoll_create1(EPOLL_CLOEXEC);
    synced = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (log_file < 0 || poller < 0 || synced < 0) fail("start");
    int device_port = listening(DEVICE_LISTENER), api_port = listening(API_LISTENER);
    connection_new(SYNCED, synced);
    connection_new(STDIN, 0);
    pthread_t thread;
    if (pthread_create(&thread, NULL, log_thread, NULL) != 0) fail("thread");
    printf("{\"device_port\":%d,\"api_port\":%d}\n", device_port, api_port);
    fflush(stdout);

    for (;;) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(poller, events, EVENTS, -1);
        if (ready < 0 && errno != EINTR) fail("epoll_wait");
        for (int i = 0; i < ready; i++) {
            struct connection *c = events[i].data.ptr;
            if (c->gone) continue;
            switch (c->kind) {
            case STDIN: return 0;
            case DEVICE_LISTENER:
            case API_LISTENER: accept_all(c); break;
            case SYNCED: deliver(); break;
            case DEVICE:
            case API:
                if (events[i].events & EPOLLOUT) writable(c);
                /* Also after a writable one: TLS may have waited for that in order to read. */
                if (!c->gone) readable(c);
            }
        }
        while (graves) {
            struct connection *c = graves;
            graves = c->next_grave;
            free(c);
        }
    }
}
