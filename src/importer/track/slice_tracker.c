/* The stack of open slices of every track and the nesting rules of `slice`. */
#include "importer/track/slice_tracker.h"

#include "base/saturate.h"
#include "base/u64map.h"
#include "importer/track/flow_tracker.h"

enum { MAX_DEPTH = 512 };

struct open_slice {
    int64_t ts;
    int64_t dur; /* -1: its end has not come */
    uint32_t row;
    strid category;
    strid name;
    bool own_args; /* its set of args was made for it */
};

struct stack { /* of one track */
    struct open_slice *p;
    uint32_t n;
    uint32_t cap;
    uint32_t complete; /* of them, those whose end is known */
};

struct slice_tracker {
    struct importer *im;
    const struct u64map *translations; /* name -> the one that slices get; NULL: they keep theirs */
    VEC(struct stack)
    stacks; /* by track row */
};

struct slice_tracker *slice_tracker_open(struct importer *im)
{
    struct slice_tracker *t = mem_zalloc(sizeof *t);
    if (t)
        t->im = im;
    return t;
}

void slice_tracker_translate(struct slice_tracker *t, const struct u64map *names)
{
    t->translations = names;
}

static strid translated(const struct slice_tracker *t, strid name)
{
    const uint64_t *to = t->translations && t->translations->n ? u64map_get(t->translations, name) : NULL;
    return to ? (strid)*to : name;
}

/* The args of these slices of a stack are complete: nothing adds to them. */
static inline void complete_args(struct slice_tracker *t, const struct stack *s, uint32_t from, uint32_t to)
{
    struct args *args = &t->im->st->args;
    if (__builtin_expect(args_count(args) > ARGS_MAX_NUMBERED, 1))
        return;
    for (uint32_t i = to; i-- > from;)
        if (s->p[i].own_args)
            args_complete(args, ROW_ARGS(t->im->st, slice, arg_set_id, s->p[i].row));
}

void slice_tracker_finish(struct slice_tracker *t)
{
    for (size_t i = 0; i < t->stacks.n; i++) {
        complete_args(t, &t->stacks.p[i], 0, t->stacks.p[i].n);
        mem_free(t->stacks.p[i].p);
    }
    vec_free(&t->stacks);
}

void slice_tracker_close(struct slice_tracker *t)
{
    if (!t)
        return;
    slice_tracker_finish(t);
    mem_free(t);
}

static struct stack *stack_of(struct slice_tracker *t, uint32_t track)
{
    if (track >= t->stacks.n) {
        if (track == UINT32_MAX || !vec_reserve(&t->stacks, (size_t)track + 1)) {
            t->im->failed = true;
            return NULL;
        }
        memset(t->stacks.p + t->stacks.n, 0, (track + 1 - t->stacks.n) * sizeof *t->stacks.p);
        t->stacks.n = track + 1;
    }
    return &t->stacks.p[track];
}

static bool stack_room(struct stack *s)
{
    if (s->n < s->cap)
        return true;
    uint32_t cap = s->cap ? s->cap * 2 : 8;
    struct open_slice *p = mem_realloc(s->p, cap * sizeof *p);
    if (!p)
        return false;
    s->p = p;
    s->cap = cap;
    return true;
}

static uint32_t count_complete(const struct stack *s)
{
    uint32_t complete = 0;
    for (uint32_t i = 0; i < s->n; i++)
        complete += s->p[i].dur >= 0;
    return complete;
}

/* Takes what is over by `ts` off the stack. An open slice inside a complete one that was over before ends with it (its
 * own end would cross its parent's: counted as misplaced). `dur` is that of the event that comes. The innermost
 * complete slice that the event would outlast, SLICE_NONE when it fits: what is around that one stays as it is. */
