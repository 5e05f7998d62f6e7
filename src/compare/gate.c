/* Computes the two sides of rules, and reads and writes baselines. */
#include "compare/gate.h"

#include "base/json_reader.h"
#include "base/json_writer.h"
#include "compare/rank_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- values ---- */

typedef VEC(double) doubles;

static int read_values(struct tp *tp, const char *sql, doubles *out, struct error *err)
{
    struct tp_result *r;
    int rc = tp_query(tp, sql, &r);
    while (rc == 0 && (rc = tp_step(r)) == 1) {
        rc = 0;
        if (tp_column_type(r, 0) != TP_NULL && !vec_push(out, tp_double(r, 0)))
            rc = TP_NOMEM;
    }
    if (rc == TP_NOMEM)
        error_set(err, -MRD_ENOMEM, "out of memory");
    else if (rc < 0) {
        /* the text ends with what is wrong; what stands before shows the statement that we made of the condition */
        const char *text = tp_error(tp), *last = strrchr(text, '\n');
        while (last && !last[1] && last > text) {
            const char *before = last - 1;
            while (before > text && *before != '\n')
                before--;
            last = before;
        }
        rc =
            error_set(err, rc == TP_INTERRUPTED ? -MRD_ECANCELLED : -MRD_ESQL, "%s", last && last[1] ? last + 1 : text);
    }
    tp_result_close(r);
    return rc < 0 ? err->code : 0;
}

static double reduced(const struct gate_node *n, doubles *v)
{
    double total = 0, least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < v->n; i++) {
        total += v->p[i];
        least = fmin(least, v->p[i]);
        most = fmax(most, v->p[i]);
    }
    switch (n->function) {
    case GATE_COUNT:
        return (double)v->n;
    case GATE_SUM:
        return total;
    case GATE_MIN:
        return least;
    case GATE_MAX:
        return most;
    case GATE_MEAN:
        return total / (double)v->n;
    case GATE_QUANTILE:
        sort_doubles(v->p, v->n);
        return quantile_sorted(v->p, v->n, n->quantile);
    }
    return 0;
}

static int rows_value(const struct gate_node *n, const struct gate_trace *t, double *out, struct error *err)
{
    struct arena a = {0};
    doubles v = {0};
    /* a line of its own: the condition may end with a comment */
    const char *sql =
        arena_printf(&a, "select value from (%s) where (%s\n)", n->source->sql, n->where ? n->where : "1");
    int rc = sql ? read_values(t->tp, sql, &v, err) : error_set(err, -MRD_ENOMEM, "out of memory");
    if (rc < 0)
        error_prefix(err, "%s", n->source->name);
    if (rc == 0 && !v.n && n->function != GATE_COUNT && n->function != GATE_SUM)
        rc = error_set(err, -MRD_ENOTFOUND, "%s: no row matches%s%s: is the name right, and was it recorded?",
                       n->source->name, n->where ? " " : "", n->where ? n->where : "");
    if (rc == 0)
        *out = reduced(n, &v);
    vec_free(&v);
    arena_free(&a);
    return rc;
}

/* The largest error of a clock. NULL: of a machine nothing is proven. */
static int clock_error(struct tp *tp, double *out, struct error *err)
{
    doubles v = {0}, unknown = {0};
    int rc = read_values(tp,
                         "select clock_error_ns(ts, machine_id) from (select machine_id, (select start_ts from "
                         "trace_bounds) as ts from clock_sync union all select machine_id, (select end_ts from "
                         "trace_bounds) from clock_sync union all select machine_id, start_ts from clock_sync)",
                         &v, err);
    if (rc == 0)
        rc = read_values(tp,
                         "select id from machine where id > 0 and id not in (select machine_id from clock_sync where "
                         "max_error_ns is not null)",
                         &unknown, err);
    *out = 0;
    for (size_t i = 0; i < v.n; i++)
        *out = fmax(*out, v.p[i]);
    if (rc == 0 && unknown.n)
        rc =
            error_set(err, -MRD_ENOTFOUND, "clock_error: nothing is proven of the clock of machine %.0f", unknown.p[0]);
    vec_free(&v);
    vec_free(&unknown);
    return rc;
}

static int calculated(char op, double a, double b, double *out, struct error *err)
{
    if (op == '/' && b == 0)
        return error_set(err, -MRD_EINVALID, "division by zero");
    *out = op == '+' ? a + b : op == '-' ? a - b : op == '*' ? a * b : a / b;
    return 0;
}

