/* Draws the picture of related clocks. */
#include "shell/commands/sync_plot.h"

#include "base/output_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 900, PANEL = 260, LEFT = 90, RIGHT = 20, TOP = 40, BOTTOM = 40 };

/* How far a message lies from the chosen map, in microseconds: differences of integers, as doubles do not hold times.
 */
#define DISTANCE_US                                                                                                    \
    "((q.y - q.x - p.offset_ns) - (q.x - p.x_begin - (p.x_end - p.x_begin) / 2) * p.slope_ppm / 1e6) / 1e3"

static const char points_sql[] =
    "select p.id, r.name || ' <==> ' || o.name, (q.x - p.x_begin) / 1e9, " DISTANCE_US
    ", q.kind = 'above', q.on_hull, (p.x_end - p.x_begin) / 1e9, q.window_index from clock_sync_pair p join machine r "
    "on "
    "r.id = p.ref_machine_id join machine o on o.id = p.other_machine_id join clock_sync_point q on q.pair_id = p.id "
    "where p.slope_ppm is not null order by p.id, q.on_hull, q.kind, q.window_index, q.x";

struct plot {
    FILE *f;
    int panel; /* panels begun */
    int64_t pair;
    double seconds;
    double scale_us; /* half the height */
    struct {
        int64_t kind, window; /* kind -1: none */
        double seconds, us;
    } last; /* point of a hull */
};

static double place_x(const struct plot *p, double seconds)
{
    double span = p->seconds > 0 ? p->seconds : 1;
    return LEFT + seconds / span * (WIDTH - LEFT - RIGHT);
}

static double place_y_unclipped(const struct plot *p, double us)
{
    double top = p->panel * PANEL - PANEL + TOP, height = PANEL - TOP - BOTTOM;
    return top + height / 2 - us / p->scale_us * height / 2;
}

/* What is off the scale is drawn at the rim. */
static double place_y(const struct plot *p, double us)
{
    return place_y_unclipped(p, fmax(-p->scale_us, fmin(p->scale_us, us)));
}

/* Title, axis and zero line of the next pair. */
static void begin_panel(struct plot *p, const struct tp_result *r)
{
    p->pair = tp_int64(r, 0);
    p->seconds = tp_double(r, 6);
    p->panel++;
    p->last.kind = -1;
    double top = p->panel * PANEL - PANEL;
    fprintf(p->f, "<text x='%d' y='%.0f' class='t'>", LEFT, top + 24);
    for (const char *s = tp_text(r, 1, NULL); s && *s; s++)
        *s == '<'   ? fputs("&lt;", p->f)
        : *s == '>' ? fputs("&gt;", p->f)
        : *s == '&' ? fputs("&amp;", p->f)
                    : fputc(*s, p->f);
    fprintf(p->f, "</text>\n<rect x='%d' y='%.0f' width='%d' height='%d' class='b'/>\n", LEFT, top + TOP,
            WIDTH - LEFT - RIGHT, PANEL - TOP - BOTTOM);
    fprintf(p->f, "<clipPath id='c%d'><rect x='%d' y='%.0f' width='%d' height='%d'/></clipPath>\n", p->panel, LEFT,
            top + TOP, WIDTH - LEFT - RIGHT, PANEL - TOP - BOTTOM);
    fprintf(p->f, "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' class='m'/>\n", LEFT, WIDTH - RIGHT, place_y(p, 0),
            place_y(p, 0));
    for (int i = -1; i <= 1; i++)
        fprintf(p->f, "<text x='%d' y='%.1f' class='a' text-anchor='end'>%+.0f us</text>\n", LEFT - 6,
                place_y(p, i * p->scale_us) + 4, i * p->scale_us);
    fprintf(
        p->f,
        "<text x='%d' y='%.0f' class='a'>0 s</text><text x='%d' y='%.0f' class='a' text-anchor='end'>%.3f s</text>\n",
        LEFT, top + PANEL - BOTTOM + 16, WIDTH - RIGHT, top + PANEL - BOTTOM + 16, p->seconds);
}

