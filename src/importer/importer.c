/* Runs an import, from opening it until the tables are ready for queries. */
#include "importer/importer.h"
#include "base/clock.h"
#include "base/hash.h"

#include "importer/android/android.h"
#include "importer/clock/clock_graph.h"
#include "importer/clock/clock_queries.h"
#include "importer/clock/clock_state.h"
#include "importer/clock/recordings.h"
#include "importer/clock/remote_sync.h"
#include "importer/core/bounds.h"
#include "importer/core/sequence.h"
#include "importer/ctf/ctf_import.h"
#include "importer/ftrace/ftrace.h"
#include "importer/fuchsia/fuchsia.h"
#include "importer/hprof/hprof.h"
#include "importer/input/format_reader.h"
#include "importer/input/reader.h"
#include "importer/input/snapshot_reader.h"
#include "importer/json/json_import.h"
#include "importer/merge/merge.h"
#include "importer/merge/relate.h"
#include "importer/merge/write_merged.h"
#include "importer/network/packets.h"
#include "importer/otlp/otlp.h"
#include "importer/perf/perf_folder.h"
#include "importer/perf/perf_import.h"
#include "importer/profiling/profiling.h"
#include "importer/proto/content_analysis.h"
#include "importer/proto/diagnostics.h"
#include "importer/proto/machine_losses.h"
#include "importer/proto/trace_reader.h"
#include "importer/protovm/protovm.h"
#include "importer/sort/sorter.h"
#include "importer/system/system.h"
#include "importer/text/systrace.h"
#include "importer/text/text_formats.h"
#include "importer/trace_dat/trace_dat.h"
#include "importer/track/flow_tracker.h"
#include "importer/track/gpu_flows.h"
#include "importer/track/process_tracker.h"
#include "importer/track/sched_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_tracker.h"
#include "importer/track_event/track_event.h"
#include "importer/winscope/winscope.h"
#include "storage/snapshot.h"

static const struct packet_handler *const handlers[] = {
    ftrace_packet_handlers,  track_event_packet_handlers, system_packet_handlers, profiling_packet_handlers,
    android_packet_handlers, winscope_packet_handlers,    proto_packet_handlers,
};

static const struct packet_handler *const early_handlers[] = {track_event_early_handlers, protovm_early_handlers};

/* What reads other formats than packets. */
static const struct format_reader *const format_readers[] = {
    &snapshot_format_reader,
    &chrome_json_reader,
    &gecko_reader,
    &trace_dat_reader,
    &perf_reader,
    &otlp_json_reader,
    &otlp_proto_reader,
    &systrace_format_reader,
    &strace_format_reader,
    &perf_text_format_reader,
    &collapsed_format_reader,
    &ninja_format_reader,
    &pprof_format_reader,
    &simpleperf_format_reader,
    &primes_format_reader,
    &art_method_format_reader,
    &art_method_v2_format_reader,
    &logcat_format_reader,
    &instruments_format_reader,
    &dumpstate_format_reader,
    &fuchsia_format_reader,
    &hprof_format_reader,
    NULL,
};

static bool open_machine(struct machine_ctx *m)
{
    bool ok = proto_machine_open(m) && (m->sequences = sequences_open(m)) && (m->processes = process_tracker_open(m)) &&
              (m->sched = sched_tracker_open(m)) && (m->ftrace = ftrace_machine_open(m)) &&
              (m->track_event = track_event_machine_open(m)) && (m->system = system_machine_open(m)) &&
              (m->profiling = profiling_machine_open(m)) && (m->android = android_machine_open(m)) &&
              (m->winscope = winscope_machine_open(m));
    if (ok)
        remote_sync_machine(m->im->remote, m);
    return ok;
}

static void finish_machine(struct machine_ctx *m)
{
    sequences_finish(m->sequences);
    ftrace_machine_finish(m->ftrace);
    track_event_machine_finish(m->track_event);
    system_machine_finish(m->system);
    profiling_machine_finish(m->profiling);
    android_machine_finish(m->android);
    winscope_machine_finish(m->winscope);
    sched_tracker_finish(m->sched);
    process_tracker_finish(m->processes);
}

static void close_machine(struct machine_ctx *m)
{
    winscope_machine_close(m->winscope);
    android_machine_close(m->android);
    profiling_machine_close(m->profiling);
    system_machine_close(m->system);
    track_event_machine_close(m->track_event);
    ftrace_machine_close(m->ftrace);
    sched_tracker_close(m->sched);
    process_tracker_close(m->processes);
    sequences_close(m->sequences);
}

static const struct machine_parts machine_parts = {open_machine, close_machine};

/* Events: a thread costs as much as parsing a few hundred. Threads that were asked for are used for fewer, too. */
enum { WORTH_A_THREAD = 32 * 1024 };

