/* The bundle of events of one cpu. */
#include "kernel/bundle.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "kernel/compact_sched.h"
#include "kernel/encode.h"
#include "kernel/event_filter.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

enum {
    EVENTS_SOFT = 27 << 10,  /* a bundle of this size goes out: with its header it fits a 32 KiB chunk */
    EVENTS_HARD = 192 << 10, /* room for one event of the biggest sub-buffer behind the soft limit */
    MAX_DESCRIPTORS = 64,    /* generic event types in one bundle */
    MAX_ERRORS = 32,         /* errors kept in one bundle; all are counted */
};

struct page_error {
    uint64_t timestamp;
    uint32_t status;
};

struct ftrace_bundle {
    struct packet_sink sink;
    struct program_context program;
    struct symbol_output *symbols;
    struct tid_tracker *tids;
    struct inode_tracker *inodes;
    struct u64map rss; /* (mm_id, member) → step of size + 1 that was written last */
    enum ftrace_clock clock;
    int64_t ftrace_now, boot_now;
    uint32_t cpu;
    bool lost;
    uint64_t *previous_end;
    uint64_t seen; /* time of the last event read of this batch */
    size_t n;      /* bytes in events */
    uint32_t n_descriptors;
    const struct event_program *descriptors[MAX_DESCRIPTORS];
    uint32_t n_errors;
    struct page_error errors[MAX_ERRORS];
    bool debug;               /* broken pages go out */
    struct slice broken_page; /* of the bundle that goes out now */
    struct ftrace_bundle_counts counts;
    struct pb_writer head; /* symbols, bundle header and trailer */
    uint8_t scratch[COMPACT_SCRATCH];
    uint8_t events[EVENTS_HARD + ENCODE_SLACK];
    struct compact_sched compact;
};

struct ftrace_bundle *ftrace_bundle_create(const struct packet_sink *sink, const struct printk_formats *printk,
                                           struct symbol_output *symbols, const struct compact_offsets *compact)
{
    struct ftrace_bundle *b = mem_zalloc(sizeof *b);
    if (!b)
        return NULL;
    b->sink = *sink;
    b->symbols = symbols;
    b->program = (struct program_context){.addresses = symbols ? &symbols->addresses : NULL,
                                          .printk = printk,
                                          .kernel = symbols ? symbols->kernel : NULL};
    if (compact)
        b->compact.at = *compact;
    return b;
}

void ftrace_bundle_free(struct ftrace_bundle *b)
{
    if (!b)
        return;
    pb_writer_free(&b->head);
    u64map_free(&b->rss);
    mem_free(b);
}

void ftrace_bundle_set_clock(struct ftrace_bundle *b, enum ftrace_clock clock, int64_t ftrace_now, int64_t boot_now)
{
    b->clock = clock;
    b->ftrace_now = ftrace_now;
    b->boot_now = boot_now;
}

void ftrace_bundle_set_address_shift(struct ftrace_bundle *b, uint64_t shift)
{
    b->program.address_shift = shift;
}

void ftrace_bundle_set_tids(struct ftrace_bundle *b, struct tid_tracker *tids)
{
    b->tids = tids;
}

void ftrace_bundle_set_inodes(struct ftrace_bundle *b, struct inode_tracker *inodes)
{
    b->inodes = inodes;
}

static void clear(struct ftrace_bundle *b)
{
    b->n = 0;
    b->n_descriptors = b->n_errors = 0;
    b->lost = false;
    compact_sched_clear(&b->compact);
}

/* TracePacket.interned_data.kernel_symbols for the numbers that are new, and the flags that go with it. */
static void put_symbols(struct ftrace_bundle *b, struct pb_writer *w)
{
    struct symbol_output *s = b->symbols;
    if (!s || !s->addresses.unsent.n)
        return;
    if (s->kernel) {
        size_t data = pb_begin(w, TRACE_PACKET_INTERNED_DATA);
        uint64_t iid = s->addresses.next - s->addresses.unsent.n;
        for (size_t i = 0; i < s->addresses.unsent.n; i++) {
            const char *name = kernel_symbols_find(s->kernel, s->addresses.unsent.p[i]);
            iid++;
            if (!name)
                continue;
            size_t entry = pb_begin(w, INTERNED_DATA_KERNEL_SYMBOLS);
            pb_put_varint(w, INTERNED_STRING_IID, iid);
            pb_put_str(w, INTERNED_STRING_STR, name);
            pb_end(w, entry);
        }
        pb_end(w, data);
        pb_put_varint(w, TRACE_PACKET_SEQUENCE_FLAGS,
                      s->announced ? 2 : 1); /* needs incremental state; cleared the first time */
        s->announced = true;
    }
    vec_clear(&s->addresses.unsent);
}

