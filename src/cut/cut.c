/* Goes over the packets of a recording and writes what stays. */
#include "cut/cut_internal.h"

#include "base/hash.h"
#include "cut/redact.h"
#include "wire/fields.h"

enum { FLUSH_BYTES = 1 << 20, NESTED_MAX = (1 << 28) - (1 << 16) };

/* What happens at the packet's time; it goes when that is outside of the window. */
static bool is_event(uint32_t field)
{
    switch (field) {
    case TRACE_PACKET_TRACK_EVENT:
    case TRACE_PACKET_PROCESS_STATS:
    case TRACE_PACKET_SYS_STATS:
    case TRACE_PACKET_BATTERY:
    case TRACE_PACKET_PERF_SAMPLE:
    case TRACE_PACKET_GPU_MEM_TOTAL_EVENT:
        return true;
    default:
        return false;
    }
}

/* What is about one machine alone and goes with it; its clocks and its name stay. */
static bool goes_with_machine(uint32_t field)
{
    return is_event(field) || field == TRACE_PACKET_PROCESS_TREE || field == TRACE_PACKET_TRACK_DESCRIPTOR ||
           field == TRACE_PACKET_INTERNED_DATA || field == TRACE_PACKET_PROCESS_DESCRIPTOR ||
           field == TRACE_PACKET_THREAD_DESCRIPTOR || field == TRACE_PACKET_PERF_PROGRESS;
}

/* What frames a packet: alone it says nothing. */
static bool is_frame(uint32_t field)
{
    switch (field) {
    case TRACE_PACKET_TIMESTAMP:
    case TRACE_PACKET_TIMESTAMP_CLOCK_ID:
    case TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID:
    case TRACE_PACKET_TRUSTED_UID:
    case TRACE_PACKET_TRUSTED_PID:
    case TRACE_PACKET_MACHINE_ID:
    case TRACE_PACKET_SEQUENCE_FLAGS: /* those that clear are looked at */
        return true;
    default:
        return false;
    }
}

static struct cut_head read_head(struct slice packet)
{
    struct cut_head h = {0};
    struct pb_cursor c = pb_cursor(packet);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case TRACE_PACKET_TIMESTAMP:
            h.has_timestamp = true;
            h.timestamp = pb_u64(&f);
            break;
        case TRACE_PACKET_TIMESTAMP_CLOCK_ID:
            h.clock_id = pb_u32(&f);
            break;
        case TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID:
            h.sequence_id = pb_u32(&f);
            break;
        case TRACE_PACKET_MACHINE_ID:
            h.machine_id = pb_u32(&f);
            break;
        case TRACE_PACKET_SEQUENCE_FLAGS:
            h.flags = pb_u32(&f);
            break;
        case TRACE_PACKET_INCREMENTAL_STATE_CLEARED:
            h.cleared = pb_bool(&f);
            break;
        case TRACE_PACKET_CLOCK_SNAPSHOT:
            h.snapshot = pb_bytes(&f);
            break;
        case TRACE_PACKET_TRACE_PACKET_DEFAULTS:
            h.defaults = pb_bytes(&f);
            break;
        case TRACE_PACKET_TRACK_DESCRIPTOR:
            h.descriptor = pb_bytes(&f);
            break;
        case TRACE_PACKET_THREAD_DESCRIPTOR:
            h.thread = pb_bytes(&f);
            break;
        case TRACE_PACKET_FTRACE_EVENTS:
            h.ftrace = pb_bytes(&f);
            break;
        default:
            break;
        }
        h.droppable |= is_event(f.id);
    }
    h.bad = c.bad;
    return h;
}

static int flush(struct cut *c)
{
    if (c->out.failed)
        return error_set(c->err, -MRD_ENOMEM, "out of memory");
    int rc = output_file_write(c->file, c->out.p, c->out.n, c->err);
    pb_writer_clear(&c->out);
    return rc;
}

static bool is_selected(const struct cut *c, uint32_t machine)
{
    for (size_t i = 0; i < c->w->n_machines; i++)
        if (c->w->machines[i] == machine)
            return true;
    return c->w->n_machines == 0;
}

