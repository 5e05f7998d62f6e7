/* Tests the rules of the trace buffer, one by one: gaps, patches, late and broken chunks, clones. */
#include "capture/service/trace_buffer.h"

#include <check.h>

static struct trace_chunk chunk_of(uint16_t writer, uint32_t id, uint16_t n, uint8_t flags, struct slice payload)
{
    return (struct trace_chunk){.who = {.producer_id = 1, .writer_id = writer, .pid = 1},
                                .chunk_id = id,
                                .num_fragments = n,
                                .flags = flags,
                                .complete = true,
                                .payload = payload};
}

static unsigned read_all(struct trace_buffer *b, bool final, uint32_t *loss)
{
    struct trace_packet p = {0};
    unsigned n = 0;
    *loss = 0;
    trace_buffer_begin_read(b, final);
    while (trace_buffer_read(b, &p)) {
        n++;
        *loss = p.loss;
    }
    vec_free(&p.slices);
    return n;
}

#define BYTES(...) ((const uint8_t[]){__VA_ARGS__})
#define CHUNK(...) slice_of(BYTES(__VA_ARGS__), sizeof BYTES(__VA_ARGS__))

START_TEST(a_gap_waits_until_the_session_ends)
{
    struct trace_buffer *b = trace_buffer_new(4096, TRACE_BUFFER_RING);
    uint32_t loss;
    struct trace_chunk c = chunk_of(1, 0, 1, 0, CHUNK(2, 8, 1));
    trace_buffer_write(b, &c);
    c.chunk_id = 2;
    trace_buffer_write(b, &c);
    ck_assert_uint_eq(read_all(b, false, &loss), 1);
    ck_assert_uint_eq(read_all(b, false, &loss), 0);
    ck_assert_uint_eq(read_all(b, true, &loss), 1);
    ck_assert_uint_eq(loss & LOSS_READ_GAP, LOSS_READ_GAP);
    trace_buffer_free(b);
}
END_TEST

START_TEST(late_chunk_fills_the_gap)
{
    struct trace_buffer *b = trace_buffer_new(4096, TRACE_BUFFER_RING);
    uint32_t loss;
    struct trace_chunk c = chunk_of(1, 0, 1, 0, CHUNK(2, 8, 1));
    trace_buffer_write(b, &c);
    ck_assert_uint_eq(read_all(b, false, &loss), 1);
    ck_assert_uint_eq(loss, LOSS_PRESENT);
    c.chunk_id = 2;
    trace_buffer_write(b, &c);
    c.chunk_id = 1;
    trace_buffer_write(b, &c);
    ck_assert_uint_eq(trace_buffer_get_stats(b)->chunks_committed_out_of_order, 1);
    ck_assert_uint_eq(read_all(b, false, &loss), 2);
    ck_assert_uint_eq(loss, 0);
    trace_buffer_free(b);
}
END_TEST

START_TEST(chunk_ids_wrap)
{
    struct trace_buffer *b = trace_buffer_new(4096, TRACE_BUFFER_RING);
    uint32_t loss;
    for (uint32_t i = 0; i < 8; i++) {
        struct trace_chunk c = chunk_of(1, UINT32_MAX - 3 + i, 1, 0, CHUNK(2, 8, 1));
        trace_buffer_write(b, &c);
    }
    ck_assert_uint_eq(read_all(b, false, &loss), 8);
    ck_assert_uint_eq(trace_buffer_get_stats(b)->chunks_committed_out_of_order, 0);
    trace_buffer_free(b);
}
END_TEST

