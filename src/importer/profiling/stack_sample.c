/* Imports StackSample: a sample of any profiler, with its task, its cpu and the counters it was taken by. */
#include "importer/profiling/profiling_internal.h"

#include "base/hash.h"
#include "importer/track/track_tracker.h"
#include "wire/fields.h"

enum {
    MAX_FOLLOWERS = 32,
    MAX_PARENTS = 64, /* of an async context; more is a loop */
};

/* StackSample.Mode and StackSample.Unit. */
static const char *const modes[] = {NULL, "user", "kernel", "hypervisor", "guest_user", "guest_kernel"};
static const char *const units[] = {NULL,          "ns",           "cycles",           "instructions",  "bytes",
                                    "page-faults", "cache-misses", "cache-references", "branch-misses", "count"};

/* A part of a sample: written out in it, or shared with others by number or by default. */
struct part {
    struct slice message;
    bool shared;
};

struct followers {
    struct part descriptors[MAX_FOLLOWERS];
    uint64_t weights[MAX_FOLLOWERS];
    uint32_t n_descriptors, n_weights;
};

struct parts {
    struct part task, execution, primary;
    struct slice callstack, unwind_error;
    uint64_t callstack_iid, primary_weight;
    bool has_weight, has_callstack, has_callstack_iid;
    struct followers followers;
};

static struct part own_part(const struct pb_field *f)
{
    return (struct part){pb_bytes(f), false};
}

static struct part interned_part(const struct packet *p, uint32_t field, uint64_t iid)
{
    return (struct part){interned_find(p->gen, field, iid), true};
}

static void add_descriptor(struct followers *w, struct part descriptor)
{
    if (w->n_descriptors < MAX_FOLLOWERS)
        w->descriptors[w->n_descriptors++] = descriptor;
}

static void read_parts(struct packet *p, struct parts *x)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case STACK_SAMPLE_TASK_CONTEXT:
            x->task = own_part(&f);
            break;
        case STACK_SAMPLE_TASK_CONTEXT_IID:
            x->task = interned_part(p, INTERNED_DATA_STACK_SAMPLE_TASK_CONTEXTS, pb_u64(&f));
            break;
        case STACK_SAMPLE_EXECUTION_CONTEXT:
            x->execution = own_part(&f);
            break;
        case STACK_SAMPLE_EXECUTION_CONTEXT_IID:
            x->execution = interned_part(p, INTERNED_DATA_STACK_SAMPLE_EXECUTION_CONTEXTS, pb_u64(&f));
            break;
        case STACK_SAMPLE_CALLSTACK:
            x->callstack = pb_bytes(&f);
            x->has_callstack = true;
            break;
        case STACK_SAMPLE_CALLSTACK_IID:
            x->callstack_iid = pb_u64(&f);
            x->has_callstack_iid = true;
            break;
        case STACK_SAMPLE_UNWIND_ERROR:
            x->unwind_error = pb_bytes(&f);
            break;
        case STACK_SAMPLE_PRIMARY_DESCRIPTOR:
            x->primary = own_part(&f);
            break;
        case STACK_SAMPLE_PRIMARY_DESCRIPTOR_IID:
            x->primary = interned_part(p, INTERNED_DATA_STACK_SAMPLE_COUNTER_DESCRIPTORS, pb_u64(&f));
            break;
        case STACK_SAMPLE_PRIMARY_WEIGHT:
            x->primary_weight = pb_u64(&f);
            x->has_weight = true;
            break;
        case STACK_SAMPLE_FOLLOWER_DESCRIPTORS:
            add_descriptor(&x->followers, own_part(&f));
            break;
        }
    }
    struct followers *w = &x->followers;
    struct pb_numbers iids = pb_numbers(p->field, STACK_SAMPLE_FOLLOWER_DESCRIPTOR_IIDS),
                      weights = pb_numbers(p->field, STACK_SAMPLE_FOLLOWER_WEIGHTS);
    bool own = w->n_descriptors > 0;
    for (uint64_t iid; !own && pb_next_number(&iids, &iid);)
        add_descriptor(w, interned_part(p, INTERNED_DATA_STACK_SAMPLE_COUNTER_DESCRIPTORS, iid));
    while (w->n_weights < MAX_FOLLOWERS && pb_next_number(&weights, &w->weights[w->n_weights]))
        w->n_weights++;
}

/* What a part says, as `read` puts it down: in `own` when it is the sample's own, else once for all that share it. NULL
 * when out of memory. */
