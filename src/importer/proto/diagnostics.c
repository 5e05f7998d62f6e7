/* Tells what in the config of a recording makes it lose data, cost much or miss what was asked for: rows of
 * __intrinsic_trace_diagnostics. A rule that depends on losses is surer of itself when there were some. */
#include "importer/proto/diagnostics.h"

#include "base/alloc.h"
#include "importer/clock/clock_graph.h"
#include "importer/core/metadata.h"
#include "wire/fields.h"

#include <stdio.h>

enum { MAX_SOURCES = 256, MAX_BUFFERS = 64, MAX_TEXT = 400 };

static const double SURE_WITH_LOSS = 0.9;

/* One config, taken apart. */
struct diagnosed {
    struct machine_ctx *m;
    uint32_t trace_file;
    bool loss; /* the kernel lost events */
    bool streams;
    uint64_t write_period_ms;
    uint32_t n_sources, n_buffers;
    uint64_t discards;                 /* bit by buffer */
    struct slice sources[MAX_SOURCES]; /* DataSourceConfig */
};

struct rule {
    const char *key, *title, *cure;
    /* Looks at one data source of the kind; adds rows. */
    const char *source; /* the data source's name; NULL: any */
    void (*look)(const struct diagnosed *d, const struct rule *r, struct slice source);
};

static void add(const struct diagnosed *d, const struct rule *r, const char *description, double confidence)
{
    struct importer *im = d->m->im;
    trace_diagnostics_insert(im->st, &(struct trace_diagnostics_row){.key = import_str(im, r->key),
                                                                     .title = import_str(im, r->title),
                                                                     .description = import_str(im, description),
                                                                     .remediation = import_str(im, r->cure),
                                                                     .confidence = confidence,
                                                                     .trace_id = d->trace_file});
}

static struct slice message(struct slice in, uint32_t field)
{
    struct pb_field f;
    return pb_find(in, field, &f) ? pb_bytes(&f) : slice_of(NULL, 0);
}

/* False (and 0) when it is not there. */
static bool number(struct slice in, uint32_t field, uint64_t *n)
{
    struct pb_field f;
    bool found = pb_find(in, field, &f);
    *n = found ? pb_u64(&f) : 0;
    return found;
}

static bool flag(struct slice in, uint32_t field)
{
    uint64_t n;
    return number(in, field, &n) && n;
}

static struct slice ftrace_of(struct slice source)
{
    return message(source, DATA_SOURCE_CONFIG_FTRACE_CONFIG);
}

static bool has_event(struct slice ftrace, const char *name)
{
    struct pb_cursor c = pb_cursor(ftrace);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == FTRACE_CONFIG_FTRACE_EVENTS && slice_eq_str(pb_bytes(&f), name))
            return true;
    return false;
}

/* Falls in a straight line from `high` at x0 to `low` at x1, and is `high` before. */
static double falling(double x, double x0, double high, double x1, double low)
{
    return x <= x0 ? high : high + (low - high) * (x - x0) / (x1 - x0);
}

/* ---- rules ---- */

static void late_start(const struct diagnosed *d, const struct rule *r, struct slice source)
{
    static const int64_t five_minutes_ns = INT64_C(300) * 1000000000;
    int64_t started = metadata_earliest(d->m->im, d->m, METADATA_tracing_started_ns), boot;
    if (!flag(ftrace_of(source), FTRACE_CONFIG_PRESERVE_FTRACE_BUFFER) || started == COL_NULL)
        return;
    struct clock_id clock = {.id = CLOCK_ID_BOOTTIME, .machine = d->m->id};
    if (clock_graph_from_trace_time(d->m->im->clocks, started, clock, &boot) != 0)
        boot = started;
    if (boot > five_minutes_ns)
        add(d, r,
            "preserve_ftrace_buffer keeps what the kernel traced before the recording, but this one began more than "
            "five "
            "minutes after the machine: most of that has been overwritten",
            0.7);
}

