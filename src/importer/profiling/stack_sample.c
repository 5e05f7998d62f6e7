/* Owns StackSample: a sample of any profiler, with its task, its cpu and the counters it was taken by. */
#include "importer/profiling/profiling_internal.h"

#include "base/hash.h"
#include "importer/track/track_tracker.h"

enum {
    FIELD_DEFAULTS = 100, /* TracePacketDefaults.stack_sample_defaults */
    INTERNED_TASK = 48,
    INTERNED_EXECUTION = 49,
    INTERNED_COUNTER = 50,
    INTERNED_ASYNC = 51,
    MAX_FOLLOWERS = 32,
    MAX_PARENTS = 64, /* of an async context; more is a loop */
    MAX_CPUS = 4096,
    SCOPE_GLOBAL = 1,
};

/* StackSample.Mode and StackSample.Unit. */
static const char *const modes[] = {NULL, "user", "kernel", "hypervisor", "guest_user", "guest_kernel"};
static const char *const units[] = {NULL,          "nanoseconds",  "cpu_cycles",       "instructions",  "bytes",
                                    "page_faults", "cache_misses", "cache_references", "branch_misses", "count"};

struct followers {
    struct slice descriptors[MAX_FOLLOWERS];
    uint64_t weights[MAX_FOLLOWERS];
    uint32_t n_descriptors, n_weights;
};

/* A sample's parts, where they are written out or by number. */
struct parts {
    struct slice task, execution, callstack, unwind_error, primary;
    uint64_t callstack_iid, primary_weight;
    bool has_weight, has_callstack, has_callstack_iid;
    struct followers followers;
};

static void add_descriptor(struct followers *w, struct slice message)
{
    if (w->n_descriptors < MAX_FOLLOWERS)
        w->descriptors[w->n_descriptors++] = message;
}

static void read_parts(struct packet *p, struct parts *x)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case 1:
            x->task = pb_bytes(&f);
            break;
        case 2:
            x->task = interned_find(p->gen, INTERNED_TASK, pb_u64(&f));
            break;
        case 3:
            x->execution = pb_bytes(&f);
            break;
        case 4:
            x->execution = interned_find(p->gen, INTERNED_EXECUTION, pb_u64(&f));
            break;
        case 5:
            x->callstack = pb_bytes(&f);
            x->has_callstack = true;
            break;
        case 6:
            x->callstack_iid = pb_u64(&f);
            x->has_callstack_iid = true;
            break;
        case 7:
            x->unwind_error = pb_bytes(&f);
            break;
        case 9:
            x->primary = pb_bytes(&f);
            break;
        case 10:
            x->primary = interned_find(p->gen, INTERNED_COUNTER, pb_u64(&f));
            break;
        case 11:
            x->primary_weight = pb_u64(&f);
            x->has_weight = true;
            break;
        case 12:
            add_descriptor(&x->followers, pb_bytes(&f));
            break;
        }
    }
    struct followers *w = &x->followers;
    struct pb_numbers iids = pb_numbers(p->field, 13), weights = pb_numbers(p->field, 14);
    for (uint64_t iid; pb_next_number(&iids, &iid);)
        add_descriptor(w, interned_find(p->gen, INTERNED_COUNTER, iid));
    while (w->n_weights < MAX_FOLLOWERS && pb_next_number(&weights, &w->weights[w->n_weights]))
        w->n_weights++;
}

/* What the sample does not say itself. Returns the name of the source. */
static struct slice read_defaults(const struct packet *p, struct parts *x)
{
    struct slice source = slice_of("stack_sample", 12);
    struct pb_field f;
    bool own_followers = x->followers.n_descriptors > 0;
    struct pb_cursor c = pb_find(p->gen->defaults, FIELD_DEFAULTS, &f) ? pb_sub(&f) : pb_cursor(slice_of(NULL, 0));
    while (pb_next(&c, &f)) {
        if (f.id == 1)
            source = pb_bytes(&f);
        else if (f.id == 2 && !x->primary.p)
            x->primary = pb_bytes(&f);
        else if (f.id == 3 && !own_followers)
            add_descriptor(&x->followers, pb_bytes(&f));
    }
    return source;
}

/* --- async contexts ----------------------------------------------------------------------------------------------- */

static int64_t async_context(struct packet *p, uint64_t iid, unsigned depth)
{
    struct profiling_machine *s = p->m->profiling;
    struct slice message = interned_find(p->gen, INTERNED_ASYNC, iid);
    if (!message.p || depth > MAX_PARENTS)
        return COL_NULL;
    uint64_t key = hash_combine((uint64_t)(uintptr_t)p->gen->interned, iid);
    const uint64_t *known = u64map_get(&s->async, key);
    if (known)
        return (int64_t)*known;
    struct profiler_async_context_row row = {.parent_id = COL_NULL};
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == 2)
            row.name = import_slice(p->m->im, pb_bytes(&f));
        else if (f.id == 3)
            row.kind = import_slice(p->m->im, pb_bytes(&f));
        else if (f.id == 4)
            row.parent_id = async_context(p, pb_u64(&f), depth + 1);
    }
    uint32_t at = profiler_async_context_insert(p->m->st, &row);
    if (!u64map_set(&s->async, key, at))
        p->m->im->failed = true;
    return at;
}