static uint32_t close_stack(struct slice_tracker *t, uint32_t machine, struct stack *s, int64_t ts, int64_t dur)
{
    bool open_child = false;
    uint32_t outlasted = SLICE_NONE, n = s->n;
    for (uint32_t i = s->complete ? n : 0; i-- > 0;) { /* open ones only: nothing can be over */
        struct open_slice *o = &s->p[i];
        if (o->dur < 0) {
            open_child = true;
            continue;
        }
        int64_t end;
        if (__builtin_add_overflow(o->ts, o->dur, &end))
            end = INT64_MAX;
        if (open_child) {
            if (ts <= end)
                continue;
            stats_add(&t->im->st->stats, machine, STAT_misplaced_end_event, 1);
            for (uint32_t j = i + 1; j < s->n; j++)
                ROW_SET(t->im->st, slice, dur, s->p[j].row, saturating_sub(end, s->p[j].ts));
            complete_args(t, s, i, s->n);
            s->n = i;
            open_child = false;
            continue;
        }
        if (end < ts || (end == ts && !(o->dur == 0 && dur == 0))) {
            complete_args(t, s, s->n - 1, s->n);
            s->n--; /* the top one, which is another where a slice reaches beyond this one: as Perfetto does */
            continue;
        }
        int64_t new_end;
        if (dur >= 0 && (__builtin_add_overflow(ts, dur, &new_end) || new_end > end)) {
            outlasted = o->row;
            break;
        }
    }
    if (s->n != n)
        s->complete = count_complete(s);
    return outlasted;
}

/* Notes a slice with too many open ones around it. */
static __attribute__((noinline)) void log_depth(struct slice_tracker *t, uint32_t machine, const struct stack *s,
                                                int64_t ts, strid name)
{
    struct args *args = &t->im->st->args;
    struct arg_list list = {0};
    arg_list_str(args, &list, "parent_slice_name", s->p[s->n - 1].name);
    arg_list_str(args, &list, "current_slice_name", name);
    argset set = args_intern(args, list.p, list.n);
    arg_list_free(&list);
    import_log(t->im->machines.p[machine], STAT_slice_max_depth_exceeded, ts, -1, set);
}

/* In the code of slice_begin(), too, where most of a row is known when this is compiled. */
static inline __attribute__((always_inline)) uint32_t push_fitting(struct slice_tracker *t, uint32_t machine,
                                                                   struct slice_row *row, uint32_t *conflict)
{
    struct storage *st = t->im->st;
    struct stack *s = stack_of(t, (uint32_t)row->track_id);
    *conflict = SLICE_NONE;
    if (!s)
        return SLICE_NONE;
    row->name = translated(t, (strid)row->name);
    if (s->complete) /* else nothing can be over */
        *conflict = close_stack(t, machine, s, row->ts, row->dur);
    if (*conflict != SLICE_NONE)
        return SLICE_NONE;
    if (s->n >= MAX_DEPTH) {
        log_depth(t, machine, s, row->ts, (strid)row->name);
        return SLICE_NONE;
    }
    row->depth = s->n;
    row->parent_id = s->n ? s->p[s->n - 1].row : COL_NULL;
    uint32_t id = slice_insert(st, row);
    if (id == UINT32_MAX || !stack_room(s)) {
        t->im->failed = true;
        return SLICE_NONE;
    }
    bool own_args = !argset_is_none(row->arg_set_id) && row->arg_set_id.plus_one == st->args.sets.n;
    s->p[s->n++] = (struct open_slice){row->ts, row->dur, id, row->category, row->name, own_args};
    s->complete += row->dur >= 0;
    if (t->im->flows)
        flow_tracker_slice_begun(t->im->flows, machine, (uint32_t)row->track_id, id);
    return id;
}

uint32_t slice_push_fitting(struct slice_tracker *t, uint32_t machine, struct slice_row *row, uint32_t *conflict)
{
    return push_fitting(t, machine, row, conflict);
}

uint32_t slice_push(struct slice_tracker *t, uint32_t machine, struct slice_row *row)
{
    uint32_t conflict, slice = slice_push_fitting(t, machine, row, &conflict);
    if (conflict != SLICE_NONE)
        stats_add(&t->im->st->stats, machine, STAT_slice_drop_overlapping_complete_event, 1);
    return slice;
}

