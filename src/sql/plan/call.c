/* Functions that are computed once for each combination of arguments, of which columns of text have few: by SQLite, or
 * where they only put a text together by format.c. The latter are made for each row where most arguments differ. */
#include "base/hash.h"
#include "sql/plan/varied.h"

#include <math.h>
#include <string.h>

enum {
    FIRST_SLOTS = 1024,
    MAX_CALLS = 400000,  /* whose results are kept */
    MAX_TEXTS = 1000000, /* that are new to the string pool, which never gives anything back */
    MAX_BYTES = 64 << 20,
    MAX_BY_TEXT = 1 << 22, /* numbers of texts by which results are kept side by side */
    ENOUGH_ROWS = 2048     /* to see whether keeping results is worth it */
};

struct known {
    int64_t args[PLAN_MAX_VARYING], result;
    bool used;
};

struct call_memo {
    sqlite3_stmt *stmt;
    struct known *slots;
    uint32_t n, cap, n_texts;
    uint64_t secret;       /* of the hashes of arguments */
    uint64_t bytes, asked; /* of new texts; rows */
    struct format_text text;
    int64_t *by_text; /* of calls whose only argument that varies is a text: results by its number */
    uint8_t *has_text;
    uint32_t n_by_text;
};

void call_memo_free(struct call_memo *m)
{
    if (!m)
        return;
    sqlite3_finalize(m->stmt);
    mem_free(m->slots);
    mem_free(m->text.p);
    mem_free(m->by_text);
    mem_free(m->has_text);
    mem_free(m);
}

static struct call_memo *memo_of(struct run *r, const struct plan_expr *x)
{
    struct call_memo *m = r->memos[x->slot];
    if (m)
        return m;
    m = r->memos[x->slot] = mem_zalloc(sizeof *m);
    if (m)
        m->slots = mem_zalloc(FIRST_SLOTS * sizeof *m->slots);
    if (!m || !m->slots) {
        r->rc = SQLITE_NOMEM;
        return NULL;
    }
    m->cap = FIRST_SLOTS;
    m->secret = hash_secret();
    return m;
}

/* A query that is computed once may read as many rows as the statement around it. */
static sqlite3_stmt *prepare_query(struct run *r, const struct plan_expr *x)
{
    struct arena arena = {0};
    sqlite3_stmt *stmt = x->query ? plan_prepare_arguments(r->e, &arena, x->query, x->arguments) : NULL;
    arena_free(&arena);
    return stmt;
}

static bool prepare(struct run *r, const struct plan_expr *x, struct call_memo *m)
{
    if (m->stmt)
        return true;
    if ((m->stmt = prepare_query(r, x)) != NULL) {
        plan_bind_arguments(r->e, m->stmt, x->arguments);
        return true;
    }
    if (engine_compile(r->e, x->text, -1, 0, &m->stmt, NULL) != SQLITE_OK) {
        r->rc = RUN_GAVE_UP;
        return false;
    }
    plan_bind_arguments(r->e, m->stmt, x->arguments);
    return true;
}

static inline bool is_same(const int64_t *a, const int64_t *b)
{
    int64_t differs = 0;
    for (int k = 0; k < PLAN_MAX_VARYING; k++)
        differs |= a[k] ^ b[k];
    return !differs;
}

static struct known *find(struct call_memo *m, const int64_t *args)
{
    uint64_t hash = m->secret;
    for (int k = 0; k < PLAN_MAX_VARYING; k++)
        hash = hash_combine(hash, (uint64_t)args[k]);
    uint32_t at = (uint32_t)(hash >> 32) & (m->cap - 1);
    while (m->slots[at].used && !is_same(m->slots[at].args, args))
        at = (at + 1) & (m->cap - 1);
    return &m->slots[at];
}

static bool grow(struct run *r, struct call_memo *m)
{
    struct call_memo bigger = {.cap = m->cap * 2, .secret = m->secret};
    if (!run_alloc(r, bigger.cap * sizeof *m->slots))
        return false;
    bigger.slots = mem_zalloc(bigger.cap * sizeof *m->slots);
    if (!bigger.slots) {
        r->rc = SQLITE_NOMEM;
        return false;
    }
    for (uint32_t i = 0; i < m->cap; i++)
        if (m->slots[i].used)
            *find(&bigger, m->slots[i].args) = m->slots[i];
    mem_free(m->slots);
    m->slots = bigger.slots;
    m->cap = bigger.cap;
    return true;
}