struct verdict {
    uint32_t machine; /* row */
    bool known;       /* the machine is */
    bool selected;
    bool outside;
    struct cut_clock *steps;
    const struct cut_sequence *sequence;
};

static bool field_stays(const struct cut *c, const struct verdict *v, const struct pb_field *f)
{
    if (!v->selected)
        return !goes_with_machine(f->id);
    if (v->known && cut_goes_with_process(c, v->sequence, v->machine, f))
        return f->id == TRACE_PACKET_TRACK_EVENT && cut_is_step(c, pb_bytes(f));
    return !v->outside || !is_event(f->id) || (f->id == TRACE_PACKET_TRACK_EVENT && cut_is_step(c, pb_bytes(f)));
}

/* Writes what stays of a packet; nothing when that is its frame alone. */
static void cut_packet(struct cut *c, const struct cut_head *h, const struct verdict *v, struct slice packet)
{
    enum { FLAG_CLEARED = 1 };
    size_t before = c->out.n, mark = pb_begin(&c->out, TRACE_PACKET);
    struct pb_cursor cursor = pb_cursor(packet);
    struct pb_field f;
    bool content = h->flags & FLAG_CLEARED;
    for (const uint8_t *from = cursor.p; pb_next(&cursor, &f); from = cursor.p) {
        if (f.id == TRACE_PACKET_FTRACE_EVENTS && f.wire == PB_BYTES && v->known) {
            size_t at = c->out.n;
            if (cut_bundle(c, v->machine, v->selected, pb_bytes(&f)))
                content = true;
            else
                c->out.n = at;
        } else if (f.id == TRACE_PACKET_PROCESS_STATS && c->w->n_threads && v->known && field_stays(c, v, &f)) {
            content |= cut_process_stats(c, v->machine, pb_bytes(&f));
        } else if (f.id == TRACE_PACKET_TIMESTAMP && v->steps) {
            pb_put_varint(&c->out, TRACE_PACKET_TIMESTAMP, f.u + v->steps->carry);
        } else if (field_stays(c, v, &f)) {
            content |= !is_frame(f.id);
            pb_put_raw(&c->out, from, (size_t)(cursor.p - from));
        }
    }
    pb_end(&c->out, mark);
    if (!content) {
        c->out.n = before;
        if (v->steps)
            v->steps->carry += h->timestamp;
        return;
    }
    c->counts->packets_out++;
    if (v->steps)
        v->steps->carry = 0;
}

/* Gives the packet that begins at `before` its pseudonyms. */
static void redact(struct cut *c, size_t before)
{
    struct pb_cursor cursor = pb_cursor(slice_of(c->out.p + before, c->out.n - before));
    struct pb_field f;
    if (c->out.failed || !pb_next(&cursor, &f))
        return;
    pb_writer_clear(&c->redacted);
    redactor_write(c->w->redactor, pb_bytes(&f), &c->redacted);
    c->out.n = before;
    pb_put_bytes(&c->out, TRACE_PACKET, c->redacted.p, c->redacted.n);
    c->out.failed |= c->redacted.failed;
}

static int gather(void *ctx, struct slice field)
{
    struct pb_cursor cursor = pb_cursor(field);
    struct pb_field f;
    if (pb_next(&cursor, &f) && f.id == TRACE_PACKET && f.wire == PB_BYTES)
        redactor_gather(ctx, pb_bytes(&f));
    return 0;
}

/* Descriptors may come behind what they describe. */
static int note_tracks(void *ctx, struct slice field)
{
    struct cut *c = ctx;
    struct pb_cursor cursor = pb_cursor(field);
    struct pb_field f, g;
    if (pb_next(&cursor, &f) && f.id == TRACE_PACKET && f.wire == PB_BYTES &&
        pb_find(pb_bytes(&f), TRACE_PACKET_TRACK_DESCRIPTOR, &g) && !cut_note_track(c, pb_bytes(&g)))
        return error_set(c->err, -MRD_ENOMEM, "out of memory");
    return 0;
}