static void tiny_buffer(const struct diagnosed *d, const struct rule *r, struct slice source)
{
    uint64_t kb;
    char text[MAX_TEXT];
    if (!number(ftrace_of(source), FTRACE_CONFIG_BUFFER_SIZE_KB, &kb) || !kb || kb >= 1024)
        return;
    snprintf(text, sizeof text, "buffer_size_kb is %llu: a busy cpu fills that before it is read",
             (unsigned long long)kb);
    add(d, r, text, d->loss ? SURE_WITH_LOSS : falling((double)kb, 64, 0.9, 1024, 0.2));
}

static void low_bandwidth(const struct diagnosed *d, const struct rule *r, struct slice source)
{
    uint64_t kb, ms;
    char text[MAX_TEXT];
    number(ftrace_of(source), FTRACE_CONFIG_BUFFER_SIZE_KB, &kb);
    number(ftrace_of(source), FTRACE_CONFIG_DRAIN_PERIOD_MS, &ms);
    if (!kb || !ms)
        return;
    double mb_per_s = (double)kb / 1024 / ((double)ms / 1000);
    if (mb_per_s >= 5)
        return;
    snprintf(
        text, sizeof text,
        "buffer_size_kb %llu, read every %llu ms, takes less than 5 MB of events a second: a burst overwrites what "
        "has not been read",
        (unsigned long long)kb, (unsigned long long)ms);
    add(d, r, text, d->loss ? SURE_WITH_LOSS : falling(mb_per_s, 1, 0.9, 5, 0));
}

static void drain_period(const struct diagnosed *d, const struct rule *r, struct slice source)
{
    uint64_t ms;
    char text[MAX_TEXT];
    if (!number(ftrace_of(source), FTRACE_CONFIG_DRAIN_PERIOD_MS, &ms) || (ms >= 100 && ms <= 60000))
        return;
    snprintf(text, sizeof text, "drain_period_ms is %llu: %s", (unsigned long long)ms,
             ms < 100 ? "reading that often costs much of a cpu" : "the buffers overflow before they are read");
    add(d, r, text, 0.6);
}

static void all_syscalls(const struct diagnosed *d, const struct rule *r, struct slice source)
{
    struct slice ftrace = ftrace_of(source);
    if ((has_event(ftrace, "raw_syscalls/sys_enter") || has_event(ftrace, "raw_syscalls/sys_exit")) &&
        !message(ftrace, FTRACE_CONFIG_SYSCALL_EVENTS).p)
        add(d, r, "every system call is recorded: such recordings are large and slow down what they record",
            d->loss ? SURE_WITH_LOSS : 0.3);
}

static void function_graph(const struct diagnosed *d, const struct rule *r, struct slice source)
{
    struct slice ftrace = ftrace_of(source);
    if (flag(ftrace, FTRACE_CONFIG_ENABLE_FUNCTION_GRAPH) && !flag(ftrace, FTRACE_CONFIG_SYMBOLIZE_KSYMS))
        add(d, r, "functions are recorded as addresses, which nothing can name afterwards", 1.0);
}

static void kernel_symbols(const struct diagnosed *d, const struct rule *r, struct slice source)
{
    static const char *const events[] = {"workqueue/workqueue_execute_start", "sched/sched_blocked_reason"};
    struct slice ftrace = ftrace_of(source);
    char text[MAX_TEXT];
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        if (!has_event(ftrace, events[i]) || flag(ftrace, FTRACE_CONFIG_SYMBOLIZE_KSYMS))
            continue;
        snprintf(text, sizeof text, "%s tells functions of the kernel as addresses, which nothing can name afterwards",
                 events[i]);
        add(d, r, text, 0.6);
        return;
    }
}

static void discard_streaming(const struct diagnosed *d, const struct rule *r, struct slice source)
{
    static const uint64_t ring_buffer_period_ms = 604800000; /* from here on: a way to say "write it once" */
    struct slice name = message(source, DATA_SOURCE_CONFIG_NAME);
    uint64_t buffer;
    char text[MAX_TEXT];
    number(source, DATA_SOURCE_CONFIG_TARGET_BUFFER, &buffer);
    if (!d->streams || d->write_period_ms >= ring_buffer_period_ms || buffer >= MAX_BUFFERS ||
        !(d->discards >> buffer & 1) || !(slice_eq_str(name, "linux.ftrace") || slice_eq_str(name, "track_event")))
        return;
    snprintf(text, sizeof text,
             "%.*s writes into buffer %llu, which is streamed into a file and of fill_policy DISCARD: once it is full "
             "before it is written, it takes nothing more",
             (int)name.len, (const char *)name.p, (unsigned long long)buffer);
    add(d, r, text, 0.8);
}

