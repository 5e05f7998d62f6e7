/* __intrinsic_flamegraph_config('tag', argument…, 'tag', …): what a query asks of a flame graph, as a pointer value.
 *
 *     'view', TOP_DOWN | BOTTOM_UP | PIVOT | FROM_FRAME
 *     'view_pattern', regex, flags          the frames that PIVOT and FROM_FRAME start at
 *     'value', column
 *     'grouping', column
 *     'filter', SHOW_STACK | HIDE_STACK | HIDE_FRAME, regex, flags
 *     'aggregate', SUM | ONE_OR_SUMMARY | CONCAT_WITH_COMMA, input column, output column */
#include "sql/operators/flamegraph.h"
#include "sql/operators/rows.h"

#include <string.h>

void flame_config_unref(void *p)
{
    struct flame_config *c = p;
    if (!c || --c->refs > 0)
        return;
    regex_free(c->pivot);
    for (size_t i = 0; i < c->filters.n; i++)
        regex_free(c->filters.p[i].regex);
    for (size_t i = 0; i < c->grouping.n; i++)
        mem_free(c->grouping.p[i]);
    for (size_t i = 0; i < c->values.n; i++)
        mem_free(c->values.p[i]);
    for (size_t i = 0; i < c->aggregates.n; i++) {
        mem_free(c->aggregates.p[i].input);
        mem_free(c->aggregates.p[i].output);
    }
    vec_free(&c->filters);
    vec_free(&c->grouping);
    vec_free(&c->values);
    vec_free(&c->aggregates);
    mem_free(c);
}

struct flame_config *value_flame_config(sqlite3_value *v)
{
    struct flame_config *c = sqlite3_value_pointer(v, "FLAMEGRAPH_CONFIG");
    if (c)
        c->refs++;
    return c;
}

