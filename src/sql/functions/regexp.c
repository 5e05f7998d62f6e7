/* REGEXP, REGEXP_EXTRACT, REGEXP_REPLACE_SIMPLE. */
#include "sql/functions/functions.h"
#include "sql/functions/regex.h"

/* The compiled pattern of argument `at`, kept by SQLite while the pattern is constant. *own: to be freed by us. */
static struct regex *pattern(sqlite3_context *ctx, sqlite3_value **argv, int at, bool ignore_case, bool *own)
{
    struct regex *r = sqlite3_get_auxdata(ctx, at);
    struct error err = {0};
    *own = false;
    if (r)
        return r;
    if (regex_compile(&r, function_text(argv[at]), ignore_case, &err)) {
        function_error(ctx, "REGEXP: the pattern '%s' is not valid: %s", sqlite3_value_text(argv[at]), err.text);
        return NULL;
    }
    sqlite3_set_auxdata(ctx, at, r, regex_free);
    if (sqlite3_get_auxdata(ctx, at) != r) { /* not constant: freed by SQLite at once */
        *own = true;
        if (regex_compile(&r, function_text(argv[at]), ignore_case, &err))
            return NULL;
    }
    return r;
}

static int search(sqlite3_context *ctx, struct regex *r, struct slice text, size_t from, struct regex_match *m)
{
    regex_set_stop(r, engine_stop(function_engine(ctx)));
    int rc = regex_search(r, text, from, m);
    if (rc == -MRD_ECANCELLED)
        sqlite3_result_error_code(ctx, SQLITE_INTERRUPT);
    else if (rc < 0)
        function_error(ctx, "REGEXP: %s", rc == -MRD_ELIMIT ? "pattern and text are too large" : "out of memory");
    return rc;
}

static bool any_null(int argc, sqlite3_value **argv)
{
    for (int i = 0; i < argc; i++)
        if (function_is_null(argv[i]))
            return true;
    return false;
}

static bool all_text(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    for (int i = 0; i < argc; i++)
        if (sqlite3_value_type(argv[i]) == SQLITE_BLOB) {
            function_error(ctx, "REGEXP: argument %d should be a string", i + 1);
            return false;
        }
    return true;
}

static void match(sqlite3_context *ctx, sqlite3_value **argv, bool ignore_case)
{
    struct regex_match m;
    bool own;
    if (any_null(2, argv) || !all_text(ctx, 2, argv))
        return;
    struct regex *r = pattern(ctx, argv, 0, ignore_case, &own);
    int rc = r ? search(ctx, r, function_text(argv[1]), 0, &m) : -1;
    if (rc >= 0)
        sqlite3_result_int(ctx, rc);
    if (own)
        regex_free(r);
}

static void regexp(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    match(ctx, argv, false);
}

static void regexp_with_flags(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    bool ignore_case = false;
    (void)argc;
    if (any_null(3, argv))
        return;
    struct slice flags = function_text(argv[2]);
    for (size_t i = 0; i < flags.len; i++) {
        if (flags.p[i] != 'i' && flags.p[i] != 'c') {
            function_error(ctx, "REGEXP: unknown flag '%c'", flags.p[i]);
            return;
        }
        ignore_case = flags.p[i] == 'i'; /* the last one holds */
    }
    match(ctx, argv, ignore_case);
}

static void regexp_extract(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct regex_match m;
    bool own;
    if (any_null(argc, argv) || !all_text(ctx, argc, argv))
        return;
    struct regex *r = pattern(ctx, argv, 1, false, &own);
    if (!r)
        return;
    struct slice text = function_text(argv[0]);
    if (regex_groups(r) > 1)
        function_error(ctx, "REGEXP_EXTRACT: the pattern has more than one group");
    else if (search(ctx, r, text, 0, &m) == 1) {
        int g = m.group[1].start >= 0 && m.group[1].end > m.group[1].start ? 1 : 0;
        sqlite3_result_text(ctx, (const char *)text.p + m.group[g].start, (int)(m.group[g].end - m.group[g].start),
                            SQLITE_TRANSIENT);
    }
    if (own)
        regex_free(r);
}

/* The replacement, with $1 … and $& put in. */
static void append_replacement(sqlite3_str *s, struct slice with, struct slice text, const struct regex_match *m)
{
    size_t plain = 0; /* up to here it is in */
    for (size_t i = 0; i < with.len; i++) {
        uint8_t next = i + 1 < with.len ? with.p[i + 1] : 0;
        int g = next == '&' ? 0 : next >= '1' && next <= '9' ? next - '0' : -1;
        if (with.p[i] != '$' || (g < 0 && next != '$'))
            continue;
        sqlite3_str_append(s, (const char *)with.p + plain, (int)(i - plain));
        i++;
        if (g < 0)
            sqlite3_str_append(s, "$", 1);
        else if (m->group[g].start >= 0)
            sqlite3_str_append(s, (const char *)text.p + m->group[g].start, (int)(m->group[g].end - m->group[g].start));
        plain = i + 1;
    }
    sqlite3_str_append(s, (const char *)with.p + plain, (int)(with.len - plain));
}

static void regexp_replace(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct regex_match m;
    bool own;
    if (any_null(argc, argv) || !all_text(ctx, argc, argv))
        return;
    struct regex *r = pattern(ctx, argv, 1, false, &own);
    if (!r)
        return;
    struct slice text = function_text(argv[0]), with = function_text(argv[2]);
    sqlite3_str *s = sqlite3_str_new(sqlite3_context_db_handle(ctx));
    size_t at = 0;
    int rc = 0;
    while (at <= text.len && !sqlite3_str_errcode(s) && (rc = search(ctx, r, text, at, &m)) == 1) {
        sqlite3_str_append(s, (const char *)text.p + at, (int)((size_t)m.group[0].start - at));
        append_replacement(s, with, text, &m);
        at = (size_t)m.group[0].end;
        if (m.group[0].end == m.group[0].start) { /* an empty match: one byte goes on as it is */
            if (at < text.len)
                sqlite3_str_append(s, (const char *)text.p + at, 1);
            at++;
        }
    }
    if (at < text.len)
        sqlite3_str_append(s, (const char *)text.p + at, (int)(text.len - at));
    if (rc < 0)
        sqlite3_free(sqlite3_str_finish(s));
    else
        function_result_built(ctx, s);
    if (own)
        regex_free(r);
}

static const struct engine_function rows[] = {
    {.name = "regexp", .n_args = 2, .flags = SQLITE_DETERMINISTIC, .scalar = regexp},
    {.name = "regexp", .n_args = 3, .flags = SQLITE_DETERMINISTIC, .scalar = regexp_with_flags},
    {.name = "__intrinsic_regexp", .n_args = 2, .flags = SQLITE_DETERMINISTIC, .scalar = regexp},
    {.name = "__intrinsic_regexp_with_flags", .n_args = 3, .flags = SQLITE_DETERMINISTIC, .scalar = regexp_with_flags},
    {.name = "regexp_extract", .n_args = 2, .flags = SQLITE_DETERMINISTIC, .scalar = regexp_extract},
    {.name = "__intrinsic_regexp_extract", .n_args = 2, .flags = SQLITE_DETERMINISTIC, .scalar = regexp_extract},
    {.name = "regexp_replace_simple", .n_args = 3, .flags = SQLITE_DETERMINISTIC, .scalar = regexp_replace},
    {.name = "__intrinsic_regexp_replace_simple", .n_args = 3, .flags = SQLITE_DETERMINISTIC, .scalar = regexp_replace},
};

FUNCTION_ROWS(regexp, rows);
