// libcurl, which is loaded when something first wants to send. Its functions have their names here
// too: each goes on to the library's own.
#pragma once
#include <curl/curl.h>

// The kernel objects the library is driven with, which Swift's Glibc module lacks.
#include <sys/epoll.h>
#include <sys/timerfd.h>

/// Loads libcurl, unless it is there; needed before any of its functions is called, on any thread.
///
/// - Returns: null, or in words why it cannot be used. A process asks the system once.
const char *rouse_curl_load(void);

// The functions below exist because Swift cannot call a variadic C function. Each takes the
// library's own types and decides nothing; where curl's documentation asks for a long, or a
// curl_off_t, it gets one.

CURLcode rouse_curl_set_long(CURL *easy, CURLoption option, long value);
CURLcode rouse_curl_set_size(CURL *easy, CURLoption option, curl_off_t value);
CURLcode rouse_curl_set_text(CURL *easy, CURLoption option, const char *value);
CURLcode rouse_curl_set_pointer(CURL *easy, CURLoption option, void *value);
CURLcode rouse_curl_set_list(
    CURL *easy, CURLoption option, struct curl_slist *value);
CURLcode rouse_curl_set_blob(CURL *easy, CURLoption option, struct curl_blob *value);
CURLcode rouse_curl_set_write(
    CURL *easy, size_t (*write)(char *, size_t, size_t, void *));
CURLcode rouse_curl_set_open_socket(
    CURL *easy, curl_socket_t (*open)(void *, curlsocktype, struct curl_sockaddr *));

CURLMcode rouse_curl_multi_set_long(CURLM *multi, CURLMoption option, long value);
CURLMcode rouse_curl_multi_set_pointer(
    CURLM *multi, CURLMoption option, void *value);
CURLMcode rouse_curl_multi_set_socket(
    CURLM *multi, int (*socket)(CURL *, curl_socket_t, int, void *, void *));
CURLMcode rouse_curl_multi_set_timer(
    CURLM *multi, int (*timer)(CURLM *, long, void *));

CURLcode rouse_curl_info_long(CURL *easy, CURLINFO info, long *value);
CURLcode rouse_curl_info_size(CURL *easy, CURLINFO info, curl_off_t *value);

// The result of a finished transfer; CURLMsg holds it in a union.
static inline CURLcode rouse_curl_result(const CURLMsg *message) { return message->data.result; }
// A macro with a cast.
static inline curl_socket_t rouse_curl_socket_bad(void) { return CURL_SOCKET_BAD; }
CURLcode rouse_curl_start(void);
// SOCK_* are enumeration constants of a type of their own.
static inline int rouse_curl_sock_flags(void) { return SOCK_NONBLOCK | SOCK_CLOEXEC; }
