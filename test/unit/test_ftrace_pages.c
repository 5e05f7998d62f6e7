/* Tests the walk over kernel pages and the bundles that come of it, with pages made by hand. */
#include "ck_slice.h"
#include "probes_fixture.h"

#include "kernel/page_parser.h"

#define COMMON                                                                                                         \
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                                             \
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                                             \
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"                                     \
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

enum { ID_SWITCH = 1, ID_WAKING, ID_FREQ, ID_PRINT, ID_GENERIC, ID_DEV, ID_RSS, IDS };

static const char *const formats[IDS] = {
    [ID_SWITCH] =
        "name: sched_switch\nID: 1\nformat:\n" COMMON "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
        "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
        "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
        "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
        "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
        "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
        "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n",
    [ID_WAKING] =
        "name: sched_waking\nID: 2\nformat:\n" COMMON "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
        "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
        "\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n"
        "\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n",
    [ID_FREQ] = "name: cpu_frequency\nID: 3\nformat:\n" COMMON "\tfield:u32 state;\toffset:8;\tsize:4;\tsigned:0;\n"
                "\tfield:u32 cpu_id;\toffset:12;\tsize:4;\tsigned:0;\n",
    [ID_PRINT] = "name: print\nID: 4\nformat:\n" COMMON "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
                 "\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n",
    [ID_GENERIC] = "name: my_event\nID: 5\nformat:\n" COMMON "\tfield:int number;\toffset:8;\tsize:4;\tsigned:1;\n"
                   "\tfield:__data_loc char[] text;\toffset:12;\tsize:4;\tsigned:0;\n"
                   "\tfield:void * where;\toffset:16;\tsize:8;\tsigned:0;\n",
    [ID_DEV] =
        "name: ext4_sync_file_exit\nID: 6\nformat:\n" COMMON "\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n"
        "\tfield:ino_t ino;\toffset:16;\tsize:8;\tsigned:0;\n"
        "\tfield:int ret;\toffset:24;\tsize:4;\tsigned:1;\n",
    [ID_RSS] = "name: rss_stat\nID: 7\nformat:\n" COMMON "\tfield:unsigned int mm_id;\toffset:8;\tsize:4;\tsigned:0;\n"
               "\tfield:unsigned int curr;\toffset:12;\tsize:4;\tsigned:0;\n"
               "\tfield:int member;\toffset:16;\tsize:4;\tsigned:1;\n"
               "\tfield:long size;\toffset:24;\tsize:8;\tsigned:1;\n",
};
static const char *const groups[IDS] = {
    [ID_SWITCH] = "sched", [ID_WAKING] = "sched", [ID_FREQ] = "power", [ID_PRINT] = "ftrace",
    [ID_GENERIC] = "mine", [ID_DEV] = "ext4",     [ID_RSS] = "kmem"};

/* A session over the formats above, and a page under construction. */
static struct {
    struct arena memory;
    struct event_program programs[IDS], compact[2], legacy;
    const struct event_program *by_id[IDS];
    struct compact_offsets offsets;
    struct memory_sink sink;
    struct symbol_output symbols;
    struct ftrace_bundle *bundle;
    uint64_t previous_end;
    uint8_t page[4096];
    uint32_t n; /* bytes of records */
} t;

static void set_up(void)
{
    static struct format_file f;
    memset(&t, 0, sizeof t);
    for (unsigned i = 1; i < IDS; i++) {
        ck_assert_int_eq(format_file_parse(&f, slice_str(formats[i]), NULL), 0);
        ck_assert_int_eq(
            event_program_compile(&t.programs[i], &f, groups[i], PROGRAM_TYPED_OR_GENERIC, 65540, &t.memory, NULL), 0);
        t.by_id[i] = &t.programs[i];
        if (i == ID_SWITCH)
            ck_assert(compact_switch_offsets(&f, &t.offsets));
        if (i == ID_WAKING)
            ck_assert(compact_waking_offsets(&f, &t.offsets));
        if (i == ID_RSS)
            ck_assert(event_program_throttle_rss(&t.programs[i], &f));
        if (i == ID_GENERIC)
            ck_assert_int_eq(event_program_compile(&t.legacy, &f, groups[i], PROGRAM_LEGACY, 0, &t.memory, NULL), 0);
    }
    t.compact[0] = t.programs[ID_SWITCH];
    t.compact[0].kind = PROGRAM_COMPACT_SWITCH;
    t.compact[1] = t.programs[ID_WAKING];
    t.compact[1].kind = PROGRAM_COMPACT_WAKING;
    struct packet_sink sink = memory_sink(&t.sink);
    t.bundle = ftrace_bundle_create(&sink, NULL, &t.symbols, &t.offsets);
    ck_assert_ptr_nonnull(t.bundle);
}

