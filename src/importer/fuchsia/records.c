/* Records of a Fuchsia trace: tables of strings and threads, and events with their arguments. */
#include "importer/fuchsia/fuchsia_private.h"

#include "importer/lines/line_reader.h"
#include "importer/sort/sorter.h"
#include "importer/text/text_file.h"
#include "importer/track/process_tracker.h"

enum record_type {
    RECORD_METADATA,
    RECORD_INITIALIZATION,
    RECORD_STRING,
    RECORD_THREAD,
    RECORD_EVENT,
    RECORD_BLOB,
    RECORD_USERSPACE_OBJECT,
    RECORD_KERNEL_OBJECT,
    RECORD_SCHEDULING,
    RECORD_LOG,
    RECORD_LARGE = 15
};
enum { METADATA_PROVIDER_INFO = 1, METADATA_PROVIDER_SECTION = 2, METADATA_PROVIDER_EVENT = 3 };
enum { PROVIDER_BUFFER_FULL = 0 };
enum { OBJECT_PROCESS = 1, OBJECT_THREAD = 2 };
enum { SCHED_LEGACY_SWITCH, SCHED_SWITCH, SCHED_WAKEUP };
enum { NS_PER_SECOND = 1000000000 };

/* ---- tables ---- */

static struct fxt_provider *provider_of(struct fxt *f, uint32_t id)
{
    bool added = false;
    uint64_t *slot = u64map_put(&f->providers, id, &added);
    if (slot && !added)
        return f->list.p[*slot - 1];
    struct fxt_provider *p = slot ? mem_zalloc(sizeof *p) : NULL;
    if (!p || !vec_push(&f->list, p)) {
        mem_free(p);
        if (slot)
            u64map_del(&f->providers, id);
        f->im->failed = true;
        return NULL;
    }
    p->ticks_per_second = NS_PER_SECOND;
    p->index = (uint32_t)f->list.n - 1;
    *slot = f->list.n;
    return p;
}

/* Numbers of kernel objects are 64 bits wide; those beyond what a thread id may be do not come from kernels. */
static uint32_t utid_of(struct fxt *f, struct fxt_thread t)
{
    if (t.tid > INT64_MAX || t.pid > INT64_MAX)
        return UINT32_MAX;
    return t.pid ? process_tracker_update_thread(f->m->processes, (int64_t)t.tid, (int64_t)t.pid)
                 : process_tracker_thread(f->m->processes, (int64_t)t.tid);
}

/* Ticks as trace time; false when there is no such time. */
static bool time_of(struct fxt *f, uint64_t ticks, int64_t *ts)
{
    unsigned __int128 ns = (unsigned __int128)ticks * NS_PER_SECOND / f->now->ticks_per_second;
    if (ns > INT64_MAX) {
        fxt_count(f, STAT_fuchsia_timestamp_overflow);
        return false;
    }
    return file_clock_to_trace_time(&f->clock, (int64_t)ns, -1, ts);
}

static void read_metadata(struct fxt *f, uint64_t header)
{
    uint32_t id = fxt_bits(header, 20, 32);
    struct fxt_provider *p;
    switch (fxt_bits(header, 16, 4)) {
    case METADATA_PROVIDER_INFO:
    case METADATA_PROVIDER_SECTION:
        if ((p = provider_of(f, id)))
            f->now = p;
        break;
    case METADATA_PROVIDER_EVENT:
        if (fxt_bits(header, 52, 4) == PROVIDER_BUFFER_FULL)
            stats_add_idx(&f->im->st->stats, f->m->id, STAT_fuchsia_provider_buffer_full, (int32_t)(id & INT32_MAX), 1);
        break;
    default: /* what a trace is as a whole: its first record, told by its bytes */
        break;
    }
}

static void read_string(struct fxt *f, uint64_t header, struct fxt_words *w)
{
    uint32_t index = fxt_bits(header, 16, 15);
    struct slice s = fxt_next_bytes(w, fxt_bits(header, 32, 15));
    if (!w->cut && index && !u64map_set(&f->strings, fxt_key_of(f, index), import_slice(f->im, s)))
        f->im->failed = true;
}

