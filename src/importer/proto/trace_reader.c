/* Walks over TracePackets: what comes before a packet reaches its handler, and the handler's turn in time
 * order. */
#include "importer/proto/trace_reader.h"

#include "importer/clock/clock_graph.h"
#include "importer/clock/remote_sync.h"
#include "importer/core/sequence.h"
#include "importer/proto/content_analysis.h"
#include "importer/proto/machine_losses.h"
#include "importer/proto/plain_packet.h"
#include "importer/proto/special_packets.h"
#include "importer/proto/trace_end.h"
#include "importer/proto/trace_outline.h"
#include "importer/protovm/protovm.h"
#include "wire/fields.h"

enum {
    MAX_HANDLERS = 254,

    /* The upper half of sort_event.b for a queued packet: which handler its field is for and where the field begins;
     * or, when that does not fit, the packet's length with this bit. */
    QUEUED_HANDLER_BITS = 8,
    QUEUED_OFFSET_MAX = (1 << (31 - QUEUED_HANDLER_BITS)) - 1,
};

/* A packet that waits for a clock. */
struct deferred {
    struct machine_ctx *m;
    struct seq_generation *gen;
    struct slice bytes;
    int64_t byte_offset;
};

#define QUEUED_WHOLE (UINT32_C(1) << 31)

struct proto_reader {
    struct importer *im;
    const struct packet_handler *handlers[MAX_HANDLERS + 1]; /* [1..] */
    uint8_t next[MAX_HANDLERS + 1];                          /* another handler of the same field, 0: none */
    struct packet_fields fields;                             /* first handler of a field */
    unsigned n_handlers;
    VEC(struct deferred)
    deferred;
    proto_inflate_fn inflate;
    void *inflate_ctx;
    proto_keep_fn keep;
    void *keep_ctx;
    bool in_compressed;
    struct trace_end end;
    bool at_end; /* clocks that are unknown now stay unknown */
    bool damaged;
    struct machine_ctx *plain; /* plain packets are of this machine, whose sequences are there; NULL: look first */
    const struct packet_handler *plain_event; /* the one handler of track events; NULL: it is not as simple */
    struct slice file;                        /* in memory as a whole, and not looked through for clock rounds yet */
};

static void add_handlers(struct proto_reader *r, const struct packet_handler *table)
{
    for (; table->field_id; table++) {
        if (table->field_id >= PACKET_DIRECT_FIELDS || r->n_handlers == MAX_HANDLERS)
            continue;
        uint8_t number = (uint8_t)++r->n_handlers;
        r->handlers[number] = table;
        uint8_t *link = &r->fields.handler[table->field_id];
        while (*link)
            link = &r->next[*link];
        *link = number;
    }
}

struct proto_reader *proto_reader_open(struct importer *im, const struct packet_handler *const *tables, size_t n,
                                       const struct packet_handler *const *early, size_t n_early)
{
    struct proto_reader *r = mem_zalloc(sizeof *r);
    if (!r)
        return NULL;
    r->im = im;
    for (size_t i = 0; i < n; i++)
        add_handlers(r, tables[i]);
    r->fields.first_early = r->n_handlers + 1;
    for (size_t i = 0; i < n_early; i++)
        add_handlers(r, early[i]);
    uint8_t event = r->fields.handler[TRACE_PACKET_TRACK_EVENT];
    if (event && !r->next[event] && r->handlers[event]->tokenize && !r->handlers[event]->parse)
        r->plain_event = r->handlers[event];
    return r;
}

void proto_reader_close(struct proto_reader *r)
{
    if (!r)
        return;
    vec_free(&r->deferred);
    mem_free(r);
}

void proto_reader_on_compressed(struct proto_reader *r, proto_inflate_fn inflate, void *ctx)
{
    r->inflate = inflate;
    r->inflate_ctx = ctx;
}

