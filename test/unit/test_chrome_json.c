/* Chrome JSON: pieces, what is broken, order of events, args; and profiles of Firefox. */
#include "importer/importer.h"
#include "sql_fixture.h"

static struct sql_fixture f;
static struct importer *im;
static struct error last;

/* Imports a text in pieces; the code of importer_finish(). */
static int feed(const char *text, size_t len, size_t piece)
{
    struct error err = {0};
    sql_open(&f);
    ck_assert_msg(importer_open(&im, &f.st, NULL, &err) == 0, "%s", err.text);
    int rc = 0;
    for (size_t at = 0; at < len && !rc; at += piece) {
        size_t n = len - at < piece ? len - at : piece;
        char *copy = malloc(n); /* gone after the call */
        memcpy(copy, text + at, n);
        rc = importer_feed(im, copy, n, &err);
        memset(copy, 0x5a, n);
        free(copy);
    }
    int rc_finish = importer_finish(im, rc ? NULL : &err);
    last = err;
    ck_assert_int_eq(engine_loaded(f.e, &err), 0);
    return rc ? rc : rc_finish;
}

static void close_all(void)
{
    sql_close(&f);
    importer_close(im);
}

static void load(const char *text)
{
    int rc = feed(text, strlen(text), 1 << 20);
    ck_assert_msg(rc == 0, "%s", last.text);
}

#define SLICES "select ts, dur, depth, name from slice order by ts, id"
#define ARGS   "select key, value_type, display_value from args where key glob 'args.*' order by id"

/* --- pieces --- */

static const char *const documents[] = {
    "[{\"ph\":\"X\",\"ts\":1,\"dur\":5,\"pid\":1,\"tid\":2,\"name\":\"a\",\"args\":{\"k\":\"v\\u00e9\",\"n\":[1,{\"x\":"
    "2.5}]}},\n"
    "{\"ph\":\"B\",\"ts\":\"2.5\",\"pid\":1,\"tid\":2,\"name\":\"b "
    "\\\"q\\\"\"},{\"ph\":\"E\",\"ts\":3,\"pid\":1,\"tid\":2}",
    "{ \"metadata\" : {\"k\":1,\"l\":\"m\"} , \"traceEvents\" : [ "
    "{\"ph\":\"b\",\"id\":\"0x1\",\"cat\":\"c\",\"ts\":1,\"pid\":1,\"name\":\"n\"},"
    "{\"ph\":\"e\",\"id\":\"0x1\",\"cat\":\"c\",\"ts\":4,\"pid\":1,\"name\":\"n\",\"args\":{\"end\":true}} ], "
    "\"x\":[1,2,{}], "
    "\"traceEvents\":[{\"ph\":\"C\",\"ts\":2,\"pid\":1,\"name\":\"counter\",\"args\":{\"v\":1.5,\"w\":\"2\"}}] } "
    "ignored",
    "[{\"ph\":\"P\",\"ts\":1,\"pid\":1,\"tid\":1,\"id\":\"0x1\",\"args\":{\"data\":{\"startTime\":10}}},"
    "{\"ph\":\"P\",\"ts\":2,\"pid\":1,\"tid\":1,\"id\":\"0x1\",\"args\":{\"data\":{\"cpuProfile\":{\"nodes\":[{\"id\":"
    "1,\"callFrame\":"
    "{\"functionName\":\"f\"},\"children\":[2]},{\"id\":2,\"callFrame\":{\"functionName\":\"g\",\"url\":\"u\"}}],"
    "\"samples\":[2,1]},"
    "\"timeDeltas\":[1,2]}}}]",
};

static char *everything(void)
{
    static const char *const queries[] = {
        SLICES,
        "select key, value_type, display_value from args order by arg_set_id, key",
        "select name, int_value, str_value from metadata where name glob 'json*' order by name",
        "select ts, value from counter",
        "select ts, callsite_id from cpu_profile_stack_sample order by ts",
        "select name, value from stats where value > 0 and severity in ('error', 'data_loss') order by name"};
    char *all = sqlite3_mprintf("");
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        char *rows = sql_rows(&f, queries[i]);
        ck_assert_msg(rows != NULL, "%s: %s", queries[i], engine_error_text(f.e));
        char *more = sqlite3_mprintf("%s\n%s", all, rows);
        sqlite3_free(rows);
        sqlite3_free(all);
        all = more;
    }
    return all;
}

