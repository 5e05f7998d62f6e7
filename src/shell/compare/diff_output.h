/* What `tp_shell diff` prints: a table, CSV, JSON, HTML. */
#ifndef MERIDIAN_SHELL_COMPARE_DIFF_OUTPUT_H
#define MERIDIAN_SHELL_COMPARE_DIFF_OUTPUT_H

#include "compare/diff.h"
#include "shell/text_out.h"

/* The lines to print: all of them, or what was found and what a loss or a clock forbids to tell. */
struct diff_report {
    const struct run_set *set;
    const struct diff *diff;
    double alpha;
    bool all;
};

struct diff_format {
    const char *name;
    void (*print)(struct text_out *o, const struct diff_report *r);
};
extern const struct diff_format diff_formats[];
enum { DIFF_FORMATS = 4 };

#endif
