/* Computes expressions for a batch of rows at a time: each operator is a loop over words. What a word cannot hold (an
 * integer beyond 64 bits, the smallest of them, which stands for NULL) makes the run give up. */
#include "base/bisect.h"
#include "base/vectorised.h"
#include "sql/plan/varied.h"

#include <math.h>
#include <string.h>

static void give_up(struct run *r)
{
    if (!r->rc)
        r->rc = RUN_GAVE_UP;
}

/* ---- columns ---- */

static int16_t column_of(const struct run *r, const struct plan_expr *x)
{
    /* aggregates stand behind the columns of their stage, however many those have become */
    if (x->source == PLAN_GROUPS && x->column >= PLAN_MAX_ITEMS)
        return (int16_t)(x->column - PLAN_MAX_ITEMS + (int)r->plan->groups.n_columns);
    return x->column;
}

static void eval_column(struct run *r, const struct plan_expr *x, const struct batch *b, int64_t *out)
{
    const uint32_t *rows = b->rows[x->source];
    int16_t at = column_of(r, x);
    bool missing = false;
    for (uint32_t i = 0; i < b->n; i++)
        missing |= rows[i] == (uint32_t)NO_ROW;
    if (at == VTAB_ROW) {
        for (uint32_t i = 0; i < b->n; i++)
            out[i] = rows[i] == (uint32_t)NO_ROW ? COL_NULL : (int64_t)rows[i];
        return;
    }
    const struct column *c = &r->tables[x->source]->columns[at];
    if (!missing) {
        column_gather(c, rows, b->n, out);
        return;
    }
    int64_t null = plan_null((enum plan_type)x->type);
    for (uint32_t i = 0; i < b->n; i++)
        out[i] = rows[i] == (uint32_t)NO_ROW ? null : column_get(c, rows[i]);
}

/* ---- arithmetic ---- */

#define EACH                                                                                                           \
    for (uint32_t i = 0; i < n; i++)                                                                                   \
        if (a[i] == COL_NULL || b[i] == COL_NULL)                                                                      \
            out[i] = COL_NULL;                                                                                         \
        else

static int64_t shift(int64_t v, int64_t by, bool left)
{
    if (by < 0) {
        left = !left;
        by = by > -64 ? -by : 64;
    }
    if (by >= 64)
        return v >= 0 || left ? 0 : -1;
    if (left)
        return (int64_t)((uint64_t)v << by);
    return v >= 0 ? v >> by : (int64_t) ~(~(uint64_t)v >> by);
}

static void eval_integers(struct run *r, uint8_t op, const int64_t *a, const int64_t *b, uint32_t n, int64_t *out)
{
    bool bad = false;
    switch (op) {
    case SQL_ADD:
        EACH bad |= __builtin_add_overflow(a[i], b[i], &out[i]) || out[i] == COL_NULL;
        break;
    case SQL_SUBTRACT:
        EACH bad |= __builtin_sub_overflow(a[i], b[i], &out[i]) || out[i] == COL_NULL;
        break;
    case SQL_MULTIPLY:
        EACH bad |= __builtin_mul_overflow(a[i], b[i], &out[i]) || out[i] == COL_NULL;
        break;
    case SQL_DIVIDE:
        EACH out[i] = b[i] ? a[i] / b[i] : COL_NULL;
        break;
    case SQL_REMAINDER:
        EACH out[i] = b[i] ? a[i] % b[i] : COL_NULL;
        break;
    case SQL_BIT_AND:
        EACH out[i] = a[i] & b[i];
        break;
    case SQL_BIT_OR:
        EACH out[i] = a[i] | b[i];
        break;
    default:
        EACH
        {
            out[i] = shift(a[i], b[i], op == SQL_SHIFT_LEFT);
            bad |= out[i] == COL_NULL;
        }
        break;
    }
    if (bad)
        give_up(r);
}

