/* Calls of functions: aggregates, those computed here, and those that SQLite computes once for each text. */
#include "sql/plan/varied.h"

#include <stdio.h>
#include <string.h>

/* ---- of one row ---- */

struct plan_expr *plan_make_call(struct query_plan *p, enum plan_type type, const char *text, struct plan_expr **args,
                                 uint32_t n)
{
    struct plan_expr *x = plan_expr_new(p, X_CALL, type, n);
    for (uint32_t i = 0; x && i < n; i++) {
        x->args[i] = args[i];
        x->sources |= args[i]->sources;
    }
    if (x)
        x->text = text;
    return x;
}

/* What SQLite computes: the type of the result (PLAN_NULL: that of the first argument), and how many arguments. */
static const struct {
    const char *name;
    enum plan_type type;
    uint8_t least, most;
    char first, others; /* 't': must be text, 'n': numbers, 'f': a constant text; 0: any */
} calls[] = {{"upper", PLAN_TEXT, 1, 1, 't', 0},
             {"lower", PLAN_TEXT, 1, 1, 't', 0},
             {"length", PLAN_INT, 1, 1, 't', 0},
             {"octet_length", PLAN_INT, 1, 1, 't', 0},
             {"unicode", PLAN_INT, 1, 1, 't', 0},
             {"substr", PLAN_TEXT, 2, 3, 't', 0},
             {"substring", PLAN_TEXT, 2, 3, 't', 0},
             {"replace", PLAN_TEXT, 3, 3, 't', 0},
             {"trim", PLAN_TEXT, 1, 2, 't', 0},
             {"ltrim", PLAN_TEXT, 1, 2, 't', 0},
             {"rtrim", PLAN_TEXT, 1, 2, 't', 0},
             {"reverse", PLAN_TEXT, 1, 1, 't', 0},
             {"str_split", PLAN_TEXT, 3, 3, 't', 0},
             {"demangle", PLAN_TEXT, 1, 1, 't', 0},
             {"__intrinsic_strip_hex", PLAN_TEXT, 2, 2, 't', 'n'},
             {"instr", PLAN_INT, 2, 2, 't', 0},
             {"regexp", PLAN_INT, 2, 3, 't', 't'},
             {"regexp_extract", PLAN_TEXT, 2, 2, 't', 't'},
             {"regexp_replace_simple", PLAN_TEXT, 3, 3, 't', 't'},
             {"hex", PLAN_TEXT, 1, 1, 0, 0},
             {"quote", PLAN_TEXT, 1, 1, 0, 0},
             {"char", PLAN_TEXT, 1, 20, 'n', 'n'},
             {"typeof", PLAN_TEXT, 1, 1, 't', 0},
             {"sign", PLAN_INT, 1, 1, 'n', 0},
             {"round", PLAN_REAL, 1, 2, 'n', 'n'},
             {"ceil", PLAN_NULL, 1, 1, 'n', 0},
             {"floor", PLAN_NULL, 1, 1, 'n', 0},
             {"sqrt", PLAN_REAL, 1, 1, 'n', 0},
             {"ln", PLAN_REAL, 1, 1, 'n', 0},
             {"log", PLAN_REAL, 1, 2, 'n', 'n'},
             {"log2", PLAN_REAL, 1, 1, 'n', 0},
             {"log10", PLAN_REAL, 1, 1, 'n', 0},
             {"exp", PLAN_REAL, 1, 1, 'n', 0},
             {"pow", PLAN_REAL, 2, 2, 'n', 'n'},
             {"power", PLAN_REAL, 2, 2, 'n', 'n'},
             {"printf", PLAN_TEXT, 1, 20, 'f', 0},
             {"format", PLAN_TEXT, 1, 20, 'f', 0},
             {"json_extract", PLAN_TEXT, 2, 8, 't', 't'},
             {"concat", PLAN_TEXT, 1, 20, 0, 0},
             {"concat_ws", PLAN_TEXT, 2, 20, 't', 0},
             {"hash", PLAN_INT, 1, 6, 0, 0}};