START_TEST(pieces_of_any_size_give_the_same)
{
    static const size_t sizes[] = {1, 2, 3, 7, 61, 500};
    const char *text = documents[_i];
    load(text);
    char *want = everything();
    ck_assert_msg(strstr(want, "\n\n\n\n\n\n") == NULL, "nothing was read: %s", want);
    close_all();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ck_assert_int_eq(feed(text, strlen(text), sizes[i]), 0);
        char *got = everything();
        ck_assert_str_eq(got, want);
        sqlite3_free(got);
        close_all();
    }
    sqlite3_free(want);
}
END_TEST

/* --- broken texts --- */

#define GOOD(ts) "{\"ph\":\"X\",\"ts\":" ts ",\"dur\":1,\"pid\":1,\"tid\":1,\"name\":\"good\"}"

static const struct {
    const char *text;
    int slices;
    int errors;        /* json_tokenizer_failure */
    const char *place; /* in the log */
} broken[] = {
    {"[" GOOD("1") "," GOOD("2"), 2, 0, NULL},
    {"[" GOOD("1") "," GOOD("2") ",", 2, 0, NULL},
    {"[" GOOD("1") ",{\"ph\":\"X\",\"ts\":2,\"du", 1, 1, "line 1, column 78: the text ends inside of an event"},
    {"{\"traceEvents\":[" GOOD("1") "," GOOD("2"), 2, 1, "line 1, column"},
    {"{\"traceEvents\":[" GOOD("1") ",\n{\"ph\":\"X\",\"ts\":2,\"nam", 1, 1, "line 2, column 22:"},
    {"{\"traceEvents\":[" GOOD("1") "]", 1, 1, "the text ends inside of an object"},
    {"{\"traceEvents\":[" GOOD("1") "],\"x\":tru}", 1, 1, "line 1, column"},
    {"[" GOOD("1") ",\n  {\"ph\":\"X\",\"ts\":nope},\n" GOOD("3") "]", 2, 1, "line 2, column 18: true, false or null"},
    {"[" GOOD("1") ",{\"ph\":\"X\",\"ts\":nope,\"args\":{\"a\":\"................................................\"}}"
                   "," GOOD("3") "]",
     2, 1, "line 1, column"},
    {"[" GOOD("1") ",\n{\"ph\":\"X\",\"ts\":01,\"dur\":1}," GOOD("3") "]", 2, 1, "line 2, column 16: a number begins"},
    {"[" GOOD("1") ",,," GOOD("3") "]", 2, 1, "an event is expected"},
    {"[" GOOD("1") ",null,5,\"x\",[1]," GOOD("3") "]", 2, 4, "an event is expected"},
    {"[" GOOD("1") ",{\"ph\":\"X\",\"ts\":2,\"dur\":\"long\",\"tid\":1}," GOOD("3") "]", 2, 1, "\"long\","},
    {"[" GOOD("1") ",{\"ph\":\"X\",\"dur\":1,\"tid\":1}," GOOD("3") "]", 2, 1, NULL},
    {"[" GOOD("1") "]]]]", 1, 0, NULL},
    {"[" GOOD("1") " // comment\n]", 1, 1, "an event is expected"},
    {"[" GOOD("NaN") "," GOOD("2") "]", 1, 1, "line 1, column"},
    {"[" GOOD("1e999") "," GOOD("2") "]", 1, 1, NULL},
    {"[" GOOD("-5") "," GOOD("2") "]", 1, 0, NULL},
    {"[" GOOD("9223372036854776") "," GOOD("2") "]", 1, 0, NULL},
    {"{\"traceEvents\":{\"a\":1}}", 0, 1, "traceEvents is no array"},
};

START_TEST(what_is_broken_is_counted_and_the_rest_stays)
{
    const char *text = broken[_i].text;
    for (size_t piece = 1; piece < 2000; piece = piece * 40) {
        int rc = feed(text, strlen(text), piece);
        ck_assert_msg((rc == 0) == (broken[_i].slices > 0), "%s: %s", text, last.text);
        char *slices = sql_rows(&f, "select count(*) from slice where name = 'good'");
        char *errors = sql_rows(&f, "select value from stats where name = 'json_tokenizer_failure'");
        char *logs =
            sql_rows(&f, "select group_concat(display_value) from _trace_import_logs join args using (arg_set_id)");
        ck_assert_msg(slices && atoi(slices) == broken[_i].slices, "%s: %s slices", text, slices);
        ck_assert_msg(errors && atoi(errors) == broken[_i].errors, "%s: %s errors: %s", text, errors, logs);
        if (broken[_i].place)
            ck_assert_msg(logs && strstr(logs, broken[_i].place), "%s: %s", text, logs);
        sqlite3_free(slices);
        sqlite3_free(errors);
        sqlite3_free(logs);
        close_all();
    }
}
END_TEST