static void read_thread(struct fxt *f, uint64_t header, struct fxt_words *w)
{
    uint32_t index = fxt_bits(header, 16, 8);
    struct fxt_thread t = {.pid = fxt_next_word(w)};
    t.tid = fxt_next_word(w);
    if (w->cut || !index)
        return;
    if (!vec_push(&f->threads, t) || !u64map_set(&f->thread_of, fxt_key_of(f, index), f->threads.n - 1))
        f->im->failed = true;
}

/* ---- events ---- */

static void push(struct fxt *f, int64_t ts, const struct fxt_event *e)
{
    if (!vec_push(&f->events, *e)) {
        f->im->failed = true;
        return;
    }
    sorter_push(f->im->sorter, f->queue, (struct sort_event){.ts = ts, .a = f->events.n - 1});
}

/* name:argument:id. Beyond this length names are cut: each event could make another
 * long text of them. */
static strid counter_name(struct fxt *f, strid name, strid arg, uint64_t id)
{
    enum { MAX_NAME = 250 };
    struct strpool *strings = &f->im->st->strings;
    struct slice first = strpool_view(strings, name), second = strpool_view(strings, arg);
    first = slice_to(first, first.len > MAX_NAME ? MAX_NAME : first.len);
    second = slice_to(second, second.len > MAX_NAME ? MAX_NAME : second.len);
    return strpool_printf(strings, "%.*s:%.*s:%llu", (int)first.len, (const char *)first.p, (int)second.len,
                          (const char *)second.p, (unsigned long long)id);
}

/* A counter has a track for each of its numbers. */
static void push_counters(struct fxt *f, int64_t ts, struct fxt_event *e, const struct fxt_values *args, uint64_t id)
{
    strid name = e->name;
    for (uint32_t i = 0; i < args->n; i++) {
        if (!fxt_number_of(&args->p[i], &e->value)) {
            fxt_count(f, STAT_fuchsia_non_numeric_counters);
            continue;
        }
        e->name = counter_name(f, name, args->p[i].name, id);
        push(f, ts, e);
    }
}

static void read_event(struct fxt *f, uint64_t header, struct fxt_words *w)
{
    struct fxt_event e = {.type = (uint8_t)fxt_bits(header, 16, 4)};
    struct fxt_thread thread;
    struct fxt_values args;
    int64_t ts;
    uint64_t ticks = fxt_next_word(w);
    bool known = fxt_thread_of(f, fxt_bits(header, 24, 8), w, &thread);
    e.category = fxt_string_of(f, fxt_bits(header, 32, 16), w);
    e.name = fxt_string_of(f, fxt_bits(header, 48, 16), w);
    fxt_read_values(f, w, fxt_bits(header, 20, 4), &args);
    uint64_t last = e.type == FXT_INSTANT || e.type == FXT_BEGIN || e.type == FXT_END ? 0 : fxt_next_word(w);
    if (w->cut || !known || e.type >= FXT_EVENT_TYPES) {
        fxt_count(f, STAT_fuchsia_invalid_event);
        return;
    }
    if (!time_of(f, ticks, &ts) || (e.type == FXT_COMPLETE && !time_of(f, last, &e.end)))
        return;
    if ((e.utid = utid_of(f, thread)) == UINT32_MAX) {
        fxt_count(f, STAT_fuchsia_invalid_event);
        return;
    }
    e.upid = process_tracker_thread_process(f->m->processes, e.utid);
    if (e.type == FXT_COUNTER) {
        push_counters(f, ts, &e, &args, last);
        return;
    }
    if (e.type != FXT_COMPLETE)
        e.id = last;
    e.args = fxt_keep_args(f, &args);
    push(f, ts, &e);
}

/* ---- objects ---- */

static void read_object(struct fxt *f, uint64_t header, struct fxt_words *w)
{
    struct process_tracker *processes = f->m->processes;
    uint64_t koid = fxt_next_word(w);
    strid name = fxt_string_of(f, fxt_bits(header, 24, 16), w);
    struct fxt_values args;
    fxt_read_values(f, w, fxt_bits(header, 40, 4), &args);
    if (w->cut || koid > INT64_MAX)
        return;
    if (fxt_bits(header, 16, 8) == OBJECT_PROCESS) {
        process_tracker_process_name(processes, process_tracker_process(processes, (int64_t)koid), name,
                                     PROCESS_NAME_SYSTEM);
    } else if (fxt_bits(header, 16, 8) == OBJECT_THREAD) {
        const struct fxt_value *process = fxt_find_value(f, &args, "process");
        struct fxt_thread t = {process && process->kind == VALUE_KOID ? process->u : 0, koid};
        uint32_t utid = utid_of(f, t);
        if (utid != UINT32_MAX)
            process_tracker_thread_name(processes, utid, name, THREAD_NAME_CONSTANT);
    }
}