/* The same of times, whose first argument (`at`) is a number: a text may be 'now'. */
static const struct {
    const char *name;
    enum plan_type type;
    uint8_t at, most;
    const char *format; /* what strftime() would be told */
} dates[] = {{"date", PLAN_TEXT, 0, 4, "%Y-%m-%d"},
             {"time", PLAN_TEXT, 0, 4, "%H:%M:%S"},
             {"datetime", PLAN_TEXT, 0, 4, "%Y-%m-%d %H:%M:%S"},
             {"julianday", PLAN_REAL, 0, 4, NULL},
             {"unixepoch", PLAN_INT, 0, 4, NULL},
             {"strftime", PLAN_TEXT, 1, 5, NULL}};

static bool fits(const struct plan_expr *x, char what)
{
    switch (what) {
    case 't':
        return x->type == PLAN_TEXT;
    case 'n':
        return x->type == PLAN_INT || x->type == PLAN_REAL;
    case 'f':
        return x->type == PLAN_TEXT && x->op == X_CONST;
    default:
        return true;
    }
}

static struct plan_expr *make_call(struct reader *r, const char *name, enum plan_type type, struct plan_expr **args,
                                   uint32_t n)
{
    const char *text = "?1";
    for (uint32_t i = 1; i < n && text; i++)
        text = arena_printf(&r->plan->arena, "%s, ?%u", text, i + 1);
    text = text ? arena_printf(&r->plan->arena, "SELECT %s(%s)", name, text) : NULL;
    return text ? plan_make_call(r->plan, type, text, args, n) : NULL;
}

enum { MOST_DIGITS = 9 };

/* round() of a number that varies, to digits that do not. */
static bool rounds_reals(const struct plan_expr *x)
{
    const struct plan_expr *digits = x->n_args == 2 ? x->args[1] : NULL;
    return x->args[0]->type == PLAN_REAL && x->args[0]->op != X_CONST &&
           (!digits ||
            (digits->op == X_CONST && digits->type == PLAN_INT && digits->word >= 0 && digits->word <= MOST_DIGITS));
}

/* Texts that are put together here. */
static void read_format(struct reader *r, const struct sql_expr *x, struct plan_expr *call)
{
    static const struct {
        const char *name;
        format_call *call;
    } of_values[] = {{"hex", format_hex}, {"quote", format_sql_literal}, {"char", format_char}};
    bool real = false;
    for (uint32_t i = 0; i < call->n_args; i++)
        real |= call->args[i]->type == PLAN_REAL;
    if (sql_name_is(x->name, "printf") || sql_name_is(x->name, "format"))
        format_read_printf(r->plan, &r->planner->e->storage->strings, call);
    else if (sql_name_is(x->name, "length"))
        format_read_length(r->plan, call);
    for (size_t i = 0; i < sizeof of_values / sizeof *of_values && !real; i++)
        if (sql_name_is(x->name, of_values[i].name))
            format_read_values(r->plan, call, 0, call->n_args, of_values[i].call, slice_of("", 0), false);
}

static enum math_call math_of(const struct sql_expr *x, const struct plan_expr *call)
{
    static const char *const names[] = {[MATH_CEIL] = "ceil", [MATH_FLOOR] = "floor", [MATH_SQRT] = "sqrt"};
    for (int i = MATH_CEIL; i <= MATH_SQRT; i++)
        if (sql_name_is(x->name, names[i]) && call->args[0]->type == PLAN_REAL && !call->args[0]->mixed)
            return (enum math_call)i;
    return MATH_NONE;
}