static void tear_down(void)
{
    ftrace_bundle_free(t.bundle);
    address_table_free(&t.symbols.addresses);
    memory_sink_free(&t.sink);
    arena_free(&t.memory);
}

static void put_u32(uint32_t v)
{
    memcpy(t.page + 16 + t.n, &v, 4);
    t.n += 4;
}

static void page_begin(uint64_t ts)
{
    memset(t.page, 0, sizeof t.page);
    memcpy(t.page, &ts, 8);
    t.n = 0;
}

static void page_end(uint64_t flags)
{
    uint64_t commit = t.n | flags;
    memcpy(t.page + 8, &commit, 8);
}

/* A data record with the size in its head. */
static void put_event(uint32_t delta, const void *event, uint32_t size)
{
    put_u32(delta << 5 | size / 4);
    memcpy(t.page + 16 + t.n, event, size);
    t.n += size;
}

static void put_freq(uint32_t delta, uint32_t state, uint32_t cpu)
{
    struct {
        uint16_t type;
        uint8_t flags, preempt;
        int32_t pid;
        uint32_t state, cpu;
    } e = {ID_FREQ, 0, 0, 33, state, cpu};
    put_event(delta, &e, sizeof e);
}

static struct page_view view;

static uint32_t parse(void)
{
    static const struct page_format format = {8, 16};
    struct program_table table = {t.by_id, IDS};
    ck_assert_int_eq(page_view_open(&view, &format, t.page, sizeof t.page), FTRACE_STATUS_OK);
    if (view.lost)
        ftrace_bundle_lost(t.bundle);
    return page_view_parse(&view, &table, t.bundle);
}

/* Parses the page as one batch of cpu 3. */
static uint32_t run(void)
{
    ftrace_bundle_begin(t.bundle, 3, &t.previous_end);
    uint32_t n = parse();
    ftrace_bundle_end(t.bundle);
    return n;
}

static struct slice bundle(size_t packet)
{
    return memory_sink_field(&t.sink, packet, 1);
}

/* The n-th event of a bundle. */
static struct slice event_at(struct slice b, unsigned n)
{
    struct pb_cursor c = pb_cursor(b);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == 2 && n-- == 0)
            return pb_bytes(&f);
    return slice_of(NULL, 0);
}

START_TEST(events_and_times)
{
    page_begin(1000000);
    put_freq(5, 1800000, 2);
    put_u32(7u << 5 | 30); /* time extend: 7 + (2 << 27) */
    put_u32(2);
    put_freq(1, 900000, 2);
    put_u32(9u << 5 | 31); /* absolute: 9 + (100 << 27) */
    put_u32(100);
    put_freq(0, 700000, 1);
    put_u32(6u << 5 | 29); /* a discarded record of 12 bytes behind its head; its delta counts */
    put_u32(12);
    put_u32(0xdeadbeef);
    put_u32(0xdeadbeef);
    put_u32(3u << 5 | 0); /* size in the next word: 4 + 16 */
    put_u32(20);
    struct {
        uint16_t type;
        uint8_t flags, preempt;
        int32_t pid;
        uint32_t state, cpu;
    } e = {ID_FREQ, 0, 0, 44, 500000, 0};
    memcpy(t.page + 16 + t.n, &e, sizeof e);
    t.n += sizeof e;
    page_end(0);
    ck_assert_uint_eq(run(), 4);
    ck_assert_uint_eq(memory_sink_count(&t.sink), 1);
    struct slice b = bundle(0);
    ck_assert_uint_eq(message_u64(b, 1), 3);
    ck_assert(!message_has(b, 3));
    ck_assert(message_has(b, 10));
    uint64_t absolute = 9 + (100ull << 27);
    const uint64_t times[] = {1000005, 1000005 + 7 + (2ull << 27) + 1, absolute, absolute + 9};
    const uint64_t states[] = {1800000, 900000, 700000, 500000};
    for (unsigned i = 0; i < 4; i++) {
        struct slice event = event_at(b, i);
        ck_assert_uint_eq(message_u64(event, 1), times[i]);
        ck_assert_uint_eq(message_u64(event, 2), i < 3 ? 33 : 44);
        ck_assert_uint_eq(message_u64(message_bytes(event, 11), 1), states[i]);
    }
    ck_assert_uint_eq(t.previous_end, times[3]);
}
END_TEST

