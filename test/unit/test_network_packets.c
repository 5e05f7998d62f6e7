/* Tests which packet arrives as which: cut and joined on the way, sent again, passed on, numbers that wrap, ports used
 * again. */
#include "importer_fixture.h"

#include "importer/network/packets.h"

#include <check.h>

enum { NO_PEER = -1 };

/* What the machines saw, in order of time: the machine, S or R, which connection, the first sequence number, bytes, SYN
 * or not; then the row that is expected as the other end, and whether it counts as repeated. */
struct event {
    int64_t ts;
    uint32_t machine;
    char direction;
    uint16_t port;
    uint32_t seq, length;
    uint16_t flags;
    int peer;
    int repeated;
};

enum { MOST = 12, SYN = TCP_FLAG_SYN };

static const struct {
    const char *what;
    struct event events[MOST]; /* ends with ts 0 */
} cases[] = {
    {"there and back", {{1, 0, 'S', 1, 100, 10, 0, 1, 0}, {2, 1, 'R', 1, 100, 10, 0, 0, 0}}},
    {"never arrived", {{1, 0, 'S', 1, 100, 10, 0, NO_PEER, 0}, {2, 1, 'R', 1, 110, 10, 0, NO_PEER, 0}}},
    {"another connection", {{1, 0, 'S', 1, 100, 10, 0, NO_PEER, 0}, {2, 1, 'R', 2, 100, 10, 0, NO_PEER, 0}}},
    {"the same machine", {{1, 0, 'S', 1, 100, 10, 0, NO_PEER, 0}, {2, 0, 'R', 1, 100, 10, 0, NO_PEER, 0}}},
    {"no bytes", {{1, 0, 'S', 1, 100, 0, 0, NO_PEER, 0}, {2, 1, 'R', 1, 100, 0, 0, NO_PEER, 0}}},
    {"cut into three: the last byte counts",
     {{1, 0, 'S', 1, 100, 30, 0, 3, 0},
      {2, 1, 'R', 1, 100, 10, 0, 0, 0},
      {3, 1, 'R', 1, 110, 10, 0, 0, 0},
      {4, 1, 'R', 1, 120, 10, 0, 0, 0}}},
    {"three joined to one",
     {{1, 0, 'S', 1, 100, 10, 0, 3, 0},
      {2, 0, 'S', 1, 110, 10, 0, 3, 0},
      {3, 0, 'S', 1, 120, 10, 0, 3, 0},
      {4, 1, 'R', 1, 100, 30, 0, 2, 0}}},
    {"sent again: the first time counts",
     {{1, 0, 'S', 1, 100, 10, 0, 2, 0}, {5, 0, 'S', 1, 100, 10, 0, NO_PEER, 1}, {6, 1, 'R', 1, 100, 10, 0, 0, 0}}},
    {"received twice: the first time counts",
     {{1, 0, 'S', 1, 100, 10, 0, 1, 0}, {2, 1, 'R', 1, 100, 10, 0, 0, 0}, {6, 1, 'R', 1, 100, 10, 0, 0, 0}}},
    {"sent again with more",
     {{1, 0, 'S', 1, 100, 10, 0, 2, 0}, {5, 0, 'S', 1, 100, 20, 0, 2, 0}, {6, 1, 'R', 1, 100, 20, 0, 1, 0}}},
    {"over the end of the numbers",
     {{1, 0, 'S', 1, 0xfffffff8, 16, 0, 1, 0},
      {2, 1, 'R', 1, 0xfffffff8, 16, 0, 0, 0},
      {3, 0, 'S', 1, 8, 10, 0, 3, 0},
      {4, 1, 'R', 1, 8, 10, 0, 2, 0}}},
    {"passed on by a machine between",
     {{1, 0, 'S', 1, 100, 10, 0, 1, 0},
      {2, 1, 'R', 1, 100, 10, 0, 0, 0},
      {3, 1, 'S', 1, 100, 10, 0, 3, 0},
      {4, 2, 'R', 1, 100, 10, 0, 2, 0}}},
    {"from device to device of one machine",
     {{1, 0, 'S', 1, 100, 10, 0, 2, 0}, {2, 0, 'S', 1, 100, 10, 0, NO_PEER, 1}, {3, 1, 'R', 1, 100, 10, 0, 0, 0}}},
    {"the clocks are not exact", {{1, 1, 'R', 1, 100, 10, 0, 1, 0}, {2, 0, 'S', 1, 100, 10, 0, 0, 0}}},
    {"bytes behind a SYN count from the next number",
     {{1, 0, 'S', 1, 99, 0, SYN, NO_PEER, 0},
      {2, 1, 'R', 1, 99, 0, SYN, NO_PEER, 0},
      {3, 0, 'S', 1, 100, 10, 0, 3, 0},
      {4, 1, 'R', 1, 100, 10, 0, 2, 0}}},
    {"bytes with the SYN itself",
     {{1, 0, 'S', 1, 99, 5, SYN, 1, 0}, {2, 1, 'R', 1, 99, 5, SYN, 0, 0}, {3, 0, 'S', 1, 105, 1, 0, NO_PEER, 0}}},
    {"ports used again, with numbers of before",
     {{1, 0, 'S', 1, 99, 0, SYN, NO_PEER, 0},
      {2, 0, 'S', 1, 100, 10, 0, 2, 0},
      {3, 1, 'R', 1, 100, 10, 0, 1, 0},
      {4, 0, 'S', 1, 95, 0, SYN, NO_PEER, 0},
      {5, 1, 'R', 1, 95, 0, SYN, NO_PEER, 0},
      {6, 0, 'S', 1, 96, 10, 0, 6, 0},
      {7, 1, 'R', 1, 96, 10, 0, 5, 0}}},
    {"a SYN sent again begins nothing",
     {{1, 0, 'S', 1, 99, 0, SYN, NO_PEER, 0},
      {2, 0, 'S', 1, 99, 0, SYN, NO_PEER, 0},
      {3, 1, 'R', 1, 99, 0, SYN, NO_PEER, 0},
      {4, 0, 'S', 1, 100, 10, 0, 4, 0},
      {5, 1, 'R', 1, 100, 10, 0, 3, 0}}},
};