static struct plan_expr *read_call(struct reader *r, const struct sql_expr *x, size_t at)
{
    struct plan_expr *args[PLAN_MAX_CALL_ARGS] = {NULL};
    uint32_t n = 0;
    bool json = sql_name_is(x->name, "json_extract"); /* no constant: what it gives may be marked as JSON */
    if (x->n_args < calls[at].least || x->n_args > calls[at].most ||
        (!json && !schema_is_rowwise_call(r->planner->e, x)))
        return NULL;
    bool real = calls[at].type == PLAN_REAL, varied = false; /* of integers, too */
    for (const struct sql_expr *a = x->args; a; a = a->next, n++) {
        args[n] = json ? read_json(r, a) : NULL; /* it reads the text, marked or not */
        args[n] = args[n] ? args[n] : real ? read_as_real(r, a) : read_varied(r, a);
        if (!args[n] || !fits(args[n], n ? calls[at].others : calls[at].first))
            return NULL;
        varied |= args[n]->varied;
    }
    enum plan_type type = calls[at].type == PLAN_NULL ? (enum plan_type)args[0]->type : calls[at].type;
    struct plan_expr *out = make_call(r, calls[at].name, type, args, n);
    if (out && !varied)
        read_format(r, x, out);
    if (json)
        varied_mark(out);
    if (out && sql_name_is(x->name, "round"))
        out->rounds = rounds_reals(out);
    if (out && !varied)
        out->math = math_of(x, out);
    return out;
}

static struct plan_expr *read_date(struct reader *r, const struct sql_expr *x, size_t which)
{
    struct plan_expr *args[PLAN_MAX_CALL_ARGS] = {NULL};
    uint32_t n = 0, at = dates[which].at;
    if (x->n_args <= at || x->n_args > dates[which].most)
        return NULL;
    for (const struct sql_expr *a = x->args; a; a = a->next, n++)
        if (!(args[n] = read_expr(r, a)) || !fits(args[n], n == at ? 'n' : 'f')) /* modifiers are constants */
            return NULL;
    struct plan_expr *out = make_call(r, dates[which].name, dates[which].type, args, n);
    const struct strpool *strings = &r->planner->e->storage->strings;
    if (out && n == at + 2 && slice_eq_str(strpool_view(strings, (strid)args[at + 1]->word), "unixepoch")) {
        struct slice format = at                    ? strpool_view(strings, (strid)args[0]->word)
                              : dates[which].format ? slice_str(dates[which].format)
                                                    : slice_of("", 0);
        if (format_is_of_time(format))
            format_read_values(r->plan, out, at, 1, format_time, format, true);
    }
    return out;
}

/* nullif(a, b): CASE WHEN a = b THEN NULL ELSE a END */
static struct plan_expr *read_nullif(struct reader *r, const struct sql_expr *x)
{
    struct plan_expr *a = read_expr(r, x->args), *b = a ? read_expr(r, x->args->next) : NULL;
    struct plan_expr *same = b ? read_compare(r, SQL_EQ, a, b) : NULL;
    struct plan_expr *out = same ? plan_expr_new(r->plan, X_CASE, (enum plan_type)a->type, 3) : NULL;
    if (!out || !(out->args[1] = plan_const(r->plan, PLAN_NULL, COL_NULL)))
        return NULL;
    out->args[0] = same;
    out->args[2] = a;
    out->sources = same->sources | a->sources;
    return out;
}

/* typeof(x) of what has one type: CASE WHEN x IS NULL THEN 'null' ELSE 'integer' END */
static struct plan_expr *read_typeof(struct reader *r, const struct sql_expr *x)
{
    static const char *const names[] = {
        [PLAN_NULL] = "null", [PLAN_INT] = "integer", [PLAN_REAL] = "real", [PLAN_TEXT] = "text"};
    struct plan_expr *a = read_expr(r, x->args), *values[2] = {NULL};
    for (int i = 0; a && i < 2; i++) {
        const char *name = names[i ? a->type : PLAN_NULL];
        strid id = strpool_intern(&r->planner->e->storage->strings, name, strlen(name));
        values[i] = id ? plan_const(r->plan, PLAN_TEXT, id) : NULL;
    }
    struct plan_expr *out = values[1] ? plan_expr_new(r->plan, X_CASE, PLAN_TEXT, 3) : NULL;
    if (!out || !values[0] || !(out->args[0] = plan_unary(r->plan, X_IS_NULL, PLAN_INT, a)))
        return NULL;
    out->args[1] = values[0];
    out->args[2] = values[1];
    out->sources = a->sources;
    return out;
}

