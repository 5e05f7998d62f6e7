/* Makes the tree of a flame graph: filters one after the other, frames merged by name, children by size. */
#include "base/hash.h"
#include "base/u64map.h"
#include "sql/operators/flamegraph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int flame_column(const struct flame_source *s, const char *name)
{
    for (uint32_t i = 0; i < s->n_columns; i++)
        if (sqlite3_stricmp(s->names[i], name) == 0)
            return (int)i;
    return -1;
}

/* The frames while they are filtered. */
struct work {
    const struct flame_source *s;
    const struct flame_config *c;
    struct flame_tree *t;
    struct error *err;
    uint32_t nv;
    uint32_t *parent;    /* [frame] the nearest above that is not hidden */
    uint8_t *state;      /* [frame] */
    double *values;      /* [frame * nv + value] */
    int *groups;         /* grouping columns */
    uint32_t *next_same; /* [node] next with the same hash */
    VEC(uint32_t)
    chains;
    struct u64map merged; /* hash of (parent, side, name, groups) -> node + 1 */
    struct u64map pairs;  /* node << 32 | frame */
    uint32_t *node;       /* [frame] where it was merged to, downwards */
};

enum { MAX_ROWS = 1 << 24 }; /* a graph of deep stacks seen from below grows with the square of the depth */
enum { LIVE, HIDDEN, GONE }; /* a hidden frame's values went to its parent; a gone one counts nowhere */

/* Why a node could not be made. */
static int no_room(const struct work *w)
{
    return stop_asked(w->s->stop) ? -MRD_ECANCELLED : w->err->text[0] ? -MRD_ESQL : -MRD_ENOMEM;
}

static int fail(struct work *w, const char *what, const char *name)
{
    return error_set(w->err, -MRD_ESQL, "flamegraph: there is no column '%s' for '%s'", name, what);
}

static bool any_value(const double *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (v[i] > 0)
            return true;
    return false;
}

