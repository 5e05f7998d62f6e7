/* Samples: thread, counters, control group. */
#include "importer/perf/perf_tracepoints.h"

#include "base/hash.h"
#include "importer/profiling/samples.h"
#include "importer/profiling/stack_profile.h"
#include "importer/system/system.h"
#include "importer/track/track_tracker.h"

enum { MODE_MASK = 7, LAST_MODE = 5 };

int perf_samples_open(struct perf_import *p)
{
    static const char *const modes[PERF_MODES] = {"unknown",    "kernel",       "user",
                                                  "hypervisor", "guest_kernel", "guest_user"};
    p->source = import_str(p->im, "linux.perf");
    p->nothing = import_str(p->im, "");
    struct slice model = perf_feature_text(&p->file, PERF_FEATURE_CPUDESC);
    p->cpu_model = model.len ? import_slice(p->im, model) : 0;
    for (size_t i = 0; i < PERF_MODES; i++)
        p->modes[i] = import_str(p->im, modes[i]);
    p->samples = sample_writer_open(p->im->st, p->source, importer_threads(p->im) > 1);
    return p->samples ? 0 : -MRD_ENOMEM;
}

static uint32_t counter_track(struct perf_import *p, const struct perf_attr *a, const struct perf_where *w)
{
    enum { TIMEBASE_BELOW = 62 /* bits of the period */ };
    struct machine_ctx *m = p->m;
    uint32_t session = p->first_session + (uint32_t)(a - p->file.attrs.p);
    strid name = a->name.len ? import_slice(p->im, a->name) : 0;
    struct track_dim dims[] = {
        {"cpu", DIM_INT, w->cpu}, {"perf_session_id", DIM_INT, session}, {"name", DIM_STR, name}};
    struct arg_list args = {0};
    arg_list_bool(&m->st->args, &args, "is_timebase", a->period >> TIMEBASE_BELOW == 0);
    struct track_spec spec = {.type = w->has_cpu ? "perf_cpu_counter" : "perf_global_counter",
                              .event_type = TRACK_COUNTER,
                              .name = name,
                              .parent = UINT32_MAX,
                              .source_args = args_intern(&m->st->args, args.p, args.n),
                              .dims = w->has_cpu ? dims : dims + 1,
                              .n_dims = w->has_cpu ? 3 : 2};
    arg_list_free(&args);
    return track_intern(p->im->tracks, m->id, &spec);
}

/* perf says once for all of which model the CPUs are. */
static void describe_cpu(struct perf_import *p, uint32_t cpu)
{
    uint32_t ucpu = machine_ucpu(p->m, cpu);
    if (p->cpu_model && !ROW_GET(p->im->st, cpu, processor, ucpu))
        ROW_SET(p->im->st, cpu, processor, ucpu, p->cpu_model);
}

/* The place of a counter + 1, 0 when out of memory. It is made when it is new. */
static uint32_t find_counter(struct perf_import *p, const struct perf_attr *a, const struct perf_where *w, uint64_t key)
{
    bool added;
    uint64_t *at = u64map_put(&p->counter_of, key, &added);
    if (at && added) {
        *at = p->counters.n;
        if (w->has_cpu)
            describe_cpu(p, w->cpu);
        if (!vec_push(&p->counters, (struct perf_counter){.track = counter_track(p, a, w)})) {
            u64map_del(&p->counter_of, key);
            at = NULL;
        }
    }
    p->im->failed |= !at;
    return at ? (uint32_t)*at + 1 : 0;
}

/* The counter of an event on the CPU of a sample; NULL when out of memory. */
static struct perf_counter *counter_of(struct perf_import *p, const struct perf_attr *a, const struct perf_where *w)
{
    uint64_t attr = (uint64_t)(a - p->file.attrs.p), cpu = w->has_cpu ? w->cpu + 1ull : 0, key = attr << 33 | cpu;
    struct perf_known_counter *known = &p->known_counters[(attr * 31 + cpu) % PERF_KNOWN_COUNTERS];
    if (!known->counter || known->key != key)
        *known = (struct perf_known_counter){key, find_counter(p, a, w, key)};
    return known->counter ? &p->counters.p[known->counter - 1] : NULL;
}

/* The values of READ, each of the event with its id. */
static void read_counters(struct perf_import *p, const struct perf_attr *a, const struct perf_sample_record *s,
                          int64_t ts, int64_t *set)
{
    struct dat_cursor c = perf_cursor(&p->file, s->read);
    uint64_t format = a->read_format, n = format & PERF_READ_GROUP ? dat_u64(&c) : 1, value = 0;
    if (!(format & PERF_READ_GROUP))
        value = dat_u64(&c);
    if (format & PERF_READ_ENABLED)
        (void)dat_u64(&c);
    if (format & PERF_READ_RUNNING)
        (void)dat_u64(&c);
    for (; n && !c.bad; n--) {
        if (format & PERF_READ_GROUP)
            value = dat_u64(&c);
        uint64_t id = format & PERF_READ_ID ? dat_u64(&c) : 0;
        if (format & PERF_READ_LOST)
            (void)dat_u64(&c);
        const uint64_t *attr = format & PERF_READ_ID ? u64map_get(&p->file.ids, id) : NULL;
        const struct perf_attr *of = attr ? &p->file.attrs.p[*attr] : a;
        const struct perf_counter *counter = c.bad ? NULL : counter_of(p, of, &s->where);
        if (counter)
            sample_counter(p->m->profiling, set, ts, counter->track, (double)value);
    }
}