START_TEST(an_absolute_time_keeps_its_top_bits)
{
    uint64_t start = (3ull << 59) + 12345;
    page_begin(start);
    put_u32(2u << 5 | 31);
    put_u32(200);
    put_freq(0, 1, 1);
    page_end(0);
    run();
    ck_assert_uint_eq(message_u64(event_at(bundle(0), 0), 1), (3ull << 59) + 2 + (200ull << 27));
}
END_TEST

START_TEST(lost_events_begin_a_bundle)
{
    uint64_t lost = 4711;
    page_begin(100);
    put_freq(1, 1, 1);
    page_end(0);
    ftrace_bundle_begin(t.bundle, 0, &t.previous_end);
    parse();
    page_begin(200);
    put_freq(1, 2, 1);
    memcpy(t.page + 16 + t.n, &lost, 8);
    page_end(0xffffffffc0000000);
    parse();
    ck_assert_uint_eq(view.lost_count, 4711);
    ftrace_bundle_end(t.bundle);
    ck_assert_uint_eq(memory_sink_count(&t.sink), 2);
    ck_assert(!message_has(bundle(0), 3));
    ck_assert_uint_eq(message_u64(bundle(1), 3), 1);
    ck_assert_uint_eq(message_u64(bundle(1), 10), 101);
}
END_TEST

static void put_switch(uint32_t delta, const char *prev, int32_t prev_pid, int64_t state, const char *next,
                       int32_t next_pid)
{
    struct {
        uint16_t type;
        uint8_t flags, preempt;
        int32_t pid;
        char prev_comm[16];
        int32_t prev_pid, prev_prio;
        int64_t prev_state;
        char next_comm[16];
        int32_t next_pid, next_prio;
    } e = {ID_SWITCH, 0, 0, prev_pid, "", prev_pid, 120, state, "", next_pid, 119};
    memcpy(e.prev_comm, prev, strnlen(prev, sizeof e.prev_comm - 1));
    memcpy(e.next_comm, next, strnlen(next, sizeof e.next_comm - 1));
    put_event(delta, &e, sizeof e);
}

static void put_waking(uint32_t delta, const char *comm, int32_t pid, int32_t cpu)
{
    struct {
        uint16_t type;
        uint8_t flags, preempt;
        int32_t current;
        char comm[16];
        int32_t pid, prio, target_cpu;
    } e = {ID_WAKING, 5, 0, 1, "", pid, -3, cpu};
    strncpy(e.comm, comm, 15);
    put_event(delta, &e, sizeof e);
}

static uint64_t packed_at(struct slice list, unsigned n)
{
    struct pb_cursor c = pb_cursor(list);
    uint64_t v = 0;
    do
        ck_assert(pb_next_packed(&c, &v));
    while (n--);
    return v;
}

START_TEST(compact_lists)
{
    t.by_id[ID_SWITCH] = &t.compact[0];
    t.by_id[ID_WAKING] = &t.compact[1];
    page_begin(5000);
    put_switch(1, "a", 10, 1, "worker", 20);
    put_waking(2, "worker", 20, 1);
    put_switch(3, "worker", 20, 256, "a", 10);
    put_freq(1, 42, 0);
    page_end(0);
    ck_assert_uint_eq(run(), 4);
    struct slice c = message_bytes(bundle(0), 4);
    ck_assert_uint_eq(packed_at(message_bytes(c, 1), 0), 5001);
    ck_assert_uint_eq(packed_at(message_bytes(c, 1), 1), 5);
    ck_assert_uint_eq(packed_at(message_bytes(c, 2), 1), 256);
    ck_assert_uint_eq(packed_at(message_bytes(c, 3), 0), 20);
    ck_assert_uint_eq(packed_at(message_bytes(c, 4), 0), 119);
    ck_assert_slice_eq(message_bytes(c, 5), "worker");
    ck_assert_uint_eq(packed_at(message_bytes(c, 6), 1), 1);
    ck_assert_uint_eq(packed_at(message_bytes(c, 7), 0), 5003);
    ck_assert_uint_eq(packed_at(message_bytes(c, 8), 0), 20);
    ck_assert_uint_eq(packed_at(message_bytes(c, 9), 0), 1);
    ck_assert_int_eq((int64_t)packed_at(message_bytes(c, 10), 0), -3);
    ck_assert_uint_eq(packed_at(message_bytes(c, 11), 0), 0);
    ck_assert_uint_eq(packed_at(message_bytes(c, 12), 0), 5);
    ck_assert_uint_eq(message_u64(message_bytes(event_at(bundle(0), 0), 11), 1), 42);
}
END_TEST

