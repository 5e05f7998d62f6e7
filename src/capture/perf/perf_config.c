/* Reads PerfEventConfig: the order of the checks and the defaults are those of the data source linux.perf. */
#include "capture/perf/perf_config.h"

#include "base/alloc.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/perf_event_fields.h"

_Static_assert(PERF_USER_SKIP == (int)PERF_EVENT_CONFIG_UNWIND_MODE_UNWIND_SKIP &&
                   PERF_USER_DWARF == (int)PERF_EVENT_CONFIG_UNWIND_MODE_UNWIND_DWARF &&
                   PERF_USER_FRAME_POINTER == (int)PERF_EVENT_CONFIG_UNWIND_MODE_UNWIND_FRAME_POINTER &&
                   PERF_USER_KERNEL_FRAME_POINTER == (int)PERF_EVENT_CONFIG_UNWIND_MODE_UNWIND_KERNEL_FRAME_POINTER,
               "the numbers of the config");
_Static_assert(PERF_COUNTS_USER == 1 << PERF_EVENTS_EVENT_MODIFIER_COUNT_USERSPACE &&
                   PERF_COUNTS_KERNEL == 1 << PERF_EVENTS_EVENT_MODIFIER_COUNT_KERNEL &&
                   PERF_COUNTS_HYPERVISOR == 1 << PERF_EVENTS_EVENT_MODIFIER_COUNT_HYPERVISOR &&
                   PERF_COUNTERS == (int)PERF_EVENTS_COUNTER_SW_DUMMY,
               "the numbers of the config");

enum {
    DEFAULT_HZ = 10,
    DEFAULT_PAGES = 256,
    DEFAULT_READ_MS = 100,
    DEFAULT_TIMEOUT_MS = 100,
    DEFAULT_CLEAR_MS = 300000
};
/* More pages than this, 4 GiB for each cpu, are a mistake. */
enum { MAX_PAGES = 1 << 20 };

/* What has no meaning together, or must be known before the defaults are. */
struct raw_config {
    struct slice timebase, stacks;
    bool has_stacks, all_cpus, legacy_kernel_frames, has_read_period;
    uint32_t legacy_hz;
};

bool perf_config_copies_stacks(const struct perf_config *c)
{
    return c->stacks && (c->user_frames == PERF_USER_DWARF || c->user_frames == PERF_USER_FRAME_POINTER);
}

/* A part of the name of a tracepoint is the name of a directory of tracefs. */
static bool is_tracefs_name(struct slice s)
{
    return s.len && s.len < 200 && s.p[0] != '.' && !memchr(s.p, '/', s.len) && !memchr(s.p, 0, s.len);
}

static int read_tracepoint(struct perf_event_spec *e, struct slice message, struct error *err)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == PERF_EVENTS_TRACEPOINT_NAME)
            e->tracepoint = pb_bytes(&f);
        else if (f.id == PERF_EVENTS_TRACEPOINT_FILTER)
            e->filter = pb_bytes(&f);
    }
    struct slice name = e->tracepoint;
    const uint8_t *cut = name.len ? memchr(name.p, '/', name.len) : NULL;
    if (!cut && name.len)
        cut = memchr(name.p, ':', name.len);
    e->group = slice_of(name.p, cut ? (size_t)(cut - name.p) : 0);
    e->point = cut ? slice_of(cut + 1, name.len - e->group.len - 1) : slice_of(NULL, 0);
    if (!is_tracefs_name(e->group) || !is_tracefs_name(e->point))
        return error_set(err, -MRD_EINVALID, "tracepoint '%.*s': use GROUP/NAME, such as sched/sched_switch",
                         (int)(name.len < 100 ? name.len : 100), (const char *)name.p);
    return 0;
}

static int read_raw(struct perf_event_spec *e, struct slice message, struct error *err)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    bool has_type = false;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case PERF_EVENTS_RAW_EVENT_TYPE:
            e->type = pb_u32(&f);
            has_type = true;
            break;
        case PERF_EVENTS_RAW_EVENT_CONFIG:
            e->config = pb_u64(&f);
            break;
        case PERF_EVENTS_RAW_EVENT_CONFIG1:
            e->config1 = pb_u64(&f);
            break;
        case PERF_EVENTS_RAW_EVENT_CONFIG2:
            e->config2 = pb_u64(&f);
            break;
        case PERF_EVENTS_RAW_EVENT_PMU_NAME:
            e->pmu_name = pb_bytes(&f);
            break;
        }
    }
    if (e->pmu_name.len && has_type)
        return error_set(err, -MRD_EINVALID, "raw_event: give pmu_name or type, not both");
    if (e->pmu_name.len && !is_tracefs_name(e->pmu_name))
        return error_set(err, -MRD_EINVALID, "raw_event: pmu_name is a name of /sys/bus/event_source/devices");
    return 0;
}