/* --- what events become --- */

static const struct {
    const char *text, *sql, *rows;
} cases[] = {
    /* events of one time: ends, long ones, short ones, the rest */
    {"[{\"ph\":\"X\",\"ts\":10,\"dur\":1,\"tid\":1,\"name\":\"short\"},{\"ph\":\"i\",\"ts\":10,\"tid\":1,\"name\":"
     "\"i\"},"
     "{\"ph\":\"X\",\"ts\":10,\"dur\":9,\"tid\":1,\"name\":\"long\"}]",
     SLICES, "10000,9000,0,long;10000,1000,1,short;10000,0,2,i"},
    /* before a complete event: as in the file */
    {"[{\"ph\":\"B\",\"ts\":10,\"tid\":1,\"name\":\"b\"},{\"ph\":\"E\",\"ts\":10,\"tid\":1}]", SLICES, "10000,0,0,b"},
    {"[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"tid\":9,\"name\":\"x\"},{\"ph\":\"B\",\"ts\":10,\"tid\":1,\"name\":\"b\"},"
     "{\"ph\":\"E\",\"ts\":10,\"tid\":1}]",
     SLICES, "1000,1000,0,x;10000,-1,0,b"},
    {"[{\"ph\":\"X\",\"ts\":1700000000000000.123,\"dur\":0.5,\"tid\":1,\"name\":\"a\"}]", SLICES,
     "1700000000000000123,500,0,a"},
    {"[{\"ph\":\"X\",\"ts\":1,\"dur\":4,\"tid\":1,\"name\":\"a\"},{\"ph\":\"X\",\"ts\":2,\"dur\":4,\"tid\":1,\"name\":"
     "\"b\"}]",
     "select s.name, t.type from slice s join track t on t.id = s.track_id order by s.ts",
     "a,thread_execution;b,thread_overlapping_slice"},
    /* Firefox: what markers hold, in either form */
    {"{\"meta\":{\"categories\":[{\"name\":\"c\"}]},\"threads\":[{\"tid\":2,\"pid\":1,\"stringTable\":[\"m\"],"
     "\"markers\":{\"schema\":{\"name\":0,\"startTime\":1,\"endTime\":2,\"phase\":3,\"category\":4,\"data\":5},"
     "\"data\":[[0,1,2,1,0,{\"type\":\"x\"}],[0,3,5,1,0]]}}]}",
     "select ts, dur, name, category, key, display_value from slice left join args using (arg_set_id) order by ts",
     "1000000,1000000,m,c,data.type,x;3000000,2000000,m,c,-,-"},
    {"{\"meta\":{\"categories\":[{\"name\":\"c\"}]},\"threads\":[{\"tid\":2,\"pid\":1,\"stringArray\":[\"m\"],"
     "\"markers\":{\"name\":[0,0],\"startTime\":[1,3],\"endTime\":[2,5],\"phase\":[1,1],\"category\":[0,0],\"data\":[{"
     "\"type\":\"x\"}]}}]}",
     "select ts, dur, name, category, key, display_value from slice left join args using (arg_set_id) order by ts",
     "1000000,1000000,m,c,data.type,x;3000000,2000000,m,c,-,-"},
    /* a complete event that reaches beyond what is around it: the top of the stack goes, as in the public tool */
    {"[{\"ph\":\"B\",\"ts\":1,\"tid\":1,\"name\":\"a\"},{\"ph\":\"X\",\"ts\":10,\"dur\":20,\"tid\":1,\"name\":"
     "\"reach\"},{\"ph\":\"E\",\"ts\":20,\"tid\":1},{\"ph\":\"X\",\"ts\":25,\"dur\":3,\"tid\":1,\"name\":\"in\"},{"
     "\"ph\":\"i\",\"ts\":40,\"tid\":1,\"name\":\"later\"}]",
     SLICES, "1000,19000,0,a;10000,20000,1,reach;25000,3000,1,in;40000,0,0,later"},
    /* what goes to a track beside the others cuts none of them */
    {"[{\"ph\":\"X\",\"ts\":5,\"dur\":3,\"tid\":1,\"name\":\"around\"},{\"ph\":\"B\",\"ts\":6,\"tid\":1,\"name\":"
     "\"open\"},{\"ph\":\"X\",\"ts\":8,\"dur\":5,\"tid\":1,\"name\":\"in\"},{\"ph\":\"X\",\"ts\":9,\"dur\":5,\"tid\":1,"
     "\"name\":\"beside\"}]",
     SLICES, "5000,3000,0,around;6000,-1,1,open;8000,5000,2,in;9000,5000,0,beside"},
    {"[{\"ph\":\"X\",\"ts\":1,\"dur\":4,\"tid\":1,\"args\":{\"a\":{\"b\":[1,[2,\"x\"]],\"c\":null},\"d\":true,\"e\":1."
     "5,\"f\":{}}}]",
     ARGS, "args.a.b[0],int,1;args.a.b[1][0],int,2;args.a.b[1][1],string,x;args.d,bool,true;args.e,real,1.5"},
    {"[{\"ph\":\"B\",\"ts\":1,\"tid\":1,\"args\":{\"l\":[1],\"s\":1}},{\"ph\":\"E\",\"ts\":2,\"tid\":1,\"args\":{\"l\":"
     "[9],\"s\":2}}]",
     "select key, display_value from args join slice using (arg_set_id) order by key",
     "args.l[0],1;args.l[1],9;args.s,2"},
    {"[{\"ph\":\"X\",\"ts\":1,\"dur\":4,\"tid\":1,\"args\":{\"a\":null,\"b\":{},\"c\":[[]]}}]",
     "select arg_set_id from slice", "-"},
    {"[{\"ph\":\"X\",\"ts\":1,\"dur\":4,\"tid\":1,\"name\":\"\\ud83d\\ude00\"},{\"ph\":\"X\",\"ts\":6,\"dur\":4,"
     "\"tid\":1,\"name\":\"\\ud83d\"}]",
     "select name from slice order by ts", "\xf0\x9f\x98\x80;\xef\xbf\xbd"},
    {"[{\"ph\":\"X\",\"ts\":1,\"dur\":4,\"tid\":1,\"name\":\"old\",\"name\":\"new\"}]", "select name from slice",
     "new"},
    {"[{\"ph\":\"M\",\"pid\":3,\"tid\":4,\"name\":\"thread_name\",\"args\":{\"name\":\"t\"}},{\"ph\":\"M\",\"pid\":3,"
     "\"name\":\"process_name\",\"args\":{\"name\":\"p\"}},{\"ph\":\"i\",\"s\":\"t\",\"ts\":1,\"pid\":3,\"tid\":4}]",
     "select p.name, p.pid, t.name, t.tid from thread t join process p using (upid) where tid = 4", "p,3,t,4"},
    {"[{\"ph\":\"X\",\"ts\":1,\"dur\":4,\"pid\":0,\"tid\":0,\"name\":\"zero\"}]",
     "select t.utid, t.tid, t.is_idle from thread t join thread_track k using (utid)", "1,0,0"},
    {"[{\"ph\":\"s\",\"id\":1,\"ts\":2,\"tid\":1},{\"ph\":\"X\",\"ts\":1,\"dur\":4,\"tid\":1,\"name\":\"a\"},{\"ph\":"
     "\"X\",\"ts\":6,"
     "\"dur\":4,\"tid\":2,\"name\":\"b\"},{\"ph\":\"f\",\"bp\":\"e\",\"id\":1,\"ts\":7,\"tid\":2}]",
     "select a.name, b.name from flow f join slice a on a.id = f.slice_out join slice b on b.id = f.slice_in", "a,b"},
    {"{\"meta\":{\"categories\":[{\"name\":\"JS\"}]},\"threads\":[{\"name\":\"T\",\"tid\":2,\"pid\":1,\"stringArray\":["
     "\"f (in l)\","
     "\"M\"],\"frameTable\":{\"func\":[0]},\"funcTable\":{\"name\":[0]},\"stackTable\":{\"prefix\":[null],\"frame\":[0]"
     "},\"samples\":"
     "{\"stack\":[0],\"time\":[1.5]},\"markers\":{\"name\":[1],\"startTime\":[1],\"endTime\":[3],\"phase\":[1],"
     "\"category\":[0],"
     "\"data\":[{\"a\":1}]}}]}",
     "select s.ts, f.name, m.name, (select name || dur from slice) from stack_profile_frame f join "
     "stack_profile_mapping m on "
     "m.id = f.mapping, cpu_profile_stack_sample s",
     "1500000,f,l,M2000000"},
};

START_TEST(events_become_rows)
{
    load(cases[_i].text);
    sql_expect(&f, cases[_i].sql, cases[_i].rows);
    close_all();
}
END_TEST

/* Ties go over the borders of the sorter's blocks. */
START_TEST(many_events_of_one_time)
{
    enum { N = 5000, ROOM = 100 };
    char *text = malloc(N * ROOM + ROOM), *p = text;
    p += sprintf(p, "[");
    for (int i = 0; i < N; i++)
        p += sprintf(p, "%s{\"ph\":\"%c\",\"ts\":%d,\"dur\":%d,\"tid\":%d,\"name\":\"x\"}", i ? "," : "",
                     i % 3 ? 'X' : 'B', i < 10 ? i : 10, i % 3 ? i + 1 : 0, i + 1);
    load(text);
    sql_expect(&f, "select count(*) from slice", "5000");
    sql_expect(&f,
               "select count(*) from (select ts, dur, lag(ts) over w as before, lag(dur) over w as longer from slice "
               "window w as "
               "(order by id)) where ts < before or (ts = before and dur > longer)",
               "0");
    close_all();
    free(text);
}
END_TEST

/* A name of a megabyte over an array would be as many names of a megabyte. */
START_TEST(long_names_of_args_are_cut)
{
    enum { NAME = 1 << 20, VALUES = 5000 };
    static const char begin[] =
        "[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1,\"name\":\"a\",\"args\":{\"b\":7,\"";
    char *text = malloc(sizeof begin + NAME + 2 * VALUES + 16), *p = stpcpy(text, begin);
    memset(p, 'n', NAME);
    p = stpcpy(p + NAME, "\":[");
    for (int i = 0; i < VALUES; i++)
        p = stpcpy(p, i ? ",1" : "1");
    stpcpy(p, "]}}]");
    load(text);
    sql_expect(&f, "select max(length(key)), max(int_value) filter (where key = 'args.b') from args", "1024,7");
    size_t bytes = 0;
    for (strid id = 1; id <= f.st.strings.n; id++)
        bytes += strpool_view(&f.st.strings, id).len;
    ck_assert_uint_lt(bytes, 3 * NAME);
    free(text);
    close_all();
}
END_TEST

