/* Expressions of the tree as expressions of a plan: names become columns, and each gets its one type. What could have
 * several types, or compares unlike ones, is not understood. */
#include "sql/plan/varied.h"

#include <string.h>

/* ---- making ---- */

static struct plan_expr *unary(struct reader *r, enum expr_op op, enum plan_type type, struct plan_expr *a)
{
    return plan_unary(r->plan, op, type, a);
}

static struct plan_expr *binary(struct reader *r, enum expr_op op, enum plan_type type, uint8_t sql,
                                struct plan_expr *a, struct plan_expr *b)
{
    struct plan_expr *x = a && b ? plan_expr_new(r->plan, op, type, 2) : NULL;
    if (!x)
        return NULL;
    x->sql = sql;
    x->args[0] = a;
    x->args[1] = b;
    x->sources = a->sources | b->sources;
    return x;
}

static bool is_number(const struct plan_expr *x)
{
    return x && x->type <= PLAN_REAL;
}

static bool is_integer(const struct plan_expr *x)
{
    return x && x->type <= PLAN_INT;
}

/* ---- constants ---- */

/* Does the text of the expression mean the same alone: no names, no queries, only functions of their arguments? */
static bool is_constant(struct reader *r, const struct sql_expr *x)
{
    if (x->kind == EXPR_COLUMN || x->kind == EXPR_PARAMETER || x->kind == EXPR_CURRENT || x->query || x->in_table ||
        x->kind == EXPR_BLOB || x->kind == EXPR_ROW || x->kind == EXPR_COLLATE)
        return false;
    if (x->kind == EXPR_FUNCTION && !schema_is_rowwise_call(r->planner->e, x))
        return false;
    for (const struct sql_expr *a = x->args; a; a = a->next)
        if (!is_constant(r, a))
            return false;
    return true;
}

static struct plan_expr *read_digits(struct reader *r, const struct sql_expr *x)
{
    const struct sql_token *t = &r->tree->tokens[x->at.first];
    int64_t v = 0;
    if (x->at.end != x->at.first + 1 || t->len > 18)
        return NULL;
    for (uint32_t i = 0; i < t->len; i++) {
        if (t->text[i] < '0' || t->text[i] > '9')
            return NULL;
        v = v * 10 + (t->text[i] - '0');
    }
    return plan_const(r->plan, PLAN_INT, v);
}

