/* Compares the rows of any query by key. */
#include "shell/commands/diff_sql.h"

#include "base/json_writer.h"
#include "base/suggest.h"
#include "shell/commands/compare_load.h"
#include "shell/compare/html_page.h"
#include "shell/compare/report_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row by its key. */
struct keyed {
    const char *key;
    size_t row;
};

struct side {
    struct report_table table;
    struct keyed *rows; /* sorted */
    size_t n;
};

/* A value of both sides; NULL: the side has no such row. */
struct pair {
    const char *key, *column;
    const struct report_cell *of[2];
    double change;
};

struct comparison {
    struct side side[2];
    struct arena keys;
    VEC(size_t) key_columns;
    VEC(struct pair) pairs; /* that differ; with --all every one */
    size_t differing;
};

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct keyed *)a)->key, ((const struct keyed *)b)->key);
}

static int by_change(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    double p = fabs(x->change), q = fabs(y->change);
    if (p != q)
        return p < q ? 1 : -1;
    int order = strcmp(x->key, y->key);
    return order ? order : strcmp(x->column, y->column);
}

/* The columns of --key; the names must be there. */
static int find_key(struct comparison *c, const char *list, struct error *err)
{
    const struct report_table *t = &c->side[0].table;
    if (!list)
        return vec_push(&c->key_columns, 0) ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
    while (*list) {
        size_t len = strcspn(list, ","), i = 0;
        while (i < t->n_columns && (strlen(t->headings[i]) != len || strncmp(t->headings[i], list, len) != 0))
            i++;
        if (i == t->n_columns)
            return error_set(err, -MRD_EINVALID, "--key: the query has no column '%.*s'", (int)len, list);
        if (!vec_push(&c->key_columns, i))
            return error_set(err, -MRD_ENOMEM, "out of memory");
        list += len;
        list += *list == ',';
    }
    return c->key_columns.n ? 0 : error_set(err, -MRD_EINVALID, "--key: name a column of the query");
}

static const char *key_of(struct comparison *c, const struct report_table *t, size_t row)
{
    const char *key = NULL;
    for (size_t i = 0; i < c->key_columns.n; i++) {
        const char *part = report_cell(t, row, c->key_columns.p[i])->text;
        key = key ? arena_printf(&c->keys, "%s / %s", key, part) : arena_strndup(&c->keys, part, strlen(part));
        if (!key)
            return NULL;
    }
    return key;
}

