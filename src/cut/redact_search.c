/* Finds many strings in one pass over the bytes (the automaton of Aho and Corasick). */
#include "cut/redact_internal.h"

#include <ctype.h>
#include <stdlib.h>

enum { NODES_MAX = 1 << 27 };

static uint64_t edge_key(uint32_t node, uint8_t byte)
{
    return (uint64_t)node << 8 | byte;
}

static uint32_t child(const struct redact_search *s, uint32_t node, uint8_t byte)
{
    if (node == 0 && !s->begins[byte])
        return 0;
    const uint64_t *to = u64map_get(&s->edges, edge_key(node, byte));
    return to ? (uint32_t)*to : 0;
}

static bool make_root(struct redact_search *s)
{
    if (!s->nodes.n && !vec_push(&s->nodes, (struct redact_node){0}))
        s->failed = true;
    return !s->failed;
}

void redact_search_add(struct redact_search *s, struct slice text, uint32_t secret, enum redact_where where)
{
    uint32_t at = 0;
    if (!make_root(s) || !text.len)
        return;
    s->begins[text.p[0]] = true;
    for (size_t i = 0; i < text.len; i++) {
        bool added = false;
        uint64_t *to = u64map_put(&s->edges, edge_key(at, text.p[i]), &added);
        if (!to ||
            (added &&
             (s->nodes.n == NODES_MAX ||
              !vec_push(&s->nodes, (struct redact_node){.parent = at, .depth = (uint32_t)i + 1, .byte = text.p[i]})))) {
            s->failed = true;
            return;
        }
        if (added)
            *to = s->nodes.n - 1;
        at = (uint32_t)*to;
    }
    struct redact_node *n = &s->nodes.p[at];
    if (!n->secret || where < n->where)
        n->where = (uint8_t)where;
    n->secret = n->secret ? n->secret : secret + 1;
}

struct at_depth {
    uint32_t depth, node;
};

static int by_depth(const void *a, const void *b)
{
    const struct at_depth *x = a, *y = b;
    return (x->depth > y->depth) - (x->depth < y->depth);
}

static uint32_t step(const struct redact_search *s, uint32_t node, uint8_t byte)
{
    uint32_t to;
    while (!(to = child(s, node, byte)) && node)
        node = s->nodes.p[node].fail;
    return to;
}

void redact_search_ready(struct redact_search *s)
{
    if (!make_root(s))
        return;
    struct at_depth *order = mem_alloc(s->nodes.n * sizeof *order);
    if (!order) {
        s->failed = true;
        return;
    }
    for (uint32_t i = 0; i < s->nodes.n; i++)
        order[i] = (struct at_depth){s->nodes.p[i].depth, i};
    qsort(order, s->nodes.n, sizeof *order, by_depth);
    for (size_t i = 0; i < s->nodes.n; i++) {
        struct redact_node *n = &s->nodes.p[order[i].node];
        if (n->depth < 2) /* one byte ends with nothing else */
            continue;
        n->fail = step(s, s->nodes.p[n->parent].fail, n->byte);
        const struct redact_node *f = &s->nodes.p[n->fail];
        n->next = f->secret ? n->fail : f->next;
    }
    mem_free(order);
}

void redact_search_free(struct redact_search *s)
{
    vec_free(&s->nodes);
    u64map_free(&s->edges);
}

bool redact_search_any(const struct redact_search *s, struct slice text)
{
    uint32_t at = 0;
    for (size_t i = 0; i < text.len; i++) {
        at = step(s, at, text.p[i]);
        if (at && (s->nodes.p[at].secret || s->nodes.p[at].next))
            return true;
    }
    return false;
}

static bool is_word(uint8_t c)
{
    return isalnum(c) || c == '_' || c >= 0x80;
}

static bool stands(const struct redact_node *n, struct slice text, size_t to, bool opaque)
{
    const size_t from = to - n->depth;
    if (from == 0 && to == text.len)
        return true;
    if (opaque)
        return n->where == REDACT_ANYWHERE;
    if (n->where == REDACT_WORD)
        return (from == 0 || !is_word(text.p[from - 1])) && (to == text.len || !is_word(text.p[to]));
    return n->where == REDACT_ANYWHERE;
}

/* The longest secret that ends at `to`. */
static const struct redact_node *ends_at(const struct redact_search *s, uint32_t at, struct slice text, size_t to,
                                         bool opaque)
{
    if (!at)
        return NULL;
    for (uint32_t i = s->nodes.p[at].secret ? at : s->nodes.p[at].next; i; i = s->nodes.p[i].next)
        if (stands(&s->nodes.p[i], text, to, opaque))
            return &s->nodes.p[i];
    return NULL;
}

bool redact_search_all(const struct redact_search *s, struct slice text, bool opaque, struct redact_ranges *out)
{
    uint32_t at = 0;
    vec_clear(&out->ranges);
    for (size_t i = 0; i < text.len; i++) {
        at = step(s, at, text.p[i]);
        const struct redact_node *n = ends_at(s, at, text, i + 1, opaque);
        if (!n)
            continue;
        struct redact_range r = {i + 1 - n->depth, i + 1, n->secret - 1, false};
        while (out->ranges.n && vec_last(&out->ranges)->to > r.from) {
            const size_t from = vec_last(&out->ranges)->from;
            r.merged |= from < r.from;
            r.from = from < r.from ? from : r.from;
            out->ranges.n--;
        }
        if (!vec_push(&out->ranges, r))
            return false;
    }
    return true;
}