void proto_reader_on_made(struct proto_reader *r, proto_keep_fn keep, void *ctx)
{
    r->keep = keep;
    r->keep_ctx = ctx;
}

bool proto_reader_damaged(const struct proto_reader *r)
{
    return r->damaged;
}

bool proto_reader_has_deferred(const struct proto_reader *r)
{
    return r->deferred.n > 0;
}

/* The clock that the packet's time is of: its own, else the sequence's, else the trace's default. 0: trace time itself.
 * Chrome's first recorders did not say that theirs was MONOTONIC. */
static inline uint32_t effective_clock(const struct packet *p, uint32_t own, bool chrome)
{
    uint32_t clock = own ? own : p->gen->default_clock;
    if (!clock && chrome)
        clock = CLOCK_ID_MONOTONIC;
    return clock ? clock : p->m->sequences->default_clock;
}

static void skip(const struct packet *p, enum stat_key stat)
{
    stats_add(&p->m->st->stats, p->m->id, stat, 1);
}

/* Notes what is wrong with a message of a packet. */
static void log_part(const struct packet *p, enum stat_key stat, struct slice part)
{
    int64_t at = p->byte_offset < 0 ? -1 : p->byte_offset + (part.p - p->bytes.p);
    uint32_t sequence = p->gen->seq->id;
    import_log_number(p->m, stat, COL_NULL, at, sequence ? "packet_sequence_id" : NULL, sequence);
}

enum resolved { RESOLVED, DEFER, DROP };

/* Makes p->ts, which is of that clock, trace time. */
static enum resolved resolve_clock(struct proto_reader *r, struct packet *p, uint32_t clock, bool chrome)
{
    struct clock_id c = packet_clock(p, clock);
    if (clock >= CLOCK_ID_FIRST_SEQUENCE && clock <= CLOCK_ID_LAST_SEQUENCE && p->gen->seq->id == 0) {
        importer_fail(r->im, -MRD_EFORMAT,
                      "packet at byte %lld: sequence-scoped clock %u without trusted_packet_sequence_id",
                      (long long)p->byte_offset, clock);
        skip(p, STAT_tokenizer_skipped_packets);
        return DROP;
    }
    if (clock_graph_to_trace_time(r->im->clocks, c, p->ts, &p->ts) == 0)
        return RESOLVED;
    if (!r->at_end && sorter_can_full_sort(r->im->sorter))
        return DEFER;
    bool kept = chrome && clock == CLOCK_ID_MONOTONIC; /* as it stands: it is better than nothing */
    if (r->at_end || kept)
        clock_graph_record_failure(r->im->clocks, c, p->ts, p->byte_offset);
    else
        packet_log(p, STAT_clock_sync_failure_undeferrable_packet_loss, NULL, 0);
    return kept ? RESOLVED : DROP;
}

static inline enum resolved resolve_own_timestamp(struct proto_reader *r, struct packet *p, uint64_t timestamp,
                                                  uint32_t own_clock, bool chrome)
{
    struct sequences *seqs = p->m->sequences;
    uint32_t clock = effective_clock(p, own_clock, chrome);
    p->has_ts = true;
    p->ts = (int64_t)timestamp;
    enum resolved resolved = clock ? resolve_clock(r, p, clock, chrome) : RESOLVED;
    if (resolved == RESOLVED && p->ts > seqs->latest_ts)
        seqs->latest_ts = p->ts;
    return resolved;
}

static enum resolved resolve_timestamp(struct proto_reader *r, struct packet *p, const struct packet_scan *s)
{
    if (s->has_timestamp)
        return resolve_own_timestamp(r, p, s->timestamp, s->clock_id, s->chrome);
    struct sequences *seqs = p->m->sequences;
    int64_t max = sorter_max_ts(r->im->sorter);
    p->ts = seqs->latest_ts > max ? seqs->latest_ts : max;
    p->has_ts = false;
    return RESOLVED;
}

