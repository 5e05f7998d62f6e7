/* JSON functions that SQLite 3.40 lacks: JSON_PRETTY, JSON_ERROR_POSITION, and the JSONB names.
 *
 * The jsonb_* functions do what their json_* namesakes do and give JSON text: every JSON function takes text where a
 * newer SQLite would take its binary form. */
#include "sql/functions/functions.h"

#include <ctype.h>

/* ---- a walk over JSON text ---- */

struct json_scan {
    const uint8_t *p, *start, *end;
    sqlite3_str *out; /* NULL: only check */
    const char *indent;
    int depth;
    const uint8_t *bad; /* where it is not JSON */
};

enum { MAX_DEPTH = 1000 };

static void blanks(struct json_scan *w)
{
    while (w->p < w->end && strchr(" \t\r\n", *w->p) && *w->p)
        w->p++;
}

static bool stop(struct json_scan *w)
{
    if (!w->bad)
        w->bad = w->p;
    return false;
}

static void put(struct json_scan *w, const uint8_t *from)
{
    if (w->out)
        sqlite3_str_append(w->out, (const char *)from, (int)(w->p - from));
}

static void line(struct json_scan *w)
{
    if (!w->out)
        return;
    sqlite3_str_appendchar(w->out, 1, '\n');
    for (int i = 0; i < w->depth; i++)
        sqlite3_str_appendall(w->out, w->indent);
}

static bool string(struct json_scan *w)
{
    const uint8_t *from = w->p++;
    for (; w->p < w->end && *w->p != '"'; w->p++) {
        if (*w->p < 0x20)
            return stop(w);
        if (*w->p != '\\')
            continue;
        w->p++;
        if (w->p >= w->end || !strchr("\"\\/bfnrtu", *w->p))
            return stop(w);
        for (int i = 0; *w->p == 'u' && i < 4; i++)
            if (w->p + 1 + i >= w->end || !isxdigit(w->p[1 + i]))
                return stop(w);
    }
    if (w->p >= w->end)
        return stop(w);
    w->p++;
    put(w, from);
    return true;
}

static bool digits(struct json_scan *w)
{
    if (w->p >= w->end || !isdigit(*w->p))
        return stop(w);
    while (w->p < w->end && isdigit(*w->p))
        w->p++;
    return true;
}

static bool scalar(struct json_scan *w)
{
    static const char *const words[] = {"true", "false", "null"};
    const uint8_t *from = w->p;
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(w->end - w->p) >= n && memcmp(w->p, words[i], n) == 0) {
            w->p += n;
            put(w, from);
            return true;
        }
    }
    w->p += w->p < w->end && *w->p == '-';
    if (w->p < w->end && *w->p == '0' && w->p + 1 < w->end && isdigit(w->p[1]))
        return stop(w);
    if (!digits(w))
        return false;
    if (w->p < w->end && *w->p == '.') {
        w->p++;
        if (!digits(w))
            return false;
    }
    if (w->p < w->end && (*w->p == 'e' || *w->p == 'E')) {
        w->p++;
        w->p += w->p < w->end && (*w->p == '+' || *w->p == '-');
        if (!digits(w))
            return false;
    }
    put(w, from);
    return true;
}

static bool value(struct json_scan *w);

static bool members(struct json_scan *w, char close)
{
    bool any = false;
    if (w->out)
        sqlite3_str_append(w->out, (const char *)w->p, 1);
    w->p++;
    w->depth++;
    for (;; any = true) {
        blanks(w);
        if (w->p < w->end && *w->p == (uint8_t)close && !any)
            break;
        line(w);
        if (close == '}') {
            if (w->p >= w->end || *w->p != '"' || !string(w))
                return stop(w);
            blanks(w);
            if (w->p >= w->end || *w->p != ':')
                return stop(w);
            w->p++;
            if (w->out)
                sqlite3_str_appendall(w->out, ": ");
        }
        if (!value(w))
            return false;
        blanks(w);
        if (w->p < w->end && *w->p == ',') {
            w->p++;
            if (w->out)
                sqlite3_str_appendchar(w->out, 1, ',');
            continue;
        }
        if (w->p >= w->end || *w->p != (uint8_t)close)
            return stop(w);
        any = true;
        break;
    }
    w->depth--;
    if (any)
        line(w);
    if (w->out)
        sqlite3_str_appendchar(w->out, 1, close);
    w->p++;
    return true;
}