enum { LOOK_AT_SETS = 4096, LOOK_AT_VALUES = 64 };

/* The type of the values of a key, as the sets have it that are looked at: where one has another, the plan gives up.
 * *varied: they have several. */
static enum plan_type type_of_arg(struct engine *e, strid key, bool *varied)
{
    static const enum plan_type types[] = {
        [FOUND_INTEGER] = PLAN_INT, [FOUND_TEXT] = PLAN_TEXT, [FOUND_REAL] = PLAN_REAL, [FOUND_NO_MEMORY] = PLAN_NULL};
    uint32_t n = args_count(&e->storage->args), step = n / LOOK_AT_SETS + 1, n_found = 0;
    enum arg_found first = FOUND_NOTHING;
    *varied = false;
    for (uint32_t i = 0; i < n && n_found < LOOK_AT_VALUES; i += step) {
        int64_t word;
        enum arg_found found = engine_find_arg(e, args_cell(&e->storage->args, (argset){i + 1}), key, &word);
        if (found == FOUND_NO_MEMORY)
            return PLAN_NULL;
        n_found += found > FOUND_NOTHING;
        first = first > FOUND_NOTHING ? first : found;
        *varied |= found > FOUND_NOTHING && found != first;
    }
    return *varied ? PLAN_TEXT : first > FOUND_NOTHING ? types[first] : PLAN_INT; /* most likely nobody has it */
}

static struct plan_expr *read_extract_arg(struct reader *r, const struct sql_expr *x)
{
    struct engine *e = r->planner->e;
    struct plan_expr *set = read_expr(r, x->args), *key = set ? read_constant(r, x->args->next) : NULL;
    if (!key || set->type != PLAN_INT || key->type != PLAN_TEXT || !engine_find_function(e, "extract_arg", 2))
        return NULL;
    bool varied;
    enum plan_type type = type_of_arg(e, (strid)key->word, &varied);
    struct plan_expr *out = type == PLAN_NULL ? NULL : plan_unary(r->plan, X_ARG, type, set);
    if (out)
        out->word = key->word;
    return varied ? varied_mark(out) : out;
}

/* Arguments of one type, as the arguments of an expression. */
static struct plan_expr *read_alike(struct reader *r, const struct sql_expr *x, enum expr_op op)
{
    struct plan_expr *out = plan_expr_new(r->plan, op, PLAN_NULL, x->n_args);
    uint32_t n = 0;
    for (const struct sql_expr *a = x->args; out && a; a = a->next) {
        struct plan_expr *v = read_expr(r, a);
        if (!v || (v->type != PLAN_NULL && out->type != PLAN_NULL && v->type != out->type))
            return NULL;
        out->type = v->type != PLAN_NULL ? v->type : out->type;
        out->args[n++] = v;
        out->sources |= v->sources;
    }
    return out;
}

static struct plan_expr *read_coalesce(struct reader *r, const struct sql_expr *x)
{
    struct plan_expr *out = plan_expr_new(r->plan, X_COALESCE, PLAN_NULL, x->n_args);
    uint32_t n = 0;
    for (const struct sql_expr *a = x->args; out && a; a = a->next)
        if (!(out->args[n++] = read_mixed(r, a)))
            return NULL;
    if (!out || !mixed_unify(r, out->args, n, out))
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        out->sources |= out->args[i]->sources;
    return out;
}