/* What parse_packet() needs to find the packet's field again. */
static uint32_t queued_place(const struct proto_reader *r, const struct packet *p, const struct packet_scan *s)
{
    size_t offset = (size_t)(s->first_handled - p->bytes.p);
    if (s->n_handled == 1 && offset <= QUEUED_OFFSET_MAX)
        return (uint32_t)offset << QUEUED_HANDLER_BITS | r->fields.handler[s->handled[0].id];
    return QUEUED_WHOLE | (uint32_t)p->bytes.len;
}

static bool machine_waits(const struct proto_reader *r, const struct machine_ctx *m)
{
    return !r->at_end && remote_sync_waits(r->im->remote, m) && sorter_can_full_sort(r->im->sorter);
}

/* Keeps a packet until its clock is known. */
static void defer(struct proto_reader *r, const struct packet *p)
{
    sorter_force_full_sort(r->im->sorter);
    if (!vec_push(&r->deferred, (struct deferred){p->m, p->gen, p->bytes, p->byte_offset}))
        r->im->failed = true;
}

/* The last leg: time, then the handlers of the packet's fields. */
static inline void dispatch(struct proto_reader *r, struct packet *p, const struct packet_scan *s, bool waits)
{
    switch (waits ? DEFER : resolve_timestamp(r, p, s)) {
    case RESOLVED:
        break;
    case DEFER:
        defer(r, p);
        return;
    case DROP:
        return;
    }
    bool push = false;
    for (unsigned i = 0; i < s->n_handled; i++) {
        p->field_id = s->handled[i].id;
        p->field = pb_bytes(&s->handled[i]);
        for (uint8_t h = r->fields.handler[p->field_id]; h; h = r->next[h])
            if (!r->handlers[h]->tokenize || r->handlers[h]->tokenize(p) == TOKENIZE_PUSH)
                push |= r->handlers[h]->parse != NULL;
    }
    if (push)
        sorter_push(
            r->im->sorter, p->m->packet_queue,
            (struct sort_event){p->ts, (uintptr_t)p->bytes.p, (uint64_t)queued_place(r, p, s) << 32 | p->gen->index});
}

static inline struct packet packet_of(struct machine_ctx *m, struct seq_generation *g, struct slice bytes,
                                      int64_t byte_offset, const struct packet_scan *s)
{
    return (struct packet){.m = m,
                           .gen = g,
                           .bytes = bytes,
                           .byte_offset = byte_offset,
                           .trusted_pid = s->trusted_pid,
                           .trusted_uid = s->trusted_uid};
}

/* Counts losses, and brings the sequence's incremental state up to date. False when the packet is to be skipped. */
static bool update_sequence(struct proto_reader *r, struct packet *p, struct sequence *seq, const struct packet_scan *s)
{
    struct sequences *seqs = p->m->sequences;
    bool first = !seq->seen;
    seq->seen = true;
    seq->begun |= s->first_on_sequence;
    if (s->dropped && seq->id && !first) {
        seq->losses++;
        for (unsigned bit = 0; bit < PACKET_LOSS_CAUSES; bit++)
            seq->loss_causes[bit] += s->dropped >> (bit + 1) & 1;
    }
    if (s->has_rare && s->rare.attributes.p) {
        p->field = s->rare.attributes;
        trace_attributes_packet(p);
    }
    if (s->cleared || s->flags & PACKET_FLAG_CLEARED) {
        if (!seq->id)
            packet_log(p, STAT_incremental_state_cleared_missing_sequence_id, NULL, 0);
        else if (!sequence_clear(seqs, seq))
            return false;
    } else if (s->dropped) {
        if (!seq->id)
            packet_log(p, STAT_previous_packet_dropped_missing_sequence_id, NULL, 0);
        else
            sequence_lost(seq);
    }
    if (s->has_rare && s->rare.defaults.p) {
        if (!seq->id)
            log_part(p, STAT_trace_packet_defaults_missing_sequence_id, s->rare.defaults);
        else if (!sequence_set_defaults(seqs, seq, s->rare.defaults))
            return false;
    }
    if (s->has_rare && s->rare.interned.p) {
        if (!seq->id)
            log_part(p, STAT_interned_data_missing_sequence_id, s->rare.interned);
        else if (!seq->valid)
            log_part(p, STAT_interned_data_skipped_incremental_state_invalid, s->rare.interned);
        else if (!sequence_intern(seqs, seq, s->rare.interned))
            return false;
    }
    p->gen = seq->gen;
    return !r->im->failed;
}