static const void *part_read(struct packet *p, struct part part, struct u64map *known, void *own, size_t size,
                             void (*read)(struct machine_ctx *m, struct slice message, void *into))
{
    struct profiling_machine *s = p->m->profiling;
    if (!part.shared || !part.message.len) {
        read(p->m, part.message, own);
        return own;
    }
    uint64_t *slot = u64map_put(known, (uint64_t)(uintptr_t)part.message.p, NULL);
    if (slot && !*slot) {
        void *shared = arena_zalloc(&s->arena, size);
        *slot = (uint64_t)(uintptr_t)shared;
        if (shared)
            read(p->m, part.message, shared);
    }
    if (slot && *slot)
        return (const void *)(uintptr_t)*slot;
    p->m->im->failed = true;
    return NULL;
}

/* What a sequence's samples do not say themselves. */
struct sample_defaults {
    strid source; /* 0: not told */
    struct part primary;
    uint32_t n_followers;
    struct part followers[];
};

static const struct sample_defaults *read_defaults(const struct packet *p)
{
    struct slice source = {0}, primary = {0}, followers[MAX_FOLLOWERS];
    uint32_t n_followers = 0;
    struct pb_field f;
    struct pb_cursor c = pb_find(p->gen->defaults, TRACE_PACKET_DEFAULTS_STACK_SAMPLE_DEFAULTS, &f)
                             ? pb_sub(&f)
                             : pb_cursor(slice_of(NULL, 0));
    while (pb_next(&c, &f)) {
        if (f.id == STACK_SAMPLE_DEFAULTS_SOURCE)
            source = pb_bytes(&f);
        else if (f.id == STACK_SAMPLE_DEFAULTS_PRIMARY_DESCRIPTOR && !primary.p)
            primary = pb_bytes(&f);
        else if (f.id == STACK_SAMPLE_DEFAULTS_FOLLOWER_DESCRIPTORS && n_followers < MAX_FOLLOWERS)
            followers[n_followers++] = pb_bytes(&f);
    }
    struct sample_defaults *d = arena_zalloc(&p->m->profiling->arena, sizeof *d + n_followers * sizeof *d->followers);
    if (!d)
        return NULL;
    d->source = source.len ? import_slice(p->m->im, source) : 0;
    d->primary = (struct part){primary, true};
    d->n_followers = n_followers;
    for (uint32_t i = 0; i < n_followers; i++)
        d->followers[i] = (struct part){followers[i], true};
    return d;
}

/* Completes a sample from the defaults, which tell its source, too. False when out of memory. */
static bool add_defaults(const struct packet *p, struct parts *x, strid *source)
{
    uint64_t *slot = u64map_put(&p->m->profiling->stack_defaults, p->gen->index, NULL);
    if (slot && !*slot)
        *slot = (uint64_t)(uintptr_t)read_defaults(p);
    if (!slot || !*slot) {
        p->m->im->failed = true;
        return false;
    }
    const struct sample_defaults *d = (const struct sample_defaults *)(uintptr_t)*slot;
    if (!x->primary.message.p)
        x->primary = d->primary;
    bool own_followers = x->followers.n_descriptors > 0;
    for (uint32_t i = 0; i < d->n_followers && !own_followers; i++)
        add_descriptor(&x->followers, d->followers[i]);
    *source = d->source;
    return true;
}

/* --- async contexts ----------------------------------------------------------------------------------------------- */

static int64_t async_context(struct packet *p, uint64_t iid, unsigned depth)
{
    struct profiling_machine *s = p->m->profiling;
    struct slice message = interned_find(p->gen, INTERNED_DATA_STACK_SAMPLE_ASYNC_CONTEXT_DESCRIPTORS, iid);
    if (!message.p || depth > MAX_PARENTS)
        return COL_NULL;
    uint64_t key = hash_keyed(p->m->profiling->secret, p->gen->state, iid);
    bool fresh;
    uint64_t *row_of = u64map_put(&s->async, key, &fresh);
    if (row_of && !fresh)
        return (int64_t)*row_of;
    if (row_of)
        *row_of = (uint64_t)COL_NULL; /* it is none of its own parents */
    struct profiler_async_context_row row = {.parent_id = COL_NULL};
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == STACK_SAMPLE_ASYNC_CONTEXT_DESCRIPTOR_NAME)
            row.name = import_slice(p->m->im, pb_bytes(&f));
        else if (f.id == STACK_SAMPLE_ASYNC_CONTEXT_DESCRIPTOR_KIND)
            row.kind = import_slice(p->m->im, pb_bytes(&f));
        else if (f.id == STACK_SAMPLE_ASYNC_CONTEXT_DESCRIPTOR_PARENT_IID)
            row.parent_id = async_context(p, pb_u64(&f), depth + 1);
    }
    uint32_t at = profiler_async_context_insert(p->m->st, &row);
    if (!row_of || !u64map_set(&s->async, key, at))
        p->m->im->failed = true;
    return at;
}

