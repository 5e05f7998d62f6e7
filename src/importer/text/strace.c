/* Files of strace -f -ttt: system calls as slices of their threads. */
#include "importer/text/text_formats.h"

#include "importer/clock/file_clock.h"
#include "importer/lines/line_reader.h"
#include "importer/lines/strace_line.h"
#include "importer/sort/sorter.h"
#include "importer/text/text_file.h"
#include "importer/track/process_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_tracker.h"

struct call {
    int64_t pid;
    strid name, args, ret; /* 0: none */
    int64_t dur;           /* of strace -T */
    enum strace_kind kind;
};

struct strace {
    struct importer *im;
    struct machine_ctx *m;
    struct file_clock clock;
    struct line_reader lines;
    uint32_t queue;
    strid category;
    VEC(struct call)
    calls;
};

static void add_text(struct strace *s, struct arg_list *list, const char *key, strid text)
{
    if (text)
        arg_list_str(&s->im->st->args, list, key, text);
}

static void parse_call(struct strace *s, int64_t ts, const struct call *c)
{
    struct slice_tracker *slices = s->im->slices;
    uint32_t utid = process_tracker_thread(s->m->processes, c->pid);
    uint32_t track = track_intern_int(s->im->tracks, s->m->id, "thread_execution", TRACK_SLICE, "utid", utid, 0);
    struct arg_list list = {0};
    add_text(s, &list, "args", c->args);
    add_text(s, &list, "ret", c->ret);
    argset set = args_intern(&s->im->st->args, list.p, list.n);
    switch (c->kind) {
    case STRACE_COMPLETE:
        slice_scoped(slices, s->m->id, ts, track, s->category, c->name, s->im->opt.all_text_events ? c->dur : 0, set);
        break;
    case STRACE_UNFINISHED:
        slice_begin(slices, s->m->id, ts, track, s->category, c->name, set);
        break;
    case STRACE_RESUMED:
    case STRACE_RESUMED_UNFINISHED: {
        uint32_t slice = slice_end(slices, s->m->id, ts, track, s->category, c->name, &list);
        if (slice != SLICE_NONE && c->kind == STRACE_RESUMED_UNFINISHED)
            slice_begin(slices, s->m->id, ts, track, s->category, c->name, set);
    }
    }
    arg_list_free(&list);
}

static void parse_calls(void *owner, const struct sort_event *events, size_t n)
{
    struct strace *s = owner;
    for (size_t i = 0; i < n; i++)
        parse_call(s, events[i].ts, &s->calls.p[events[i].a]);
}

/* "<0.000012>" at the end of a result: how long the call took; 0 when it does not say. */
static int64_t duration(struct slice ret)
{
    const uint8_t *open = ret.len ? memrchr(ret.p, '<', ret.len) : NULL;
    double seconds;
    if (!open || ret.p[ret.len - 1] != '>')
        return 0;
    struct slice number = slice_of(open + 1, (size_t)(ret.p + ret.len - open - 2));
    return number_real(number, &seconds) && seconds >= 0 && seconds < 1e9 ? (int64_t)(seconds * 1e9 + 0.5) : 0;
}

static strid text_or_none(struct strace *s, struct slice text)
{
    return text.len ? import_slice(s->im, text) : 0;
}

static bool each_line(void *ctx, struct slice line, int64_t end, bool in_place)
{
    struct strace *s = ctx;
    struct strace_line l;
    int64_t ts;
    (void)in_place;
    enum strace_result r = strace_line_parse(line, &l);
    if (r != STRACE_OK || !l.has_pid) {
        import_log(s->m,
                   r == STRACE_OK    ? STAT_strace_missing_pid
                   : r == STRACE_BAD ? STAT_strace_parse_failure
                                     : STAT_strace_unsupported_timestamp_format,
                   COL_NULL, end, ARGSET_NONE);
        return true;
    }
    if (!file_clock_to_trace_time(&s->clock, l.ts, end, &ts))
        return true;
    struct call c = {.pid = l.pid,
                     .name = import_slice(s->im, l.name),
                     .args = text_or_none(s, l.args),
                     .ret = text_or_none(s, l.ret),
                     .dur = duration(l.ret),
                     .kind = l.kind};
    if (!vec_push(&s->calls, c)) {
        s->im->failed = true;
        return false;
    }
    sorter_push(s->im->sorter, s->queue, (struct sort_event){.ts = ts, .a = s->calls.n - 1});
    return true;
}

static void *open_file(struct importer *im)
{
    struct strace *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (struct strace){.im = im, .m = text_machine(im), .lines = {.each = each_line}};
    s->lines.ctx = s;
    s->category = import_str(im, "strace");
    s->queue = sorter_add_queue(im->sorter, parse_calls, s);
    file_clock_open(&s->clock, im, CLOCK_ID_REALTIME);
    return s;
}

static int write_file(void *self, struct slice bytes, struct error *err)
{
    struct strace *s = self;
    if (!line_reader_feed(&s->lines, bytes) || s->im->failed)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return 0;
}

/* A last line without its line feed is not whole: it is not read. */
static int end_file(void *self, struct error *err)
{
    struct strace *s = self;
    (void)err;
    text_check_end(s->im, &s->lines);
    return 0;
}

static void close_file(void *self)
{
    struct strace *s = self;
    line_reader_free(&s->lines);
    vec_free(&s->calls);
    mem_free(s);
}

const struct format_reader strace_format_reader = {
    .format = FORMAT_STRACE, .open = open_file, .write = write_file, .end = end_file, .close = close_file};
