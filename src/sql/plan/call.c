/* Functions that SQLite computes: once for each combination of arguments, of which columns of text have few. */
#include "base/hash.h"
#include "sql/plan/plan_private.h"

#include <string.h>

enum { FIRST_SLOTS = 1024, MAX_CALLS = 400000 };

struct known {
    int64_t args[PLAN_MAX_VARYING], result;
    bool used;
};

struct call_memo {
    sqlite3_stmt *stmt;
    struct known *slots;
    uint32_t n, cap;
};

void call_memo_free(struct call_memo *m)
{
    if (!m)
        return;
    sqlite3_finalize(m->stmt);
    mem_free(m->slots);
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
    if (sqlite3_prepare_v2(r->e->db, x->text, -1, &m->stmt, NULL) != SQLITE_OK) {
        r->rc = RUN_GAVE_UP;
        return NULL;
    }
    plan_bind_arguments(r->e, m->stmt, x->arguments);
    return m;
}

static struct known *find(struct call_memo *m, const int64_t *args)
{
    uint64_t hash = 1;
    for (int k = 0; k < PLAN_MAX_VARYING; k++)
        hash = hash_combine(hash, (uint64_t)args[k]);
    uint32_t at = (uint32_t)(hash >> 32) & (m->cap - 1);
    while (m->slots[at].used && memcmp(m->slots[at].args, args, sizeof m->slots[at].args) != 0)
        at = (at + 1) & (m->cap - 1);
    return &m->slots[at];
}

static bool grow(struct run *r, struct call_memo *m)
{
    struct call_memo bigger = {.cap = m->cap * 2};
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

/* The result as a word of the type that it was said to have. */
static int64_t result_of(struct run *r, const struct plan_expr *x, sqlite3_stmt *stmt)
{
    static const int types[] = {SQLITE_NULL, SQLITE_INTEGER, SQLITE_FLOAT, SQLITE_TEXT};
    int64_t word = plan_null((enum plan_type)x->type);
    int type = sqlite3_column_type(stmt, 0);
    if (type == SQLITE_NULL)
        return word;
    if (type == SQLITE_TEXT && x->type == PLAN_TEXT) {
        const void *p = sqlite3_column_text(stmt, 0);
        word = strpool_intern(&r->e->storage->strings, p, (size_t)sqlite3_column_bytes(stmt, 0));
        if (!word)
            r->rc = SQLITE_NOMEM;
    } else if (type == types[x->type]) {
        word = x->type == PLAN_INT ? sqlite3_column_int64(stmt, 0) : column_f64_word(sqlite3_column_double(stmt, 0));
        if (word == COL_NULL && x->type == PLAN_INT)
            r->rc = RUN_GAVE_UP;
    } else {
        r->rc = RUN_GAVE_UP;
    }
    return word;
}

static int64_t call(struct run *r, const struct plan_expr *x, struct call_memo *m, const int64_t *const *args,
                    uint32_t i)
{
    for (uint32_t k = 0; k < x->n_args; k++)
        plan_bind_word(r->e, m->stmt, (int)k + 1, (enum plan_type)x->args[k]->type, args[k][i]);
    int rc = sqlite3_step(m->stmt);
    int64_t word = plan_null((enum plan_type)x->type);
    if (rc == SQLITE_ROW)
        word = result_of(r, x, m->stmt);
    else
        r->rc = engine_is_interrupted(r->e) ? SQLITE_INTERRUPT : RUN_GAVE_UP;
    sqlite3_reset(m->stmt);
    return word;
}

/* Texts of more calls than that would fill the string pool, which never gives anything back. */
static bool is_full(struct run *r, const struct plan_expr *x, const struct call_memo *m)
{
    if (m->n == MAX_CALLS && x->type == PLAN_TEXT)
        r->rc = RUN_GAVE_UP;
    return m->n == MAX_CALLS;
}

/* Of too many arguments to be kept. */
static void call_each(struct run *r, const struct plan_expr *x, struct call_memo *m, const int64_t *const *args,
                      uint32_t n, int64_t *out)
{
    for (uint32_t i = 0; i < n && !r->rc && !run_stopped(r); i++) {
        m->n += !is_full(r, x, m);
        if (!r->rc)
            out[i] = call(r, x, m, args, i);
    }
}

void eval_call(struct run *r, const struct plan_expr *x, const struct batch *b, int64_t *out)
{
    const int64_t *args[PLAN_MAX_CALL_ARGS] = {NULL}, *varying[PLAN_MAX_CALL_ARGS] = {NULL};
    uint32_t n_varying = 0;
    struct call_memo *m = memo_of(r, x);
    for (uint32_t k = 0; k < x->n_args; k++) {
        args[k] = eval(r, x->args[k], b);
        if (x->args[k]->op != X_CONST)
            varying[n_varying++] = args[k];
    }
    if (n_varying > PLAN_MAX_VARYING) {
        call_each(r, x, m, args, b->n, out);
        return;
    }
    for (uint32_t i = 0; i < b->n && !r->rc; i++) {
        int64_t key[PLAN_MAX_VARYING] = {0};
        for (uint32_t k = 0; k < n_varying; k++)
            key[k] = varying[k][i];
        struct known *k = find(m, key);
        if (k->used) {
            out[i] = k->result;
            continue;
        }
        bool full = is_full(r, x, m);
        if (r->rc || run_stopped(r) || (!full && m->n * 2 >= m->cap && !grow(r, m)))
            return;
        out[i] = call(r, x, m, args, i);
        if (full)
            continue;
        k = find(m, key);
        *k = (struct known){.result = out[i], .used = true};
        memcpy(k->args, key, sizeof key);
        m->n++;
    }
}