int gate_value(const struct gate_rules *r, const struct gate_rule *rule, uint32_t node, const struct gate_trace *t,
               double *out, struct error *err)
{
    const struct gate_node *n = &r->nodes.p[node];
    double a = 0, b = 0;
    int rc = 0;
    *out = 0;
    switch (n->kind) {
    case GATE_NUMBER:
        *out = n->number;
        return 0;
    case GATE_LOSS:
        *out = t->losses;
        return 0;
    case GATE_CLOCK_ERROR:
        return clock_error(t->tp, out, err);
    case GATE_ROWS:
        return rows_value(n, t, out, err);
    case GATE_BASELINE:
        if (t->baseline && gate_baseline_of(t->baseline, rule->left_text, out))
            return 0;
        return error_set(err, -MRD_ENOTFOUND, "there is no baseline of '%s': record one with tp_shell gate --record",
                         rule->left_text);
    case GATE_CALCULATED:
        rc = gate_value(r, rule, n->left, t, &a, err);
        rc = rc < 0 ? rc : gate_value(r, rule, n->right, t, &b, err);
        return rc < 0 ? rc : calculated(n->op, a, b, out, err);
    }
    return rc;
}

/* ---- baselines ---- */

static struct gate_values *values_of(const struct gate_baseline *b, const char *rule)
{
    for (size_t i = 0; i < b->n; i++)
        if (strcmp(b->p[i].rule, rule) == 0)
            return &b->p[i];
    return NULL;
}

int gate_baseline_add(struct gate_baseline *b, const char *rule, double value)
{
    struct gate_values *v = values_of(b, rule);
    if (!v) {
        const char *copy = arena_strndup(&b->arena, rule, strlen(rule));
        v = copy ? vec_add(b) : NULL;
        if (!v)
            return -MRD_ENOMEM;
        v->rule = copy;
    }
    return vec_push(&v->values, value) ? 0 : -MRD_ENOMEM;
}

bool gate_baseline_of(const struct gate_baseline *b, const char *rule, double *out)
{
    const struct gate_values *v = values_of(b, rule);
    double *sorted = v && v->values.n ? mem_alloc(v->values.n * sizeof *sorted) : NULL;
    if (!sorted)
        return false;
    memcpy(sorted, v->values.p, v->values.n * sizeof *sorted);
    sort_doubles(sorted, v->values.n);
    *out = quantile_sorted(sorted, v->values.n, 0.5);
    mem_free(sorted);
    return true;
}

int gate_baseline_print(const struct gate_baseline *b, int (*put)(void *ctx, const void *bytes, size_t len), void *ctx)
{
    struct json_writer w = {.put = put, .ctx = ctx, .spaced = true};
    json_put_open(&w, '{');
    for (size_t i = 0; i < b->n; i++) {
        json_put_break(&w, "\n ");
        json_put_key(&w, b->p[i].rule);
        json_put_open(&w, '[');
        for (size_t k = 0; k < b->p[i].values.n; k++) {
            char text[40];
            int n = snprintf(text, sizeof text, "%.17g", b->p[i].values.p[k]);
            json_put_raw(&w, text, (size_t)n);
        }
        json_put_close(&w, ']');
    }
    json_put_break(&w, "\n");
    json_put_close(&w, '}');
    if (w.rc == 0)
        w.rc = put(ctx, "\n", 1);
    return w.rc;
}

static int read_rule(struct gate_baseline *b, struct json_reader *r, struct json_text key)
{
    struct json_number n;
    char *name = mem_alloc(key.raw.len + 1);
    int rc = name ? 0 : -MRD_ENOMEM;
    if (rc == 0) {
        size_t len = json_unescape(key, JSON_STRICT, name);
        if (len == SIZE_MAX || memchr(name, 0, len))
            json_fail(r, "this is not the text of a rule");
        else
            name[len] = 0;
    }
    if (rc == 0 && json_enter(r, '['))
        while (rc == 0 && json_element(r) && json_read_number(r, &n))
            rc = gate_baseline_add(b, name, json_number_f64(&n));
    mem_free(name);
    return rc;
}

int gate_baseline_parse(struct gate_baseline *b, struct slice json, struct error *err)
{
    struct json_reader r = json_reader(json);
    struct json_text key;
    int rc = 0;
    *b = (struct gate_baseline){0};
    r.whole = true;
    if (json_enter(&r, '{'))
        while (rc == 0 && json_member(&r, &key))
            rc = read_rule(b, &r, key);
    if (rc < 0)
        return error_set(err, rc, "out of memory");
    if (r.status == JSON_OK && json_peek(&r))
        json_fail(&r, "more follows behind the end");
    if (r.status != JSON_OK)
        return error_set(err, -MRD_EFORMAT, "this is not a baseline: %s at byte %zu; record it again",
                         json_error_text(&r), (size_t)(r.p - json.p));
    return 0;
}

void gate_baseline_free(struct gate_baseline *b)
{
    for (size_t i = 0; i < b->n; i++)
        vec_free(&b->p[i].values);
    vec_free(b);
    arena_free(&b->arena);
}