/* Whether something says how much a sample stands for. */
static inline bool says_how_much(const struct perf_attr *a, const struct perf_sample_record *s)
{
    return s->read.len || s->has_period || !perf_flag(a, PERF_FLAG_FREQ);
}

/* Adds a sample and what its event has counted, which is told by READ or grows by its period; its row. `known`: what
 * samples of the same kind have in common is noted there. */
static uint32_t add_sample(struct perf_import *p, const struct perf_attr *a, const struct perf_sample_record *s,
                           struct sample *sample, int64_t execution, struct perf_known_sample *known)
{
    struct perf_counter *counter = s->read.len ? NULL : counter_of(p, a, &s->where);
    if (counter) {
        uint32_t row = sample_writer_row(p->samples);
        counter->total += (double)(s->has_period ? s->period : a->period);
        known->counter = (uint32_t)(counter - p->counters.p) + 1;
        known->at.place =
            (struct sample_place){.task = sample_task(p->m->profiling, sample),
                                  .execution = execution,
                                  .callsite = sample->callsite == CALLSITE_NONE ? COL_NULL : (int64_t)sample->callsite,
                                  .unwind_error = sample->unwind_error,
                                  .session = sample->session,
                                  .track = counter->track};
        sample_writer_add(p->samples, sample->ts, &known->at, counter->total);
        return row;
    }
    sample_writer_flush(p->samples);
    if (s->read.len)
        read_counters(p, a, s, sample->ts, &sample->counter_set);
    uint32_t row = sample_insert_at(p->m->profiling, sample, execution);
    p->im->failed |= row == UINT32_MAX;
    return row;
}

static void skip(struct perf_import *p)
{
    stats_add_idx(&p->im->st->stats, p->m->id, STAT_perf_record_skipped, PERF_RECORD_SAMPLE, 1);
}

/* The group of a sample's process, where it is another one than before. */
static void note_cgroup(struct perf_import *p, const struct perf_sample_record *s, uint32_t upid)
{
    bool added;
    const uint64_t *path = u64map_get(&p->cgroups, s->cgroup);
    uint64_t *known = path && upid != UPID_NONE ? u64map_put(&p->cgroup_of, upid, &added) : NULL;
    if (!known || (!added && *known == s->cgroup))
        return;
    *known = s->cgroup;
    process_set_cgroup(p->m, upid, strpool_view(&p->im->st->strings, (strid)*path));
}

/* Where a sample was taken, as sample_execution() says; few places come again and again. */
static int64_t execution_of(struct perf_import *p, const struct perf_where *w, unsigned mode)
{
    int64_t cpu = w->has_cpu ? (int64_t)w->cpu : COL_NULL;
    if (!w->has_cpu || w->cpu >= PERF_KNOWN_CPUS)
        return sample_execution(p->m->profiling, cpu, p->modes[mode]);
    uint32_t *known = &p->executions[w->cpu][mode];
    if (!*known)
        *known = (uint32_t)(sample_execution(p->m->profiling, cpu, p->modes[mode]) + 1);
    return (int64_t)*known - 1;
}

static void note_dummies(struct perf_import *p, uint32_t dummies)
{
    if (dummies)
        stats_add(&p->im->st->stats, p->m->id, STAT_perf_dummy_mapping_used, dummies);
}

/* A sample with all that it may hold. */
static void parse_any(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts,
                      struct perf_known_sample *known)
{
    struct perf_sample_record s;
    struct process_tracker *t = p->m->processes;
    if (!perf_sample_read(&p->file, a, r, &s) || !s.where.has_tid ||
        (s.where.has_cpu && s.where.cpu >= CPUS_PER_MACHINE)) {
        skip(p);
        return;
    }
    known->tid = s.where.tid;
    known->utid = process_tracker_update_thread(t, s.where.tid, s.where.pid);
    if (!says_how_much(a, &s)) {
        skip(p);
        return;
    }
    unsigned mode = r->misc & MODE_MASK;
    if (mode == 0 || mode > LAST_MODE) {
        stats_add(&p->im->st->stats, p->m->id, STAT_perf_samples_cpu_mode_unknown, 1);
        mode = 0;
    }
    struct perf_stack stack = perf_stack_of(p, a, &s, r->bytes.p, mode);
    note_dummies(p, known->dummies = stack.dummies);
    struct sample sample = {
        .ts = ts,
        .source = p->source,
        .upid = process_tracker_thread_process(t, known->utid),
        .utid = known->utid,
        .async_context = COL_NULL,
        .callsite = stack.callsite,
        .unwind_error = stack.unwind_error,
        .session = p->first_session + (uint32_t)(a - p->file.attrs.p),
        .counter_set = COL_NULL,
    };
    uint32_t row = add_sample(p, a, &s, &sample, execution_of(p, &s.where, mode), known);
    if (s.callchain.len && row != UINT32_MAX)
        perf_defer(p, &s, mode, row);
    if (s.has_cgroup)
        note_cgroup(p, &s, sample.upid);
    if (s.where.has_cpu)
        perf_tracepoints_parse(p, a, &(struct perf_kernel_sample){s.raw, ts, s.where.cpu, s.where.tid, known->utid});
}