static void note_descriptor(struct cut *c, struct slice descriptor)
{
    struct pb_field counter, f;
    if (descriptor.p && pb_find(descriptor, TRACK_DESCRIPTOR_COUNTER, &counter) &&
        pb_find(pb_bytes(&counter), COUNTER_DESCRIPTOR_IS_INCREMENTAL, &f))
        c->counter_steps |= pb_bool(&f);
}

static int each(void *ctx, struct slice field)
{
    struct cut *c = ctx;
    struct pb_cursor cursor = pb_cursor(field);
    struct pb_field f;
    int64_t ts;
    if (!pb_next(&cursor, &f) || f.id != TRACE_PACKET || f.wire != PB_BYTES)
        return 0;
    c->counts->packets_in++;
    struct slice packet = pb_bytes(&f);
    struct cut_head h = read_head(packet);
    if (h.bad || packet.len > NESTED_MAX) {
        if (c->looking)
            return 0;
        c->counts->damaged++;
        if (c->w->redactor)
            return 0;
        c->counts->packets_out++;
        pb_put_raw(&c->out, field.p, field.len);
        return flush(c);
    }
    struct cut_sequence *s = cut_sequence_of(c, &h);
    if (!s || !cut_sequence_update(c, s, &h))
        return error_set(c->err, -MRD_ENOMEM, "out of memory");
    note_descriptor(c, h.descriptor);
    cut_sequence_owner(s, &h);
    struct verdict v = {.selected = true, .sequence = s};
    bool timed = cut_packet_time(c, s, &h, &ts, &v.steps);
    v.known = cut_machine(c, h.machine_id, &v.machine);
    v.selected = !v.known || is_selected(c, v.machine);
    v.outside = timed && !cut_wants(c->w, ts);
    c->counts->timeless += !timed && h.droppable;
    const size_t before = c->out.n;
    cut_packet(c, &h, &v, packet);
    if (c->looking) {
        cut_interned_use(c, s, before);
        pb_writer_clear(&c->out);
        return c->out.failed ? flush(c) : 0;
    }
    if (c->out.n > before)
        cut_interned_prune(c, s, before);
    if (c->w->redactor && c->out.n > before)
        redact(c, before);
    return c->out.n >= FLUSH_BYTES || c->out.failed ? flush(c) : 0;
}

/* Goes over all packets once, from nothing but the tracks and the names that are known. */
static int walk(struct cut *c, const struct packet_file *in, struct packet_counts *walked)
{
    *walked = (struct packet_counts){0};
    *c->counts = (struct cut_counts){0};
    int rc = packet_file_walk(in, each, c, walked, c->err);
    for (size_t i = 0; i < c->sequences.n; i++)
        vec_free(&c->sequences.p[i].clocks);
    vec_free(&c->sequences);
    vec_free(&c->runs);
    u64map_free(&c->by_id);
    u64map_free(&c->comms);
    u64map_free(&c->mms);
    u64map_free(&c->cpus);
    c->counter_steps = false;
    return rc;
}

int cut_write(struct importer *im, const struct packet_file *in, const struct cut_window *window,
              struct output_file *out, struct cut_counts *counts, struct error *err)
{
    struct cut c = {.im = im, .w = window, .counts = counts, .file = out, .err = err, .secret = hash_secret()};
    struct packet_counts walked = {0};
    int rc = 0;
    if (window->redactor) {
        rc = packet_file_walk(in, gather, window->redactor, &walked, err);
        rc = rc ? rc : redactor_ready(window->redactor, err);
        walked = (struct packet_counts){0};
    }
    if (rc == 0 && window->n_threads) {
        rc = packet_file_walk(in, note_tracks, &c, &walked, err);
        walked = (struct packet_counts){0};
    }
    c.looking = true;
    rc = rc ? rc : walk(&c, in, &walked);
    c.looking = false;
    rc = rc ? rc : walk(&c, in, &walked);
    rc = rc ? rc : flush(&c);
    counts->damaged += walked.damaged;
    counts->tail = walked.tail;
    u64map_free(&c.track_of);
    vec_free(&c.tracks);
    u64map_free(&c.used);
    pb_writer_free(&c.out);
    pb_writer_free(&c.redacted);
    return rc;
}
