/* A regular-expression engine: parsed to a tree, compiled to instructions, run by backtracking that never tries the
 * same instruction twice at the same byte (so that its time is bounded by the product of both). */
#include "sql/functions/regex.h"

#include "base/arena.h"
#include "base/vec.h"

#include <ctype.h>

enum node_kind { NODE_EMPTY, NODE_SET, NODE_CAT, NODE_ALT, NODE_REPEAT, NODE_GROUP, NODE_ASSERT };
enum assert_kind { ASSERT_BEGIN, ASSERT_END, ASSERT_WORD, ASSERT_NOT_WORD };

struct byte_set {
    uint64_t bits[4];
};

struct node {
    uint8_t kind;
    bool lazy;
    int group;         /* NODE_GROUP: number or -1; NODE_ASSERT: enum assert_kind */
    int min, max;      /* NODE_REPEAT; max -1: no end */
    struct node *a;    /* what is inside; of NODE_CAT and NODE_ALT the first of several */
    struct node *next; /* the one behind it in the same sequence, or the next alternative */
    struct byte_set set;
};

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
    uint64_t *seen;
    size_t seen_words;
    struct byte_set first; /* bytes a match can begin with */
    bool any_first;        /* it can also begin with nothing */
    int n_groups;
};

struct parser {
    const uint8_t *p, *end;
    struct arena arena;
    struct error *err;
    int n_groups, depth, n_nodes;
    bool ignore_case;
    int rc;
};

enum { MAX_CODE = 50000, MAX_NODES = 2 * MAX_CODE, MAX_DEPTH = 200, MAX_REPEAT = 1000 };

static void set_add(struct byte_set *s, uint8_t c)
{
    s->bits[c >> 6] |= 1ull << (c & 63);
}

static bool set_has(const struct byte_set *s, uint8_t c)
{
    return s->bits[c >> 6] >> (c & 63) & 1;
}

static struct node *fail(struct parser *p, int code, const char *text)
{
    if (!p->rc)
        p->rc = error_set(p->err, code, "%s", text);
    return NULL;
}

static struct node *new_node(struct parser *p, enum node_kind kind)
{
    if (++p->n_nodes > MAX_NODES)
        return fail(p, -MRD_EINVALID, "the expression is too large");
    struct node *n = arena_zalloc(&p->arena, sizeof *n);
    if (!n)
        return fail(p, -MRD_ENOMEM, "out of memory");
    n->kind = (uint8_t)kind;
    return n;
}

static bool is_word(int c)
{
    return isalnum(c) || c == '_';
}

static bool in_class(char name, int c)
{
    switch (name) {
    case 'd':
        return c >= '0' && c <= '9';
    case 'w':
        return c < 128 && is_word(c);
    default:
        return c == ' ' || (c >= '\t' && c <= '\r');
    }
}

/* \d \W … into the set; false when the letter is no class. */
static bool add_class(struct byte_set *s, char letter)
{
    char name = (char)tolower(letter);
    if (!strchr("dws", name))
        return false;
    for (int c = 0; c < 256; c++)
        if (in_class(name, c) == (name == letter))
            set_add(s, (uint8_t)c);
    return true;
}

/* The byte that an escape other than a class means; the cursor stands behind the backslash. */
static int escaped_byte(struct parser *p)
{
    static const char names[] = "nrtfv0a", values[] = "\n\r\t\f\v\0\a";
    int c = *p->p++;
    const char *at = strchr(names, c);
    if (c && at)
        return (uint8_t)values[at - names];
    if (c == 'x' && p->end - p->p >= 2 && isxdigit(p->p[0]) && isxdigit(p->p[1])) {
        int v = 0;
        for (int i = 0; i < 2; i++, p->p++)
            v = v << 4 | (isdigit(*p->p) ? *p->p - '0' : (*p->p | 0x20) - 'a' + 10);
        return v;
    }
    if (isalnum(c)) {
        fail(p, -MRD_EINVALID, "unknown escape");
        return 0;
    }
    return c;
}

