/* Pictures of an answer for the terminal: bars, a line, a histogram, a sparkline, of Unicode's blocks and Braille dots.
 */
#ifndef MERIDIAN_SHELL_PLOT_H
#define MERIDIAN_SHELL_PLOT_H

#include "base/vec.h"
#include "shell/text_out.h"

enum plot_kind { PLOT_BARS, PLOT_LINE, PLOT_HISTOGRAM, PLOT_SPARK, PLOT_KINDS };

extern const char *const plot_kind_names[PLOT_KINDS];

struct plot_point {
    double x;     /* of a line */
    double y;     /* finite, like x */
    size_t label; /* of a bar: where it begins in plot.labels */
};

struct plot {
    enum plot_kind kind;
    const char *x_name, *y_name; /* columns of the answer */
    VEC(struct plot_point) points;
    VEC(char) labels;  /* each ends with a NUL */
    unsigned columns;  /* of the terminal */
    uint64_t left_out; /* rows without a number */
};

/* Draws it; lines are sorted by x first. At least one point. */
void plot_draw(struct plot *p, struct text_out *out);
void plot_free(struct plot *p);

#endif