/* Everything of the bundle but the events and the compact lists. */
static void put_header(struct ftrace_bundle *b, struct pb_writer *w)
{
    pb_put_varint(w, FTRACE_EVENT_BUNDLE_CPU, b->cpu);
    if (b->lost)
        pb_put_varint(w, FTRACE_EVENT_BUNDLE_LOST_EVENTS, 1);
    if (b->clock != FTRACE_CLOCK_BOOT) {
        pb_put_varint(w, FTRACE_EVENT_BUNDLE_FTRACE_CLOCK, b->clock);
        pb_put_i64(w, FTRACE_EVENT_BUNDLE_FTRACE_TIMESTAMP, b->ftrace_now);
        pb_put_i64(w, FTRACE_EVENT_BUNDLE_BOOT_TIMESTAMP, b->boot_now);
    }
    for (uint32_t i = 0; i < b->n_errors; i++) {
        size_t error = pb_begin(w, FTRACE_EVENT_BUNDLE_ERROR);
        pb_put_varint(w, FTRACE_EVENT_BUNDLE_FTRACE_ERROR_TIMESTAMP, b->errors[i].timestamp);
        pb_put_varint(w, FTRACE_EVENT_BUNDLE_FTRACE_ERROR_STATUS, b->errors[i].status);
        pb_end(w, error);
    }
    pb_put_varint(w, FTRACE_EVENT_BUNDLE_PREVIOUS_BUNDLE_END_TIMESTAMP, *b->previous_end);
    for (uint32_t i = 0; i < b->n_descriptors; i++)
        pb_put_bytes(w, FTRACE_EVENT_BUNDLE_GENERIC_EVENT_DESCRIPTORS, b->descriptors[i]->descriptor.p,
                     b->descriptors[i]->descriptor.len);
    if (b->broken_page.len)
        pb_put_bytes(w, FTRACE_EVENT_BUNDLE_BROKEN_ABI_TRACE_PAGE, b->broken_page.p, b->broken_page.len);
}

static void emit(struct ftrace_bundle *b)
{
    struct slice pieces[2 * COMPACT_LISTS + 4];
    size_t compact_len, total = 0;
    uint8_t compact_tag[16], bundle_tag[16];
    if (!b->n && !b->lost && !b->n_errors && !b->compact.n_switch && !b->compact.n_waking)
        return;
    pb_writer_clear(&b->head);
    put_symbols(b, &b->head);
    size_t symbols_len = b->head.n;
    put_header(b, &b->head);
    if (b->head.failed) { /* out of memory: the loss is told with the next bundle */
        b->head.failed = false;
        clear(b);
        b->lost = true;
        return;
    }
    size_t n_compact = compact_sched_pieces(&b->compact, b->scratch, pieces + 4, &compact_len);
    uint8_t *end = compact_tag;
    if (n_compact) {
        end = encode_tag(end, 4, PB_BYTES);
        end = encode_varint(end, compact_len);
    }
    pieces[3] = slice_of(compact_tag, (size_t)(end - compact_tag));
    pieces[2] = slice_of(b->events, b->n);
    size_t bundle_len = b->head.n - symbols_len + b->n + pieces[3].len + compact_len;
    end = encode_tag(bundle_tag, 1, PB_BYTES);
    end = encode_varint(end, bundle_len);
    /* the header of the bundle follows its tag, so both go into the head buffer's tail: symbols | tag | header */
    size_t tag_len = (size_t)(end - bundle_tag);
    pb_put_raw(&b->head, bundle_tag, tag_len); /* grow first, then make the gap */
    if (b->head.failed) {
        b->head.failed = false;
        clear(b);
        b->lost = true;
        return;
    }
    memmove(b->head.p + symbols_len + tag_len, b->head.p + symbols_len, b->head.n - tag_len - symbols_len);
    memcpy(b->head.p + symbols_len, bundle_tag, tag_len);
    pieces[1] = slice_of(b->head.p, b->head.n);
    for (size_t i = 1; i < 4 + n_compact; i++)
        total += pieces[i].len;
    b->sink.write(b->sink.ctx, pieces + 1, 3 + n_compact);
    b->counts.bundles++;
    b->counts.bytes += total;
    *b->previous_end = b->seen;
    clear(b);
}

void ftrace_bundle_begin(struct ftrace_bundle *b, uint32_t cpu, uint64_t *previous_end)
{
    b->cpu = cpu;
    b->previous_end = previous_end;
    b->seen = *previous_end;
}

void ftrace_bundle_end(struct ftrace_bundle *b)
{
    emit(b);
}

void ftrace_bundle_seen(struct ftrace_bundle *b, uint64_t timestamp)
{
    b->seen = timestamp;
}

void ftrace_bundle_lost(struct ftrace_bundle *b)
{
    emit(b);
    b->lost = true;
}

void ftrace_bundle_error(struct ftrace_bundle *b, uint64_t page_timestamp, enum ftrace_status status)
{
    b->counts.errors[status]++;
    if (b->n_errors < MAX_ERRORS)
        b->errors[b->n_errors++] = (struct page_error){page_timestamp, status};
}

void ftrace_bundle_set_debug(struct ftrace_bundle *b, bool debug)
{
    b->debug = debug;
}