static void fold_case(struct parser *p, struct byte_set *s)
{
    for (int c = 'a'; p->ignore_case && c <= 'z'; c++)
        if (set_has(s, (uint8_t)c) || set_has(s, (uint8_t)(c - 32))) {
            set_add(s, (uint8_t)c);
            set_add(s, (uint8_t)(c - 32));
        }
}

static const char *const posix_classes[] = {"alpha", "digit", "alnum", "upper", "lower", "space", "punct", "xdigit"};

static bool add_posix_class(struct parser *p, struct byte_set *s)
{
    for (size_t i = 0; i < sizeof posix_classes / sizeof *posix_classes; i++) {
        size_t n = strlen(posix_classes[i]);
        if ((size_t)(p->end - p->p) < n + 4 || memcmp(p->p, "[:", 2) != 0 ||
            memcmp(p->p + 2, posix_classes[i], n) != 0 || memcmp(p->p + 2 + n, ":]", 2) != 0)
            continue;
        static int (*const tests[])(int) = {isalpha, isdigit, isalnum, isupper, islower, isspace, ispunct, isxdigit};
        for (int c = 0; c < 128; c++)
            if (tests[i](c))
                set_add(s, (uint8_t)c);
        p->p += n + 4;
        return true;
    }
    return false;
}

static struct node *parse_set(struct parser *p)
{
    struct node *n = new_node(p, NODE_SET);
    bool negate = p->p < p->end && *p->p == '^', first = true;
    if (!n)
        return NULL;
    p->p += negate;
    for (; p->p < p->end && (*p->p != ']' || first); first = false) {
        if (add_posix_class(p, &n->set))
            continue;
        int lo = *p->p++, hi;
        if (lo == '\\' && p->p < p->end) {
            if (add_class(&n->set, (char)*p->p)) {
                p->p++;
                continue;
            }
            lo = *p->p == 'b' ? (p->p++, '\b') : escaped_byte(p);
        }
        hi = lo;
        if (p->end - p->p >= 2 && p->p[0] == '-' && p->p[1] != ']') {
            p->p++;
            hi = *p->p++;
            if (hi == '\\' && p->p < p->end)
                hi = escaped_byte(p);
            if (hi < lo)
                return fail(p, -MRD_EINVALID, "range out of order in a character class");
        }
        for (int c = lo; c <= hi; c++)
            set_add(&n->set, (uint8_t)c);
    }
    if (p->p >= p->end)
        return fail(p, -MRD_EINVALID, "missing ] of a character class");
    p->p++;
    fold_case(p, &n->set);
    for (int i = 0; negate && i < 4; i++)
        n->set.bits[i] = ~n->set.bits[i];
    return n;
}

static struct node *parse_alternatives(struct parser *p);

static struct node *parse_group(struct parser *p)
{
    struct node *n = new_node(p, NODE_GROUP);
    if (!n)
        return NULL;
    n->group = -1;
    if (p->p < p->end && *p->p == '?') {
        if (p->end - p->p >= 2 && p->p[1] == ':')
            p->p += 2;
        else if (p->end - p->p >= 2 && p->p[1] == 'i' && p->end - p->p >= 3 && p->p[2] == ')') {
            p->ignore_case = true;
            p->p += 3;
            return new_node(p, NODE_EMPTY);
        } else
            return fail(p, -MRD_EINVALID, "this kind of group is not supported");
    } else if (p->n_groups < REGEX_MAX_GROUPS) {
        n->group = ++p->n_groups;
    } else {
        return fail(p, -MRD_EINVALID, "too many groups");
    }
    n->a = parse_alternatives(p);
    if (p->p >= p->end || *p->p != ')')
        return fail(p, -MRD_EINVALID, "missing )");
    p->p++;
    return n;
}

static struct node *parse_assert(struct parser *p, enum assert_kind kind)
{
    struct node *n = new_node(p, NODE_ASSERT);
    if (n)
        n->group = kind;
    return n;
}

