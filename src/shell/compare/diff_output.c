/* What `tp_shell diff` prints. */
#include "shell/compare/diff_output.h"

#include "base/json_writer.h"
#include "shell/compare/html_page.h"
#include "shell/text_width.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CELL = 160, COLUMNS = 12 };

static const char *const headings[COLUMNS] = {"what",    "who",      "unit",  "A count", "A median", "A p99",
                                              "B count", "B median", "B p99", "change",  "p",        "verdict"};

static bool is_shown(const struct diff_report *r, const struct diff_line *d)
{
    return r->all || d->verdict <= DIFF_CLOCK;
}

/* Three digits, as people write them. */
static void put_number(char *to, double v)
{
    double a = fabs(v);
    if (v != v)
        snprintf(to, CELL, "-");
    else if (a >= 1e7 || (a > 0 && a < 1e-3))
        snprintf(to, CELL, "%.3g", v);
    else
        snprintf(to, CELL, "%.*f", a >= 100 || a == 0 ? 0 : a >= 10 ? 1 : a >= 1 ? 2 : 3, v);
}

static void put_change(char *to, const struct diff_line *d)
{
    if (isinf(d->change))
        snprintf(to, CELL, "%s", d->change > 0 ? "new" : "gone");
    else if (d->side[1].mean == 0 && d->side[0].mean != 0)
        snprintf(to, CELL, "gone");
    else if (d->change >= 9.995)
        snprintf(to, CELL, "x%.0f", 1 + d->change);
    else
        snprintf(to, CELL, "%+.0f%%", d->change * 100);
}

/* "guest: nginx / worker-*"; of what belongs to nobody: the machine or "all". */
static void put_who(char *to, const struct run_line *l)
{
    const char *machine = *l->machine ? l->machine : "", *colon = *l->machine && *l->process ? ": " : "";
    snprintf(to, CELL, "%s%s%s%s%s", machine, colon, l->process, *l->thread ? " / " : "", l->thread);
    if (!*to)
        snprintf(to, CELL, "-");
}

static void put_what(char *to, const struct run_line *l)
{
    snprintf(to, CELL, "%s%s%s", l->measure->name, *l->name ? " " : "", l->name);
}

static void put_cells(const struct diff_line *d, char cells[COLUMNS][CELL])
{
    put_what(cells[0], d->line);
    put_who(cells[1], d->line);
    snprintf(cells[2], CELL, "%s", d->line->measure->unit);
    for (int s = 0; s < 2; s++) {
        snprintf(cells[3 + 3 * s], CELL, "%llu", (unsigned long long)d->side[s].count);
        put_number(cells[4 + 3 * s], d->side[s].median);
        put_number(cells[5 + 3 * s], d->side[s].p99);
    }
    put_change(cells[9], d);
    snprintf(cells[10], CELL, d->p >= 0.001 ? "%.3f" : "%.0e", d->p);
    snprintf(cells[11], CELL, "%s", diff_verdict_names[d->verdict]);
}

static void put_run(struct text_out *o, const struct run *run, void (*text)(struct text_out *o, const char *s))
{
    text(o, run->path);
    out_printf(o, ": %.3f s", (double)run->dur_ns / 1e9);
    if (*run->clock) {
        out_text(o, " of ");
        text(o, run->clock);
    }
    if (run->clock_error_us > 0)
        out_printf(o, ", clocks within %.1f us", run->clock_error_us);
    out_text(o, run->lost ? ", lost: " : ", nothing lost");
    text(o, run->lost ? run->lost : "");
}

/* What the reader must know before the lines; each is a sentence. */
static size_t remarks_of(const struct diff_report *r, const char *out[4])
{
    size_t n = 0;
    bool clocks = false, lossy = false;
    const struct run_set *set = r->set;
    for (size_t i = 0; i < set->runs.n; i++) {
        lossy |= set->runs.p[i].lost != NULL;
        clocks |= strcmp(set->runs.p[i].clock, set->runs.p[0].clock) != 0;
    }
    if (lossy)
        out[n++] = "Data was lost: what differs may be the loss, so nothing is claimed. Record again with larger "
                   "buffers (tp_shell check says which).";
    if (clocks)
        out[n++] = "The recordings are on different clocks: durations are compared, and one of the clocks may stand "
                   "still while the machine sleeps.";
    if (r->diff->few_blocks)
        out[n++] = "Nothing can be tested: the recordings are too short, or one is more than ten times as long as the "
                   "other. Record for the same time.";
    if (!r->diff->few_blocks && !r->diff->tested)
        out[n++] = "Nothing can be tested: no line has values at enough times on both sides.";
    return n;
}

static void put_summary(struct text_out *o, const struct diff_report *r)
{
    const struct diff *d = r->diff;
    out_printf(o,
               "%zu finding%s among %zu lines that could be tested of %zu; blocks of %.3g s; the chance that any is "
               "wrong is below %g",
               d->findings, d->findings == 1 ? "" : "s", d->tested, d->n, (double)d->block_ns / 1e9, r->alpha);
}

