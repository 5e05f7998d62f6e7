/* Imports a trace.dat: its machine, clock, and the pages of each buffer. */
#include "importer/trace_dat/trace_dat.h"

#include "base/saturate.h"
#include "importer/clock/clock_graph.h"
#include "importer/core/metadata.h"
#include "importer/trace_dat/dat_boot.h"
#include "importer/trace_dat/dat_clock.h"
#include "importer/trace_dat/dat_events.h"
#include "importer/trace_dat/dat_files.h"
#include "importer/trace_dat/dat_maps.h"
#include "importer/trace_dat/dat_pages.h"
#include "importer/trace_dat/dat_stats.h"
#include "importer/track/process_tracker.h"
#include "wire/fields.h"
#include "wire/pb_writer.h"

#include <stdlib.h>

enum { FIRST_SEQUENCE = 1 /* of the packets that are made of a file */ };

/* One file while it is read. */
struct trace_dat {
    struct importer *im;
    struct machine_ctx *m;
    struct dat_file file;
    struct dat_clock clock;
    struct clock_id trace_clock;
    struct page_format page_format;
    struct dat_events *events;
    const struct event_program **chosen; /* [DAT_EVENT_IDS] those of `events` that are wanted now */
    struct page_foreign *foreign;
    struct ftrace_bundle *bundle;
    struct symbol_output symbols;
    struct kernel_symbols kernel;
    struct printk_formats printk;
    bool bad_shift;
    uint64_t total; /* bytes of pages that were looked through */
    uint64_t read;  /* events in pages, also those that the file does not describe */
};

static void *open_reader(struct importer *im)
{
    struct trace_dat *t = mem_zalloc(sizeof *t);
    if (t)
        t->im = im;
    return t;
}

static void close_reader(void *self)
{
    struct trace_dat *t = self;
    dat_clock_close(&t->clock);
    dat_file_close(&t->file);
    dat_events_close(t->events);
    mem_free(t->chosen);
    mem_free(t->foreign);
    ftrace_bundle_free(t->bundle);
    address_table_free(&t->symbols.addresses);
    kernel_symbols_free(&t->kernel);
    printk_formats_free(&t->printk);
    mem_free(t);
}

static void stat(struct trace_dat *t, enum stat_key key, uint64_t n)
{
    if (n)
        stats_add_idx(&t->im->st->stats, t->m->id, key, (int32_t)t->im->trace_file, (int64_t)n);
}

/* A bundle is done: a packet like any other. */
static void write_packet(void *ctx, const struct slice *pieces, size_t n)
{
    struct trace_dat *t = ctx;
    format_reader_packet(t->im, FIRST_SEQUENCE, pieces, n);
}

/* The clock of the file, by the kernel's name of it. Ticks and counts are no time: they have a clock of their own. */
static struct clock_id own_clock(const struct trace_dat *t)
{
    static const struct {
        const char *name;
        uint32_t id;
    } clocks[] = {
        {"mono", CLOCK_ID_MONOTONIC},
        {"mono_raw", CLOCK_ID_MONOTONIC_RAW},
        {"boot", CLOCK_ID_BOOTTIME},
    };
    struct slice name = dat_file_clock(&t->file);
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++)
        if (slice_eq_str(name, clocks[i].name))
            return (struct clock_id){.id = clocks[i].id, .machine = t->m->id, .file = t->im->input.clock_file};
    return (struct clock_id){.id = CLOCK_ID_TRACE_FILE, .machine = t->m->id, .file = t->im->input.serial};
}

/* Clocks of the kernel that count nanoseconds. The others are counts and ticks, by names that architectures choose; a
 * file may say how its ticks become nanoseconds. */
static bool is_time(const struct dat_file *f)
{
    static const char *const times[] = {"local", "global", "perf", "uptime", "mono", "mono_raw", "boot", "tai"};
    struct slice name = dat_file_clock(f);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (slice_eq_str(name, times[i]))
            return true;
    return f->has_tsc && !slice_eq_str(name, "counter");
}

/* In kernels before 2.6.3x events in pages began otherwise: with 2 bits of their kind and 3 of their length. */
static bool has_old_pages(const struct dat_file *f)
{
    static const char word[] = "type_len";
    return f->header_event.len && !memmem(f->header_event.p, f->header_event.len, word, sizeof word - 1);
}