/* NaN is NULL, before and after. */
static void eval_reals(uint8_t op, const int64_t *a, const int64_t *b, uint32_t n, int64_t *out)
{
    for (uint32_t i = 0; i < n; i++) {
        double x = column_f64(a[i]), y = column_f64(b[i]), v;
        switch (op) {
        case SQL_ADD:
            v = x + y;
            break;
        case SQL_SUBTRACT:
            v = x - y;
            break;
        case SQL_MULTIPLY:
            v = x * y;
            break;
        default:
            v = y == 0 ? NAN : x / y;
            break;
        }
        out[i] = column_f64_word(v);
    }
}

static void eval_arithmetic(struct run *r, const struct plan_expr *x, const struct batch *b, int64_t *out)
{
    const int64_t *l = eval(r, x->args[0], b), *g = eval(r, x->args[1], b);
    if (x->type == PLAN_REAL)
        eval_reals(x->sql, l, g, b->n, out);
    else
        eval_integers(r, x->sql, l, g, b->n, out);
}

/* ---- comparing ---- */

static int order_int_real(int64_t i, double d)
{
    long double a = (long double)i, b = (long double)d; /* as SQLite does; exact where it has 64 bits */
    return (a > b) - (a < b);
}

static int order_text(const struct strpool *strings, int64_t a, int64_t b)
{
    if (a == b)
        return 0;
    struct slice s = strpool_view(strings, (strid)a), t = strpool_view(strings, (strid)b);
    int order = memcmp(s.p, t.p, s.len < t.len ? s.len : t.len);
    return order ? order : (s.len > t.len) - (s.len < t.len);
}

static bool holds(uint8_t op, int order)
{
    switch (op) {
    case SQL_EQ:
    case SQL_IS:
        return order == 0;
    case SQL_NE:
    case SQL_ISNOT:
        return order != 0;
    case SQL_LT:
        return order < 0;
    case SQL_LE:
        return order <= 0;
    case SQL_GT:
        return order > 0;
    default:
        return order >= 0;
    }
}

VECTORISED static void compare_integers(uint8_t op, const int64_t *a, const int64_t *b, uint32_t n, int64_t *out)
{
    switch (op) {
    case SQL_EQ:
        EACH out[i] = a[i] == b[i];
        break;
    case SQL_NE:
        EACH out[i] = a[i] != b[i];
        break;
    case SQL_LT:
        EACH out[i] = a[i] < b[i];
        break;
    case SQL_LE:
        EACH out[i] = a[i] <= b[i];
        break;
    case SQL_GT:
        EACH out[i] = a[i] > b[i];
        break;
    default:
        EACH out[i] = a[i] >= b[i];
        break;
    }
}

/* Equal texts have equal numbers. */
VECTORISED static void equal_words(const int64_t *a, const int64_t *b, int64_t null, bool equal, uint32_t n,
                                   int64_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = a[i] == null || b[i] == null ? COL_NULL : (a[i] == b[i]) == equal;
}

static void eval_compare(struct run *r, const struct plan_expr *x, const struct batch *batch, int64_t *out)
{
    const struct plan_expr *l = x->args[0], *g = x->args[1];
    const int64_t *a = eval(r, l, batch), *b = eval(r, g, batch);
    enum plan_type ta = (enum plan_type)l->type, tb = (enum plan_type)g->type;
    bool is = x->sql == SQL_IS || x->sql == SQL_ISNOT;
    if (ta == PLAN_INT && tb == PLAN_INT && !is) {
        compare_integers(x->sql, a, b, batch->n, out);
        return;
    }
    int64_t na = plan_null(ta), nb = plan_null(tb);
    if (ta == PLAN_TEXT && (x->sql == SQL_EQ || x->sql == SQL_NE)) {
        equal_words(a, b, na, x->sql == SQL_EQ, batch->n, out);
        return;
    }
    for (uint32_t i = 0; i < batch->n; i++) {
        int order;
        if (a[i] == na || b[i] == nb) {
            bool same = a[i] == na && b[i] == nb;
            out[i] = is ? same == (x->sql == SQL_IS) : COL_NULL;
            continue;
        }
        if (ta == PLAN_TEXT)
            order = order_text(&r->e->storage->strings, a[i], b[i]);
        else if (ta == PLAN_INT && tb == PLAN_INT)
            order = (a[i] > b[i]) - (a[i] < b[i]);
        else if (ta == PLAN_INT)
            order = order_int_real(a[i], column_f64(b[i]));
        else if (tb == PLAN_INT)
            order = -order_int_real(b[i], column_f64(a[i]));
        else
            order = (column_f64(a[i]) > column_f64(b[i])) - (column_f64(a[i]) < column_f64(b[i]));
        out[i] = holds(x->sql, order);
    }
}

