/* Calls of window functions: what each computes over which frame, and the levels of partition and order. */
#include "sql/plan/mixed.h"

#include <string.h>

static const struct {
    const char *name;
    uint8_t kind;
    uint8_t least, most; /* arguments */
} windows[] = {{"row_number", WIN_ROW_NUMBER, 0, 0},
               {"rank", WIN_RANK, 0, 0},
               {"dense_rank", WIN_DENSE_RANK, 0, 0},
               {"percent_rank", WIN_PERCENT_RANK, 0, 0},
               {"cume_dist", WIN_CUME_DIST, 0, 0},
               {"ntile", WIN_NTILE, 1, 1},
               {"lag", WIN_LAG, 1, 3},
               {"lead", WIN_LEAD, 1, 3},
               {"first_value", WIN_FIRST, 1, 1},
               {"last_value", WIN_LAST, 1, 1},
               {"nth_value", WIN_NTH, 2, 2},
               {"count", WIN_COUNT, 1, 1},
               {"sum", WIN_SUM, 1, 1},
               {"total", WIN_TOTAL, 1, 1},
               {"avg", WIN_AVG, 1, 1},
               {"min", WIN_MIN, 1, 1},
               {"max", WIN_MAX, 1, 1},
               {"group_concat", WIN_CONCAT, 1, 2}};

/* n of `n PRECEDING`, as a distance from the row; false when it is no plain number. */
static bool read_bound(struct reader *r, const struct sql_bound *b, int64_t *out)
{
    *out = 0;
    if (b->kind == BOUND_CURRENT)
        return true;
    if (b->kind != BOUND_PRECEDING && b->kind != BOUND_FOLLOWING)
        return false;
    struct plan_expr *n = read_constant(r, b->offset);
    if (!n || n->type != PLAN_INT || n->word < 0 || n->word > UINT32_MAX)
        return false;
    *out = b->kind == BOUND_PRECEDING ? -n->word : n->word;
    return true;
}

static bool is_unbounded(const struct sql_bound *b, enum frame_end side)
{
    return b->kind == BOUND_UNBOUNDED && b->side == side;
}

/* RANGE and GROUPS from and to the equals of the row: all of them. */
static bool read_peers(struct reader *r, const struct sql_window *w, struct plan_window *out, bool groups)
{
    const struct sql_bound *ends[] = {&w->from, &w->to};
    for (int i = 0; i < 2; i++)
        if (!groups && ends[i]->kind != BOUND_CURRENT && ends[i]->kind != BOUND_UNBOUNDED &&
            ends[i]->kind != BOUND_NONE)
            return false;
    out->frame = FRAME_GROUPS;
    return w->order && r->plan;
}

/* Functions that get a frame of their own leave nothing out of it. */
static bool read_exclude(const struct sql_window *w, struct plan_window *out)
{
    static const char *const names[] = {
        [EXCLUDE_NONE] = "no", [EXCLUDE_ROW] = "current", [EXCLUDE_GROUP] = "group", [EXCLUDE_TIES] = "ties"};
    uint8_t exclude = 0;
    while (exclude < EXCLUDE_TIES && !sql_name_is(w->exclude, names[exclude]))
        exclude++;
    if (out->kind > WIN_LEAD)
        out->exclude = exclude;
    return !out->exclude || (out->kind >= WIN_COUNT_ROWS && out->kind <= WIN_MAX);
}

static bool read_frame(struct reader *r, const struct sql_window *w, struct plan_window *out)
{
    out->frame = w->order ? FRAME_PEERS : FRAME_WHOLE;
    if (!w->frame.len)
        return true;
    if (w->exclude.len && !read_exclude(w, out))
        return false;
    bool rows = sql_name_is(w->frame, "rows"), from_start = is_unbounded(&w->from, FRAME_PRECEDING);
    bool to_row = w->to.kind == BOUND_CURRENT || w->to.kind == BOUND_NONE;
    if (from_start && is_unbounded(&w->to, FRAME_FOLLOWING)) {
        out->frame = FRAME_WHOLE;
        return true;
    }
    if (from_start && to_row) {
        if (rows)
            out->frame = FRAME_ROWS;
        return true;
    }
    out->frame = FRAME_SLIDING;
    if (!rows && !read_peers(r, w, out, sql_name_is(w->frame, "groups"))) {
        if (!sql_name_is(w->frame, "range") || !w->order || w->order->next || w->order->nulls_first ||
            w->order->nulls_last)
            return false;
        out->frame = FRAME_RANGE;
    }
    out->from = -FRAME_FAR;
    out->to = is_unbounded(&w->to, FRAME_FOLLOWING) ? FRAME_FAR : 0;
    return (from_start || read_bound(r, &w->from, &out->from)) &&
           (w->to.kind == BOUND_NONE || out->to || read_bound(r, &w->to, &out->to)) && out->from <= out->to;
}

static const struct sql_window *named_window(const struct reader *r, const struct sql_window *w)
{
    if (!w->name.len)
        return w;
    for (const struct sql_window *n = r->core ? r->core->windows : NULL; n; n = n->next)
        if (sql_name_equal(n->name, w->name))
            return n->base.len ? NULL : n;
    return NULL;
}

