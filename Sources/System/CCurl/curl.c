// Only the functions, not the macros of the same names.
#define CURL_DISABLE_TYPECHECK
#include "CCurl.h"

#include <pthread.h>

#include "CLibrary.h"

// The functions in use, each once: the table, the look-up and the types come from this list.
#define FUNCTIONS(use) \
    use(curl_global_init) use(curl_easy_init) use(curl_easy_cleanup) use(curl_slist_append) \
    use(curl_slist_free_all) use(curl_multi_init) use(curl_multi_cleanup) \
    use(curl_multi_add_handle) use(curl_multi_remove_handle) use(curl_multi_socket_action) \
    use(curl_multi_info_read) use(curl_easy_setopt) use(curl_easy_getinfo) \
    use(curl_multi_setopt)

#define FIELD(function) __typeof__(&function) function;
static struct {
    FUNCTIONS(FIELD)
} curl;

#define PLACE(function) {#function, (void **)&curl.function},
static const struct rouse_function places[] = {FUNCTIONS(PLACE)};

static const struct rouse_library library = {
    "libcurl.so.4", "libcurl4", places, sizeof(places) / sizeof(places[0])};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char words[rouse_library_words];

static void load(void) { rouse_library_load(&library, words); }

const char *rouse_curl_load(void) {
    pthread_once(&once, load);
    return words[0] ? words : 0;
}

// What the program calls. Hidden, so that the library itself finds its own.
#pragma GCC visibility push(hidden)

CURLcode curl_global_init(long flags) { return curl.curl_global_init(flags); }
CURL *curl_easy_init(void) { return curl.curl_easy_init(); }
void curl_easy_cleanup(CURL *easy) { curl.curl_easy_cleanup(easy); }
struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text) {
    return curl.curl_slist_append(list, text);
}
void curl_slist_free_all(struct curl_slist *list) { curl.curl_slist_free_all(list); }
CURLM *curl_multi_init(void) { return curl.curl_multi_init(); }
CURLMcode curl_multi_cleanup(CURLM *multi) { return curl.curl_multi_cleanup(multi); }
CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy) {
    return curl.curl_multi_add_handle(multi, easy);
}
CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *easy) {
    return curl.curl_multi_remove_handle(multi, easy);
}
CURLMcode curl_multi_socket_action(CURLM *multi, curl_socket_t socket, int events, int *running) {
    return curl.curl_multi_socket_action(multi, socket, events, running);
}
CURLMsg *curl_multi_info_read(CURLM *multi, int *left) {
    return curl.curl_multi_info_read(multi, left);
}

#pragma GCC visibility pop

CURLcode rouse_curl_set_long(CURL *easy, CURLoption option, long value) {
    return curl.curl_easy_setopt(easy, option, value);
}
CURLcode rouse_curl_set_size(CURL *easy, CURLoption option, curl_off_t value) {
    return curl.curl_easy_setopt(easy, option, value);
}
CURLcode rouse_curl_set_text(CURL *easy, CURLoption option, const char *value) {
    return curl.curl_easy_setopt(easy, option, value);
}
CURLcode rouse_curl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl.curl_easy_setopt(easy, option, value);
}
CURLcode rouse_curl_set_list(
    CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl.curl_easy_setopt(easy, option, value);
}
CURLcode rouse_curl_set_blob(CURL *easy, CURLoption option, struct curl_blob *value) {
    return curl.curl_easy_setopt(easy, option, value);
}
CURLcode rouse_curl_set_write(
    CURL *easy, size_t (*write)(char *, size_t, size_t, void *)) {
    return curl.curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write);
}
CURLcode rouse_curl_set_open_socket(
    CURL *easy, curl_socket_t (*open)(void *, curlsocktype, struct curl_sockaddr *)) {
    return curl.curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open);
}
CURLMcode rouse_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl.curl_multi_setopt(multi, option, value);
}
CURLMcode rouse_curl_multi_set_pointer(
    CURLM *multi, CURLMoption option, void *value) {
    return curl.curl_multi_setopt(multi, option, value);
}
CURLMcode rouse_curl_multi_set_socket(
    CURLM *multi, int (*socket)(CURL *, curl_socket_t, int, void *, void *)) {
    return curl.curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket);
}
CURLMcode rouse_curl_multi_set_timer(
    CURLM *multi, int (*timer)(CURLM *, long, void *)) {
    return curl.curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer);
}
CURLcode rouse_curl_info_long(CURL *easy, CURLINFO info, long *value) {
    return curl.curl_easy_getinfo(easy, info, value);
}
CURLcode rouse_curl_info_size(CURL *easy, CURLINFO info, curl_off_t *value) {
    return curl.curl_easy_getinfo(easy, info, value);
}
CURLcode rouse_curl_start(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }
