/* Little files that unpack to much: refused before they have taken much memory, however large they are themselves. */
#include "base/alloc.h"
#include "importer/importer.h"
#include "importer/perf/perf_maps.h"
#include "wire/fields.h"
#include "wire/pb_writer.h"

#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

enum { MB = 1 << 20, PIECE = 16 * MB, PIECES = 200 };

static atomic_size_t taken;

/* All that was ever asked for, given back or not: never less than the most that was held. */
static bool count(void *ctx, size_t size)
{
    (void)ctx;
    atomic_fetch_add(&taken, size);
    return true;
}

/* Deflates `head` and then zeros to a length of PIECE, with zlib's framing or (31) gzip's; to be freed. */
static struct slice piece(const void *head, size_t head_len, int window_bits)
{
    uint8_t *in = calloc(1, PIECE), *out = malloc(MB);
    z_stream z = {.next_in = in, .avail_in = PIECE, .next_out = out, .avail_out = MB};
    memcpy(in, head, head_len);
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 9, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    free(in);
    return slice_of(out, z.total_out);
}

/* A packet of three gigabytes. */
static const uint8_t long_packet[] = {0x0a, 0x80, 0x80, 0x80, 0x80, 0x0c};

static void write_gzip(FILE *f, const void *head, size_t head_len)
{
    struct slice first = piece(head, head_len, 31), rest = piece("", 0, 31);
    fwrite(first.p, 1, first.len, f);
    for (int i = 1; i < PIECES; i++) /* members in a row are one stream */
        fwrite(rest.p, 1, rest.len, f);
    free((void *)(uintptr_t)first.p);
    free((void *)(uintptr_t)rest.p);
}

static void gzip_of_a_trace(FILE *f)
{
    write_gzip(f, long_packet, sizeof long_packet);
}

static void gzip_of_empty_packets(FILE *f)
{
    struct slice member;
    uint8_t *in = malloc(PIECE), *out = malloc(MB);
    for (int i = 0; i < PIECE; i++)
        in[i] = i % 2 ? 0 : 0x0a;
    z_stream z = {.next_in = in, .avail_in = PIECE, .next_out = out, .avail_out = MB};
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    member = slice_of(out, z.total_out);
    for (int i = 0; i < PIECES; i++)
        fwrite(member.p, 1, member.len, f);
    free(in);
    free(out);
}

static void gzip_of_a_tar(FILE *f)
{
    char head[512] = "a.pftrace";
    unsigned sum = 0;
    memcpy(head + 100,
           "0000644\0"
           "0000000\0"
           "0000000\0"
           "17777777777\0"
           "0000000000\0"
           "        0",
           57);
    memcpy(head + 257,
           "ustar\0"
           "00",
           8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)head[i];
    snprintf(head + 148, 8, "%06o", sum);
    write_gzip(f, head, sizeof head);
}

static void compressed_packets(FILE *f)
{
    struct slice inside = piece(long_packet, sizeof long_packet, 15);
    struct pb_writer w = {0};
    for (int i = 0; i < PIECES; i++) {
        size_t packet = pb_begin(&w, TRACE_PACKET);
        pb_put_bytes(&w, 50, inside.p, inside.len);
        pb_end(&w, packet);
    }
    fwrite(w.p, 1, w.n, f);
    pb_writer_free(&w);
    free((void *)(uintptr_t)inside.p);
}

static const struct {
    void (*write)(FILE *f);
    unsigned threads;
} bombs[] = {
    {gzip_of_a_trace, 1},    {gzip_of_empty_packets, 1}, {gzip_of_a_tar, 1},
    {compressed_packets, 1}, {compressed_packets, 8},
};

/* perf.data: maps that lie each inside the one before split it, until they were moved too often. */
START_TEST(maps_are_moved_a_bounded_number_of_times)
{
    enum { KEPT = 10000, N = 20000 };
    struct perf_spaces spaces = {0};
    struct perf_space *space = perf_space_of(&spaces, 7);
    for (uint32_t i = 0; i < N; i++) {
        ck_assert(perf_space_map(space, (struct perf_map){.start = i, .end = 2 * N - i, .mapping = i}));
        if (i == KEPT)
            ck_assert_uint_eq(space->maps.n, 2 * KEPT + 1);
    }
    ck_assert_uint_lt(space->maps.n, N);
    ck_assert_uint_le(space->moved, PERF_MAX_MOVED);
    ck_assert_uint_eq(perf_space_find(space, N - 1)->mapping, N - 1);
    ck_assert_ptr_null(perf_space_find(space, 0));
    perf_spaces_free(&spaces);
}
END_TEST

START_TEST(bombs_take_little_memory)
{
    int fd = memfd_create("bomb", MFD_CLOEXEC);
    FILE *f = fdopen(fd, "w");
    ck_assert_ptr_nonnull(f);
    bombs[_i].write(f);
    ck_assert_int_eq(fflush(f), 0);
    struct import_options options = {.threads = bombs[_i].threads};
    struct storage st;
    struct importer *im;
    struct error err = {0}, late;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    atomic_store(&taken, 0);
    alloc_set_gate(count, NULL);
    ck_assert_int_eq(storage_init(&st), 0);
    ck_assert_int_eq(importer_open(&im, &st, &options, &err), 0);
    int rc = importer_add_file(im, path, &err), rc_late = importer_finish(im, rc ? &late : &err);
    ck_assert_int_eq(rc ? rc : rc_late, -MRD_ELIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "decompression bomb"));
    importer_close(im);
    storage_free(&st);
    alloc_set_gate(NULL, NULL);
    ck_assert_msg(atomic_load(&taken) < 700u * MB, "%zu MB were asked for", atomic_load(&taken) / MB);
    fclose(f);
}
END_TEST

/* Ids of a few bytes that each would open trackers: packets of one kind, about one id each, as many as fit into 1 MB.
 */
static void empty_packet(struct pb_writer *w, uint32_t i)
{
    pb_put_varint(w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, i);
    pb_put_varint(w, TRACE_PACKET_SEQUENCE_FLAGS, 1);
}

static void private_clocks(struct pb_writer *w, uint32_t i)
{
    enum { CLOCKS = 20 };
    pb_put_varint(w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, i);
    size_t snapshot = pb_begin(w, TRACE_PACKET_CLOCK_SNAPSHOT);
    for (uint32_t k = 0; k <= CLOCKS; k++) {
        size_t clock = pb_begin(w, CLOCK_SNAPSHOT_CLOCKS);
        pb_put_varint(w, CLOCK_SNAPSHOT_CLOCK_CLOCK_ID, k < CLOCKS ? 64 + k : 6);
        pb_put_varint(w, CLOCK_SNAPSHOT_CLOCK_TIMESTAMP, i);
        pb_end(w, clock);
    }
    pb_end(w, snapshot);
}

/* The clocks of two kinds of snapshots: their steps cannot be told by one list. */
static void private_clocks_twice(struct pb_writer *w, uint32_t i)
{
    enum { CLOCKS = 20 };
    pb_put_varint(w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, i / 2 + 1);
    size_t snapshot = pb_begin(w, TRACE_PACKET_CLOCK_SNAPSHOT);
    for (uint32_t k = 0; k <= CLOCKS + i % 2; k++) {
        size_t clock = pb_begin(w, CLOCK_SNAPSHOT_CLOCKS);
        pb_put_varint(w, CLOCK_SNAPSHOT_CLOCK_CLOCK_ID, k ? 63 + k : 6);
        pb_put_varint(w, CLOCK_SNAPSHOT_CLOCK_TIMESTAMP, i);
        pb_end(w, clock);
    }
    pb_end(w, snapshot);
}

/* A track, and an event on it, without which it has no row. */
static void track(struct pb_writer *w, uint32_t i)
{
    pb_put_varint(w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1);
    pb_put_varint(w, TRACE_PACKET_TIMESTAMP, i);
    if (i % 2) {
        size_t descriptor = pb_begin(w, TRACE_PACKET_TRACK_DESCRIPTOR);
        pb_put_varint(w, TRACK_DESCRIPTOR_UUID, i);
        pb_put_bytes(w, TRACK_DESCRIPTOR_NAME, (const char *)&i, 3); /* tracks of one name would be one */
        pb_end(w, descriptor);
        return;
    }
    size_t event = pb_begin(w, TRACE_PACKET_TRACK_EVENT);
    pb_put_varint(w, TRACK_EVENT_TYPE, 3); /* an instant */
    pb_put_varint(w, TRACK_EVENT_TRACK_UUID, i - 1);
    pb_put_bytes(w, TRACK_EVENT_NAME, "e", 1);
    pb_end(w, event);
}

static void process(struct pb_writer *w, uint32_t i)
{
    pb_put_varint(w, TRACE_PACKET_TIMESTAMP, i);
    size_t tree = pb_begin(w, TRACE_PACKET_PROCESS_TREE), one = pb_begin(w, PROCESS_TREE_PROCESSES);
    pb_put_varint(w, PROCESS_TREE_PROCESS_PID, i);
    pb_put_varint(w, PROCESS_TREE_PROCESS_PPID, 1);
    pb_put_bytes(w, PROCESS_TREE_PROCESS_CMDLINE, "p", 1);
    pb_end(w, one);
    pb_end(w, tree);
}

/* A thread of its own cpu on one of many machines: what a machine notes by cpu. */
static void cpu_of_machine(struct pb_writer *w, uint32_t i)
{
    pb_put_varint(w, TRACE_PACKET_MACHINE_ID, i % 500 + 1);
    size_t bundle = pb_begin(w, TRACE_PACKET_FTRACE_EVENTS);
    pb_put_varint(w, FTRACE_EVENT_BUNDLE_CPU, i / 500 % 1024);
    pb_end(w, bundle);
}

/* A stack of a frame of its own, and a sample that refers to it. */
static void callsite(struct pb_writer *w, uint32_t i)
{
    pb_put_varint(w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1);
    pb_put_varint(w, TRACE_PACKET_TIMESTAMP, i);
    pb_put_varint(w, TRACE_PACKET_SEQUENCE_FLAGS, i == 1 ? 3 : 2);
    size_t interned = pb_begin(w, TRACE_PACKET_INTERNED_DATA), one;
    if (i == 1) {
        one = pb_begin(w, INTERNED_DATA_MAPPINGS);
        pb_put_varint(w, MAPPING_IID, 1);
        pb_end(w, one);
    }
    one = pb_begin(w, INTERNED_DATA_FRAMES);
    pb_put_varint(w, FRAME_IID, i);
    pb_put_varint(w, FRAME_MAPPING_ID, 1);
    pb_put_varint(w, FRAME_REL_PC, i);
    pb_end(w, one);
    one = pb_begin(w, INTERNED_DATA_CALLSTACKS);
    pb_put_varint(w, CALLSTACK_IID, i);
    pb_put_varint(w, CALLSTACK_FRAME_IDS, i);
    pb_end(w, one);
    pb_end(w, interned);
    one = pb_begin(w, TRACE_PACKET_PERF_SAMPLE);
    pb_put_varint(w, PERF_SAMPLE_PID, 1);
    pb_put_varint(w, PERF_SAMPLE_TID, 1);
    pb_put_varint(w, PERF_SAMPLE_CALLSTACK_IID, i);
    pb_end(w, one);
}

/* A transaction that says as much of itself as it changes layers: each change has the args of all of it. */
static void transaction(struct pb_writer *w, uint32_t changes)
{
    pb_put_varint(w, TRACE_PACKET_TIMESTAMP, changes);
    size_t entry = pb_begin(w, TRACE_PACKET_SURFACEFLINGER_TRANSACTIONS);
    size_t one = pb_begin(w, TRANSACTION_TRACE_ENTRY_TRANSACTIONS), part;
    for (uint32_t k = 0; k < changes; k++) {
        part = pb_begin(w, TRANSACTION_STATE_TRANSACTION_BARRIERS);
        pb_put_varint(w, TRANSACTION_BARRIER_KIND, k);
        pb_end(w, part);
        part = pb_begin(w, TRANSACTION_STATE_LAYER_CHANGES);
        pb_put_varint(w, LAYER_STATE_LAYER_ID, k);
        pb_end(w, part);
    }
    pb_end(w, one);
    pb_end(w, entry);
}

static void transaction_of_600(struct pb_writer *w, uint32_t i)
{
    (void)i;
    transaction(w, 600);
}

static const struct {
    const char *name;
    void (*write)(struct pb_writer *w, uint32_t i);
    enum table_id rows; /* what one id is a row of; T_COUNT: of none */
    unsigned times;     /* bytes of memory for each of the input, at most */
} kinds[] = {
    {"sequences", empty_packet, T_COUNT, 100},
    {"clocks of sequences", private_clocks, T_clock_snapshot, 100},
    {"clocks in two kinds of snapshots", private_clocks_twice, T_clock_snapshot, 100},
    {"tracks", track, T_track, 100},
    {"processes", process, T_process, 100},
    {"cpus of machines", cpu_of_machine, T_machine, 150},
    {"callsites", callsite, T_stack_profile_callsite, 100},
    {"changes of transactions", transaction_of_600, T_surfaceflinger_transaction, 100},
};

/* What this process holds, in KB: of one that was forked, whose peak is its parent's, only this tells. */
static long held_kb(void)
{
    char line[128];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %ld", &kb) == 1)
            break;
    fclose(f);
    return kb;
}

