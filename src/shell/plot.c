/* Draws answers. */
#include "shell/plot.h"
#include "shell/text_width.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_BARS = 40,
    LABEL_COLUMNS = 32,
    BINS = 20,
    LINE_ROWS = 12,
    LEAST_COLUMNS = 20, /* for what is drawn */
    NUMBER_MAX = 32
};

const char *const plot_kind_names[PLOT_KINDS] = {"bars", "line", "hist", "spark"};

static void number(char buf[NUMBER_MAX], double v)
{
    if (v == floor(v) && fabs(v) < 1e15)
        snprintf(buf, NUMBER_MAX, "%.0f", v);
    else
        snprintf(buf, NUMBER_MAX, "%.6g", v);
}

static void put_times(struct text_out *out, const char *s, unsigned n)
{
    while (n--)
        out_text(out, s);
}

/* A bar of `eighths` of a column. */
static void put_bar(struct text_out *out, uint64_t eighths)
{
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    put_times(out, "█", (unsigned)(eighths / 8));
    out_text(out, parts[eighths % 8]);
}

struct range {
    double least, most;
};

static struct range range_of(const struct plot *p, bool of_x)
{
    struct range r = {INFINITY, -INFINITY};
    for (size_t i = 0; i < p->points.n; i++) {
        double v = of_x ? p->points.p[i].x : p->points.p[i].y;
        r.least = v < r.least ? v : r.least;
        r.most = v > r.most ? v : r.most;
    }
    return r;
}

/* Where v lies in a range, 0 to 1; halves first, for the ends may be as far apart as doubles go. */
static double place(double v, struct range r)
{
    double span = r.most / 2 - r.least / 2;
    return span > 0 ? (v / 2 - r.least / 2) / span : 0.5;
}

static unsigned room(const struct plot *p, unsigned taken)
{
    return p->columns > taken + LEAST_COLUMNS ? p->columns - taken : LEAST_COLUMNS;
}

/* ---- bars ---- */

static unsigned widest_label(const struct plot *p, size_t n)
{
    unsigned widest = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned w = text_width(p->labels.p + p->points.p[i].label);
        widest = w > widest ? w : widest;
    }
    return widest < LABEL_COLUMNS ? widest : LABEL_COLUMNS;
}

static void put_label(struct text_out *out, const char *label, unsigned columns)
{
    unsigned width = text_width(label);
    if (width > columns) {
        size_t bytes = text_fit(label, columns - 1, &width);
        out_bytes(out, label, bytes);
        out_text(out, "…");
        width++;
    } else {
        out_text(out, label);
    }
    put_times(out, " ", columns > width ? columns - width : 0);
}

/* One row: its label, what is below zero to the left, what is above to the right, the number. */
static void put_row(struct text_out *out, const char *label, unsigned label_columns, double value, struct range r,
                    unsigned columns)
{
    char text[NUMBER_MAX];
    const double zero = r.least < 0 ? place(0, r) : 0, at = value < 0 ? place(value, r) : 0;
    const unsigned left = (unsigned)(zero * columns + 0.5);
    put_label(out, label, label_columns);
    out_text(out, " ");
    if (value < 0) {
        unsigned begin = (unsigned)(at * columns + 0.5);
        put_times(out, " ", begin);
        put_times(out, "█", left > begin ? left - begin : 0);
    } else {
        put_times(out, " ", left);
        double share = r.most > 0 ? value / r.most : 0;
        put_bar(out, (uint64_t)(share * (columns - left) * 8 + 0.5));
    }
    number(text, value);
    out_text(out, " ");
    out_text(out, text);
    out_text(out, "\n");
}

static void draw_bars(const struct plot *p, struct text_out *out)
{
    const size_t n = p->points.n < MOST_BARS ? p->points.n : MOST_BARS;
    const unsigned labels = widest_label(p, n);
    struct range r = range_of(p, false);
    r.least = r.least < 0 ? r.least : 0;
    r.most = r.most > 0 ? r.most : 0;
    for (size_t i = 0; i < n; i++)
        put_row(out, p->labels.p + p->points.p[i].label, labels, p->points.p[i].y, r, room(p, labels + 18));
    if (p->points.n > n) {
        out_printf(out, "… and %zu more rows: ORDER BY %s DESC LIMIT %d shows the largest\n", p->points.n - n,
                   p->y_name, MOST_BARS);
    }
}

static void draw_histogram(const struct plot *p, struct text_out *out)
{
    uint64_t counts[BINS] = {0}, most = 0;
    const struct range r = range_of(p, false);
    const unsigned bins = r.most > r.least ? BINS : 1;
    char labels[BINS][2 * NUMBER_MAX + 8], from[NUMBER_MAX], to[NUMBER_MAX];
    unsigned widest = 0;
    for (size_t i = 0; i < p->points.n; i++) {
        unsigned bin = (unsigned)(place(p->points.p[i].y, r) * bins);
        bin = bin < bins ? bin : bins - 1;
        most = ++counts[bin] > most ? counts[bin] : most;
    }
    for (unsigned i = 0; i < bins; i++) {
        number(from, r.least + (r.most / bins - r.least / bins) * i);
        number(to, i + 1 == bins ? r.most : r.least + (r.most / bins - r.least / bins) * (i + 1));
        snprintf(labels[i], sizeof labels[i], bins == 1 ? "%s" : "%s – %s", from, to);
        unsigned w = text_width(labels[i]);
        widest = w > widest ? w : widest;
    }
    for (unsigned i = 0; i < bins; i++)
        put_row(out, labels[i], widest, (double)counts[i], (struct range){0, (double)most}, room(p, widest + 18));
}