static void relate(struct trace_dat *t, struct clock_id a, int64_t at_a, struct clock_id b, int64_t at_b)
{
    struct clock_graph *clocks = t->im->clocks;
    struct clock_reading pair[] = {{.clock = a, .value = at_a}, {.clock = b, .value = at_b}};
    clock_graph_write_rows(clocks, pair, 2, clock_graph_add_snapshot(clocks, pair, 2));
}

static bool open_page(const struct trace_dat *t, const struct dat_pages *pages, struct slice page, struct page_view *v)
{
    enum ftrace_status status =
        page.len < pages->page_size
            ? page_view_open_cut(v, &t->page_format, page.p, page.len, t->file.big)
            : (t->file.big ? page_view_open_swapped : page_view_open)(v, &t->page_format, page.p, page.len);
    return status == FTRACE_STATUS_OK;
}

/* The earliest time in the data, so far as page headers tell. */
static int64_t first_time(struct trace_dat *t)
{
    uint64_t first = UINT64_MAX, total = 0;
    for (size_t i = 0; i < t->file.buffers.n; i++) {
        const struct dat_buffer *b = &t->file.buffers.p[i];
        for (size_t k = 0; k < b->cpus.n; k++) {
            struct dat_pages pages;
            struct slice page;
            struct page_view view;
            dat_pages_open(&pages, &t->file, b, &b->cpus.p[k], &total);
            dat_clock_cpu(&t->clock, b->cpus.p[k].cpu);
            bool there = b->page_size >= t->page_format.data_offset && dat_pages_next(&pages, &page);
            if (there && open_page(t, &pages, page, &view)) {
                uint64_t time = dat_clock_time(&t->clock, view.timestamp);
                first = time < first ? time : first;
            }
            dat_pages_close(&pages);
        }
    }
    return first > INT64_MAX ? 0 : (int64_t)first;
}

/* Decides which clock the events are in, and relates it to those of other files. */
static void set_clock(struct trace_dat *t)
{
    struct importer *im = t->im;
    struct trace_dat_files *files = im->trace_dat;
    struct clock_id own = own_clock(t);
    if (t->clock.peer) { /* a guest: its times become the host's */
        struct clock_id raw = {.id = CLOCK_ID_TRACE_FILE, .file = im->input.serial};
        struct dat_named_clock host = dat_files_clock(files, (struct dat_named_clock){t->clock.peer, raw, 0});
        t->trace_clock = host.clock;
        t->clock.host_offset_ns = host.offset_ns;
    } else {
        int64_t offset = t->file.offset_ns;
        struct dat_named_clock named = {t->file.trace_id, own, offset};
        if (t->file.has_trace_id)
            named = dat_files_clock(files, named);
        t->trace_clock = own;
        if (memcmp(&named.clock, &own, sizeof own) != 0) /* its guests were read before */
            relate(t, own, offset > 0 ? offset : 0, named.clock, offset < 0 ? saturating_sub(0, offset) : 0);
    }
    if (clock_graph_set_trace_clock(im->clocks, t->trace_clock) == 0) {
        struct clock_id now = clock_graph_trace_clock(im->clocks);
        if (memcmp(&now, &t->trace_clock, sizeof now) == 0)
            metadata_int(im, NULL, METADATA_trace_time_clock_id, now.id);
    }
    if (t->file.has_date && !t->clock.peer) {
        struct clock_id wall = {.id = CLOCK_ID_REALTIME, .machine = t->m->id, .file = im->input.clock_file};
        int64_t first = first_time(t), at_wall;
        if (__builtin_add_overflow(first, t->file.date_ns, &at_wall))
            return;
        if (files->has_wall && memcmp(&wall, &files->wall, sizeof wall) != 0)
            relate(t, wall, at_wall, files->wall, at_wall); /* machines without a better relation */
        else
            files->wall = wall;
        files->has_wall = true;
        relate(t, t->trace_clock, first, wall, at_wall);
    }
    im->input.ftrace_clock = t->trace_clock;
    im->input.has_ftrace_clock = true;
}