/* An event; of several kinds the last one counts, as in a oneof. */
static int read_event(struct perf_event_spec *e, struct slice message, const struct perf_event_fields *fields,
                      struct error *err)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    struct slice body = slice_of(NULL, 0);
    e->kind = PERF_EVENT_COUNTER;
    e->counter = PERF_EVENTS_COUNTER_SW_CPU_CLOCK;
    while (pb_next(&c, &f)) {
        if (f.id == fields->counter) {
            e->kind = PERF_EVENT_COUNTER;
            e->counter = pb_u32(&f);
        } else if (f.id == fields->tracepoint || f.id == fields->raw) {
            e->kind = f.id == fields->raw ? PERF_EVENT_RAW : PERF_EVENT_TRACEPOINT;
            body = pb_bytes(&f);
        } else if (f.id == fields->name) {
            e->name = pb_bytes(&f);
        }
    }
    struct pb_numbers modifiers = pb_numbers(message, fields->modifiers);
    for (uint64_t v; pb_next_number(&modifiers, &v);)
        if (v >= PERF_EVENTS_EVENT_MODIFIER_COUNT_USERSPACE && v <= PERF_EVENTS_EVENT_MODIFIER_COUNT_HYPERVISOR)
            e->modifiers |= 1u << v;
    if (c.bad)
        return error_set(err, -MRD_EFORMAT, "an event of perf_event_config is damaged");
    if (e->kind == PERF_EVENT_TRACEPOINT)
        return read_tracepoint(e, body, err);
    if (e->kind == PERF_EVENT_RAW)
        return read_raw(e, body, err);
    if (e->counter == PERF_EVENTS_COUNTER_UNKNOWN_COUNTER || e->counter > PERF_COUNTERS)
        return error_set(err, -MRD_EINVALID, "counter %u is not known; use one of PerfEvents.Counter", e->counter);
    return 0;
}

static clockid_t clock_of(uint32_t perf_clock)
{
    switch (perf_clock) {
    case PERF_EVENTS_PERF_CLOCK_REALTIME:
        return CLOCK_REALTIME;
    case PERF_EVENTS_PERF_CLOCK_MONOTONIC:
        return CLOCK_MONOTONIC;
    case PERF_EVENTS_PERF_CLOCK_BOOTTIME:
        return CLOCK_BOOTTIME;
    default: /* the one that hardware events have as well */
        return CLOCK_MONOTONIC_RAW;
    }
}

/* How often to sample; the last of a oneof counts. */
static int read_timebase(struct perf_config *c, const struct raw_config *r, struct error *err)
{
    struct pb_cursor cursor = pb_cursor(r->timebase);
    struct pb_field f;
    c->clock = CLOCK_MONOTONIC_RAW;
    while (pb_next(&cursor, &f)) {
        if (f.id == PERF_EVENTS_TIMEBASE_PERIOD || f.id == PERF_EVENTS_TIMEBASE_FREQUENCY ||
            f.id == PERF_EVENTS_TIMEBASE_POLL_PERIOD_MS) {
            c->period = f.id == PERF_EVENTS_TIMEBASE_PERIOD ? pb_u64(&f) : 0;
            c->frequency = f.id == PERF_EVENTS_TIMEBASE_FREQUENCY ? pb_u64(&f) : 0;
            c->poll_ms = f.id == PERF_EVENTS_TIMEBASE_POLL_PERIOD_MS ? pb_u32(&f) : 0;
        } else if (f.id == PERF_EVENTS_TIMEBASE_TIMESTAMP_CLOCK) {
            c->clock = clock_of(pb_u32(&f));
        }
    }
    if (c->poll_ms && (r->has_stacks || r->has_read_period || r->all_cpus))
        return error_set(err, -MRD_EINVALID,
                         "poll_period_ms reads counters alone: leave out callstack_sampling, all_cpus and "
                         "ring_buffer_read_period_ms");
    if (!c->period && !c->frequency && !c->poll_ms)
        c->frequency = r->legacy_hz ? r->legacy_hz : DEFAULT_HZ;
    return read_event(&c->timebase, r->timebase, &perf_timebase_fields, err);
}

/* The scope's fields, whose numbers are others at the top of the config, where they were before. */
struct scope_fields {
    uint32_t target_pid, target_cmdline, exclude_pid, exclude_cmdline, additional;
};
static const struct scope_fields scope_now = {
    PERF_EVENT_CONFIG_SCOPE_TARGET_PID, PERF_EVENT_CONFIG_SCOPE_TARGET_CMDLINE, PERF_EVENT_CONFIG_SCOPE_EXCLUDE_PID,
    PERF_EVENT_CONFIG_SCOPE_EXCLUDE_CMDLINE, PERF_EVENT_CONFIG_SCOPE_ADDITIONAL_CMDLINE_COUNT};
