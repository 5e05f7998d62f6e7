/* Protobuf profiles of simpleperf report-sample. */
#include "importer/text/text_formats.h"

#include "importer/clock/file_clock.h"
#include "importer/profiling/profile_file.h"
#include "importer/sort/sorter.h"
#include "importer/text/text_file.h"
#include "importer/track/process_tracker.h"
#include "wire/fields.h"

struct profile_file {
    uint32_t mapping;
    VEC(strid)
    symbols;
};

struct queued {
    bool is_thread;
    uint32_t tid, pid;
    strid name;
    uint32_t callsite;
};

struct simpleperf {
    struct importer *im;
    struct machine_ctx *m;
    struct file_clock clock;
    uint32_t queue;
    int64_t last; /* time of the latest sample */
    struct u64map by_id;
    VEC(struct profile_file)
    files;
    VEC(struct queued)
    queued;
    VEC(uint32_t)
    frames;
};

static void parse_events(void *owner, const struct sort_event *events, size_t n)
{
    struct simpleperf *s = owner;
    struct process_tracker *t = s->m->processes;
    for (size_t i = 0; i < n; i++) {
        const struct queued *q = &s->queued.p[events[i].a];
        if (!q->is_thread) {
            uint32_t utid = process_tracker_thread(t, q->tid);
            if (q->callsite != CALLSITE_NONE)
                profile_file_sample(s->m, events[i].ts, "simpleperf", utid, UPID_NONE, COL_NULL, q->callsite);
            continue;
        }
        process_tracker_process(t, q->pid);
        uint32_t utid = process_tracker_update_thread(t, q->tid, q->pid);
        process_tracker_thread_name(t, utid, q->name, THREAD_NAME_OTHER);
    }
}

static void push(struct simpleperf *s, int64_t ts, struct queued q)
{
    int64_t at;
    if (!file_clock_to_trace_time(&s->clock, ts, -1, &at))
        return;
    if (vec_push(&s->queued, q))
        sorter_push(s->im->sorter, s->queue, (struct sort_event){.ts = at, .a = s->queued.n - 1});
    else
        s->im->failed = true;
}

static void read_file(struct simpleperf *s, struct slice message)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    struct profile_file file = {0};
    uint32_t id = 0;
    struct slice path = slice_of("", 0);
    while (pb_next(&c, &f)) {
        if (f.id == SIMPLEPERF_FILE_ID)
            id = pb_u32(&f);
        else if (f.id == SIMPLEPERF_FILE_PATH)
            path = pb_bytes(&f);
        else if (f.id == SIMPLEPERF_FILE_SYMBOL && !vec_push(&file.symbols, import_slice(s->im, pb_bytes(&f))))
            s->im->failed = true;
    }
    file.mapping = profile_file_mapping(s->m, import_slice(s->im, path));
    uint64_t *slot = u64map_put(&s->by_id, id, NULL);
    if (slot && vec_push(&s->files, file)) {
        *slot = s->files.n;
        return;
    }
    vec_free(&file.symbols);
    s->im->failed = true;
}

static void read_thread(struct simpleperf *s, struct slice message)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    struct queued q = {.is_thread = true};
    while (pb_next(&c, &f)) {
        if (f.id == SIMPLEPERF_THREAD_THREAD_ID)
            q.tid = pb_u32(&f);
        else if (f.id == SIMPLEPERF_THREAD_PROCESS_ID)
            q.pid = pb_u32(&f);
        else if (f.id == SIMPLEPERF_THREAD_THREAD_NAME)
            q.name = import_slice(s->im, pb_bytes(&f));
    }
    if (q.tid && q.pid)
        push(s, s->last, q);
}

/* The frame of an entry of a call chain; false when its file is not known. */
static bool read_entry(struct simpleperf *s, struct slice message, uint32_t *frame)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    uint64_t address = 0;
    uint32_t file_id = 0;
    int32_t symbol = 0;
    while (pb_next(&c, &f)) {
        if (f.id == SIMPLEPERF_SAMPLE_CALL_CHAIN_ENTRY_VADDR_IN_FILE)
            address = pb_u64(&f);
        else if (f.id == SIMPLEPERF_SAMPLE_CALL_CHAIN_ENTRY_FILE_ID)
            file_id = pb_u32(&f);
        else if (f.id == SIMPLEPERF_SAMPLE_CALL_CHAIN_ENTRY_SYMBOL_ID)
            symbol = pb_i32(&f);
    }
    const uint64_t *at = u64map_get(&s->by_id, file_id);
    if (!at)
        return false;
    const struct profile_file *file = &s->files.p[*at - 1];
    bool named = symbol >= 0 && (size_t)symbol < file->symbols.n;
    *frame = stack_profile_frame(s->m,
                                 &(struct stack_profile_frame_row){.name = named ? file->symbols.p[symbol] : 0,
                                                                   .mapping = file->mapping,
                                                                   .rel_pc = (int64_t)address,
                                                                   .symbol_set_id = COL_NULL},
                                 NULL);
    return true;
}

