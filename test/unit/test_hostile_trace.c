/* Tests the importer on damaged input: cut, flipped, random, hungry for memory, read in crumbs. Run it under ASan. */
#include "base/alloc.h"
#include "base/file.h"
#include "importer/importer.h"
#include "wire/fields.h"
#include "wire/pb_writer.h"

#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define DATA MERIDIAN_SOURCE_DIR "/test/data/"

static const char *const traces[] = {
    DATA "linux-kernel-overrun.pftrace",    DATA "linux-mono.pftrace",
    DATA "linux-deflate.pftrace",           DATA "linux-zstd.pftrace",
    DATA "mm-small-ring.pftrace",           DATA "mm-guest-only.pftrace",
    DATA "linux-generic-events.pftrace.gz",
};
enum { TRACES = sizeof traces / sizeof *traces };

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

struct outcome {
    int rc;
    uint32_t events; /* rows of ftrace_event */
    uint32_t rows;   /* of all tables */
    uint64_t digest; /* of every word of every table */
};

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9fb21c651e98df25;
    return h ^ h >> 28;
}

static struct outcome look(const struct storage *st, int rc, bool digest)
{
    struct outcome o = {.rc = rc, .events = st->t[T_ftrace_event].n_rows};
    for (int t = 0; t < T_COUNT; t++) {
        o.rows += st->t[t].n_rows;
        for (uint32_t row = 0; digest && row < st->t[t].n_rows; row++)
            for (uint32_t c = 0; c < st->t[t].def->n_columns; c++)
                o.digest = mix(o.digest, (uint64_t)table_get(&st->t[t], c, row));
    }
    return o;
}

enum route { MAPPED, FED };

/* A file of these bytes that lasts until it is closed. */
static int write_mapped(struct slice bytes, char *path, size_t size)
{
    int fd = memfd_create("trace", MFD_CLOEXEC);
    snprintf(path, size, "/proc/self/fd/%d", fd);
    ck_assert_int_eq(write(fd, bytes.p, bytes.len), (ssize_t)bytes.len);
    return fd;
}

/* Imports bytes by one route or the other, `step` bytes at a time when fed; args are decoded too. */
static struct outcome import(struct slice bytes, enum route route, size_t step, bool digest)
{
    struct storage st;
    struct importer *im;
    struct error err = {0};
    int rc = storage_init(&st);
    if (rc)
        return (struct outcome){.rc = rc};
    rc = importer_open(&im, &st, NULL, &err);
    if (rc) {
        storage_free(&st);
        return (struct outcome){.rc = rc};
    }
    if (route == MAPPED) {
        char path[64];
        int fd = write_mapped(bytes, path, sizeof path);
        rc = importer_add_file(im, path, &err);
        close(fd);
    } else {
        for (size_t at = 0; at < bytes.len && !rc; at += step)
            rc = importer_feed(im, bytes.p + at, bytes.len - at < step ? bytes.len - at : step, &err);
    }
    int rc_finish = importer_finish(im, &err);
    if (!rc)
        rc = rc_finish;
    struct arg_list args = {0};
    for (uint32_t id = 0; id < args_count(&st.args); id++) {
        args.n = 0;
        args_values(&st.args, argset_of_cell(id), &args);
    }
    arg_list_free(&args);
    if (!rc && storage_failed(&st)) /* a query would see this */
        rc = -MRD_ENOMEM;
    struct outcome o = look(&st, rc, digest);
    importer_close(im);
    storage_free(&st);
    return o;
}

static char *load(const char *path, struct slice *bytes)
{
    char *text;
    size_t len;
    struct error err = {0};
    ck_assert_msg(file_read_all(path, 1 << 30, &text, &len, &err) == 0, "%s", err.text);
    *bytes = slice_of(text, len);
    return text;
}

START_TEST(what_is_before_a_cut_is_still_there)
{
    struct slice whole;
    char *text = load(traces[_i], &whole);
    uint32_t before = 0;
    for (size_t k = 0; k <= 24; k++) {
        struct outcome o = import(slice_of(whole.p, whole.len * k / 24), k % 2 ? FED : MAPPED, 1000, false);
        ck_assert_uint_ge(o.events, before);
        before = o.events;
    }
    ck_assert_uint_gt(before, 0);
    for (size_t k = 0; k < 64 && k < whole.len; k++) { /* within the first packets, byte by byte */
        import(slice_of(whole.p, k), MAPPED, 1, false);
        import(slice_of(whole.p, whole.len - k), FED, 4096, false);
    }
    free(text);
}
END_TEST

START_TEST(flipped_bytes_are_survived)
{
    struct slice whole;
    char *text = load(traces[_i % TRACES], &whole);
    uint64_t seed = (uint64_t)_i + 99;
    for (int run = 0; run < 6; run++) {
        char *copy = malloc(whole.len);
        memcpy(copy, text, whole.len);
        size_t flips = 1 + next_random(&seed) % 200;
        size_t from = run % 2 ? 0 : next_random(&seed) % whole.len, span = run % 2 ? whole.len : 400;
        for (size_t i = 0; i < flips; i++) {
            size_t at = from + next_random(&seed) % span;
            if (at < whole.len)
                copy[at] =
                    next_random(&seed) % 3 ? (char)next_random(&seed) : (char)(copy[at] ^ 1 << next_random(&seed) % 8);
        }
        import(slice_of(copy, whole.len), run % 2 ? FED : MAPPED, 3000, false);
        free(copy);
    }
    free(text);
}
END_TEST

START_TEST(random_bytes_are_survived)
{
    uint64_t seed = (uint64_t)_i * 31 + 1;
    uint8_t bytes[4096];
    for (int run = 0; run < 40; run++) {
        size_t n = next_random(&seed) % sizeof bytes;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)next_random(&seed);
        if (n > 12 && run % 4 == 1) { /* one packet of them */
            bytes[0] = 0x0a;
            bytes[1] = 0x80 | ((n - 3) & 0x7f);
            bytes[2] = (uint8_t)((n - 3) >> 7);
        } else if (n > 12 && run % 4 == 2) {
            memcpy(bytes, "\x28\xb5\x2f\xfd", 4);
        } else if (n > 12 && run % 4 == 3) {
            memcpy(bytes, "\x1f\x8b\x08\0", 4);
        }
        import(slice_of(bytes, n), run % 3 ? FED : MAPPED, 100, false);
    }
}
END_TEST