static struct node *parse_atom(struct parser *p)
{
    int c = *p->p++;
    switch (c) {
    case '(':
        return parse_group(p);
    case '[':
        return parse_set(p);
    case '^':
        return parse_assert(p, ASSERT_BEGIN);
    case '$':
        return parse_assert(p, ASSERT_END);
    case '*':
    case '+':
    case '?':
        return fail(p, -MRD_EINVALID, "nothing to repeat");
    default:
        break;
    }
    if (c == '\\' && p->p >= p->end)
        return fail(p, -MRD_EINVALID, "\\ at the end");
    if (c == '\\' && (*p->p == 'b' || *p->p == 'B'))
        return parse_assert(p, *p->p++ == 'b' ? ASSERT_WORD : ASSERT_NOT_WORD);
    struct node *n = new_node(p, NODE_SET);
    if (!n)
        return NULL;
    if (c == '.') {
        memset(&n->set, 0xff, sizeof n->set);
        n->set.bits[0] &= ~(1ull << '\n');
    } else if (c == '\\' && add_class(&n->set, (char)*p->p)) {
        p->p++;
    } else {
        set_add(&n->set, (uint8_t)(c == '\\' ? escaped_byte(p) : c));
    }
    fold_case(p, &n->set);
    return n;
}

/* {n}, {n,}, {n,m}: true when it is one (else the brace is an ordinary byte). */
static bool parse_counts(struct parser *p, int *min, int *max)
{
    const uint8_t *s = p->p + 1;
    int v[2] = {0, -1};
    bool digits = false;
    for (int i = 0; i < 2; i++) {
        if (s < p->end && isdigit(*s)) {
            v[i] = 0;
            digits |= i == 0;
        }
        for (; s < p->end && isdigit(*s) && v[i] <= MAX_REPEAT; s++)
            v[i] = v[i] * 10 + *s - '0';
        if (i == 0 && (s >= p->end || *s != ',')) {
            v[1] = v[0];
            break;
        }
        s += i == 0;
    }
    if (!digits || s >= p->end || *s != '}')
        return false;
    p->p = s + 1;
    *min = v[0];
    *max = v[1];
    return true;
}

static struct node *parse_repeat(struct parser *p)
{
    struct node *n = parse_atom(p);
    for (int deep = 0; n && p->p < p->end; deep++) {
        int min = 0, max = -1;
        if (*p->p == '*' || *p->p == '+' || *p->p == '?') {
            min = *p->p == '+';
            max = *p->p == '?' ? 1 : -1;
            p->p++;
        } else if (*p->p != '{' || !parse_counts(p, &min, &max)) {
            break;
        }
        if (min > MAX_REPEAT || max > MAX_REPEAT || (max >= 0 && max < min))
            return fail(p, -MRD_EINVALID, "bad count of repetitions");
        if (deep >= MAX_DEPTH)
            return fail(p, -MRD_EINVALID, "nested too deep");
        struct node *r = new_node(p, NODE_REPEAT);
        if (!r)
            return NULL;
        r->a = n;
        r->min = min;
        r->max = max;
        if (p->p < p->end && *p->p == '?') {
            r->lazy = true;
            p->p++;
        }
        n = r;
    }
    return n;
}

static struct node *parse_sequence(struct parser *p)
{
    struct node *n = new_node(p, NODE_CAT), **end = n ? &n->a : NULL;
    while (n && !p->rc && p->p < p->end && *p->p != '|' && *p->p != ')') {
        struct node *next = *end = parse_repeat(p);
        if (next)
            end = &next->next;
    }
    return n;
}

static struct node *parse_alternatives(struct parser *p)
{
    if (++p->depth > MAX_DEPTH)
        return fail(p, -MRD_EINVALID, "nested too deep");
    struct node *n = new_node(p, NODE_ALT), **end = n ? &n->a : NULL;
    while (n && !p->rc) {
        struct node *next = *end = parse_sequence(p);
        if (!next || p->rc || p->p >= p->end || *p->p != '|')
            break;
        end = &next->next;
        p->p++;
    }
    p->depth--;
    return n;
}