static inline bool state_is_there(struct proto_reader *r, struct packet *p, struct sequence *seq, uint32_t flags)
{
    if (!(flags & PACKET_FLAG_NEEDS_STATE))
        return true;
    if (!seq->id) {
        importer_fail(r->im, -MRD_EFORMAT,
                      "packet at byte %lld: needs incremental state but has no trusted_packet_sequence_id",
                      (long long)p->byte_offset);
        return false;
    }
    seq->needing++;
    if (seq->valid)
        return true;
    seq->needing_skipped++;
    packet_log_sequence(p, STAT_packet_skipped_seq_needs_incremental_state_invalid);
    return false;
}

/* Finds the clock rounds of remote machines, once it is known that there are any. */
static void look_ahead(struct proto_reader *r)
{
    if (r->file.len)
        clock_rounds_note(r->im, r->file);
    r->file = slice_of(NULL, 0);
}

void proto_reader_begin_file(struct proto_reader *r, struct slice file)
{
    r->file = file;
    if (r->im->input.base_machine || r->im->input.declared.given)
        look_ahead(r); /* packets without a machine id are a remote machine's */
}

/* Packets that take effect at once, whatever else they hold. False when it is none. */
static bool read_special(struct proto_reader *r, struct packet *p, const struct packet_scan *s)
{
    if (s->rare.clock_snapshot.p) {
        p->field = s->rare.clock_snapshot;
        clock_snapshot_packet(p);
        return true;
    }
    if (s->rare.trace_stats.p) {
        p->field = s->rare.trace_stats;
        trace_stats_packet(p);
    }
    if (s->rare.remote_clock_sync.p) {
        p->field = s->rare.remote_clock_sync;
        remote_clock_sync_packet(p);
        return true;
    }
    if (s->rare.service_event.p) {
        p->field = s->rare.service_event;
        p->ts = (int64_t)s->timestamp;
        p->has_ts = s->has_timestamp;
        service_event_packet(p, s->clock_id);
        return true;
    }
    if (s->rare.early.p) {
        p->field_id = s->rare.early.id;
        p->field = pb_bytes(&s->rare.early);
        r->handlers[r->fields.handler[p->field_id]]->tokenize(p);
        return true;
    }
    return false;
}

/* The order in which the fields of a packet take effect. */
static void read_on_sequence(struct proto_reader *r, struct machine_ctx *m, struct slice bytes,
                             const struct packet_scan *s, int64_t byte_offset)
{
    struct sequences *seqs = machine_sequences(m);
    struct sequence *seq = seqs ? sequences_get(seqs, s->sequence_id) : NULL;
    if (!seq)
        return;
    if (bytes.len >= QUEUED_WHOLE) {
        stats_add(&r->im->st->stats, m->id, STAT_tokenizer_skipped_packets, 1);
        return;
    }
    struct packet p = packet_of(m, seq->gen, bytes, byte_offset, s);
    if (!update_sequence(r, &p, seq, s))
        return;
    if (s->has_rare && read_special(r, &p, s))
        return;
    struct content_analysis *content = content_analysis_of(r->im);
    if (!state_is_there(r, &p, seq, s->flags)) {
        static const char *const key = "skipped_packet";
        if (content)
            content_analysis_packet(
                content, bytes, &(struct content_annotation){{key}, {import_str(r->im, "invalid_incremental_state")}});
        return;
    }
    if (content && !s->track_event)
        content_analysis_packet(content, bytes, NULL);
    dispatch(r, &p, s, machine_waits(r, m));
}