void plan_bind_word(struct engine *e, sqlite3_stmt *stmt, int at, enum plan_type type, int64_t word)
{
    if (word == plan_null(type)) {
        sqlite3_bind_null(stmt, at);
    } else if (type == PLAN_TEXT) {
        struct slice s = strpool_view(&e->storage->strings, (strid)word);
        sqlite3_bind_text(stmt, at, (const char *)s.p, (int)s.len, SQLITE_STATIC);
    } else if (type == PLAN_REAL) {
        sqlite3_bind_double(stmt, at, column_f64(word));
    } else {
        sqlite3_bind_int64(stmt, at, word);
    }
}

/* Counts a text of n bytes where it is new to the string pool, which had `before`. */
static void note_text(struct run *r, struct call_memo *m, uint32_t before, size_t n)
{
    if (r->e->storage->strings.n == before)
        return;
    m->n_texts++;
    m->bytes += n;
    run_note_texts(r, before, n);
}

static int64_t intern(struct run *r, struct call_memo *m, const void *p, size_t n)
{
    struct strpool *strings = &r->e->storage->strings;
    uint32_t before = strings->n;
    strid id = strpool_intern(strings, p, n);
    note_text(r, m, before, n);
    if (!id)
        r->rc = SQLITE_NOMEM;
    return id;
}

/* A result that may have any type. */
static int64_t varied_result_of(struct run *r, struct call_memo *m, sqlite3_stmt *stmt)
{
    struct strpool *strings = &r->e->storage->strings;
    uint32_t before = strings->n;
    int64_t word;
    int rc;
    if (!varied_from_column(strings, stmt, &word, &rc))
        r->rc = rc;
    note_text(r, m, before, strpool_view(strings, (strid)word).len);
    return word;
}

/* The result as a word of the type that it was said to have. */
static int64_t result_of(struct run *r, const struct plan_expr *x, struct call_memo *m, sqlite3_stmt *stmt)
{
    static const int types[] = {SQLITE_NULL, SQLITE_INTEGER, SQLITE_FLOAT, SQLITE_TEXT};
    int64_t word = plan_null((enum plan_type)x->type);
    int type = sqlite3_column_type(stmt, 0);
    if (x->varied)
        return varied_result_of(r, m, stmt);
    if (type == SQLITE_NULL)
        return word;
    if (type == SQLITE_TEXT && x->type == PLAN_TEXT) {
        const void *p = sqlite3_column_text(stmt, 0);
        word = intern(r, m, p, (size_t)sqlite3_column_bytes(stmt, 0));
    } else if (type == types[x->type]) {
        word = x->type == PLAN_INT ? sqlite3_column_int64(stmt, 0) : column_f64_word(sqlite3_column_double(stmt, 0));
        if (word == COL_NULL && x->type == PLAN_INT)
            r->rc = RUN_GAVE_UP;
    } else {
        r->rc = RUN_GAVE_UP;
    }
    return word;
}

static int64_t ask(struct run *r, const struct plan_expr *x, struct call_memo *m, const int64_t *const *args,
                   uint32_t i)
{
    int64_t word = plan_null((enum plan_type)x->type);
    if (!prepare(r, x, m))
        return word;
    for (uint32_t k = 0; k < x->n_args; k++)
        if (x->args[k]->varied)
            varied_bind(r->e, m->stmt, (int)k + 1, args[k][i]);
        else
            plan_bind_word(r->e, m->stmt, (int)k + 1, (enum plan_type)x->args[k]->type, args[k][i]);
    int rc = sqlite3_step(m->stmt);
    if (rc == SQLITE_ROW)
        word = result_of(r, x, m, m->stmt);
    else if (rc != SQLITE_DONE) /* a query without a row is NULL */
        r->rc = engine_is_interrupted(r->e) ? SQLITE_INTERRUPT : RUN_GAVE_UP;
    sqlite3_reset(m->stmt);
    return word;
}

