/* .plot: a picture of an answer. */
#include "base/suggest.h"
#include "shell/did_you_mean.h"
#include "shell/plot.h"
#include "shell/repl/repl.h"
#include "shell/text_width.h"
#include "shell/ticker.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { MOST_POINTS = 20000000, USUAL_COLUMNS = 80, LABEL_MAX = 256 };

static bool is_number(enum tp_type type)
{
    return type == TP_INT64 || type == TP_DOUBLE;
}

/* Which columns are drawn: the last that holds numbers, against the one before it or by the texts of another. -1: none.
 */
struct shape {
    int label, x, y;
};

static struct shape shape_of(const struct tp_result *r)
{
    struct shape s = {-1, -1, -1};
    for (int i = 0; i < tp_columns(r); i++) {
        enum tp_type type = tp_column_type(r, i);
        if (is_number(type)) {
            s.x = s.y;
            s.y = i;
        } else if (type == TP_TEXT && s.label < 0) {
            s.label = i;
        }
    }
    return s;
}

static enum plot_kind usual_kind(const struct shape *s)
{
    return s->label >= 0 ? PLOT_BARS : s->x >= 0 ? PLOT_LINE : PLOT_HISTOGRAM;
}

static bool add_label(struct plot *p, const struct tp_result *r, int column)
{
    char cell[LABEL_MAX];
    size_t len = output_cell(r, column, cell, sizeof cell);
    if (!vec_reserve(&p->labels, p->labels.n + len + 1))
        return false;
    memcpy(p->labels.p + p->labels.n, cell, len);
    p->labels.n += len;
    p->labels.p[p->labels.n++] = '\0';
    return true;
}

static bool add_row(struct plot *p, const struct tp_result *r, const struct shape *s)
{
    struct plot_point at = {.x = (double)p->points.n, .label = p->labels.n};
    bool ok = is_number(tp_column_type(r, s->y)) && isfinite(at.y = tp_double(r, s->y));
    if (ok && s->x >= 0 && p->kind == PLOT_LINE)
        ok = is_number(tp_column_type(r, s->x)) && isfinite(at.x = tp_double(r, s->x));
    if (!ok) {
        p->left_out++;
        return true;
    }
    if (p->kind == PLOT_BARS && !add_label(p, r, s->label >= 0 ? s->label : s->x >= 0 ? s->x : 0))
        return false;
    return vec_push(&p->points, at);
}

/* The rows of a result; 0, or what tp_step() failed with. What is missing to draw is told. */
static int read_points(struct repl *r, struct tp_result *result, struct plot *p, int kind)
{
    struct shape s = {.y = -1};
    int rc;
    while ((rc = tp_step(result)) == 1) {
        if (s.y < 0) { /* up to the first row that has a number */
            s = shape_of(result);
            p->kind = kind >= 0 ? (enum plot_kind)kind : usual_kind(&s);
        }
        if (s.y < 0) {
            p->left_out++;
            continue;
        }
        if (p->points.n >= MOST_POINTS || !add_row(p, result, &s)) {
            fprintf(stderr, ".plot: more rows than can be drawn: GROUP BY something, or take a sample\n");
            vec_clear(&p->points);
            return 0;
        }
    }
    if (rc == 0 && !p->points.n)
        fprintf(stderr, ".plot: the answer has no rows with numbers\n");
    if (rc == 0 && p->points.n) {
        p->y_name = tp_column_name(result, s.y);
        p->x_name = s.x >= 0 ? tp_column_name(result, s.x) : "the number of the row";
        plot_draw(p, r->out);
    }
    return rc;
}

static void draw(struct repl *r, const char *sql, int kind)
{
    struct plot p = {.columns = text_screen(r->out->fd)};
    struct tp_result *result = NULL;
    struct ticker ticker;
    p.columns = p.columns ? p.columns : USUAL_COLUMNS;
    interrupt_target(r->sh->tp);
    ticker_start(&ticker, "Running", false);
    int rc = tp_query(r->sh->tp, sql, &result);
    if (rc == 0)
        rc = read_points(r, result, &p, kind);
    ticker_stop(&ticker);
    if (rc == TP_INTERRUPTED)
        fprintf(stderr, "Interrupted\n");
    else if (rc < 0)
        shell_tell_error(r->sh->tp);
    tp_result_close(result);
    interrupt_target(NULL);
    interrupt_taken();
    r->failed |= rc < 0;
    plot_free(&p);
    out_flush(r->out, NULL);
    if (r->once)
        repl_output(r, "", false);
}

void repl_plot(struct repl *r, const char *arg)
{
    size_t len = strcspn(arg, " \t");
    int kind = -1;
    for (int i = 0; i < PLOT_KINDS && kind < 0; i++)
        if (strlen(plot_kind_names[i]) == len && strncmp(arg, plot_kind_names[i], len) == 0)
            kind = i;
    const char *sql = kind < 0 ? arg : arg + len + strspn(arg + len, " \t");
    if (kind < 0 && *arg && !arg[len]) { /* one word that is no kind of plot */
        char near[80];
        struct suggestion s = suggest(arg, len);
        for (int i = 0; i < PLOT_KINDS; i++)
            suggest_among(&s, plot_kind_names[i]);
        fprintf(stderr, ".plot: no such picture: %s%s\nusage: .plot [bars|line|hist|spark] [SELECT …]\n", arg,
                suggest_text(&s, "", near, sizeof near));
    } else if (*sql) {
        draw(r, sql, kind);
    } else if (r->last.n) {
        draw(r, r->last.p, kind);
    } else {
        fprintf(stderr, ".plot draws the answer of the statement before it; there is none\n");
    }
}
