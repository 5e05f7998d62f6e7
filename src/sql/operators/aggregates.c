/* Aggregates that gather rows into pointer values: arrays, graphs, tables. */
#include "sql/operators/values.h"

#include "sql/operators/rows.h"

#include <stdlib.h>

/* ---- array_agg(x): all of one type, no NULL ---- */

struct array_state {
    struct array_value *a;
};

static void array_free(void *p)
{
    struct array_value *a = p;
    if (!a)
        return;
    mem_free(a->words);
    mem_free(a);
}

static bool array_push(struct array_value *a, int64_t word)
{
    if (a->n == a->cap) {
        size_t cap = a->cap ? 2 * a->cap : 64;
        int64_t *words = mem_realloc(a->words, cap * sizeof *words);
        if (!words)
            return false;
        a->words = words;
        a->cap = cap;
    }
    a->words[a->n++] = word;
    return true;
}

static void array_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct array_state *s = sqlite3_aggregate_context(ctx, sizeof *s);
    (void)argc;
    int type = sqlite3_value_type(argv[0]);
    if (!s || (!s->a && !(s->a = mem_zalloc(sizeof *s->a)))) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    if (!s->a->n)
        s->a->type = (uint8_t)type;
    if (type == SQLITE_NULL || type == SQLITE_BLOB) {
        function_error(ctx, "ARRAY_AGG: nulls and blobs are not supported");
        return;
    }
    if (s->a->type != type) {
        function_error(ctx, "ARRAY_AGG: all values must have the same type");
        return;
    }
    struct engine *e = function_engine(ctx);
    int64_t word;
    struct slice text = {0};
    if (type == SQLITE_INTEGER)
        word = sqlite3_value_int64(argv[0]);
    else if (type == SQLITE_FLOAT)
        word = column_f64_word(sqlite3_value_double(argv[0]));
    else
        word = (text = function_text(argv[0])).p ? strpool_intern(&engine_storage(e)->strings, text.p, text.len) : 0;
    if ((type == SQLITE_TEXT && !text.p) || !array_push(s->a, word))
        sqlite3_result_error_nomem(ctx);
}

static void array_final(sqlite3_context *ctx)
{
    struct array_state *s = sqlite3_aggregate_context(ctx, 0);
    if (!s || !s->a)
        return;
    const char *type = s->a->type == SQLITE_INTEGER ? "ARRAY<LONG>"
                       : s->a->type == SQLITE_FLOAT ? "ARRAY<DOUBLE>"
                                                    : "ARRAY<STRING>";
    sqlite3_result_pointer(ctx, s->a, type, array_free);
    s->a = NULL;
}

/* ---- timestamp_set_agg(ts): the distinct integers, sorted ---- */

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void timestamps_final(sqlite3_context *ctx)
{
    struct array_state *s = sqlite3_aggregate_context(ctx, 0);
    if (!s || !s->a)
        return;
    struct array_value *a = s->a;
    size_t n = 0;
    s->a = NULL;
    if (!stop_sort(a->words, a->n, sizeof *a->words, compare_i64, engine_stop(function_engine(ctx)))) {
        sqlite3_result_error_code(ctx, engine_gave_up(function_engine(ctx)));
        array_free(a);
        return;
    }
    for (size_t i = 0; i < a->n; i++)
        if (n == 0 || a->words[n - 1] != a->words[i])
            a->words[n++] = a->words[i];
    a->n = n;
    sqlite3_result_pointer(ctx, a, "ARRAY<LONG>", array_free);
}

/* ---- graph_agg(source, destination) ---- */

struct graph_state {
    struct graph_value *g;
};

static void graph_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct graph_state *s = sqlite3_aggregate_context(ctx, sizeof *s);
    (void)argc;
    if (!s || (!s->g && !(s->g = mem_zalloc(sizeof *s->g)))) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    if (sqlite3_value_type(argv[0]) != SQLITE_INTEGER ||
        (!function_is_null(argv[1]) && sqlite3_value_type(argv[1]) != SQLITE_INTEGER)) {
        function_error(ctx, "GRAPH_AGG: node ids must be integers");
        return;
    }
    if (function_is_null(argv[1]))
        graph_node(s->g, sqlite3_value_int64(argv[0]));
    else
        graph_edge(s->g, sqlite3_value_int64(argv[0]), sqlite3_value_int64(argv[1]));
    if (s->g->failed)
        sqlite3_result_error_nomem(ctx);
}

static void graph_final(sqlite3_context *ctx)
{
    struct graph_state *s = sqlite3_aggregate_context(ctx, 0);
    if (!s || !s->g)
        return;
    if (graph_build(s->g, engine_stop(function_engine(ctx)))) {
        sqlite3_result_pointer(ctx, s->g, "GRAPH", graph_free);
    } else {
        graph_free(s->g);
        sqlite3_result_error_code(ctx, engine_gave_up(function_engine(ctx)));
    }
    s->g = NULL;
}

/* ---- row_dataframe_agg('column', value, …) ---- */

struct rows_state {
    struct table_builder b;
    bool open, failed;
};

static void rows_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct rows_state *s = sqlite3_aggregate_context(ctx, sizeof *s);
    struct engine *e = function_engine(ctx);
    struct error err = {0};
    const char *names[64];
    if (!s || s->failed)
        return;
    if (argc % 2 || argc == 0 || argc > 128) {
        function_error(ctx, "ROW_DATAFRAME_AGG: expected pairs of column name and value");
        return;
    }
    int rc = 0;
    if (!s->open) {
        for (int i = 0; i < argc; i += 2) {
            names[i / 2] = (const char *)sqlite3_value_text(argv[i]);
            if (!names[i / 2]) {
                function_error(ctx, "ROW_DATAFRAME_AGG: a column name is NULL");
                s->failed = true;
                return;
            }
        }
        rc = table_builder_init(&s->b, engine_storage(e), (uint32_t)argc / 2, names, NULL, &err);
        s->open = rc == 0;
        s->b.stop = engine_stop(e);
    }
    for (int i = 1; rc == 0 && i < argc; i += 2)
        rc = table_builder_value(&s->b, (uint32_t)i / 2, argv[i], &err);
    if (rc == 0)
        rc = table_builder_commit(&s->b, &err);
    if (rc) {
        sqlite3_result_error(ctx, err.text, -1);
        if (rc == -MRD_ECANCELLED)
            sqlite3_result_error_code(ctx, SQLITE_INTERRUPT);
        s->failed = true;
    }
}

static void rows_final(sqlite3_context *ctx)
{
    struct rows_state *s = sqlite3_aggregate_context(ctx, 0);
    struct error err = {0};
    if (!s || !s->open)
        return;
    value_builder_result(ctx, &s->b, s->failed ? -MRD_ESQL : 0, &err);
    s->open = false;
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_array_agg", .n_args = 1, .step = array_step, .final = array_final},
    {.name = "repeatedfield", .n_args = 1, .step = array_step, .final = array_final}, /* as older modules call it */
    {.name = "__intrinsic_timestamp_set_agg", .n_args = 1, .step = array_step, .final = timestamps_final},
    {.name = "__intrinsic_graph_agg", .n_args = 2, .step = graph_step, .final = graph_final},
    {.name = "__intrinsic_row_dataframe_agg", .n_args = -1, .takes = "tv*tv", .step = rows_step, .final = rows_final},
    {.name = "__intrinsic_tree_from_table", .n_args = -1, .takes = "tv*tv", .step = rows_step, .final = rows_final},
};

FUNCTION_ROWS(aggregates, rows);
