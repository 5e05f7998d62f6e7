/* STRING_AGG, VALUE_AT_MAX_TS, LAST_NON_NULL. */
#include "sql/functions/functions.h"

/* ---- string_agg(text, separator): a queue of texts, so that a window's leaving rows can be taken off its head ---- */

struct text_item {
    char *p; /* separator and text */
    uint32_t sep, len;
};

struct texts {
    VEC(struct text_item) items;
    size_t head;
};

static void string_agg_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct texts *t = sqlite3_aggregate_context(ctx, sizeof *t);
    (void)argc;
    if (!t || function_is_null(argv[0]))
        return;
    struct slice text = function_text(argv[0]), sep = function_text(argv[1]);
    char *p = vec_reserve(&t->items, t->items.n + 1) ? mem_alloc(text.len + sep.len + 1) : NULL;
    if (!p) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    if (sep.len)
        memcpy(p, sep.p, sep.len);
    if (text.len)
        memcpy(p + sep.len, text.p, text.len);
    t->items.p[t->items.n++] = (struct text_item){p, (uint32_t)sep.len, (uint32_t)text.len};
}

static void string_agg_inverse(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct texts *t = sqlite3_aggregate_context(ctx, 0);
    (void)argc;
    if (t && !function_is_null(argv[0]) && t->head < t->items.n)
        mem_free(t->items.p[t->head++].p);
}

static void string_agg_value(sqlite3_context *ctx)
{
    struct texts *t = sqlite3_aggregate_context(ctx, 0);
    if (!t || t->head == t->items.n)
        return;
    sqlite3_str *s = sqlite3_str_new(sqlite3_context_db_handle(ctx));
    for (size_t i = t->head; i < t->items.n; i++) {
        const struct text_item *item = &t->items.p[i];
        uint32_t skip = i == t->head ? item->sep : 0;
        sqlite3_str_append(s, item->p + skip, (int)(item->sep + item->len - skip));
    }
    function_result_built(ctx, s);
}

static void string_agg_final(sqlite3_context *ctx)
{
    struct texts *t = sqlite3_aggregate_context(ctx, 0);
    string_agg_value(ctx);
    if (!t)
        return;
    while (t->head < t->items.n)
        mem_free(t->items.p[t->head++].p);
    vec_free(&t->items);
    *t = (struct texts){0};
}

/* ---- value_at_max_ts(ts, value) ---- */

struct at_max {
    int64_t ts;
    sqlite3_value *value;
    bool any;
};

static void at_max_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct at_max *m = sqlite3_aggregate_context(ctx, sizeof *m);
    (void)argc;
    if (!m)
        return;
    if (sqlite3_value_type(argv[0]) != SQLITE_INTEGER) {
        function_error(ctx, "VALUE_AT_MAX_TS: ts passed was not an integer");
        return;
    }
    int type = sqlite3_value_type(argv[1]);
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT && type != SQLITE_NULL) {
        function_error(ctx, "VALUE_AT_MAX_TS: value passed was not a number");
        return;
    }
    int64_t ts = sqlite3_value_int64(argv[0]);
    if (m->any && ts <= m->ts)
        return;
    m->any = true;
    m->ts = ts;
    sqlite3_value_free(m->value);
    m->value = type == SQLITE_NULL ? NULL : sqlite3_value_dup(argv[1]); /* a pointer value is of type NULL as well */
    if (type != SQLITE_NULL && !m->value)
        sqlite3_result_error_nomem(ctx);
}

static void at_max_final(sqlite3_context *ctx)
{
    struct at_max *m = sqlite3_aggregate_context(ctx, 0);
    if (!m || !m->value)
        return;
    sqlite3_result_value(ctx, m->value);
    sqlite3_value_free(m->value);
    m->value = NULL;
}

/* ---- last_non_null(x): only the last value counts, since all before it leave a frame sooner ---- */

struct last {
    sqlite3_value *value;
    int64_t row;                 /* its number */
    int64_t next_row, first_row; /* numbers of the row to come in and of the one to leave */
};

static void last_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct last *l = sqlite3_aggregate_context(ctx, sizeof *l);
    (void)argc;
    if (!l)
        return;
    int64_t row = l->next_row++;
    if (function_is_null(argv[0]))
        return;
    sqlite3_value_free(l->value);
    l->value = sqlite3_value_dup(argv[0]);
    l->row = row;
    if (!l->value)
        sqlite3_result_error_nomem(ctx);
}

static void last_inverse(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct last *l = sqlite3_aggregate_context(ctx, 0);
    (void)argc, (void)argv;
    if (!l || l->first_row++ != l->row)
        return;
    sqlite3_value_free(l->value);
    l->value = NULL;
}

static void last_value(sqlite3_context *ctx)
{
    struct last *l = sqlite3_aggregate_context(ctx, 0);
    if (l && l->value)
        sqlite3_result_value(ctx, l->value);
}

static void last_final(sqlite3_context *ctx)
{
    struct last *l = sqlite3_aggregate_context(ctx, 0);
    last_value(ctx);
    if (l) {
        sqlite3_value_free(l->value);
        l->value = NULL;
    }
}

static const struct engine_function rows[] = {
    {.name = "string_agg",
     .n_args = 2,
     .step = string_agg_step,
     .final = string_agg_final,
     .value = string_agg_value,
     .inverse = string_agg_inverse},
    {.name = "value_at_max_ts", .n_args = 2, .step = at_max_step, .final = at_max_final},
    {.name = "last_non_null",
     .n_args = 1,
     .step = last_step,
     .final = last_final,
     .value = last_value,
     .inverse = last_inverse},
};

FUNCTION_ROWS(aggregate, rows);