static struct slice_row plain_row(int64_t ts, int64_t dur, uint32_t track, strid category, strid name, argset args)
{
    return (struct slice_row){.ts = ts,
                              .dur = dur,
                              .track_id = track,
                              .category = category,
                              .name = name,
                              .arg_set_id = args,
                              .thread_ts = COL_NULL,
                              .thread_dur = COL_NULL,
                              .thread_instruction_count = COL_NULL,
                              .thread_instruction_delta = COL_NULL};
}

uint32_t slice_begin(struct slice_tracker *t, uint32_t machine, int64_t ts, uint32_t track, strid category, strid name,
                     argset args)
{
    struct slice_row row = plain_row(ts, -1, track, category, name, args);
    uint32_t conflict; /* none: it has no end yet to outlast anything */
    return push_fitting(t, machine, &row, &conflict);
}

uint32_t slice_scoped(struct slice_tracker *t, uint32_t machine, int64_t ts, uint32_t track, strid category, strid name,
                      int64_t dur, argset args)
{
    if (dur < 0) {
        stats_add(&t->im->st->stats, machine, STAT_slice_negative_duration, 1);
        return SLICE_NONE;
    }
    struct slice_row row = plain_row(ts, dur, track, category, name, args);
    return slice_push(t, machine, &row);
}

uint32_t slice_end(struct slice_tracker *t, uint32_t machine, int64_t ts, uint32_t track, strid category, strid name,
                   const struct arg_list *add)
{
    struct stack *s = track < t->stacks.n ? &t->stacks.p[track] : NULL;
    if (!s || !s->n)
        return SLICE_NONE;
    if (s->complete)
        close_stack(t, machine, s, ts, -1);
    name = translated(t, name);
    for (uint32_t i = s->n; i-- > 0;) {
        struct open_slice *o = &s->p[i];
        if (o->dur >= 0 || (category && category != o->category) || (name && o->name && name != o->name))
            continue;
        uint32_t row = o->row;
        o->dur = saturating_sub(ts, o->ts);
        ROW_SET(t->im->st, slice, dur, row, o->dur);
        size_t n_sets = t->im->st->args.sets.n;
        if (add && add->n)
            slice_add_args(t, row, add);
        o->own_args |= t->im->st->args.sets.n > n_sets;
        if (i == s->n - 1) {
            complete_args(t, s, i, s->n);
            s->n--;
        } else {
            s->complete++;
        }
        return row;
    }
    return SLICE_NONE;
}

uint32_t slice_top(struct slice_tracker *t, uint32_t track)
{
    const struct stack *s = track < t->stacks.n ? &t->stacks.p[track] : NULL;
    return s && s->n ? s->p[s->n - 1].row : SLICE_NONE;
}

bool arg_list_merge(struct arg_list *all, const struct arg_list *add)
{
    enum { FEW = 64 }; /* are looked through faster than a map is made */
    size_t before = all->n;
    struct u64map first = {0};
    bool ok = true;
    for (size_t i = before; add->n > FEW && before > FEW && ok && i-- > 0;)
        ok = u64map_set(&first, all->p[i].key, i);
    for (size_t i = 0; i < add->n && ok; i++) {
        size_t at = 0;
        if (first.n) {
            const uint64_t *known = u64map_get(&first, add->p[i].key);
            at = known ? (size_t)*known : before;
        }
        while (!first.n && at < before && all->p[at].key != add->p[i].key)
            at++;
        if (at < before)
            all->p[at] = add->p[i];
        else
            ok = vec_push(all, add->p[i]);
    }
    u64map_free(&first);
    return ok;
}

void slice_add_args(struct slice_tracker *t, uint32_t slice, const struct arg_list *add)
{
    struct storage *st = t->im->st;
    argset have = ROW_ARGS(st, slice, arg_set_id, slice);
    argset set;
    if (!add->n)
        return;
    if (argset_is_none(have)) {
        set = args_intern(&st->args, add->p, add->n);
    } else {
        struct arg_list all = {0};
        args_values(&st->args, have, &all);
        if (!arg_list_merge(&all, add))
            t->im->failed = true;
        set = args_intern(&st->args, all.p, all.n);
        arg_list_free(&all);
    }
    if (!argset_is_none(set))
        ROW_SET_ARGS(st, slice, arg_set_id, slice, set);
}