static void read_sample(struct simpleperf *s, struct slice message)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    struct queued q = {.callsite = CALLSITE_NONE};
    bool known = true;
    vec_clear(&s->frames);
    while (pb_next(&c, &f)) {
        uint32_t frame;
        if (f.id == SIMPLEPERF_SAMPLE_TIME)
            s->last = pb_i64(&f);
        else if (f.id == SIMPLEPERF_SAMPLE_THREAD_ID)
            q.tid = pb_u32(&f);
        else if (f.id == SIMPLEPERF_SAMPLE_CALLCHAIN) {
            if (!read_entry(s, pb_bytes(&f), &frame))
                known = false;
            else if (!vec_push(&s->frames, frame))
                s->im->failed = true;
        }
    }
    if (!known)
        stats_add(&s->im->st->stats, s->m->id, STAT_simpleperf_missing_file_mapping, 1);
    for (size_t i = known ? s->frames.n : 0; i-- > 0;)
        q.callsite = stack_profile_callsite(s->m, q.callsite, s->frames.p[i]);
    push(s, s->last, q); /* the thread is told, though its stack may not be known */
}

static void *open_file(struct importer *im)
{
    struct simpleperf *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (struct simpleperf){.im = im, .m = text_machine(im)};
    s->queue = sorter_add_queue(im->sorter, parse_events, s);
    file_clock_open(&s->clock, im, CLOCK_ID_MONOTONIC);
    return s;
}

static void read_record(struct simpleperf *s, struct slice record, bool files)
{
    struct pb_cursor c = pb_cursor(record);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.wire != PB_BYTES || files != (f.id == SIMPLEPERF_RECORD_FILE))
            continue;
        if (f.id == SIMPLEPERF_RECORD_SAMPLE)
            read_sample(s, pb_bytes(&f));
        else if (f.id == SIMPLEPERF_RECORD_FILE)
            read_file(s, pb_bytes(&f));
        else if (f.id == SIMPLEPERF_RECORD_THREAD)
            read_thread(s, pb_bytes(&f));
    }
}

/* Reads the records of files, or all others. False: the end is not told. */
static bool read_records(struct simpleperf *s, struct slice records, bool files)
{
    for (size_t at = 0; records.len - at >= 4;) {
        uint32_t len;
        memcpy(&len, records.p + at, sizeof len);
        at += sizeof len;
        if (!len)
            return true;
        if (len > records.len - at)
            break;
        read_record(s, slice_of(records.p + at, len), files);
        at += len;
    }
    return false;
}

/* "SIMPLEPERF", u16 version, then records behind their u32 lengths; a length of 0 ends them. The recorder writes which
 * files its samples mean behind the samples. */
static int write_file(void *self, struct slice file, struct error *err)
{
    enum { HEAD = 12, VERSION_AT = 10, VERSION = 1 };
    struct simpleperf *s = self;
    uint16_t version = 0;
    if (file.len >= HEAD)
        memcpy(&version, file.p + VERSION_AT, sizeof version);
    if (version != VERSION)
        return error_set(err, -MRD_EUNSUPPORTED, "simpleperf: version %u of the format is not known", version);
    struct slice records = slice_of(file.p + HEAD, file.len - HEAD);
    read_records(s, records, true);
    bool whole = read_records(s, records, false);
    if (s->im->failed)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return whole ? 0
                 : error_set(err, -MRD_EFORMAT,
                             "simpleperf: the file was cut off: what came before is there (ERR:tp-corrupt)");
}

static void close_file(void *self)
{
    struct simpleperf *s = self;
    for (size_t i = 0; i < s->files.n; i++)
        vec_free(&s->files.p[i].symbols);
    vec_free(&s->files);
    vec_free(&s->queued);
    vec_free(&s->frames);
    u64map_free(&s->by_id);
    mem_free(s);
}

const struct format_reader simpleperf_format_reader = {
    .format = FORMAT_SIMPLEPERF, .whole = true, .open = open_file, .write = write_file, .close = close_file};