/* More comms than the table holds: more bundles, and every switch is in one of them. */
START_TEST(many_comms_make_more_bundles)
{
    t.by_id[ID_SWITCH] = &t.compact[0];
    unsigned switches = 0;
    ftrace_bundle_begin(t.bundle, 0, &t.previous_end);
    for (int page = 0; page < 10; page++) {
        page_begin(1000u + 1000u * (unsigned)page);
        for (int i = 0; i < 50; i++) {
            char name[16];
            snprintf(name, sizeof name, "thread-%d", page * 50 + i);
            put_switch(1, "x", 1, 0, name, 100 + i);
        }
        page_end(0);
        parse();
    }
    ftrace_bundle_end(t.bundle);
    ck_assert_uint_gt(memory_sink_count(&t.sink), 3);
    for (size_t i = 0; i < memory_sink_count(&t.sink); i++) {
        struct pb_cursor c = pb_cursor(message_bytes(message_bytes(bundle(i), 4), 3));
        uint64_t pid;
        while (pb_next_packed(&c, &pid))
            switches++;
    }
    ck_assert_uint_eq(switches, 500);
}
END_TEST

START_TEST(a_long_text_moves_its_lengths)
{
    struct {
        uint16_t type;
        uint8_t flags, preempt;
        int32_t pid;
        uint64_t ip;
        char buf[400];
    } e = {ID_PRINT, 0, 0, 7, 0xffffffff81000000, ""};
    memset(e.buf, 'x', 300);
    page_begin(9);
    put_u32(1u << 5 | 0);
    put_u32(sizeof e + 4);
    memcpy(t.page + 16 + t.n, &e, sizeof e);
    t.n += sizeof e;
    put_freq(1, 3, 3);
    page_end(0);
    ck_assert_uint_eq(run(), 2);
    struct slice print = message_bytes(event_at(bundle(0), 0), 3);
    ck_assert_uint_eq(message_bytes(print, 2).len, 300);
    ck_assert(!message_has(print, 1)); /* the address stays at home */
    ck_assert_uint_eq(message_u64(message_bytes(event_at(bundle(0), 1), 11), 1), 3);
}
END_TEST

struct generic_event {
    uint16_t type;
    uint8_t flags, preempt;
    int32_t pid, number;
    uint32_t text_loc;
    uint64_t where;
    char text[8];
};

START_TEST(generic_events_carry_their_descriptor)
{
    struct generic_event e = {ID_GENERIC, 0, 0, 7, -5, 24 | 6 << 16, 0xffffffff81234567, "hello"};
    page_begin(9);
    put_event(1, &e, sizeof e);
    put_event(1, &e, sizeof e);
    page_end(0);
    run();
    struct slice event = message_bytes(event_at(bundle(0), 1), 65540);
    ck_assert_int_eq((int64_t)message_u64(event, 1), -5);
    ck_assert_slice_eq(message_bytes(event, 2), "hello");
    ck_assert_uint_eq(message_u64(event, 3), 1); /* the first address of the session */
    struct slice d = message_bytes(bundle(0), 11);
    ck_assert_uint_eq(message_u64(d, 1), 65540);
    ck_assert_slice_eq(message_bytes(d, 3), "mine");
    ck_assert_slice_eq(message_bytes(message_bytes(d, 2), 1), "my_event");
    struct slice field = message_bytes(message_bytes(d, 2), 2);
    ck_assert_slice_eq(message_bytes(field, 1), "number");
    ck_assert_uint_eq(message_u64(field, 3), 1);
    ck_assert_uint_eq(message_u64(field, 5), 3);
}
END_TEST

