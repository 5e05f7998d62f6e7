/* TraceStats of a session. */
#include "capture/service/producers.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "wire/fields.h"

enum { TOTALS_BYTES = 256 }; /* at most, of what stands behind the writers */

static void put_nonzero(struct pb_writer *w, uint32_t id, uint64_t v)
{
    if (v)
        pb_put_varint(w, id, v);
}

static void put_buffer(struct pb_writer *w, const struct trace_buffer_stats *b)
{
    pb_put_varint(w, TRACE_STATS_BUFFER_STATS_BUFFER_SIZE, b->buffer_size);
    const struct {
        uint32_t id;
        uint64_t v;
    } rows[] = {
        {TRACE_STATS_BUFFER_STATS_BYTES_WRITTEN, b->bytes_written},
        {TRACE_STATS_BUFFER_STATS_BYTES_OVERWRITTEN, b->bytes_overwritten},
        {TRACE_STATS_BUFFER_STATS_BYTES_READ, b->bytes_read},
        {TRACE_STATS_BUFFER_STATS_PADDING_BYTES_WRITTEN, b->padding_bytes_written},
        {TRACE_STATS_BUFFER_STATS_PADDING_BYTES_CLEARED, b->padding_bytes_cleared},
        {TRACE_STATS_BUFFER_STATS_CHUNKS_WRITTEN, b->chunks_written},
        {TRACE_STATS_BUFFER_STATS_CHUNKS_REWRITTEN, b->chunks_rewritten},
        {TRACE_STATS_BUFFER_STATS_CHUNKS_OVERWRITTEN, b->chunks_overwritten},
        {TRACE_STATS_BUFFER_STATS_CHUNKS_DISCARDED, b->chunks_discarded},
        {TRACE_STATS_BUFFER_STATS_CHUNKS_READ, b->chunks_read},
        {TRACE_STATS_BUFFER_STATS_CHUNKS_COMMITTED_OUT_OF_ORDER, b->chunks_committed_out_of_order},
        {TRACE_STATS_BUFFER_STATS_WRITE_WRAP_COUNT, b->write_wrap_count},
        {TRACE_STATS_BUFFER_STATS_PATCHES_SUCCEEDED, b->patches_succeeded},
        {TRACE_STATS_BUFFER_STATS_PATCHES_FAILED, b->patches_failed},
        {TRACE_STATS_BUFFER_STATS_READAHEADS_SUCCEEDED, b->readaheads_succeeded},
        {TRACE_STATS_BUFFER_STATS_READAHEADS_FAILED, b->readaheads_failed},
        {TRACE_STATS_BUFFER_STATS_ABI_VIOLATIONS, b->abi_violations},
        {TRACE_STATS_BUFFER_STATS_TRACE_WRITER_PACKET_LOSS, b->trace_writer_packet_loss},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        put_nonzero(w, rows[i].id, rows[i].v);
}

static void put_writer(struct session *s, struct pb_writer *w, const struct trace_sequence_stats *q, size_t buffer)
{
    struct pb_writer counts = {0}, sums = {0};
    for (unsigned i = 0; i < CHUNK_HISTOGRAM_BUCKETS; i++) {
        pb_put_raw_varint(&counts, q->histogram_counts[i]);
        pb_put_raw_varint(&sums, (uint64_t)q->histogram_sums[i]);
    }
    pb_put_varint(w, TRACE_STATS_WRITER_STATS_SEQUENCE_ID, session_sequence_id(s, &q->who));
    pb_put_varint(w, TRACE_STATS_WRITER_STATS_BUFFER, buffer);
    pb_put_bytes(w, TRACE_STATS_WRITER_STATS_CHUNK_PAYLOAD_HISTOGRAM_COUNTS, counts.p, counts.n);
    pb_put_bytes(w, TRACE_STATS_WRITER_STATS_CHUNK_PAYLOAD_HISTOGRAM_SUM, sums.p, sums.n);
    pb_writer_free(&counts);
    pb_writer_free(&sums);
}

/* Of each writer how full its chunks were. */
static void put_writers(struct session *s, struct pb_writer *w)
{
    struct pb_writer m = {0};
    for (unsigned i = 0; i < CHUNK_HISTOGRAM_BUCKETS - 1; i++)
        pb_put_varint(w, TRACE_STATS_CHUNK_PAYLOAD_HISTOGRAM_DEF, (uint64_t)chunk_histogram_def[i]);
    for (size_t i = 0; i < s->buffers.n; i++) {
        const struct session_ring *b = s->buffers.p[i].buffer;
        const struct trace_sequence_stats *q;
        for (struct session_ring_place at = {0}; (q = session_ring_next(b, &at));) {
            pb_writer_clear(&m);
            put_writer(s, &m, q, i);
            pb_put_bytes(w, TRACE_STATS_WRITER_STATS, m.p, m.n);
        }
    }
    w->failed |= m.failed;
    pb_writer_free(&m);
}

void session_put_stats(struct session *s, struct pb_writer *w, size_t max)
{
    struct service *svc = s->service;
    const Mrd__TraceConfig__BuiltinDataSource *c = s->config->builtin_data_sources;
    bool histograms = !(c && c->disable_chunk_usage_histograms);
    struct pb_writer m = {0};
    uint64_t sources = 0, buffers = 0;
    for (size_t i = 0; i < svc->producers.n; i++)
        sources += svc->producers.p[i]->sources.n;
    for (size_t i = 0; i < svc->sessions.n; i++)
        buffers += svc->sessions.p[i]->buffers.n;
    for (size_t i = 0; i < s->buffers.n; i++) {
        pb_writer_clear(&m);
        struct trace_buffer_stats sum = session_ring_stats(s->buffers.p[i].buffer);
        put_buffer(&m, &sum);
        pb_put_bytes(w, TRACE_STATS_BUFFER_STATS, m.p, m.n);
    }
    pb_writer_clear(&m);
    if (histograms)
        put_writers(s, &m);
    if (w->n + m.n + TOTALS_BYTES <= max)
        pb_put_raw(w, m.p, m.n);
    pb_put_varint(w, TRACE_STATS_PRODUCERS_CONNECTED, svc->producers.n);
    pb_put_varint(w, TRACE_STATS_PRODUCERS_SEEN, svc->producers_seen);
    pb_put_varint(w, TRACE_STATS_DATA_SOURCES_REGISTERED, sources);
    pb_put_varint(w, TRACE_STATS_DATA_SOURCES_SEEN, svc->last_instance_id);
    pb_put_varint(w, TRACE_STATS_TRACING_SESSIONS, svc->sessions.n);
    pb_put_varint(w, TRACE_STATS_TOTAL_BUFFERS, buffers);
    pb_put_varint(w, TRACE_STATS_CHUNKS_DISCARDED, s->chunks_discarded);
    pb_put_varint(w, TRACE_STATS_PATCHES_DISCARDED, s->patches_discarded);
    pb_put_varint(w, TRACE_STATS_INVALID_PACKETS, s->invalid_packets);
    pb_put_varint(w, TRACE_STATS_FLUSHES_REQUESTED, s->flushes_requested);
    pb_put_varint(w, TRACE_STATS_FLUSHES_SUCCEEDED, s->flushes_succeeded);
    pb_put_varint(w, TRACE_STATS_FLUSHES_FAILED, s->flushes_failed);
    if (s->final_flush_outcome)
        pb_put_varint(w, TRACE_STATS_FINAL_FLUSH_OUTCOME, (uint64_t)s->final_flush_outcome);
    w->failed |= m.failed;
    pb_writer_free(&m);
}
