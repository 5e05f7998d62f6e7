/* Owns the picture of related clocks. */
#include "shell/sync_plot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { WIDTH = 900, PANEL = 260, LEFT = 90, RIGHT = 20, TOP = 40, BOTTOM = 40 };

/* Distance of each message from the chosen map, in microseconds, what is off the scale is drawn at the rim. */
static const char points_sql[] =
    "select p.id, r.name || ' <==> ' || o.name, (q.x - p.x_begin) / 1e9, (q.y - (q.x - p.to_ref_offset_ns) / "
    "p.to_ref_slope) "
    "/ 1e3, q.kind = 'above', q.on_hull, (p.x_end - p.x_begin) / 1e9 from clock_sync_pair p join machine r on r.id = "
    "p.ref_machine_id join machine o on o.id = p.other_machine_id join clock_sync_point q on q.pair_id = p.id where "
    "p.to_ref_slope is not null order by p.id, q.on_hull";

struct plot {
    FILE *f;
    int panel; /* panels begun */
    int64_t pair;
    double seconds;
    double scale_us; /* half the height */
};

static double place_x(const struct plot *p, double seconds)
{
    double span = p->seconds > 0 ? p->seconds : 1;
    return LEFT + seconds / span * (WIDTH - LEFT - RIGHT);
}

static double place_y(const struct plot *p, double us)
{
    double top = p->panel * PANEL - PANEL + TOP, height = PANEL - TOP - BOTTOM;
    double clipped = fmax(-1, fmin(1, us / p->scale_us));
    return top + height / 2 - clipped * height / 2;
}

/* Title, axis and zero line of the next pair. */
static void begin_panel(struct plot *p, const struct tp_result *r)
{
    p->pair = tp_int64(r, 0);
    p->seconds = tp_double(r, 6);
    p->panel++;
    double top = p->panel * PANEL - PANEL;
    fprintf(p->f, "<text x='%d' y='%.0f' class='t'>", LEFT, top + 24);
    for (const char *s = tp_text(r, 1, NULL); s && *s; s++)
        *s == '<'   ? fputs("&lt;", p->f)
        : *s == '>' ? fputs("&gt;", p->f)
        : *s == '&' ? fputs("&amp;", p->f)
                    : fputc(*s, p->f);
    fprintf(p->f, "</text>\n<rect x='%d' y='%.0f' width='%d' height='%d' class='b'/>\n", LEFT, top + TOP,
            WIDTH - LEFT - RIGHT, PANEL - TOP - BOTTOM);
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

static int draw(struct shell *sh, struct plot *p, struct error *err)
{
    struct tp_result *r;
    int rc = tp_query(sh->tp, points_sql, &r);
    while (rc == 0 && (rc = tp_step(r)) == 1) {
        if (!p->panel || tp_int64(r, 0) != p->pair)
            begin_panel(p, r);
        bool hull = tp_int64(r, 5) != 0;
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
    int rc = scalar(sh, "select count(*) from clock_sync_pair where to_ref_slope is not null", &pairs, err);
    if (rc == 0) /* three times the median: quick messages are what matters, slow ones stick to the rim */
        rc = scalar(sh,
                    "select 3 * max(d) from (select d, ntile(2) over (order by d) as n from (select abs(q.y - (q.x - "
                    "p.to_ref_offset_ns) / p.to_ref_slope) / 1e3 as d from clock_sync_pair p join clock_sync_point q "
                    "on q.pair_id = p.id where p.to_ref_slope is not null)) where n = 1",
                    &scale, err);
    if (rc < 0)
        return rc;
    struct plot p = {.f = fopen(path, "w"), .scale_us = scale > 0 ? scale : 1};
    if (!p.f)
        return error_set_errno(err, errno, "%s", path);
    int height = (int)pairs * PANEL + 30;
    fprintf(p.f, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' viewBox='0 0 %d %d'>\n", WIDTH, height,
            WIDTH, height);
    fputs("<style>text{font:12px "
          "sans-serif;fill:#222}.t{font-weight:bold}.a{fill:#666}.b{fill:none;stroke:#ccc}.m{stroke:#222}"
          ".u{fill:#c1440e}.d{fill:#1f6fb2}.h{stroke:#222}</style>\n<rect width='100%' height='100%' fill='white'/>\n",
          p.f);
    rc = draw(sh, &p, err);
    fprintf(p.f,
            "<text x='%d' y='%d' class='a'>How far each message lies from the map chosen (black). Red: sent by the "
            "reference; blue: sent to it; ringed: bounds the map.</text>\n</svg>\n",
            LEFT, height - 12);
    if (fclose(p.f) != 0 && rc == 0)
        rc = error_set_errno(err, errno, "%s", path);
    return rc;
}
