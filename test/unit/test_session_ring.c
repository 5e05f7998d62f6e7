/* Tests a session's buffer with a ring for each machine: none displaces another's chunks, and to its reader and its
 * statistics it is one buffer. */
#include "capture/service/session_ring.h"

#include <check.h>

enum { RING = 4096, PAYLOAD = 240, RECORD = 256 };

/* One chunk with one packet, all of its payload. */
static void write_chunk(struct session_ring *r, uint32_t machine_id, uint16_t producer_id, uint32_t chunk_id,
                        uint8_t flags)
{
    uint8_t payload[PAYLOAD] = {((PAYLOAD - 2) & 0x7f) | 0x80, (PAYLOAD - 2) >> 7, 8, (uint8_t)chunk_id & 0x7f};
    struct trace_chunk c = {.who = {.producer_id = producer_id, .writer_id = 1, .machine_id = machine_id},
                            .chunk_id = chunk_id,
                            .num_fragments = 1,
                            .flags = flags,
                            .complete = true,
                            .payload = slice_of(payload, sizeof payload)};
    session_ring_write(r, &c);
}

/* Packets by machine id, of a final read. */
static unsigned read_all(struct session_ring *r, unsigned *by_machine, uint32_t n)
{
    struct trace_packet p = {0};
    unsigned total = 0;
    session_ring_begin_read(r, true);
    for (; session_ring_read(r, &p); total++) {
        ck_assert_uint_lt(p.who.machine_id, n);
        by_machine[p.who.machine_id]++;
    }
    vec_free(&p.slices);
    return total;
}

/* machine_size, and what is left of 4 quiet chunks of machine 2 when machine 1 and the host have written 1000 each. */
static const struct {
    size_t machine_size;
    unsigned quiet_left;
} cases[] = {{0, 0}, {RING, 4}, {2 * RING, 4}};

START_TEST(a_chatty_machine_displaces_itself_only)
{
    struct session_ring *r = session_ring_new(RING, cases[_i].machine_size, TRACE_BUFFER_RING);
    unsigned left[3] = {0};
    for (uint32_t i = 0; i < 4; i++)
        write_chunk(r, 2, 20, i, 0);
    for (uint32_t i = 0; i < 1000; i++) {
        write_chunk(r, 1, 10, i, 0);
        write_chunk(r, 0, 1, i, 0);
    }
    struct trace_buffer_stats s = session_ring_stats(r);
    unsigned total = read_all(r, left, 3);
    ck_assert_uint_eq(left[2], cases[_i].quiet_left);
    if (cases[_i].machine_size) {
        ck_assert_uint_eq(left[0], RING / RECORD);
        ck_assert_uint_eq(left[1], cases[_i].machine_size / RECORD);
    }
    ck_assert_uint_eq(s.buffer_size, RING + 2 * cases[_i].machine_size);
    ck_assert_uint_eq(s.chunks_written, 2004);
    ck_assert_uint_eq(s.chunks_written - s.chunks_overwritten, total);
    ck_assert_uint_eq(session_ring_stats(r).chunks_read, total);
    session_ring_free(r);
}
END_TEST

START_TEST(sequences_patches_and_clones_are_of_all_rings)
{
    struct session_ring *r = session_ring_new(RING, RING, TRACE_BUFFER_RING);
    unsigned left[4] = {0}, copied[4] = {0};
    for (uint32_t m = 0; m < 4; m++) /* the same numbers everywhere but for the machine */
        write_chunk(r, m, (uint16_t)(m + 1), 0, SHM_NEEDS_PATCHING);
    struct session_ring_place at = {0};
    for (uint32_t m = 0; m < 4; m++) {
        const struct trace_writer_identity who = session_ring_next(r, &at)->who;
        ck_assert_uint_eq(who.machine_id, m);
        ck_assert_uint_eq(who.producer_id, m + 1);
        if (m % 2) {
            struct trace_patch patch = {.offset = 4, .bytes = {1, 2, 3, 4}};
            ck_assert(session_ring_patch(r, &who, 0, &patch, 1, false));
        }
    }
    ck_assert_ptr_null(session_ring_next(r, &at));
    struct trace_writer_identity elsewhere = {.producer_id = 2, .writer_id = 1, .machine_id = 3};
    ck_assert(!session_ring_patch(r, &elsewhere, 0, NULL, 0, false));
    struct session_ring *copy = session_ring_clone(r);
    ck_assert_uint_eq(read_all(r, left, 4), 2);
    ck_assert_uint_eq(left[1] + left[3], 2);
    struct u64map unfinished = {0};
    ck_assert(session_ring_unfinished(r, &unfinished));
    ck_assert_uint_eq(*u64map_get(&unfinished, 0), 1); /* never patched */
    ck_assert_ptr_null(u64map_get(&unfinished, 1));
    u64map_free(&unfinished);
    ck_assert_uint_eq(read_all(copy, copied, 4), 2);
    struct session_ring *fresh = session_ring_new_like(r);
    write_chunk(fresh, 3, 4, 0, 0);
    ck_assert_uint_eq(session_ring_stats(fresh).buffer_size, 2 * RING);
    session_ring_free(fresh);
    session_ring_free(copy);
    session_ring_free(r);
}
END_TEST

START_TEST(too_many_machines_share)
{
    enum { MACHINES = SESSION_RINGS_MAX + 10 };
    struct session_ring *r = session_ring_new(64 * RING, RING, TRACE_BUFFER_RING);
    static unsigned left[MACHINES];
    for (uint32_t m = 0; m < MACHINES; m++)
        write_chunk(r, m, (uint16_t)(m + 1), 0, 0);
    struct session_ring_place at = {0};
    size_t sequences = 0;
    while (session_ring_next(r, &at))
        sequences++;
    ck_assert_uint_eq(sequences, MACHINES);
    ck_assert_uint_eq(read_all(r, left, MACHINES), MACHINES);
    ck_assert_uint_eq(session_ring_stats(r).buffer_size, 64 * RING + (SESSION_RINGS_MAX - 1) * RING);
    session_ring_free(r);
}
END_TEST

Suite *session_ring_suite(void);
Suite *session_ring_suite(void)
{
    Suite *s = suite_create("session_ring");
    TCase *t = tcase_create("machines");
    tcase_add_loop_test(t, a_chatty_machine_displaces_itself_only, 0, sizeof cases / sizeof *cases);
    tcase_add_test(t, sequences_patches_and_clones_are_of_all_rings);
    tcase_add_test(t, too_many_machines_share);
    suite_add_tcase(s, t);
    return s;
}
