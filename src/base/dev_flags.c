/* Reads KEY=VALUE into a struct of settings. */
#include "base/dev_flags.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool read_number(const char *text, int64_t *number)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno)
        return false;
    *number = v;
    return true;
}

static bool read_bool(const char *text, bool *value)
{
    bool is_true = strcmp(text, "true") == 0 || strcmp(text, "on") == 0;
    if (!is_true && strcmp(text, "false") != 0 && strcmp(text, "off") != 0)
        return false;
    *value = is_true;
    return true;
}

int dev_flag_set(const struct dev_flag *flags, size_t n, void *settings, const char *text, struct error *err)
{
    const char *value = strchr(text, '=');
    if (!value || value == text)
        return error_set(err, -MRD_EINVALID, "--dev-flag: '%s' is not KEY=VALUE", text);
    size_t len = (size_t)(value++ - text);
    for (size_t i = 0; i < n; i++) {
        if (strlen(flags[i].key) != len || strncmp(flags[i].key, text, len) != 0)
            continue;
        void *at = (char *)settings + flags[i].offset;
        if (flags[i].kind == DEV_BOOL)
            return read_bool(value, at) ? 1 : error_set(err, -MRD_EINVALID, "--dev-flag %s: use true or false", text);
        return read_number(value, at) ? 1 : error_set(err, -MRD_EINVALID, "--dev-flag %s: not a number", text);
    }
    return 0;
}
