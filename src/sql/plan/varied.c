/* Values of which each has a type of its own: extract_arg() of a key whose values have several, coalesce(value,
 * 'none').
 *
 * Their type is PLAN_TEXT. Their words number texts of the string pool that stand for them: one text a value, in the
 * order that SQLite has for values. So they are grouped, sorted and compared as texts are:
 *
 *     number   01, the nearest real, the integer (both so that their bytes ascend), 'I' or 'R'
 *     text     02, its bytes
 *
 * An integer and a real that are equal show as what they are, but compare as the integer: X_COMPARABLE. All are marked
 * `mixed`, too: read_expr() gives them to nobody who does not know them. */
#include "sql/plan/varied.h"

#include <string.h>

enum { NUMBER = 1, TEXT = 2, NUMBER_BYTES = 18, SHORT = 256 };

/* ---- words ---- */

static void put_u64(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (56 - 8 * i));
}

static uint64_t get_u64(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | p[i];
    return v;
}

#define SIGN (1ull << 63)

static uint64_t ascending_of_real(double d)
{
    uint64_t bits = (uint64_t)column_f64_word(d);
    return bits & SIGN ? ~bits : bits | SIGN;
}

static double real_of_ascending(uint64_t v)
{
    return column_f64((int64_t)(v & SIGN ? v & ~SIGN : ~v));
}

/* What tells integers apart that have one nearest real, and those from the real itself. */
static uint64_t ascending_of_whole(double d)
{
    if (d >= 9223372036854775808.0)
        return UINT64_MAX;
    return d > -9223372036854775808.0 ? (uint64_t)(int64_t)d ^ SIGN : 0;
}

static bool intern(struct strpool *strings, const void *p, size_t n, int64_t *out, int *rc)
{
    *out = strpool_intern(strings, p, n);
    *rc = *out ? 0 : SQLITE_NOMEM;
    return *out != 0;
}

static bool from_number(struct strpool *strings, enum plan_type type, int64_t word, int64_t *out, int *rc)
{
    uint8_t bytes[NUMBER_BYTES] = {NUMBER};
    double d = type == PLAN_REAL ? column_f64(word) : (double)word;
    put_u64(bytes + 1, ascending_of_real(d));
    put_u64(bytes + 9, type == PLAN_REAL ? ascending_of_whole(d) : (uint64_t)word ^ SIGN);
    bytes[NUMBER_BYTES - 1] = type == PLAN_REAL ? 'R' : 'I';
    return intern(strings, bytes, sizeof bytes, out, rc);
}

/* The integer that is equal to a real; false: there is none. */
static bool integer_of(double d, int64_t *out)
{
    bool inside = d >= -9223372036854775808.0 && d < 9223372036854775808.0;
    *out = inside ? (int64_t)d : 0;
    return inside && (double)*out == d && *out != COL_NULL;
}

bool varied_comparable(struct strpool *strings, int64_t word, int64_t *out, int *rc)
{
    struct varied_value v = varied_value_of(strings, word);
    int64_t integer;
    *out = word;
    *rc = 0;
    return v.type != PLAN_REAL || !integer_of(column_f64(v.word), &integer) ||
           from_number(strings, PLAN_INT, integer, out, rc);
}

int varied_compare(const struct strpool *strings, int64_t a, int64_t b)
{
    struct slice s = strpool_view(strings, (strid)a), t = strpool_view(strings, (strid)b);
    struct varied_value v = varied_value_of(strings, a), w = varied_value_of(strings, b);
    bool zeros = v.type != PLAN_TEXT && w.type != PLAN_TEXT && !((uint64_t)v.word << 1) && !((uint64_t)w.word << 1);
    if (zeros)
        return 0;
    if (v.type != PLAN_TEXT && w.type != PLAN_TEXT) /* equal but for their types */
        s.len = t.len = NUMBER_BYTES - 1;
    return slice_cmp(s, t);
}

