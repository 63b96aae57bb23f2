#include "CDescription.h"

// C23, which clang takes in older C too; the compiler's list of dependencies holds the files.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const uint8_t description[] = {
#embed "../../../Protocol/backend-api.yaml"
};

static const uint8_t page[] = {
#embed "../../../Protocol/backend-api.html"
};

const uint8_t *rouse_description(size_t *length) {
    *length = sizeof description;
    return description;
}

const uint8_t *rouse_description_page(size_t *length) {
    *length = sizeof page;
    return page;
}