/* ---- scheduling ---- */

enum { IDLE_WEIGHT = INT32_MIN };

static void push_switch(struct fxt *f, uint64_t ticks, struct fxt_event *e)
{
    int64_t ts;
    if (machine_has_cpu(f->m, e->cpu) && time_of(f, ticks, &ts))
        push(f, ts, e);
}

/* Old kernels tell both threads and priorities; the idle thread has no process and the lowest priority. */
static void read_legacy_switch(struct fxt *f, uint64_t header, struct fxt_words *w)
{
    struct fxt_event e = {
        .type = FXT_SWITCH, .cpu = (uint16_t)fxt_bits(header, 16, 8), .state = (uint8_t)fxt_bits(header, 24, 4)};
    struct fxt_thread prev, next;
    uint64_t ticks = fxt_next_word(w);
    bool known = fxt_thread_of(f, fxt_bits(header, 28, 8), w, &prev);
    known &= fxt_thread_of(f, fxt_bits(header, 36, 8), w, &next);
    if (w->cut || !known) {
        fxt_count(f, STAT_fuchsia_invalid_event);
        return;
    }
    e.priority = (int32_t)fxt_bits(header, 52, 8);
    e.utid = prev.pid == 0 && fxt_bits(header, 44, 8) == 0 ? UINT32_MAX : utid_of(f, prev);
    e.next = next.pid == 0 && e.priority == 0 ? UINT32_MAX : utid_of(f, next);
    push_switch(f, ticks, &e);
}

static int32_t weight_of(const struct fxt *f, const struct fxt_values *args, const char *name)
{
    const struct fxt_value *a = fxt_find_value(f, args, name);
    return a && a->kind == VALUE_I32 ? (int32_t)a->i : 0;
}

static void read_switch(struct fxt *f, uint64_t header, struct fxt_words *w)
{
    struct fxt_event e = {
        .type = FXT_SWITCH, .cpu = (uint16_t)fxt_bits(header, 20, 16), .state = (uint8_t)fxt_bits(header, 36, 4)};
    uint64_t ticks = fxt_next_word(w), prev = fxt_next_word(w), next = fxt_next_word(w);
    struct fxt_values args;
    fxt_read_values(f, w, fxt_bits(header, 16, 4), &args);
    if (w->cut) {
        fxt_count(f, STAT_fuchsia_invalid_event);
        return;
    }
    e.priority = weight_of(f, &args, "incoming_weight");
    bool was_idle = weight_of(f, &args, "outgoing_weight") == IDLE_WEIGHT;
    e.utid = was_idle ? UINT32_MAX : utid_of(f, (struct fxt_thread){0, prev});
    e.next = e.priority == IDLE_WEIGHT ? UINT32_MAX : utid_of(f, (struct fxt_thread){0, next});
    push_switch(f, ticks, &e);
}

static void read_wakeup(struct fxt *f, uint64_t header, struct fxt_words *w)
{
    struct fxt_event e = {.type = FXT_WAKEUP, .cpu = (uint16_t)fxt_bits(header, 20, 16)};
    uint64_t ticks = fxt_next_word(w), tid = fxt_next_word(w);
    struct fxt_values args;
    fxt_read_values(f, w, fxt_bits(header, 16, 4), &args);
    if (w->cut) {
        fxt_count(f, STAT_fuchsia_invalid_event);
        return;
    }
    if (weight_of(f, &args, "weight") == IDLE_WEIGHT)
        return;
    if ((e.utid = utid_of(f, (struct fxt_thread){0, tid})) != UINT32_MAX)
        push_switch(f, ticks, &e);
}

static void read_scheduling(struct fxt *f, uint64_t header, struct fxt_words *w)
{
    switch (fxt_bits(header, 60, 4)) {
    case SCHED_LEGACY_SWITCH:
        read_legacy_switch(f, header, w);
        break;
    case SCHED_SWITCH:
        read_switch(f, header, w);
        break;
    case SCHED_WAKEUP:
        read_wakeup(f, header, w);
        break;
    default:
        fxt_count(f, STAT_fuchsia_invalid_event);
        break;
    }
}