/* ---- logic ---- */

/* 1, 0, or COL_NULL. */
static inline int64_t truth(enum plan_type type, int64_t word)
{
    if (type == PLAN_REAL)
        return word == COL_NULL_F64 ? COL_NULL : column_f64(word) != 0;
    return word == COL_NULL ? COL_NULL : word != 0;
}

/* Without branches: so that the compiler finds vector code for it. */
VECTORISED static void logic_of_integers(const int64_t *a, const int64_t *b, int64_t decides, uint32_t n, int64_t *out)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t l = a[i] == COL_NULL ? 2 : a[i] != 0, g = b[i] == COL_NULL ? 2 : b[i] != 0;
        int64_t open = l == 2 || g == 2 ? COL_NULL : !decides;
        out[i] = l == decides || g == decides ? decides : open;
    }
}

VECTORISED static void nulls_of(const int64_t *a, int64_t null, bool negated, uint32_t n, int64_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (a[i] == null) != negated;
}

static void eval_logic(struct run *r, const struct plan_expr *x, const struct batch *batch, int64_t *out)
{
    const int64_t *a = eval(r, x->args[0], batch), *b = eval(r, x->args[1], batch);
    enum plan_type ta = (enum plan_type)x->args[0]->type, tb = (enum plan_type)x->args[1]->type;
    int64_t decides = x->op == X_OR; /* alone */
    if (ta != PLAN_REAL && tb != PLAN_REAL) {
        logic_of_integers(a, b, decides, batch->n, out);
        return;
    }
    for (uint32_t i = 0; i < batch->n; i++) {
        int64_t l = truth(ta, a[i]), g = truth(tb, b[i]);
        if (l == decides || g == decides)
            out[i] = decides;
        else
            out[i] = l == COL_NULL || g == COL_NULL ? COL_NULL : !decides;
    }
}

static void eval_in(struct run *r, const struct plan_expr *x, const struct batch *batch, int64_t *out)
{
    const int64_t *a = eval(r, x->args[0], batch);
    int64_t null = plan_null((enum plan_type)x->args[0]->type);
    for (uint32_t i = 0; i < batch->n; i++) {
        uint32_t at = x->n_list;
        BISECT(at, mid, x->list[mid] < a[i]);
        if (a[i] == null)
            out[i] = COL_NULL;
        else if (at < x->n_list && x->list[at] == a[i])
            out[i] = !x->negated;
        else
            out[i] = x->list_has_null ? COL_NULL : x->negated;
    }
}

/* The branches are computed for the rows that take them only: others may divide by zero, or overflow. */
static void eval_case(struct run *r, const struct plan_expr *x, const struct batch *batch, int64_t *out)
{
    int64_t null = plan_null((enum plan_type)x->type);
    const int64_t *values[2 * PLAN_MAX_ITEMS + 2];
    for (uint32_t k = 0; k < x->n_args; k++)
        values[k] = eval(r, x->args[k], batch);
    for (uint32_t i = 0; i < batch->n; i++) {
        uint32_t k = 0;
        while (k + 1 < x->n_args && truth((enum plan_type)x->args[k]->type, values[k][i]) != 1)
            k += 2;
        uint32_t taken = k + 1 < x->n_args ? k + 1 : k;
        out[i] = x->args[taken]->type == PLAN_NULL ? null : values[taken][i];
    }
}