static bool add_term(struct query_plan *p, struct plan_level *l, struct plan_expr *x, bool desc)
{
    int at = x && l->n < PLAN_MAX_ORDER ? plan_stage_column(p, &p->window_rows, x) : -1;
    if (at >= 0)
        l->order[l->n++] = (struct plan_order){(int16_t)at, desc};
    return at >= 0;
}

static void keep_bound(int64_t *out, const struct sql_bound *b, int64_t distance)
{
    out[0] = b->kind;
    out[1] = b->kind == BOUND_PRECEDING || b->kind == BOUND_FOLLOWING ? distance : 0;
}

/* What SQLite takes as the frame: functions that have no use for one get one of their own. */
static void keep_frame(struct plan_level *l, const struct sql_window *over, const struct plan_window *w)
{
    static const uint8_t own[WIN_KINDS] = {
        [WIN_ROW_NUMBER] = 1, [WIN_RANK] = 2,  [WIN_DENSE_RANK] = 2, [WIN_PERCENT_RANK] = 3,
        [WIN_CUME_DIST] = 4,  [WIN_NTILE] = 5, [WIN_LEAD] = 6,       [WIN_LAG] = 1};
    /* ROWS or RANGE from the first row to this one may also be written out */
    bool from_start = is_unbounded(&over->from, FRAME_PRECEDING);
    bool usual = from_start && (over->to.kind == BOUND_CURRENT || over->to.kind == BOUND_NONE);
    bool whole = from_start && is_unbounded(&over->to, FRAME_FOLLOWING);
    char type = over->frame.len ? (char)(over->frame.p[1] & 0x5f) : 'A'; /* rOws, rAnge, gRoups */
    l->frame[0] = own[w->kind];
    if (own[w->kind])
        return;
    if (!over->frame.len || (usual && type == 'A')) {
        l->frame[0] = 2;
    } else if (usual && type == 'O') {
        l->frame[0] = 1;
    } else if (whole && type == 'O') {
        l->frame[0] = 6;
    } else if (over->from.kind == BOUND_CURRENT && is_unbounded(&over->to, FRAME_FOLLOWING) && type != 'A') {
        l->frame[0] = type == 'O' ? 5 : 3;
    } else {
        l->frame[0] = type;
        keep_bound(l->frame + 1, &over->from, w->from);
        keep_bound(l->frame + 3, &over->to, w->to);
    }
    l->frame[0] |= (int64_t)w->exclude << 8;
}

static bool same_level(const struct plan_level *a, const struct plan_level *b)
{
    bool same = a->n == b->n && a->n_partition == b->n_partition && memcmp(a->frame, b->frame, sizeof a->frame) == 0;
    for (uint32_t i = 0; same && i < a->n; i++)
        same = a->order[i].column == b->order[i].column && a->order[i].desc == b->order[i].desc;
    return same;
}

/* PARTITION BY and ORDER BY as columns of the stage. SQLite computes windows level by level, the first that is written
 * last; those of one frame, too, are a level. */
static bool read_level(struct reader *r, const struct sql_window *over, struct plan_window *w)
{
    struct query_plan *p = r->plan;
    struct plan_level l = {.n = 0};
    for (const struct sql_expr *x = over->partition; x; x = x->next)
        if (!add_term(p, &l, read_expr(r, x), false))
            return false;
    l.n_partition = l.n;
    for (const struct sql_order *o = over->order; o; o = o->next) {
        struct plan_expr *x = read_expr(r, o->expr);
        struct plan_expr *nulls = x ? read_null_order(r, o, x) : NULL;
        if (nulls && (r->core->group || !add_term(p, &l, nulls, o->desc))) /* groups could be turned round */
            return false;
        if (!add_term(p, &l, x, o->desc))
            return false;
    }
    keep_frame(&l, over, w);
    uint32_t at = 0;
    while (at < p->n_levels && !same_level(&p->levels[at], &l))
        at++;
    if (at == PLAN_MAX_LEVELS)
        return false;
    if (at == p->n_levels)
        p->levels[p->n_levels++] = l;
    w->level = (uint8_t)at;
    return true;
}

static enum plan_type window_type(uint8_t kind, enum plan_type of)
{
    if (kind == WIN_PERCENT_RANK || kind == WIN_CUME_DIST || kind == WIN_TOTAL || kind == WIN_AVG)
        return PLAN_REAL;
    if (kind <= WIN_NTILE || kind == WIN_COUNT || kind == WIN_COUNT_ROWS)
        return PLAN_INT;
    return kind == WIN_CONCAT ? PLAN_TEXT : of;
}

/* An integer that stands in for a real shows as one. */
static struct plan_expr *fallback_of(struct reader *r, struct plan_expr *x, enum plan_type of)
{
    struct plan_expr *out = of == PLAN_REAL ? mixed_constant(r, x) : NULL;
    if (!out)
        return x;
    out->mixed = true;
    return out;
}