static void read_log(struct fxt *f, uint64_t header, struct fxt_words *w)
{
    struct fxt_event e = {.type = FXT_LOG};
    struct fxt_thread thread;
    uint64_t ticks = fxt_next_word(w);
    bool known = fxt_thread_of(f, fxt_bits(header, 32, 8), w, &thread);
    struct slice text = fxt_next_bytes(w, fxt_bits(header, 16, 15));
    int64_t ts;
    if (w->cut || !known || (e.utid = utid_of(f, thread)) == UINT32_MAX) {
        fxt_count(f, STAT_fuchsia_invalid_event);
        return;
    }
    e.name = import_slice(f->im, text);
    if (time_of(f, ticks, &ts))
        push(f, ts, &e);
}

/* ---- the file ---- */

static void read_record(struct fxt *f, uint64_t header, struct fxt_words w)
{
    switch (fxt_bits(header, 0, 4)) {
    case RECORD_METADATA:
        read_metadata(f, header);
        break;
    case RECORD_INITIALIZATION: {
        uint64_t ticks = fxt_next_word(&w);
        f->now->ticks_per_second = ticks ? ticks : f->now->ticks_per_second;
        break;
    }
    case RECORD_STRING:
        read_string(f, header, &w);
        break;
    case RECORD_THREAD:
        read_thread(f, header, &w);
        break;
    case RECORD_EVENT:
        read_event(f, header, &w);
        break;
    case RECORD_KERNEL_OBJECT:
        read_object(f, header, &w);
        break;
    case RECORD_SCHEDULING:
        read_scheduling(f, header, &w);
        break;
    case RECORD_LOG:
        read_log(f, header, &w);
        break;
    default: /* blobs, objects of programs, and what later versions have: nothing of ours */
        break;
    }
    if (w.cut)
        fxt_count(f, STAT_fuchsia_record_read_error);
}

static void *open_file(struct importer *im)
{
    struct fxt *f = mem_zalloc(sizeof *f);
    if (!f)
        return NULL;
    *f = (struct fxt){.im = im, .m = text_machine(im)};
    f->queue = sorter_add_queue(im->sorter, fxt_parse_events, f);
    f->now = provider_of(f, 0);
    if (f->queue == UINT32_MAX || !f->now) {
        fuchsia_format_reader.close(f);
        return NULL;
    }
    file_clock_open(&f->clock, im, CLOCK_ID_TRACE_FILE);
    return f;
}

static int write_file(void *self, struct slice file, struct error *err)
{
    struct fxt *f = self;
    size_t at = 0;
    while (file.len - at >= FXT_WORD && !f->im->failed) {
        uint64_t header = fxt_word_at(file.p + at);
        uint64_t size = fxt_bits(header, 0, 4) == RECORD_LARGE ? header >> 4 & UINT32_MAX : fxt_bits(header, 4, 12);
        if (!size || size > (file.len - at) / FXT_WORD) /* nothing tells where the next one is */
            break;
        read_record(f, header, (struct fxt_words){file.p + at + FXT_WORD, (size_t)size - 1, false});
        at += (size_t)size * FXT_WORD;
        if (at % (1 << 20) < (size_t)size * FXT_WORD)
            format_reader_used(f->im, slice_to(file, at));
    }
    if (at < file.len && !f->im->failed)
        import_log(f->m, STAT_fuchsia_record_read_error, COL_NULL, (int64_t)at, ARGSET_NONE);
    return f->im->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

static void close_file(void *self)
{
    struct fxt *f = self;
    for (size_t i = 0; i < f->list.n; i++)
        mem_free(f->list.p[i]);
    vec_free(&f->list);
    vec_free(&f->threads);
    u64map_free(&f->strings);
    u64map_free(&f->thread_of);
    vec_free(&f->events);
    vec_free(&f->cpus);
    u64map_free(&f->states);
    u64map_free(&f->providers);
    mem_free(f);
}

const struct format_reader fuchsia_format_reader = {
    .format = FORMAT_FUCHSIA, .whole = true, .open = open_file, .write = write_file, .close = close_file};