/* min(a, b, …), max(a, b, …): two at a time. */
static struct plan_expr *read_least(struct reader *r, const struct sql_expr *x)
{
    struct plan_expr *values[PLAN_MAX_CALL_ARGS], all = {0}, *out;
    uint32_t n = 0;
    for (const struct sql_expr *a = x->args; a; a = a->next)
        if (n == PLAN_MAX_CALL_ARGS || !(values[n++] = read_mixed(r, a)))
            return NULL;
    if (!mixed_unify(r, values, n, &all) || all.type == PLAN_TEXT)
        return NULL;
    out = values[0];
    for (uint32_t i = 1; out && i < n; i++) {
        struct plan_expr *two = plan_expr_new(r->plan, X_LEAST, (enum plan_type)all.type, 2);
        if (!two)
            return NULL;
        two->args[0] = out;
        two->args[1] = values[i];
        two->sources = out->sources | values[i]->sources;
        two->negated = sql_name_is(x->name, "max");
        two->mixed = all.mixed;
        out = two;
    }
    return out;
}

static struct plan_expr *read_iif(struct reader *r, const struct sql_expr *x)
{
    struct plan_expr *when = read_expr(r, x->args);
    struct plan_expr *values[] = {when ? read_mixed(r, x->args->next) : NULL, NULL};
    values[1] = values[0] ? read_mixed(r, x->args->next->next) : NULL;
    struct plan_expr *out = values[1] ? plan_expr_new(r->plan, X_CASE, PLAN_NULL, 3) : NULL;
    if (!out || when->type == PLAN_TEXT || !mixed_unify(r, values, 2, out))
        return NULL;
    out->args[0] = when;
    out->args[1] = values[0];
    out->args[2] = values[1];
    out->sources = when->sources | values[0]->sources | values[1]->sources;
    return out;
}

/* trace_start() and its like, which do not change once a trace is loaded. */
static struct plan_expr *read_bound_of_trace(struct reader *r, const struct sql_expr *x)
{
    const struct storage *st = r->planner->e->storage;
    int64_t start = st->trace_start_ns, end = st->trace_end_ns;
    const struct {
        const char *name;
        int64_t ns;
    } bounds[] = {
        {"trace_start", start}, {"trace_end", end}, {"trace_dur", (int64_t)((uint64_t)end - (uint64_t)start)}};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (sql_name_is(x->name, bounds[i].name) && bounds[i].ns != COL_NULL)
            return plan_const(r->plan, PLAN_INT, bounds[i].ns);
    return NULL;
}

static struct plan_expr *read_scalar(struct reader *r, const struct sql_expr *x)
{
    if (x->distinct || x->filter || x->star)
        return NULL;
    if (x->n_args == 0) {
        struct plan_expr *bound = read_bound_of_trace(r, x);
        return bound ? bound : read_sql_function(r, x);
    }
    if (x->n_args >= 2 && (sql_name_is(x->name, "coalesce") || (sql_name_is(x->name, "ifnull") && x->n_args == 2)))
        return read_coalesce(r, x);
    if (x->n_args == 3 && sql_name_is(x->name, "iif"))
        return read_iif(r, x);
    if (x->n_args >= 2 && (sql_name_is(x->name, "min") || sql_name_is(x->name, "max")))
        return read_least(r, x);
    if (x->n_args == 2 && sql_name_is(x->name, "nullif"))
        return read_nullif(r, x);
    if (x->n_args == 2 && sql_name_is(x->name, "extract_arg"))
        return read_extract_arg(r, x);
    if (x->n_args == 1 && sql_name_is(x->name, "typeof"))
        return read_typeof(r, x);
    if (x->n_args == 1 && sql_name_is(x->name, "abs")) {
        struct plan_expr *out = read_alike(r, x, X_ABS);
        return out && out->type != PLAN_TEXT ? out : NULL;
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (sql_name_is(x->name, calls[i].name))
            return read_call(r, x, i);
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++)
        if (sql_name_is(x->name, dates[i].name))
            return read_date(r, x, i);
    return read_sql_function(r, x);
}

/* ---- of groups ---- */