/* Samples are alike that differ in nothing but their times, their kernel's event and how much they count. */
static inline struct perf_known_sample *known_sample(struct perf_import *p, const struct perf_sample_key *key)
{
    uint64_t hash = hash_combine(key->ip ^ key->attr_mode_cpu, key->pid_tid);
    return &p->known_samples[hash % PERF_KNOWN_SAMPLES];
}

static inline bool same_key(const struct perf_sample_key *x, const struct perf_sample_key *y)
{
    return ((x->ip ^ y->ip) | (x->pid_tid ^ y->pid_tid) | (x->attr_mode_cpu ^ y->attr_mode_cpu) |
            (x->epoch ^ y->epoch)) == 0;
}

static inline uint64_t epoch_of(const struct perf_import *p)
{
    return (uint64_t)p->maps_epoch << 32 | *p->threads_epoch;
}

/* A sample that is like none before, or holds more than those that are compared. `key`: NULL when it does. */
static __attribute__((noinline)) void parse_unknown(struct perf_import *p, const struct sort_event *e,
                                                    const struct perf_sample_key *key)
{
    const uint8_t *at = (const uint8_t *)(uintptr_t)e->a;
    struct perf_record r = {.type = PERF_RECORD_SAMPLE,
                            .misc = perf_load16(&p->file, at + 4),
                            .bytes = slice_of(at, perf_load16(&p->file, at + 6))};
    struct perf_known_sample now = {.counter = 0};
    parse_any(p, &p->file.attrs.p[e->b], &r, e->ts, &now);
    if (!key || !now.counter || key->epoch != epoch_of(p))
        return;
    now.key = *key;
    *known_sample(p, key) = now;
}

static inline __attribute__((always_inline)) void parse_sample(struct perf_import *p, const struct sort_event *e,
                                                               bool big)
{
    const struct perf_attr *a = &p->file.attrs.p[e->b];
    const struct perf_layout *l = &a->layout;
    const uint8_t *at = (const uint8_t *)(uintptr_t)e->a;
    unsigned mode = perf_quarter_word(at + 4, big) & MODE_MASK;
    size_t len = perf_quarter_word(at + 6, big), fixed = l->sample.fixed;
    if (!fixed || len < fixed || mode - 1 >= LAST_MODE) {
        parse_unknown(p, e, NULL);
        return;
    }
    uint32_t cpu = perf_half_word(at + l->sample.cpu, big);
    size_t size = l->more == PERF_RAW_MORE ? perf_half_word(at + l->sample.size, big) : 0;
    struct perf_sample_key key = {.ip = perf_word(at + l->sample.ip, big),
                                  .pid_tid = perf_word(at + l->sample.tid, big),
                                  .attr_mode_cpu = e->b << 35 | (uint64_t)mode << 32 | cpu,
                                  .epoch = epoch_of(p)};
    struct perf_known_sample *known = known_sample(p, &key);
    if (!same_key(&known->key, &key) || size > len - fixed) {
        parse_unknown(p, e, &key);
        return;
    }
    struct perf_counter *counter = &p->counters.p[known->counter - 1];
    counter->total += (double)(l->sample.period ? perf_word(at + l->sample.period, big) : a->period);
    note_dummies(p, known->dummies);
    sample_writer_add(p->samples, e->ts, &known->at, counter->total);
    if (l->sample.cpu && size)
        perf_tracepoints_parse(
            p, a, &(struct perf_kernel_sample){slice_of(at + fixed, size), e->ts, cpu, known->tid, known->utid});
}

size_t perf_parse_samples(struct perf_import *p, const struct sort_event *events, size_t n)
{
    enum { USUAL_BYTES = 128 /* of a sample with a tracepoint's fields */ };
    const bool big = p->file.big;
    for (size_t i = 0; i < n; i++) {
        if (perf_half_word((const uint8_t *)(uintptr_t)events[i].a, big) != PERF_RECORD_SAMPLE)
            return i;
        sort_ask_ahead(&events[i], n - 1 - i, USUAL_BYTES);
        if (big)
            parse_sample(p, &events[i], true);
        else
            parse_sample(p, &events[i], false);
    }
    return n;
}
