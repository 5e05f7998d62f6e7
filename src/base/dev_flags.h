/* Settings for developers and tests, KEY=VALUE: what a user has no reason to change (docs/contributing.md lists them).
 * Each program that has some declares them in a table. */
#ifndef MERIDIAN_BASE_DEV_FLAGS_H
#define MERIDIAN_BASE_DEV_FLAGS_H

#include "base/error.h"

#include <stddef.h>

enum dev_flag_kind {
    DEV_BOOL,   /* a bool: true or false, on or off */
    DEV_NUMBER, /* an int64_t, not negative */
};

struct dev_flag {
    const char *key;
    enum dev_flag_kind kind;
    size_t offset; /* in the struct of settings */
};

/* Sets what `text` says in `settings`. 1: done; 0: the table has no such key; -MRD_EINVALID with a text: it is not
 * KEY=VALUE, or the value is none. */
int dev_flag_set(const struct dev_flag *flags, size_t n, void *settings, const char *text, struct error *err);

#endif
