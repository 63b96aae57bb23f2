// The console's pages, scripts and styles, as the files of `pages` hold them: part of the program.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// How many files there are.
int rouse_console_file_count(void);

/// The name of a file below `/console/files/`; from 0.
const char *rouse_console_file_name(int index);

/// Its bytes; they live as long as the program.
const uint8_t *rouse_console_file(int index, size_t *length);