/* Packets whose lengths, timestamps, ids and clocks are extreme. */
START_TEST(enormous_numbers_are_survived)
{
    static const uint64_t odd[] = {
        0,   1,   UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN, UINT32_MAX, 1u << 31, 4096, 65535, 63, 64,
        127, 128, 6,          11,        1000000000,          1u << 28,   3,        5};
    static const uint32_t fields[] = {8, 10, 13, 41, 42, 58, 79, 87, 98};
    enum { ODD = sizeof odd / sizeof *odd, FIELDS = sizeof fields / sizeof *fields };
    uint64_t seed = (uint64_t)_i * 7 + 5;
    struct pb_writer w = {0};
    for (int i = 0; i < 300; i++) {
        size_t packet = pb_begin(&w, 1);
        for (unsigned k = 0; k < 3; k++)
            pb_put_varint(&w, fields[next_random(&seed) % FIELDS], odd[next_random(&seed) % ODD]);
        switch (next_random(&seed) % 6) {
        case 0:
        case 1: { /* ClockSnapshot */
            size_t s = pb_begin(&w, 6);
            for (unsigned k = 0; k < 1 + next_random(&seed) % 4; k++) {
                size_t c = pb_begin(&w, 1);
                pb_put_varint(&w, 1, odd[next_random(&seed) % ODD]);
                pb_put_varint(&w, 2, odd[next_random(&seed) % ODD]);
                if (next_random(&seed) % 4 == 0)
                    pb_put_varint(&w, 3, 1);
                if (next_random(&seed) % 4 == 0)
                    pb_put_varint(&w, 4, odd[next_random(&seed) % ODD]);
                pb_end(&w, c);
            }
            if (next_random(&seed) % 3 == 0)
                pb_put_varint(&w, 2, odd[next_random(&seed) % ODD]);
            pb_end(&w, s);
            break;
        }
        case 2: { /* RemoteClockSync */
            size_t s = pb_begin(&w, 107);
            for (unsigned k = 0; k < 3; k++) {
                size_t r = pb_begin(&w, 1);
                for (uint32_t side = 2; side <= 3; side++) {
                    size_t snapshot = pb_begin(&w, side);
                    size_t c = pb_begin(&w, 1);
                    pb_put_varint(&w, 1, next_random(&seed) % 3 ? 6 : odd[next_random(&seed) % ODD]);
                    pb_put_varint(&w, 2, odd[next_random(&seed) % ODD]);
                    pb_end(&w, c);
                    pb_end(&w, snapshot);
                }
                pb_end(&w, r);
            }
            pb_end(&w, s);
            break;
        }
        case 3: { /* a trigger, so that something is in the tables */
            size_t t = pb_begin(&w, 46);
            pb_put_str(&w, 1, "trigger");
            pb_end(&w, t);
            break;
        }
        case 4: { /* service events drive the sorter */
            size_t e = pb_begin(&w, 69);
            pb_put_varint(&w, (uint32_t)(1 + next_random(&seed) % 11), 1);
            pb_end(&w, e);
            break;
        }
        default: { /* interned data and defaults */
            size_t d = pb_begin(&w, next_random(&seed) % 2 ? 12 : 59);
            size_t e = pb_begin(&w, (uint32_t)(1 + next_random(&seed) % 40));
            pb_put_varint(&w, 1, odd[next_random(&seed) % ODD]);
            pb_end(&w, e);
            pb_put_varint(&w, 58, odd[next_random(&seed) % ODD]);
            pb_end(&w, d);
        }
        }
        pb_end(&w, packet);
    }
    import(pb_written(&w), MAPPED, 0, false);
    import(pb_written(&w), FED, 17, false);
    static const char lengths[][12] = {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "\x0a\xff\xff\xff\xff\x0f",
                                       "\x0a\xff", "\x0b\x01\x02\x03", "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        import(slice_of(lengths[i], sizeof lengths[i]), _i % 2 ? FED : MAPPED, 1, false);
    pb_writer_free(&w);
}
END_TEST

struct countdown {    /* atomic: threads that decompress allocate too */
    atomic_long left; /* calls until one fails; all later ones fail too when `for_good` */
    atomic_long calls;
    bool for_good;
};

static bool gate(void *ctx, size_t size)
{
    struct countdown *c = ctx;
    (void)size;
    c->calls++;
    long left = c->left--;
    return left > 0 || (!c->for_good && left < 0);
}

START_TEST(a_failing_allocation_is_an_error)
{
    static const char *const small[] = {DATA "mm-host-only.pftrace", DATA "mm-small-ring.pftrace",
                                        DATA "linux-deflate.pftrace"};
    struct slice whole;
    char *text = load(small[_i % 3], &whole);
    struct countdown count = {.left = 1L << 60};
    alloc_set_gate(gate, &count);
    struct outcome good = import(whole, MAPPED, 0, false);
    alloc_set_gate(NULL, NULL);
    ck_assert_int_eq(good.rc, 0);
    long step = count.calls / 150 + 1;
    for (long k = _i; k < count.calls; k += k < 60 ? 1 : step) {
        struct countdown c = {.left = k, .for_good = k % 2};
        alloc_set_gate(gate, &c);
        struct outcome o = import(whole, k % 3 ? MAPPED : FED, 5000, false);
        alloc_set_gate(NULL, NULL);
        bool harmless =
            c.left >= 0 ||
            !c.for_good; /* none failed (fed bytes take fewer calls; with threads they vary), or a single one */
        ck_assert_msg(o.rc != 0 || (harmless && o.rows == good.rows), "call %ld failed and nobody said so", k);
    }
    free(text);
}
END_TEST

static ssize_t crumbs(int fd, void *buf, size_t len)
{
    static unsigned n; /* a test hook has no context */
    n = n * 1103515245 + 12345;
    size_t want = 1 + (n >> 16) % 700;
    return read(fd, buf, len < want ? len : want);
}

START_TEST(short_reads_and_pieces_change_nothing)
{
    struct slice whole;
    char *text = load(traces[_i], &whole);
    struct outcome fed = import(whole, FED, whole.len, true);
    static const size_t steps[] = {1, 7, 511, 513, 65536};
    for (size_t i = whole.len > 100000 ? 2 : 0; i < sizeof steps / sizeof *steps; i++) {
        struct outcome o = import(whole, FED, steps[i], true);
        ck_assert_int_eq(o.rc, fed.rc);
        ck_assert_uint_eq(o.rows, fed.rows);
        ck_assert_uint_eq(o.digest, fed.digest);
    }
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    if (fork() == 0) {
        close(ends[0]);
        struct error err;
        file_write_all(ends[1], whole.p, whole.len, &err);
        _exit(0);
    }
    close(ends[1]);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    file_set_read_hook(crumbs);
    struct storage st;
    struct importer *im;
    struct error err = {0};
    ck_assert_int_eq(storage_init(&st), 0);
    ck_assert_int_eq(importer_open(&im, &st, NULL, &err), 0);
    ck_assert_msg(importer_add_file(im, path, &err) == 0, "%s", err.text);
    importer_finish(im, &err);
    ck_assert_uint_eq(look(&st, 0, true).digest, fed.digest);
    file_set_read_hook(NULL);
    importer_close(im);
    storage_free(&st);
    close(ends[0]);
    free(text);
}
END_TEST

static void put_event(struct pb_writer *w, uint64_t ts, uint32_t id, uint32_t field, uint64_t value)
{
    size_t event = pb_begin(w, FTRACE_EVENT_BUNDLE_EVENT);
    if (ts)
        pb_put_varint(w, FTRACE_EVENT_TIMESTAMP, ts);
    pb_put_varint(w, FTRACE_EVENT_PID, (uint32_t)(1 + ts % 7));
    size_t own = pb_begin(w, id);
    pb_put_varint(w, field, value);
    pb_end(w, own);
    pb_end(w, event);
}

/* Switches and wakings, of which the last is damaged when `damaged`. */
static void put_compact(struct pb_writer *w, uint64_t ts, uint32_t n, bool damaged)
{
    static const struct {
        uint32_t field;
        uint32_t values; /* value i is i modulo this; 0: a time */
    } columns[] = {
        {FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_TIMESTAMP, 0},
        {FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_PREV_STATE, 3},
        {FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_NEXT_PID, 5},
        {FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_NEXT_PRIO, 9},
        {FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_NEXT_COMM_INDEX, 2},
        {FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_TIMESTAMP, 0},
        {FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_PID, 5},
        {FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_TARGET_CPU, 3},
        {FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_PRIO, 9},
        {FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_COMM_INDEX, 2},
    };
    size_t compact = pb_begin(w, FTRACE_EVENT_BUNDLE_COMPACT_SCHED);
    pb_put_str(w, FTRACE_EVENT_BUNDLE_COMPACT_SCHED_INTERN_TABLE, ts % 2 ? "odd" : "even");
    pb_put_str(w, FTRACE_EVENT_BUNDLE_COMPACT_SCHED_INTERN_TABLE, "both");
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        size_t column = pb_begin(w, columns[c].field);
        for (uint32_t i = 0; i < n; i++)
            pb_put_raw_varint(w, columns[c].values ? i % columns[c].values : i ? 10 : ts);
        pb_end(w, column);
    }
    if (damaged)
        pb_put_str(w, FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_COMM_INDEX, "\x07");
    pb_end(w, compact);
}