/* SystemInfo, as the probes would have written it. */
static void write_system_info(struct trace_dat *t)
{
    static const struct {
        unsigned word, field;
    } words[] = {{0, UTSNAME_SYSNAME}, {2, UTSNAME_RELEASE}, {3, UTSNAME_MACHINE}};
    struct pb_writer w = {0};
    char text[512];
    size_t n = t->file.uname.len < sizeof text - 1 ? t->file.uname.len : sizeof text - 1;
    memcpy(text, t->file.uname.p ? t->file.uname.p : (const uint8_t *)"", n);
    text[n] = 0;
    size_t info = pb_begin(&w, TRACE_PACKET_SYSTEM_INFO), names = pb_begin(&w, SYSTEM_INFO_UTSNAME);
    unsigned at = 0, next = 0;
    for (char *save = NULL, *word = strtok_r(text, " ", &save); word && next < sizeof words / sizeof *words;
         word = strtok_r(NULL, " ", &save), at++)
        if (words[next].word == at)
            pb_put_text(&w, words[next++].field, slice_str(word));
    pb_end(&w, names);
    if (t->file.n_cpus)
        pb_put_varint(&w, SYSTEM_INFO_NUM_CPUS, t->file.n_cpus);
    pb_end(&w, info);
    struct slice packet = pb_written(&w);
    if (w.failed)
        t->im->failed = true;
    else if (at)
        write_packet(t, &packet, 1);
    pb_writer_free(&w);
}

/* Lines of "PID COMM": names as the kernel had them when it was asked. */
static void name_threads(struct trace_dat *t)
{
    struct slice rest = t->file.cmdlines;
    while (rest.len) {
        const uint8_t *nl = memchr(rest.p, '\n', rest.len);
        size_t len = nl ? (size_t)(nl - rest.p) : rest.len, i = 0;
        int64_t tid = 0;
        for (; i < len && i < 10 && rest.p[i] >= '0' && rest.p[i] <= '9'; i++)
            tid = tid * 10 + (rest.p[i] - '0');
        struct slice comm = slice_of(rest.p + i + 1, len > i ? len - i - 1 : 0);
        if (i && i < len && rest.p[i] == ' ' && tid && tid <= INT32_MAX && !slice_eq_str(comm, "<...>"))
            process_tracker_thread_name(t->m->processes, process_tracker_thread(t->m->processes, tid),
                                        import_slice(t->im, comm), THREAD_NAME_OTHER);
        rest = slice_of(rest.p + len + (nl != NULL), rest.len - len - (nl != NULL));
    }
}

static void write_metadata(struct trace_dat *t)
{
    static const char *const compressions[] = {"none", "zlib", "zstd"};
    struct importer *im = t->im;
    const struct dat_file *f = &t->file;
    metadata_dynamic(im, NULL, import_str(im, "trace_dat_version"), f->version, 0);
    metadata_dynamic(im, NULL, import_str(im, "trace_dat_clock"), COL_NULL, import_slice(im, dat_file_clock(f)));
    metadata_dynamic(im, NULL, import_str(im, "trace_dat_compression"), COL_NULL,
                     import_str(im, compressions[f->compression]));
    if (f->writer.len)
        metadata_dynamic(im, NULL, import_str(im, "trace_dat_writer"), COL_NULL, import_slice(im, f->writer));
    for (size_t i = 0; i < f->hooks.n; i++) {
        strid name =
            i ? strpool_printf(&im->st->strings, "trace_dat_hook_%zu", i + 1) : import_str(im, "trace_dat_hook");
        metadata_dynamic(im, NULL, name, COL_NULL, import_slice(im, f->hooks.p[i]));
    }
}

static bool prepare(struct trace_dat *t, struct error *err)
{
    struct packet_sink sink = {.write = write_packet, .ctx = t};
    (void)kernel_symbols_parse(&t->kernel, t->file.kallsyms, NULL);
    (void)printk_formats_parse(&t->printk, t->file.printk, NULL);
    t->symbols.kernel = &t->kernel;
    t->events = dat_events_open(&t->file, &t->im->trace_dat->next_dynamic_id);
    t->chosen = mem_zalloc(DAT_EVENT_IDS * sizeof *t->chosen);
    t->foreign = mem_zalloc(sizeof *t->foreign);
    t->bundle = ftrace_bundle_create(&sink, &t->printk, &t->symbols, NULL);
    if (!t->events || !t->chosen || !t->foreign || !t->bundle) {
        error_set(err, -MRD_ENOMEM, "out of memory for trace.dat");
        return false;
    }
    t->foreign->swap = t->file.big;
    t->foreign->by_id = t->events->swaps;
    t->foreign->time = dat_clock_time;
    t->foreign->ctx = &t->clock;
    return true;
}

