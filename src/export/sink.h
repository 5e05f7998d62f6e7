/* Where the bytes of a format go. */
#ifndef MERIDIAN_EXPORT_SINK_H
#define MERIDIAN_EXPORT_SINK_H

#include "base/error.h"

#include <stddef.h>

struct export_sink {
    int (*write)(void *self, const void *bytes, size_t n, struct error *err); /* 0 or negative */
    void *self;
};

#endif