/* The other arguments: how many rows away, and what stands where there is none. */
static bool read_window_args(struct reader *r, const struct sql_expr *x, struct plan_window *w, enum plan_type *of)
{
    struct query_plan *p = r->plan;
    const struct sql_expr *arg = x->args;
    bool neighbour = w->kind == WIN_LAG || w->kind == WIN_LEAD;
    if (w->kind != WIN_NTILE && arg) {
        struct plan_expr *v = read_expr(r, arg);
        int at = v && v->type != PLAN_NULL ? plan_stage_column(p, &p->window_rows, v) : -1;
        if (at < 0 || (v->type == PLAN_TEXT && w->kind >= WIN_SUM && w->kind != WIN_CONCAT))
            return false;
        *of = (enum plan_type)v->type;
        w->arg = (int16_t)at;
        arg = arg->next;
    }
    if (w->kind == WIN_CONCAT) {
        struct plan_expr *s = arg ? read_constant(r, arg) : NULL;
        w->separator = s && s->type == PLAN_TEXT ? strpool_view(&r->planner->e->storage->strings, (strid)s->word)
                                                 : slice_of(",", 1);
        return !arg || (s && s->type == PLAN_TEXT);
    }
    if (arg) {
        struct plan_expr *n = read_constant(r, arg);
        if (!n || n->type != PLAN_INT || n->word < !neighbour || n->word > UINT32_MAX)
            return false;
        w->offset = n->word;
        arg = arg->next;
    }
    if (arg) {
        struct plan_expr *v = read_expr(r, arg);
        v = v ? fallback_of(r, v, *of) : NULL;
        int at = v && v->type == *of ? plan_stage_column(p, &p->window_rows, v) : -1;
        if (at < 0)
            return false;
        w->fallback = (int16_t)at;
    }
    return true;
}

/* FILTER, as a column that is 1 where the row counts. */
static bool read_window_filter(struct reader *r, const struct sql_expr *x, struct plan_window *w)
{
    struct plan_expr *v = x->filter ? read_expr(r, x->filter) : NULL;
    if (!x->filter)
        return true;
    if (w->kind < WIN_COUNT_ROWS || !v || v->type == PLAN_TEXT || v->type == PLAN_NULL)
        return false;
    struct plan_expr *zero = plan_const(r->plan, PLAN_INT, 0), *holds = zero ? read_compare(r, SQL_NE, v, zero) : NULL;
    int at = holds ? plan_stage_column(r->plan, &r->plan->window_rows, holds) : -1;
    w->filter = (int16_t)at;
    return at >= 0;
}

struct plan_expr *read_window(struct reader *r, const struct sql_expr *x)
{
    struct query_plan *p = r->plan;
    const struct sql_window *over = named_window(r, x->over);
    struct plan_window w;
    memset(&w, 0, sizeof w); /* whole words are compared */
    w.arg = w.fallback = w.filter = -1;
    w.offset = 1;
    enum plan_type of = PLAN_NULL;
    size_t at = 0;
    if (!r->windows_allowed || r->in_aggregate || !over || over->base.len || x->distinct ||
        p->n_windows == PLAN_MAX_AGGREGATES)
        return NULL;
    bool star = sql_name_is(x->name, "count") && (x->star || x->n_args == 0);
    while (at < sizeof windows / sizeof *windows && !sql_name_is(x->name, windows[at].name))
        at++;
    if (at == sizeof windows / sizeof *windows || (!star && (x->star || x->n_args < windows[at].least)) ||
        x->n_args > windows[at].most)
        return NULL;
    w.kind = star ? WIN_COUNT_ROWS : windows[at].kind;
    r->windows_allowed = false;
    bool ok = read_window_args(r, x, &w, &of) && read_window_filter(r, x, &w) && read_frame(r, over, &w) &&
              read_level(r, over, &w);
    r->windows_allowed = true;
    if (!ok)
        return NULL;
    bool extreme = w.kind == WIN_MIN || w.kind == WIN_MAX;
    if (w.filter >= 0 && extreme && w.frame >= FRAME_SLIDING && w.from != -FRAME_FAR)
        return NULL; /* SQLite 3.40 passes over the filter then */
    const struct plan_level *l = &p->levels[w.level];
    if (w.frame == FRAME_RANGE && p->window_rows.columns[l->order[l->n_partition].column]->type != PLAN_INT)
        return NULL;
    w.type = (uint8_t)window_type(w.kind, of);
    struct plan_expr *out = plan_expr_new(p, X_RESULT, (enum plan_type)w.type, 0);
    uint32_t same = 0;
    while (same < p->n_windows && memcmp(&p->windows[same], &w, sizeof w) != 0)
        same++;
    if (out) {
        out->column = (int16_t)same;
        out->sources = 1u << PLAN_WINDOWS;
        out->mixed = w.fallback >= 0 && p->window_rows.columns[w.fallback]->mixed;
        p->windows[same] = w;
        p->n_windows += same == p->n_windows;
    }
    return out;
}