static void pad(struct text_out *o, const char *s, unsigned width, bool right)
{
    unsigned columns = text_width(s);
    if (right && columns < width)
        out_repeat(o, ' ', width - columns);
    out_text(o, s);
    if (!right && columns < width)
        out_repeat(o, ' ', width - columns);
}

static bool is_right(int column)
{
    return column >= 3 && column <= 10;
}

static void print_table(struct text_out *o, const struct diff_report *r)
{
    char cells[COLUMNS][CELL];
    unsigned width[COLUMNS];
    const char *remarks[4];
    size_t shown = 0, n = remarks_of(r, remarks);
    for (size_t i = 0; i < r->set->runs.n; i++) {
        out_text(o, r->set->runs.p[i].side ? "B  " : "A  ");
        put_run(o, &r->set->runs.p[i], out_text);
        out_char(o, '\n');
    }
    for (size_t i = 0; i < n; i++)
        out_printf(o, "%s\n", remarks[i]);
    put_summary(o, r);
    out_text(o, "\n");
    for (int c = 0; c < COLUMNS; c++)
        width[c] = text_width(headings[c]);
    for (size_t i = 0; i < r->diff->n; i++) {
        if (!is_shown(r, &r->diff->lines[i]))
            continue;
        put_cells(&r->diff->lines[i], cells);
        for (int c = 0; c < COLUMNS; c++)
            width[c] = text_width(cells[c]) > width[c] ? text_width(cells[c]) : width[c];
        shown++;
    }
    if (!shown)
        return;
    out_char(o, '\n');
    for (int c = 0; c < COLUMNS; c++) {
        pad(o, headings[c], c + 1 == COLUMNS ? 0 : width[c], is_right(c));
        out_text(o, c + 1 == COLUMNS ? "\n" : "  ");
    }
    for (size_t i = 0; i < r->diff->n; i++) {
        if (!is_shown(r, &r->diff->lines[i]))
            continue;
        put_cells(&r->diff->lines[i], cells);
        for (int c = 0; c < COLUMNS; c++) {
            pad(o, cells[c], c + 1 == COLUMNS ? 0 : width[c], is_right(c));
            out_text(o, c + 1 == COLUMNS ? "\n" : "  ");
        }
    }
}

/* ---- for programs: every field apart, numbers with all digits ---- */

struct field {
    const char *name;
    const char *text; /* NULL: a number */
    double number;
};
enum { FIELDS = 19 };

static void fields_of(const struct diff_line *d, struct field out[FIELDS])
{
    const struct run_line *l = d->line;
    const struct field all[FIELDS] = {{"measure", l->measure->name, 0},
                                      {"unit", l->measure->unit, 0},
                                      {"machine", l->machine, 0},
                                      {"process", l->process, 0},
                                      {"thread", l->thread, 0},
                                      {"name", l->name, 0},
                                      {"a_count", NULL, (double)d->side[0].count},
                                      {"a_mean", NULL, d->side[0].mean},
                                      {"a_median", NULL, d->side[0].median},
                                      {"a_p99", NULL, d->side[0].p99},
                                      {"b_count", NULL, (double)d->side[1].count},
                                      {"b_mean", NULL, d->side[1].mean},
                                      {"b_median", NULL, d->side[1].median},
                                      {"b_p99", NULL, d->side[1].p99},
                                      {"change", NULL, d->change},
                                      {"p", NULL, d->p},
                                      {"effect", NULL, d->effect},
                                      {"weight", NULL, d->score},
                                      {"verdict", diff_verdict_names[d->verdict], 0}};
    memcpy(out, all, sizeof all);
}

static void print_csv(struct text_out *o, const struct diff_report *r)
{
    static const struct measure none = {.name = "", .unit = ""};
    static const struct run_line line = {.measure = &none, .machine = "", .process = "", .thread = "", .name = ""};
    struct field f[FIELDS];
    fields_of(&(struct diff_line){.line = &line}, f);
    for (size_t i = 0; i < FIELDS; i++)
        out_printf(o, "%s%s", i ? "," : "", f[i].name);
    out_char(o, '\n');
    for (size_t k = 0; k < r->diff->n; k++) {
        if (!is_shown(r, &r->diff->lines[k]))
            continue;
        fields_of(&r->diff->lines[k], f);
        for (size_t i = 0; i < FIELDS; i++) {
            if (i)
                out_char(o, ',');
            if (f[i].text)
                out_csv_text(o, f[i].text, strlen(f[i].text));
            else if (isfinite(f[i].number))
                out_printf(o, "%.9g", f[i].number);
        }
        out_char(o, '\n');
    }
}

static void json_number(struct json_writer *w, double v)
{
    char text[40];
    int n = snprintf(text, sizeof text, "%.9g", v);
    if (isfinite(v))
        json_put_raw(w, text, (size_t)n);
    else
        json_put_null(w);
}