struct plan_expr *read_constant(struct reader *r, const struct sql_expr *x)
{
    struct engine *e = r->planner->e;
    struct plan_expr *out = NULL;
    sqlite3_stmt *stmt = NULL;
    size_t len;
    if (x->kind == EXPR_NULL)
        return plan_const(r->plan, PLAN_NULL, COL_NULL);
    if (x->kind == EXPR_INTEGER && (out = read_digits(r, x)) != NULL)
        return out;
    if (!is_constant(r, x))
        return NULL;
    const char *text = sql_tree_text(r->tree, r->planner->arena, x->at, &len);
    char *sql = text ? sqlite3_mprintf("SELECT %s", text) : NULL;
    if (sql && engine_compile(e, sql, -1, 0, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
        int64_t i = sqlite3_column_int64(stmt, 0);
        switch (sqlite3_column_type(stmt, 0)) {
        case SQLITE_INTEGER:
            out = i == COL_NULL ? NULL : plan_const(r->plan, PLAN_INT, i);
            break;
        case SQLITE_FLOAT:
            out = plan_const(r->plan, PLAN_REAL, column_f64_word(sqlite3_column_double(stmt, 0)));
            break;
        case SQLITE_TEXT: {
            const void *p = sqlite3_column_text(stmt, 0);
            strid id = strpool_intern(&e->storage->strings, p, (size_t)sqlite3_column_bytes(stmt, 0));
            out = id ? plan_const(r->plan, PLAN_TEXT, id) : NULL;
            break;
        }
        case SQLITE_NULL:
            out = plan_const(r->plan, PLAN_NULL, COL_NULL);
            break;
        default:
            break;
        }
    }
    sqlite3_finalize(stmt);
    sqlite3_free(sql);
    return out;
}

/* ---- columns ---- */

/* A name that no table has: an alias of the list behind SELECT. */
static struct plan_expr *read_alias(struct reader *r, const struct sql_expr *x)
{
    const struct sql_item *found = NULL;
    if (x->table.len || !r->core || !r->aliases_allowed)
        return NULL;
    for (const struct sql_item *i = r->core->items; i; i = i->next)
        if (i->alias.len && sql_name_equal(i->alias, x->name)) {
            if (found)
                return NULL;
            found = i;
        }
    if (!found)
        return NULL;
    struct reader deeper = *r;
    deeper.aliases_allowed = false;
    return read_expr(&deeper, found->expr);
}

static struct plan_expr *read_column(struct reader *r, const struct sql_expr *x)
{
    struct plan_expr *out = NULL;
    int found = scope_find(r, x, &out);
    if (found > 0)
        return out;
    if (found < 0)
        return NULL;
    if (!x->table.len && !x->quoted && (sql_name_is(x->name, "true") || sql_name_is(x->name, "false")))
        return plan_const(r->plan, PLAN_INT, sql_name_is(x->name, "true"));
    if (!x->quoted && (out = read_alias(r, x)))
        return out;
    return read_correlated_column(r, x);
}

/* ---- operators ---- */

/* Of constants the value, where it is an integer that does not overflow; NULL: it is to be computed. What arguments of
 * functions make can then bound a scan. */
static struct plan_expr *fold(struct reader *r, uint8_t op, const struct plan_expr *a, const struct plan_expr *b)
{
    int64_t v;
    bool over = a->op != X_CONST || b->op != X_CONST || a->word == COL_NULL || b->word == COL_NULL;
    if (over)
        return NULL;
    if (op == SQL_ADD)
        over = __builtin_add_overflow(a->word, b->word, &v);
    else if (op == SQL_SUBTRACT)
        over = __builtin_sub_overflow(a->word, b->word, &v);
    else
        over = op != SQL_MULTIPLY || __builtin_mul_overflow(a->word, b->word, &v);
    return over || v == COL_NULL ? NULL : plan_const(r->plan, PLAN_INT, v);
}

static struct plan_expr *read_arithmetic(struct reader *r, uint8_t op, struct plan_expr *a, struct plan_expr *b)
{
    bool both = is_integer(a) && is_integer(b);
    if (!is_number(a) || !is_number(b) || (op == SQL_REMAINDER && !both))
        return NULL;
    if (a->type == PLAN_NULL || b->type == PLAN_NULL)
        return plan_const(r->plan, PLAN_NULL, COL_NULL);
    struct plan_expr *folded = both ? fold(r, op, a, b) : NULL;
    if (both)
        return folded ? folded : binary(r, X_ARITHMETIC, PLAN_INT, op, a, b);
    a = a->type == PLAN_INT ? unary(r, X_TO_REAL, PLAN_REAL, a) : a;
    b = b->type == PLAN_INT ? unary(r, X_TO_REAL, PLAN_REAL, b) : b;
    return binary(r, X_ARITHMETIC, PLAN_REAL, op, a, b);
}

/* Both numbers, or both texts: an affinity changes neither. */
static bool compare_alike(const struct plan_expr *a, const struct plan_expr *b)
{
    if (!a || !b)
        return false;
    return a->type == PLAN_NULL || b->type == PLAN_NULL || (a->type == PLAN_TEXT) == (b->type == PLAN_TEXT);
}

struct plan_expr *read_compare(struct reader *r, uint8_t op, struct plan_expr *a, struct plan_expr *b)
{
    if (!compare_alike(a, b))
        return NULL;
    if ((op == SQL_IS || op == SQL_ISNOT) && (b->type == PLAN_NULL || a->type == PLAN_NULL)) {
        struct plan_expr *x = unary(r, X_IS_NULL, PLAN_INT, b->type == PLAN_NULL ? a : b);
        if (x)
            x->negated = op == SQL_ISNOT;
        return x;
    }
    if (a->type == PLAN_NULL || b->type == PLAN_NULL)
        return plan_const(r->plan, PLAN_NULL, COL_NULL);
    return binary(r, X_COMPARE, PLAN_INT, op, a, b);
}

struct plan_expr *read_null_order(struct reader *r, const struct sql_order *o, struct plan_expr *x)
{
    return (o->desc ? o->nulls_first : o->nulls_last) ? unary(r, X_IS_NULL, PLAN_INT, x) : NULL;
}

static bool is_truth_word(const struct sql_expr *x)
{
    return x->kind == EXPR_COLUMN && !x->table.len && (sql_name_is(x->name, "true") || sql_name_is(x->name, "false"));
}

static struct plan_expr *call_text(struct reader *r, enum plan_type type, const char *text, struct plan_expr *a,
                                   struct plan_expr *b)
{
    struct plan_expr *args[] = {a, b};
    return a && b ? plan_make_call(r->plan, type, text, args, 2) : NULL;
}

/* a || b || … as one call, so that no text is made on the way. */
static struct plan_expr *read_concatenation(struct reader *r, struct plan_expr *a, struct plan_expr *b)
{
    struct plan_expr *args[PLAN_MAX_CALL_ARGS];
    const struct plan_expr *sides[] = {a, b};
    uint32_t n = 0;
    const char *text = NULL;
    for (int side = 0; side < 2; side++) {
        const struct plan_expr *chain = format_is_concat(sides[side]);
        uint32_t n_parts = chain ? chain->n_args : 1;
        if (n + n_parts > PLAN_MAX_CALL_ARGS)
            return call_text(r, PLAN_TEXT, "SELECT ?1 || ?2", a, b);
        for (uint32_t i = 0; i < n_parts; i++)
            args[n++] = chain ? chain->args[i] : (side ? b : a);
    }
    for (uint32_t i = 0; i < n; i++)
        text = arena_printf(&r->plan->arena, "%s?%u", text ? arena_printf(&r->plan->arena, "%s || ", text) : "SELECT ",
                            i + 1);
    struct plan_expr *out = text ? plan_make_call(r->plan, PLAN_TEXT, text, args, n) : NULL;
    if (out)
        format_read_concat(r->plan, out);
    return out;
}

static struct plan_expr *read_operand(struct reader *r, uint8_t op, const struct sql_expr *x)
{
    bool arithmetic = op == SQL_ADD || op == SQL_SUBTRACT || op == SQL_MULTIPLY || op == SQL_DIVIDE;
    return arithmetic ? read_mixed(r, x) : read_expr(r, x);
}

static struct plan_expr *read_binary(struct reader *r, const struct sql_expr *x)
{
    if ((x->op == SQL_IS || x->op == SQL_ISNOT) && is_truth_word(x->args->next))
        return NULL; /* IS TRUE asks for more than equality */
    struct plan_expr *a, *b;
    bool compares = x->op <= SQL_GE || x->op == SQL_IS || x->op == SQL_ISNOT;
    if (compares) {
        if (!collate_pair(r, x->args, x->args->next, &a, &b))
            return NULL;
    } else if (!(a = read_operand(r, x->op, x->args)) || !(b = read_operand(r, x->op, x->args->next))) {
        return NULL;
    }
    switch (x->op) {
    case SQL_AND:
    case SQL_OR:
        return is_number(a) && is_number(b) ? binary(r, x->op == SQL_AND ? X_AND : X_OR, PLAN_INT, 0, a, b) : NULL;
    case SQL_ADD:
    case SQL_SUBTRACT:
    case SQL_MULTIPLY:
    case SQL_DIVIDE:
    case SQL_REMAINDER:
        if ((a->mixed && (b->mixed || b->type == PLAN_INT)) || (b->mixed && a->type == PLAN_INT))
            return NULL; /* of two integers the result is one */
        return read_arithmetic(r, x->op, mixed_to_real(r, a), mixed_to_real(r, b));
    case SQL_BIT_AND:
    case SQL_BIT_OR:
    case SQL_SHIFT_LEFT:
    case SQL_SHIFT_RIGHT:
        return is_integer(a) && is_integer(b) ? binary(r, X_ARITHMETIC, PLAN_INT, x->op, a, b) : NULL;
    case SQL_CONCAT:
        return read_concatenation(r, a, b);
    case SQL_IS: /* the parser has turned DISTINCT FROM into these */
    case SQL_ISNOT:
        return read_compare(r, x->op, a, b);
    default:
        return x->op <= SQL_GE ? read_compare(r, x->op, a, b) : NULL;
    }
}

static struct plan_expr *read_unary(struct reader *r, const struct sql_expr *x)
{
    bool asks_null = x->op == SQL_ISNULL || x->op == SQL_NOTNULL;
    struct plan_expr *a = asks_null ? read_mixed(r, x->args) : read_expr(r, x->args), *out;
    if (!a)
        return NULL;
    switch (x->op) {
    case SQL_ADD:
        return is_number(a) && a->op != X_COLUMN ? a : NULL; /* +column has no affinity; numbers show it nowhere */
    case SQL_SUBTRACT:
        if (x->args->kind == EXPR_INTEGER && a->type == PLAN_REAL)
            return NULL; /* the smallest integer: with its sign it is none too large */
        return is_number(a) ? unary(r, X_NEGATE, (enum plan_type)a->type, a) : NULL;
    case SQL_BIT_NOT:
        return is_integer(a) ? unary(r, X_BIT_NOT, PLAN_INT, a) : NULL;
    case SQL_NOT:
        return is_number(a) ? unary(r, X_NOT, PLAN_INT, a) : NULL;
    case SQL_ISNULL:
    case SQL_NOTNULL:
        out = unary(r, X_IS_NULL, PLAN_INT, a);
        if (out)
            out->negated = x->op == SQL_NOTNULL;
        return out;
    default:
        return NULL;
    }
}

/* x BETWEEN lo AND hi as x >= lo, x <= hi; false: not understood. Varied values are compared with literals only. */
static bool read_bounds(struct reader *r, const struct sql_expr *x, struct plan_expr **a, struct plan_expr **b)
{
    const struct sql_expr *from = x->args->next, *to = from->next;
    struct plan_expr *v = read_varied(r, x->args), *lo = v ? read_expr(r, from) : NULL;
    struct plan_expr *hi = lo ? read_expr(r, to) : NULL;
    if (hi && v->varied) {
        bool literals = varied_is_literal(from) && varied_is_literal(to);
        v = literals ? varied_compared(r->plan, v) : NULL;
        lo = varied_compared(r->plan, varied_of(r, lo));
        hi = varied_compared(r->plan, varied_of(r, hi));
    }
    *a = read_compare(r, SQL_GE, v, lo);
    *b = *a ? read_compare(r, SQL_LE, v, hi) : NULL;
    return *b != NULL;
}

static struct plan_expr *read_between(struct reader *r, const struct sql_expr *x)
{
    struct plan_expr *a, *b, *both = read_bounds(r, x, &a, &b) ? binary(r, X_AND, PLAN_INT, 0, a, b) : NULL;
    return both && x->negated ? unary(r, X_NOT, PLAN_INT, both) : both;
}

/* IN (literal, …) of the value's own type. */
static struct plan_expr *read_in(struct reader *r, const struct sql_expr *x)
{
    if (x->query)
        return read_lookup(r, x);
    if (x->in_table || x->n_args < 2)
        return NULL;
    const struct sql_expr *left = x->args;
    enum collation collation = collate_take(&left);
    struct plan_expr *v = collation == COLLATE_UNKNOWN
                              ? NULL
                              : collate_value(r, collation, varied_compared(r->plan, read_varied(r, left)));
    struct plan_expr *out = v && v->type != PLAN_REAL && v->type != PLAN_NULL ? unary(r, X_IN, PLAN_INT, v) : NULL;
    if (!out)
        return NULL;
    out->list = arena_alloc(&r->plan->arena, x->n_args * sizeof *out->list);
    out->negated = x->negated;
    for (const struct sql_expr *a = x->args->next; out->list && a; a = a->next) {
        struct plan_expr *c = collate_value(r, collation, read_argument(r, a));
        if (v->varied)
            c = varied_is_literal(a) ? varied_compared(r->plan, varied_of(r, c)) : NULL;
        if (!c || c->op != X_CONST || (c->type != PLAN_NULL && c->type != v->type))
            return NULL;
        if (c->type == PLAN_NULL)
            out->list_has_null = true;
        else
            out->list[out->n_list++] = c->word;
    }
    if (!out->list)
        return NULL;
    out->n_list = words_sort(out->list, out->n_list);
    return out;
}

static struct plan_expr *read_case(struct reader *r, const struct sql_expr *x)
{
    struct plan_expr *base = NULL, *when[PLAN_MAX_ITEMS], *then[PLAN_MAX_ITEMS + 1];
    uint32_t n = 0;
    const struct sql_expr *a = x->args;
    if (x->n_args > 2 * PLAN_MAX_ITEMS || (x->has_base && !(base = read_expr(r, a))))
        return NULL;
    if (x->has_base)
        a = a->next;
    for (; a && a->next; a = a->next->next, n++) {
        when[n] = read_expr(r, a);
        then[n] = when[n] ? read_mixed(r, a->next) : NULL;
        if (when[n] && base)
            when[n] = read_compare(r, SQL_EQ, base, when[n]);
        if (!when[n] || !then[n] || !is_number(when[n]))
            return NULL;
    }
    then[n] = a ? read_mixed(r, a) : plan_const(r->plan, PLAN_NULL, COL_NULL);
    struct plan_expr *out = then[n] ? plan_expr_new(r->plan, X_CASE, PLAN_NULL, 2 * n + 1) : NULL;
    if (!out || !mixed_unify(r, then, n + 1, out))
        return NULL;
    for (uint32_t i = 0; i <= 2 * n; i++) {
        out->args[i] = i == 2 * n ? then[n] : i % 2 ? then[i / 2] : when[i / 2];
        out->sources |= out->args[i]->sources;
    }
    return out;
}

static struct plan_expr *read_cast(struct reader *r, const struct sql_expr *x)
{
    static const struct {
        const char *name;
        enum plan_type type;
        const char *call;
    } types[] = {
        {"int", PLAN_INT, "SELECT CAST(?1 AS INTEGER)"},    {"integer", PLAN_INT, "SELECT CAST(?1 AS INTEGER)"},
        {"bigint", PLAN_INT, "SELECT CAST(?1 AS INTEGER)"}, {"long", PLAN_NULL, NULL},
        {"real", PLAN_REAL, "SELECT CAST(?1 AS REAL)"},     {"double", PLAN_REAL, "SELECT CAST(?1 AS REAL)"},
        {"float", PLAN_REAL, "SELECT CAST(?1 AS REAL)"},    {"text", PLAN_TEXT, "SELECT CAST(?1 AS TEXT)"}};
    const struct sql_token *t = &r->tree->tokens[x->type.first];
    bool text = token_is(t->text, t->len, "text");
    struct plan_expr *a = read_mixed(r, x->args), *out = NULL;
    bool varied = a && a->varied;
    if (a && !varied)
        a = text && a->mixed ? NULL : mixed_to_real(r, a);
    if (!a || x->type.end != x->type.first + 1)
        return NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!token_is(t->text, t->len, types[i].name) || !types[i].call)
            continue;
        enum plan_type to = types[i].type;
        if (varied)
            out = plan_make_call(r->plan, to, types[i].call, &a, 1);
        else if (a->type == to || a->type == PLAN_NULL)
            out = to == PLAN_INT ? unary(r, X_TO_INT, to, a) : to == PLAN_REAL ? unary(r, X_TO_REAL, to, a) : NULL;
        else if (to == PLAN_REAL && a->type == PLAN_INT)
            out = unary(r, X_TO_REAL, to, a);
        else if (to == PLAN_INT && a->type == PLAN_REAL)
            out = unary(r, X_TO_INT, to, a);
        else
            out = plan_make_call(r->plan, to, types[i].call, &a, 1);
        if (out)
            out->letter = to == PLAN_INT ? 'i' : to == PLAN_REAL ? 'd' : 't';
    }
    return out;
}

