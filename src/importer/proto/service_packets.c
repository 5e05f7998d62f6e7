/* The packets of the tracing service about itself: life-cycle events and TraceStats. */
#include "importer/clock/clock_graph.h"
#include "importer/core/metadata.h"
#include "importer/core/sequence.h"
#include "importer/proto/special_packets.h"
#include "importer/sort/sorter.h"
#include "wire/fields.h"

static void slow_sources(struct packet *p, struct slice sources, bool starting)
{
    struct pb_cursor c = pb_cursor(sources);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id != TRACING_SERVICE_EVENT_DATA_SOURCES_DATA_SOURCE)
            continue;
        struct pb_field producer, source;
        bool has_producer =
                 pb_find(pb_bytes(&f), TRACING_SERVICE_EVENT_DATA_SOURCES_DATA_SOURCE_PRODUCER_NAME, &producer),
             has_source =
                 pb_find(pb_bytes(&f), TRACING_SERVICE_EVENT_DATA_SOURCES_DATA_SOURCE_DATA_SOURCE_NAME, &source);
        struct slice who = has_producer ? pb_bytes(&producer) : slice_of("", 0);
        struct slice what = has_source ? pb_bytes(&source) : slice_of("", 0);
        if (starting)
            metadata_str(p->m->im, p->m, METADATA_slow_start_data_source,
                         strpool_printf(&p->m->st->strings, "%.*s %.*s", (int)(who.len & 0xffff), (const char *)who.p,
                                        (int)(what.len & 0xffff), (const char *)what.p));
    }
}

void service_event_packet(struct packet *p, uint32_t clock)
{
    struct importer *im = p->m->im;
    int64_t ts = p->ts;
    struct clock_id from = packet_clock(p, clock ? clock : CLOCK_ID_BOOTTIME);
    if (clock_graph_to_trace_time(im->clocks, from, p->ts, &ts) != 0)
        ts = p->ts;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case TRACING_SERVICE_EVENT_ALL_DATA_SOURCES_STARTED:
            metadata_int(im, p->m, METADATA_all_data_source_started_ns, ts);
            break;
        case TRACING_SERVICE_EVENT_TRACING_STARTED:
            metadata_int(im, p->m, METADATA_tracing_started_ns, ts);
            break;
        case TRACING_SERVICE_EVENT_ALL_DATA_SOURCES_FLUSHED:
            metadata_int(im, p->m, METADATA_all_data_source_flushed_ns, ts);
            sorter_on_flush(im->sorter);
            break;
        case TRACING_SERVICE_EVENT_READ_TRACING_BUFFERS_COMPLETED:
            sorter_on_read_buffers(im->sorter);
            break;
        case TRACING_SERVICE_EVENT_TRACING_DISABLED:
            metadata_int(im, p->m, METADATA_tracing_disabled_ns, ts);
            break;
        case TRACING_SERVICE_EVENT_SLOW_STARTING_DATA_SOURCES:
            slow_sources(p, pb_bytes(&f), true);
            break;
        case TRACING_SERVICE_EVENT_CLONE_STARTED:
            stats_set(&im->st->stats, p->m->id, STAT_traced_clone_started_timestamp_ns, ts);
            break;
        case TRACING_SERVICE_EVENT_BUFFER_CLONED:
            stats_set_idx(&im->st->stats, p->m->id, STAT_traced_buf_clone_done_timestamp_ns, (int32_t)pb_u32(&f), ts);
            break;
        }
    }
}

struct field_stat {
    uint32_t field;
    enum stat_key stat;
};