static bool from_text(struct strpool *strings, struct slice text, int64_t *out, int *rc)
{
    uint8_t room[SHORT], *p = text.len < sizeof room ? room : mem_alloc(text.len + 1);
    bool ok = p != NULL;
    *rc = ok ? 0 : SQLITE_NOMEM;
    if (ok) {
        p[0] = TEXT;
        memcpy(p + 1, text.p, text.len);
        ok = intern(strings, p, text.len + 1, out, rc);
    }
    if (p != room)
        mem_free(p);
    return ok;
}

bool varied_from(struct strpool *strings, enum plan_type type, int64_t word, int64_t *out, int *rc)
{
    *out = 0;
    *rc = 0;
    if (word == plan_null(type))
        return true;
    return type == PLAN_TEXT ? from_text(strings, strpool_view(strings, (strid)word), out, rc)
                             : from_number(strings, type, word, out, rc);
}

bool varied_from_column(struct strpool *strings, sqlite3_stmt *stmt, int64_t *out, int *rc)
{
    *out = 0;
    *rc = 0;
    switch (sqlite3_column_type(stmt, 0)) {
    case SQLITE_NULL:
        return true;
    case SQLITE_INTEGER:
        *rc = RUN_GAVE_UP;
        return sqlite3_column_int64(stmt, 0) != COL_NULL &&
               from_number(strings, PLAN_INT, sqlite3_column_int64(stmt, 0), out, rc);
    case SQLITE_FLOAT:
        return from_number(strings, PLAN_REAL, column_f64_word(sqlite3_column_double(stmt, 0)), out, rc);
    case SQLITE_TEXT: {
        const void *p = sqlite3_column_text(stmt, 0);
        return from_text(strings, slice_of(p, (size_t)sqlite3_column_bytes(stmt, 0)), out, rc);
    }
    default:
        *rc = RUN_GAVE_UP;
        return false;
    }
}

struct varied_value varied_value_of(const struct strpool *strings, int64_t word)
{
    struct varied_value v = {PLAN_NULL, COL_NULL, {0}};
    struct slice s = word ? strpool_view(strings, (strid)word) : slice_of("", 0);
    const uint8_t *p = (const uint8_t *)s.p;
    if (s.len && p[0] == TEXT) {
        v.type = PLAN_TEXT;
        v.text = slice_of(p + 1, s.len - 1);
    } else if (s.len == NUMBER_BYTES && p[NUMBER_BYTES - 1] == 'I') {
        v.type = PLAN_INT;
        v.word = (int64_t)(get_u64(p + 9) ^ SIGN);
    } else if (s.len == NUMBER_BYTES) {
        v.type = PLAN_REAL;
        v.word = column_f64_word(real_of_ascending(get_u64(p + 1)));
    }
    return v;
}

void varied_bind(struct engine *e, sqlite3_stmt *stmt, int at, int64_t word)
{
    struct varied_value v = varied_value_of(&e->storage->strings, word);
    if (v.type == PLAN_TEXT)
        sqlite3_bind_text(stmt, at, (const char *)v.text.p, (int)v.text.len, SQLITE_TRANSIENT);
    else
        plan_bind_word(e, stmt, at, v.type, v.word);
}

void varied_result(struct engine *e, sqlite3_context *ctx, int64_t word)
{
    struct varied_value v = varied_value_of(&e->storage->strings, word);
    if (v.type == PLAN_TEXT)
        sqlite3_result_text(ctx, (const char *)v.text.p, (int)v.text.len, SQLITE_TRANSIENT);
    else if (v.type == PLAN_INT)
        sqlite3_result_int64(ctx, v.word);
    else if (v.type == PLAN_REAL)
        sqlite3_result_double(ctx, column_f64(v.word));
}

