/* Which packets go out of a session, in which order. */
#include "capture/common/machine.h"
#include "capture/service/packet_check.h"
#include "capture/service/relay.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "wire/fields.h"

static const uint8_t sync_marker[16] = {0x82, 0x47, 0x7a, 0x76, 0xb2, 0x8d, 0x42, 0xba,
                                        0x81, 0xdc, 0x33, 0x32, 0x6d, 0x57, 0xa0, 0x79};

uint32_t session_sequence_id(struct session *s, const struct trace_writer_identity *who)
{
    uint64_t key = (uint64_t)who->machine_id << 32 | (uint32_t)who->producer_id << 16 | who->writer_id;
    bool added;
    uint64_t *v = u64map_put(&s->sequence_ids, key, &added);
    if (!v)
        return 0;
    if (added)
        *v = ++s->last_sequence_id;
    return (uint32_t)*v;
}

/* ---- packets of the service itself ---- */

/* Who wrote it, and that its timestamps are of BOOTTIME. */
void session_put_trusted(const struct session *s, struct pb_writer *w, bool clock)
{
    pb_put_varint(w, TRACE_PACKET_TRUSTED_UID, s->service->uid);
    pb_put_varint(w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1);
    if (clock)
        pb_put_varint(w, TRACE_PACKET_TIMESTAMP_CLOCK_ID, CLOCK_ID_BOOTTIME);
}

void session_emit(struct batch *b, struct pb_writer *w)
{
    struct slice piece = pb_written(w);
    if (!w->failed)
        batch_add(b, &piece, 1, slice_of(NULL, 0));
    w->failed = false;
    pb_writer_clear(w);
}

static void emit_snapshot(struct session *s, struct batch *b, struct pb_writer *w, const struct clock_readings *snap)
{
    const Mrd__TraceConfig__BuiltinDataSource *c = s->config->builtin_data_sources;
    struct pb_writer m = {0};
    clock_snapshot_put(&m, snap,
                       c && c->primary_trace_clock ? (uint32_t)c->primary_trace_clock : (uint32_t)CLOCK_ID_BOOTTIME);
    pb_put_bytes(w, TRACE_PACKET_CLOCK_SNAPSHOT, m.p, m.n);
    session_put_trusted(s, w, true);
    session_emit(b, w);
    pb_writer_free(&m);
}

static void emit_clocks(struct session *s, struct batch *b, struct pb_writer *w)
{
    if (s->has_initial_snapshot && !s->initial_snapshot_emitted) {
        s->initial_snapshot_emitted = true;
        emit_snapshot(s, b, w, &s->initial_snapshot);
    }
    for (unsigned i = 0; i < s->n_snapshots; i++)
        emit_snapshot(s, b, w, &s->snapshots[i]);
    s->n_snapshots = 0;
    if (s->want_sync_marker) {
        s->want_sync_marker = false;
        session_put_trusted(s, w, false);
        pb_put_bytes(w, TRACE_PACKET_SYNCHRONIZATION_MARKER, sync_marker, sizeof sync_marker);
        session_emit(b, w);
    }
}

static void put_trigger(struct pb_writer *w, const struct trigger_hit *t)
{
    pb_put_str(w, TRIGGER_TRIGGER_NAME, t->name);
    if (t->producer_name)
        pb_put_str(w, TRIGGER_PRODUCER_NAME, t->producer_name);
    pb_put_i64(w, TRIGGER_TRUSTED_PRODUCER_UID, (int32_t)t->uid);
    pb_put_varint(w, TRIGGER_STOP_DELAY_MS, t->stop_delay_ms);
}

static void emit_trigger(struct session *s, struct batch *b, struct pb_writer *w, const struct trigger_hit *t,
                         uint32_t field)
{
    struct pb_writer m = {0};
    put_trigger(&m, t);
    pb_put_varint(w, TRACE_PACKET_TIMESTAMP, t->ts);
    session_put_trusted(s, w, true);
    pb_put_bytes(w, field, m.p, m.n);
    session_emit(b, w);
    pb_writer_free(&m);
}

