#include "CLibrary.h"

#include <dlfcn.h>
#include <stdio.h>

void rouse_library_load(const struct rouse_library *library, char words[rouse_library_words]) {
    words[0] = 0;
    // Everything it needs now, so that what is missing is found here and not in a call.
    void *handle = dlopen(library->name, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *reason = dlerror();
        snprintf(
            words, rouse_library_words, "%s cannot be loaded: apt install %s (%s)", library->name,
            library->package, reason ? reason : "no reason given");
        return;
    }
    for (size_t index = 0; index < library->count; index++) {
        const struct rouse_function *function = &library->functions[index];
        *function->place = dlsym(handle, function->name);
        if (*function->place) continue;
        snprintf(
            words, rouse_library_words, "%s has no function %s: apt install a newer %s",
            library->name, function->name, library->package);
        return;
    }
}