static const struct field_stat buffer_stats[] = {
    {TRACE_STATS_BUFFER_STATS_BYTES_WRITTEN, STAT_traced_buf_bytes_written},
    {TRACE_STATS_BUFFER_STATS_CHUNKS_WRITTEN, STAT_traced_buf_chunks_written},
    {TRACE_STATS_BUFFER_STATS_CHUNKS_OVERWRITTEN, STAT_traced_buf_chunks_overwritten},
    {TRACE_STATS_BUFFER_STATS_WRITE_WRAP_COUNT, STAT_traced_buf_write_wrap_count},
    {TRACE_STATS_BUFFER_STATS_PATCHES_SUCCEEDED, STAT_traced_buf_patches_succeeded},
    {TRACE_STATS_BUFFER_STATS_PATCHES_FAILED, STAT_traced_buf_patches_failed},
    {TRACE_STATS_BUFFER_STATS_READAHEADS_SUCCEEDED, STAT_traced_buf_readaheads_succeeded},
    {TRACE_STATS_BUFFER_STATS_READAHEADS_FAILED, STAT_traced_buf_readaheads_failed},
    {TRACE_STATS_BUFFER_STATS_ABI_VIOLATIONS, STAT_traced_buf_abi_violations},
    {TRACE_STATS_BUFFER_STATS_CHUNKS_REWRITTEN, STAT_traced_buf_chunks_rewritten},
    {TRACE_STATS_BUFFER_STATS_CHUNKS_COMMITTED_OUT_OF_ORDER, STAT_traced_buf_chunks_committed_out_of_order},
    {TRACE_STATS_BUFFER_STATS_BUFFER_SIZE, STAT_traced_buf_buffer_size},
    {TRACE_STATS_BUFFER_STATS_BYTES_OVERWRITTEN, STAT_traced_buf_bytes_overwritten},
    {TRACE_STATS_BUFFER_STATS_BYTES_READ, STAT_traced_buf_bytes_read},
    {TRACE_STATS_BUFFER_STATS_PADDING_BYTES_WRITTEN, STAT_traced_buf_padding_bytes_written},
    {TRACE_STATS_BUFFER_STATS_PADDING_BYTES_CLEARED, STAT_traced_buf_padding_bytes_cleared},
    {TRACE_STATS_BUFFER_STATS_CHUNKS_READ, STAT_traced_buf_chunks_read},
    {TRACE_STATS_BUFFER_STATS_CHUNKS_DISCARDED, STAT_traced_buf_chunks_discarded},
    {TRACE_STATS_BUFFER_STATS_TRACE_WRITER_PACKET_LOSS, STAT_traced_buf_trace_writer_packet_loss},
    {TRACE_STATS_BUFFER_STATS_CHUNKS_RELOCATED, STAT_traced_buf_chunks_relocated},
};

static const struct field_stat trace_stats[] = {
    {TRACE_STATS_PRODUCERS_CONNECTED, STAT_traced_producers_connected},
    {TRACE_STATS_PRODUCERS_SEEN, STAT_traced_producers_seen},
    {TRACE_STATS_DATA_SOURCES_REGISTERED, STAT_traced_data_sources_registered},
    {TRACE_STATS_DATA_SOURCES_SEEN, STAT_traced_data_sources_seen},
    {TRACE_STATS_TRACING_SESSIONS, STAT_traced_tracing_sessions},
    {TRACE_STATS_TOTAL_BUFFERS, STAT_traced_total_buffers},
    {TRACE_STATS_CHUNKS_DISCARDED, STAT_traced_chunks_discarded},
    {TRACE_STATS_PATCHES_DISCARDED, STAT_traced_patches_discarded},
    {TRACE_STATS_FLUSHES_REQUESTED, STAT_traced_flushes_requested},
    {TRACE_STATS_FLUSHES_SUCCEEDED, STAT_traced_flushes_succeeded},
    {TRACE_STATS_FLUSHES_FAILED, STAT_traced_flushes_failed},
};

static const struct field_stat filter_stats[] = {
    {TRACE_STATS_FILTER_STATS_INPUT_PACKETS, STAT_filter_input_packets},
    {TRACE_STATS_FILTER_STATS_INPUT_BYTES, STAT_filter_input_bytes},
    {TRACE_STATS_FILTER_STATS_OUTPUT_BYTES, STAT_filter_output_bytes},
    {TRACE_STATS_FILTER_STATS_ERRORS, STAT_filter_errors},
    {TRACE_STATS_FILTER_STATS_TIME_TAKEN_NS, STAT_filter_time_taken_ns},
};

static const enum stat_key loss_stats[PACKET_LOSS_CAUSES] = {
    STAT_traced_buf_data_loss_read_gap,
    STAT_traced_buf_data_loss_chunk_corrupted,
    STAT_traced_buf_data_loss_orphan_continuation,
    STAT_traced_buf_data_loss_reassembly_gap,
    STAT_traced_buf_data_loss_reassembly_broken_chain,
    STAT_traced_buf_data_loss_overwrite,
    STAT_traced_buf_data_loss_writer_abort,
    STAT_traced_buf_data_loss_smb_full,
};

static bool find_stat(const struct field_stat *table, size_t n, uint32_t field, enum stat_key *stat)
{
    for (size_t i = 0; i < n; i++) {
        if (table[i].field == field) {
            *stat = table[i].stat;
            return true;
        }
    }
    return false;
}
#define FIND_STAT(table, field, stat) find_stat(table, sizeof(table) / sizeof *(table), field, stat)

static void one_buffer(struct packet *p, int32_t buffer, struct slice message)
{
    struct stats *st = &p->m->st->stats;
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    for (size_t i = 0; i < sizeof buffer_stats / sizeof *buffer_stats; i++) /* absent fields are zeroes that count */
        stats_set_idx(st, p->m->id, buffer_stats[i].stat, buffer, 0);
    uint64_t overwritten = 0;
    while (pb_next(&c, &f)) {
        enum stat_key stat;
        if (FIND_STAT(buffer_stats, f.id, &stat))
            stats_set_idx(st, p->m->id, stat, buffer, pb_i64(&f));
        if (f.id == TRACE_STATS_BUFFER_STATS_BYTES_OVERWRITTEN)
            overwritten = pb_u64(&f);
    }
    if (p->m->sequences->streams_into_file && overwritten) /* what is streamed into a file should never be */
        stats_set_idx(st, p->m->id, STAT_long_trace_mode_bytes_overwritten, buffer, (int64_t)overwritten);
}