static void emit_config(struct session *s, struct batch *b, struct pb_writer *w)
{
    if (s->config->builtin_data_sources && s->config->builtin_data_sources->disable_trace_config)
        return;
    if (!s->did_config) {
        s->did_config = true;
        session_put_trusted(s, w, true);
        pb_put_bytes(w, TRACE_PACKET_TRACE_CONFIG, s->config_bytes.p, s->config_bytes.len);
        session_emit(b, w);
        if (s->clone_trigger)
            emit_trigger(s, b, w, s->clone_trigger, 113);
    }
    for (size_t i = 0; i < s->triggers.n; i++) {
        if (s->triggers.p[i].emitted)
            continue;
        s->triggers.p[i].emitted = true;
        emit_trigger(s, b, w, &s->triggers.p[i], TRACE_PACKET_TRIGGER);
    }
}

static void emit_once(struct session *s, struct batch *b, struct pb_writer *w)
{
    if (s->did_once)
        return;
    s->did_once = true;
    struct pb_writer m = {0};
    pb_put_varint(&m, TRACE_UUID_LSB, s->uuid_lsb);
    pb_put_varint(&m, TRACE_UUID_MSB, s->uuid_msb);
    session_put_trusted(s, w, true);
    pb_put_bytes(w, TRACE_PACKET_TRACE_UUID, m.p, m.n);
    session_emit(b, w);

    pb_writer_clear(&m);
    for (size_t i = 0; i < s->buffers.n; i++) { /* trace_provenance: which producer wrote which sequence where */
        const struct session_ring *buf = s->buffers.p[i].buffer;
        struct pb_writer list = {0};
        const struct trace_sequence_stats *q;
        for (struct session_ring_place at = {0}; (q = session_ring_next(buf, &at));) {
            uint8_t e[24];
            size_t n = 0;
            e[n++] = TRACE_PROVENANCE_SEQUENCE_ID << 3;
            n += pb_encode_varint(e + n, session_sequence_id(s, &q->who));
            e[n++] = TRACE_PROVENANCE_SEQUENCE_PRODUCER_ID << 3;
            n += pb_encode_varint(e + n, q->who.producer_id);
            pb_put_bytes(&list, TRACE_PROVENANCE_BUFFER_SEQUENCES, e, n);
        }
        pb_put_bytes(&m, TRACE_PROVENANCE_BUFFERS, list.p, list.n);
        pb_writer_free(&list);
    }
    pb_put_varint(w, TRACE_PACKET_TIMESTAMP, clock_boot_ns());
    pb_put_bytes(w, TRACE_PACKET_TRACE_PROVENANCE, m.p, m.n);
    session_put_trusted(s, w, true);
    session_emit(b, w);

    if (!s->config->builtin_data_sources || !s->config->builtin_data_sources->disable_system_info) {
        pb_writer_clear(&m);
        machine_put_system_info(&m);
        char name[MACHINE_TEXT_MAX];
        machine_display_name(s->service->machine_name, name, sizeof name);
        pb_put_str(&m, SYSTEM_INFO_MACHINE_NAME, name);
        session_put_trusted(s, w, true);
        pb_put_bytes(w, TRACE_PACKET_SYSTEM_INFO, m.p, m.n);
        session_emit(b, w);
    }
    pb_writer_free(&m);
}

static void emit_lifecycle(struct session *s, struct batch *b, struct pb_writer *w)
{
    bool off = s->config->builtin_data_sources && s->config->builtin_data_sources->disable_service_events;
    for (size_t i = 0; i < s->events.n; i++) { /* they are in order of time */
        struct lifecycle_event *e = &s->events.p[i];
        if (!off) {
            struct pb_writer m = {0};
            if (e->body)
                pb_put_bytes(&m, e->field, e->body, e->body_len);
            else
                pb_put_varint(&m, e->field, e->value);
            pb_put_varint(w, TRACE_PACKET_TIMESTAMP, e->ts);
            session_put_trusted(s, w, true);
            pb_put_bytes(w, TRACE_PACKET_SERVICE_EVENT, m.p, m.n);
            session_emit(b, w);
            pb_writer_free(&m);
        }
        mem_free(e->body);
    }
    vec_clear(&s->events);
}