static void add_values(double *to, const double *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* ---- matching ---- */

static int match_text(const struct work *w, struct regex *r, struct slice text)
{
    struct regex_match m;
    regex_set_stop(r, w->s->stop);
    return regex_search(r, text, 0, &m);
}

static int match_cell(const struct work *w, struct regex *r, const struct flame_cell *cell)
{
    char text[40];
    if (cell->type == SQLITE_NULL)
        return 0;
    if (cell->type == SQLITE_TEXT)
        return match_text(w, r, strpool_view(w->s->strings, cell->s));
    if (cell->type == SQLITE_INTEGER)
        snprintf(text, sizeof text, "%lld", (long long)cell->i);
    else
        snprintf(text, sizeof text, "%.15g", cell->d);
    return match_text(w, r, slice_str(text));
}

/* Does the name or a grouping column match? Negative when it cannot be told. */
static int matches(const struct work *w, struct regex *r, uint32_t frame)
{
    strid name = w->s->frame_names[frame];
    int rc = name ? match_text(w, r, strpool_view(w->s->strings, name)) : 0;
    for (size_t i = 0; rc == 0 && i < w->c->grouping.n; i++)
        rc = match_cell(w, r, &w->s->cells[(size_t)frame * w->s->n_columns + (uint32_t)w->groups[i]]);
    return rc;
}

/* path[frame]: it or a frame above it matches. `self` (may be NULL): it does itself. */
static int match_paths(const struct work *w, struct regex *r, uint8_t *path, uint8_t *self)
{
    for (uint32_t k = 0; k < w->s->n_order; k++) {
        uint32_t f = w->s->order[k];
        if (stop_asked(w->s->stop))
            return -MRD_ECANCELLED;
        int rc = w->state[f] == LIVE ? matches(w, r, f) : 0;
        if (rc == -MRD_ECANCELLED)
            return rc;
        if (rc < 0)
            return error_set(w->err, rc == -MRD_ENOMEM ? rc : -MRD_ESQL,
                             "flamegraph: a pattern and a name are too large");
        if (self)
            self[f] = rc > 0;
        path[f] = rc > 0 || (w->parent[f] != FLAME_NONE && path[w->parent[f]]);
    }
    return 0;
}

/* ---- filters ---- */

static void hide_frames(struct work *w, const uint8_t *self)
{
    for (uint32_t k = 0; k < w->s->n_order; k++) {
        uint32_t f = w->s->order[k], up = w->parent[f];
        if (up != FLAME_NONE && w->state[up] == HIDDEN)
            up = w->parent[f] = w->parent[up];
        if (!self[f] || w->state[f] != LIVE)
            continue;
        w->state[f] = HIDDEN; /* of a root the children become roots, and its own value is nobody's */
        if (up != FLAME_NONE)
            add_values(&w->values[(size_t)up * w->nv], &w->values[(size_t)f * w->nv], w->nv);
    }
}

static int filter(struct work *w, const struct flame_filter *f)
{
    uint8_t *path = mem_zalloc(2 * ((size_t)w->s->n + 1)), *self = path ? path + w->s->n + 1 : NULL;
    if (!path)
        return -MRD_ENOMEM;
    int rc = match_paths(w, f->regex, path, self);
    if (rc == 0 && f->kind == FLAME_HIDE_FRAME)
        hide_frames(w, self);
    for (uint32_t i = 0; rc == 0 && f->kind != FLAME_HIDE_FRAME && i < w->s->n; i++) {
        if (path[i] == (f->kind == FLAME_SHOW_STACK))
            continue;
        if (f->kind == FLAME_HIDE_STACK)
            w->state[i] = GONE;
        memset(&w->values[(size_t)i * w->nv], 0, w->nv * sizeof *w->values);
    }
    mem_free(path);
    return rc;
}

/* ---- merging ---- */

static bool same_cell(const struct flame_cell *a, const struct flame_cell *b)
{
    return a->type == b->type && (a->type == SQLITE_NULL || a->i == b->i);
}

static bool same_frame(const struct work *w, uint32_t a, uint32_t b)
{
    const struct flame_cell *x = &w->s->cells[(size_t)a * w->s->n_columns],
                            *y = &w->s->cells[(size_t)b * w->s->n_columns];
    for (size_t i = 0; i < w->c->grouping.n; i++)
        if (!same_cell(&x[w->groups[i]], &y[w->groups[i]]))
            return false;
    return w->s->frame_names[a] == w->s->frame_names[b];
}

static uint64_t hash_of(const struct work *w, uint32_t parent, int32_t depth, uint32_t frame)
{
    uint64_t h = hash_keyed(hash_secret(), parent, depth < 0);
    h = hash_combine(h, w->s->frame_names[frame]);
    for (size_t i = 0; i < w->c->grouping.n; i++) {
        const struct flame_cell *c = &w->s->cells[(size_t)frame * w->s->n_columns + (uint32_t)w->groups[i]];
        h = hash_combine(h, c->type == SQLITE_NULL ? 0 : (uint64_t)c->i + c->type);
    }
    return h;
}

static bool has_room(const struct work *w, size_t n_rows)
{
    if (n_rows >= MAX_ROWS)
        error_set(w->err, -MRD_ESQL, "flamegraph: more than %d nodes and frames in this view; filter some", MAX_ROWS);
    return n_rows < MAX_ROWS;
}

/* Remembers that the frame is part of the node, once. */
static bool add_pair(struct work *w, uint32_t node, uint32_t frame)
{
    bool added;
    if (stop_asked(w->s->stop))
        return false;
    if (!u64map_put(&w->pairs, (uint64_t)node << 32 | frame, &added))
        return false;
    if (!added)
        return true;
    uint32_t row = (uint32_t)w->t->rows.n;
    if (!has_room(w, row))
        return false;
    if (!vec_push(&w->t->rows, (struct flame_row){frame, FLAME_NONE}))
        return false;
    struct flame_node *n = &w->t->nodes.p[node];
    if (n->first_row == FLAME_NONE)
        n->first_row = row;
    else
        w->t->rows.p[n->last_row].next = row;
    n->last_row = row;
    return true;
}

static bool grow_values(struct flame_tree *t)
{
    size_t n = t->nodes.n * t->n_values;
    if (t->nodes.n & (t->nodes.n - 1)) /* room for the next power of two is there */
        return true;
    double *self = mem_realloc(t->self, 2 * (n + 1) * sizeof *self);
    t->self = self ? self : t->self;
    double *cumulative = self ? mem_realloc(t->cumulative, 2 * (n + 1) * sizeof *cumulative) : NULL;
    t->cumulative = cumulative ? cumulative : t->cumulative;
    return self && cumulative;
}

/* The node below `parent` that the frame belongs to, made when it is the first; FLAME_NONE when out of memory. */
static uint32_t merge(struct work *w, uint32_t parent, int32_t depth, uint32_t frame)
{
    uint64_t *slot = u64map_put(&w->merged, hash_of(w, parent, depth, frame), NULL);
    if (!slot)
        return FLAME_NONE;
    for (uint64_t at = *slot; at; at = w->chains.p[at - 1]) {
        const struct flame_node *n = &w->t->nodes.p[at - 1];
        if (n->parent == parent && (n->depth < 0) == (depth < 0) && same_frame(w, n->frame, frame))
            return add_pair(w, (uint32_t)at - 1, frame) ? (uint32_t)at - 1 : FLAME_NONE;
    }
    uint32_t node = (uint32_t)w->t->nodes.n;
    struct flame_node made = {parent, depth, frame, FLAME_NONE, FLAME_NONE, 0};
    if (!vec_push(&w->chains, (uint32_t)*slot) || !vec_push(&w->t->nodes, made) || !grow_values(w->t))
        return FLAME_NONE;
    *slot = node + 1;
    memset(&w->t->self[(size_t)node * w->nv], 0, w->nv * sizeof(double));
    memset(&w->t->cumulative[(size_t)node * w->nv], 0, w->nv * sizeof(double));
    return add_pair(w, node, frame) ? node : FLAME_NONE;
}

/* From the roots, or (`from`) from the uppermost frames that match. */
static int downwards(struct work *w, const uint8_t *path)
{
    uint32_t nv = w->nv;
    for (uint32_t k = 0; k < w->s->n_order; k++) {
        uint32_t f = w->s->order[k], up = w->parent[f], above = FLAME_NONE;
        w->node[f] = FLAME_NONE;
        if (w->state[f] != LIVE || (path && !path[f]))
            continue;
        if (up != FLAME_NONE)
            above = w->node[up];
        w->node[f] = merge(w, above, above == FLAME_NONE ? 1 : w->t->nodes.p[above].depth + 1, f);
        if (w->node[f] == FLAME_NONE)
            return no_room(w);
        add_values(&w->t->self[(size_t)w->node[f] * nv], &w->values[(size_t)f * nv], nv);
    }
    for (size_t i = w->t->nodes.n; i-- > 0;) { /* parents were made before their children */
        add_values(&w->t->cumulative[i * nv], &w->t->self[i * nv], nv);
        if (w->t->nodes.p[i].parent != FLAME_NONE)
            add_values(&w->t->cumulative[(size_t)w->t->nodes.p[i].parent * nv], &w->t->cumulative[i * nv], nv);
    }
    return 0;
}

/* The callers of a frame, with what it spent. */
static int upwards(struct work *w, uint32_t frame, const double *values)
{
    uint32_t node = FLAME_NONE, nv = w->nv;
    int32_t depth = -1;
    if (!any_value(values, nv))
        return 0;
    for (uint32_t f = frame; f != FLAME_NONE; f = w->parent[f], depth--) {
        node = merge(w, node, depth, f);
        if (node == FLAME_NONE)
            return no_room(w);
        add_values(&w->t->cumulative[(size_t)node * nv], values, nv);
        if (depth == -1)
            add_values(&w->t->self[(size_t)node * nv], values, nv);
    }
    return 0;
}

/* What stands below the uppermost frames that match, and the callers of these. */
static int around(struct work *w, bool callers)
{
    size_t n = (size_t)w->s->n + 1;
    uint8_t *path = mem_zalloc(n);
    double *below = mem_zalloc(n * w->nv * sizeof *below);
    int rc = path && below ? match_paths(w, w->c->pivot, path, NULL) : -MRD_ENOMEM;
    if (rc == 0)
        rc = downwards(w, path);
    for (uint32_t k = w->s->n_order; rc == 0 && callers && k-- > 0;) {
        uint32_t f = w->s->order[k], up = w->parent[f];
        if (w->state[f] != LIVE || !path[f])
            continue;
        add_values(&below[(size_t)f * w->nv], &w->values[(size_t)f * w->nv], w->nv);
        if (up != FLAME_NONE && path[up])
            add_values(&below[(size_t)up * w->nv], &below[(size_t)f * w->nv], w->nv);
        else
            rc = upwards(w, f, &below[(size_t)f * w->nv]);
    }
    mem_free(path);
    mem_free(below);
    return rc;
}

static int view(struct work *w)
{
    int rc = 0;
    if (w->c->view == FLAME_TOP_DOWN)
        return downwards(w, NULL);
    if (w->c->view != FLAME_BOTTOM_UP)
        return around(w, w->c->view == FLAME_PIVOT);
    for (uint32_t k = 0; rc == 0 && k < w->s->n_order; k++)
        if (w->state[w->s->order[k]] == LIVE)
            rc = upwards(w, w->s->order[k], &w->values[(size_t)w->s->order[k] * w->nv]);
    return rc;
}

/* Rows of hidden frames go to the nodes of those that took their values. */
static bool add_hidden(struct work *w)
{
    VEC(uint64_t)
    more = {0};
    uint32_t *first = mem_alloc(2 * ((size_t)w->s->n + 1) * sizeof *first), *next = first ? first + w->s->n + 1 : NULL;
    bool ok = first != NULL;
    for (uint32_t i = 0; ok && i < w->s->n; i++)
        first[i] = FLAME_NONE;
    for (uint32_t k = w->s->n_order; ok && k-- > 0;) { /* backwards: lists come out in the order of frames */
        uint32_t f = w->s->order[k], to = f;
        if (w->state[f] != HIDDEN)
            continue;
        ok = !stop_asked(w->s->stop);
        while (to != FLAME_NONE && w->state[to] == HIDDEN)
            to = w->parent[to];
        if (to == FLAME_NONE)
            continue;
        next[f] = first[to];
        first[to] = f;
    }
    for (uint32_t node = 0; ok && node < w->t->nodes.n; node++)
        for (uint32_t r = w->t->nodes.p[node].first_row; ok && r != FLAME_NONE; r = w->t->rows.p[r].next)
            for (uint32_t f = first[w->t->rows.p[r].frame]; ok && f != FLAME_NONE; f = next[f])
                ok = !stop_asked(w->s->stop) && has_room(w, w->t->rows.n + more.n) &&
                     vec_push(&more, (uint64_t)node << 32 | f);
    for (size_t i = 0; ok && i < more.n; i++)
        ok = add_pair(w, (uint32_t)(more.p[i] >> 32), (uint32_t)more.p[i]);
    vec_free(&more);
    mem_free(first);
    return ok;
}

/* ---- layout ---- */

struct placed {
    uint32_t node, parent_place; /* parent_place: of the parent in the order, FLAME_NONE at roots */
    uint32_t level;
    bool upwards;
    double size;
};

static int by_place(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    if (x->upwards != y->upwards)
        return x->upwards ? 1 : -1;
    if (x->parent_place != y->parent_place)
        return x->parent_place < y->parent_place ? -1 : 1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x->node < y->node ? -1 : 1;
}

static int by_level(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return x->node < y->node ? -1 : 1;
}

/* Orders the nodes by level, side and place of the parent, the larger first; drops what has no value; sets x. */
static bool lay_out(struct flame_tree *t, stop_flag *stop)
{
    uint32_t n = 0, nv = t->n_values, all = (uint32_t)t->nodes.n;
    struct placed *p = mem_alloc(((size_t)all + 1) * sizeof *p);
    uint32_t *place = mem_alloc(((size_t)all + 1) * sizeof *place); /* [old node] */
    struct flame_node *nodes = mem_alloc(((size_t)all + 1) * sizeof *nodes);
    double *values = mem_alloc((2 * (size_t)all * nv + 1) * sizeof *values),
           *right = mem_zalloc((all + 2) * sizeof *right);
    bool ok = p && place && nodes && values && right;
    for (uint32_t i = 0; ok && i < all; i++) {
        int32_t d = t->nodes.p[i].depth;
        if (any_value(&t->cumulative[(size_t)i * nv], nv))
            p[n++] = (struct placed){i, FLAME_NONE, (uint32_t)(d < 0 ? -d : d), d < 0, t->cumulative[(size_t)i * nv]};
    }
    if (ok)
        ok = stop_sort(p, n, sizeof *p, by_level, stop);
    for (uint32_t i = 0; ok && i < n;) { /* level by level: places of parents are known then */
        uint32_t end = i;
        for (; end < n && p[end].level == p[i].level; end++) {
            uint32_t parent = t->nodes.p[p[end].node].parent;
            p[end].parent_place = parent == FLAME_NONE ? FLAME_NONE : place[parent];
        }
        if (!(ok = stop_sort(p + i, end - i, sizeof *p, by_place, stop)))
            break;
        double root_x[2] = {0, 0};
        for (; i < end; i++) {
            uint32_t up = p[i].parent_place;
            struct flame_node *node = &nodes[i];
            *node = t->nodes.p[p[i].node];
            node->parent = up;
            double *x = up == FLAME_NONE ? &root_x[p[i].upwards] : &right[up];
            node->x = *x;
            *x += p[i].size;
            right[i] = node->x; /* where its first child begins */
            place[p[i].node] = i;
            memcpy(&values[(size_t)i * nv], &t->self[(size_t)p[i].node * nv], nv * sizeof *values);
            memcpy(&values[((size_t)all + i) * nv], &t->cumulative[(size_t)p[i].node * nv], nv * sizeof *values);
        }
    }
    if (ok && all) {
        memcpy(t->nodes.p, nodes, n * sizeof *nodes);
        memcpy(t->self, values, (size_t)n * nv * sizeof *values);
        memcpy(t->cumulative, values + (size_t)all * nv, (size_t)n * nv * sizeof *values);
        t->nodes.n = n;
    }
    mem_free(p);
    mem_free(place);
    mem_free(nodes);
    mem_free(values);
    mem_free(right);
    return ok;
}

/* ---- all of it ---- */

static int read_columns(struct work *w)
{
    const struct flame_config *c = w->c;
    if (c->values.n > sizeof w->t->value_columns / sizeof *w->t->value_columns)
        return error_set(w->err, -MRD_ESQL, "flamegraph: too many values");
    for (size_t i = 0; i < c->values.n; i++)
        if ((w->t->value_columns[i] = flame_column(w->s, c->values.p[i])) < 0)
            return fail(w, "value", c->values.p[i]);
    for (size_t i = 0; i < c->grouping.n; i++)
        if ((w->groups[i] = flame_column(w->s, c->grouping.p[i])) < 0)
            return fail(w, "grouping", c->grouping.p[i]);
    for (size_t i = 0; i < c->aggregates.n; i++)
        if (flame_column(w->s, c->aggregates.p[i].input) < 0 || flame_column(w->s, c->aggregates.p[i].output) < 0)
            return fail(w, "aggregate", c->aggregates.p[i].input);
    return 0;
}

static int read_values(struct work *w)
{
    for (uint32_t f = 0; f < w->s->n; f++) {
        w->parent[f] = w->s->parents[f];
        for (uint32_t v = 0; v < w->nv; v++) {
            const struct flame_cell *c = &w->s->cells[(size_t)f * w->s->n_columns + (uint32_t)w->t->value_columns[v]];
            double d = c->type == SQLITE_INTEGER ? (double)c->i : c->type == SQLITE_FLOAT ? c->d : 0;
            if (c->type == SQLITE_TEXT)
                return error_set(w->err, -MRD_ESQL, "flamegraph: value columns must be numbers");
            if (d < 0)
                return error_set(w->err, -MRD_ESQL, "flamegraph: value columns must be non-negative");
            w->values[(size_t)f * w->nv + v] = d;
            w->t->total += v == 0 ? d : 0;
        }
    }
    return 0;
}

int flame_tree_build(struct flame_tree *t, const struct flame_source *s, const struct flame_config *c,
                     struct error *err)
{
    size_t n = (size_t)s->n + 1;
    struct work w = {.s = s, .c = c, .t = t, .err = err, .nv = (uint32_t)c->values.n};
    t->n_values = w.nv;
    w.parent = mem_alloc(n * sizeof *w.parent);
    w.node = mem_alloc(n * sizeof *w.node);
    w.state = mem_zalloc(n);
    w.values = mem_alloc(n * w.nv * sizeof *w.values);
    w.groups = mem_alloc((c->grouping.n + 1) * sizeof *w.groups);
    int rc = w.parent && w.node && w.state && w.values && w.groups ? read_columns(&w) : -MRD_ENOMEM;
    if (rc == 0)
        rc = read_values(&w);
    for (size_t i = 0; rc == 0 && i < c->filters.n; i++)
        rc = filter(&w, &c->filters.p[i]);
    if (rc == 0)
        rc = view(&w);
    if (rc == 0 && !add_hidden(&w))
        rc = no_room(&w);
    if (rc == 0 && !lay_out(t, s->stop))
        rc = no_room(&w);
    mem_free(w.parent);
    mem_free(w.node);
    mem_free(w.state);
    mem_free(w.values);
    mem_free(w.groups);
    vec_free(&w.chains);
    u64map_free(&w.merged);
    u64map_free(&w.pairs);
    return rc;
}

void flame_tree_free(struct flame_tree *t)
{
    vec_free(&t->nodes);
    vec_free(&t->rows);
    mem_free(t->self);
    mem_free(t->cumulative);
    *t = (struct flame_tree){0};
}
