/* Method traces of Android's runtime, version 1: written at once, or streamed. */
#include "importer/text/art_method.h"

#include "importer/lines/line_reader.h"
#include "importer/sort/sorter.h"
#include "importer/text/text_file.h"
#include "importer/text/text_formats.h"
#include "importer/track/process_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_tracker.h"

enum {
    NS_PER_US = 1000,
    STREAMING = 0xf0, /* or'ed to the version */
    ACTION_ENTER = 0,
    ACTION_BITS = 3,
    OP_METHOD = 1, /* of a streamed trace, behind tid 0 */
    OP_THREAD = 2,
    OP_SUMMARY = 3,
};

/* a: method and action; b: tid. */
static void parse_records(void *owner, const struct sort_event *events, size_t n)
{
    struct art *a = owner;
    for (size_t i = 0; i < n; i++) {
        uint32_t tid = (uint32_t)events[i].b;
        uint64_t what = events[i].a;
        uint32_t utid = process_tracker_thread(a->m->processes, tid);
        uint32_t track = track_intern_int(a->im->tracks, a->m->id, "art_method_tracing", TRACK_SLICE, "utid", utid, 0);
        if ((what & ACTION_BITS) != ACTION_ENTER) {
            slice_end(a->im->slices, a->m->id, events[i].ts, track, 0, 0, NULL);
            continue;
        }
        const uint64_t *at = u64map_get(&a->by_id, what);
        struct art_method unknown = {0};
        const struct art_method *m = at ? &a->methods.p[*at] : &unknown;
        slice_begin(a->im->slices, a->m->id, events[i].ts, track, 0, m->name, m->args);
    }
}

struct slice art_field(struct slice *line)
{
    const uint8_t *tab = line->len ? memchr(line->p, '\t', line->len) : NULL;
    struct slice field = slice_to(*line, tab ? (size_t)(tab - line->p) : line->len);
    *line = slice_from(*line, tab ? field.len + 1 : field.len);
    return field;
}

bool art_read_method(struct art *a, uint64_t id, struct slice line)
{
    struct slice class = art_field(&line), name = art_field(&line);
    struct slice signature = art_field(&line), file = art_field(&line);
    int64_t number;
    bool has_line = number_decimal(trim_space(art_field(&line)), &number);
    struct strpool *strings = &a->im->st->strings;
    struct arg_list list = {0};
    if (class.len > 65536 || name.len > 65536 || signature.len > 65536)
        return false;
    const uint8_t *slash = has_line && class.len ? memrchr(class.p, '/', class.len) : NULL;
    int dir = slash ? (int)(slash + 1 - class.p) : 0;
    file = trim_space(file);
    if (file.len && file.len < 65536)
        arg_list_str(
            &a->im->st->args, &list, "pathname",
            strpool_printf(strings, "%.*s%.*s", dir, (const char *)class.p, (int)file.len, (const char *)file.p));
    if (has_line)
        arg_list_int(&a->im->st->args, &list, "line_number", number);
    struct art_method m = {strpool_printf(strings, "%.*s.%.*s: %.*s", (int)class.len, (const char *)class.p,
                                          (int)name.len, (const char *)name.p, (int)signature.len,
                                          (const char *)signature.p),
                           args_intern(&a->im->st->args, list.p, list.n)};
    arg_list_free(&list);
    uint64_t *slot = u64map_put(&a->by_id, id, NULL);
    if (!slot || !vec_push(&a->methods, m))
        a->im->failed = true;
    else
        *slot = a->methods.n - 1;
    return true;
}

/* ID, then what art_read_method() reads. */
static void read_method(struct art *a, struct slice line)
{
    uint64_t id;
    if (number_hex(art_field(&line), &id))
        art_read_method(a, id, line);
}

void art_name_thread(struct art *a, int64_t tid, struct slice name)
{
    uint32_t utid = process_tracker_thread(a->m->processes, tid);
    process_tracker_thread_name(a->m->processes, utid, import_slice(a->im, name), THREAD_NAME_OTHER);
}

/* The text in front of the records. Returns where they begin, 0 for a text without end. */
static size_t read_text(struct art *a, struct slice file, struct error *err)
{
    struct slice rest = file, line, section = slice_of("", 0);
    while (line_next(&rest, &line, NULL)) {
        if (slice_eq_str(line, "*end"))
            return (size_t)(rest.p - file.p);
        if (line.len && line.p[0] == '*') {
            section = line;
        } else if (slice_eq_str(section, "*version") && slice_starts(line, "clock=")) {
            a->dual = slice_eq_str(line, "clock=dual");
            if (!a->dual && !slice_eq_str(line, "clock=wall")) {
                error_set(err, -MRD_EUNSUPPORTED, ART_CLOCK_TEXT);
                return 0;
            }
        } else if (slice_eq_str(section, "*threads")) {
            int64_t tid;
            if (number_decimal(art_field(&line), &tid))
                art_name_thread(a, tid, line);
        } else if (slice_eq_str(section, "*methods")) {
            read_method(a, line);
        }
    }
    error_set(err, -MRD_EFORMAT, "ART method trace: the text in front of the records has no end");
    return 0;
}