static void eval_coalesce(struct run *r, const struct plan_expr *x, const struct batch *batch, int64_t *out)
{
    int64_t null = plan_null((enum plan_type)x->type);
    for (uint32_t i = 0; i < batch->n; i++)
        out[i] = null;
    for (uint32_t k = 0; k < x->n_args; k++) {
        if (x->args[k]->type == PLAN_NULL)
            continue;
        const int64_t *v = eval(r, x->args[k], batch);
        for (uint32_t i = 0; i < batch->n; i++)
            out[i] = out[i] == null ? v[i] : out[i];
    }
}

/* ---- of one argument ---- */

static void eval_unary(struct run *r, const struct plan_expr *x, const struct batch *batch, int64_t *out)
{
    const int64_t *a = eval(r, x->args[0], batch);
    enum plan_type type = (enum plan_type)x->args[0]->type;
    int64_t null = plan_null(type);
    bool real = type == PLAN_REAL, bad = false;
    if (x->op == X_IS_NULL) {
        nulls_of(a, null, x->negated, batch->n, out);
        return;
    }
    for (uint32_t i = 0; i < batch->n; i++) {
        bool is_null = a[i] == null;
        double d = real ? column_f64(a[i]) : 0;
        switch (x->op) {
        case X_NEGATE:
            out[i] = is_null ? null : real ? column_f64_word(0.0 - d) : -a[i];
            break;
        case X_BIT_NOT:
            out[i] = is_null ? null : ~a[i];
            bad |= !is_null && out[i] == COL_NULL;
            break;
        case X_NOT: {
            int64_t t = truth(type, a[i]);
            out[i] = t == COL_NULL ? COL_NULL : !t;
            break;
        }
        case X_TO_REAL:
            out[i] = is_null ? COL_NULL_F64 : real ? mixed_real_word(a[i]) : column_f64_word((double)a[i]);
            break;
        case X_TO_INT:
            out[i] = is_null ? COL_NULL : real ? plan_integer_of(d) : a[i];
            bad |= !is_null && out[i] == COL_NULL;
            break;
        default: /* X_ABS */
            out[i] = is_null ? null : real ? column_f64_word(d < 0 ? -d : d) : a[i] < 0 ? -a[i] : a[i];
            break;
        }
    }
    if (bad)
        give_up(r);
}

static void eval_least(struct run *r, const struct plan_expr *x, const struct batch *batch, int64_t *out)
{
    const int64_t *a = eval(r, x->args[0], batch), *b = eval(r, x->args[1], batch);
    int64_t null = plan_null((enum plan_type)x->type);
    bool real = x->type == PLAN_REAL, unknown = x->args[0]->type == PLAN_NULL || x->args[1]->type == PLAN_NULL;
    for (uint32_t i = 0; i < batch->n; i++) {
        if (unknown || a[i] == null || b[i] == null) {
            out[i] = null;
            continue;
        }
        int64_t v = x->mixed ? mixed_real_word(a[i]) : a[i], w = x->mixed ? mixed_real_word(b[i]) : b[i];
        bool more = real ? column_f64(w) > column_f64(v) : w > v;
        bool less = real ? column_f64(w) <= column_f64(v) : w < v; /* of equal zeros min() gives the last */
        out[i] = (x->negated ? more : less) ? b[i] : a[i];
    }
}

static void eval_null_row(struct run *r, const struct plan_expr *x, const struct batch *batch, int64_t *out)
{
    const int64_t *a = eval(r, x->args[0], batch);
    const uint32_t *rows = batch->rows[x->source];
    for (uint32_t i = 0; i < batch->n; i++)
        out[i] = rows[i] == (uint32_t)NO_ROW ? plan_null((enum plan_type)x->type) : a[i];
}