/* A sum of zero counts too: it says that the buffer lost nothing. */
static void add_to(struct u64map *sums, uint64_t key, uint64_t n)
{
    uint64_t *v = u64map_put(sums, key, NULL);
    if (v)
        *v += n;
}

/* WriterStats says which buffer a sequence wrote to: the losses counted for the sequence become the buffer's. */
static void writer_losses(struct packet *p, struct slice message, struct u64map *sums)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    uint64_t id = 0;
    uint32_t buffer = 0;
    while (pb_next(&c, &f)) {
        if (f.id == TRACE_STATS_WRITER_STATS_SEQUENCE_ID)
            id = pb_u64(&f);
        else if (f.id == TRACE_STATS_WRITER_STATS_BUFFER)
            buffer = pb_u32(&f);
    }
    uint64_t *found = u64map_get(&p->m->sequences->by_id, id);
    if (!found)
        return;
    struct sequence *seq = (struct sequence *)(uintptr_t)*found;
    seq->losses_told = seq->losses;
    add_to(sums, (uint64_t)STAT_traced_buf_sequence_packet_loss << 32 | buffer, seq->losses);
    for (unsigned i = 0; i < PACKET_LOSS_CAUSES; i++)
        add_to(sums, (uint64_t)loss_stats[i] << 32 | buffer, seq->loss_causes[i]);
    add_to(sums, (uint64_t)STAT_traced_buf_incremental_sequences_dropped << 32 | buffer,
           seq->needing && seq->needing == seq->needing_skipped);
}

static void filter(struct packet *p, struct slice message)
{
    struct stats *st = &p->m->st->stats;
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    int32_t buffer = 0;
    while (pb_next(&c, &f)) {
        enum stat_key stat;
        if (FIND_STAT(filter_stats, f.id, &stat)) {
            stats_set(st, p->m->id, stat, pb_i64(&f));
        } else if (f.id == TRACE_STATS_FILTER_STATS_BYTES_DISCARDED_PER_BUFFER && f.wire == PB_BYTES) {
            struct pb_cursor packed = pb_sub(&f);
            uint64_t v;
            while (pb_next_packed(&packed, &v))
                stats_set_idx(st, p->m->id, STAT_traced_buf_bytes_filtered_out, buffer++, (int64_t)v);
        } else if (f.id == TRACE_STATS_FILTER_STATS_BYTES_DISCARDED_PER_BUFFER) {
            stats_set_idx(st, p->m->id, STAT_traced_buf_bytes_filtered_out, buffer++, pb_i64(&f));
        }
    }
}

void trace_stats_packet(struct packet *p)
{
    struct stats *st = &p->m->st->stats;
    struct u64map sums = {0};
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    int32_t buffer = 0;
    uint64_t final_flush = 0;
    for (size_t i = 0; i < sizeof trace_stats / sizeof *trace_stats; i++)
        stats_set(st, p->m->id, trace_stats[i].stat, 0);
    while (pb_next(&c, &f)) {
        enum stat_key stat;
        if (FIND_STAT(trace_stats, f.id, &stat))
            stats_set(st, p->m->id, stat, pb_i64(&f));
        else if (f.id == TRACE_STATS_BUFFER_STATS)
            one_buffer(p, buffer++, pb_bytes(&f));
        else if (f.id == TRACE_STATS_FILTER_STATS)
            filter(p, pb_bytes(&f));
        else if (f.id == TRACE_STATS_FINAL_FLUSH_OUTCOME)
            final_flush = pb_u64(&f);
        else if (f.id == TRACE_STATS_WRITER_STATS)
            writer_losses(p, pb_bytes(&f), &sums);
    }
    stats_set(st, p->m->id, STAT_traced_final_flush_succeeded, final_flush == 1);
    stats_set(st, p->m->id, STAT_traced_final_flush_failed, final_flush == 2);
    /* The service flushes by its own clock when it writes a file; the last flush comes at the end of every recording.
     */
    if (stats_get(st, p->m->id, STAT_traced_flushes_succeeded) > 1 &&
        stats_get(st, p->m->id, STAT_config_write_into_file_no_flush))
        stats_set(st, p->m->id, STAT_config_write_into_file_no_flush, 0);
    size_t it = 0;
    for (const struct u64map_slot *s; (s = u64map_next(&sums, &it));)
        stats_set_idx(st, p->m->id, (enum stat_key)(s->key >> 32), (int32_t)(uint32_t)s->key, (int64_t)s->value);
    u64map_free(&sums);
}