static int nomem(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

static int find_word(const char *const *words, int n, const char *word, const char *what, struct error *err)
{
    for (int i = 0; i < n; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return error_set(err, -MRD_ESQL, "unknown %s '%s'", what, word);
}

static int compile(struct regex **out, sqlite3_value **argv, struct error *err)
{
    struct error why = {0};
    const char *flags = (const char *)sqlite3_value_text(argv[1]);
    int rc = regex_compile(out, function_text(argv[0]), flags && strchr(flags, 'i'), &why);
    return rc == 0 ? 0 : error_set(err, rc, "the pattern '%s' is not valid: %s", sqlite3_value_text(argv[0]), why.text);
}

static int read_view(struct flame_config *c, sqlite3_value **argv, struct error *err)
{
    static const char *const views[] = {"TOP_DOWN", "BOTTOM_UP", "PIVOT", "FROM_FRAME"};
    int view = find_word(views, 4, (const char *)sqlite3_value_text(argv[0]), "view", err);
    if (view >= 0)
        c->view = (uint8_t)view;
    return view < 0 ? view : 0;
}

static int read_view_pattern(struct flame_config *c, sqlite3_value **argv, struct error *err)
{
    regex_free(c->pivot);
    c->pivot = NULL;
    return compile(&c->pivot, argv, err);
}

static int read_filter(struct flame_config *c, sqlite3_value **argv, struct error *err)
{
    static const char *const kinds[] = {"SHOW_STACK", "HIDE_STACK", "HIDE_FRAME"};
    int kind = find_word(kinds, 3, (const char *)sqlite3_value_text(argv[0]), "filter", err);
    struct flame_filter f = {(uint8_t)kind, NULL};
    int rc = kind < 0 ? kind : compile(&f.regex, argv + 1, err);
    if (rc)
        return rc;
    if (vec_push(&c->filters, f))
        return 0;
    regex_free(f.regex);
    return nomem(err);
}

static int read_value(struct flame_config *c, sqlite3_value **argv, struct error *err)
{
    char *name = mem_strdup((const char *)sqlite3_value_text(argv[0]));
    if (name && vec_push(&c->values, name))
        return 0;
    mem_free(name);
    return nomem(err);
}

static int read_grouping(struct flame_config *c, sqlite3_value **argv, struct error *err)
{
    char *name = mem_strdup((const char *)sqlite3_value_text(argv[0]));
    if (name && vec_push(&c->grouping, name))
        return 0;
    mem_free(name);
    return nomem(err);
}

static int read_aggregate(struct flame_config *c, sqlite3_value **argv, struct error *err)
{
    static const char *const modes[] = {"SUM", "ONE_OR_SUMMARY", "CONCAT_WITH_COMMA"};
    int mode = find_word(modes, 3, (const char *)sqlite3_value_text(argv[0]), "aggregate", err);
    if (mode < 0)
        return mode;
    struct flame_aggregate a = {(uint8_t)mode, mem_strdup((const char *)sqlite3_value_text(argv[1])),
                                mem_strdup((const char *)sqlite3_value_text(argv[2]))};
    if (a.input && a.output && vec_push(&c->aggregates, a))
        return 0;
    mem_free(a.input);
    mem_free(a.output);
    return nomem(err);
}

static const struct {
    const char *tag;
    int n_args;
    int (*read)(struct flame_config *c, sqlite3_value **argv, struct error *err);
} tags[] = {{"view", 1, read_view},     {"view_pattern", 2, read_view_pattern},
            {"value", 1, read_value},   {"grouping", 1, read_grouping},
            {"filter", 3, read_filter}, {"aggregate", 3, read_aggregate}};

/* One tag with its arguments; how many values that were, or an error. */
static int read_tag(struct flame_config *c, int argc, sqlite3_value **argv, struct error *err)
{
    if (sqlite3_value_type(argv[0]) != SQLITE_TEXT)
        return error_set(err, -MRD_ESQL, "a tag must be a string");
    const char *tag = (const char *)sqlite3_value_text(argv[0]);
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (strcmp(tags[i].tag, tag) != 0)
            continue;
        if (tags[i].n_args >= argc)
            return error_set(err, -MRD_ESQL, "'%s' takes %d arguments", tag, tags[i].n_args);
        for (int k = 1; k <= tags[i].n_args; k++)
            if (sqlite3_value_type(argv[k]) != SQLITE_TEXT)
                return error_set(err, -MRD_ESQL, "argument %d of '%s' must be a string", k, tag);
        int rc = tags[i].read(c, argv + 1, err);
        return rc < 0 ? rc : tags[i].n_args + 1;
    }
    return error_set(err, -MRD_ESQL, "unknown tag '%s'", tag);
}

static void flamegraph_config(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct flame_config *c = mem_zalloc(sizeof *c);
    struct error err = {0};
    int rc = c ? 0 : nomem(&err);
    if (c)
        c->refs = 1;
    for (int i = 0; rc >= 0 && i < argc; i += rc)
        rc = read_tag(c, argc - i, argv + i, &err);
    if (rc >= 0 && c->values.n == 0)
        rc = error_set(&err, -MRD_ESQL, "at least one 'value' is needed");
    if (rc >= 0 && c->view >= FLAME_PIVOT && !c->pivot)
        rc = error_set(&err, -MRD_ESQL, "this view needs a 'view_pattern'");
    if (rc >= 0) {
        sqlite3_result_pointer(ctx, c, "FLAMEGRAPH_CONFIG", flame_config_unref);
        return;
    }
    flame_config_unref(c);
    function_error(ctx, "FLAMEGRAPH_CONFIG: %s", err.text);
}

static void flamegraph_find(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc, (void)argv;
    function_error(ctx, "FLAMEGRAPH_FIND: may only be used in the WHERE clause of a flame graph, on _tree_id");
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_flamegraph_config", .n_args = -1, .takes = "*v", .scalar = flamegraph_config},
    {.name = "__intrinsic_flamegraph_find", .n_args = 2, .scalar = flamegraph_find},
};

FUNCTION_ROWS(flamegraph_config, rows);