/* At the end of the import, when all that goes by ids is there. */
START_TEST(memory_is_in_proportion_to_the_input)
{
    struct storage st;
    struct importer *im;
    struct error err = {0};
    struct pb_writer w = {0};
    for (uint32_t i = 1; w.n < MB; i++) {
        size_t packet = pb_begin(&w, TRACE_PACKET);
        kinds[_i].write(&w, i);
        pb_end(&w, packet);
    }
    long before = held_kb();
    ck_assert_int_eq(storage_init(&st), 0);
    ck_assert_int_eq(importer_open(&im, &st, NULL, &err), 0);
    ck_assert_int_eq(importer_feed(im, w.p, w.n, &err), 0);
    ck_assert_int_eq(importer_finish(im, &err), 0);
    long held = held_kb() - before, most = (long)kinds[_i].times * 1024 + 40 * 1024;
#ifdef __SANITIZE_ADDRESS__
    most *= 4; /* what lies around each block, and blocks that are kept back */
#endif
    if (kinds[_i].rows != T_COUNT)
        ck_assert_msg(st.t[kinds[_i].rows].n_rows > 400, "%s: %u rows", kinds[_i].name, st.t[kinds[_i].rows].n_rows);
    importer_close(im);
    storage_free(&st);
    ck_assert_msg(held < most, "%s: %ld KB for 1 MB", kinds[_i].name, held);
    pb_writer_free(&w);
}
END_TEST

/* Sets of args are numbered by how many args they have: what takes long to count is not counted. */
START_TEST(few_bytes_are_not_counted_as_millions_of_args)
{
    enum { FEW = 20, MANY = 2000 };
    for (int many = 0; many < 2; many++) {
        struct storage st;
        struct importer *im;
        struct error err = {0};
        struct pb_writer w = {0};
        size_t packet = pb_begin(&w, TRACE_PACKET);
        transaction(&w, many ? MANY : FEW);
        pb_end(&w, packet);
        ck_assert_int_eq(storage_init(&st), 0);
        ck_assert_int_eq(importer_open(&im, &st, NULL, &err), 0);
        ck_assert_int_eq(importer_feed(im, w.p, w.n, &err), 0);
        ck_assert_int_eq(importer_finish(im, &err), 0);
        ck_assert_int_eq(st.t[T_surfaceflinger_transaction].n_rows, many ? MANY : FEW);
        ck_assert_int_eq(args_may_number(&st.args), !many);
        importer_close(im);
        storage_free(&st);
        pb_writer_free(&w);
    }
}
END_TEST

/* Machines are as many as the bytes can be about. */
START_TEST(made_up_machines_are_bounded)
{
    enum { MACHINES = 20000 };
    struct storage st;
    struct importer *im;
    struct error err = {0};
    struct pb_writer w = {0};
    for (uint32_t i = 1; i <= MACHINES; i++) {
        size_t packet = pb_begin(&w, TRACE_PACKET);
        pb_put_varint(&w, TRACE_PACKET_MACHINE_ID, i);
        pb_end(&w, packet);
    }
    ck_assert_int_eq(storage_init(&st), 0);
    atomic_store(&taken, 0);
    alloc_set_gate(count, NULL);
    ck_assert_int_eq(importer_open(&im, &st, NULL, &err), 0);
    ck_assert_int_eq(importer_feed(im, w.p, w.n, &err), 0);
    importer_finish(im, &err);
    alloc_set_gate(NULL, NULL);
    ck_assert_uint_lt(st.t[T_machine].n_rows, 2000);
    ck_assert_uint_gt(st.t[T_machine].n_rows, 500); /* the first id is adopted by the machine that is there */
    ck_assert_int_eq(stats_get(&st.stats, 0, STAT_tokenizer_skipped_packets),
                     MACHINES - (int64_t)st.t[T_machine].n_rows);
    ck_assert_uint_lt(atomic_load(&taken), (size_t)1500 * MB);
    importer_close(im);
    storage_free(&st);
    pb_writer_free(&w);
}
END_TEST

/* Time is that of the processor: a machine with other work is slow without any bomb. */
static void limit_cpu(void)
{
    enum { SECONDS = 60 };
    struct rusage used;
    struct rlimit limit;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &used), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_CPU, &limit), 0);
    limit.rlim_cur = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1 + SECONDS);
    ck_assert_int_eq(setrlimit(RLIMIT_CPU, &limit), 0);
}

Suite *bombs_suite(void);
Suite *bombs_suite(void)
{
    Suite *s = suite_create("bombs");
    TCase *c = tcase_create("bombs");
    tcase_set_timeout(c, 40); /* times CK_TIMEOUT_MULTIPLIER */
    tcase_add_checked_fixture(c, limit_cpu, NULL);
    tcase_add_test(c, maps_are_moved_a_bounded_number_of_times);
    tcase_add_loop_test(c, bombs_take_little_memory, 0, (int)(sizeof bombs / sizeof *bombs));
    tcase_add_test(c, made_up_machines_are_bounded);
    tcase_add_test(c, few_bytes_are_not_counted_as_millions_of_args);
    tcase_add_loop_test(c, memory_is_in_proportion_to_the_input, 0, (int)(sizeof kinds / sizeof *kinds));
    suite_add_tcase(s, c);
    return s;
}