/* A patch of a producer's state: the state is read in its place, and what the patch says of losses stays. */
static bool read_patched(struct proto_reader *r, struct machine_ctx *m, struct slice patch, const struct packet_scan *s,
                         int64_t byte_offset)
{
    struct slice state = protovms_apply(r->im->protovms, m, patch, s->sequence_id, byte_offset);
    if (!state.len || !r->keep)
        return false;
    uint64_t epoch = sorter_epoch(r->im->sorter);
    const uint8_t *kept = r->keep(r->keep_ctx, state);
    if (kept) {
        struct packet_scan made;
        state = slice_of(kept, state.len);
        packet_scan_read(&r->fields, state, &made);
        made.dropped |= s->dropped;
        made.first_on_sequence |= s->first_on_sequence;
        made.rare.early = (struct pb_field){0}; /* programs and descriptors come from the recorder alone */
        if (made.bad)                           /* handed on damaged, and no patch has replaced what is */
            stats_add(&r->im->st->stats, m->id, STAT_tokenizer_skipped_packets, 1);
        else
            read_on_sequence(r, m, state, &made, byte_offset);
    }
    sorter_set_epoch(r->im->sorter, epoch);
    return true;
}

/* Whether plain packets need nothing but their sequence from now on, until one comes that is not plain: only such ones
 * change what is asked for here. */
static bool begin_plain(struct proto_reader *r)
{
    struct importer *im = r->im;
    if (r->end.stats_last || im->protovms || content_analysis_of(im))
        return false;
    struct machine_ctx *m = importer_machine(im, 0);
    if (!m || machine_waits(r, m) || !machine_sequences(m))
        return false;
    im->host_seen = true;
    r->plain = m;
    return true;
}

/* What read_packet() does, for most packets. */
static void read_plain(struct proto_reader *r, struct slice bytes, const struct packet_scan *s, int64_t byte_offset)
{
    struct machine_ctx *m = r->plain;
    struct sequence *seq = sequences_get(m->sequences, s->sequence_id);
    if (!seq)
        return;
    seq->seen = true;
    struct packet p = packet_of(m, seq->gen, bytes, byte_offset, s);
    if (state_is_there(r, &p, seq, s->flags))
        dispatch(r, &p, s, false);
}

/* The same for a track event, which leaves nothing to be pushed. */
static inline void read_plain_event(struct proto_reader *r, struct slice bytes, const struct plain_packet *s,
                                    int64_t byte_offset)
{
    struct machine_ctx *m = r->plain;
    struct sequence *seq = sequences_get(m->sequences, s->sequence_id);
    if (!seq)
        return;
    seq->seen = true;
    struct packet p = {.m = m,
                       .gen = seq->gen,
                       .field = s->event,
                       .field_id = TRACE_PACKET_TRACK_EVENT,
                       .byte_offset = byte_offset,
                       .bytes = bytes,
                       .trusted_pid = s->trusted_pid,
                       .trusted_uid = s->trusted_uid};
    if (!state_is_there(r, &p, seq, s->flags))
        return;
    switch (resolve_own_timestamp(r, &p, s->timestamp, s->clock_id, false)) {
    case RESOLVED:
        r->plain_event->tokenize(&p);
        break;
    case DEFER:
        defer(r, &p);
        break;
    case DROP:
        break;
    }
}