/* Events that do not fit their formats, and with `pages` entries that cannot be, which end their page. Padding without
 * a length ends one as it should. */
static uint64_t errors_so_far(const struct trace_dat *t, bool pages)
{
    const uint64_t *errors = ftrace_bundle_counts(t->bundle)->errors;
    uint64_t n = errors[FTRACE_STATUS_INVALID_EVENT];
    for (int status = FTRACE_STATUS_OK; pages && status < FTRACE_STATUS_SHORT_COMPACT_EVENT; status++)
        n += status != FTRACE_STATUS_ABI_NULL_PADDING ? errors[status] : 0;
    return n;
}

static void read_cpu(struct trace_dat *t, const struct dat_buffer *b, const struct dat_cpu *cpu, bool count)
{
    struct stats *stats = &t->im->st->stats;
    const struct program_table programs = {t->chosen, DAT_EVENT_IDS};
    struct dat_pages pages;
    struct slice page;
    struct page_view view;
    uint64_t previous_end = 0;
    bool any = false;
    int64_t holes = 0; /* pages of zeros beside others: the file was not all written */
    dat_pages_open(&pages, &t->file, b, cpu, &t->total);
    dat_clock_cpu(&t->clock, cpu->cpu);
    ftrace_bundle_begin(t->bundle, cpu->cpu, &previous_end);
    while (!t->im->failed && dat_pages_next(&pages, &page)) {
        bool whole = page.len == pages.page_size;
        if (!open_page(t, &pages, page, &view)) {
            stats_add_idx(stats, t->m->id, STAT_trace_dat_bad_page, (int32_t)cpu->cpu, count && whole);
            continue;
        }
        holes += count && whole && !view.timestamp && !view.end;
        any |= view.timestamp != 0;
        if (view.lost && count) {
            ftrace_bundle_lost(t->bundle);
            uint64_t lost = view.lost_count < INT32_MAX ? view.lost_count : INT32_MAX;
            stats_add_idx(stats, t->m->id, STAT_trace_dat_lost_events, (int32_t)cpu->cpu, (int64_t)lost);
        }
        uint64_t before = errors_so_far(t, whole && count);
        uint64_t n = page_view_parse_foreign(&view, &programs, t->bundle, t->foreign);
        t->read += count ? n : 0;
        uint64_t bad = errors_so_far(t, whole && count) - before;
        if (bad)
            stats_add_idx(stats, t->m->id, STAT_trace_dat_bad_page, (int32_t)cpu->cpu, (int64_t)bad);
    }
    ftrace_bundle_end(t->bundle);
    if (any && holes)
        stats_add_idx(stats, t->m->id, STAT_trace_dat_bad_page, (int32_t)cpu->cpu, holes);
    if (pages.truncated && count)
        stat(t, STAT_trace_dat_truncated, 1);
    if (pages.failed)
        t->im->failed = true;
    dat_pages_close(&pages);
}

static void read_buffer(struct trace_dat *t, const struct dat_buffer *b, bool count)
{
    if (!b->page_size || b->page_size > DAT_MAX_PAGE || b->page_size < t->page_format.data_offset) {
        stat(t, STAT_trace_dat_bad_section, count);
        return;
    }
    ftrace_bundle_set_address_shift(t->bundle, dat_boot_shift(&t->file, b->name));
    for (size_t i = 0; i < b->cpus.n && !t->im->failed; i++) {
        if (b->cpus.p[i].cpu < DAT_MAX_CPUS)
            read_cpu(t, b, &b->cpus.p[i], count);
        else
            stat(t, STAT_trace_dat_bad_section, count);
    }
}

/* Which events the top buffer has: an instance's of the same kind are rows of ftrace_event and nothing else, or a
 * switch that is in both would be two slices. */
struct kinds {
    uint64_t n; /* events of all buffers */
    uint8_t seen[DAT_EVENT_IDS];
};

