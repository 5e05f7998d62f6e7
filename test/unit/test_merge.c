/* Tests archives of several traces, and the manifest that places them: where events land, and every error. */
#include "archive_fixture.h"

#include "importer/merge/manifest.h"
#include "wire/pb_cursor.h"

#include <stdio.h>
#include <unistd.h>
#include <zlib.h>

START_TEST(traces_meet_at_realtime)
{
    struct pb_writer a = {0}, b = {0};
    struct member members[] = {
        {"b", make_trace(&b, "two", 0, 500, 1000100, 510)}, /* sorted by name: it comes second */
        {"a", make_trace(&a, "one", 0, 100, 1000000, 110)},
    };
    struct load l;
    int64_t machine;
    load_members(&l, members, 2, _i);
    ck_assert_msg(l.rc == 0, "%s", l.err.text);
    ck_assert_int_eq(time_of(&l, "one", &machine), 110);
    ck_assert_int_eq(time_of(&l, "two", &machine), 210); /* 100 later by REALTIME, 10 after the snapshot */
    ck_assert_uint_eq(l.st.t[T_trace_file].n_rows, 3);
    unload(&l);
    pb_writer_free(&a);
    pb_writer_free(&b);
}
END_TEST

static const char placed[] =
    "{\"perfetto_manifest\": {\"version\": 1, \"trace_time\": {\"clock\": \"BOOTTIME\", \"file\": \"b\"},"
    "\"files\": [{\"path\": \"a\", \"machine\": {\"name\": \"left\"},"
    " \"clocks\": {\"clock\": \"BOOTTIME\", \"sync_to\": {\"file\": \"b\", \"clock\": \"BOOTTIME\"},"
    " \"offset_ns\": 5000}},"
    "{\"path\": \"b\", \"machine\": {\"name\": \"right\"}},"
    "{\"path\": \"c\", \"machine\": {\"name\": \"centre\"},"
    " \"clocks\": {\"sync_to\": {\"file\": \"b\", \"clock\": \"BOOTTIME\"}, \"offset_ns\": -7}},"
    "{\"path\": \"d\", \"machine\": {\"name\": \"left\"},"
    " \"clocks\": {\"sync_to\": {\"file\": \"b\", \"clock\": \"BOOTTIME\"}}}],"
    "\"attributes\": {\"who\": \"me\", \"n\": 3}}}";

/* Traces of three machines, the last two without clocks of their own; the fourth is of the first's machine. */
START_TEST(the_manifest_places_traces)
{
    struct pb_writer a = {0}, b = {0}, c = {0}, d = {0};
    struct member members[] = {
        {"a", make_trace(&a, "one", 0, 100, 0, 110)},
        {"b", make_trace(&b, "two", 0, 500, 0, 510)},
        {"c", make_trace(&c, "three", 0, 0, 0, 900)},
        {"d", make_trace(&d, "four", 0, 0, 0, 901)},
        {"m.json", slice_str(placed)},
    };
    struct load l;
    int64_t left, right, centre, again;
    load_members(&l, members, 5, _i);
    ck_assert_msg(l.rc == 0, "%s", l.err.text);
    ck_assert_int_eq(time_of(&l, "one", &left), 5110);
    ck_assert_int_eq(time_of(&l, "two", &right), 510);
    ck_assert_int_eq(time_of(&l, "three", &centre), 893);
    ck_assert_int_eq(time_of(&l, "four", &again), 901);
    ck_assert_int_ne(centre, left);
    ck_assert_int_ne(centre, right);
    ck_assert_int_ne(left, right);
    ck_assert_int_eq(left, again);
    ck_assert_str_eq(strpool_cstr(&l.st.strings, (strid)ROW_GET(&l.st, machine, name, (uint32_t)left)), "left");
    ck_assert_int_ge(ROW_GET(&l.st, machine, raw_id, (uint32_t)left), INT64_C(1) << 32);
    unload(&l);
    pb_writer_free(&a);
    pb_writer_free(&b);
    pb_writer_free(&c);
    pb_writer_free(&d);
}
END_TEST

