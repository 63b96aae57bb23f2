// Libraries that are loaded when something needs them, and not with the program: most calls of
// `rouse` speak to no PostgreSQL, no webhook and no backend, and each of these libraries brings
// ten more.
#pragma once
#include <stddef.h>

/// One function of a library, and where its address goes.
struct rouse_function {
    const char *name;
    void **place;
};

/// A library, by the name that its binary interface has.
struct rouse_library {
    const char *name;
    /// Debian's package.
    const char *package;
    const struct rouse_function *functions;
    size_t count;
};

enum { rouse_library_words = 512 };

/// Loads a library and finds its functions; it stays until the process ends. Called once for each.
///
/// The words are empty afterwards, or say why the library cannot be used.
void rouse_library_load(const struct rouse_library *library, char words[rouse_library_words]);
