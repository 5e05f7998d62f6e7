/* Directories of CTF traces as an import sees them: which are found, and types that refer to what stands around them.
 */
#include "importer/ctf/ctf_trace.h"
#include "importer/importer.h"
#include "made_up_files.h"

#define CTF "/* CTF 1.8 */\n"

/* Packets begin with a tag, which is the first choice of an enum or the second. */
#define TAGGED                                                                                                         \
    CTF "typealias integer { size = 8; } := u8; typealias integer { size = 16; align = 8; } := u16;"                   \
        "stream { packet.context := struct { u16 content_size; u16 packet_size; enum : u8 { big, small } tag; };"      \
        " event.header := struct { u8 id; u8 timestamp; }; };"

static struct storage st;
static struct importer *im;

static void setup(void)
{
    struct import_options options = {0};
    struct error err;
    make_root();
    ck_assert_int_eq(storage_init(&st), 0);
    ck_assert_int_eq(importer_open(&im, &st, &options, &err), 0);
}

static void teardown(void)
{
    importer_close(im);
    storage_free(&st);
    remove_root();
}

static void make_stream(const char *name, const void *bytes, size_t n)
{
    char path[200];
    snprintf(path, sizeof path, "%s%s", made_up, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void load(void)
{
    struct error err = {0};
    ck_assert_msg(importer_add_file(im, made_up, &err) == 0, "%s", err.text);
    ck_assert_msg(importer_finish(im, &err) == 0, "%s", err.text);
}

/* The int arg of an event's row; -1 when it has none. */
static int64_t arg_of(uint32_t row, const char *key)
{
    struct arg_list list = {0};
    int64_t value = -1;
    args_values(&st.args, ROW_ARGS(&st, ftrace_event, arg_set_id, row), &list);
    for (size_t i = 0; i < list.n; i++)
        if (strcmp(strpool_cstr(&st.strings, list.p[i].key), key) == 0)
            value = list.p[i].word;
    arg_list_free(&list);
    return value;
}

START_TEST(fields_that_need_headers_are_left_out)
{
    /* Read again in time order, without the header, the tag would say 0: a hundred thousand words behind the file. */
    make_file("/metadata", TAGGED "event { name = e; id = 1; fields := struct { variant <stream.packet.context.tag> {"
                                  " u16 big[100000]; u8 small; } v; }; };");
    const uint8_t packet[] = {64, 0, 64, 0, 1, /* e */ 1, 1, 7};
    make_stream("/stream", packet, sizeof packet);
    load();
    ck_assert_uint_eq(st.t[T_ftrace_event].n_rows, 1);
    ck_assert_int_eq(*stats_get_idx(&st.stats, 0, STAT_ctf_events_without_args, 0), 1);
    ck_assert_ptr_null(stats_get_idx(&st.stats, 0, STAT_ctf_packets_damaged, 0));
}
END_TEST

START_TEST(a_type_refers_to_the_fields_around_each_use)
{
    make_file("/metadata", TAGGED "typedef u8 list[n];"
                                  "event { name = a; id = 1; fields := struct { u8 n; list l; u8 end; }; };"
                                  "event { name = b; id = 2; fields := struct { u8 x; u8 n; list l; u8 end; }; };");
    const uint8_t packet[] = {128, 0, 128, 0, 1, /* a */ 1, 1, 2, 11, 12, 77, /* b */ 2, 2, 9, 0, 78};
    make_stream("/stream", packet, sizeof packet);
    load();
    ck_assert_uint_eq(st.t[T_ftrace_event].n_rows, 2);
    ck_assert_int_eq(arg_of(0, "end"), 77);
    ck_assert_int_eq(arg_of(0, "l[1]"), 12);
    ck_assert_int_eq(arg_of(1, "end"), 78);
}
END_TEST

START_TEST(links_between_directories_are_not_followed)
{
    struct error err = {0};
    char path[100];
    ctf_traces traces = {0};
    for (int i = 0; i < 10; i++) { /* followed eight deep they would be a hundred million directories */
        snprintf(path, sizeof path, "%s/%d", made_up, i);
        ck_assert_int_eq(symlink(".", path), 0);
    }
    ck_assert(!ctf_is_trace(made_up));
    make_file("/z/host/metadata", TAGGED);
    ck_assert(ctf_is_trace(made_up));
    ck_assert_int_eq(ctf_open_all(made_up, &traces, &err), 0);
    ck_assert_uint_eq(traces.n, 1);
    ctf_trace_close(traces.p[0]);
    vec_free(&traces);
    snprintf(path, sizeof path, "%s/link", made_up); /* the one that a user names is */
    ck_assert_int_eq(symlink("z", path), 0);
    ck_assert(ctf_is_trace(path));
}
END_TEST

START_TEST(so_many_directories_are_no_trace)
{
    enum { TOO_MANY = 1100 };
    char path[100];
    for (int i = 0; i < TOO_MANY; i++) {
        snprintf(path, sizeof path, "%s/%05d", made_up, i);
        ck_assert_int_eq(mkdir(path, 0755), 0);
    }
    make_file("/z/metadata", TAGGED);
    ctf_traces traces = {0};
    struct error err = {0};
    ck_assert(!ctf_is_trace(made_up));
    ck_assert_int_eq(ctf_open_all(made_up, &traces, &err), -MRD_ELIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "directories"));
    ck_assert_uint_eq(traces.n, 0);
}
END_TEST

START_TEST(so_many_traces_are_refused)
{
    enum { MOST = 1024 };
    struct ctf_file file = {"metadata", slice_of(TAGGED, sizeof TAGGED - 1)};
    ctf_traces traces = {0};
    struct error err = {0};
    for (int i = 0; i < MOST; i++)
        ck_assert_int_eq(ctf_open_files("a", &file, 1, &traces, &err), 0);
    ck_assert_int_eq(ctf_open_files("b", &file, 1, &traces, &err), -MRD_ELIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "b: more than 1024"));
    ck_assert_uint_eq(traces.n, MOST);
    for (size_t i = 0; i < traces.n; i++)
        ctf_trace_close(traces.p[i]);
    vec_free(&traces);
}
END_TEST

Suite *ctf_import_suite(void);
Suite *ctf_import_suite(void)
{
    Suite *s = suite_create("ctf_import");
    TCase *c = tcase_create("ctf_import");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, fields_that_need_headers_are_left_out);
    tcase_add_test(c, a_type_refers_to_the_fields_around_each_use);
    tcase_add_test(c, links_between_directories_are_not_followed);
    tcase_add_test(c, so_many_directories_are_no_trace);
    tcase_add_test(c, so_many_traces_are_refused);
    suite_add_tcase(s, c);
    return s;
}
