/* A regular-expression engine: parsed to a tree, compiled to instructions, run by backtracking that never tries the
 * same instruction twice at the same byte (so that its time is bounded by the product of both). */
#include "sql/functions/regex_tree.h"

#include "base/vec.h"

enum op { OP_SET, OP_SPLIT, OP_JUMP, OP_SAVE, OP_ASSERT, OP_MATCH };

struct instruction {
    uint8_t op;
    uint32_t x, y; /* SPLIT: try x first, then y; JUMP: x; SAVE: slot x; ASSERT: kind x; SET: index x of sets */
};

struct job {
    uint32_t pc;
    int32_t slot; /* >= 0: restore capture slot to `at` instead of running */
    int64_t at;
};

struct regex {
    VEC(struct instruction)
    code;
    VEC(struct byte_set)
    sets;
    VEC(struct job)
    stack;
    uint64_t *seen;              /* a bit for each instruction at each place of the text; all 0 between searches */
    size_t seen_words, furthest; /* furthest: the last place that this search has looked at */
    stop_flag *stop;
    uint32_t steps;        /* choices, to look at `stop` now and then */
    struct byte_set first; /* bytes a match can begin with */
    bool any_first;        /* it can also begin with nothing */
    int n_groups;
};

/* ---- compiling ---- */

static uint32_t emit(struct regex *r, struct regex_parser *p, enum op op, uint32_t x, uint32_t y)
{
    if (r->code.n >= REGEX_MAX_CODE) {
        regex_parse_fail(p, -MRD_EINVALID, "the expression is too large");
        return 0;
    }
    if (!vec_push(&r->code, (struct instruction){(uint8_t)op, x, y}))
        regex_parse_fail(p, -MRD_ENOMEM, "out of memory");
    return (uint32_t)r->code.n - 1;
}

static void compile(struct regex *r, struct regex_parser *p, const struct regex_node *n);

/* Sets where a SPLIT goes: into the loop first unless lazy. */
static void aim(struct regex *r, uint32_t at, uint32_t in, uint32_t out, bool lazy)
{
    r->code.p[at].x = lazy ? out : in;
    r->code.p[at].y = lazy ? in : out;
}

static void compile_repeat(struct regex *r, struct regex_parser *p, const struct regex_node *n)
{
    for (int i = 0; i < n->min && !p->rc; i++)
        compile(r, p, n->a);
    if (n->max < 0) {
        uint32_t split = emit(r, p, OP_SPLIT, 0, 0);
        compile(r, p, n->a);
        emit(r, p, OP_JUMP, split, 0);
        if (!p->rc)
            aim(r, split, split + 1, (uint32_t)r->code.n, n->lazy);
        return;
    }
    uint32_t first = (uint32_t)r->code.n;
    for (int i = n->min; i < n->max && !p->rc; i++) {
        emit(r, p, OP_SPLIT, UINT32_MAX, n->lazy);
        compile(r, p, n->a);
    }
    for (uint32_t i = first; i < r->code.n && !p->rc; i++) /* all leave to the end */
        if (r->code.p[i].op == OP_SPLIT && r->code.p[i].x == UINT32_MAX)
            aim(r, i, i + 1, (uint32_t)r->code.n, r->code.p[i].y);
}

/* One after the other, the first that matches counts; the jumps behind them are chained until their end is known. */
static void compile_alternatives(struct regex *r, struct regex_parser *p, const struct regex_node *first)
{
    uint32_t last_jump = UINT32_MAX;
    for (const struct regex_node *n = first; n && !p->rc; n = n->next) {
        if (!n->next) {
            compile(r, p, n);
            break;
        }
        uint32_t split = emit(r, p, OP_SPLIT, 0, 0);
        compile(r, p, n);
        uint32_t jump = emit(r, p, OP_JUMP, last_jump, 0);
        if (p->rc)
            return;
        aim(r, split, split + 1, (uint32_t)r->code.n, false);
        last_jump = jump;
    }
    while (!p->rc && last_jump != UINT32_MAX) {
        uint32_t before = r->code.p[last_jump].x;
        r->code.p[last_jump].x = (uint32_t)r->code.n;
        last_jump = before;
    }
}