static struct plan_expr *read_match(struct reader *r, const struct sql_expr *x)
{
    static const struct {
        uint8_t op, n_args;
        const char *call;
    } matches[] = {{SQL_LIKE, 2, "SELECT ?1 LIKE ?2"},
                   {SQL_LIKE, 3, "SELECT ?1 LIKE ?2 ESCAPE ?3"},
                   {SQL_GLOB, 2, "SELECT ?1 GLOB ?2"},
                   {SQL_REGEXP, 2, "SELECT ?1 REGEXP ?2"}};
    struct plan_expr *args[3] = {NULL}, *out = NULL;
    uint32_t n = 0;
    for (const struct sql_expr *a = x->args; a && n < 3; a = a->next)
        if (!(args[n] = read_varied(r, a)) || args[n++]->type != PLAN_TEXT)
            return NULL;
    for (size_t i = 0; i < sizeof matches / sizeof *matches && !out; i++)
        if (matches[i].op == x->op && matches[i].n_args == x->n_args)
            out = plan_make_call(r->plan, PLAN_INT, matches[i].call, args, n);
    return out && x->negated ? unary(r, X_NOT, PLAN_INT, out) : out;
}

static struct plan_expr *read_any(struct reader *r, const struct sql_expr *x)
{
    if (x == r->known && x)
        return r->known_as;
    struct plan_expr *out = read_constant(r, x);
    if (out)
        return out;
    switch (x->kind) {
    case EXPR_COLUMN:
        return read_column(r, x);
    case EXPR_PARAMETER:
        return read_argument(r, x);
    case EXPR_UNARY:
        return read_unary(r, x);
    case EXPR_BINARY:
        return read_binary(r, x);
    case EXPR_BETWEEN:
        return read_between(r, x);
    case EXPR_IN:
        return read_in(r, x);
    case EXPR_CASE:
        return read_case(r, x);
    case EXPR_CAST:
        return read_cast(r, x);
    case EXPR_MATCH:
        return read_match(r, x);
    case EXPR_EXISTS:
        return read_lookup(r, x);
    case EXPR_SELECT:
        out = read_lookup(r, x);
        return out ? out : read_query(r, x);
    case EXPR_FUNCTION:
        return x->over ? read_window(r, x) : read_function(r, x);
    default:
        return NULL;
    }
}