struct task {
    int64_t pid, tid; /* -1: not told */
    uint64_t async;   /* iid of its context, with has_async */
    bool has_async;
};

static void read_task(struct machine_ctx *m, struct slice message, void *into)
{
    struct task *t = into;
    *t = (struct task){.pid = -1, .tid = -1};
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    (void)m;
    while (pb_next(&c, &f)) {
        if (f.id == STACK_SAMPLE_TASK_CONTEXT_PID) {
            t->pid = pb_u32(&f);
        } else if (f.id == STACK_SAMPLE_TASK_CONTEXT_TID) {
            t->tid = pb_u32(&f);
        } else if (f.id == STACK_SAMPLE_TASK_CONTEXT_ASYNC_ID) {
            t->async = pb_u64(&f);
            t->has_async = true;
        }
    }
}

static void set_task(struct packet *p, const struct task *task, struct sample *x)
{
    struct process_tracker *t = p->m->processes;
    if (task->has_async)
        x->async_context = async_context(p, task->async, 0);
    if (task->pid >= 0)
        x->upid = process_tracker_process(t, task->pid);
    if (task->tid >= 0)
        x->utid = task->pid >= 0 ? process_tracker_update_thread(t, task->tid, task->pid)
                                 : process_tracker_thread(t, task->tid);
}

struct execution {
    int64_t cpu;
    const char *mode;
};

static void read_execution(struct machine_ctx *m, struct slice message, void *into)
{
    struct execution *x = into;
    *x = (struct execution){.cpu = COL_NULL};
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == STACK_SAMPLE_EXECUTION_CONTEXT_CPU && machine_has_cpu(m, pb_u64(&f)))
            x->cpu = (int64_t)pb_u64(&f);
        else if (f.id == STACK_SAMPLE_EXECUTION_CONTEXT_MODE && pb_u64(&f) < sizeof modes / sizeof *modes)
            x->mode = modes[pb_u64(&f)];
    }
}

/* --- counters ----------------------------------------------------------------------------------------------------- */

struct counter {
    strid name, unit, description;
    uint64_t multiplier, scope;
    bool has_multiplier;
};

static void read_counter(struct machine_ctx *m, struct slice message, void *into)
{
    struct counter *k = into;
    *k = (struct counter){0};
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case STACK_SAMPLE_COUNTER_DESCRIPTOR_NAME:
            k->name = import_slice(m->im, pb_bytes(&f));
            break;
        case STACK_SAMPLE_COUNTER_DESCRIPTOR_UNIT:
            if (pb_u64(&f) < sizeof units / sizeof *units && units[pb_u64(&f)])
                k->unit = import_str(m->im, units[pb_u64(&f)]);
            break;
        case STACK_SAMPLE_COUNTER_DESCRIPTOR_UNIT_STR:
            k->unit = import_slice(m->im, pb_bytes(&f));
            break;
        case STACK_SAMPLE_COUNTER_DESCRIPTOR_UNIT_MULTIPLIER:
            k->multiplier = pb_u64(&f);
            k->has_multiplier = true;
            break;
        case STACK_SAMPLE_COUNTER_DESCRIPTOR_DESCRIPTION:
            k->description = import_slice(m->im, pb_bytes(&f));
            break;
        case STACK_SAMPLE_COUNTER_DESCRIPTOR_SCOPE:
            k->scope = pb_u64(&f);
            break;
        }
    }
}

static const struct counter *counter_of(struct packet *p, struct part part, struct counter *own)
{
    return part_read(p, part, &p->m->profiling->counters_read, own, sizeof *own, read_counter);
}

static const int64_t NO_TRACK = -1;