static void compile(struct regex *r, struct regex_parser *p, const struct regex_node *n)
{
    if (p->rc)
        return;
    switch (n->kind) {
    case NODE_SET:
        if (!vec_push(&r->sets, n->set))
            regex_parse_fail(p, -MRD_ENOMEM, "out of memory");
        emit(r, p, OP_SET, (uint32_t)r->sets.n - 1, 0);
        break;
    case NODE_CAT:
        for (const struct regex_node *i = n->a; i && !p->rc; i = i->next)
            compile(r, p, i);
        break;
    case NODE_ALT:
        compile_alternatives(r, p, n->a);
        break;
    case NODE_REPEAT:
        compile_repeat(r, p, n);
        break;
    case NODE_GROUP:
        if (n->group > 0)
            emit(r, p, OP_SAVE, 2 * (uint32_t)n->group, 0);
        compile(r, p, n->a);
        if (n->group > 0)
            emit(r, p, OP_SAVE, 2 * (uint32_t)n->group + 1, 0);
        break;
    case NODE_ASSERT:
        emit(r, p, OP_ASSERT, (uint32_t)n->group, 0);
        break;
    default:
        break;
    }
}

/* Which bytes can begin a match. */
static void find_first(struct regex *r)
{
    VEC(uint32_t)
    todo = {0};
    uint8_t *seen = mem_zalloc(r->code.n);
    bool ok = seen && vec_push(&todo, 0);
    while (ok && todo.n) {
        uint32_t pc = todo.p[--todo.n];
        if (seen[pc])
            continue;
        seen[pc] = 1;
        const struct instruction *i = &r->code.p[pc];
        if (i->op == OP_SET)
            for (int k = 0; k < 4; k++)
                r->first.bits[k] |= r->sets.p[i->x].bits[k];
        else if (i->op == OP_MATCH)
            r->any_first = true;
        else if (i->op == OP_SPLIT)
            ok = vec_push(&todo, i->x) && vec_push(&todo, i->y);
        else
            ok = vec_push(&todo, i->op == OP_JUMP ? i->x : pc + 1);
    }
    r->any_first |= !ok;
    vec_free(&todo);
    mem_free(seen);
}

int regex_compile(struct regex **out, struct slice pattern, bool ignore_case, struct error *err)
{
    struct regex_parser p = {.p = pattern.p, .end = pattern.p + pattern.len, .err = err, .ignore_case = ignore_case};
    struct regex *r = mem_zalloc(sizeof *r);
    if (!r)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    struct regex_node *n = regex_parse(&p);
    if (n)
        compile(r, &p, n);
    emit(r, &p, OP_MATCH, 0, 0);
    r->n_groups = p.n_groups;
    arena_free(&p.arena);
    if (p.rc) {
        regex_free(r);
        return p.rc;
    }
    find_first(r);
    *out = r;
    return 0;
}

void regex_free(void *ptr)
{
    struct regex *r = ptr;
    if (!r)
        return;
    vec_free(&r->code);
    vec_free(&r->sets);
    vec_free(&r->stack);
    mem_free(r->seen);
    mem_free(r);
}

int regex_groups(const struct regex *r)
{
    return r->n_groups;
}

/* ---- matching ---- */

static bool holds(enum assert_kind kind, struct slice t, size_t at)
{
    bool before = at > 0 && is_word(t.p[at - 1]), after = at < t.len && is_word(t.p[at]);
    switch (kind) {
    case ASSERT_BEGIN:
        return at == 0;
    case ASSERT_END:
        return at == t.len;
    case ASSERT_WORD:
        return before != after;
    default:
        return before == after;
    }
}