START_TEST(generic_events_in_the_old_encoding)
{
    struct generic_event e = {ID_GENERIC, 0, 0, 7, -5, 24 | 6 << 16, 0, "hello"};
    t.by_id[ID_GENERIC] = &t.legacy;
    page_begin(9);
    put_event(1, &e, sizeof e);
    page_end(0);
    run();
    struct slice event = message_bytes(event_at(bundle(0), 0), 327);
    ck_assert_slice_eq(message_bytes(event, 1), "my_event");
    struct slice field = message_bytes(event, 2);
    ck_assert_slice_eq(message_bytes(field, 1), "number");
    ck_assert_int_eq((int64_t)message_u64(field, 4), -5);
}
END_TEST

START_TEST(devices_are_translated)
{
    struct {
        uint16_t type;
        uint8_t flags, preempt;
        int32_t pid;
        uint32_t dev, pad;
        uint64_t ino;
        int32_t ret, pad2;
    } e = {ID_DEV, 0, 0, 7, 254u << 20 | 300, 0, 12345, -2, 0};
    struct inode_tracker inodes = {0};
    ftrace_bundle_set_inodes(t.bundle, &inodes);
    page_begin(9);
    put_event(1, &e, sizeof e);
    put_event(1, &e, sizeof e);
    page_end(0);
    run();
    struct slice event = message_bytes(event_at(bundle(0), 0), 44);
    ck_assert_uint_eq(message_u64(event, 1), (300u & 0xff) | 254u << 8 | (uint64_t)(300 & ~0xff) << 12);
    ck_assert_uint_eq(message_u64(event, 2), 12345);
    ck_assert_int_eq((int32_t)message_u64(event, 3), -2);
    ck_assert_uint_eq(inodes.fresh.n, 1);
    ck_assert_uint_eq(inodes.fresh.p[0].inode, 12345);
    u64map_free(&inodes.seen);
    vec_free(&inodes.fresh);
}
END_TEST

START_TEST(rss_is_written_by_steps)
{
    static const struct {
        uint32_t mm, member;
        int64_t size;
        bool written;
    } rows[] = {{1, 0, 0, true},       {1, 0, 4096, false}, {1, 0, 600 << 10, true}, {1, 0, 601 << 10, false},
                {1, 1, 4096, true},    {2, 0, 4096, true},  {1, 0, 0, true},         {1, 0, 100 << 20, true},
                {2, 0, 500000, false}, {2, 0, 530000, true}};
    unsigned n = 0;
    page_begin(9);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct {
            uint16_t type;
            uint8_t flags, preempt;
            int32_t pid;
            uint32_t mm, curr, member, pad;
            int64_t size;
        } e = {ID_RSS, 0, 0, 7, rows[i].mm, 1, rows[i].member, 0, rows[i].size};
        put_event(1, &e, sizeof e);
    }
    page_end(0);
    run();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].written)
            ck_assert_uint_eq(message_u64(event_at(bundle(0), n++), 1), 10 + i);
    ck_assert_uint_eq(event_at(bundle(0), n).len, 0);
}
END_TEST

/* Damaged records: each ends the page with its status, and what was good before is kept. */
static const struct {
    enum ftrace_status status;
    uint32_t n;
    uint32_t words[4];
} damage[] = {
    {FTRACE_STATUS_ABI_NULL_PADDING, 1, {29}},
    {FTRACE_STATUS_ABI_SHORT_PADDING_LENGTH, 1, {1 << 5 | 29}},
    {FTRACE_STATUS_ABI_INVALID_PADDING_LENGTH, 2, {1 << 5 | 29, 64}},
    {FTRACE_STATUS_ABI_INVALID_PADDING_LENGTH, 2, {1 << 5 | 29, 0}},
    {FTRACE_STATUS_ABI_SHORT_TIME_EXTEND, 1, {30}},
    {FTRACE_STATUS_ABI_SHORT_TIME_STAMP, 1, {31}},
    {FTRACE_STATUS_ABI_SHORT_DATA_LENGTH, 1, {1 << 5}},
    {FTRACE_STATUS_ABI_ZERO_DATA_LENGTH, 2, {1 << 5, 0}},
    {FTRACE_STATUS_ABI_INVALID_DATA_LENGTH, 2, {1 << 5, 3}},
    {FTRACE_STATUS_ABI_SHORT_EVENT_ID, 2, {1 << 5, 4}},
    {FTRACE_STATUS_ABI_END_OVERFLOW, 2, {1 << 5 | 28, ID_FREQ}},
    {FTRACE_STATUS_ABI_END_OVERFLOW, 2, {1 << 5, 0xffffffff}},
    {FTRACE_STATUS_INVALID_EVENT, 3, {1 << 5 | 2, ID_FREQ, 5}},
};

