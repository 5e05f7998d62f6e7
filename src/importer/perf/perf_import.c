/* Imports a perf.data: its machine, clock and sessions, and walks its records. */
#include "importer/perf/perf_unwind.h"

#include "importer/clock/clock_graph.h"
#include "importer/core/metadata.h"
#include "importer/perf/perf_folder.h"
#include "importer/track/process_tracker.h"
#include "wire/fields.h"
#include "wire/pb_writer.h"

static void *open_reader(struct importer *im)
{
    struct perf_import *p = mem_zalloc(sizeof *p);
    if (p)
        p->im = im;
    return p;
}

static void close_reader(void *self)
{
    struct perf_import *p = self;
    sample_writer_close(p->samples);
    perf_tracepoints_close(p->tracepoints);
    perf_unwind_close(p);
    perf_spaces_free(&p->spaces);
    u64map_free(&p->counter_of);
    vec_free(&p->counters);
    perf_queue_close(p);
    vec_free(&p->symbols);
    vec_free(&p->deferred);
    u64map_free(&p->cgroups);
    u64map_free(&p->cgroup_of);
    u64map_free(&p->by_cookie);
    perf_file_close(&p->file);
    mem_free(p->copy);
    mem_free(p);
}

static uint32_t clock_of(const struct perf_attr *a)
{
    static const uint8_t clocks[] = {
        [0] = CLOCK_ID_REALTIME,        [1] = CLOCK_ID_MONOTONIC,        [4] = CLOCK_ID_MONOTONIC_RAW,
        [5] = CLOCK_ID_REALTIME_COARSE, [6] = CLOCK_ID_MONOTONIC_COARSE, [7] = CLOCK_ID_BOOTTIME};
    enum { N = sizeof clocks };
    if (!a || !perf_flag(a, PERF_FLAG_USE_CLOCKID))
        return CLOCK_ID_PERF;
    return a->clockid >= 0 && a->clockid < N && clocks[a->clockid] ? clocks[a->clockid] : CLOCK_ID_TRACE_FILE;
}

/* Feature CLOCK_DATA: both clocks, read at the start of the recording. */
static void relate_to_wall_clock(struct perf_import *p)
{
    struct dat_cursor c = perf_cursor(&p->file, p->file.features[PERF_FEATURE_CLOCK_DATA]);
    struct clock_graph *clocks = p->im->clocks;
    (void)dat_u32(&c); /* version */
    (void)dat_u32(&c); /* the clock, as in the attrs */
    uint64_t wall = dat_u64(&c), own = dat_u64(&c);
    if (c.bad || !p->file.has_feature[PERF_FEATURE_CLOCK_DATA] || p->clock.clock.id == CLOCK_ID_REALTIME)
        return;
    struct clock_id realtime = {
        .id = CLOCK_ID_REALTIME, .machine = p->clock.clock.machine, .file = p->im->input.clock_file};
    struct clock_id trace = clock_graph_trace_clock(clocks);
    if (trace.id == p->clock.clock.id && trace.machine == p->clock.clock.machine && trace.file == p->clock.clock.file)
        clock_graph_own_domain(clocks, trace); /* it is what others are related to */
    struct clock_reading pair[] = {{.clock = p->clock.clock, .value = (int64_t)own},
                                   {.clock = realtime, .value = (int64_t)wall}};
    clock_graph_write_rows(clocks, pair, 2, clock_graph_add_snapshot(clocks, pair, 2));
}

/* The machine that the file names: the host's row, or one of its own behind other traces. */
static struct machine_ctx *find_machine(struct perf_import *p)
{
    struct importer *im = p->im;
    struct slice host = perf_feature_text(&p->file, PERF_FEATURE_HOSTNAME);
    strid name = host.len ? import_slice(im, host) : 0;
    struct machine_ctx *m = im->machines.p[im->input.base_machine];
    if (im->input.declared.machine || im->input.base_machine || !name)
        return m;
    for (size_t i = 0; i < im->machines.n; i++)
        if (ROW_GET(im->st, machine, name, i) == name) {
            im->input.base_machine = (uint32_t)i;
            return im->machines.p[i];
        }
    if (!im->input.serial ||
        !ROW_GET(im->st, machine, name, 0)) { /* the traces before do not say where they are from */
        ROW_SET(im->st, machine, name, 0, name);
        return m;
    }
    m = importer_named_machine(im, strpool_cstr(&im->st->strings, name));
    if (m)
        im->input.base_machine = m->id;
    return m;
}

