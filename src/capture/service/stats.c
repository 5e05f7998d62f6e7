/* TraceStats of a session (spec service 3). */
#include "capture/service/producer.h"
#include "capture/service/session.h"
#include "capture/service/state.h"

static void put_nonzero(struct pb_writer *w, uint32_t id, uint64_t v)
{
    if (v)
        pb_put_varint(w, id, v);
}

static void put_buffer(struct pb_writer *w, const struct trace_buffer_stats *b)
{
    pb_put_varint(w, 12, b->buffer_size);
    const struct {
        uint32_t id;
        uint64_t v;
    } rows[] = {
        {1, b->bytes_written},
        {13, b->bytes_overwritten},
        {14, b->bytes_read},
        {15, b->padding_bytes_written},
        {16, b->padding_bytes_cleared},
        {2, b->chunks_written},
        {10, b->chunks_rewritten},
        {3, b->chunks_overwritten},
        {18, b->chunks_discarded},
        {17, b->chunks_read},
        {11, b->chunks_committed_out_of_order},
        {4, b->write_wrap_count},
        {5, b->patches_succeeded},
        {6, b->patches_failed},
        {7, b->readaheads_succeeded},
        {8, b->readaheads_failed},
        {9, b->abi_violations},
        {19, b->trace_writer_packet_loss},
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
    pb_put_varint(w, 1, session_sequence_id(s, &q->who));
    pb_put_varint(w, 4, buffer);
    pb_put_bytes(w, 2, counts.p, counts.n);
    pb_put_bytes(w, 3, sums.p, sums.n);
    pb_writer_free(&counts);
    pb_writer_free(&sums);
}

void session_put_stats(struct session *s, struct pb_writer *w)
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
        pb_put_bytes(w, 1, m.p, m.n);
    }
    for (unsigned i = 0; histograms && i < CHUNK_HISTOGRAM_BUCKETS - 1; i++)
        pb_put_varint(w, 17, (uint64_t)chunk_histogram_def[i]);
    for (size_t i = 0; histograms && i < s->buffers.n; i++) {
        const struct session_ring *b = s->buffers.p[i].buffer;
        for (size_t k = 0; k < session_ring_sequence_count(b); k++) {
            pb_writer_clear(&m);
            put_writer(s, &m, session_ring_sequence(b, k), i);
            pb_put_bytes(w, 18, m.p, m.n);
        }
    }
    pb_put_varint(w, 2, svc->producers.n);
    pb_put_varint(w, 3, svc->producers_seen);
    pb_put_varint(w, 4, sources);
    pb_put_varint(w, 5, svc->last_instance_id);
    pb_put_varint(w, 6, svc->sessions.n);
    pb_put_varint(w, 7, buffers);
    pb_put_varint(w, 8, s->chunks_discarded);
    pb_put_varint(w, 9, s->patches_discarded);
    pb_put_varint(w, 10, s->invalid_packets);
    pb_put_varint(w, 12, s->flushes_requested);
    pb_put_varint(w, 13, s->flushes_succeeded);
    pb_put_varint(w, 14, s->flushes_failed);
    if (s->final_flush_outcome)
        pb_put_varint(w, 15, (uint64_t)s->final_flush_outcome);
    w->failed |= m.failed;
    pb_writer_free(&m);
}