/* One attempt from a place, by an explicit stack. What was seen by earlier attempts has failed and stays failed. */
static int attempt(struct regex *r, struct slice t, size_t start, int64_t *slots)
{
    enum { STEPS = 1 << 16 };
    r->stack.n = 0;
    if (!vec_push(&r->stack, (struct job){0, -1, (int64_t)start}))
        return -MRD_ENOMEM;
    while (r->stack.n) {
        struct job j = r->stack.p[--r->stack.n];
        if (j.slot >= 0) {
            slots[j.slot] = j.at;
            continue;
        }
        uint32_t pc = j.pc;
        size_t at = (size_t)j.at;
        for (;;) {
            size_t bit = at * r->code.n + pc;
            if (r->seen[bit >> 6] >> (bit & 63) & 1)
                break;
            r->seen[bit >> 6] |= 1ull << (bit & 63);
            const struct instruction *i = &r->code.p[pc];
            if (i->op == OP_MATCH) {
                r->furthest = at > r->furthest ? at : r->furthest;
                slots[1] = (int64_t)at;
                return 1;
            }
            if (i->op == OP_SET) {
                if (at >= t.len || !set_has(&r->sets.p[i->x], t.p[at]))
                    break;
                at++;
                pc++;
            } else if (i->op == OP_JUMP) {
                pc = i->x;
            } else if (i->op == OP_ASSERT) {
                if (!holds((enum assert_kind)i->x, t, at))
                    break;
                pc++;
            } else if (i->op == OP_SAVE) {
                if (!vec_push(&r->stack, (struct job){0, (int32_t)i->x, slots[i->x]}))
                    return -MRD_ENOMEM;
                slots[i->x] = (int64_t)at;
                pc++;
            } else {
                if (!vec_push(&r->stack, (struct job){i->y, -1, (int64_t)at}))
                    return -MRD_ENOMEM;
                if (++r->steps % STEPS == 0 && stop_asked(r->stop))
                    return -MRD_ECANCELLED;
                pc = i->x;
            }
        }
        r->furthest = at > r->furthest ? at : r->furthest;
    }
    return 0;
}

enum { MAX_SEEN_BITS = 1 << 30 };

/* Forgets what a search has seen between two places: as much work as it was to see it. */
static void forget(struct regex *r, size_t from, size_t to)
{
    size_t first = from * r->code.n / 64, last = ((to + 1) * r->code.n - 1) / 64;
    memset(r->seen + first, 0, (last - first + 1) * sizeof *r->seen);
}

static bool make_room(struct regex *r, size_t words)
{
    if (words <= r->seen_words)
        return true;
    mem_free(r->seen);
    r->seen = mem_zalloc(words * sizeof *r->seen);
    r->seen_words = r->seen ? words : 0;
    return r->seen != NULL;
}

void regex_set_stop(struct regex *r, stop_flag *stop)
{
    r->stop = stop;
}

int regex_search(struct regex *r, struct slice t, size_t from, struct regex_match *m)
{
    int64_t slots[2 * (REGEX_MAX_GROUPS + 1)];
    uint64_t bits = (uint64_t)r->code.n * (t.len + 1);
    if (bits > MAX_SEEN_BITS)
        return -MRD_ELIMIT;
    size_t first = SIZE_MAX; /* of what was looked at */
    int rc = 0;
    for (size_t at = from; at <= t.len && rc == 0; at++) {
        if (!r->any_first && (at == t.len || !set_has(&r->first, t.p[at])))
            continue;
        if (first == SIZE_MAX) {
            if (!make_room(r, (size_t)(bits / 64) + 1))
                return -MRD_ENOMEM;
            first = r->furthest = at;
        }
        for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
            slots[i] = -1;
        slots[0] = (int64_t)at;
        rc = attempt(r, t, at, slots);
    }
    if (first != SIZE_MAX)
        forget(r, first, rc < 0 ? t.len : r->furthest);
    for (int g = 0; rc == 1 && g <= REGEX_MAX_GROUPS; g++) {
        m->group[g].start = slots[2 * g];
        m->group[g].end = slots[2 * g + 1];
    }
    return rc;
}