static void eval_arg(struct run *r, const struct plan_expr *x, const struct batch *batch, int64_t *out)
{
    static const enum plan_type types[] = {
        [FOUND_INTEGER] = PLAN_INT, [FOUND_TEXT] = PLAN_TEXT, [FOUND_REAL] = PLAN_REAL};
    const int64_t *sets = eval(r, x->args[0], batch);
    for (uint32_t i = 0; i < batch->n && !r->rc; i++) {
        int64_t word = 0;
        enum arg_found found =
            sets[i] == COL_NULL ? FOUND_NOTHING : engine_find_arg(r->e, sets[i], (strid)x->word, &word);
        out[i] = found == FOUND_NOTHING ? plan_null((enum plan_type)x->type) : word;
        if (found == FOUND_NO_MEMORY)
            r->rc = SQLITE_NOMEM;
        else if (found == FOUND_INTEGER && word == COL_NULL)
            give_up(r);
        else if (found != FOUND_NOTHING && x->varied)
            out[i] = varied_word(r, types[found], word);
        else if (found != FOUND_NOTHING && types[found] != x->type)
            give_up(r);
    }
    run_stopped(r);
}

/* ---- any ---- */

static void compute(struct run *r, const struct plan_expr *x, const struct batch *b, int64_t *out)
{
    switch (x->op) {
    case X_CONST:
        for (uint32_t i = 0; i < BATCH; i++)
            out[i] = x->word;
        break;
    case X_COLUMN:
        eval_column(r, x, b, out);
        break;
    case X_RESULT:
        memcpy(out, r->results[x->column] + b->at, b->n * sizeof *out);
        break;
    case X_NULL_ROW:
        eval_null_row(r, x, b, out);
        break;
    case X_ARITHMETIC:
        eval_arithmetic(r, x, b, out);
        break;
    case X_COMPARE:
        eval_compare(r, x, b, out);
        break;
    case X_AND:
    case X_OR:
        eval_logic(r, x, b, out);
        break;
    case X_IN:
        eval_in(r, x, b, out);
        break;
    case X_CASE:
        eval_case(r, x, b, out);
        break;
    case X_COALESCE:
        eval_coalesce(r, x, b, out);
        break;
    case X_LEAST:
        eval_least(r, x, b, out);
        break;
    case X_CALL:
        eval_call(r, x, b, out);
        break;
    case X_VARIED:
    case X_COMPARABLE:
    case X_SUMMAND:
        eval_varied(r, x, b, out);
        break;
    case X_ARG:
        eval_arg(r, x, b, out);
        break;
    case X_LOOKUP:
        eval_lookup(r, x, b, out);
        break;
    default:
        eval_unary(r, x, b, out);
        break;
    }
}

const int64_t *eval(struct run *r, const struct plan_expr *x, const struct batch *b)
{
    static const int64_t nothing[BATCH];
    bool constant = x->op == X_CONST;
    if (r->values[x->slot] && r->serials[x->slot] == (constant ? UINT64_MAX : b->serial))
        return r->values[x->slot];
    if (!r->values[x->slot]) {
        r->values[x->slot] = run_alloc(r, BATCH * sizeof(int64_t)) ? mem_alloc(BATCH * sizeof(int64_t)) : NULL;
        if (!r->values[x->slot] && !r->rc)
            r->rc = SQLITE_NOMEM;
    }
    if (r->rc)
        return r->values[x->slot] ? r->values[x->slot] : nothing;
    r->serials[x->slot] = constant ? UINT64_MAX : b->serial;
    compute(r, x, b, r->values[x->slot]);
    if (r->rc) /* it may have ended half way: what looks at these words must find texts that exist */
        memset(r->values[x->slot], 0, BATCH * sizeof(int64_t));
    return r->values[x->slot];
}

uint32_t eval_filter(struct run *r, struct plan_expr *const *tests, uint32_t n_tests, const struct batch *b,
                     uint32_t *keep)
{
    uint32_t n = b->n;
    for (uint32_t i = 0; i < n; i++)
        keep[i] = i;
    for (uint32_t t = 0; t < n_tests && n && !r->rc; t++) {
        const int64_t *v = eval(r, tests[t], b);
        enum plan_type type = (enum plan_type)tests[t]->type;
        uint32_t left = 0;
        for (uint32_t i = 0; i < n; i++) {
            keep[left] = keep[i];
            left += truth(type, v[keep[i]]) == 1;
        }
        n = left;
    }
    return r->rc ? 0 : n;
}