static void draw_spark(const struct plot *p, struct text_out *out)
{
    static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const struct range r = range_of(p, false);
    const size_t n = p->points.n, columns = n < room(p, 0) ? n : room(p, 0);
    for (size_t c = 0; c < columns; c++) {
        size_t first = c * n / columns, end = (c + 1) * n / columns;
        double share = 0;
        for (size_t i = first; i < end; i++)
            share += place(p->points.p[i].y, r) / (double)(end - first);
        out_text(out, levels[share < 1 ? (size_t)(share * 8) : 7]);
    }
    char least[NUMBER_MAX], most[NUMBER_MAX], last[NUMBER_MAX];
    number(least, r.least);
    number(most, r.most);
    number(last, p->points.p[n - 1].y);
    out_printf(out, "\nleast %s, most %s, last %s\n", least, most, last);
}

/* ---- a line, in Braille: two by four dots a column ---- */

struct canvas {
    unsigned width, height; /* dots */
    uint8_t *dots;          /* of each column of text, the eight dots of its character */
};

static void set_dot(struct canvas *c, unsigned x, unsigned y)
{
    static const uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    if (x < c->width && y < c->height)
        c->dots[y / 4 * (c->width / 2) + x / 2] |= bits[y % 4][x % 2];
}

static void draw_segment(struct canvas *c, const unsigned a[2], const unsigned b[2])
{
    const int dx = (int)b[0] - (int)a[0], dy = (int)b[1] - (int)a[1];
    const int steps = abs(dx) > abs(dy) ? abs(dx) : abs(dy);
    for (int i = 0; i <= steps; i++)
        set_dot(c, a[0] + (unsigned)(steps ? dx * i / steps : 0), a[1] + (unsigned)(steps ? dy * i / steps : 0));
}

static int by_x(const void *a, const void *b)
{
    const struct plot_point *x = a, *y = b;
    return (x->x > y->x) - (x->x < y->x);
}

static void put_axis(struct text_out *out, const char *text, unsigned columns)
{
    put_times(out, " ", columns - (unsigned)strlen(text));
    out_text(out, text);
    out_text(out, "┤");
}

static void put_dots(struct text_out *out, uint8_t dots)
{
    const char utf8[] = {(char)0xe2, (char)(0xa0 | dots >> 6), (char)(0x80 | (dots & 0x3f))};
    out_bytes(out, utf8, sizeof utf8);
}

static void put_canvas(const struct plot *p, const struct canvas *c, const char ends[2][2][NUMBER_MAX], unsigned labels,
                       struct text_out *out)
{
    const unsigned columns = c->width / 2, rows = c->height / 4;
    for (unsigned row = 0; row < rows; row++) {
        put_axis(out, row == 0 ? ends[1][1] : row + 1 == rows ? ends[1][0] : "", labels);
        for (unsigned i = 0; i < columns; i++)
            put_dots(out, c->dots[row * columns + i]);
        out_text(out, "\n");
    }
    char text[256];
    int n = snprintf(text, sizeof text, "%s  %.40s against %.40s", ends[0][0], p->y_name, p->x_name);
    put_times(out, " ", labels + 1);
    out_text(out, text);
    const unsigned used = n < (int)sizeof text ? text_width(text) : columns, end = (unsigned)strlen(ends[0][1]);
    put_times(out, " ", columns > used + end ? columns - used - end : 1);
    out_text(out, ends[0][1]);
    out_text(out, "\n");
}

static void draw_line(struct plot *p, struct text_out *out)
{
    const struct range r[2] = {range_of(p, true), range_of(p, false)};
    char ends[2][2][NUMBER_MAX];
    for (int axis = 0; axis < 2; axis++) {
        number(ends[axis][0], r[axis].least);
        number(ends[axis][1], r[axis].most);
    }
    size_t labels = strlen(ends[1][0]) > strlen(ends[1][1]) ? strlen(ends[1][0]) : strlen(ends[1][1]);
    struct canvas c = {.width = room(p, (unsigned)labels + 2) * 2, .height = LINE_ROWS * 4};
    c.dots = mem_zalloc((size_t)c.width / 2 * LINE_ROWS);
    if (!c.dots) {
        out_text(out, "out of memory\n");
        return;
    }
    qsort(p->points.p, p->points.n, sizeof *p->points.p, by_x);
    unsigned last[2] = {0};
    for (size_t i = 0; i < p->points.n; i++) {
        const struct plot_point *at = &p->points.p[i];
        const unsigned now[2] = {(unsigned)(place(at->x, r[0]) * (c.width - 1) + 0.5),
                                 (unsigned)((1 - place(at->y, r[1])) * (c.height - 1) + 0.5)};
        draw_segment(&c, i ? last : now, now);
        memcpy(last, now, sizeof last);
    }
    put_canvas(p, &c, (const char(*)[2][NUMBER_MAX])ends, (unsigned)labels, out);
    mem_free(c.dots);
}

void plot_draw(struct plot *p, struct text_out *out)
{
    switch (p->kind) {
    case PLOT_LINE:
        draw_line(p, out);
        break;
    case PLOT_HISTOGRAM:
        draw_histogram(p, out);
        break;
    case PLOT_SPARK:
        draw_spark(p, out);
        break;
    default:
        draw_bars(p, out);
    }
    if (p->left_out)
        out_printf(out, "%llu rows without a number are left out\n", (unsigned long long)p->left_out);
}

void plot_free(struct plot *p)
{
    vec_free(&p->points);
    vec_free(&p->labels);
}