static const struct scope_fields scope_legacy = {PERF_EVENT_CONFIG_TARGET_PID, PERF_EVENT_CONFIG_TARGET_CMDLINE,
                                                 PERF_EVENT_CONFIG_EXCLUDE_PID, PERF_EVENT_CONFIG_EXCLUDE_CMDLINE,
                                                 PERF_EVENT_CONFIG_ADDITIONAL_CMDLINE_COUNT};

/* What a scope has that had no place at the top. */
static bool read_new_scope(struct perf_scope_config *s, const struct pb_field *f)
{
    switch (f->id) {
    case PERF_EVENT_CONFIG_SCOPE_PROCESS_SHARD_COUNT:
        s->shard_count = pb_u32(f);
        return true;
    case PERF_EVENT_CONFIG_SCOPE_TARGET_CGROUP:
        return vec_push(&s->target_cgroups, pb_bytes(f));
    case PERF_EVENT_CONFIG_SCOPE_EXCLUDE_CGROUP:
        return vec_push(&s->exclude_cgroups, pb_bytes(f));
    }
    return true;
}

static bool read_scope(struct perf_scope_config *s, struct slice message, const struct scope_fields *fields)
{
    struct pb_numbers targets = pb_numbers(message, fields->target_pid);
    struct pb_numbers excluded = pb_numbers(message, fields->exclude_pid);
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    uint64_t v;
    bool good = true;
    while (good && pb_next_number(&targets, &v))
        good = vec_push(&s->target_pids, (int32_t)v);
    while (good && pb_next_number(&excluded, &v))
        good = vec_push(&s->exclude_pids, (int32_t)v);
    while (good && pb_next(&c, &f)) {
        if (f.id == fields->target_cmdline)
            good = vec_push(&s->target_cmdlines, pb_bytes(&f));
        else if (f.id == fields->exclude_cmdline)
            good = vec_push(&s->exclude_cmdlines, pb_bytes(&f));
        else if (f.id == fields->additional)
            s->additional_cmdlines = pb_u32(&f);
        else if (fields == &scope_now)
            good = read_new_scope(s, &f);
    }
    return good;
}

static int read_stacks(struct perf_config *c, const struct raw_config *r, struct slice message, struct error *err)
{
    struct pb_cursor cursor = pb_cursor(r->stacks);
    struct pb_field f;
    struct slice scope = message;
    const struct scope_fields *fields = &scope_legacy;
    c->stacks = r->has_stacks || r->all_cpus;
    c->kernel_frames = r->legacy_kernel_frames;
    while (pb_next(&cursor, &f)) {
        if (f.id == PERF_EVENT_CONFIG_CALLSTACK_SAMPLING_SCOPE) {
            scope = pb_bytes(&f);
            fields = &scope_now;
        } else if (f.id == PERF_EVENT_CONFIG_CALLSTACK_SAMPLING_KERNEL_FRAMES) {
            c->kernel_frames |= pb_bool(&f);
        } else if (f.id == PERF_EVENT_CONFIG_CALLSTACK_SAMPLING_USER_FRAMES) {
            c->user_frames = pb_u32(&f);
        }
    }
    if (c->user_frames > PERF_EVENT_CONFIG_UNWIND_MODE_UNWIND_KERNEL_FRAME_POINTER)
        return error_set(err, -MRD_EINVALID, "user_frames %u is not known; use one of PerfEventConfig.UnwindMode",
                         c->user_frames);
    if (c->user_frames == PERF_EVENT_CONFIG_UNWIND_MODE_UNWIND_UNKNOWN)
        c->user_frames = PERF_EVENT_CONFIG_UNWIND_MODE_UNWIND_DWARF;
    c->kernel_frames &= c->stacks;
    if (c->stacks && !read_scope(&c->scope, scope, fields))
        return error_set(err, -MRD_ENOMEM, "out of memory for the scope of linux.perf");
    return 0;
}