static int64_t call(struct run *r, const struct plan_expr *x, struct call_memo *m, const int64_t *const *args,
                    uint32_t i)
{
    const struct strpool *strings = &r->e->storage->strings;
    int64_t length = 0;
    if (!x->format)
        return ask(r, x, m, args, i);
    bool counts = format_counts(x);
    m->text.n = 0;
    switch (counts ? format_length(x, strings, args, i, &m->text, &length)
                   : format_make(x, strings, args, i, &m->text)) {
    case FORMAT_TEXT:
        return counts ? length : intern(r, m, m->text.p, m->text.n);
    case FORMAT_ASK:
        return ask(r, x, m, args, i);
    case FORMAT_NO_MEMORY:
        r->rc = SQLITE_NOMEM;
        break;
    default:
        break;
    }
    return plan_null((enum plan_type)x->type);
}

/* More texts would fill the string pool. */
static bool is_full(struct run *r, const struct call_memo *m)
{
    if (m->n_texts >= MAX_TEXTS || m->bytes >= MAX_BYTES)
        r->rc = r->rc ? r->rc : RUN_GAVE_UP;
    return r->rc != 0;
}

static void call_each(struct run *r, const struct plan_expr *x, struct call_memo *m, const int64_t *const *args,
                      uint32_t n, int64_t *out)
{
    for (uint32_t i = 0; i < n && !run_stopped(r) && !is_full(r, m); i++)
        out[i] = call(r, x, m, args, i);
}

/* Has what was kept been of use? */
static bool is_worth_keeping(const struct plan_expr *x, const struct call_memo *m)
{
    bool texts = true; /* which repeat, sooner or later */
    for (uint32_t k = 0; k < x->n_args; k++)
        texts &= x->args[k]->op == X_CONST || x->args[k]->type == PLAN_TEXT;
    return !format_counts(x) && (!x->format || texts || m->asked < ENOUGH_ROWS || m->n < m->asked / 2);
}

/* Room for the results of the texts of a batch; false: there are too many of them, or r->rc. */
static bool make_room_by_text(struct run *r, struct call_memo *m, const int64_t *texts, uint32_t n_texts)
{
    uint32_t n = r->e->storage->strings.n + 1, from = m->n_by_text;
    int64_t most = 0;
    for (uint32_t i = 0; i < n_texts; i++)
        most = texts[i] > most ? texts[i] : most;
    if (most < from || n <= from || n > MAX_BY_TEXT)
        return most < from;
    n += n / 4; /* calls may make texts that others are called with */
    if (!run_alloc(r, (uint64_t)(n - from) * (sizeof *m->by_text + 1)))
        return false;
    int64_t *results = mem_realloc(m->by_text, n * sizeof *results);
    m->by_text = results ? results : m->by_text;
    uint8_t *has = results ? mem_realloc(m->has_text, n) : NULL;
    if (!has) {
        r->rc = SQLITE_NOMEM;
        return false;
    }
    memset(has + from, 0, n - from);
    m->has_text = has;
    m->n_by_text = n;
    return most < n;
}

/* Calls with one text that varies. */
static void call_by_text(struct run *r, const struct plan_expr *x, struct call_memo *m, const int64_t *const *args,
                         const int64_t *texts, uint32_t n, int64_t *out)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t text = texts[i];
        if (!m->has_text[text]) {
            if (is_full(r, m) || run_stopped(r))
                return;
            m->by_text[text] = call(r, x, m, args, i);
            m->has_text[text] = !r->rc;
        }
        out[i] = m->by_text[text];
    }
}

/* ---- round() ---- */

#define ROUND_MOST 8e12 /* that times ten to the power of the digits: more would not leave a part that is sure */

/* The key by which results of round(x, digits) are kept: the whole number that x times ten to their power is rounded
 * to, and its sign. False: x stands so near the middle between two that only SQLite knows. */