static int scalar(struct shell *sh, const char *sql, double *value, struct error *err)
{
    struct tp_result *r;
    int rc = tp_query(sh->tp, sql, &r);
    if (rc == 0 && (rc = tp_step(r)) == 1) {
        *value = tp_double(r, 0);
        rc = 0;
    }
    tp_result_close(r);
    return rc < 0 ? session_error(sh, rc, err) : 0;
}

/* The edge from the point of the hull before, if that is one of the same hull. */
static void draw_edge(struct plot *p, const struct tp_result *r)
{
    int64_t kind = tp_int64(r, 4), window = tp_int64(r, 7);
    double seconds = tp_double(r, 2), us = tp_double(r, 3);
    if (p->last.kind == kind && p->last.window == window)
        fprintf(p->f, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' class='e%s' clip-path='url(#c%d)'/>\n",
                place_x(p, p->last.seconds), place_y_unclipped(p, p->last.us), place_x(p, seconds),
                place_y_unclipped(p, us), kind ? "u" : "d", p->panel);
    p->last.kind = kind;
    p->last.window = window;
    p->last.seconds = seconds;
    p->last.us = us;
}

static int draw(struct shell *sh, struct plot *p, struct error *err)
{
    struct tp_result *r;
    int rc = tp_query(sh->tp, points_sql, &r);
    while (rc == 0 && (rc = tp_step(r)) == 1) {
        if (!p->panel || tp_int64(r, 0) != p->pair)
            begin_panel(p, r);
        bool hull = tp_int64(r, 5) != 0;
        if (hull)
            draw_edge(p, r);
        fprintf(p->f, "<circle cx='%.1f' cy='%.1f' r='%s' class='%s%s'/>\n", place_x(p, tp_double(r, 2)),
                place_y(p, tp_double(r, 3)), hull ? "3.5" : "1.5", tp_int64(r, 4) ? "u" : "d", hull ? " h" : "");
        rc = 0;
    }
    tp_result_close(r);
    return rc < 0 ? session_error(sh, rc, err) : 0;
}

int sync_plot(struct shell *sh, const char *path, struct error *err)
{
    double pairs = 0, scale = 0;
    int rc = scalar(sh, "select count(*) from clock_sync_pair where slope_ppm is not null", &pairs, err);
    if (rc == 0) /* three times the median: quick messages are what matters, slow ones stick to the rim */
        rc =
            scalar(sh,
                   "select 3 * max(d) from (select d, ntile(2) over (order by d) as n from (select abs(" DISTANCE_US
                   ") as d from clock_sync_pair p join clock_sync_point q on q.pair_id = p.id where p.slope_ppm is not "
                   "null)) where n = 1",
                   &scale, err);
    if (rc < 0)
        return rc;
    struct output_file out;
    char *text = NULL;
    size_t len = 0;
    if ((rc = output_file_open(&out, path, err)) < 0)
        return rc;
    struct plot p = {.f = open_memstream(&text, &len), .scale_us = scale > 0 ? scale : 1};
    if (!p.f)
        return output_file_close(&out, error_set(err, -MRD_ENOMEM, "out of memory"), err);
    int height = (int)pairs * PANEL + 30;
    fprintf(p.f, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' viewBox='0 0 %d %d'>\n", WIDTH, height,
            WIDTH, height);
    fputs("<style>text{font:12px "
          "sans-serif;fill:#222}.t{font-weight:bold}.a{fill:#666}.b{fill:none;stroke:#ccc}.m{stroke:#222}"
          ".u{fill:#c1440e}.d{fill:#1f6fb2}.h{stroke:#222}.eu{stroke:#c1440e}.ed{stroke:#1f6fb2}</style>\n<rect "
          "width='100%' height='100%' fill='white'/>\n",
          p.f);
    rc = draw(sh, &p, err);
    fprintf(p.f,
            "<text x='%d' y='%d' class='a'>Distance of each message from the clock relation found (black). Red: sent "
            "by the "
            "reference; blue: to it; ringed: the hulls.</text>\n</svg>\n",
            LEFT, height - 12);
    if (fclose(p.f) != 0 && rc == 0)
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    if (rc == 0)
        rc = output_file_write(&out, text, len, err);
    free(text);
    return output_file_close(&out, rc, err);
}