static bool value(struct json_scan *w)
{
    blanks(w);
    if (w->p >= w->end || w->depth > MAX_DEPTH)
        return stop(w);
    if (*w->p == '{')
        return members(w, '}');
    if (*w->p == '[')
        return members(w, ']');
    return *w->p == '"' ? string(w) : scalar(w);
}

static bool document(struct json_scan *w)
{
    if (!value(w))
        return false;
    blanks(w);
    return w->p == w->end || stop(w);
}

static void json_error_position(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (function_is_null(argv[0]))
        return;
    struct slice t = function_text(argv[0]);
    struct json_scan w = {.p = t.p, .start = t.p, .end = t.p + t.len};
    sqlite3_result_int64(ctx, document(&w) ? 0 : w.bad - w.start + 1);
}

static void json_pretty(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    if (function_is_null(argv[0]))
        return;
    struct slice t = function_text(argv[0]);
    struct json_scan w = {.p = t.p, .start = t.p, .end = t.p + t.len, .indent = "    "};
    if (argc > 1 && !function_is_null(argv[1]))
        w.indent = (const char *)sqlite3_value_text(argv[1]);
    w.out = sqlite3_str_new(sqlite3_context_db_handle(ctx));
    bool ok = document(&w);
    int len = sqlite3_str_length(w.out);
    char *out = sqlite3_str_finish(w.out);
    if (ok && out) {
        sqlite3_result_text(ctx, out, len, sqlite3_free);
    } else {
        sqlite3_free(out);
        function_error(ctx, "malformed JSON");
    }
}

/* ---- jsonb_* ---- */

/* Runs SELECT name(?, ?, …), whose plan is kept with the call. */
static void forward(sqlite3_context *ctx, int argc, sqlite3_value **argv, const char *name)
{
    sqlite3 *db = sqlite3_context_db_handle(ctx);
    sqlite3_str *s = sqlite3_str_new(db);
    sqlite3_stmt *stmt = NULL;
    sqlite3_str_appendf(s, "SELECT %s(", name);
    for (int i = 0; i < argc; i++) /* a value that is JSON already stays JSON */
        sqlite3_str_appendf(s, sqlite3_value_subtype(argv[i]) == 'J' ? "%sjson(?)" : "%s?", i ? "," : "");
    sqlite3_str_appendall(s, ")");
    char *sql = sqlite3_str_finish(s);
    int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) : SQLITE_NOMEM;
    for (int i = 0; i < argc && rc == SQLITE_OK; i++)
        rc = sqlite3_bind_value(stmt, i + 1, argv[i]);
    if (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        sqlite3_value *v = sqlite3_column_value(stmt, 0);
        sqlite3_result_value(ctx, v);
        sqlite3_result_subtype(ctx, 'J');
    } else {
        sqlite3_result_error(ctx, sqlite3_errmsg(db), -1);
    }
    sqlite3_finalize(stmt);
    sqlite3_free(sql);
}

#define FORWARDS(X)                                                                                                    \
    X(array, -1)                                                                                                       \
    X(extract, -1)                                                                                                     \
    X(insert, -1)                                                                                                      \
    X(object, -1)                                                                                                      \
    X(patch, 2)                                                                                                        \
    X(remove, -1)                                                                                                      \
    X(replace, -1)                                                                                                     \
    X(set, -1)

