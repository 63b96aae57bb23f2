#include "CConsole.h"

// C23, which clang takes in older C too; the compiler's list of dependencies holds the files.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const uint8_t index_html[] = {
#embed "pages/index.html"
};

static const uint8_t console_css[] = {
#embed "pages/console.css"
};

static const uint8_t icon_svg[] = {
#embed "pages/icon.svg"
};

static const uint8_t api_js[] = {
#embed "pages/api.js"
};

static const uint8_t app_js[] = {
#embed "pages/app.js"
};

static const uint8_t apps_js[] = {
#embed "pages/apps.js"
};

static const uint8_t audit_js[] = {
#embed "pages/audit.js"
};

static const uint8_t campaigns_js[] = {
#embed "pages/campaigns.js"
};

static const uint8_t charts_js[] = {
#embed "pages/charts.js"
};

static const uint8_t device_js[] = {
#embed "pages/device.js"
};

static const uint8_t dom_js[] = {
#embed "pages/dom.js"
};

static const uint8_t nodes_js[] = {
#embed "pages/nodes.js"
};

static const uint8_t overview_js[] = {
#embed "pages/overview.js"
};

static const uint8_t push_js[] = {
#embed "pages/push.js"
};

static const uint8_t users_js[] = {
#embed "pages/users.js"
};

static const uint8_t webhooks_js[] = {
#embed "pages/webhooks.js"
};

static const struct {
    const char *name;
    const uint8_t *bytes;
    size_t length;
} files[] = {
    {"index.html", index_html, sizeof index_html},
    {"console.css", console_css, sizeof console_css},
    {"icon.svg", icon_svg, sizeof icon_svg},
    {"api.js", api_js, sizeof api_js},
    {"app.js", app_js, sizeof app_js},
    {"apps.js", apps_js, sizeof apps_js},
    {"audit.js", audit_js, sizeof audit_js},
    {"campaigns.js", campaigns_js, sizeof campaigns_js},
    {"charts.js", charts_js, sizeof charts_js},
    {"device.js", device_js, sizeof device_js},
    {"dom.js", dom_js, sizeof dom_js},
    {"nodes.js", nodes_js, sizeof nodes_js},
    {"overview.js", overview_js, sizeof overview_js},
    {"push.js", push_js, sizeof push_js},
    {"users.js", users_js, sizeof users_js},
    {"webhooks.js", webhooks_js, sizeof webhooks_js},
};

int rouse_console_file_count(void) { return sizeof files / sizeof files[0]; }

const char *rouse_console_file_name(int index) { return files[index].name; }

const uint8_t *rouse_console_file(int index, size_t *length) {
    *length = files[index].length;
    return files[index].bytes;
}