/* The plain numbers of the config. */
static void read_number(struct perf_config *c, struct raw_config *r, const struct pb_field *f)
{
    switch (f->id) {
    case PERF_EVENT_CONFIG_ALL_CPUS:
        r->all_cpus = pb_bool(f);
        break;
    case PERF_EVENT_CONFIG_SAMPLING_FREQUENCY:
        r->legacy_hz = pb_u32(f);
        break;
    case PERF_EVENT_CONFIG_RING_BUFFER_PAGES:
        c->ring_pages = pb_u32(f);
        break;
    case PERF_EVENT_CONFIG_RING_BUFFER_READ_PERIOD_MS:
        c->read_period_ms = pb_u32(f);
        r->has_read_period = c->read_period_ms != 0;
        break;
    case PERF_EVENT_CONFIG_REMOTE_DESCRIPTOR_TIMEOUT_MS:
        c->timeout_ms = pb_u32(f);
        break;
    case PERF_EVENT_CONFIG_UNWIND_STATE_CLEAR_PERIOD_MS:
        c->clear_ms = pb_u32(f);
        break;
    case PERF_EVENT_CONFIG_KERNEL_FRAMES:
        r->legacy_kernel_frames = pb_bool(f);
        break;
    case PERF_EVENT_CONFIG_MAX_DAEMON_MEMORY_KB:
        c->max_memory_kb = pb_u32(f);
        break;
    case PERF_EVENT_CONFIG_MAX_ENQUEUED_FOOTPRINT_KB:
        c->max_queued_kb = pb_u64(f);
        break;
    case PERF_EVENT_CONFIG_IGNORE_OPEN_FAILURE:
        c->ignore_open_failure = pb_bool(f);
        break;
    }
}

static void fill_defaults(struct perf_config *c)
{
    if (!c->ring_pages)
        c->ring_pages = DEFAULT_PAGES;
    if (!c->read_period_ms)
        c->read_period_ms = DEFAULT_READ_MS;
    if (!c->timeout_ms)
        c->timeout_ms = DEFAULT_TIMEOUT_MS;
    if (!c->clear_ms)
        c->clear_ms = DEFAULT_CLEAR_MS;
}

static int read_all(struct perf_config *c, struct slice message, struct error *err)
{
    struct raw_config r = {0};
    struct pb_cursor cursor = pb_cursor(message);
    struct pb_field f;
    struct pb_numbers cpus = pb_numbers(message, PERF_EVENT_CONFIG_TARGET_CPU);
    int rc = 0;
    while (!rc && pb_next(&cursor, &f)) {
        if (f.id == PERF_EVENT_CONFIG_TIMEBASE) {
            r.timebase = pb_bytes(&f);
        } else if (f.id == PERF_EVENT_CONFIG_CALLSTACK_SAMPLING) {
            r.stacks = pb_bytes(&f);
            r.has_stacks = true;
        } else if (f.id == PERF_EVENT_CONFIG_FOLLOWERS) {
            rc = c->n_followers < PERF_MAX_FOLLOWERS
                     ? read_event(&c->followers[c->n_followers++], pb_bytes(&f), &perf_follower_fields, err)
                     : error_set(err, -MRD_ELIMIT, "more than %d followers", PERF_MAX_FOLLOWERS);
        } else if (f.id == PERF_EVENT_CONFIG_CPUID) {
            if (!vec_push(&c->cpuids, pb_bytes(&f)))
                return error_set(err, -MRD_ENOMEM, "out of memory for linux.perf");
        } else {
            read_number(c, &r, &f);
        }
    }
    if (!rc && cursor.bad)
        rc = error_set(err, -MRD_EFORMAT, "perf_event_config is damaged");
    for (uint64_t v; !rc && pb_next_number(&cpus, &v);)
        if (!vec_push(&c->target_cpus, (uint32_t)v))
            rc = error_set(err, -MRD_ENOMEM, "out of memory for linux.perf");
    if (!rc)
        rc = read_timebase(c, &r, err);
    if (!rc)
        rc = read_stacks(c, &r, message, err);
    fill_defaults(c);
    if (!rc && ((c->ring_pages & (c->ring_pages - 1)) || c->ring_pages > MAX_PAGES))
        rc = error_set(err, -MRD_EINVALID, "ring_buffer_pages %u: use a power of two, up to %d", c->ring_pages,
                       MAX_PAGES);
    return rc;
}

int perf_config_parse(struct perf_config *c, struct slice message, struct error *err)
{
    memset(c, 0, sizeof *c);
    c->bytes = mem_alloc(message.len ? message.len : 1);
    if (!c->bytes)
        return error_set(err, -MRD_ENOMEM, "out of memory for linux.perf");
    if (message.len)
        memcpy(c->bytes, message.p, message.len);
    return read_all(c, slice_of(c->bytes, message.len), err);
}

void perf_config_free(struct perf_config *c)
{
    vec_free(&c->scope.target_pids);
    vec_free(&c->scope.exclude_pids);
    vec_free(&c->scope.target_cmdlines);
    vec_free(&c->scope.exclude_cmdlines);
    vec_free(&c->scope.target_cgroups);
    vec_free(&c->scope.exclude_cgroups);
    vec_free(&c->target_cpus);
    vec_free(&c->cpuids);
    mem_free(c->bytes);
    c->bytes = NULL;
}