/* Nothing that a file says is taken in more than linear time or memory. */
START_TEST(hostile_sizes)
{
    enum { N = 1 << 18 };
    static const char *const frames[][2] = {
        {"[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"name\":\"", "\"}]"},
        {"[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"args\":{\"a\":", "}}]"},
        {"[{\"ph\":\"X\",\"ts\":", "}]"},
        {"{\"x\":", "}"},
    };
    static const char fills[] = "[{\"\\1 -";
    for (size_t k = 0; k < sizeof frames / sizeof *frames; k++) {
        for (size_t i = 0; i < sizeof fills - 1; i++) {
            size_t head = strlen(frames[k][0]), tail = strlen(frames[k][1]);
            char *text = malloc(head + N + tail);
            memcpy(text, frames[k][0], head);
            memset(text + head, fills[i], N);
            memcpy(text + head + N, frames[k][1], tail);
            feed(text, head + N + tail, 64 << 10);
            char *rows = sql_rows(&f, "select count(*) from args");
            ck_assert(rows != NULL);
            sqlite3_free(rows);
            close_all();
            free(text);
        }
    }
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

Suite *chrome_json_suite(void);
Suite *chrome_json_suite(void)
{
    Suite *s = suite_create("chrome_json");
    TCase *t = tcase_create("chrome_json");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, pieces_of_any_size_give_the_same, 0, COUNT(documents));
    tcase_add_loop_test(t, what_is_broken_is_counted_and_the_rest_stays, 0, COUNT(broken));
    tcase_add_loop_test(t, events_become_rows, 0, COUNT(cases));
    tcase_add_test(t, many_events_of_one_time);
    tcase_add_test(t, long_names_of_args_are_cut);
    tcase_add_test(t, hostile_sizes);
    suite_add_tcase(s, t);
    return s;
}
