/* Pictures of a report's rows as SVG. */
#include "shell/compare/report_svg.h"

#include "shell/compare/html_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1180, HEIGHT = 230, LEFT = 44, RIGHT = 190, BOTTOM = 22, SERIES = 8, BARS = 15, BAR = 20, LABEL = 300 };

static const char *const colours[SERIES + 1] = {"#4267b2", "#e08a1e", "#3f9c5a", "#b3413a", "#7d58b3",
                                                "#8a6a4f", "#d072a8", "#2f9fb0", "#b8bfcc"};

static void svg_begin(struct text_out *o, int height, const char *label)
{
    out_printf(o,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
               "role=\"img\" font-family=\"system-ui,sans-serif\" font-size=\"12\" aria-label=\"",
               WIDTH, height, WIDTH, height);
    html_text(o, label);
    out_text(o, "\">\n");
}

/* ---- bars ---- */

static void draw_bars(struct text_out *o, const struct report_section *s, const struct report_table *t)
{
    size_t rows = report_rows(t), n = rows < BARS ? rows : BARS;
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, report_cell(t, i, (size_t)s->value)->number);
    if (!(most > 0))
        return;
    svg_begin(o, (int)n * BAR + 6, s->title);
    for (size_t i = 0; i < n; i++) {
        const struct report_cell *label = report_cell(t, i, 0), *value = report_cell(t, i, (size_t)s->value);
        double width = fmax(value->number, 0) / most * (WIDTH - LABEL - 130);
        int y = (int)i * BAR + 3;
        out_printf(o, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LABEL - 8, y + 14);
        char cut[48];
        size_t len = strlen(label->text);
        size_t keep = len < sizeof cut - 4 ? len : sizeof cut - 4;
        while (keep < len && keep && ((unsigned char)label->text[keep] & 0xc0) == 0x80)
            keep--;
        memcpy(cut, label->text, keep);
        memcpy(cut + keep, keep < len ? "…" : "", keep < len ? sizeof "…" : 1);
        html_text(o, cut);
        out_printf(
            o, "</text><rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/><text x=\"%.1f\" y=\"%d\">",
            LABEL, y, fmax(width, 0.5), BAR - 4, colours[0], LABEL + width + 6, y + 14);
        html_text(o, value->text);
        out_text(o, " ");
        html_text(o, s->unit);
        out_text(o, "</text>\n");
    }
    out_text(o, "</svg>\n");
}

/* ---- areas on top of each other ---- */

struct series {
    const char *name;
    double total;
    double at[REPORT_STEPS];
};

struct areas {
    VEC(struct series) p;
};

static struct series *series_of(struct areas *a, const char *name)
{
    for (size_t i = 0; i < a->p.n; i++)
        if (strcmp(a->p.p[i].name, name) == 0)
            return &a->p.p[i];
    struct series *s = vec_add(&a->p);
    if (s)
        s->name = name;
    return s;
}

static int by_total(const void *x, const void *y)
{
    const struct series *a = x, *b = y;
    if (a->total != b->total)
        return a->total < b->total ? 1 : -1;
    return strcmp(a->name, b->name);
}

/* The largest series, and the sum of all others behind them. */
static bool collect(struct areas *a, const struct report_table *t)
{
    for (size_t r = 0; r < report_rows(t); r++) {
        double step = report_cell(t, r, 0)->number, v = report_cell(t, r, 2)->number;
        struct series *s = series_of(a, report_cell(t, r, 1)->text);
        if (!s)
            return false;
        if (step < 0 || step >= REPORT_STEPS || !(v > 0))
            continue;
        s->at[(size_t)step] += v;
        s->total += v;
    }
    if (a->p.n)
        qsort(a->p.p, a->p.n, sizeof *a->p.p, by_total);
    for (size_t i = SERIES + 1; i < a->p.n; i++)
        for (size_t k = 0; k < REPORT_STEPS; k++)
            a->p.p[SERIES].at[k] += a->p.p[i].at[k];
    if (a->p.n > SERIES + 1) {
        a->p.p[SERIES].name = "all others";
        a->p.n = SERIES + 1;
    }
    return true;
}

