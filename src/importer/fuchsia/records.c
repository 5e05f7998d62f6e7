/* Records of a Fuchsia trace: tables of strings and threads, and events with their arguments. */
#include "importer/fuchsia/fuchsia_private.h"

#include "base/utf8.h"
#include "importer/lines/line_reader.h"
#include "importer/sort/sorter.h"
#include "importer/text/text_file.h"
#include "importer/track/process_tracker.h"

#include <math.h>

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
enum { INLINE_STRING = 0x8000, STRING_LENGTH = 0x7fff, NS_PER_SECOND = 1000000000 };

enum value_kind {
    VALUE_NULL,
    VALUE_I32,
    VALUE_U32,
    VALUE_I64,
    VALUE_U64,
    VALUE_DOUBLE,
    VALUE_STRING,
    VALUE_POINTER,
    VALUE_KOID,
    VALUE_BOOL
};

/* What writes records has numbers of its own for strings and threads. */
struct fxt_provider {
    uint64_t ticks_per_second;
    uint32_t index; /* in fxt.list */
};

struct value {
    strid name;   /* of the argument */
    uint8_t kind; /* enum value_kind */
    union {
        int64_t i;
        uint64_t u;
        double d;
        strid text;
    };
};

/* The words of a record behind its header. Reading beyond them latches `cut`. */
struct words {
    const uint8_t *p;
    size_t n;
    bool cut;
};

static uint64_t word_at(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = FXT_WORD; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static uint64_t next_word(struct words *w)
{
    if (!w->n) {
        w->cut = true;
        return 0;
    }
    uint64_t v = word_at(w->p);
    w->p += FXT_WORD;
    w->n--;
    return v;
}

/* `len` bytes, padded to whole words. */
static struct slice next_bytes(struct words *w, size_t len)
{
    size_t n = (len + FXT_WORD - 1) / FXT_WORD;
    if (n > w->n) {
        w->cut = true;
        w->n = 0;
        return slice_of(NULL, 0);
    }
    struct slice s = slice_of(w->p, len);
    w->p += n * FXT_WORD;
    w->n -= n;
    return s;
}

static uint32_t bits(uint64_t word, int from, int n)
{
    return (uint32_t)(word >> from & ((1ull << n) - 1));
}

static void count(struct fxt *f, enum stat_key stat)
{
    stats_add(&f->im->st->stats, f->m->id, stat, 1);
}

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

static uint64_t key_of(const struct fxt *f, uint32_t number)
{
    return (uint64_t)f->now->index << 16 | number;
}

/* A name by its number, or from the words of the record. */
static strid string_of(struct fxt *f, uint32_t ref, struct words *w)
{
    if (!ref)
        return import_str(f->im, "");
    if (ref & INLINE_STRING) {
        struct slice s = next_bytes(w, ref & STRING_LENGTH);
        return w->cut ? 0 : import_slice(f->im, s);
    }
    const uint64_t *id = u64map_get(&f->strings, key_of(f, ref));
    if (!id)
        count(f, STAT_fuchsia_invalid_string_ref);
    return id ? (strid)*id : 0;
}

static bool thread_of(struct fxt *f, uint32_t ref, struct words *w, struct fxt_thread *out)
{
    if (ref) {
        const uint64_t *at = u64map_get(&f->thread_of, key_of(f, ref));
        *out = at ? f->threads.p[*at] : (struct fxt_thread){0};
        return at != NULL;
    }
    out->pid = next_word(w);
    out->tid = next_word(w);
    return !w->cut;
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
        count(f, STAT_fuchsia_timestamp_overflow);
        return false;
    }
    return file_clock_to_trace_time(&f->clock, (int64_t)ns, -1, ts);
}

static void read_metadata(struct fxt *f, uint64_t header)
{
    uint32_t id = bits(header, 20, 32);
    struct fxt_provider *p;
    switch (bits(header, 16, 4)) {
    case METADATA_PROVIDER_INFO:
    case METADATA_PROVIDER_SECTION:
        if ((p = provider_of(f, id)))
            f->now = p;
        break;
    case METADATA_PROVIDER_EVENT:
        if (bits(header, 52, 4) == PROVIDER_BUFFER_FULL)
            stats_add_idx(&f->im->st->stats, f->m->id, STAT_fuchsia_provider_buffer_full, (int32_t)(id & INT32_MAX), 1);
        break;
    default: /* what a trace is as a whole: its first record, told by its bytes */
        break;
    }
}