START_TEST(damage_is_told_and_contained)
{
    page_begin(77);
    put_freq(1, 8, 8);
    for (uint32_t i = 0; i < damage[_i].n; i++)
        put_u32(damage[_i].words[i]);
    page_end(0);
    run();
    ck_assert_uint_eq(message_u64(message_bytes(event_at(bundle(0), 0), 11), 1), 8);
    struct slice error = message_bytes(bundle(0), 8);
    ck_assert_uint_eq(message_u64(error, 2), damage[_i].status);
    ck_assert_uint_eq(ftrace_bundle_counts(t.bundle)->errors[damage[_i].status], 1);
}
END_TEST

START_TEST(a_broken_page_goes_out_whole_when_asked_for)
{
    ftrace_bundle_set_debug(t.bundle, _i == 1);
    page_begin(9);
    put_freq(1, 5, 0);
    put_u32(29); /* padding of no length */
    page_end(0);
    run();
    ck_assert_uint_eq(memory_sink_count(&t.sink), 1);
    struct slice page = message_bytes(bundle(0), 512);
    ck_assert_uint_eq(page.len, _i == 1 ? sizeof t.page : 0);
    ck_assert(!page.len || memcmp(page.p, t.page, page.len) == 0);
    ck_assert_uint_eq(message_u64(message_bytes(bundle(0), 8), 2), FTRACE_STATUS_ABI_NULL_PADDING);
    ck_assert_uint_gt(event_at(bundle(0), 0).len, 0);
}
END_TEST

START_TEST(three_bytes_at_the_end)
{
    page_begin(77);
    put_freq(1, 8, 8);
    t.n += 3;
    page_end(0);
    run();
    ck_assert_uint_eq(message_u64(message_bytes(bundle(0), 8), 2), FTRACE_STATUS_ABI_SHORT_EVENT_HEADER);
}
END_TEST

START_TEST(a_short_compact_event)
{
    uint32_t words[] = {ID_SWITCH, 5};
    t.by_id[ID_SWITCH] = &t.compact[0];
    page_begin(77);
    put_event(1, words, 8);
    put_freq(1, 8, 8);
    page_end(0);
    ck_assert_uint_eq(run(), 2);
    ck_assert_uint_eq(message_u64(message_bytes(bundle(0), 8), 2), FTRACE_STATUS_SHORT_COMPACT_EVENT);
    ck_assert_uint_eq(message_u64(message_bytes(event_at(bundle(0), 0), 11), 1), 8);
}
END_TEST

/* A string that points outside of its event costs that event, not those behind it. */
START_TEST(a_string_outside_its_event)
{
    struct generic_event e = {ID_GENERIC, 0, 0, 7, 1, 24 | 600 << 16, 0, ""};
    page_begin(77);
    put_event(1, &e, sizeof e);
    put_freq(1, 8, 8);
    page_end(0);
    ck_assert_uint_eq(run(), 2);
    ck_assert_uint_eq(message_u64(message_bytes(bundle(0), 8), 2), FTRACE_STATUS_INVALID_EVENT);
    ck_assert_uint_eq(message_u64(message_bytes(event_at(bundle(0), 0), 11), 1), 8);
}
END_TEST

START_TEST(a_page_longer_than_itself)
{
    static const struct page_format format = {8, 16};
    page_begin(1);
    t.n = 4081;
    page_end(0);
    ck_assert_int_eq(page_view_open(&view, &format, t.page, 4096), FTRACE_STATUS_ABI_INVALID_PAGE_HEADER);
    ck_assert_int_eq(page_view_open(&view, &format, t.page, 15), FTRACE_STATUS_ABI_INVALID_PAGE_HEADER);
}
END_TEST