struct plan_expr *read_expr(struct reader *r, const struct sql_expr *x)
{
    bool mixed = r->mixed_allowed;
    r->mixed_allowed = mixed && x->kind == EXPR_COLUMN; /* an alias stands for what it names */
    struct plan_expr *out = read_any(r, x);
    r->mixed_allowed = false;
    return out && out->mixed && !mixed ? NULL : out;
}

/* NOT x, or the comparison that says so. */
static struct plan_expr *deny(struct reader *r, struct plan_expr *x)
{
    static const uint8_t other[] = {[SQL_EQ] = SQL_NE, [SQL_NE] = SQL_EQ, [SQL_LT] = SQL_GE,
                                    [SQL_LE] = SQL_GT, [SQL_GT] = SQL_LE, [SQL_GE] = SQL_LT};
    bool compares = x->op == X_COMPARE && x->sql < sizeof other;
    if (!compares && x->op != X_IN && x->op != X_IS_NULL)
        return unary(r, X_NOT, PLAN_INT, x);
    struct plan_expr *out = plan_expr_like(r->plan, x);
    for (uint32_t i = 0; out && i < x->n_args; i++)
        out->args[i] = x->args[i];
    if (!out)
        return NULL;
    out->sources = x->sources;
    if (compares)
        out->sql = other[x->sql];
    else
        out->negated = !x->negated;
    return out;
}