static void read_string(struct fxt *f, uint64_t header, struct words *w)
{
    uint32_t index = bits(header, 16, 15);
    struct slice s = next_bytes(w, bits(header, 32, 15));
    if (!w->cut && index && !u64map_set(&f->strings, key_of(f, index), import_slice(f->im, s)))
        f->im->failed = true;
}

static void read_thread(struct fxt *f, uint64_t header, struct words *w)
{
    uint32_t index = bits(header, 16, 8);
    struct fxt_thread t = {.pid = next_word(w)};
    t.tid = next_word(w);
    if (w->cut || !index)
        return;
    if (!vec_push(&f->threads, t) || !u64map_set(&f->thread_of, key_of(f, index), f->threads.n - 1))
        f->im->failed = true;
}

/* ---- arguments ---- */

static bool read_value(struct fxt *f, struct words *w, struct value *out)
{
    const uint8_t *begin = w->p;
    uint64_t header = next_word(w);
    uint32_t size = bits(header, 4, 12);
    if (w->cut || !size || size - 1 > w->n) {
        w->cut = true;
        return false;
    }
    struct words own = {begin + FXT_WORD, size - 1, false};
    *out = (struct value){.kind = (uint8_t)bits(header, 0, 4)};
    out->name = string_of(f, bits(header, 16, 16), &own);
    switch (out->kind) {
    case VALUE_NULL:
        break;
    case VALUE_I32:
        out->i = (int32_t)(header >> 32);
        break;
    case VALUE_U32:
        out->u = header >> 32;
        break;
    case VALUE_I64:
    case VALUE_U64:
    case VALUE_POINTER:
    case VALUE_KOID:
    case VALUE_DOUBLE:
        out->u = next_word(&own);
        break;
    case VALUE_STRING:
        out->text = string_of(f, bits(header, 32, 16), &own);
        break;
    case VALUE_BOOL:
        out->u = bits(header, 32, 1);
        break;
    default: /* of a later version: its size is known */
        count(f, STAT_fuchsia_unknown_event_arg);
        out->name = 0;
        break;
    }
    w->p = begin + (size_t)size * FXT_WORD;
    w->n -= size - 1;
    if (own.cut)
        count(f, STAT_fuchsia_invalid_event_arg_type);
    return true;
}

enum { MAX_ARGS = 15 };

struct values {
    struct value p[MAX_ARGS];
    uint32_t n;
};

static void read_values(struct fxt *f, struct words *w, uint32_t n, struct values *out)
{
    struct value a;
    out->n = 0;
    for (uint32_t i = 0; i < n && !w->cut; i++) {
        if (!read_value(f, w, &a))
            return;
        if (!a.name || !strpool_view(&f->im->st->strings, a.name).len)
            count(f, STAT_fuchsia_invalid_event_arg_name);
        else
            out->p[out->n++] = a;
    }
}

static argset keep_args(struct fxt *f, const struct values *all)
{
    struct args *args = &f->im->st->args;
    struct arg_list list = {0};
    for (uint32_t i = 0; i < all->n; i++) {
        const struct value *a = &all->p[i];
        static const uint8_t types[] = {
            [VALUE_NULL] = ARG_NULL,     [VALUE_I32] = ARG_INT,         [VALUE_U32] = ARG_UINT,
            [VALUE_I64] = ARG_INT,       [VALUE_U64] = ARG_UINT,        [VALUE_DOUBLE] = ARG_REAL,
            [VALUE_STRING] = ARG_STRING, [VALUE_POINTER] = ARG_POINTER, [VALUE_KOID] = ARG_UINT,
            [VALUE_BOOL] = ARG_BOOL};
        int64_t word = a->kind == VALUE_STRING   ? (int64_t)a->text
                       : a->kind == VALUE_DOUBLE ? column_f64_word(a->d)
                                                 : a->i;
        arg_list_add(args, &list, a->name, a->name, (enum arg_type)types[a->kind], word);
    }
    argset set = list.n ? args_intern(args, list.p, list.n) : (argset){0};
    arg_list_free(&list);
    return set;
}

static bool number_of(const struct value *a, double *out)
{
    switch (a->kind) {
    case VALUE_I32:
    case VALUE_I64:
        *out = (double)a->i;
        return true;
    case VALUE_U32:
    case VALUE_U64:
        *out = (double)a->u;
        return true;
    case VALUE_DOUBLE:
        *out = a->d;
        return isfinite(a->d);
    default:
        return false;
    }
}