static void set_task(struct packet *p, struct slice message, struct sample *x)
{
    struct process_tracker *t = p->m->processes;
    int64_t pid = -1, tid = -1;
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == 2)
            pid = pb_u32(&f);
        else if (f.id == 3)
            tid = pb_u32(&f);
        else if (f.id == 4)
            x->async_context = async_context(p, pb_u64(&f), 0);
    }
    if (tid >= 0)
        x->utid = pid >= 0 ? process_tracker_update_thread(t, tid, pid) : process_tracker_thread(t, tid);
    if (pid >= 0)
        x->upid = process_tracker_process(t, pid);
    else if (tid >= 0)
        x->upid = process_tracker_thread_process(t, x->utid);
}

static void set_execution(struct slice message, struct sample *x)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == 2 && pb_u64(&f) < MAX_CPUS)
            x->cpu = (int64_t)pb_u64(&f);
        else if (f.id == 3 && pb_u64(&f) < sizeof modes / sizeof *modes)
            x->mode = modes[pb_u64(&f)];
    }
}

/* --- counters ----------------------------------------------------------------------------------------------------- */

struct counter {
    strid name, unit, description;
    uint64_t multiplier, scope;
};

static struct counter read_counter(struct machine_ctx *m, struct slice message)
{
    struct counter k = {.multiplier = 1};
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case 2:
            k.name = import_slice(m->im, pb_bytes(&f));
            break;
        case 3:
            if (pb_u64(&f) < sizeof units / sizeof *units && units[pb_u64(&f)])
                k.unit = import_str(m->im, units[pb_u64(&f)]);
            break;
        case 4:
            k.unit = import_slice(m->im, pb_bytes(&f));
            break;
        case 5:
            k.multiplier = pb_u64(&f) ? pb_u64(&f) : 1;
            break;
        case 6:
            k.description = import_slice(m->im, pb_bytes(&f));
            break;
        case 7:
            k.scope = pb_u64(&f);
            break;
        }
    }
    return k;
}

static void add_counter(struct packet *p, struct sample *x, const struct counter *k, double weight, bool is_timebase)
{
    struct machine_ctx *m = p->m;
    bool of_cpu = x->cpu != COL_NULL && k->scope != SCOPE_GLOBAL;
    struct track_dim dims[] = {
        {"perf_session_id", DIM_INT, x->session}, {"name", DIM_STR, k->name}, {"cpu", DIM_INT, x->cpu}};
    struct arg_list args = {0};
    arg_list_bool(&m->st->args, &args, "is_timebase", is_timebase);
    if (k->description)
        arg_list_str(&m->st->args, &args, "description", k->description);
    struct track_spec spec = {.type = of_cpu ? "perf_cpu_counter" : "perf_global_counter",
                              .event_type = TRACK_COUNTER,
                              .name = k->name,
                              .unit = k->unit,
                              .parent = UINT32_MAX,
                              .source_arg_set_id = args_intern(&m->st->args, args.p, args.n),
                              .dims = dims,
                              .n_dims = of_cpu ? 3 : 2};
    arg_list_free(&args);
    sample_counter(m->profiling, &x->counter_set, p->ts, track_intern(m->im->tracks, m->id, &spec),
                   weight * (double)k->multiplier);
}

void stack_sample_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct parts parts = {0};
    char source[64];
    read_parts(p, &parts);
    struct slice name = read_defaults(p, &parts);
    size_t n = name.len < sizeof source - 1 ? name.len : sizeof source - 1;
    if (n)
        memcpy(source, name.p, n);
    source[n] = 0;
    struct sample x = {.ts = p->ts,
                       .source = source,
                       .upid = UPID_NONE,
                       .utid = UTID_NONE,
                       .async_context = COL_NULL,
                       .cpu = COL_NULL,
                       .callsite = CALLSITE_NONE,
                       .counter_set = COL_NULL};
    struct counter primary = read_counter(m, parts.primary);
    x.session = sample_session(m->profiling, p->gen->seq, source, primary.unit, NULL);
    set_task(p, parts.task, &x);
    set_execution(parts.execution, &x);
    if (parts.has_callstack)
        x.callsite = stack_profile_inline(m, parts.callstack);
    else if (parts.has_callstack_iid)
        x.callsite = stack_profile_interned(m, p->gen, parts.callstack_iid);
    if (parts.unwind_error.len)
        x.unwind_error = import_slice(m->im, parts.unwind_error);
    if (parts.primary.p && parts.has_weight)
        add_counter(p, &x, &primary, (double)parts.primary_weight, true);
    for (uint32_t i = 0; i < parts.followers.n_descriptors && i < parts.followers.n_weights; i++) {
        struct counter k = read_counter(m, parts.followers.descriptors[i]);
        add_counter(p, &x, &k, (double)parts.followers.weights[i], false);
    }
    sample_insert(m->profiling, &x);
}