static void read_packet(struct proto_reader *r, struct slice bytes, int64_t byte_offset)
{
    struct plain_packet event;
    struct packet_scan s;
    if (r->plain && r->plain_event && plain_packet_read(bytes, &event)) {
        read_plain_event(r, bytes, &event, byte_offset);
        return;
    }
    if (!bytes.len)
        return;
    packet_scan_read(&r->fields, bytes, &s);
    if (s.plain && bytes.len < QUEUED_WHOLE && (r->plain || begin_plain(r))) {
        read_plain(r, bytes, &s, byte_offset);
        return;
    }
    r->plain = NULL;
    if (s.has_rare && s.rare.compressed.p) {
        if (r->in_compressed) {
            importer_fail(r->im, -MRD_EFORMAT, "compressed packet inside a compressed packet");
        } else if (r->inflate) {
            r->in_compressed = true;
            r->inflate(r->inflate_ctx, s.rare.compressed, s.zstd);
            r->in_compressed = false;
        }
        return;
    }
    trace_end_packet(&r->end, bytes, s.sequence_id, s.trusted_uid_given);
    if (s.machine_id)
        look_ahead(r);
    struct machine_ctx *m = importer_machine(r->im, s.machine_id);
    if (m && s.machine_id)
        m = remote_sync_boot(r->im->remote, m, s.sequence_id, bytes);
    if (!m) {
        stats_add(&r->im->st->stats, 0, STAT_tokenizer_skipped_packets, 1);
        return;
    }
    if (!s.machine_id && !s.sync_marker)
        r->im->host_seen = true;
    if (s.bad) {
        importer_fail(r->im, -MRD_EFORMAT, "packet at byte %lld: malformed (ERR:tp-corrupt)", (long long)byte_offset);
        stats_add(&r->im->st->stats, m->id, STAT_tokenizer_skipped_packets, 1);
        return;
    }
    if (r->im->protovms && s.sequence_id && read_patched(r, m, bytes, &s, byte_offset))
        return;
    read_on_sequence(r, m, bytes, &s, byte_offset);
}

/* The length of the field at p, tag and length included; 0 when it is not there as a whole; SIZE_MAX when it is
 * damaged. *packet gets the payload of a TracePacket. */
static size_t next_field(const uint8_t *p, const uint8_t *end, struct slice *packet)
{
    const uint8_t *at = p;
    uint64_t tag, len = 0, word;
    *packet = slice_of(NULL, 0);
    if (end - p >= 8 && *p == (TRACE_PACKET << 3 | PB_BYTES)) { /* of up to 256 MiB: nearly all */
        memcpy(&word, p, sizeof word);
        unsigned n = plain_number(word, &len);
        if (n && len <= (uint64_t)(end - p) - n) {
            *packet = slice_of(p + n, (size_t)len);
            return n + (size_t)len;
        }
    }
    if (!pb_varint(&at, end, &tag))
        return end - p >= 10 ? SIZE_MAX : 0;
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return SIZE_MAX;
    switch (tag & 7) {
    case PB_VARINT:
        if (!pb_varint(&at, end, &len))
            return end - at >= 10 ? SIZE_MAX : 0;
        return (size_t)(at - p);
    case PB_FIXED64:
        return end - at >= 8 ? (size_t)(at - p) + 8 : 0;
    case PB_FIXED32:
        return end - at >= 4 ? (size_t)(at - p) + 4 : 0;
    case PB_BYTES:
        if (!pb_varint(&at, end, &len))
            return end - at >= 10 ? SIZE_MAX : 0;
        if (len > (uint64_t)(end - at))
            return 0;
        if (tag >> 3 == TRACE_PACKET)
            *packet = slice_of(at, (size_t)len);
        return (size_t)(at - p) + (size_t)len;
    default:
        return SIZE_MAX;
    }
}