static const struct value *find_value(const struct fxt *f, const struct values *all, const char *name)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (slice_eq_str(strpool_view(&f->im->st->strings, all->p[i].name), name))
            return &all->p[i];
    return NULL;
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

/* name:argument, and the counter's id where it has one. Beyond this length names are cut: each event could make another
 * long text of them. */
static strid counter_name(struct fxt *f, strid name, strid arg, uint64_t id)
{
    enum { MAX_NAME = 250 };
    struct strpool *strings = &f->im->st->strings;
    struct slice first = strpool_view(strings, name), second = strpool_view(strings, arg);
    first = slice_to(first, first.len > MAX_NAME ? MAX_NAME : first.len);
    second = slice_to(second, second.len > MAX_NAME ? MAX_NAME : second.len);
    return strpool_printf(strings, id ? "%.*s:%.*s:%llu" : "%.*s:%.*s", (int)first.len, (const char *)first.p,
                          (int)second.len, (const char *)second.p, (unsigned long long)id);
}

/* A counter has a track for each of its numbers. */
static void push_counters(struct fxt *f, int64_t ts, struct fxt_event *e, const struct values *args, uint64_t id)
{
    strid name = e->name;
    for (uint32_t i = 0; i < args->n; i++) {
        if (!number_of(&args->p[i], &e->value)) {
            count(f, STAT_fuchsia_non_numeric_counters);
            continue;
        }
        e->name = counter_name(f, name, args->p[i].name, id);
        push(f, ts, e);
    }
}

static void read_event(struct fxt *f, uint64_t header, struct words *w)
{
    struct fxt_event e = {.type = (uint8_t)bits(header, 16, 4)};
    struct fxt_thread thread;
    struct values args;
    int64_t ts;
    uint64_t ticks = next_word(w);
    bool known = thread_of(f, bits(header, 24, 8), w, &thread);
    e.category = string_of(f, bits(header, 32, 16), w);
    e.name = string_of(f, bits(header, 48, 16), w);
    read_values(f, w, bits(header, 20, 4), &args);
    uint64_t last = e.type == FXT_INSTANT || e.type == FXT_BEGIN || e.type == FXT_END ? 0 : next_word(w);
    if (w->cut || !known || e.type >= FXT_EVENT_TYPES) {
        count(f, STAT_fuchsia_invalid_event);
        return;
    }
    if (!time_of(f, ticks, &ts) || (e.type == FXT_COMPLETE && !time_of(f, last, &e.end)))
        return;
    if ((e.utid = utid_of(f, thread)) == UINT32_MAX) {
        count(f, STAT_fuchsia_invalid_event);
        return;
    }
    e.upid = process_tracker_thread_process(f->m->processes, e.utid);
    if (e.type == FXT_COUNTER) {
        push_counters(f, ts, &e, &args, last);
        return;
    }
    if (e.type != FXT_COMPLETE)
        e.id = last;
    e.args = keep_args(f, &args);
    push(f, ts, &e);
}

/* ---- objects ---- */