static bool any_error(const struct diagnosed *d, const char *prefix)
{
    for (int key = 0; key < STAT_COUNT; key++)
        if (stat_defs[key].severity == STAT_ERROR && slice_starts(slice_str(stat_defs[key].name), prefix) &&
            stats_any(&d->m->st->stats, d->m->id, (enum stat_key)key))
            return true;
    return false;
}

static void small_interval(const struct diagnosed *d, const struct rule *r, struct slice source)
{
    uint64_t bytes;
    char text[MAX_TEXT];
    if (!number(message(source, DATA_SOURCE_CONFIG_HEAPPROFD_CONFIG), HEAPPROFD_CONFIG_SAMPLING_INTERVAL_BYTES,
                &bytes) ||
        !bytes || bytes >= 102400)
        return;
    snprintf(text, sizeof text, "sampling_interval_bytes is %llu: so many samples slow the process down and overflow",
             (unsigned long long)bytes);
    add(d, r, text, any_error(d, "heapprofd") ? SURE_WITH_LOSS : 0.3);
}

/* "…:user/release-keys": the build type stands behind the last colon. */
static bool is_user_build(struct slice fingerprint)
{
    size_t at = fingerprint.len;
    while (at && fingerprint.p[at - 1] != ':')
        at--;
    struct slice type = at ? slice_of(fingerprint.p + at, fingerprint.len - at) : slice_of(NULL, 0);
    const uint8_t *slash = type.len ? memchr(type.p, '/', type.len) : NULL;
    return slash && slice_eq_str(slice_of(type.p, (size_t)(slash - type.p)), "user");
}

static void no_video(const struct diagnosed *d, const struct rule *r, struct slice source)
{
    struct storage *st = d->m->st;
    (void)source;
    strid fingerprint = (strid)ROW_GET(st, machine, android_build_fingerprint, d->m->id);
    if (fingerprint && is_user_build(strpool_view(&st->strings, fingerprint)) && !st->t[T_video_frames].n_rows &&
        !any_error(d, "android_video_"))
        add(d, r, "no frame was recorded and no error told of: devices with user builds do not record their display",
            0.7);
}

static const struct rule rules[] = {
    {"preserve_ftrace_buffer_late_start", "Kept kernel buffer of a late start",
     "set preserve_ftrace_buffer only in configs that start with the machine", "linux.ftrace", late_start},
    {"tiny_ftrace_buffer", "Small kernel buffer", "leave buffer_size_kb out, or give it at least 1024", "linux.ftrace",
     tiny_buffer},
    {"low_ftrace_drain_bandwidth", "Kernel buffer is read too slowly",
     "leave buffer_size_kb and drain_period_ms out, or make the buffer larger or the period shorter", "linux.ftrace",
     low_bandwidth},
    {"extreme_ftrace_drain_period", "Odd period of reading the kernel buffer",
     "leave drain_period_ms out, or give it 100 to 60000", "linux.ftrace", drain_period},
    {"syscalls_without_filter", "All system calls are recorded",
     "name those that matter in syscall_events, as in \"sys_read\"", "linux.ftrace", all_syscalls},
    {"function_graph_requires_symbolize_ksyms", "Functions without names", "set symbolize_ksyms: true", "linux.ftrace",
     function_graph},
    {"events_require_symbolize_ksyms", "Kernel functions without names", "set symbolize_ksyms: true", "linux.ftrace",
     kernel_symbols},
    {"discard_buffer_for_streaming", "Streamed buffer that discards", "use fill_policy: RING_BUFFER for that buffer",
     NULL, discard_streaming},
    {"heapprofd_sampling_interval_too_low", "Heap is sampled too often",
     "leave sampling_interval_bytes out, or give it at least 102400", "android.heapprofd", small_interval},
    {"display_video_not_enabled", "No video of the display",
     "allow it before the recording, after each start of the device: adb shell setprop debug.tracing_video_allowed "
     "true",
     "android.display.video", no_video},
};