static int sort_side(struct comparison *c, struct side *s, const char *path, struct error *err)
{
    s->n = report_rows(&s->table);
    s->rows = mem_alloc((s->n + 1) * sizeof *s->rows);
    if (!s->rows)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    for (size_t i = 0; i < s->n; i++) {
        s->rows[i] = (struct keyed){key_of(c, &s->table, i), i};
        if (!s->rows[i].key)
            return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    qsort(s->rows, s->n, sizeof *s->rows, by_key);
    for (size_t i = 1; i < s->n; i++)
        if (strcmp(s->rows[i - 1].key, s->rows[i].key) == 0)
            return error_set(err, -MRD_EINVALID,
                             "--key: %s has several rows of the key '%s': group them, or add columns", path,
                             s->rows[i].key);
    return 0;
}

static bool is_key(const struct comparison *c, size_t column)
{
    for (size_t i = 0; i < c->key_columns.n; i++)
        if (c->key_columns.p[i] == column)
            return true;
    return false;
}

static double change_of(const struct report_cell *a, const struct report_cell *b)
{
    if (!a || !b)
        return a ? -INFINITY : INFINITY;
    if (!a->is_number || !b->is_number)
        return strcmp(a->text, b->text) == 0 ? 0 : INFINITY;
    double delta = b->number - a->number;
    return delta == 0 ? 0 : a->number != 0 ? delta / fabs(a->number) : copysign(INFINITY, delta);
}

static bool add_pairs(struct comparison *c, const struct keyed *a, const struct keyed *b, bool all)
{
    const struct report_table *t = &c->side[0].table;
    for (size_t i = 0; i < t->n_columns; i++) {
        struct pair p = {.key = a ? a->key : b->key, .column = t->headings[i]};
        if (is_key(c, i) && t->n_columns > c->key_columns.n)
            continue;
        p.of[0] = a ? report_cell(t, a->row, i) : NULL;
        p.of[1] = b ? report_cell(&c->side[1].table, b->row, i) : NULL;
        p.change = change_of(p.of[0], p.of[1]);
        c->differing += p.change != 0;
        if ((all || p.change != 0) && !vec_push(&c->pairs, p))
            return false;
    }
    return true;
}

static int match(struct comparison *c, bool all, struct error *err)
{
    bool fits = true;
    for (size_t i = 0, k = 0; (i < c->side[0].n || k < c->side[1].n) && fits;) {
        const struct keyed *a = i < c->side[0].n ? &c->side[0].rows[i] : NULL;
        const struct keyed *b = k < c->side[1].n ? &c->side[1].rows[k] : NULL;
        int order = !a ? 1 : !b ? -1 : strcmp(a->key, b->key);
        fits = add_pairs(c, order <= 0 ? a : NULL, order >= 0 ? b : NULL, all);
        i += order <= 0;
        k += order >= 0;
    }
    if (c->pairs.n)
        qsort(c->pairs.p, c->pairs.n, sizeof *c->pairs.p, by_change);
    return fits ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
}

/* ---- output ---- */

static const char *const headings[] = {"key", "column", "A", "B", "change"};
enum { KEY, COLUMN, SIDE_A, SIDE_B, CHANGE, COLUMNS };

static const char *text_of(const struct pair *p, int column, char room[32])
{
    switch (column) {
    case KEY:
        return p->key;
    case COLUMN:
        return p->column;
    case SIDE_A:
    case SIDE_B:
        return p->of[column - SIDE_A] ? p->of[column - SIDE_A]->text : "";
    default:
        if (!p->of[0] || !p->of[1])
            return p->of[0] ? "only in A" : "only in B";
        if (isinf(p->change))
            return p->of[0]->is_number && p->of[1]->is_number ? "from 0" : "other text";
        snprintf(room, 32, "%+.1f%%", p->change * 100);
        return room;
    }
}

static void print_csv(struct text_out *o, const void *what)
{
    const struct comparison *c = what;
    char room[32];
    out_text(o, "key,column,a,b,change\n");
    for (size_t i = 0; i < c->pairs.n; i++)
        for (int k = 0; k < COLUMNS; k++) {
            const char *text = text_of(&c->pairs.p[i], k, room);
            out_csv_text(o, text, strlen(text));
            out_char(o, k + 1 < COLUMNS ? ',' : '\n');
        }
}

static void print_table(struct text_out *o, const void *what)
{
    const struct comparison *c = what;
    size_t width[COLUMNS];
    char room[32];
    for (int k = 0; k < COLUMNS; k++)
        width[k] = strlen(headings[k]);
    for (size_t i = 0; i < c->pairs.n; i++)
        for (int k = 0; k < COLUMNS; k++) {
            size_t n = strlen(text_of(&c->pairs.p[i], k, room));
            width[k] = n > width[k] ? n : width[k];
        }
    out_printf(o, "%zu of the values differ (%zu rows in A, %zu in B)\n", c->differing, c->side[0].n, c->side[1].n);
    for (size_t i = 0; i <= c->pairs.n && c->pairs.n; i++)
        for (int k = 0; k < COLUMNS; k++) {
            const char *s = i ? text_of(&c->pairs.p[i - 1], k, room) : headings[k];
            size_t n = strlen(s);
            if (k >= SIDE_A)
                out_repeat(o, ' ', width[k] - n);
            out_text(o, s);
            if (k < SIDE_A)
                out_repeat(o, ' ', width[k] - n);
            out_text(o, k + 1 < COLUMNS ? "  " : "\n");
        }
}

static void json_cell(struct json_writer *w, const struct report_cell *c)
{
    char text[40];
    int n = c && c->is_number ? snprintf(text, sizeof text, "%.17g", c->number) : 0;
    if (c && c->is_number && isfinite(c->number))
        json_put_raw(w, text, (size_t)n);
    else
        json_put_str(w, c ? c->text : NULL);
}

static void print_json(struct text_out *o, const void *what)
{
    const struct comparison *c = what;
    struct json_writer w = {.put = out_put, .ctx = o, .spaced = true};
    char room[32];
    json_put_open(&w, '[');
    for (size_t i = 0; i < c->pairs.n; i++) {
        const struct pair *p = &c->pairs.p[i];
        json_put_break(&w, "\n ");
        json_put_open(&w, '{');
        json_put_key(&w, "key");
        json_put_str(&w, p->key);
        json_put_key(&w, "column");
        json_put_str(&w, p->column);
        json_put_key(&w, "a");
        json_cell(&w, p->of[0]);
        json_put_key(&w, "b");
        json_cell(&w, p->of[1]);
        json_put_key(&w, "change");
        json_put_str(&w, text_of(p, CHANGE, room));
        json_put_close(&w, '}');
    }
    json_put_break(&w, c->pairs.n ? "\n" : "");
    json_put_close(&w, ']');
    out_char(o, '\n');
}

static void print_html(struct text_out *o, const void *what)
{
    const struct comparison *c = what;
    char room[32];
    html_begin(o, "Comparison of rows");
    html_table_begin(o, headings, COLUMNS);
    for (size_t i = 0; i < c->pairs.n; i++) {
        const struct pair *p = &c->pairs.p[i];
        html_row_begin(o);
        for (int k = 0; k < COLUMNS; k++) {
            const struct report_cell *cell = k == SIDE_A || k == SIDE_B ? p->of[k - SIDE_A] : NULL;
            if (cell && cell->is_number)
                html_cell_number(o, cell->number, cell->text);
            else if (k == CHANGE)
                html_cell_number(o, p->change, text_of(p, k, room));
            else
                html_cell_text(o, text_of(p, k, room));
        }
        html_row_end(o);
    }
    html_table_end(o);
    html_end(o);
}

static const struct {
    const char *name;
    void (*print)(struct text_out *o, const void *what);
} formats[] = {{"table", print_table}, {"csv", print_csv}, {"json", print_json}, {"html", print_html}};

static int read_sides(struct shell *sh, struct comparison *c, const char *const paths[2], struct error *err)
{
    int rc = 0;
    for (int s = 0; s < 2 && rc == 0; s++) {
        rc = compare_open(sh, paths[s], err);
        if (rc == 0)
            rc = report_read(&c->side[s].table, sh->tp, sh->opt.sql, err);
        if (rc == 0 && c->side[s].table.problem)
            rc = error_set(err, -MRD_EINVALID, "--sql on %s: %s", paths[s], c->side[s].table.problem);
        compare_close(sh);
    }
    if (rc == 0 && !c->side[0].table.n_columns)
        rc = error_set(err, -MRD_EINVALID, "--sql: the statement has no rows to compare");
    return rc;
}

int diff_sql(struct shell *sh, const char *const paths[2], struct error *err)
{
    struct comparison c = {0};
    const char *name = sh->opt.format ? sh->opt.format : "table";
    size_t f = 0, n = sizeof formats / sizeof *formats;
    while (f < n && strcmp(formats[f].name, name) != 0)
        f++;
    if (f == n)
        return error_set(err, -MRD_EINVALID, "--format: '%s' is none of table, csv, json, html", name);
    int rc = read_sides(sh, &c, paths, err);
    if (rc == 0)
        rc = find_key(&c, sh->opt.key, err);
    for (int s = 0; s < 2 && rc == 0; s++)
        rc = sort_side(&c, &c.side[s], paths[s], err);
    if (rc == 0)
        rc = match(&c, sh->opt.all_lines, err);
    if (rc == 0)
        rc = compare_write(sh->opt.output, formats[f].print, &c, err);
    for (int s = 0; s < 2; s++) {
        mem_free(c.side[s].rows);
        report_table_free(&c.side[s].table);
    }
    vec_free(&c.pairs);
    vec_free(&c.key_columns);
    arena_free(&c.keys);
    return rc < 0 ? rc : c.differing > 0;
}