static void describe_machine(struct perf_import *p)
{
    const struct perf_file *f = &p->file;
    struct pb_writer w = {0};
    struct slice release = perf_feature_text(f, PERF_FEATURE_OSRELEASE), arch = perf_feature_text(f, PERF_FEATURE_ARCH);
    struct dat_cursor cpus = perf_cursor(f, f->features[PERF_FEATURE_NRCPUS]),
                      ram = perf_cursor(f, f->features[PERF_FEATURE_TOTAL_MEM]);
    size_t info = pb_begin(&w, TRACE_PACKET_SYSTEM_INFO), names = pb_begin(&w, SYSTEM_INFO_UTSNAME);
    if (release.len)
        pb_put_text(&w, UTSNAME_RELEASE, release);
    if (arch.len)
        pb_put_text(&w, UTSNAME_MACHINE, arch);
    pb_end(&w, names);
    uint32_t n = dat_u32(&cpus);
    if (!cpus.bad)
        pb_put_varint(&w, SYSTEM_INFO_NUM_CPUS, n);
    uint64_t kib = dat_u64(&ram);
    if (!ram.bad && kib < INT64_MAX / 1024)
        pb_put_varint(&w, SYSTEM_INFO_SYSTEM_RAM_BYTES, kib * 1024);
    pb_end(&w, info);
    struct slice packet = pb_written(&w);
    if (w.failed)
        p->im->failed = true;
    else if (release.len || arch.len || !cpus.bad || !ram.bad)
        format_reader_packet(p->im, 1, &packet, 1);
    pb_writer_free(&w);
}

/* The command that recorded: feature CMDLINE, its words with spaces between. */
static strid command_line(struct perf_import *p)
{
    struct dat_cursor c = perf_cursor(&p->file, p->file.features[PERF_FEATURE_CMDLINE]);
    VEC(char)
    text = {0};
    bool ok = true;
    for (uint32_t n = dat_u32(&c); n && !c.bad && ok; n--) {
        struct slice word = perf_text(&c);
        ok = vec_reserve(&text, text.n + word.len + 1);
        if (!ok || c.bad)
            break;
        if (text.n)
            text.p[text.n++] = ' ';
        if (word.len)
            memcpy(text.p + text.n, word.p, word.len);
        text.n += word.len;
    }
    strid id = text.n ? import_slice(p->im, slice_of(text.p, text.n)) : 0;
    p->im->failed |= !ok;
    vec_free(&text);
    return id;
}

static const char *unit_of(const struct perf_attr *a)
{
    enum { CACHE = 3, BREAKPOINT = 5, CPU_CLOCK = 0, TASK_CLOCK = 1 };
    static const char *const hardware[] = {[0] = "cycles", [1] = "instructions", [6] = "cycles", [9] = "cycles"};
    switch (a->type) {
    case PERF_TYPE_HARDWARE:
        return a->config < sizeof hardware / sizeof *hardware && hardware[a->config] ? hardware[a->config] : "count";
    case PERF_TYPE_SOFTWARE:
        return a->config == CPU_CLOCK || a->config == TASK_CLOCK ? "ns" : "count";
    case PERF_TYPE_TRACEPOINT:
    case CACHE:
    case BREAKPOINT:
        return "count";
    default:
        return NULL;
    }
}

/* One session an event; rows in the order of the file. */
static void add_sessions(struct perf_import *p)
{
    strid command = command_line(p), source = import_str(p->im, "linux.perf");
    p->first_session = p->im->st->t[T_profiler_session].n_rows;
    for (size_t i = 0; i < p->file.attrs.n; i++) {
        const struct perf_attr *a = &p->file.attrs.p[i];
        const char *unit = unit_of(a);
        struct profiler_session_row row = {
            .source = source, .timebase_unit = unit ? import_str(p->im, unit) : 0, .cmdline = a->has_ids ? command : 0};
        if (profiler_session_insert(p->im->st, &row) == UINT32_MAX)
            p->im->failed = true;
    }
}