#define X(name, argc)                                                                                                  \
    static void jsonb_##name(sqlite3_context *ctx, int n, sqlite3_value **argv)                                        \
    {                                                                                                                  \
        forward(ctx, n, argv, "json_" #name);                                                                          \
    }
FORWARDS(X)
#undef X

static void jsonb(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    forward(ctx, argc, argv, "json");
}

/* The aggregates: elements are joined as text. */
struct group {
    sqlite3_str *s;
};

static int append(void *str, const void *bytes, size_t len)
{
    sqlite3_str_append(str, bytes, (int)len);
    return 0;
}

struct json_writer function_json_writer(sqlite3_str *s)
{
    return (struct json_writer){.put = append, .ctx = s};
}

void function_append_json(sqlite3_str *s, sqlite3_value *v)
{
    struct json_writer w = function_json_writer(s);
    int type = sqlite3_value_type(v);
    struct slice t = type == SQLITE_NULL ? slice_of("", 0) : function_text(v);
    if (type == SQLITE_NULL)
        json_put_null(&w);
    else if (type == SQLITE_TEXT && sqlite3_value_subtype(v) != 'J')
        json_put_bytes(&w, t.p, t.len);
    else
        json_put_raw(&w, t.p, t.len);
}

static void group_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct group *g = sqlite3_aggregate_context(ctx, sizeof *g);
    if (!g)
        return;
    if (!g->s)
        g->s = sqlite3_str_new(NULL);
    else
        sqlite3_str_appendchar(g->s, 1, ',');
    if (argc == 2) {
        function_append_json(g->s, argv[0]);
        sqlite3_str_appendchar(g->s, 1, ':');
    }
    function_append_json(g->s, argv[argc - 1]);
}

static void group_final(sqlite3_context *ctx, const char *brackets)
{
    struct group *g = sqlite3_aggregate_context(ctx, 0);
    sqlite3_str *all = sqlite3_str_new(sqlite3_context_db_handle(ctx));
    int rc = g && g->s ? sqlite3_str_errcode(g->s) : SQLITE_OK, len = g && g->s ? sqlite3_str_length(g->s) : 0;
    char *inside = g && g->s ? sqlite3_str_finish(g->s) : NULL;
    sqlite3_str_append(all, brackets, 1);
    if (inside)
        sqlite3_str_append(all, inside, len);
    sqlite3_str_append(all, brackets + 1, 1);
    sqlite3_free(inside);
    if (g)
        g->s = NULL;
    function_result_built(ctx, all);
    if (rc)
        sqlite3_result_error_code(ctx, rc);
    else
        sqlite3_result_subtype(ctx, 'J');
}

static void array_final(sqlite3_context *ctx)
{
    group_final(ctx, "[]");
}

static void object_final(sqlite3_context *ctx)
{
    group_final(ctx, "{}");
}

/* JSON_VALID(X, FLAGS): 1 and 2 ask for text, which here is RFC 8259 for both; 4 and 8 for the binary form, which no
 * value has. */
static void json_valid(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    sqlite3_int64 flags = sqlite3_value_int64(argv[1]);
    (void)argc;
    if (flags < 1 || flags > 15) {
        function_error(ctx, "FLAGS parameter to json_valid() must be between 1 and 15");
    } else if (!function_is_null(argv[0])) {
        struct slice t = function_text(argv[0]);
        struct json_scan w = {.p = t.p, .start = t.p, .end = t.p + t.len};
        sqlite3_result_int(ctx, (flags & 3) && sqlite3_value_type(argv[0]) != SQLITE_BLOB && document(&w));
    }
}

static const struct engine_function rows[] = {
    {.name = "json_valid", .n_args = 2, .flags = SQLITE_DETERMINISTIC, .scalar = json_valid},
    {.name = "json_error_position", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = json_error_position},
    {.name = "json_pretty", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = json_pretty},
    {.name = "json_pretty", .n_args = 2, .flags = SQLITE_DETERMINISTIC, .scalar = json_pretty},
    {.name = "jsonb", .n_args = 1, .flags = SQLITE_DETERMINISTIC | SQLITE_SUBTYPE, .scalar = jsonb},
#define X(fn, argc)                                                                                                    \
    {.name = "jsonb_" #fn,                                                                                             \
     .n_args = argc,                                                                                                   \
     .takes = argc < 0 ? "*v" : NULL,                                                                                  \
     .flags = SQLITE_DETERMINISTIC | SQLITE_SUBTYPE,                                                                   \
     .scalar = jsonb_##fn},
    FORWARDS(X)
#undef X
        {.name = "jsonb_group_array", .n_args = 1, .flags = SQLITE_SUBTYPE, .step = group_step, .final = array_final},
    {.name = "jsonb_group_object", .n_args = 2, .flags = SQLITE_SUBTYPE, .step = group_step, .final = object_final},
};

FUNCTION_ROWS(json, rows);