/* Could SQLite read a number at its beginning? */
static bool may_be_number(struct slice text)
{
    return text.len &&
           !strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_:/[({<", ((const char *)text.p)[0]);
}

bool varied_summand(const struct strpool *strings, int64_t word, int64_t *out)
{
    struct varied_value v = varied_value_of(strings, word);
    *out = v.type == PLAN_REAL ? v.word : v.type == PLAN_TEXT ? column_f64_word(0) : COL_NULL_F64;
    if (v.type == PLAN_INT)
        return mixed_from_integer(v.word, out);
    return v.type != PLAN_TEXT || !may_be_number(v.text);
}

/* ---- rows ---- */

int64_t varied_word(struct run *r, enum plan_type type, int64_t word)
{
    struct strpool *strings = &r->e->storage->strings;
    uint32_t before = strings->n;
    int64_t out = 0;
    int rc;
    if (!varied_from(strings, type, word, &out, &rc))
        r->rc = r->rc ? r->rc : rc;
    else
        run_note_texts(r, before, out ? strpool_view(strings, (strid)out).len : 0);
    return r->rc ? 0 : out;
}

void eval_varied(struct run *r, const struct plan_expr *x, const struct batch *batch, int64_t *out)
{
    struct strpool *strings = &r->e->storage->strings;
    const int64_t *a = eval(r, x->args[0], batch);
    const uint32_t before = strings->n;
    bool ok = true;
    for (uint32_t i = 0; i < batch->n && !r->rc; i++) {
        if (x->op == X_VARIED)
            out[i] = varied_word(r, (enum plan_type)x->args[0]->type, a[i]);
        else if (x->op == X_COMPARABLE)
            varied_comparable(strings, a[i], &out[i], &r->rc);
        else
            ok &= varied_summand(strings, a[i], &out[i]);
    }
    if (x->op == X_COMPARABLE)
        run_note_texts(r, before, 0);
    if (!ok && !r->rc)
        r->rc = RUN_GAVE_UP;
}

/* ---- expressions ---- */

bool varied_is_literal(const struct sql_expr *x)
{
    if (x->kind == EXPR_UNARY && x->op == SQL_SUBTRACT)
        x = x->args;
    return x->kind == EXPR_NULL || x->kind == EXPR_INTEGER || x->kind == EXPR_FLOAT || x->kind == EXPR_STRING;
}

struct plan_expr *varied_mark(struct plan_expr *x)
{
    if (x)
        x->mixed = x->varied = true;
    return x;
}

struct plan_expr *varied_of(struct reader *r, struct plan_expr *x)
{
    int rc;
    int64_t word;
    if (!x || x->varied || x->type == PLAN_NULL)
        return x;
    if (x->mixed)
        return NULL;
    if (x->op == X_CONST)
        return varied_from(&r->planner->e->storage->strings, (enum plan_type)x->type, x->word, &word, &rc)
                   ? varied_mark(plan_const(r->plan, PLAN_TEXT, word))
                   : NULL;
    return varied_mark(plan_unary(r->plan, X_VARIED, PLAN_TEXT, x));
}

struct plan_expr *varied_compared(struct query_plan *p, struct plan_expr *x)
{
    int rc;
    int64_t word;
    if (!x || !x->varied)
        return x;
    if (x->op == X_CONST)
        return varied_comparable(&p->e->storage->strings, x->word, &word, &rc)
                   ? varied_mark(plan_const(p, PLAN_TEXT, word))
                   : NULL;
    return varied_mark(plan_unary(p, X_COMPARABLE, PLAN_TEXT, x));
}

struct plan_expr *read_varied(struct reader *r, const struct sql_expr *x)
{
    struct plan_expr *out = read_mixed(r, x);
    return out && out->mixed && !out->varied ? NULL : out;
}

bool varied_unify(struct reader *r, struct plan_expr **values, uint32_t n, struct plan_expr *out)
{
    out->type = PLAN_TEXT;
    varied_mark(out);
    for (uint32_t i = 0; i < n; i++)
        if (!(values[i] = varied_of(r, values[i])))
            return false;
    return true;
}