#define M(body) "{\"perfetto_manifest\": {" body "}}"
#define F(body) M("\"version\": 1, \"files\": [{\"path\": \"a\"" body "}, {\"path\": \"b\"}]")

static const struct {
    const char *manifest;
    const char *error;
} mistakes[] = {
    {M(""), "missing required field: version"},
    {M("\"version\": \"1\""), "version must be an integer"},
    {M("\"version\": 2"), "unsupported version: 2. Only version 1 is supported"},
    {M("\"version\": 1, \"trace_time\": {\"clock\": \"TAI\"}"),
     "trace_time: unknown clock name: TAI. Use one of REALTIME, REALTIME_COARSE, MONOTONIC, MONOTONIC_COARSE, "
     "MONOTONIC_RAW, "
     "BOOTTIME"},
    {M("\"version\": 1, \"files\": [{}]"), "files entries must be objects with a string path"},
    {M("\"version\": 1, \"files\": {}"), "files must be an array"},
    {M("\"version\": 1, \"trace_time\": 3"), "trace_time must be an object"},
    {M("\"version\": 1, \"trace_time\": {\"clock\": \"BOOTTIME\", \"file\": 3}"), "trace_time: file must be a string"},
    {F(", \"machine\": {}"), "machine must be an object with a string name"},
    {F(", \"machines\": {}"), "machines must be an array"},
    {F(", \"machines\": [{\"id\": 0}]"), "machines entries need an integer id and a string name"},
    {F(", \"clocks\": []"), "clocks must be an object"},
    {F(", \"clocks\": {\"sync_to\": []}"), "clocks: sync_to must be an object"},
    {F(", \"clocks\": {\"machine\": 1, \"sync_to\": {\"file\": \"b\"}}"), "clocks: machine must be a string"},
    {F(", \"clocks\": {\"sync_to\": {\"file\": \"b\", \"machine\": 1}}"), "clocks: sync_to.machine must be a string"},
    {F(", \"machine\": {\"name\": \"x\"}, \"machines\": []"), "machine and machines are mutually exclusive"},
    {F(", \"machine\": {\"name\": \"\"}"), "machine: name must be non-empty"},
    {F(", \"machines\": [{\"id\": 0, \"name\": \"\"}]"), "machines: name must be non-empty"},
    {F(", \"machines\": [{\"id\": 0, \"name\": \"h\"}, {\"id\": 7, \"name\": \"g\"}], \"clocks\": "
       "{\"clock\": \"BOOTTIME\", \"sync_to\": {\"file\": \"b\"}}"),
     "clocks: file 'a' is a multi-machine trace; name which machine the clock is on with clocks: machine"},
    {F(", \"machines\": [{\"id\": -1, \"name\": \"x\"}]"), "machines: id must be in [0, 4294967295]"},
    {F(", \"machines\": [{\"id\": 4294967296, \"name\": \"x\"}]"), "machines: id must be in [0, 4294967295]"},
    {F(", \"machines\": [{\"id\": 0, \"name\": \"x\"}]"), "machines: trace has a packet from undeclared machine id 7"},
    {F(", \"clocks\": {\"clock\": \"BOOTTIME\"}"), "clocks: a sync_to block is required"},
    {F(", \"clocks\": {\"clock\": \"BOOTTIME\", \"sync_to\": {}}"),
     "clocks: sync_to.file is required and must be a string"},
    {F(", \"clocks\": {\"sync_to\": {\"machine\": \"x\"}}"), "clocks: sync_to.file is required and must be a string"},
    {F(", \"clocks\": {\"sync_to\": {\"file\": \"z\"}}"),
     "clocks: sync_to.file names unknown file 'z'. It must match the path of an entry in the files array"},
    {F(", \"clocks\": {\"sync_to\": {\"file\": \"b\"}, \"offset_ns\": 1.5}"), "clocks: offset_ns must be an integer"},
    {F(", \"clocks\": {\"sync_to\": {\"file\": \"b\"}, \"offset_ns\": 9223372036854775808}"),
     "clocks: offset_ns is out of range"},
    {F(", \"clocks\": {\"clock\": \"BOOTTIME\", \"sync_to\": {\"file\": \"b\"}}"),
     "a `clocks` override applies only to a single-machine file"},
    {F(", \"machines\": [{\"id\": 0, \"name\": \"h\"}, {\"id\": 7, \"name\": \"g\"}], \"clocks\": {\"machine\": \"q\", "
       "\"clock\": \"BOOTTIME\", \"sync_to\": {\"file\": \"b\"}}"),
     "clocks: machine 'q' is not a machine declared by file 'a'"},
    {M("\"version\": 1, \"files\": [{\"path\": \"a\"}, {\"path\": \"b\", \"clocks\": {\"clock\": \"BOOTTIME\", "
       "\"sync_to\": {\"file\": \"a\", \"clock\": \"BOOTTIME\"}}}]"),
     "clocks: sync_to.file 'a' is a multi-machine trace; also name the machine with clocks: sync_to.machine"},
    {M("\"version\": 1, \"files\": [{\"path\": \"a\"}, {\"path\": \"b\", \"clocks\": {\"sync_to\": {\"file\": "
       "\"a\"}}}]"),
     "clocks: sync_to.file 'a' is a multi-machine trace; also name the machine with clocks: sync_to.machine"},
    {M("\"version\": 1, \"attributes\": []"), "attributes must be an object of string or integer values"},
    {M("\"version\": 1, \"attributes\": {\"k\": 1.5}"), "attributes: 'k' must be a string or an integer"},
    {M("\"version\": 1, \"attributes\": {\"\": 1}"), "attributes: keys must be non-empty"},
    {M("\"version\": 1, \"files\": [{\"path\": \"m.json\", \"machine\": {\"name\": \"x\"}}]"),
     "overrides are not supported for trace files which are themselves archives or perfetto_manifest files"},
};