static void note_kind(void *ctx, const struct event_program *program)
{
    ((struct kinds *)ctx)->seen[program->kernel_id] = 1;
    ((struct kinds *)ctx)->n++;
}

static void count_known(void *ctx, const struct event_program *program)
{
    (void)program;
    ((struct kinds *)ctx)->n++;
}

static void choose(struct trace_dat *t, const struct kinds *kinds, bool of_top)
{
    t->total = 0;
    for (size_t id = 0; id < DAT_EVENT_IDS; id++)
        t->chosen[id] = kinds && kinds->seen[id] != of_top ? NULL : t->events->programs[id];
}

static int read_buffers(struct trace_dat *t)
{
    struct kinds *kinds = mem_zalloc(sizeof *kinds);
    if (!kinds)
        return -MRD_ENOMEM;
    choose(t, NULL, true);
    t->foreign->seen = note_kind;
    t->foreign->seen_ctx = kinds;
    for (size_t i = 0; i < t->file.buffers.n; i++)
        if (!t->file.buffers.p[i].name.len)
            read_buffer(t, &t->file.buffers.p[i], true);
    t->foreign->seen = count_known;
    for (int rows_only = 0; rows_only < 2; rows_only++) {
        choose(t, kinds, rows_only);
        t->im->input.ftrace_rows_only = rows_only;
        uint64_t before = ftrace_bundle_counts(t->bundle)->events;
        for (size_t i = 0; i < t->file.buffers.n; i++)
            if (t->file.buffers.p[i].name.len)
                read_buffer(t, &t->file.buffers.p[i], !rows_only);
        if (rows_only)
            stat(t, STAT_trace_dat_instance_events_unparsed, ftrace_bundle_counts(t->bundle)->events - before);
    }
    t->im->input.ftrace_rows_only = false;
    stat(t, STAT_trace_dat_unknown_event, t->read - kinds->n);
    mem_free(kinds);
    return 0;
}

static void note_errors(struct trace_dat *t)
{
    stat(t, STAT_trace_dat_bad_section, t->file.bad_sections + t->bad_shift);
    stat(t, STAT_trace_dat_truncated, t->file.truncated);
    stat(t, STAT_trace_dat_guest_scaling, t->clock.scales);
    stat(t, STAT_trace_dat_clock_without_time, !is_time(&t->file));
    stat(t, STAT_trace_dat_latency_text, t->file.latency_text);
}

static int write_file(void *self, struct slice bytes, struct error *err)
{
    struct trace_dat *t = self;
    int rc = dat_file_open(&t->file, bytes, err);
    if (rc)
        return rc;
    t->m = dat_files_machine(t->im->trace_dat, t->im, &t->file);
    if (!t->m || dat_clock_open(&t->clock, &t->file, &t->bad_shift) ||
        dat_files_add(t->im->trace_dat, t->im, &t->file, t->m))
        return error_set(err, -MRD_ENOMEM, "out of memory for trace.dat");
    note_errors(t);
    write_metadata(t);
    write_system_info(t);
    name_threads(t);
    dat_stats_import(t->m, &t->file);
    if (!t->file.buffers.n)
        return t->file.latency_text || t->file.truncated
                   ? 0
                   : error_set(err, -MRD_EFORMAT, "trace.dat has no buffer of events");
    if (page_format_parse(&t->page_format, t->file.header_page, NULL)) {
        if (t->file.truncated)
            return 0; /* told by the stat */
        return error_set(err, -MRD_EFORMAT, "trace.dat does not describe its pages (header_page)");
    }
    if (has_old_pages(&t->file))
        return error_set(err, -MRD_EUNSUPPORTED,
                         "trace.dat of an old kernel, whose events begin without type_len, cannot be read");
    set_clock(t);
    dat_maps_import(t->m, &t->file, t->trace_clock, first_time(t));
    if (!prepare(t, err))
        return -MRD_ENOMEM;
    return read_buffers(t) ? error_set(err, -MRD_ENOMEM, "out of memory for trace.dat") : 0;
}

const struct format_reader trace_dat_reader = {
    .format = FORMAT_TRACE_DAT,
    .fixed_clock = true,
    .whole = true,
    .open = open_reader,
    .write = write_file,
    .close = close_reader,
};