/* A recording whose bundles are long enough to be split ahead, but for some; and of these, some cannot be. */
static void make_bundles(struct pb_writer *out)
{
    enum { BUNDLES = 240, EVENTS = 700, CPUS = 3, STEP = 30 };
    for (uint64_t b = 0; b < BUNDLES; b++) {
        uint64_t ts = 1000 + b / CPUS * EVENTS * STEP;
        size_t packet = pb_begin(out, TRACE_PACKET), bundle = pb_begin(out, TRACE_PACKET_FTRACE_EVENTS);
        if (b % 41 != 40)
            pb_put_varint(out, FTRACE_EVENT_BUNDLE_CPU, b % CPUS);
        for (uint32_t i = 0; i < (b % 7 ? EVENTS : 3); i++)
            put_event(out, ts + i * STEP, FTRACE_EVENT_CPU_IDLE, FTRACE_CPU_IDLE_STATE, i % 4);
        if (b % 10 == 1)
            put_event(out, ts, FTRACE_EVENT_GPU_WORK_PERIOD, FTRACE_GPU_WORK_PERIOD_START_TIME_NS, ts);
        if (b % 10 == 2)
            put_event(out, 0, FTRACE_EVENT_CPU_IDLE, FTRACE_CPU_IDLE_STATE, 1);
        if (b % 4 == 0)
            put_compact(out, ts, 200, b % 20 == 0);
        pb_end(out, bundle);
        pb_end(out, packet);
    }
    ck_assert(!out->failed);
}