static const struct {
    const char *name;
    uint8_t kind;
    uint8_t n_args;
} aggregates[] = {{"count", AGG_COUNT, 1},
                  {"sum", AGG_SUM, 1},
                  {"total", AGG_TOTAL, 1},
                  {"avg", AGG_AVG, 1},
                  {"min", AGG_MIN, 1},
                  {"max", AGG_MAX, 1},
                  {"group_concat", AGG_CONCAT, 1},
                  {"group_concat", AGG_CONCAT, 2},
                  {"string_agg", AGG_CONCAT, 2},
                  {"percentile", AGG_PERCENTILE, 2},
                  {"percentile_cont", AGG_PERCENTILE, 2},
                  {"percentile_disc", AGG_PERCENTILE_DISC, 2},
                  {"median", AGG_PERCENTILE, 1}};

static enum plan_type aggregate_type(uint8_t kind, enum plan_type of)
{
    switch (kind) {
    case AGG_COUNT_ROWS:
    case AGG_COUNT:
        return PLAN_INT;
    case AGG_SUM:
    case AGG_MIN:
    case AGG_MAX:
        return of;
    case AGG_CONCAT:
        return PLAN_TEXT;
    default:
        return PLAN_REAL;
    }
}

/* The second argument of percentile() and group_concat(), which must be a constant. */
static bool read_second(struct reader *r, const struct sql_expr *x, struct plan_aggregate *a)
{
    struct plan_expr *second = x->n_args == 2 ? read_constant(r, x->args->next) : NULL;
    if (x->n_args == 2 && !second)
        return false;
    if (a->kind == AGG_CONCAT) {
        a->separator = slice_of(",", 1);
        if (second && second->type != PLAN_TEXT)
            return false;
        if (second)
            a->separator = strpool_view(&r->planner->e->storage->strings, (strid)second->word);
        return true;
    }
    if (a->kind < AGG_PERCENTILE)
        return x->n_args == 1;
    a->fraction = 0.5;
    if (second) {
        double v = second->type == PLAN_INT ? (double)second->word : column_f64(second->word);
        a->fraction = sql_name_is(x->name, "percentile") ? v / 100 : v;
        if (second->type == PLAN_TEXT || second->type == PLAN_NULL)
            return false;
    }
    return a->fraction >= 0 && a->fraction <= 1;
}

static bool same_aggregate(const struct plan_aggregate *a, const struct plan_aggregate *b)
{
    return a->kind == b->kind && a->distinct == b->distinct && a->fraction == b->fraction &&
           a->separator.p == b->separator.p && a->separator.len == b->separator.len && !a->arg == !b->arg &&
           !a->filter == !b->filter && (!a->arg || plan_expr_equal(a->arg, b->arg)) &&
           (!a->filter || plan_expr_equal(a->filter, b->filter));
}

static struct plan_expr *add_aggregate(struct reader *r, const struct plan_aggregate *a, enum plan_type type)
{
    struct query_plan *p = r->plan;
    uint32_t at = 0;
    while (at < p->n_aggregates && !same_aggregate(&p->aggregates[at], a))
        at++;
    if (at == PLAN_MAX_AGGREGATES)
        return NULL;
    p->aggregates[at] = *a;
    p->n_aggregates += at == p->n_aggregates;
    p->grouped = true;
    struct plan_expr *out = plan_column(p, PLAN_GROUPS, (int16_t)(PLAN_MAX_ITEMS + at), type);
    if (out)
        out->letter = 'c';
    return out;
}

/* Does SQLite list the values as it finds them? */
static bool finds_first_of_list(const struct reader *r, const char *name)
{
    char text[64];
    snprintf(text, sizeof text, "USE TEMP B-TREE FOR %s(DISTINCT)", name);
    return loops_say(r->loops, loops_parent(r), text);
}

/* A varied value as what sum() and avg() add. */
static struct plan_expr *summand_of(struct reader *r, struct plan_expr *x)
{
    struct plan_expr *out = plan_unary(r->plan, X_SUMMAND, PLAN_REAL, x);
    if (out)
        out->mixed = true;
    return out;
}