static bool is_used(unsigned feature)
{
    static const uint8_t used[] = {PERF_FEATURE_TRACING_DATA, PERF_FEATURE_BUILD_ID, PERF_FEATURE_HOSTNAME,
                                   PERF_FEATURE_OSRELEASE,    PERF_FEATURE_ARCH,     PERF_FEATURE_NRCPUS,
                                   PERF_FEATURE_TOTAL_MEM,    PERF_FEATURE_CMDLINE,  PERF_FEATURE_EVENT_DESC,
                                   PERF_FEATURE_CLOCK_DATA,   PERF_FEATURE_CPUDESC};
    for (size_t i = 0; i < sizeof used; i++)
        if (used[i] == feature)
            return true;
    return false;
}

/* What is known before the first record of an event is looked at. */
static int prepare(struct perf_import *p)
{
    p->m = find_machine(p);
    if (!p->m)
        return -MRD_ENOMEM;
    file_clock_open(&p->clock, p->im, clock_of(p->file.attrs.p));
    relate_to_wall_clock(p);
    describe_machine(p);
    add_sessions(p);
    int rc = perf_samples_open(p);
    perf_unwind_open(p);
    perf_queue_open(p);
    return rc ? rc : perf_tracepoints_open(p);
}

/* The records of a stream say what events there are: all are walked before the first is looked at. */
static int read_stream_head(struct perf_import *p)
{
    struct perf_record r;
    int more;
    while ((more = perf_records_next(&p->file, &r)) == 1)
        continue;
    perf_records_rewind(&p->file);
    return more;
}

static int read_records(struct perf_import *p)
{
    struct perf_record r;
    int rc = p->file.stream ? read_stream_head(p) : 0, more = 0;
    if (rc || !p->file.attrs.n)
        return rc;
    rc = prepare(p);
    while (!rc && !p->im->failed && (more = perf_records_next(&p->file, &r)) == 1) {
        perf_queue_take(p, &r);
        perf_queue_take_plain(p);
    }
    rc = rc ? rc : more < 0 ? more : 0;
    if (!rc)
        perf_queue_end(p);
    return rc;
}

static int write_file(void *self, struct slice bytes, struct error *err)
{
    struct perf_import *p = self;
    p->m = p->im->machines.p[p->im->input.base_machine];
    if (!importer_bytes_stable(p->im, bytes.p)) {
        p->copy = mem_alloc(bytes.len + 1);
        if (!p->copy)
            return error_set(err, -MRD_ENOMEM, "out of memory for perf.data");
        memcpy(p->copy, bytes.p, bytes.len);
        bytes.p = p->copy;
    }
    int rc = perf_file_open(&p->file, bytes, err);
    if (rc)
        return rc;
    perf_folder_parts(p->im, &p->file);
    rc = read_records(p);
    if (rc)
        return error_set(err, rc, "out of memory for perf.data");
    if (!p->file.attrs.n)
        return error_set(err, -MRD_EFORMAT, "perf.data does not say what events it holds");
    struct stats *stats = &p->im->st->stats;
    for (unsigned bit = 0; bit < 256; bit++)
        if (p->file.has_feature[bit] && !is_used(bit))
            stats_add_idx(stats, p->m->id, STAT_perf_features_skipped, (int32_t)bit, 1);
    if (p->file.truncated)
        stats_add_idx(stats, p->m->id, STAT_perf_data_truncated, (int32_t)p->im->trace_file, 1);
    return 0;
}

static void all_parsed(void *self)
{
    struct perf_import *p = self;
    if (p->samples)
        sample_writer_flush(p->samples);
}

const struct format_reader perf_reader = {
    .format = FORMAT_PERF,
    .whole = true,
    .open = open_reader,
    .write = write_file,
    .parsed = all_parsed,
    .close = close_reader,
};
