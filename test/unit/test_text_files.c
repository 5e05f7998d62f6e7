/* Files of other tools: each a small one of its own, with the rows that its format says. */
#include "importer/importer.h"
#include "sql_fixture.h"

struct text_case {
    const char *bytes;
    size_t len;
    const char *query, *rows;
    int rc; /* of the import */
};

#define TEXT(s) s, sizeof(s) - 1

/* Method traces of Android's runtime, version 2. */
#define ART_HEAD "SLOW\xf4\0\0\x10\0\0\0\0\0\0" /* begins at 4096 ns */ "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define ART_DUAL "SLOW\xf5\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define ART_NAMES                                                                                                      \
    "\0\x4d\0\0\0\4\0main"                                                                                             \
    "\1\0\1\0\0\0\0\0\0\x0e\0a/B\tf\t()V\tB.j\n"                                                                       \
    "\1\4\1\0\0\0\0\0\0\x14\0a/C\tg\t(I)V\tC.java\t7\n"
/* f begins at 10, g at 20, ends at 30; f is left at 330. */
#define ART_RECORDS "\2\x4d\0\0\0\4\0\0\x0a\0\0\0\x80\2\x0a\4\x0a\1\x0a\x7d\xac\2"
#define ART_SLICES                                                                                                     \
    "select s.ts, s.dur, s.depth, s.name, tid, t.name, (select group_concat(key || '=' || display_value) from args a " \
    "where a.arg_set_id = s.arg_set_id) from slice s join thread_track k on k.id = s.track_id join thread t using "    \
    "(utid) where k.type = 'art_method_tracing' order by s.ts"
#define ART_ROWS                                                                                                       \
    "4106,320,0,a/B.f: ()V,77,main,pathname=B.j;4116,10,1,a/C.g: (I)V,77,main,pathname=a/C.java,line_number=7"

/* Version 1, streamed: method 4 is entered and left by thread 1. */
#define ART_STREAM(end)                                                                                                \
    "SLOW\xf2\0\x20\0\1\0\0\0\0\0\0\0"                                                                                 \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"                                                                                 \
    "\0\0\1\x12\0"                                                                                                     \
    "0x4\ta/B\tf\t()V\tB.j\n"                                                                                          \
    "\1\0\4\0\0\0\x0a\0\0\0\1\0\5\0\0\0\x14\0\0\0\0\0\3" end

/* simpleperf: a sample of thread 11 at 1000 in function g of file 1, whose record stands where simpleperf writes it. */
#define SIMPLEPERF_HEAD   "SIMPLEPERF\1\0"
#define SIMPLEPERF_SAMPLE "\x0f\0\0\0\x0a\x0d\x08\xe8\x07\x10\x0b\x1a\x06\x08\x10\x10\1\x18\1"
#define SIMPLEPERF_FILE   "\x0e\0\0\0\x1a\x0c\x08\1\x12\2/a\x1a\1f\x1a\1g"

static const struct text_case cases[] = {
    {TEXT(SIMPLEPERF_HEAD SIMPLEPERF_SAMPLE SIMPLEPERF_FILE "\0\0\0\0"),
     "select ts, f.name, rel_pc, m.name from __intrinsic_profiler_sample s join stack_profile_callsite c on c.id = "
     "callsite_id join stack_profile_frame f on f.id = frame_id join stack_profile_mapping m on m.id = mapping",
     "1000,g,16,/a", 0},
    {TEXT(SIMPLEPERF_HEAD SIMPLEPERF_SAMPLE "\0\0\0\0"),
     "select (select count(*) from __intrinsic_profiler_sample), value from stats where name = "
     "'simpleperf_missing_file_mapping'",
     "0,1", 0},
    {TEXT(ART_STREAM("\x15\0\0\0*version\nclock=wall\n\n")), "select ts, dur, name from slice",
     "11000,10000,a/B.f: ()V", 0},
    {TEXT(ART_STREAM("\x1a\0\0\0*version\nclock=thread-cpu\n")), "select 1", "1", -MRD_EUNSUPPORTED},
    {TEXT(ART_HEAD ART_NAMES ART_RECORDS), ART_SLICES, ART_ROWS, 0},
    {TEXT(ART_HEAD ART_RECORDS ART_NAMES), ART_SLICES, ART_ROWS, 0},
    {TEXT(ART_DUAL ART_NAMES "\2\x4d\0\0\0\4\0\0\x0e\0\0\0\x80\2\x0a\0\4\x0a\1\1\x0a\0\x7d\xac\2\5"), ART_SLICES,
     ART_ROWS, 0},
    /* a block that counts more records than it has */
    {TEXT(ART_HEAD ART_NAMES "\2\x4d\0\0\0\x09\0\0\x0a\0\0\0\x80\2\x0a\4\x0a\1\x0a\x7d\xac\2"), ART_SLICES, ART_ROWS,
     0},
    {TEXT(ART_HEAD "\3\x29\0*version\n4\nclock=wall\nvm=art\npid=77\n*end\n"),
     "select name, str_value from metadata where name in ('clock', 'vm', 'pid', 'trace_type') order by name",
     "clock,wall;pid,77;trace_type,art_method_v2;vm,art", 0},
    {TEXT(ART_HEAD "\3\x11\0clock=thread-cpu\n"), "select 1", "1", -MRD_EUNSUPPORTED},
    {TEXT(ART_HEAD ART_NAMES "\2\x4d\0\0\0\4\0\0\x0a\0\0\0\x80\2\x0a"), "select count(*) from slice", "0",
     -MRD_EFORMAT},
    {TEXT(ART_HEAD ART_NAMES ART_RECORDS "\x09"), ART_SLICES, ART_ROWS, -MRD_EFORMAT},
    /* a number without an end */
    {TEXT(ART_HEAD "\2\x4d\0\0\0\1\0\0\x0c\0\0\0\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\1"),
     "select count(*) from slice", "0", -MRD_EFORMAT},
};

static void check(const struct text_case *c, size_t piece)
{
    struct sql_fixture f;
    struct importer *im;
    struct error err = {0};
    sql_open(&f);
    ck_assert_msg(importer_open(&im, &f.st, NULL, &err) == 0, "%s", err.text);
    int rc = 0;
    for (size_t at = 0; at < c->len && !rc; at += piece) {
        size_t n = c->len - at < piece ? c->len - at : piece;
        char *copy = malloc(n); /* gone after the call */
        memcpy(copy, c->bytes + at, n);
        rc = importer_feed(im, copy, n, &err);
        free(copy);
    }
    int rc_finish = importer_finish(im, rc ? NULL : &err);
    rc = rc ? rc : rc_finish;
    ck_assert_msg(rc == c->rc, "%d: %s", rc, err.text);
    ck_assert_int_eq(engine_loaded(f.e, &err), 0);
    char *rows = sql_rows(&f, c->query);
    ck_assert_msg(rows, "%s", engine_error_text(f.e));
    ck_assert_msg(strcmp(rows, c->rows) == 0, "%s:\n%s\nshould be\n%s", c->query, rows, c->rows);
    sqlite3_free(rows);
    sql_close(&f);
    importer_close(im);
}

START_TEST(files_become_rows)
{
    check(&cases[_i], 1 << 20);
    check(&cases[_i], 1);
    check(&cases[_i], 7);
}
END_TEST

Suite *text_files_suite(void);
Suite *text_files_suite(void)
{
    Suite *s = suite_create("text_files");
    TCase *t = tcase_create("text_files");
    tcase_add_loop_test(t, files_become_rows, 0, (int)(sizeof cases / sizeof *cases));
    suite_add_tcase(s, t);
    return s;
}