/* The argument of an aggregate. A sum is an integer where all that it adds are; the others of numbers give reals. */
static struct plan_expr *read_summand(struct reader *r, uint8_t kind, const struct sql_expr *x)
{
    bool adds = kind == AGG_SUM || kind == AGG_AVG || kind == AGG_TOTAL;
    if (kind == AGG_CONCAT)
        return read_expr(r, x);
    if (kind == AGG_MIN || kind == AGG_MAX)
        return read_varied(r, x);
    struct plan_expr *out = read_mixed(r, x);
    if (out && out->varied && kind == AGG_COUNT)
        return varied_compared(r->plan, out);
    out = out && out->varied && adds ? summand_of(r, out) : out;
    return kind == AGG_SUM ? out : mixed_to_real(r, out);
}

static struct plan_expr *read_aggregate(struct reader *r, const struct sql_expr *x, size_t at)
{
    struct plan_aggregate a = {.kind = at == SIZE_MAX ? AGG_COUNT_ROWS : aggregates[at].kind};
    if (!r->aggregates_allowed || r->in_aggregate)
        return NULL;
    r->in_aggregate = true;
    bool ok = true;
    if (a.kind != AGG_COUNT_ROWS) {
        a.arg = read_summand(r, a.kind, x->args);
        ok = a.arg && read_second(r, x, &a);
    }
    if (ok && x->filter) {
        a.filter = read_expr(r, x->filter);
        ok = a.filter && a.filter->type != PLAN_TEXT;
    }
    r->in_aggregate = false;
    if (!ok)
        return NULL;
    enum plan_type of = a.arg ? (enum plan_type)a.arg->type : PLAN_NULL;
    bool numeric = a.kind == AGG_SUM || a.kind == AGG_TOTAL || a.kind == AGG_AVG || a.kind >= AGG_PERCENTILE;
    if (a.arg && (of == PLAN_NULL || (numeric && of == PLAN_TEXT)))
        return NULL;
    bool extreme = a.kind == AGG_MIN || a.kind == AGG_MAX;
    /* for one aggregate with DISTINCT SQLite may sort the rows by its values: lists and sums of reals would show it */
    if (x->distinct && !extreme && !(a.kind == AGG_CONCAT && finds_first_of_list(r, aggregates[at].name)) &&
        (a.kind >= AGG_MIN || (numeric && of == PLAN_REAL)))
        return NULL;
    a.distinct = x->distinct;
    struct plan_expr *out = add_aggregate(r, &a, aggregate_type(a.kind, of));
    if (out)
        out->mixed = a.kind == AGG_SUM && a.arg->mixed;
    if (out && a.arg && a.arg->varied && extreme)
        varied_mark(out);
    return out;
}

struct plan_expr *read_concat(struct reader *r, const struct sql_expr *x,
                              struct plan_expr *(*read)(struct reader *r, const struct sql_expr *x))
{
    struct plan_aggregate a = {.kind = AGG_CONCAT, .separator = slice_of(",", 1)};
    if (!r->aggregates_allowed || r->in_aggregate)
        return NULL;
    r->in_aggregate = true;
    a.arg = read(r, x->args);
    a.filter = a.arg && x->filter ? read_expr(r, x->filter) : NULL;
    r->in_aggregate = false;
    if (!a.arg || (x->filter && (!a.filter || a.filter->type == PLAN_TEXT)) ||
        (x->distinct && !finds_first_of_list(r, "json_group_array")))
        return NULL;
    a.distinct = x->distinct;
    return add_aggregate(r, &a, PLAN_TEXT);
}

struct plan_expr *read_function(struct reader *r, const struct sql_expr *x)
{
    if (sql_name_is(x->name, "count") && (x->star || x->n_args == 0))
        return x->distinct ? NULL : read_aggregate(r, x, SIZE_MAX);
    for (size_t i = 0; i < sizeof aggregates / sizeof *aggregates; i++)
        if (x->n_args == aggregates[i].n_args && sql_name_is(x->name, aggregates[i].name))
            return x->star ? NULL : read_aggregate(r, x, i);
    return read_scalar(r, x);
}