static void read_object(struct fxt *f, uint64_t header, struct words *w)
{
    struct process_tracker *processes = f->m->processes;
    uint64_t koid = next_word(w);
    strid name = string_of(f, bits(header, 24, 16), w);
    struct values args;
    read_values(f, w, bits(header, 40, 4), &args);
    if (w->cut || koid > INT64_MAX)
        return;
    if (bits(header, 16, 8) == OBJECT_PROCESS) {
        process_tracker_process_name(processes, process_tracker_process(processes, (int64_t)koid), name,
                                     PROCESS_NAME_SYSTEM);
    } else if (bits(header, 16, 8) == OBJECT_THREAD) {
        const struct value *process = find_value(f, &args, "process");
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
    if (e->cpu < CPUS_PER_MACHINE && time_of(f, ticks, &ts))
        push(f, ts, e);
}

/* Old kernels tell both threads and priorities; the idle thread has no process and the lowest priority. */
static void read_legacy_switch(struct fxt *f, uint64_t header, struct words *w)
{
    struct fxt_event e = {
        .type = FXT_SWITCH, .cpu = (uint16_t)bits(header, 16, 8), .state = (uint8_t)bits(header, 24, 4)};
    struct fxt_thread prev, next;
    uint64_t ticks = next_word(w);
    bool known = thread_of(f, bits(header, 28, 8), w, &prev);
    known &= thread_of(f, bits(header, 36, 8), w, &next);
    if (w->cut || !known) {
        count(f, STAT_fuchsia_invalid_event);
        return;
    }
    e.priority = (int32_t)bits(header, 52, 8);
    e.utid = prev.pid == 0 && bits(header, 44, 8) == 0 ? UINT32_MAX : utid_of(f, prev);
    e.next = next.pid == 0 && e.priority == 0 ? UINT32_MAX : utid_of(f, next);
    push_switch(f, ticks, &e);
}

static int32_t weight_of(const struct fxt *f, const struct values *args, const char *name)
{
    const struct value *a = find_value(f, args, name);
    return a && a->kind == VALUE_I32 ? (int32_t)a->i : 0;
}

static void read_switch(struct fxt *f, uint64_t header, struct words *w)
{
    struct fxt_event e = {
        .type = FXT_SWITCH, .cpu = (uint16_t)bits(header, 20, 16), .state = (uint8_t)bits(header, 36, 4)};
    uint64_t ticks = next_word(w), prev = next_word(w), next = next_word(w);
    struct values args;
    read_values(f, w, bits(header, 16, 4), &args);
    if (w->cut) {
        count(f, STAT_fuchsia_invalid_event);
        return;
    }
    e.priority = weight_of(f, &args, "incoming_weight");
    bool was_idle = weight_of(f, &args, "outgoing_weight") == IDLE_WEIGHT;
    e.utid = was_idle ? UINT32_MAX : utid_of(f, (struct fxt_thread){0, prev});
    e.next = e.priority == IDLE_WEIGHT ? UINT32_MAX : utid_of(f, (struct fxt_thread){0, next});
    push_switch(f, ticks, &e);
}

static void read_wakeup(struct fxt *f, uint64_t header, struct words *w)
{
    struct fxt_event e = {.type = FXT_WAKEUP, .cpu = (uint16_t)bits(header, 20, 16)};
    uint64_t ticks = next_word(w), tid = next_word(w);
    if (w->cut) {
        count(f, STAT_fuchsia_invalid_event);
        return;
    }
    if ((e.utid = utid_of(f, (struct fxt_thread){0, tid})) != UINT32_MAX)
        push_switch(f, ticks, &e);
}

static void read_scheduling(struct fxt *f, uint64_t header, struct words *w)
{
    switch (bits(header, 60, 4)) {
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
        count(f, STAT_fuchsia_invalid_event);
        break;
    }
}

static void read_log(struct fxt *f, uint64_t header, struct words *w)
{
    struct fxt_event e = {.type = FXT_LOG};
    struct fxt_thread thread;
    uint64_t ticks = next_word(w);
    bool known = thread_of(f, bits(header, 32, 8), w, &thread);
    struct slice text = next_bytes(w, bits(header, 16, 15));
    int64_t ts;
    if (w->cut || !known || (e.utid = utid_of(f, thread)) == UINT32_MAX) {
        count(f, STAT_fuchsia_invalid_event);
        return;
    }
    e.name = import_slice(f->im, text);
    if (time_of(f, ticks, &ts))
        push(f, ts, &e);
}

/* ---- the file ---- */

static void read_record(struct fxt *f, uint64_t header, struct words w)
{
    switch (bits(header, 0, 4)) {
    case RECORD_METADATA:
        read_metadata(f, header);
        break;
    case RECORD_INITIALIZATION: {
        uint64_t ticks = next_word(&w);
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
        count(f, STAT_fuchsia_record_read_error);
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
        uint64_t header = word_at(file.p + at);
        uint64_t size = bits(header, 0, 4) == RECORD_LARGE ? header >> 4 & UINT32_MAX : bits(header, 4, 12);
        if (!size || size > (file.len - at) / FXT_WORD) /* nothing tells where the next one is */
            break;
        read_record(f, header, (struct words){file.p + at + FXT_WORD, (size_t)size - 1, false});
        at += (size_t)size * FXT_WORD;
        if (at % (1 << 20) < (size_t)size * FXT_WORD)
            format_reader_used(f->im, slice_to(file, at));
    }
    if (at < file.len && !f->im->failed)
        import_log(f->m, STAT_fuchsia_record_read_error, COL_NULL, (int64_t)at, ARGSET_NONE);
    return f->im->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

static int end_file(void *self, struct error *err)
{
    (void)self;
    (void)err;
    return 0;
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

const struct format_reader fuchsia_format_reader = {.format = FORMAT_FUCHSIA,
                                                    .whole = true,
                                                    .open = open_file,
                                                    .write = write_file,
                                                    .end = end_file,
                                                    .close = close_file};