/* The track of what a descriptor counts. NO_TRACK: nothing describes it, or it is of a cpu that is not told. */
static int64_t counter_track(struct packet *p, const struct sample *x, struct part part, bool is_timebase)
{
    struct machine_ctx *m = p->m;
    struct args *st_args = &m->st->args;
    struct counter own;
    const struct counter *k = part.message.p ? counter_of(p, part, &own) : NULL;
    bool of_cpu = k && k->scope == STACK_SAMPLE_COUNTER_DESCRIPTOR_SCOPE_CPU;
    if (!k || (of_cpu && x->cpu == COL_NULL))
        return NO_TRACK;
    struct track_dim dims[] = {{"cpu", DIM_INT, x->cpu},
                               {"session_id", DIM_INT, x->session},
                               {"source", DIM_STR, x->source},
                               {"counter_name", DIM_STR, k->name}};
    struct arg_list args = {0};
    arg_list_bool(st_args, &args, "is_timebase", is_timebase);
    if (k->has_multiplier)
        arg_list_int(st_args, &args, "unit_multiplier", (int64_t)k->multiplier);
    if (k->description)
        arg_list_str(st_args, &args, "description", k->description);
    struct track_spec spec = {.type = of_cpu ? "stack_sample_cpu_counter" : "stack_sample_session_counter",
                              .event_type = TRACK_COUNTER,
                              .name = k->name,
                              .unit = k->unit,
                              .parent = UINT32_MAX,
                              .source_args = args_intern(st_args, args.p, args.n),
                              .dims = of_cpu ? dims : dims + 1,
                              .n_dims = of_cpu ? 4 : 3};
    arg_list_free(&args);
    return track_intern(m->im->tracks, m->id, &spec);
}

/* What a session samples by is told with its first sample, or with a later one. */
static void set_timebase(struct packet *p, const struct parts *parts, int64_t session)
{
    struct counter own;
    const struct counter *k = parts->primary.message.p ? counter_of(p, parts->primary, &own) : NULL;
    if (k && k->unit && ROW_GET(p->m->st, profiler_session, timebase_unit, (uint32_t)session) == 0)
        ROW_SET(p->m->st, profiler_session, timebase_unit, (uint32_t)session, k->unit);
}

/* All tracks are made, whether or not the sample has weights for them. */
static void add_counters(struct packet *p, struct sample *x, const struct parts *parts)
{
    struct profiling_machine *s = p->m->profiling;
    const struct followers *w = &parts->followers;
    int64_t primary = counter_track(p, x, parts->primary, true), tracks[MAX_FOLLOWERS];
    if (primary != NO_TRACK && parts->has_weight)
        sample_counter(s, &x->counter_set, p->ts, (uint32_t)primary, (double)parts->primary_weight);
    for (uint32_t i = 0; i < w->n_descriptors; i++)
        tracks[i] = counter_track(p, x, w->descriptors[i], false);
    for (uint32_t i = 0; i < w->n_descriptors && i < w->n_weights; i++)
        if (tracks[i] != NO_TRACK)
            sample_counter(s, &x->counter_set, p->ts, (uint32_t)tracks[i], (double)w->weights[i]);
}

void stack_sample_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct profiling_machine *s = m->profiling;
    struct parts parts = {0};
    struct task own_task;
    struct execution own_execution;
    strid source = 0;
    read_parts(p, &parts);
    if (!add_defaults(p, &parts, &source))
        return;
    const struct task *task = part_read(p, parts.task, &s->tasks_read, &own_task, sizeof own_task, read_task);
    const struct execution *execution =
        part_read(p, parts.execution, &s->executions_read, &own_execution, sizeof own_execution, read_execution);
    if (!task || !execution)
        return;
    struct sample x = {.ts = p->ts,
                       .source = source,
                       .upid = UPID_NONE,
                       .utid = UTID_NONE,
                       .async_context = COL_NULL,
                       .cpu = execution->cpu,
                       .mode = execution->mode ? import_str(m->im, execution->mode) : 0,
                       .callsite = CALLSITE_NONE,
                       .counter_set = COL_NULL};
    set_task(p, task, &x);
    x.session = sample_session(s, p->gen->seq, source, 0);
    set_timebase(p, &parts, x.session);
    add_counters(p, &x, &parts);
    if (parts.has_callstack_iid)
        x.callsite = stack_profile_interned(m, p->gen, x.upid, parts.callstack_iid);
    else if (parts.has_callstack)
        x.callsite = stack_profile_inline(m, parts.callstack, "stack_sample_inline");
    if (parts.unwind_error.len)
        x.unwind_error = import_slice(m->im, parts.unwind_error);
    sample_insert(s, &x);
}