uint64_t art_little(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    while (n--)
        v = v << 8 | p[n];
    return v;
}

/* One part of a streamed trace that is no record. Its length, 0 when it is cut off. */
static size_t read_op(struct art *a, struct slice s)
{
    if (!s.len || s.p[0] < OP_METHOD || s.p[0] > OP_SUMMARY)
        return 0;
    size_t head = s.p[0] == OP_METHOD ? 3 : 5;
    if (s.len < head)
        return 0;
    size_t len = s.p[0] == OP_METHOD   ? art_little(s.p + 1, 2)
                 : s.p[0] == OP_THREAD ? art_little(s.p + 3, 2)
                                       : art_little(s.p + 1, 4);
    if (len > s.len - head)
        return 0;
    struct slice text = slice_of(s.p + head, len);
    if (s.p[0] == OP_METHOD)
        read_method(a, text);
    else if (s.p[0] == OP_THREAD)
        art_name_thread(a, (int64_t)art_little(s.p + 1, 2), text);
    return head + len;
}

/* What ends a streamed trace is all that says of which clock its times are. */
static int check_summary(struct slice text, struct error *err)
{
    static const char cpu[] = "\nclock=thread-cpu\n";
    return memmem(text.p, text.len, cpu, sizeof cpu - 1) ? error_set(err, -MRD_EUNSUPPORTED, ART_CLOCK_TEXT) : 0;
}

int art_cut_off(struct error *err)
{
    return error_set(err, -MRD_EFORMAT,
                     "ART method trace: the file was cut off: what came before is there (ERR:tp-corrupt)");
}

static int read_records(struct art *a, struct slice s, struct error *err)
{
    enum { HEAD = 18, VERSION_AT = 4, OFFSET_AT = 6, START_AT = 8, SIZE_AT = 16 };
    if (s.len < HEAD || !slice_starts(s, "SLOW"))
        return art_cut_off(err);
    unsigned version = (unsigned)art_little(s.p + VERSION_AT, 2), tid_bytes = 2, size;
    bool streaming = (version & STREAMING) == STREAMING;
    version &= 0xf;
    if (version < 1 || version > 3)
        return error_set(err, -MRD_EUNSUPPORTED, "ART method trace: version %u is not known", version);
    uint64_t offset = art_little(s.p + OFFSET_AT, 2), start = art_little(s.p + START_AT, 8);
    tid_bytes = version == 1 ? 1 : 2;
    if (streaming) /* nothing else tells */
        a->dual = version == 3;
    size = tid_bytes + 4 + (a->dual ? 8 : 4);
    if (version == 3) {
        size = (unsigned)art_little(s.p + SIZE_AT, 2);
        a->dual = size >= 14;
    }
    if (offset > s.len || size < tid_bytes + 8 || start > INT64_MAX / NS_PER_US - UINT32_MAX)
        return art_cut_off(err);
    for (size_t at = offset; at < s.len;) {
        if (streaming && s.len - at > tid_bytes && art_little(s.p + at, tid_bytes) == 0) {
            size_t n = read_op(a, slice_from(s, at + tid_bytes));
            if (!n)
                return art_cut_off(err);
            if (s.p[at + tid_bytes] == OP_SUMMARY)
                return check_summary(slice_of(s.p + at + tid_bytes, n), err);
            at += tid_bytes + n;
            continue;
        }
        if (s.len - at < size)
            return art_cut_off(err);
        const uint8_t *p = s.p + at;
        uint64_t wall = art_little(p + tid_bytes + (a->dual ? 8 : 4), 4);
        art_push(a, (int64_t)((start + wall) * NS_PER_US), (uint32_t)art_little(p, tid_bytes),
                 art_little(p + tid_bytes, 4));
        at += size;
    }
    return 0;
}

void art_push(struct art *a, int64_t ns, uint32_t tid, uint64_t method)
{
    int64_t ts;
    if (file_clock_to_trace_time(&a->clock, ns, -1, &ts))
        sorter_push(a->im->sorter, a->queue, (struct sort_event){.ts = ts, .a = method, .b = tid});
}

void *art_open(struct importer *im)
{
    struct art *a = mem_zalloc(sizeof *a);
    if (!a)
        return NULL;
    *a = (struct art){.im = im, .m = text_machine(im)};
    a->queue = sorter_add_queue(im->sorter, parse_records, a);
    file_clock_open(&a->clock, im, CLOCK_ID_MONOTONIC);
    return a;
}

static int write_file(void *self, struct slice file, struct error *err)
{
    struct art *a = self;
    size_t records = 0;
    if (file.len && file.p[0] == '*' && !(records = read_text(a, file, err)))
        return -MRD_EFORMAT;
    int rc = read_records(a, slice_from(file, records), err);
    return a->im->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : rc;
}

void art_close(void *self)
{
    struct art *a = self;
    vec_free(&a->methods);
    u64map_free(&a->by_id);
    mem_free(a);
}

const struct format_reader art_method_format_reader = {
    .format = FORMAT_ART_METHOD, .whole = true, .open = art_open, .write = write_file, .close = art_close};