static bool open_parts(struct importer *im)
{
    bool ok = (im->clocks = clock_graph_open(im->st)) && (im->remote = remote_sync_open(im)) &&
              (im->sorter = sorter_open(&im->st->stats, im->opt.full_sort)) && (im->tracks = track_tracker_open(im)) &&
              (im->slices = slice_tracker_open(im)) && (im->flows = flow_tracker_open(im)) &&
              (im->proto = proto_reader_open(im, handlers, sizeof handlers / sizeof *handlers, early_handlers,
                                             sizeof early_handlers / sizeof *early_handlers)) &&
              (im->trace_dat = trace_dat_open()) && (im->reader = reader_open(im, &merge_archives, format_readers)) &&
              importer_machine(im, 0);
    if (ok)
        clock_graph_set_trace_file(im->clocks, &im->trace_file);
    if (ok && im->opt.sort_memory)
        sorter_spill(im->sorter, im->opt.sort_memory);
    if (ok && importer_threads(im) > 1)
        sorter_use_thread(im->sorter, im->opt.threads ? 1 : WORTH_A_THREAD);
    return ok;
}

/* --clock FORMAT=CLOCK: files that have no packets, whose clock nothing else tells. */
static int choose_clock(struct importer *im, const char *text, struct error *err)
{
    const char *equals = strchr(text, '=');
    size_t len = equals ? (size_t)(equals - text) : 0;
    uint32_t clock = equals ? clock_by_name(equals + 1) : 0;
    _Static_assert(FORMAT_UNKNOWN < sizeof im->file_clocks, "one a format");
    if (!clock || clock > CLOCK_ID_BOOTTIME)
        return error_set(err, -MRD_EINVALID,
                         "--clock '%s': use FORMAT=CLOCK, where CLOCK is REALTIME, REALTIME_COARSE, MONOTONIC, "
                         "MONOTONIC_COARSE, MONOTONIC_RAW or BOOTTIME",
                         text);
    for (const struct format_reader *const *r = format_readers; *r; r++) {
        const char *name = format_name((*r)->format);
        if ((*r)->fixed_clock || strlen(name) != len || strncmp(name, text, len) != 0)
            continue;
        im->file_clocks[(*r)->format] = (uint8_t)clock;
        return 0;
    }
    return error_set(err, -MRD_EINVALID,
                     "--clock '%s': there is no format of that name whose clock can be chosen; trace_type in "
                     "__intrinsic_trace_file is the name of a file's format, json for instance",
                     text);
}