START_TEST(unpatched_chunk_holds_its_sequence_back)
{
    struct trace_buffer *b = trace_buffer_new(4096, TRACE_BUFFER_RING);
    uint32_t loss;
    struct trace_chunk c = chunk_of(1, 0, 2, SHM_NEEDS_PATCHING, CHUNK(2, 8, 1, 6, 10, 0, 0, 0, 0, 7));
    struct trace_chunk other = chunk_of(2, 0, 1, 0, CHUNK(2, 8, 1));
    trace_buffer_write(b, &c);
    trace_buffer_write(b, &other);
    ck_assert_uint_eq(read_all(b, false, &loss), 1);
    struct trace_patch bad = {.offset = 7, .bytes = {1}}, good = {.offset = 5, .bytes = {0x81, 0x80, 0x80, 0}};
    ck_assert(!trace_buffer_patch(b, 1, 1, 0, &bad, 1, false));
    ck_assert(!trace_buffer_patch(b, 1, 1, 9, &good, 1, false));
    ck_assert(trace_buffer_patch(b, 1, 1, 0, &good, 1, true));
    ck_assert_uint_eq(read_all(b, false, &loss), 0);
    ck_assert(trace_buffer_patch(b, 1, 1, 0, &good, 1, false));
    ck_assert_uint_eq(read_all(b, false, &loss), 2);
    ck_assert_uint_eq(trace_buffer_get_stats(b)->patches_failed, 2);
    ck_assert_uint_eq(trace_buffer_get_stats(b)->patches_succeeded, 2);
    trace_buffer_free(b);
}
END_TEST

START_TEST(dropped_packet_is_counted)
{
    struct trace_buffer *b = trace_buffer_new(4096, TRACE_BUFFER_RING);
    uint32_t loss;
    struct trace_chunk c = chunk_of(1, 0, 2, 0, CHUNK(2, 8, 1, 0xff, 0xff, 0xff, 0x7f));
    trace_buffer_write(b, &c);
    c = chunk_of(1, 1, 1, 0, CHUNK(2, 8, 2));
    trace_buffer_write(b, &c);
    ck_assert_uint_eq(read_all(b, false, &loss), 2);
    ck_assert_uint_eq(loss, LOSS_PRESENT | LOSS_WRITER_ABORT);
    ck_assert_uint_eq(trace_buffer_get_stats(b)->trace_writer_packet_loss, 1);
    trace_buffer_free(b);
}
END_TEST

START_TEST(broken_chunks_are_counted)
{
    struct trace_buffer *b = trace_buffer_new(4096, TRACE_BUFFER_RING);
    uint32_t loss;
    static uint8_t huge[70000];
    struct trace_chunk c = chunk_of(1, 0, 1, 0, CHUNK(200, 8, 1)); /* longer than the chunk */
    trace_buffer_write(b, &c);
    c = chunk_of(1, 1, 3, 0, CHUNK(2, 8, 1)); /* fewer fragments than announced */
    trace_buffer_write(b, &c);
    c = chunk_of(1, 2, 1, 0, slice_of(huge, sizeof huge));
    trace_buffer_write(b, &c);
    c = chunk_of(1, 1, 1, 0, CHUNK(2, 8, 1)); /* again, with less in it */
    trace_buffer_write(b, &c);
    ck_assert_uint_eq(read_all(b, false, &loss), 1);
    ck_assert_uint_eq(trace_buffer_get_stats(b)->abi_violations, 4);
    trace_buffer_free(b);
}
END_TEST

START_TEST(read_then_overwritten_is_no_loss)
{
    struct trace_buffer *b = trace_buffer_new(4096, TRACE_BUFFER_RING);
    static uint8_t payload[1000];
    uint32_t loss;
    payload[0] = 2;
    payload[1] = 8;
    for (uint32_t i = 0; i < 100; i++) {
        struct trace_chunk c = chunk_of(1, i, 1, 0, slice_of(payload, sizeof payload));
        trace_buffer_write(b, &c);
        ck_assert_uint_eq(read_all(b, false, &loss), 1);
        ck_assert_uint_eq(loss, i ? 0 : LOSS_PRESENT);
    }
    ck_assert_uint_eq(trace_buffer_get_stats(b)->chunks_overwritten, 0);
    ck_assert_uint_eq(trace_buffer_get_stats(b)->chunks_read, 100);
    trace_buffer_free(b);
}
END_TEST