START_TEST(the_number_of_threads_changes_nothing)
{
    static const char *const compressed[] = {DATA "linux-deflate.pftrace", DATA "linux-zstd.pftrace"};
    enum { COMPRESSED = sizeof compressed / sizeof *compressed };
    struct pb_writer bundles = {0};
    char made[64];
    const char *path = _i < COMPRESSED ? compressed[_i] : made;
    uint64_t digest = 0;
    int fd = -1;
    if (_i == COMPRESSED) {
        make_bundles(&bundles);
        fd = write_mapped(pb_written(&bundles), made, sizeof made);
        pb_writer_free(&bundles);
    }
    for (unsigned threads = 1; threads <= 5; threads++) {
        struct import_options options = {.threads = threads};
        struct storage st;
        struct importer *im;
        struct error err = {0};
        ck_assert_int_eq(storage_init(&st), 0);
        ck_assert_int_eq(importer_open(&im, &st, &options, &err), 0);
        ck_assert_msg(importer_add_file(im, path, &err) == 0, "%s", err.text);
        ck_assert_int_eq(importer_finish(im, &err), 0);
        struct outcome o = look(&st, 0, true);
        ck_assert_uint_gt(o.events, 0);
        ck_assert(threads == 1 || o.digest == digest);
        digest = o.digest;
        importer_close(im);
        storage_free(&st);
    }
    if (fd >= 0)
        close(fd);
}
END_TEST

START_TEST(an_unknown_format_is_one_clear_error)
{
    struct storage st;
    struct importer *im;
    struct error err = {0};
    storage_init(&st);
    ck_assert_int_eq(importer_open(&im, &st, NULL, &err), 0);
    ck_assert_int_eq(importer_add_file(im, MERIDIAN_SOURCE_DIR "/CMakeLists.txt", &err), -MRD_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "CMakeLists.txt: Unknown trace type provided (ERR:fmt)"));
    ck_assert_int_eq(importer_add_file(im, "/no/such/file", &err), -MRD_ENOTFOUND);
    importer_close(im);
    storage_free(&st);
}
END_TEST

Suite *hostile_trace_suite(void);
Suite *hostile_trace_suite(void)
{
    Suite *s = suite_create("hostile_trace");
    TCase *t = tcase_create("hostile_trace");
    tcase_set_timeout(t, 600);
    tcase_add_loop_test(t, what_is_before_a_cut_is_still_there, 0, TRACES);
    tcase_add_loop_test(t, flipped_bytes_are_survived, 0, 3 * TRACES);
    tcase_add_loop_test(t, random_bytes_are_survived, 0, 4);
    tcase_add_loop_test(t, enormous_numbers_are_survived, 0, 12);
    tcase_add_loop_test(t, a_failing_allocation_is_an_error, 0, 6);
    tcase_add_loop_test(t, short_reads_and_pieces_change_nothing, 0, TRACES);
    tcase_add_loop_test(t, the_number_of_threads_changes_nothing, 0, 3);
    tcase_add_test(t, an_unknown_format_is_one_clear_error);
    suite_add_tcase(s, t);
    return s;
}