int importer_open(struct importer **out, struct storage *st, const struct import_options *options, struct error *err)
{
    *out = NULL;
    struct importer *im = mem_zalloc(sizeof *im);
    if (im) {
        im->st = st;
        im->parts = &machine_parts;
        im->secret = hash_secret();
        if (options)
            im->opt = *options;
        int rc = open_parts(im) ? 0 : -MRD_ENOMEM;
        bool opened = rc == 0;
        for (size_t i = 0; i < im->opt.n_file_clocks && !rc; i++)
            rc = choose_clock(im, im->opt.file_clocks[i], err);
        if (!rc) {
            *out = im;
            return 0;
        }
        importer_close(im);
        if (opened)
            return rc;
    }
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

static int check(const struct importer *im, int rc, struct error *err)
{
    if (im->failed || sorter_failed(im->sorter) || clock_graph_failed(im->clocks) || storage_failed(im->st))
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return rc;
}

/* Adds the time since `start` to what the import has taken. */
static void note_duration(struct importer *im, int64_t start)
{
    stats_add(&im->st->stats, 0, STAT_parse_trace_duration_ns, clock_now_ns(CLOCK_MONOTONIC) - start);
}

int importer_add_file(struct importer *im, const char *path, struct error *err)
{
    int64_t start = clock_now_ns(CLOCK_MONOTONIC);
    bool is_name = strcmp(path, "-") != 0;
    char *of_folder = is_name ? perf_folder_data(path) : NULL;
    int rc = of_folder ? perf_folder_open(im, path, err) : 0;
    if (!rc && !of_folder && is_name && ctf_is_trace(path))
        rc = ctf_import_add(im, path, err);
    else if (!rc)
        rc = reader_add_file(im->reader, of_folder ? of_folder : path, err);
    mem_free(of_folder);
    im->directory_bytes = ctf_import_bytes(im);
    proto_reader_finish_file(im->proto);
    bundles_ahead_end(im);
    note_duration(im, start);
    return check(im, rc, err);
}

int importer_feed(struct importer *im, const void *bytes, size_t len, struct error *err)
{
    int64_t start = clock_now_ns(CLOCK_MONOTONIC);
    int rc = reader_feed(im->reader, bytes, len, err);
    note_duration(im, start);
    return check(im, rc, err);
}

uint64_t importer_bytes(const struct importer *im)
{
    return reader_bytes(im->reader);
}

static void tell_sorted(void *ctx, uint64_t done, uint64_t total)
{
    const struct importer *im = ctx;
    im->opt.progress_step(im->opt.progress_ctx, "sorting", done, total);
}

/* A manifest without a trace is of no machine. */
static void forget_machine(struct storage *st)
{
    table_clear(&st->t[T_machine]);
    table_clear(&st->t[T_process]);
    table_clear(&st->t[T_thread]);
}

int importer_finish(struct importer *im, struct error *err)
{
    int64_t start = clock_now_ns(CLOCK_MONOTONIC);
    int rc = reader_finish(im->reader, err), related = relate_recordings(im->reader, rc ? NULL : err);
    rc = rc ? rc : related;
    reader_read_pending(im->reader);
    proto_reader_finish_file(im->proto);
    int ctf_rc = ctf_import_finish(im, rc ? NULL : err);
    rc = rc ? rc : ctf_rc;
    int attached = rc ? 0 : snapshot_reader_attach(im, err);
    if (attached)
        return attached < 0 ? attached : clock_state_load(im, snapshot_info_of(im->st).clocks, err);
    otlp_place(im);
    bundles_ahead_end(im);
    sorter_drain(im->sorter, im->opt.progress_step ? tell_sorted : NULL, im);
    reader_parsed(im->reader);
    if (im->opt.progress_step)
        im->opt.progress_step(im->opt.progress_ctx, "indexing", 0, 0);
    otlp_finish(im);
    reader_note_shrunk(im->reader);
    ctf_import_note_shrunk(im);
    for (size_t i = 0; i < im->machines.n; i++)
        finish_machine(im->machines.p[i]);
    diagnostics_finish(im);
    content_analysis_finish(im->content);
    remote_sync_finish(im->remote);
    recordings_name_machines(im);
    slice_tracker_finish(im->slices);
    network_packets_match(im);
    flow_tracker_finish(im->flows);
    reader_metadata(im->reader);
    trace_bounds_compute(im->st);
    if (reader_had_manifest_alone(im->reader))
        forget_machine(im->st);
    note_duration(im, start);
    im->finished = true;
    storage_finalize(im->st);
    if (!rc && im->error.code) {
        if (err)
            *err = im->error;
        rc = im->error.code;
    }
    if (rc && stats_get_idx(&im->st->stats, 0, STAT_file_shrank, 0))
        error_set(
            err, rc,
            "a file became shorter while it was read: another program writes it; load it again when that has ended");
    return check(im, rc, err);
}

uint64_t importer_directory_bytes(const struct importer *im)
{
    return im->directory_bytes;
}

int importer_clock_state(struct importer *im, uint8_t **bytes, size_t *len, struct error *err)
{
    clock_state_bytes out = {0};
    int rc = clock_state_save(im, &out, err);
    *bytes = out.p;
    *len = out.n;
    return rc;
}

int importer_write_merged(struct importer *im, const char *path, struct error *err)
{
    return reader_write_merged(im->reader, path, err);
}

int importer_add_symbols(struct importer *im, struct slice packets, uint64_t *named, struct error *err)
{
    uint64_t n = 0;
    for (size_t i = 0; i < im->machines.n; i++)
        n += module_symbols_apply(im->machines.p[i], packets);
    storage_finalize(im->st);
    if (named)
        *named = n;
    return im->failed || storage_failed(im->st) ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

void importer_close(struct importer *im)
{
    if (!im)
        return;
    for (size_t i = im->machines.n; i-- > 0;)
        machine_close(im->machines.p[i]);
    vec_free(&im->machines);
    bundles_ahead_end(im);
    vec_free(&im->clock_files);
    vec_free(&im->generations);
    u64map_free(&im->machine_rows);
    u64map_free(&im->metadata_rows);
    protovms_close(im->protovms);
    reader_close(im->reader);
    mem_free(im->snapshot_copy);
    proto_reader_close(im->proto);
    diagnostics_close(im);
    content_analysis_close(im->content);
    machine_losses_free(im->losses);
    if (im->flows)
        flow_tracker_close(im->flows);
    gpu_flows_close(im->gpu_flows);
    if (im->slices)
        slice_tracker_close(im->slices);
    if (im->tracks)
        track_tracker_close(im->tracks);
    ctf_import_close(im);
    otlp_close(im);
    perf_folder_close(im);
    trace_dat_close(im->trace_dat);
    recordings_close(im);
    sorter_close(im->sorter);
    clock_graph_close(im->clocks);
    remote_sync_close(im->remote);
    mem_free(im);
}