START_TEST(a_clone_reads_on_from_where_the_original_was)
{
    struct trace_buffer *b = trace_buffer_new(4096, TRACE_BUFFER_RING);
    uint32_t loss;
    for (uint32_t i = 0; i < 4; i++) {
        struct trace_chunk c = chunk_of(1, i, 1, 0, CHUNK(2, 8, 1));
        trace_buffer_write(b, &c);
        if (i == 1)
            ck_assert_uint_eq(read_all(b, false, &loss), 2);
    }
    struct trace_buffer *copy = trace_buffer_clone(b);
    ck_assert_uint_eq(trace_buffer_get_stats(copy)->chunks_read, 0);
    ck_assert_uint_eq(trace_buffer_get_stats(copy)->chunks_written, 4);
    ck_assert_uint_eq(read_all(copy, true, &loss), 2);
    ck_assert_uint_eq(read_all(b, false, &loss), 2);
    trace_buffer_free(copy);
    trace_buffer_free(b);
}
END_TEST

/* A producer that reconnects has new writers each time: their number is bounded, and what is lost by that is counted.
 */
START_TEST(writers_without_end)
{
    struct trace_buffer *b = trace_buffer_new(64u << 10, TRACE_BUFFER_RING);
    const uint8_t payload[] = {2, 8, 1};
    struct trace_packet p = {.bytes = 0};
    size_t read = 0;
    for (uint32_t i = 0; i < TRACE_BUFFER_MAX_SEQUENCES * 2; i++) {
        struct trace_chunk c = {
            .who = {.producer_id = (uint16_t)(1 + (i >> 14)), .writer_id = (uint16_t)(1 + (i & 16383))},
            .num_fragments = 1,
            .complete = true,
            .payload = slice_of(payload, sizeof payload)};
        trace_buffer_write(b, &c);
        if (trace_buffer_sequence_count(b) > TRACE_BUFFER_MAX_SEQUENCES) /* Check's own assertion is slow */
            ck_abort_msg("too many after %u", i);
        for (trace_buffer_begin_read(b, false); i % 1024 == 0 && trace_buffer_read(b, &p);)
            read++;
    }
    struct trace_buffer *clone = trace_buffer_clone(b);
    ck_assert_ptr_nonnull(clone);
    for (trace_buffer_begin_read(clone, true); trace_buffer_read(clone, &p);)
        read++;
    ck_assert_uint_eq(read, TRACE_BUFFER_MAX_SEQUENCES * 2);
    ck_assert_uint_eq(trace_buffer_get_stats(b)->chunks_discarded, 0);
    trace_buffer_free(clone);
    trace_buffer_free(b);
    /* all of them with something unread: the next one is refused */
    b = trace_buffer_new(16u << 20, TRACE_BUFFER_RING);
    for (uint32_t i = 0; i <= TRACE_BUFFER_MAX_SEQUENCES; i++) {
        struct trace_chunk c = {
            .who = {.producer_id = (uint16_t)(1 + (i >> 14)), .writer_id = (uint16_t)(1 + (i & 16383))},
            .num_fragments = 1,
            .complete = true,
            .payload = slice_of(payload, sizeof payload)};
        trace_buffer_write(b, &c);
    }
    ck_assert_uint_eq(trace_buffer_get_stats(b)->chunks_discarded, 1);
    vec_free(&p.slices);
    trace_buffer_free(b);
}
END_TEST

Suite *trace_buffer_suite(void);
Suite *trace_buffer_suite(void)
{
    Suite *s = suite_create("trace_buffer");
    TCase *t = tcase_create("rules");
    tcase_add_test(t, a_gap_waits_until_the_session_ends);
    tcase_add_test(t, late_chunk_fills_the_gap);
    tcase_add_test(t, chunk_ids_wrap);
    tcase_add_test(t, unpatched_chunk_holds_its_sequence_back);
    tcase_add_test(t, dropped_packet_is_counted);
    tcase_add_test(t, broken_chunks_are_counted);
    tcase_add_test(t, read_then_overwritten_is_no_loss);
    tcase_add_test(t, a_clone_reads_on_from_where_the_original_was);
    tcase_add_test(t, writers_without_end);
    suite_add_tcase(s, t);
    return s;
}