static void take_apart(struct diagnosed *d, struct slice config)
{
    struct pb_cursor c = pb_cursor(config);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        uint64_t n;
        switch (f.id) {
        case TRACE_CONFIG_BUFFERS:
            if (d->n_buffers < MAX_BUFFERS && number(pb_bytes(&f), TRACE_CONFIG_BUFFER_CONFIG_FILL_POLICY, &n) &&
                n == TRACE_CONFIG_BUFFER_CONFIG_FILL_POLICY_DISCARD)
                d->discards |= (uint64_t)1 << d->n_buffers;
            d->n_buffers++;
            break;
        case TRACE_CONFIG_DATA_SOURCES:
            if (d->n_sources < MAX_SOURCES)
                d->sources[d->n_sources++] = message(pb_bytes(&f), TRACE_CONFIG_DATA_SOURCE_CONFIG);
            break;
        case TRACE_CONFIG_WRITE_INTO_FILE:
            d->streams = pb_bool(&f);
            break;
        case TRACE_CONFIG_FILE_WRITE_PERIOD_MS:
            d->write_period_ms = pb_u64(&f);
            break;
        }
    }
}

static void diagnose(struct machine_ctx *m, uint32_t trace_file, struct slice config)
{
    static const enum stat_key losses[] = {STAT_ftrace_cpu_has_data_loss, STAT_ftrace_cpu_overrun_delta,
                                           STAT_ftrace_cpu_commit_overrun_delta};
    struct diagnosed *d = mem_zalloc(sizeof *d);
    if (!d) {
        m->im->failed = true;
        return;
    }
    d->m = m;
    d->trace_file = trace_file;
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        d->loss |= stats_any(&m->st->stats, m->id, losses[i]);
    take_apart(d, config);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (uint32_t k = 0; k < d->n_sources; k++)
            if (!rules[i].source || slice_eq_str(message(d->sources[k], DATA_SOURCE_CONFIG_NAME), rules[i].source))
                rules[i].look(d, &rules[i], d->sources[k]);
    mem_free(d);
}

/* ---- configs until the end ---- */

struct kept_config {
    struct machine_ctx *m;
    uint32_t trace_file;
    uint8_t *bytes;
    size_t len;
};

struct diagnostics {
    VEC(struct kept_config)
    configs;
};

void diagnostics_keep(struct packet *p)
{
    struct importer *im = p->m->im;
    struct diagnostics *all = im->diagnostics ? im->diagnostics : (im->diagnostics = mem_zalloc(sizeof *all));
    struct kept_config kept = {p->m, im->trace_file, mem_alloc(p->field.len + 1), p->field.len};
    if (!all || !kept.bytes) {
        mem_free(kept.bytes);
        im->failed = true;
        return;
    }
    if (kept.len)
        memcpy(kept.bytes, p->field.p, kept.len);
    struct kept_config *last = all->configs.n ? vec_last(&all->configs) : NULL;
    if (last && last->m == kept.m && last->trace_file == kept.trace_file) {
        mem_free(last->bytes);
        *last = kept;
    } else if (!vec_push(&all->configs, kept)) {
        mem_free(kept.bytes);
        im->failed = true;
    }
}

void diagnostics_finish(struct importer *im)
{
    for (size_t i = 0; im->diagnostics && i < im->diagnostics->configs.n; i++) {
        const struct kept_config *c = &im->diagnostics->configs.p[i];
        diagnose(c->m, c->trace_file, slice_of(c->bytes, c->len));
    }
    diagnostics_close(im);
}

void diagnostics_close(struct importer *im)
{
    for (size_t i = 0; im->diagnostics && i < im->diagnostics->configs.n; i++)
        mem_free(im->diagnostics->configs.p[i].bytes);
    if (im->diagnostics)
        vec_free(&im->diagnostics->configs);
    mem_free(im->diagnostics);
    im->diagnostics = NULL;
}
