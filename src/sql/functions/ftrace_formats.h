/* How the args of kernel events are printed: to_ftrace() and to_kernel_ftrace(). */
#ifndef MERIDIAN_SQL_FUNCTIONS_FTRACE_FORMATS_H
#define MERIDIAN_SQL_FUNCTIONS_FTRACE_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `format` stands behind the colon: text with {key}, or {key:how}; an arg that is not there prints nothing. */
struct ftrace_format {
    const char *event;
    const char *shown_as; /* NULL: by its own name */
    const char *format;
};

/* The format of an event in one of the two dialects; NULL: " key=value" for each arg. */
const struct ftrace_format *ftrace_format_find(const char *event, bool kernel);

/* Bits of gfp_flags (kernels 4.4 to 4.13), those of several bits first; names without their GFP_. */
extern const struct gfp_name {
    uint64_t bits;
    const char *name;
} gfp_names[];
extern const size_t n_gfp_names;

#endif