/* ---- compiling ---- */

static uint32_t emit(struct regex *r, struct parser *p, enum op op, uint32_t x, uint32_t y)
{
    if (r->code.n >= MAX_CODE) {
        fail(p, -MRD_EINVALID, "the expression is too large");
        return 0;
    }
    if (!vec_push(&r->code, (struct instruction){(uint8_t)op, x, y}))
        fail(p, -MRD_ENOMEM, "out of memory");
    return (uint32_t)r->code.n - 1;
}

static void compile(struct regex *r, struct parser *p, const struct node *n);

/* Sets where a SPLIT goes: into the loop first unless lazy. */
static void aim(struct regex *r, uint32_t at, uint32_t in, uint32_t out, bool lazy)
{
    r->code.p[at].x = lazy ? out : in;
    r->code.p[at].y = lazy ? in : out;
}

static void compile_repeat(struct regex *r, struct parser *p, const struct node *n)
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
static void compile_alternatives(struct regex *r, struct parser *p, const struct node *first)
{
    uint32_t last_jump = UINT32_MAX;
    for (const struct node *n = first; n && !p->rc; n = n->next) {
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

static void compile(struct regex *r, struct parser *p, const struct node *n)
{
    if (p->rc)
        return;
    switch (n->kind) {
    case NODE_SET:
        if (!vec_push(&r->sets, n->set))
            fail(p, -MRD_ENOMEM, "out of memory");
        emit(r, p, OP_SET, (uint32_t)r->sets.n - 1, 0);
        break;
    case NODE_CAT:
        for (const struct node *i = n->a; i && !p->rc; i = i->next)
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
    struct parser p = {.p = pattern.p, .end = pattern.p + pattern.len, .err = err, .ignore_case = ignore_case};
    struct regex *r = mem_zalloc(sizeof *r);
    if (!r)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    struct node *n = parse_alternatives(&p);
    if (n && !p.rc && p.p < p.end)
        fail(&p, -MRD_EINVALID, "unmatched )");
    if (n && !p.rc)
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
            size_t bit = (size_t)pc * (t.len + 1) + at;
            if (r->seen[bit >> 6] >> (bit & 63) & 1)
                break;
            r->seen[bit >> 6] |= 1ull << (bit & 63);
            const struct instruction *i = &r->code.p[pc];
            if (i->op == OP_MATCH) {
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
                pc = i->x;
            }
        }
    }
    return 0;
}

enum { MAX_SEEN_BITS = 1 << 30 };

int regex_search(struct regex *r, struct slice t, size_t from, struct regex_match *m)
{
    int64_t slots[2 * (REGEX_MAX_GROUPS + 1)];
    uint64_t bits = (uint64_t)r->code.n * (t.len + 1);
    if (bits > MAX_SEEN_BITS)
        return -MRD_ELIMIT;
    size_t words = (size_t)(bits / 64) + 1;
    bool clean = false;
    for (size_t at = from; at <= t.len; at++) {
        if (!r->any_first && (at == t.len || !set_has(&r->first, t.p[at])))
            continue;
        if (!clean) {
            if (words > r->seen_words) {
                mem_free(r->seen);
                r->seen = mem_alloc(words * 8);
                r->seen_words = r->seen ? words : 0;
                if (!r->seen)
                    return -MRD_ENOMEM;
            }
            memset(r->seen, 0, words * 8);
            clean = true;
        }
        for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
            slots[i] = -1;
        slots[0] = (int64_t)at;
        int rc = attempt(r, t, at, slots);
        if (rc == 0)
            continue;
        for (int g = 0; rc == 1 && g <= REGEX_MAX_GROUPS; g++) {
            m->group[g].start = slots[2 * g];
            m->group[g].end = slots[2 * g + 1];
        }
        return rc;
    }
    return 0;
}
