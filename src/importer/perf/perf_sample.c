/* Samples: thread, call stack, counters. */
#include "importer/perf/perf_internal.h"

#include "base/hash.h"
#include "importer/profiling/samples.h"
#include "importer/profiling/stack_profile.h"
#include "importer/track/process_tracker.h"
#include "importer/track/track_tracker.h"

enum { MODE_MASK = 7, MODE_KERNEL = 1, MODE_USER = 2, MODE_HYPERVISOR = 3, MODE_GUEST_KERNEL = 4, MODE_GUEST_USER = 5 };

/* Marks in a call chain: the mode of what follows. */
#define FIRST_MARK         ((uint64_t)-4095)
#define MARK_USER_DEFERRED ((uint64_t)-640)

static unsigned mode_of_mark(uint64_t mark, unsigned mode)
{
    static const struct {
        int16_t mark;
        uint8_t mode;
    } marks[] = {{-32, MODE_HYPERVISOR},   {-128, MODE_KERNEL},        {-512, MODE_USER},       {-640, MODE_USER},
                 {-2048, MODE_GUEST_USER}, {-2176, MODE_GUEST_KERNEL}, {-2560, MODE_GUEST_USER}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if ((uint64_t)(int64_t)marks[i].mark == mark)
            return marks[i].mode;
    return mode;
}

/* The mapping of addresses that lie in no known file, one a process. */
static uint32_t dummy_mapping(struct perf_import *p, uint32_t pid)
{
    struct perf_space *space = perf_space_of(&p->spaces, pid);
    if (!space) {
        p->im->failed = true;
        return 0;
    }
    if (space->dummy == UINT32_MAX)
        space->dummy = stack_profile_mapping_insert(
            p->im->st, &(struct stack_profile_mapping_row){.build_id = p->nothing, .end = -1, .name = p->nothing});
    return space->dummy;
}

void perf_samples_open(struct perf_import *p)
{
    static const char *const modes[PERF_MODES] = {"unknown",    "kernel",       "user",
                                                  "hypervisor", "guest_kernel", "guest_user"};
    p->source = import_str(p->im, "linux.perf");
    p->nothing = import_str(p->im, "");
    for (size_t i = 0; i < PERF_MODES; i++)
        p->modes[i] = import_str(p->im, modes[i]);
    p->spaces.version = 1; /* 0 is of no frame */
}

static uint32_t frame(struct perf_import *p, uint32_t pid, unsigned mode, uint64_t ip, uint32_t *dummies)
{
    struct perf_known_frame *known = &p->known_frames[hash_combine(ip, pid) % PERF_KNOWN_FRAMES];
    if (known->version == p->spaces.version && known->ip == ip && known->pid == pid && known->mode == mode) {
        *dummies += known->dummy;
        return known->frame;
    }
    bool kernel = mode == MODE_KERNEL || mode == MODE_GUEST_KERNEL;
    const struct perf_space *space = kernel ? &p->spaces.kernel : perf_space_of(&p->spaces, pid);
    const struct perf_map *map = space ? perf_space_find(space, ip) : NULL;
    struct stack_profile_frame_row row = {.name = p->nothing, .symbol_set_id = COL_NULL};
    row.mapping = map ? map->mapping : dummy_mapping(p, pid);
    row.rel_pc = (int64_t)(ip + (uint64_t)(map ? map->pc_offset : 0));
    *known = (struct perf_known_frame){.ip = ip,
                                       .pid = pid,
                                       .version = p->spaces.version,
                                       .frame = stack_profile_frame(p->m, &row, NULL),
                                       .mode = (uint8_t)mode,
                                       .dummy = !map};
    *dummies += known->dummy;
    return known->frame;
}

/* Stacks begin alike: most callsites were there a moment ago. (Measured: half of the time of call stacks was spent in
 * the table that knows all of them.) */
static uint32_t call(struct perf_import *p, uint32_t parent, uint32_t frame_row)
{
    uint64_t hash = hash_u64((uint64_t)parent << 32 | frame_row);
    struct perf_known_site *known = &p->known_sites[hash % PERF_KNOWN_SITES];
    if (!known->site || known->parent != parent || known->frame != frame_row) {
        uint32_t site = stack_profile_callsite(p->m, parent, frame_row);
        *known = (struct perf_known_site){parent, frame_row, site + 1};
    }
    return known->site - 1;
}

/* The callsite of a chain, which has its leaf first. Addresses of callers are where they go on: one less lies in the
 * call. */
static uint32_t find_callsite(struct perf_import *p, struct slice bytes, uint32_t pid, unsigned mode, uint32_t *dummies)
{
    enum { MAX_FRAMES = 1024 };
    struct {
        uint64_t ip;
        unsigned mode;
    } chain[MAX_FRAMES];
    size_t n = 0;
    struct dat_cursor c = perf_cursor(&p->file, bytes);
    while (c.end - c.p >= 8 && n < MAX_FRAMES) {
        uint64_t ip = dat_u64(&c);
        if (ip >= FIRST_MARK) {
            mode = mode_of_mark(ip, mode);
            if (ip == MARK_USER_DEFERRED)
                (void)dat_u64(&c); /* the cookie of the part that comes later */
            continue;
        }
        chain[n].ip = ip;
        chain[n++].mode = mode;
    }
    uint32_t site = CALLSITE_NONE;
    for (size_t i = n; i-- > 0;) {
        uint64_t ip = chain[i].ip;
        site = call(p, site, frame(p, pid, chain[i].mode, i && ip ? ip - 1 : ip, dummies));
    }
    return site;
}

/* The chain of a sample; the address where there is none, or one of marks only, which say its mode. */
static struct slice chain_of(const struct perf_import *p, const struct perf_attr *a, const struct perf_sample_record *s,
                             const uint8_t *record, unsigned *mode)
{
    enum { MAX_MARKS = 4 * 8 };
    unsigned of_marks = *mode;
    struct dat_cursor c = perf_cursor(&p->file, s->callchain);
    if (s->callchain.len > MAX_MARKS || !s->has_ip)
        return s->callchain;
    while (c.end - c.p >= 8) {
        uint64_t ip = dat_u64(&c);
        if (ip < FIRST_MARK)
            return s->callchain;
        of_marks = mode_of_mark(ip, of_marks);
    }
    *mode = of_marks;
    return slice_of(record + a->layout.sample.ip, 8);
}

/* Samples of one place have the same chain, byte by byte, as long as no file was mapped since. */
static uint32_t callsite(struct perf_import *p, const struct perf_attr *a, const struct perf_sample_record *s,
                         const uint8_t *record, unsigned mode)
{
    struct slice chain = chain_of(p, a, s, record, &mode);
    if (!chain.len)
        return CALLSITE_NONE;
    uint64_t hash = hash_combine(hash_bytes(chain.p, chain.len), (uint64_t)s->where.pid << 8 | mode);
    struct perf_known_stack *known = &p->known_stacks[hash % PERF_KNOWN_STACKS];
    bool same = known->version == p->spaces.version && known->pid == s->where.pid && known->mode == mode &&
                slice_eq(known->chain, chain);
    if (!same) {
        *known = (struct perf_known_stack){
            .chain = chain, .pid = s->where.pid, .version = p->spaces.version, .mode = (uint8_t)mode};
        known->callsite = find_callsite(p, chain, s->where.pid, mode, &known->dummies);
    }
    if (known->dummies)
        stats_add(&p->im->st->stats, p->m->id, STAT_perf_dummy_mapping_used, known->dummies);
    return known->callsite;
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

/* The counter of an event on the CPU of a sample; NULL when out of memory. */
static struct perf_counter *counter_of(struct perf_import *p, const struct perf_attr *a, const struct perf_where *w)
{
    bool added;
    uint64_t attr = (uint64_t)(a - p->file.attrs.p), cpu = w->has_cpu ? w->cpu + 1ull : 0, key = attr << 33 | cpu;
    struct perf_known_counter *known = &p->known_counters[(attr * 31 + cpu) % PERF_KNOWN_COUNTERS];
    if (known->counter && known->key == key)
        return &p->counters.p[known->counter - 1];
    uint64_t *at = u64map_put(&p->counter_of, key, &added);
    if (at && added) {
        *at = p->counters.n;
        if (!vec_push(&p->counters, (struct perf_counter){.track = counter_track(p, a, w)})) {
            u64map_del(&p->counter_of, key);
            at = NULL;
        }
    }
    p->im->failed |= !at;
    if (!at)
        return NULL;
    *known = (struct perf_known_counter){key, (uint32_t)*at + 1};
    return &p->counters.p[*at];
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

/* Adds a sample to what its event has counted; false when nothing says how much it stands for. */
static bool count(struct perf_import *p, const struct perf_attr *a, const struct perf_sample_record *s, int64_t ts,
                  int64_t *set)
{
    if (s->read.len) {
        read_counters(p, a, s, ts, set);
        return true;
    }
    if (!s->has_period && perf_flag(a, PERF_FLAG_FREQ))
        return false;
    struct perf_counter *counter = counter_of(p, a, &s->where);
    if (!counter)
        return true;
    counter->total += (double)(s->has_period ? s->period : a->period);
    sample_counter(p->m->profiling, set, ts, counter->track, counter->total);
    return true;
}

static void skip(struct perf_import *p)
{
    stats_add_idx(&p->im->st->stats, p->m->id, STAT_perf_record_skipped, PERF_RECORD_SAMPLE, 1);
}

void perf_parse_sample(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts)
{
    struct perf_sample_record s;
    int64_t set = COL_NULL;
    struct process_tracker *t = p->m->processes;
    if (!perf_sample_read(&p->file, a, r, &s) || !s.where.has_tid ||
        (s.where.has_cpu && s.where.cpu >= CPUS_PER_MACHINE)) {
        skip(p);
        return;
    }
    uint32_t utid = process_tracker_update_thread(t, s.where.tid, s.where.pid);
    if (!count(p, a, &s, ts, &set)) {
        skip(p);
        return;
    }
    unsigned mode = r->misc & MODE_MASK;
    if (mode == 0 || mode > MODE_GUEST_USER) {
        stats_add(&p->im->st->stats, p->m->id, STAT_perf_samples_cpu_mode_unknown, 1);
        mode = 0;
    }
    struct sample sample = {
        .ts = ts,
        .source = p->source,
        .upid = process_tracker_thread_process(t, utid),
        .utid = utid,
        .async_context = COL_NULL,
        .cpu = s.where.has_cpu ? (int64_t)s.where.cpu : COL_NULL,
        .mode = p->modes[mode],
        .callsite = callsite(p, a, &s, r->bytes.p, mode),
        .session = p->first_session + (uint32_t)(a - p->file.attrs.p),
        .counter_set = set,
    };
    if (sample_insert(p->m->profiling, &sample) == UINT32_MAX)
        p->im->failed = true;
    if (s.raw.len && p->tracepoints)
        perf_tracepoints_parse(p, a, &s, ts, utid);
}