static bool round_key(double x, double scale, int64_t *key)
{
    double scaled = x * scale;
    if (!(scaled > -ROUND_MOST && scaled < ROUND_MOST))
        return false;
    double below = floor(scaled), part = scaled - below;
    key[0] = (int64_t)below + (part > 0.5);
    key[1] = x < 0 ? 1 : 2; /* of those that become 0 it tells the sign; -0.0 becomes what 0.0 does */
    return part < 0.49 || part > 0.51;
}

/* Rounded numbers are few where the numbers are many. */
static void call_round(struct run *r, const struct plan_expr *x, struct call_memo *m, const int64_t *const *args,
                       uint32_t n, int64_t *out)
{
    double scale = 1;
    for (int64_t k = 0; x->n_args == 2 && k < args[1][0]; k++)
        scale *= 10;
    for (uint32_t i = 0; i < n && !r->rc; i++) {
        int64_t key[PLAN_MAX_VARYING] = {0};
        struct known *k = NULL;
        out[i] = COL_NULL_F64;
        if (args[0][i] == COL_NULL_F64)
            continue;
        if (round_key(column_f64(args[0][i]), scale, key))
            k = find(m, key);
        if (k && k->used) {
            out[i] = k->result;
            continue;
        }
        if (run_stopped(r) || (k && m->n < MAX_CALLS && m->n * 2 >= m->cap && !grow(r, m)))
            return;
        out[i] = ask(r, x, m, args, i);
        if (!k || m->n >= MAX_CALLS)
            continue;
        k = find(m, key);
        *k = (struct known){.result = out[i], .used = true};
        memcpy(k->args, key, sizeof key);
        m->n++;
    }
}

/* NaN is NULL. */
static void call_math(uint8_t math, const int64_t *a, uint32_t n, int64_t *out)
{
    for (uint32_t i = 0; i < n; i++) {
        double v = column_f64(a[i]);
        v = math == MATH_CEIL ? ceil(v) : math == MATH_FLOOR ? floor(v) : sqrt(v);
        out[i] = column_f64_word(v);
    }
}

void eval_call(struct run *r, const struct plan_expr *x, const struct batch *b, int64_t *out)
{
    if (x->math) {
        call_math(x->math, eval(r, x->args[0], b), b->n, out);
        return;
    }
    const int64_t *args[PLAN_MAX_CALL_ARGS] = {NULL}, *varying[PLAN_MAX_CALL_ARGS] = {NULL};
    const struct plan_expr *varies = NULL;
    uint32_t n_varying = 0;
    struct call_memo *m = memo_of(r, x);
    for (uint32_t k = 0; k < x->n_args; k++) {
        args[k] = eval(r, x->args[k], b);
        if (x->args[k]->op == X_CONST)
            continue;
        varies = x->args[k];
        varying[n_varying++] = args[k];
    }
    if (r->rc)
        return;
    if (x->rounds) {
        call_round(r, x, m, args, b->n, out);
        return;
    }
    if (n_varying == 1 && varies->type == PLAN_TEXT && make_room_by_text(r, m, varying[0], b->n)) {
        call_by_text(r, x, m, args, varying[0], b->n, out);
        return;
    }
    if (r->rc)
        return;
    if (n_varying > PLAN_MAX_VARYING || !is_worth_keeping(x, m)) {
        call_each(r, x, m, args, b->n, out);
        return;
    }
    m->asked += b->n;
    uint32_t n = n_varying ? b->n : 1; /* of constants alone one is all */
    for (uint32_t i = 0; i < n && !r->rc; i++) {
        int64_t key[PLAN_MAX_VARYING] = {0};
        for (uint32_t k = 0; k < n_varying; k++)
            key[k] = varying[k][i];
        struct known *k = find(m, key);
        if (k->used) {
            out[i] = k->result;
            continue;
        }
        bool full = m->n == MAX_CALLS;
        if (is_full(r, m) || run_stopped(r) || (!full && m->n * 2 >= m->cap && !grow(r, m)))
            return;
        out[i] = call(r, x, m, args, i);
        if (full)
            continue;
        k = find(m, key);
        *k = (struct known){.result = out[i], .used = true};
        memcpy(k->args, key, sizeof key);
        m->n++;
    }
    for (uint32_t i = n; i < b->n; i++)
        out[i] = out[0];
}