size_t proto_reader_packets(struct proto_reader *r, struct slice bytes, int64_t byte_offset)
{
    const uint8_t *p = bytes.p, *end = bytes.p + bytes.len;
    r->plain = NULL;
    while (p < end && !r->damaged && !r->im->failed) {
        struct slice packet;
        size_t len = next_field(p, end, &packet);
        if (len == 0)
            break;
        int64_t at = byte_offset < 0 ? -1 : byte_offset + ((packet.p ? packet.p : p) - bytes.p);
        if (len == SIZE_MAX) {
            importer_fail(r->im, -MRD_EFORMAT, "packet at byte %lld: unexpected wire type (ERR:tp-corrupt)",
                          (long long)at);
            r->damaged = true;
            break;
        }
        if (packet.len)
            read_packet(r, packet, at);
        p += len;
    }
    return r->damaged ? bytes.len : (size_t)(p - bytes.p);
}

void proto_reader_note_tail(struct proto_reader *r, uint64_t bytes)
{
    r->end.cut_bytes += bytes;
}

void proto_reader_finish_file(struct proto_reader *r)
{
    trace_end_file(&r->end, r->im);
    remote_sync_end_file(r->im->remote);
    r->at_end = true;
    for (size_t i = 0; i < r->deferred.n && !r->im->failed; i++) {
        struct deferred d = r->deferred.p[i];
        struct packet_scan s;
        packet_scan_read(&r->fields, d.bytes, &s);
        struct packet p = packet_of(d.m, d.gen, d.bytes, d.byte_offset, &s);
        dispatch(r, &p, &s, machine_waits(r, d.m));
    }
    vec_clear(&r->deferred);
    machine_losses_end_file(r->im);
    protovms_close(r->im->protovms);
    r->im->protovms = NULL;
    r->file = slice_of(NULL, 0);
    r->at_end = false;
    r->damaged = false; /* what comes next is another file */
}

static void parse_field(const struct proto_reader *r, struct packet *p, uint8_t handler, struct slice field)
{
    p->field_id = r->handlers[handler]->field_id;
    p->field = field;
    for (uint8_t h = handler; h; h = r->next[h])
        if (r->handlers[h]->parse)
            r->handlers[h]->parse(p);
}

/* The payload of the field whose tag is at `p`; packet_scan_read() has been here. */
static struct slice queued_field(const uint8_t *p)
{
    enum { VARINT_MAX = 10 };
    uint64_t tag, len;
    bool is_message =
        pb_varint(&p, p + VARINT_MAX, &tag) && (tag & 7) == PB_BYTES && pb_varint(&p, p + VARINT_MAX, &len);
    return is_message ? slice_of(p, (size_t)len) : slice_of(NULL, 0);
}

static void parse_packet(const struct proto_reader *r, const struct sort_event *e)
{
    const uint8_t *bytes = (const uint8_t *)(uintptr_t)e->a;
    uint32_t place = (uint32_t)(e->b >> 32);
    struct packet p = {.gen = generation_at(r->im, (uint32_t)e->b), .ts = e->ts, .byte_offset = -1};
    p.m = p.gen->machine;
    if (importer_bytes_stable(r->im, bytes))
        p.byte_offset = (int64_t)((uintptr_t)bytes - r->im->stable_first);
    if (!(place & QUEUED_WHOLE)) {
        uint8_t handler = place & ((1 << QUEUED_HANDLER_BITS) - 1);
        parse_field(r, &p, handler, queued_field(bytes + (place >> QUEUED_HANDLER_BITS)));
        return;
    }
    struct packet_scan s; /* several fields in one packet */
    packet_scan_read(&r->fields, slice_of(bytes, place & ~QUEUED_WHOLE), &s);
    for (unsigned i = 0; i < s.n_handled; i++)
        parse_field(r, &p, r->fields.handler[s.handled[i].id], pb_bytes(&s.handled[i]));
}

static void parse_packets(void *owner, const struct sort_event *events, size_t n)
{
    const struct machine_ctx *m = owner;
    for (size_t i = 0; i < n; i++)
        parse_packet(m->im->proto, &events[i]);
}

bool proto_machine_open(struct machine_ctx *m)
{
    m->packet_queue = sorter_add_queue(m->im->sorter, parse_packets, m);
    return m->packet_queue != UINT32_MAX;
}
