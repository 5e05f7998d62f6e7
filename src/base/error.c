/* The texts of error values: formatting, prefixing, and the table of codes. */
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const code_texts[MRD_ERROR_COUNT] = {"no error",
#define X(name, text) text,
                                                        MRD_ERRORS(X)
#undef X
};

const char *error_code_text(int code)
{
    if (code > 0 || -code >= MRD_ERROR_COUNT)
        return "unknown error";
    return code_texts[-code];
}

/* Cuts a text that filled its buffer back to whole UTF-8 sequences. */
static void trim_utf8(char *text, size_t size)
{
    size_t n = strlen(text);
    if (n + 1 < size)
        return;
    size_t i = n;
    while (i > 0 && n - i < 4 && ((unsigned char)text[i - 1] & 0xc0) == 0x80)
        i--;
    if (i == 0 || !((unsigned char)text[i - 1] & 0x80))
        return;
    unsigned char lead = (unsigned char)text[i - 1];
    size_t need = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (n - i < need)
        text[i - 1] = 0;
}

int error_vset(struct error *e, int code, const char *fmt, va_list ap)
{
    if (!e)
        return code;
    char text[sizeof e->text]; /* the arguments may point into the old text */
    vsnprintf(text, sizeof text, fmt, ap);
    trim_utf8(text, sizeof text);
    e->code = code;
    memcpy(e->text, text, sizeof text);
    return code;
}

int error_set(struct error *e, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    error_vset(e, code, fmt, ap);
    va_end(ap);
    return code;
}

int error_set_errno(struct error *e, int errno_value, const char *fmt, ...)
{
    int code = errno_value == ENOMEM                             ? -MRD_ENOMEM
               : errno_value == EACCES || errno_value == EPERM   ? -MRD_EDENIED
               : errno_value == ENOENT || errno_value == ENOTDIR ? -MRD_ENOTFOUND
               : errno_value == EEXIST                           ? -MRD_EEXISTS
                                                                 : -MRD_EIO;
    va_list ap;
    va_start(ap, fmt);
    error_vset(e, code, fmt, ap);
    va_end(ap);
    if (e) {
        size_t n = strlen(e->text);
        char why[128];
        snprintf(e->text + n, sizeof e->text - n, ": %s", strerror_r(errno_value, why, sizeof why));
    }
    return code;
}

int error_prefix(struct error *e, const char *fmt, ...)
{
    if (!e)
        return -MRD_EINVALID;
    char front[sizeof e->text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(front, sizeof front, fmt, ap);
    va_end(ap);
    return error_set(e, e->code, "%s: %s", front, e->text);
}
