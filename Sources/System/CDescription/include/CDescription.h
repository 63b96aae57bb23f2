// The backend API's description, as the files of Protocol/ hold it: part of the program, so that a
// server tells what it speaks itself and not what lies beside it.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// The bytes of Protocol/backend-api.yaml; they live as long as the program.
const uint8_t *rouse_description(size_t *length);

/// The bytes of Protocol/backend-api.html, the same as a page.
const uint8_t *rouse_description_page(size_t *length);
