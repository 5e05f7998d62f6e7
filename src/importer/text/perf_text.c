/* Output of perf script: samples with call stacks. */
#include "importer/text/text_formats.h"

#include "importer/clock/file_clock.h"
#include "importer/lines/line_reader.h"
#include "importer/lines/perf_line.h"
#include "importer/profiling/profile_file.h"
#include "importer/sort/sorter.h"
#include "importer/text/text_file.h"
#include "importer/track/process_tracker.h"

struct text_sample {
    int64_t pid, tid;
    bool has_pid;
    strid comm;
    uint32_t callsite;
};

struct perf_text {
    struct importer *im;
    struct machine_ctx *m;
    struct file_clock clock;
    struct line_reader lines;
    uint32_t queue;
    bool in_sample;
    struct text_sample now;
    int64_t ts;
    VEC(uint32_t)
    frames; /* of the sample at hand, the leaf first */
    VEC(struct text_sample)
    samples;
};

static uint32_t thread_of(struct perf_text *p, const struct text_sample *s)
{
    struct process_tracker *t = p->m->processes;
    if (s->has_pid) {
        process_tracker_process(t, s->pid);
        return process_tracker_update_thread(t, s->tid, s->pid);
    }
    return process_tracker_thread(t, s->tid);
}

static void parse_samples(void *owner, const struct sort_event *events, size_t n)
{
    struct perf_text *p = owner;
    if (!p->im->idle_files) /* nothing is idle in such a file alone */
        process_tracker_without_idle(p->m->processes);
    for (size_t i = 0; i < n; i++) {
        const struct text_sample *s = &p->samples.p[events[i].a];
        uint32_t utid = thread_of(p, s);
        if (s->comm)
            process_tracker_thread_name(p->m->processes, utid, s->comm, THREAD_NAME_OTHER);
        if (s->comm && s->has_pid && s->pid == s->tid)
            process_tracker_main_thread_name(p->m->processes, utid, s->comm);
        uint32_t upid = s->has_pid ? process_tracker_thread_process(p->m->processes, utid) : UPID_NONE;
        profile_file_sample(p->m, events[i].ts, "perf_text", utid, upid, COL_NULL, s->callsite);
    }
}

static void end_sample(struct perf_text *p)
{
    p->in_sample = false;
    if (!p->frames.n) {
        stats_add(&p->im->st->stats, p->m->id, STAT_perf_text_importer_sample_no_frames, 1);
        return;
    }
    p->now.callsite = CALLSITE_NONE;
    for (size_t i = p->frames.n; i-- > 0;)
        p->now.callsite = stack_profile_callsite_from(p->m, p->now.callsite, p->frames.p[i], 1);
    vec_clear(&p->frames);
    int64_t ts;
    if (!file_clock_to_trace_time(&p->clock, p->ts, p->lines.at, &ts))
        return;
    if (vec_push(&p->samples, p->now))
        sorter_push(p->im->sorter, p->queue, (struct sort_event){.ts = ts, .a = p->samples.n - 1});
    else
        p->im->failed = true;
}

static strid join(struct perf_text *p, const struct perf_sample_line *l)
{
    char text[512];
    size_t n = 0;
    for (size_t i = 0; i < l->n_comm; i++) {
        size_t len = l->comm[i].len;
        if (n + len + 1 > sizeof text)
            break;
        if (i)
            text[n++] = ' ';
        memcpy(text + n, l->comm[i].p, len);
        n += len;
    }
    return n ? strpool_intern(&p->im->st->strings, text, n) : 0;
}

static void begin_sample(struct perf_text *p, const struct perf_sample_line *l)
{
    p->in_sample = true;
    p->ts = l->ts;
    p->now = (struct text_sample){
        .pid = (uint32_t)l->pid, .tid = (uint32_t)l->tid, .has_pid = l->has_pid, .comm = join(p, l)};
}

static bool each_line(void *ctx, struct slice line, int64_t end, bool in_place)
{
    struct perf_text *p = ctx;
    struct perf_sample_line sample;
    struct perf_frame_line frame;
    (void)in_place;
    if (!trim_blanks(line).len) {
        if (p->in_sample)
            end_sample(p);
        return true;
    }
    if (p->in_sample && perf_frame_line_parse(line, &frame)) {
        uint32_t mapping = profile_file_mapping(p->m, import_slice(p->im, frame.mapping));
        uint32_t row = profile_file_frame(p->m, mapping, import_slice(p->im, frame.symbol), 0);
        if (!vec_push(&p->frames, row))
            p->im->failed = true;
        return true;
    }
    if (perf_sample_line_parse(line, &sample)) {
        if (p->in_sample) /* without call stacks samples follow each other */
            end_sample(p);
        begin_sample(p, &sample);
    } else if (line.p[0] != '#') {
        import_log(p->m, STAT_perf_text_parse_failure, COL_NULL, end, ARGSET_NONE);
    }
    return true;
}

static void *open_file(struct importer *im)
{
    struct perf_text *p = mem_zalloc(sizeof *p);
    if (!p)
        return NULL;
    *p = (struct perf_text){.im = im, .m = text_machine(im), .lines = {.each = each_line}};
    p->lines.ctx = p;
    p->queue = sorter_add_queue(im->sorter, parse_samples, p);
    file_clock_open(&p->clock, im, CLOCK_ID_MONOTONIC);
    return p;
}

static int write_file(void *self, struct slice bytes, struct error *err)
{
    struct perf_text *p = self;
    if (!line_reader_feed(&p->lines, bytes) || p->im->failed)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return 0;
}

/* A sample that no empty line ends may lack frames. */
static int end_file(void *self, struct error *err)
{
    struct perf_text *p = self;
    (void)err;
    text_read_end(p->im, &p->lines);
    return 0;
}

static void close_file(void *self)
{
    struct perf_text *p = self;
    line_reader_free(&p->lines);
    vec_free(&p->frames);
    vec_free(&p->samples);
    mem_free(p);
}

const struct format_reader perf_text_format_reader = {
    .format = FORMAT_PERF_TEXT, .open = open_file, .write = write_file, .end = end_file, .close = close_file};