struct seen {
    struct importer_fixture f;
    struct machine_ctx machines[4];
};

static void see(struct seen *s, const struct event *e)
{
    static const uint8_t v4[2][4] = {{10, 0, 0, 1}, {10, 0, 0, 2}};
    static const uint8_t v6[2][16] = {{0xfe, 0x80, [15] = 1}, {0xfe, 0x80, [15] = 2}};
    bool six = e->port % 2 == 0;
    struct packet_seen p = {.m = &s->machines[e->machine],
                            .ts = e->ts,
                            .direction = e->direction == 'S' ? PACKET_SENT : PACKET_RECEIVED,
                            .tcp = {.source = six ? slice_of(v6[0], 16) : slice_of(v4[0], 4),
                                    .destination = six ? slice_of(v6[1], 16) : slice_of(v4[1], 4),
                                    .source_port = e->port,
                                    .destination_port = 80,
                                    .seq = e->seq,
                                    .flags = e->flags,
                                    .length = e->length}};
    network_packet_seen(&p);
}

static void begin(struct seen *s)
{
    importer_fixture_open(&s->f);
    for (uint32_t i = 0; i < 4; i++)
        s->machines[i] = (struct machine_ctx){.im = &s->f.im, .st = &s->f.st, .id = i};
}

static size_t run(struct seen *s, const struct event *events)
{
    size_t n = 0;
    while (n < MOST && events[n].ts)
        see(s, &events[n++]);
    network_packets_match(&s->f.im);
    return n;
}

START_TEST(other_ends)
{
    struct seen s;
    struct storage *st = &s.f.st;
    begin(&s);
    size_t n = run(&s, cases[_i].events);
    unsigned arrows = 0;
    ck_assert_uint_eq(st->t[T_network_packet].n_rows, n);
    for (uint32_t row = 0; row < n; row++) {
        const struct event *e = &cases[_i].events[row];
        int64_t peer = ROW_GET(st, network_packet, peer_id, row);
        ck_assert_msg((peer == COL_NULL ? NO_PEER : peer) == e->peer, "%s: row %u has %lld, not %d", cases[_i].what,
                      row, (long long)peer, e->peer);
        ck_assert_msg(ROW_GET(st, network_packet, repeated, row) == e->repeated, "%s: row %u", cases[_i].what, row);
        ck_assert((ROW_GET(st, network_packet, slice_id, row) != COL_NULL) == (e->length > 0));
        arrows += e->direction == 'S' && e->peer != NO_PEER;
    }
    ck_assert_uint_eq(st->t[T_flow].n_rows, arrows);
    importer_fixture_close(&s.f);
}
END_TEST

/* As many copies and new beginnings as one likes: no step of the work grows with them, and nothing overflows. */
START_TEST(hostile_numbers)
{
    enum { EVENTS = 60000 };
    struct seen s;
    begin(&s);
    uint32_t x = 12345;
    for (int i = 0; i < EVENTS; i++) {
        x = x * 1664525 + 1013904223;
        struct event e = {
            i + 1, x >> 30, i % 2 ? 'S' : 'R', 2, i % 3 ? x : 7, i % 5 ? 1 : 65535, (x >> 8) % 4 ? 0 : SYN, 0, 0};
        see(&s, &e);
    }
    network_packets_match(&s.f.im);
    ck_assert(!s.f.im.failed);
    ck_assert_uint_eq(s.f.st.t[T_network_packet].n_rows, EVENTS);
    importer_fixture_close(&s.f);
}
END_TEST

Suite *network_packets_suite(void);
Suite *network_packets_suite(void)
{
    Suite *s = suite_create("network_packets");
    TCase *t = tcase_create("core");
    tcase_add_loop_test(t, other_ends, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(t, hostile_numbers);
    suite_add_tcase(s, t);
    return s;
}