/* ---- packets of producers ---- */

static void emit_data(struct session *s, struct batch *b)
{
    struct trace_packet *p = &s->packet;
    if (!packet_check(p->slices.p, p->slices.n)) {
        s->invalid_packets++;
        return;
    }
    uint8_t buf[64];
    struct pb_writer tail = {.p = buf, .cap = sizeof buf}; /* never grows: five fields of at most 12 bytes */
    pb_put_i64(&tail, TRACE_PACKET_TRUSTED_UID, (int32_t)p->who.uid);
    pb_put_varint(&tail, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, session_sequence_id(s, &p->who));
    if (p->who.pid >= 0)
        pb_put_i64(&tail, TRACE_PACKET_TRUSTED_PID, p->who.pid);
    if (p->who.machine_id)
        pb_put_varint(&tail, TRACE_PACKET_MACHINE_ID, p->who.machine_id);
    if (p->loss)
        pb_put_varint(&tail, TRACE_PACKET_PREVIOUS_PACKET_DROPPED, p->loss);
    batch_add(b, p->slices.p, p->slices.n, pb_written(&tail));
}

/* Reads on from all buffers; true when the threshold stopped it. */
static bool read_buffers(struct session *s, struct batch *b, size_t threshold)
{
    bool final = s->state == SESSION_DISABLED || s->state == SESSION_CLONED;
    for (size_t i = 0; i < s->buffers.n; i++) {
        session_ring_begin_read(s->buffers.p[i].buffer, final);
        while (session_ring_read(s->buffers.p[i].buffer, &s->packet)) {
            emit_data(s, b);
            if (b->bytes.n >= threshold)
                return true;
        }
    }
    return false;
}

static void compress(struct session *s, struct batch *b)
{
    const Mrd__TraceConfig *c = s->config;
    enum batch_compression how = BATCH_PLAIN;
    int level = 0;
    struct error err;
    if (c->compression && c->compression->zstd) {
        how = BATCH_ZSTD;
        level = c->compression->zstd->level;
    } else if ((c->compression && c->compression->deflate) || c->compression_type == 1) {
        how = BATCH_DEFLATE;
    }
    if (how != BATCH_PLAIN && b->packets.n && batch_compress(b, how, level, &err) != 0)
        log_line("traced: session %llu: %s", (unsigned long long)s->id, err.text);
}

/* What was lost until now, and the mark that everything up to here has been read. */
static void emit_end(struct session *s, struct batch *b, struct pb_writer *w)
{
    problems_emit(s, b, w);
    session_lifecycle(s, LIFECYCLE_READ_COMPLETED, false);
    emit_lifecycle(s, b, w);
    if (!s->want_stats)
        return;
    s->want_stats = false;
    struct pb_writer m = {0};
    session_put_stats(s, &m, SIZE_MAX);
    relay_emit_losses(s, b, w);
    session_put_trusted(s, w, true);
    pb_put_bytes(w, TRACE_PACKET_TRACE_STATS, m.p, m.n);
    session_emit(b, w);
    pb_writer_free(&m);
}

bool session_read(struct session *s, struct batch *b, size_t threshold)
{
    struct pb_writer w = {0};
    if (session_awaits_trigger(s))
        return false;
    emit_clocks(s, b, &w);
    emit_config(s, b, &w);
    emit_once(s, b, &w);
    relay_emit_system_info(s, b, &w);
    emit_lifecycle(s, b, &w);
    concurrent_emit(s, b, &w);
    relay_emit_clocks(s, b, &w);
    bool more = read_buffers(s, b, threshold);
    if (!more)
        emit_end(s, b, &w);
    pb_writer_free(&w);
    compress(s, b);
    return more;
}

void session_read_tail(struct session *s, struct batch *b)
{
    struct pb_writer w = {0};
    emit_lifecycle(s, b, &w);
    emit_end(s, b, &w);
    pb_writer_free(&w);
    compress(s, b);
}
