#pragma once
#include <curl/curl.h>

// The kernel objects the library is driven with, which Swift's Glibc module lacks.
#include <sys/epoll.h>
#include <sys/timerfd.h>

// The functions below exist because Swift cannot call a variadic C function. Each takes the
// library's own types and decides nothing; where curl's documentation asks for a long, or a
// curl_off_t, it gets one.

static inline CURLcode rouse_curl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode rouse_curl_set_size(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode rouse_curl_set_text(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode rouse_curl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode rouse_curl_set_list(
    CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode rouse_curl_set_blob(CURL *easy, CURLoption option, struct curl_blob *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode rouse_curl_set_write(
    CURL *easy, size_t (*write)(char *, size_t, size_t, void *)) {
    return curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write);
}
static inline CURLcode rouse_curl_set_open_socket(
    CURL *easy, curl_socket_t (*open)(void *, curlsocktype, struct curl_sockaddr *)) {
    return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open);
}

static inline CURLMcode rouse_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}
static inline CURLMcode rouse_curl_multi_set_pointer(
    CURLM *multi, CURLMoption option, void *value) {
    return curl_multi_setopt(multi, option, value);
}
static inline CURLMcode rouse_curl_multi_set_socket(
    CURLM *multi, int (*socket)(CURL *, curl_socket_t, int, void *, void *)) {
    return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket);
}
static inline CURLMcode rouse_curl_multi_set_timer(
    CURLM *multi, int (*timer)(CURLM *, long, void *)) {
    return curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer);
}

static inline CURLcode rouse_curl_info_long(CURL *easy, CURLINFO info, long *value) {
    return curl_easy_getinfo(easy, info, value);
}
static inline CURLcode rouse_curl_info_size(CURL *easy, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(easy, info, value);
}

// The result of a finished transfer; CURLMsg holds it in a union.
static inline CURLcode rouse_curl_result(const CURLMsg *message) { return message->data.result; }
// A macro with a cast.
static inline curl_socket_t rouse_curl_socket_bad(void) { return CURL_SOCKET_BAD; }
static inline CURLcode rouse_curl_start(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }
// SOCK_* are enumeration constants of a type of their own.
static inline int rouse_curl_sock_flags(void) { return SOCK_NONBLOCK | SOCK_CLOEXEC; }