static bool is_or(const struct sql_expr *x)
{
    return x->kind == EXPR_BINARY && x->op == SQL_OR;
}

/* NOT (a OR b) as NOT a, NOT b. */
static bool read_denied(struct reader *r, const struct sql_expr *x, struct plan_expr **terms, uint32_t *n)
{
    if (is_or(x))
        return read_denied(r, x->args, terms, n) && read_denied(r, x->args->next, terms, n);
    struct plan_expr *term = read_expr(r, x), *denied = is_number(term) ? deny(r, term) : NULL;
    if (!denied || *n == PLAN_MAX_TESTS)
        return false;
    terms[(*n)++] = denied;
    return true;
}

bool read_conjunction(struct reader *r, const struct sql_expr *x, struct plan_expr **terms, uint32_t *n)
{
    if (x->kind == EXPR_BINARY && x->op == SQL_AND)
        return read_conjunction(r, x->args, terms, n) && read_conjunction(r, x->args->next, terms, n);
    if (rows_are_compared(x))
        return read_rows_compared(r, x, terms, n);
    if (x->kind == EXPR_BETWEEN && !x->negated) {
        struct plan_expr *a, *b;
        if (!read_bounds(r, x, &a, &b) || *n + 2 > PLAN_MAX_TESTS)
            return false;
        terms[(*n)++] = a;
        terms[(*n)++] = b;
        return true;
    }
    if (x->kind == EXPR_UNARY && x->op == SQL_NOT && is_or(x->args))
        return read_denied(r, x->args, terms, n);
    if (pointer_is_bound(r, x))
        return true;
    struct plan_expr *term = read_expr(r, x);
    if (!term || !is_number(term) || *n == PLAN_MAX_TESTS)
        return false;
    terms[(*n)++] = term;
    return true;
}