START_TEST(symbols_go_out_once_with_their_numbers)
{
    static const char text[] =
        "ffffffff81234560 T do_thing\nffffffff81234600 t other_thing\t[mod]\n0000 T zero\njunk\n";
    struct kernel_symbols kernel = {0};
    ck_assert_int_eq(kernel_symbols_parse(&kernel, slice_str(text), NULL), 0);
    ck_assert_str_eq(kernel_symbols_find(&kernel, 0xffffffff81234567), "do_thing");
    ck_assert_str_eq(kernel_symbols_find(&kernel, 0xffffffff81234600), "other_thing");
    ck_assert_ptr_null(kernel_symbols_find(&kernel, 0xffffffff81000000));
    ck_assert_ptr_null(kernel_symbols_find(&kernel, 0xffffffff91000000));
    t.symbols.kernel = &kernel;
    struct generic_event e = {ID_GENERIC, 0, 0, 7, 1, 24 | 1 << 16, 0xffffffff81234567, ""};
    for (int i = 0; i < 2; i++) {
        page_begin(9);
        put_event(1, &e, sizeof e);
        page_end(0);
        run();
    }
    ck_assert_uint_eq(memory_sink_count(&t.sink), 2);
    struct slice symbol = message_bytes(memory_sink_field(&t.sink, 0, 12), 26);
    ck_assert_uint_eq(message_u64(symbol, 1), 1);
    ck_assert_slice_eq(message_bytes(symbol, 2), "do_thing");
    ck_assert_uint_eq(message_u64(memory_sink_packet(&t.sink, 0), 13), 1);
    ck_assert(!message_has(memory_sink_packet(&t.sink, 1), 12));
    kernel_symbols_free(&kernel);
}
END_TEST

/* Whoever opens files makes locks: their addresses do not fill the memory of the recorder. */
START_TEST(addresses_are_bounded)
{
    struct address_table table = {0};
    for (uint64_t i = 1; i <= ADDRESS_TABLE_MAX; i++)
        ck_assert_uint_eq(address_table_number(&table, i * 64), i);
    ck_assert_uint_eq(address_table_number(&table, 7), 0);
    ck_assert_uint_eq(address_table_number(&table, 64), 1);
    ck_assert_uint_eq(table.next, ADDRESS_TABLE_MAX);
    address_table_free(&table);
}
END_TEST

START_TEST(printk_formats_are_read)
{
    struct printk_formats f = {0};
    ck_assert_int_eq(printk_formats_parse(&f,
                                          slice_str("0xffffffff82001234 : \"Start \\\"context\\\" switch\\n\"\n"
                                                    "0xffffffff82001300 : \"\"\nnonsense\n0x1 : broken\n"),
                                          NULL),
                     0);
    ck_assert_str_eq(printk_formats_find(&f, 0xffffffff82001234), "Start \"context\" switch\n");
    ck_assert_str_eq(printk_formats_find(&f, 0xffffffff82001300), "");
    ck_assert_ptr_null(printk_formats_find(&f, 1));
    printk_formats_free(&f);
}
END_TEST

Suite *ftrace_pages_suite(void);
Suite *ftrace_pages_suite(void)
{
    Suite *s = suite_create("ftrace_pages");
    TCase *c = tcase_create("pages");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, events_and_times);
    tcase_add_test(c, an_absolute_time_keeps_its_top_bits);
    tcase_add_test(c, lost_events_begin_a_bundle);
    tcase_add_test(c, compact_lists);
    tcase_add_test(c, many_comms_make_more_bundles);
    tcase_add_test(c, a_long_text_moves_its_lengths);
    tcase_add_test(c, generic_events_carry_their_descriptor);
    tcase_add_test(c, generic_events_in_the_old_encoding);
    tcase_add_test(c, devices_are_translated);
    tcase_add_test(c, rss_is_written_by_steps);
    tcase_add_loop_test(c, damage_is_told_and_contained, 0, (int)(sizeof damage / sizeof *damage));
    tcase_add_loop_test(c, a_broken_page_goes_out_whole_when_asked_for, 0, 2);
    tcase_add_test(c, three_bytes_at_the_end);
    tcase_add_test(c, a_short_compact_event);
    tcase_add_test(c, a_string_outside_its_event);
    tcase_add_test(c, a_page_longer_than_itself);
    tcase_add_test(c, symbols_go_out_once_with_their_numbers);
    tcase_add_test(c, addresses_are_bounded);
    tcase_add_test(c, printk_formats_are_read);
    suite_add_tcase(s, c);
    return s;
}
