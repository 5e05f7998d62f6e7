/* __intrinsic_ordered_agg('f', n, arguments …, key, flags, …): f over its rows in the order of the keys; what the front
 * end makes of f(x ORDER BY y). */
#include "sql/dialect/ordered.h"
#include "sql/functions/functions.h"

#include <stdlib.h>

struct ordered_row {
    sqlite3_value **values; /* arguments, then keys */
    const struct ordered *of;
    uint32_t number; /* rows of equal keys stay as they came */
};

struct ordered {
    char name[32];
    int n_args, n_keys;
    uint8_t flags[16];
    VEC(struct ordered_row) rows;
    bool failed; /* a value could not be copied: the rows are not to be looked at */
};

/* By their values, of which a double holds not all. */
static int compare_with_real(int64_t i, double r)
{
    static const double beyond = 9223372036854775808.0; /* 2^63 */
    if (r < -beyond || r >= beyond)
        return r < 0 ? 1 : -1;
    int64_t whole = (int64_t)r;
    if (i != whole)
        return i < whole ? -1 : 1;
    double fraction = r - (double)whole;
    return fraction > 0 ? -1 : fraction < 0;
}

static int compare_numbers(sqlite3_value *a, sqlite3_value *b)
{
    bool whole_a = sqlite3_value_type(a) == SQLITE_INTEGER, whole_b = sqlite3_value_type(b) == SQLITE_INTEGER;
    int64_t x = sqlite3_value_int64(a), y = sqlite3_value_int64(b);
    double r = sqlite3_value_double(a), s = sqlite3_value_double(b);
    if (whole_a != whole_b)
        return whole_a ? compare_with_real(x, s) : -compare_with_real(y, r);
    return whole_a ? (x < y ? -1 : x > y) : r < s ? -1 : r > s;
}

/* SQLite's order of values: NULL, numbers, texts, blobs. */
static int compare_values(sqlite3_value *a, sqlite3_value *b)
{
    static const int class_of[] = {
        [SQLITE_INTEGER] = 1, [SQLITE_FLOAT] = 1, [SQLITE_TEXT] = 2, [SQLITE_BLOB] = 3, [SQLITE_NULL] = 0};
    int ta = sqlite3_value_type(a), tb = sqlite3_value_type(b);
    if (class_of[ta] != class_of[tb])
        return class_of[ta] - class_of[tb];
    if (ta == SQLITE_NULL)
        return 0;
    if (class_of[ta] == 1)
        return compare_numbers(a, b);
    struct slice x = function_bytes(a), y = function_bytes(b);
    size_t n = x.len < y.len ? x.len : y.len;
    int c = n ? memcmp(x.p, y.p, n) : 0;
    return c ? c : x.len < y.len ? -1 : x.len > y.len;
}