static void json_runs(struct json_writer *w, const struct diff_report *r)
{
    json_put_key(w, "recordings");
    json_put_open(w, '[');
    for (size_t i = 0; i < r->set->runs.n; i++) {
        const struct run *run = &r->set->runs.p[i];
        json_put_break(w, "\n  ");
        json_put_open(w, '{');
        json_put_key(w, "side");
        json_put_str(w, run->side ? "b" : "a");
        json_put_key(w, "path");
        json_put_str(w, run->path);
        json_put_key(w, "duration_ns");
        json_put_int(w, run->dur_ns);
        json_put_key(w, "clock");
        json_put_str(w, run->clock);
        json_put_key(w, "clock_error_us");
        json_number(w, run->clock_error_us);
        json_put_key(w, "lost");
        json_put_str(w, run->lost);
        json_put_close(w, '}');
    }
    json_put_break(w, "\n ");
    json_put_close(w, ']');
}

static void print_json(struct text_out *o, const struct diff_report *r)
{
    struct json_writer w = {.put = out_put, .ctx = o, .spaced = true};
    const char *remarks[4];
    size_t n = remarks_of(r, remarks);
    json_put_open(&w, '{');
    json_put_break(&w, "\n ");
    json_runs(&w, r);
    json_put_break(&w, "\n ");
    json_put_key(&w, "remarks");
    json_put_open(&w, '[');
    for (size_t i = 0; i < n; i++)
        json_put_str(&w, remarks[i]);
    json_put_close(&w, ']');
    json_put_break(&w, "\n ");
    json_put_key(&w, "findings");
    json_put_uint(&w, r->diff->findings);
    json_put_key(&w, "tested");
    json_put_uint(&w, r->diff->tested);
    json_put_key(&w, "block_ns");
    json_put_int(&w, r->diff->block_ns);
    json_put_break(&w, "\n ");
    json_put_key(&w, "lines");
    json_put_open(&w, '[');
    for (size_t k = 0; k < r->diff->n; k++) {
        struct field f[FIELDS];
        if (!is_shown(r, &r->diff->lines[k]))
            continue;
        fields_of(&r->diff->lines[k], f);
        json_put_break(&w, "\n  ");
        json_put_open(&w, '{');
        for (size_t i = 0; i < FIELDS; i++) {
            json_put_key(&w, f[i].name);
            if (f[i].text)
                json_put_str(&w, f[i].text);
            else
                json_number(&w, f[i].number);
        }
        json_put_close(&w, '}');
    }
    json_put_break(&w, "\n ");
    json_put_close(&w, ']');
    json_put_break(&w, "\n");
    json_put_close(&w, '}');
    out_char(o, '\n');
}

static void print_html(struct text_out *o, const struct diff_report *r)
{
    char cells[COLUMNS][CELL];
    const char *remarks[4];
    size_t n = remarks_of(r, remarks);
    html_begin(o, "Comparison of recordings");
    out_text(o, "<table><tbody>\n");
    for (size_t i = 0; i < r->set->runs.n; i++) {
        out_printf(o, "<tr><td>%s</td><td>", r->set->runs.p[i].side ? "B" : "A");
        put_run(o, &r->set->runs.p[i], html_text);
        out_text(o, "</td></tr>\n");
    }
    out_text(o, "</tbody></table>\n");
    for (size_t i = 0; i < n; i++) {
        out_text(o, "<p class=\"bad\">");
        html_text(o, remarks[i]);
        out_text(o, "</p>\n");
    }
    out_text(o, "<p>");
    put_summary(o, r);
    out_text(o, ".</p>\n");
    html_table_begin(o, headings, COLUMNS);
    for (size_t i = 0; i < r->diff->n; i++) {
        const struct diff_line *d = &r->diff->lines[i];
        if (!is_shown(r, d))
            continue;
        const double numbers[COLUMNS] = {0,
                                         0,
                                         0,
                                         (double)d->side[0].count,
                                         d->side[0].median,
                                         d->side[0].p99,
                                         (double)d->side[1].count,
                                         d->side[1].median,
                                         d->side[1].p99,
                                         d->change,
                                         d->p};
        put_cells(d, cells);
        html_row_begin(o);
        for (int c = 0; c < COLUMNS; c++)
            if (is_right(c))
                html_cell_number(o, numbers[c], cells[c]);
            else
                html_cell_text(o, cells[c]);
        html_row_end(o);
    }
    html_table_end(o);
    out_text(o, "<h2>What was measured</h2>\n");
    for (size_t i = 0; i < n_measure_sources; i++)
        html_details(o, measure_sources[i].name, measure_sources[i].sql);
    html_end(o);
}

const struct diff_format diff_formats[DIFF_FORMATS] = {
    {"table", print_table}, {"csv", print_csv}, {"json", print_json}, {"html", print_html}};