START_TEST(mistakes_in_the_manifest_are_told)
{
    struct pb_writer a = {0}, b = {0};
    make_trace(&a, "host", 0, 100, 0, 110);
    make_trace(&a, "guest", 7, 0, 0, 120);
    struct member members[] = {
        {"a", pb_written(&a)},
        {"b", make_trace(&b, "two", 0, 500, 0, 510)},
        {"m.json", slice_str(mistakes[_i].manifest)},
    };
    char want[512];
    struct load l;
    load_members(&l, members, 3, false);
    snprintf(want, sizeof want, "perfetto_manifest: %s", mistakes[_i].error);
    ck_assert_int_eq(l.rc, -MRD_EFORMAT);
    ck_assert_str_eq(l.err.text, want);
    unload(&l);
    pb_writer_free(&a);
    pb_writer_free(&b);
}
END_TEST

/* Mistakes that only the traces show. */
START_TEST(traces_that_are_not_as_the_manifest_says_are_told)
{
    static const struct {
        const char *manifest, *error;
    } rows[] = {
        {F(", \"machine\": {\"name\": \"x\"}"),
         "machine: 'a' is a multi-machine trace. Replace `machine` with a `machines` block that names each machine id"},
        {M("\"version\": 1, \"files\": [{\"path\": \"a\"}, {\"path\": \"b\", \"clocks\": {\"sync_to\": "
           "{\"file\": \"b\", \"clock\": \"BOOTTIME\"}}}]"),
         "clock overrides require the trace to use a single clock"},
        {M("\"version\": 1, \"trace_time\": {}"), "trace_time needs a clock"},
        {M("\"version\": 1, \"trace_time\": {\"clock\": \"BOOTTIME\", \"file\": \"z\"}"),
         "trace_time: file names unknown file 'z'. It must match the path of an entry in the files array"},
        {M("\"version\": 1, \"trace_time\": {\"clock\": \"BOOTTIME\", \"machine\": \"z\"}"),
         "trace_time: machine is ambiguous, name the file too"},
        {F(", \"clocks\": {\"clock\": \"TAI\", \"sync_to\": {\"file\": \"b\"}}"),
         "clocks: unknown clock name: TAI. Use one of REALTIME, REALTIME_COARSE, MONOTONIC, MONOTONIC_COARSE, "
         "MONOTONIC_RAW, "
         "BOOTTIME"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pb_writer a = {0}, b = {0};
        make_trace(&a, "host", 0, 100, 0, 110);
        make_trace(&a, "guest", 7, 0, 0, 120);
        struct member members[] = {
            {"a", pb_written(&a)},
            {"b", make_trace(&b, "two", 0, 500, 0, 510)},
            {"m.json", slice_str(rows[i].manifest)},
        };
        char want[512];
        struct load l;
        load_members(&l, members, 3, false);
        snprintf(want, sizeof want, "perfetto_manifest: %s", rows[i].error);
        ck_assert_str_eq(l.err.text, want);
        unload(&l);
        pb_writer_free(&a);
        pb_writer_free(&b);
    }
}
END_TEST

/* Machines have rows in the order in which the manifest names them; the host has one only when something is of it. */
START_TEST(machines_stand_in_the_order_of_the_manifest)
{
    static const struct {
        const char *manifest;
        const char *names[4];
        int64_t raw[4];
        int64_t idle[4]; /* whose the idle threads are, in the order of traces */
    } rows[] = {
        {M("\"version\": 1, \"files\": [{\"path\": \"b\", \"machine\": {\"name\": \"x\"}}, {\"path\": \"a\", "
           "\"machines\": [{\"id\": 0, \"name\": \"y\"}, {\"id\": 7, \"name\": \"x\"}]}]"),
         {"x", "y"},
         {INT64_C(1) << 32, (INT64_C(1) << 32) + 1},
         {1, 0}},
        {M("\"version\": 1, \"files\": [{\"path\": \"b\", \"machine\": {\"name\": \"x\"}}]"),
         {"x", "Linux", "Linux"},
         {INT64_C(1) << 32, 0, 7},
         {1, 0, 2}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pb_writer a = {0}, b = {0};
        make_trace(&a, "host", 0, 100, 0, 110);
        make_trace(&a, "guest", 7, 0, 0, 120);
        struct member members[] = {
            {"a", pb_written(&a)},
            {"b", make_trace(&b, "two", 0, 500, 0, 510)},
            {"m.json", slice_str(rows[i].manifest)},
        };
        struct load l;
        load_members(&l, members, 3, false);
        ck_assert_msg(l.rc == 0, "%s", l.err.text);
        uint32_t n = 0;
        for (; n < 4 && rows[i].names[n]; n++) {
            int64_t name = ROW_GET(&l.st, machine, name, n);
            ck_assert_str_eq(name ? strpool_cstr(&l.st.strings, (strid)name) : "(null)", rows[i].names[n]);
            ck_assert_int_eq(ROW_GET(&l.st, machine, raw_id, n), rows[i].raw[n]);
            ck_assert_int_eq(ROW_GET(&l.st, thread, machine_id, n), rows[i].idle[n]);
            ck_assert_int_eq(ROW_GET(&l.st, process, machine_id, n), rows[i].idle[n]);
            ck_assert_int_eq(ROW_GET(&l.st, thread, is_idle, n), 1);
        }
        ck_assert_uint_eq(l.st.t[T_machine].n_rows, n);
        unload(&l);
        pb_writer_free(&a);
        pb_writer_free(&b);
    }
}
END_TEST

/* A log that tells no year is of that of the traces beside it: of their time of day where they know it. */
START_TEST(logs_without_a_year_are_of_the_year_of_others)
{
    static const char log[] = "03-04 05:06:07.891  1234  5678 I Tag: beside others\n";
    static const char calls[] = "7 1709528767.000001 write(1) = 1\n7 1709528768.000001 write(1) = 1\n";
    const int64_t logged = 1709528767891000000, booted = logged - 5000000000;
    struct pb_writer w = {0};
    struct member members[][2] = {
        {{"a", slice_str(log)}, {"b", slice_str(calls)}},
        {{"a", slice_str(log)}, {"b", make_trace(&w, "host", 0, 100, booted, 110)}},
        {{"a", slice_str(log)}, {NULL, {0}}},
    };
    const int64_t want[] = {logged, logged - booted + 100, INT64_C(5375167891000000)};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        struct load l;
        load_members(&l, members[i], members[i][1].name ? 2 : 1, false);
        ck_assert_msg(l.rc == 0, "%s", l.err.text);
        ck_assert_uint_eq(l.st.t[T_logs].n_rows, 1);
        ck_assert_int_eq(ROW_GET(&l.st, logs, ts, 0), want[i]);
        unload(&l);
    }
    pb_writer_free(&w);
}
END_TEST

START_TEST(times_that_nothing_relates_are_told_of_their_file)
{
    static const char calls[] = "7 1709528767.000001 write(1) = 1\n";
    static const char kernel[] = "# tracer: nop\n#\n a-1 [000] 5.000001: tracing_mark_write: B|1|x\n";
    struct member members[] = {{"a", slice_str(kernel)}, {"b", slice_str(calls)}};
    struct load l;
    load_members(&l, members, 2, false);
    ck_assert_msg(l.rc == 0, "%s", l.err.text);
    ck_assert_uint_eq(l.st.t[T_trace_import_logs].n_rows, 1);
    ck_assert_int_eq(ROW_GET(&l.st, trace_import_logs, trace_id, 0), 2); /* the archive, a, b */
    unload(&l);
}
END_TEST

/* The clock that metadata says times are of; -1: nothing is said. */
static int64_t clock_id_told(struct storage *st)
{
    for (uint32_t i = 0; i < st->t[T_metadata].n_rows; i++)
        if (strcmp(strpool_cstr(&st->strings, (strid)ROW_GET(st, metadata, name, i)), "trace_time_clock_id") == 0)
            return ROW_GET(st, metadata, int_value, i);
    return -1;
}

START_TEST(a_manifest_alone_comes_first)
{
    const char *m = M("\"version\": 1, \"trace_time\": {\"clock\": \"MONOTONIC\"}");
    char path[] = "/tmp/meridian-manifest-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_eq(write(fd, m, strlen(m)), (ssize_t)strlen(m));
    close(fd);
    struct load l = {0};
    storage_init(&l.st);
    ck_assert_int_eq(importer_open(&l.im, &l.st, NULL, &l.err), 0);
    ck_assert_int_eq(importer_add_file(l.im, path, &l.err), 0);
    ck_assert_int_eq(clock_id_told(&l.st), 3);
    ck_assert_int_eq(importer_add_file(l.im, path, &l.err), -MRD_EFORMAT);
    ck_assert_ptr_nonnull(
        strstr(l.err.text, "perfetto_manifest: perfetto_manifest file must be the first trace file in the input"));
    unload(&l);
    l = (struct load){0};
    storage_init(&l.st);
    ck_assert_int_eq(importer_open(&l.im, &l.st, NULL, &l.err), 0);
    ck_assert_int_eq(importer_add_file(l.im, path, &l.err), 0);
    ck_assert_int_eq(importer_finish(l.im, &l.err), 0);
    ck_assert_uint_eq(l.st.t[T_machine].n_rows, 0); /* it names none that anything is of */
    ck_assert_uint_eq(l.st.t[T_trace_file].n_rows, 1);
    unload(&l);
    unlink(path);
}
END_TEST

START_TEST(one_manifest_an_archive)
{
    const char *m = M("\"version\": 1");
    struct member members[] = {{"m.json", slice_str(m)}, {"n.json", slice_str(m)}};
    struct load l;
    load_members(&l, members, 2, false);
    ck_assert_str_eq(l.err.text, "perfetto_manifest: multiple perfetto_manifest files in archive");
    unload(&l);
    load_members(&l, members, 1, false); /* alone it configures nothing */
    ck_assert_int_eq(l.rc, 0);
    unload(&l);
}
END_TEST

/* Compressed members are opened in their turn: behind traces of packets, and by their names. */
START_TEST(a_compressed_manifest_comes_before_traces)
{
    uint8_t packed[512];
    z_stream z = {.next_in = (Bytef *)(uintptr_t)M("\"version\": 1"), .next_out = packed, .avail_out = sizeof packed};
    z.avail_in = (uInt)strlen((const char *)z.next_in);
    ck_assert_int_eq(deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    struct pb_writer a = {0};
    struct member members[] = {{"a.json.gz", slice_of(packed, z.total_out)},
                               {"b", make_trace(&a, "one", 0, 100, 1000000, 110)}};
    struct load l;
    load_members(&l, members, 1, false);
    ck_assert_int_eq(l.rc, 0);
    unload(&l);
    load_members(&l, members, 2, false);
    ck_assert_int_eq(l.rc, -MRD_EFORMAT);
    ck_assert_ptr_nonnull(strstr(l.err.text, "perfetto_manifest file must be the first trace file"));
    unload(&l);
    pb_writer_free(&a);
    deflateEnd(&z);
}
END_TEST

/* JSON that is cut or random is an error, never a crash. */
START_TEST(damaged_manifests_are_survived)
{
    size_t n = strlen(placed);
    struct manifest m;
    struct error err;
    for (size_t k = 0; k < n; k++) {
        char *cut = malloc(k + 1);
        memcpy(cut, placed, k);
        ck_assert_int_ne(manifest_parse(&m, slice_of(cut, k), &err), 0);
        free(cut);
    }
    uint64_t seed = 5;
    for (int run = 0; run < 2000; run++) {
        char *copy = malloc(n);
        memcpy(copy, placed, n);
        for (int k = 0; k < 3; k++) {
            seed = seed * 6364136223846793005 + 1442695040888963407;
            copy[(seed >> 33) % n] = "{}[]\",:\\u0-9eE. \0x"[(seed >> 20) % 18];
        }
        if (manifest_parse(&m, slice_of(copy, n), &err) == 0)
            manifest_free(&m);
        free(copy);
    }
    char deep[3000];
    memset(deep, '[', sizeof deep);
    ck_assert_int_ne(manifest_parse(&m, slice_of(deep, sizeof deep), &err), 0);
}
END_TEST

Suite *merge_suite(void);
Suite *merge_suite(void)
{
    Suite *s = suite_create("merge");
    TCase *t = tcase_create("merge");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, traces_meet_at_realtime, 0, 2);
    tcase_add_loop_test(t, the_manifest_places_traces, 0, 2);
    tcase_add_loop_test(t, mistakes_in_the_manifest_are_told, 0, sizeof mistakes / sizeof *mistakes);
    tcase_add_test(t, traces_that_are_not_as_the_manifest_says_are_told);
    tcase_add_test(t, machines_stand_in_the_order_of_the_manifest);
    tcase_add_test(t, logs_without_a_year_are_of_the_year_of_others);
    tcase_add_test(t, times_that_nothing_relates_are_told_of_their_file);
    tcase_add_test(t, a_manifest_alone_comes_first);
    tcase_add_test(t, one_manifest_an_archive);
    tcase_add_test(t, a_compressed_manifest_comes_before_traces);
    tcase_add_test(t, damaged_manifests_are_survived);
    suite_add_tcase(s, t);
    return s;
}