static void draw_area(struct text_out *o, const double *below, const double *above, double scale, const char *colour,
                      const char *name)
{
    const double step = (double)(WIDTH - LEFT - RIGHT) / REPORT_STEPS;
    const double floor_y = HEIGHT - BOTTOM;
    out_printf(o, "<path fill=\"%s\" d=\"M%d %.1f", colour, LEFT, floor_y - below[0] * scale);
    for (size_t k = 0; k < REPORT_STEPS; k++)
        out_printf(o, "V%.1fH%.1f", floor_y - above[k] * scale, LEFT + step * (double)(k + 1));
    for (size_t k = REPORT_STEPS; k-- > 0;)
        out_printf(o, "V%.1fH%.1f", floor_y - below[k] * scale, LEFT + step * (double)k);
    out_text(o, "Z\"><title>");
    html_text(o, name);
    out_text(o, "</title></path>\n");
}

static void draw_axis(struct text_out *o, double most, double scale, const char *unit)
{
    double tick = pow(10, floor(log10(most)));
    tick *= most / tick > 5 ? 2 : most / tick > 2 ? 1 : 0.5;
    for (double v = 0; v <= most * 1.001; v += tick)
        out_printf(o,
                   "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ccd2dd\" stroke-width=\".6\"/><text "
                   "x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n",
                   LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM - v * scale, HEIGHT - BOTTOM - v * scale, LEFT - 5,
                   HEIGHT - BOTTOM - v * scale + 4, v);
    out_printf(o,
               "<text x=\"%d\" y=\"%d\">start</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">end</text><text "
               "x=\"4\" y=\"12\">",
               LEFT, HEIGHT - 6, WIDTH - RIGHT, HEIGHT - 6);
    html_text(o, unit);
    out_text(o, "</text>\n");
}

static bool draw_areas(struct text_out *o, const struct report_section *s, const struct report_table *t)
{
    struct areas a = {0};
    double below[REPORT_STEPS] = {0}, above[REPORT_STEPS], most = 0;
    bool fits = collect(&a, t);
    for (size_t k = 0; k < REPORT_STEPS && fits; k++) {
        double sum = 0;
        for (size_t i = 0; i < a.p.n; i++)
            sum += a.p.p[i].at[k];
        most = fmax(most, sum);
    }
    if (fits && most > 0) {
        double scale = (HEIGHT - BOTTOM - 18) / most;
        svg_begin(o, HEIGHT, s->title);
        draw_axis(o, most, scale, s->unit);
        for (size_t i = 0; i < a.p.n; i++) {
            for (size_t k = 0; k < REPORT_STEPS; k++)
                above[k] = below[k] + a.p.p[i].at[k];
            draw_area(o, below, above, scale, colours[i], a.p.p[i].name);
            memcpy(below, above, sizeof below);
            out_printf(o, "<rect x=\"%d\" y=\"%zu\" width=\"11\" height=\"11\" fill=\"%s\"/><text x=\"%d\" y=\"%zu\">",
                       WIDTH - RIGHT + 14, 20 + i * 19, colours[i], WIDTH - RIGHT + 30, 30 + i * 19);
            html_text(o, a.p.p[i].name);
            out_text(o, "</text>\n");
        }
        out_text(o, "</svg>\n");
    }
    vec_free(&a.p);
    return fits;
}

bool report_draw(struct text_out *o, const struct report_section *s, const struct report_table *t)
{
    if (report_rows(t) && s->picture == PICTURE_BARS)
        draw_bars(o, s, t);
    return !report_rows(t) || s->picture != PICTURE_AREAS || draw_areas(o, s, t);
}