void ftrace_bundle_broken_page(struct ftrace_bundle *b, struct slice page)
{
    if (!b->debug)
        return;
    b->broken_page = page; /* it lasts for this call only, so the bundle ends here */
    emit(b);
    b->broken_page = slice_of(NULL, 0);
}

/* Makes sure that the descriptor of a generic event is in this bundle: a reader may have no other one left. */
static void need_descriptor(struct ftrace_bundle *b, const struct event_program *p)
{
    for (uint32_t i = 0; i < b->n_descriptors; i++)
        if (b->descriptors[i] == p)
            return;
    if (b->n_descriptors == MAX_DESCRIPTORS)
        emit(b);
    b->descriptors[b->n_descriptors++] = p;
}

static void compact_event(struct ftrace_bundle *b, const struct event_program *p, const uint8_t *event, uint32_t size,
                          uint64_t timestamp)
{
    struct compact_sched *c = &b->compact;
    if (__builtin_expect(size < p->min_size, 0)) {
        ftrace_bundle_error(b, timestamp, FTRACE_STATUS_SHORT_COMPACT_EVENT);
        return;
    }
    if (__builtin_expect(!compact_sched_has_room(c), 0))
        emit(b);
    b->seen = timestamp;
    if (p->kind == PROGRAM_COMPACT_SWITCH) {
        compact_sched_switch(c, event, timestamp);
        if (b->tids)
            tid_tracker_saw(b->tids, load_u32(event + c->at.next_pid));
    } else {
        compact_sched_waking(c, event, timestamp);
    }
    b->counts.events++;
}

static void note_tids(struct ftrace_bundle *b, const struct event_program *p, const uint8_t *event)
{
    uint32_t tid = load_u32(event + p->pid_offset);
    if (tid != b->tids->last) {
        b->tids->last = tid;
        tid_tracker_saw(b->tids, tid);
    }
    if (p->tid_effect == TID_EFFECT_SEEN)
        tid_tracker_saw(b->tids, load_u32(event + p->tid_offset));
    else if (p->tid_effect == TID_EFFECT_STALE)
        tid_tracker_forget(b->tids, load_u32(event + p->tid_offset));
}

static void note_inode(struct ftrace_bundle *b, const struct event_program *p, const uint8_t *event)
{
    struct inode_key key = {.device = event_program_device(load_u32(event + p->device_offset))};
    bool added;
    memcpy(&key.inode, event + p->inode_offset, 8);
    if (u64map_put(&b->inodes->seen, hash_combine(hash_u64(key.device), key.inode), &added) && added)
        (void)!vec_push(&b->inodes->fresh, key);
}

/* Memory counters move with every page; a step of 512 KiB is what a graph can show. */
static bool throttle_rss(struct ftrace_bundle *b, const struct event_program *p, const uint8_t *event, uint32_t size)
{
    enum { STEP = 512 << 10 };
    int64_t bytes;
    if (size < p->min_size)
        return false; /* told as an error below */
    uint64_t key = (uint64_t)load_u32(event + p->rss_key[0]) << 32 | load_u32(event + p->rss_key[1]);
    memcpy(&bytes, event + p->rss_size, 8);
    uint64_t step = (uint64_t)(bytes / STEP) + 1, *last = u64map_put(&b->rss, key, NULL);
    if (!last || *last == step)
        return last != NULL;
    *last = step;
    return false;
}

void ftrace_bundle_event(struct ftrace_bundle *b, const struct event_program *p, const uint8_t *event, uint32_t size,
                         uint64_t timestamp)
{
    if (p->kind >= PROGRAM_COMPACT_SWITCH) {
        compact_event(b, p, event, size, timestamp);
        return;
    }
    if (__builtin_expect(p->throttled, 0) && throttle_rss(b, p, event, size))
        return;
    if (__builtin_expect(p->filter != NULL, 0) && !event_filter_keeps(p->filter, event, size))
        return;
    size_t bound = event_program_bound(p, size);
    if (__builtin_expect(b->n + bound > EVENTS_SOFT, 0)) {
        if (b->n + compact_sched_size(&b->compact) + bound > EVENTS_SOFT)
            emit(b);
        if (b->n + bound > EVENTS_HARD) {
            ftrace_bundle_error(b, timestamp, FTRACE_STATUS_INVALID_EVENT);
            return;
        }
    }
    if (p->descriptor.len)
        need_descriptor(b, p);
    uint8_t *end = event_program_run(p, &b->program, event, size, timestamp, b->events + b->n);
    if (__builtin_expect(!end, 0)) {
        ftrace_bundle_error(b, timestamp, FTRACE_STATUS_INVALID_EVENT);
        return;
    }
    if (b->tids)
        note_tids(b, p, event);
    if (b->inodes && p->has_inode)
        note_inode(b, p, event);
    b->seen = timestamp;
    b->n = (size_t)(end - b->events);
    b->counts.events++;
}

const struct ftrace_bundle_counts *ftrace_bundle_counts(const struct ftrace_bundle *b)
{
    return &b->counts;
}