static int compare_rows(const void *a, const void *b)
{
    const struct ordered_row *x = a, *y = b;
    const struct ordered *o = x->of;
    for (int k = 0; k < o->n_keys; k++) {
        sqlite3_value *v = x->values[o->n_args + k], *w = y->values[o->n_args + k];
        int flags = o->flags[k];
        bool null_v = function_is_null(v), null_w = function_is_null(w);
        int c;
        if (null_v != null_w && flags & (ORDERED_NULLS_FIRST | ORDERED_NULLS_LAST))
            c = null_v == !(flags & ORDERED_NULLS_LAST) ? -1 : 1;
        else
            c = compare_values(v, w) * (flags & ORDERED_DESC ? -1 : 1);
        if (c)
            return c;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

static int compare_first_args(const void *a, const void *b)
{
    const struct ordered_row *x = a, *y = b;
    int c = compare_values(x->values[0], y->values[0]);
    return c ? c : x->number < y->number ? -1 : x->number > y->number;
}

static void free_row(const struct ordered *o, const struct ordered_row *row)
{
    for (int k = 0; k < o->n_args + o->n_keys; k++)
        sqlite3_value_free(row->values[k]);
    mem_free(row->values);
}

/* Of rows with equal arguments the first stays. False: to be stopped. */
static bool make_distinct(struct ordered *o, struct engine *e)
{
    if (strncmp(o->name, ORDERED_DISTINCT, strlen(ORDERED_DISTINCT)) != 0)
        return true;
    if (!stop_sort(o->rows.p, o->rows.n, sizeof *o->rows.p, compare_first_args, engine_stop(e)))
        return false;
    size_t n = 0;
    for (size_t i = 0; i < o->rows.n; i++) {
        if (n && compare_values(o->rows.p[n - 1].values[0], o->rows.p[i].values[0]) == 0)
            free_row(o, &o->rows.p[i]);
        else
            o->rows.p[n++] = o->rows.p[i];
    }
    o->rows.n = n;
    return true;
}

static void step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct ordered *o = sqlite3_aggregate_context(ctx, sizeof *o);
    int n_args = argc > 2 ? sqlite3_value_int(argv[1]) : 0;
    int n_keys = n_args > 0 && n_args < argc ? (argc - 2 - n_args) / 2 : 0;
    if (!o)
        return;
    if (n_keys < 1 || n_keys > (int)sizeof o->flags || argc != 2 + n_args + 2 * n_keys || function_is_null(argv[0])) {
        function_error(ctx, "an aggregate with ORDER BY has too many terms");
        return;
    }
    if (o->n_args && o->n_args != n_args) { /* anybody may call this, with another number for each row */
        function_error(ctx, "an aggregate with ORDER BY has one number of arguments for all rows");
        return;
    }
    if (!o->n_args) {
        sqlite3_snprintf(sizeof o->name, o->name, "%s", sqlite3_value_text(argv[0]));
        o->n_args = n_args;
        o->n_keys = n_keys;
        for (int k = 0; k < n_keys; k++)
            o->flags[k] = (uint8_t)sqlite3_value_int(argv[2 + n_args + 2 * k + 1]);
    }
    sqlite3_value **values =
        vec_reserve(&o->rows, o->rows.n + 1) ? mem_zalloc((size_t)(n_args + n_keys) * sizeof *values) : NULL;
    if (!values) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    for (int i = 0; i < n_args; i++)
        values[i] = sqlite3_value_dup(argv[2 + i]);
    for (int k = 0; k < n_keys; k++)
        values[n_args + k] = sqlite3_value_dup(argv[2 + n_args + 2 * k]);
    o->rows.p[o->rows.n] = (struct ordered_row){values, o, (uint32_t)o->rows.n};
    o->rows.n++;
    for (int i = 0; i < n_args + n_keys; i++)
        if (!values[i]) {
            o->failed = true;
            sqlite3_result_error_nomem(ctx);
            return;
        }
}

static void concat(sqlite3_context *ctx, const struct ordered *o)
{
    sqlite3_str *s = sqlite3_str_new(sqlite3_context_db_handle(ctx));
    bool any = false;
    for (size_t i = 0; i < o->rows.n; i++) {
        sqlite3_value **v = o->rows.p[i].values;
        if (function_is_null(v[0]))
            continue;
        struct slice text = function_text(v[0]), sep = slice_of(",", 1);
        if (o->n_args > 1)
            sep = function_text(v[1]);
        if (any && sep.len)
            sqlite3_str_append(s, (const char *)sep.p, (int)sep.len);
        sqlite3_str_append(s, (const char *)text.p, (int)text.len);
        any = true;
    }
    if (any)
        function_result_built(ctx, s);
    else
        sqlite3_free(sqlite3_str_finish(s));
}

static void json(sqlite3_context *ctx, const struct ordered *o, const char *brackets)
{
    sqlite3_str *s = sqlite3_str_new(sqlite3_context_db_handle(ctx));
    sqlite3_str_append(s, brackets, 1);
    for (size_t i = 0; i < o->rows.n; i++) {
        if (i)
            sqlite3_str_appendchar(s, 1, ',');
        for (int a = 0; a < o->n_args; a++) {
            if (a)
                sqlite3_str_appendchar(s, 1, ':');
            function_append_json(s, o->rows.p[i].values[a]);
        }
    }
    sqlite3_str_append(s, brackets + 1, 1);
    function_result_built(ctx, s);
    sqlite3_result_subtype(ctx, 'J');
}

/* Numbers become texts with memory of their own, and what cannot is not to be taken for an empty text. */
static bool texts_are_there(const struct ordered *o)
{
    for (size_t i = 0; i < o->rows.n; i++)
        for (int a = 0; a < o->n_args; a++) {
            int type = sqlite3_value_type(o->rows.p[i].values[a]);
            if ((type == SQLITE_INTEGER || type == SQLITE_FLOAT) && !sqlite3_value_text(o->rows.p[i].values[a]))
                return false;
        }
    return true;
}

static void final(sqlite3_context *ctx)
{
    struct ordered *o = sqlite3_aggregate_context(ctx, 0);
    if (!o)
        return;
    struct engine *e = function_engine(ctx);
    if (o->failed) /* step() has said why */
        ;
    else if (!make_distinct(o, e) || !stop_sort(o->rows.p, o->rows.n, sizeof *o->rows.p, compare_rows, engine_stop(e)))
        sqlite3_result_error_code(ctx, engine_gave_up(e));
    else if (!texts_are_there(o))
        sqlite3_result_error_nomem(ctx);
    else if (strstr(o->name, "_array") || strstr(o->name, "_ARRAY"))
        json(ctx, o, "[]");
    else if (strstr(o->name, "_object") || strstr(o->name, "_OBJECT"))
        json(ctx, o, "{}");
    else
        concat(ctx, o);
    for (size_t i = 0; i < o->rows.n; i++)
        free_row(o, &o->rows.p[i]);
    vec_free(&o->rows);
    *o = (struct ordered){0};
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_ordered_agg",
     .n_args = -1,
     .takes = "ti*v",
     .flags = SQLITE_SUBTYPE,
     .step = step,
     .final = final},
};

FUNCTION_ROWS(ordered, rows);
