/* Traces of OpenTelemetry: what becomes of spans in every form of file, and of files that are damaged. */
#include "base/alloc.h"
#include "wire/fields.h"
#include "wire/pb_writer.h"

#include <check.h>
#include <meridian/tp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tp *tp;

static int load(const void *bytes, size_t len)
{
    tp_close(tp);
    ck_assert_int_eq(tp_open(&tp, NULL), 0);
    int rc = tp_feed(tp, bytes, len), end = tp_finish(tp);
    return rc ? rc : end;
}

static void load_text(const char *text)
{
    ck_assert_msg(load(text, strlen(text)) == 0, "%s", tp_error(tp));
}

static void teardown(void)
{
    tp_close(tp);
    tp = NULL;
}

/* The rows of a query: cells with commas, rows with semicolons, NULL as "-". */
static const char *rows(const char *sql)
{
    static char text[8192];
    struct tp_result *r;
    size_t n = 0;
    text[0] = 0;
    ck_assert_msg(tp_query(tp, sql, &r) == 0, "%s\n%s", sql, tp_error(tp));
    for (int row = 0; tp_step(r) == 1; row++)
        for (int i = 0; i < tp_columns(r); i++) {
            const char *cell = tp_text(r, i, NULL);
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? "," : row ? ";" : "", cell ? cell : "-");
            ck_assert_uint_lt(n, sizeof text);
        }
    tp_result_close(r);
    return text;
}

static void expect(const char *sql, const char *want)
{
    const char *got = rows(sql);
    ck_assert_msg(strcmp(got, want) == 0, "%s\ngot      %s\nexpected %s", sql, got, want);
}

#define STATS "SELECT name, value FROM stats WHERE name GLOB 'otlp_*' AND value > 0 ORDER BY name"
#define TRACE "\"traceId\":\"000102030405060708090a0b0c0d0e0f\""
#define RESOURCE(attributes)                                                                                           \
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" attributes                                                   \
    "]},\"scopeSpans\":[{\"scope\":{\"name\":\"lib\",\"version\":\"2\"},\"spans\":["
#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define INT(key, value)  "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" #value "\"}}"
#define END              "]}]}]}\n"
#define SPAN(id, parent, name, start, end, more)                                                                       \
    "{" TRACE ",\"spanId\":\"000000000000000" id "\",\"parentSpanId\":\"" parent "\",\"name\":\"" name                 \
    "\",\"startTimeUnixNano\":\"" #start "\",\"endTimeUnixNano\":\"" #end "\"" more "}"
#define PARENT(id) "000000000000000" id

START_TEST(every_type_of_attribute)
{
    load_text(RESOURCE(TEXT("service.name", "s")) SPAN(
        "1", "", "a", 1000, 3000,
        ",\"kind\":\"SPAN_KIND_SERVER\",\"status\":{\"code\":\"STATUS_CODE_ERROR\",\"message\":\"no\"},\"traceState\":"
        "\"v=1\","
        "\"attributes\":[{\"key\":\"s\",\"value\":{\"stringValue\":\"x\\u00e9\\n\"}},{\"key\":\"t\",\"value\":{"
        "\"boolValue\":true}},"
        "{\"key\":\"i\",\"value\":{\"intValue\":\"-9007199254740993\"}},{\"key\":\"j\",\"value\":{\"intValue\":7}},"
        "{\"key\":\"d\",\"value\":{\"doubleValue\":-2.5}},{\"key\":\"inf\",\"value\":{\"doubleValue\":\"Infinity\"}},"
        "{\"key\":\"b\",\"value\":{\"bytesValue\":\"AP+A\"}},{\"key\":\"n\",\"value\":{}},"
        "{\"key\":\"a\",\"value\":{\"arrayValue\":{\"values\":[{\"intValue\":\"1\"},{\"arrayValue\":{\"values\":[{"
        "\"stringValue\":\"in\"}]}}]}}},"
        "{\"key\":\"m\",\"value\":{\"kvlistValue\":{\"values\":[{\"key\":\"k\",\"value\":{\"kvlistValue\":{\"values\":["
        "{\"key\":\"l\",\"value\":{\"stringValue\":\"v\"}}]}}}]}}}]") END);
    expect("SELECT key, value_type, display_value FROM args JOIN slice USING (arg_set_id) WHERE key NOT GLOB 'otel.*'",
           "s,string,x\xc3\xa9\n;t,bool,true;i,int,-9007199254740993;j,int,7;d,real,-2.5;inf,real,Inf;b,string,00ff80;"
           "n,null,-;a[0],int,1;a[1][0],string,in;m.k.l,string,v");
    expect("SELECT flat_key FROM args JOIN slice USING (arg_set_id) WHERE key = 'a[1][0]'", "a");
    expect("SELECT key, display_value FROM args JOIN slice USING (arg_set_id) WHERE key GLOB 'otel.*'",
           "otel.trace_id,000102030405060708090a0b0c0d0e0f;otel.span_id,0000000000000001;otel.kind,server;"
           "otel.status,error;otel.status_message,no;otel.trace_state,v=1;otel.scope.name,lib;otel.scope.version,2");
    expect("SELECT ts, dur, category FROM slice", "1000,2000,lib");
    expect(STATS, "otlp_resource_without_host,1");
}
END_TEST

/* Numbers as numbers, enums as numbers, what is absent, keys of older versions, a mark of byte order, null. */
START_TEST(lenient_json)
{
    load_text("\xef\xbb\xbf "
              "\n{\"ignored\":{\"x\":[1,{}]},\"resourceSpans\":[null,{\"instrumentationLibrarySpans\":[{\"spans\":["
              "{" TRACE ",\"spanId\":\"ABCDEFABCDEFabcd\",\"parentSpanId\":null,\"startTimeUnixNano\":1000,"
              "\"endTimeUnixNano\":2000,\"kind\":5,\"status\":{},\"attributes\":null,\"links\":{},\"events\":[{"
              "\"timeUnixNano\":1500}]}"
              "],\"instrumentationLibrary\":{\"name\":\"old\"}}],\"resource\":{\"attributes\":[" TEXT("service.name",
                                                                                                      "late") "]}}]}");
    expect("SELECT name, kind, status, service, scope, span_id, dur FROM otel_span",
           ",consumer,unset,late,old,abcdefabcdefabcd,1000");
    expect("SELECT ts, dur, category, name FROM slice ORDER BY id", "1000,1000,old,;1500,0,otel.event,-");
    expect(STATS, "otlp_resource_without_host,1");
}
END_TEST

/* A name of an attribute over an array is a key for each of its values. */
START_TEST(long_names_of_attributes_are_cut)
{
    enum { NAME = 100000 };
    char *text = malloc(NAME + 1024), name[NAME + 1];
    memset(name, 'n', NAME);
    name[NAME] = 0;
    sprintf(
        text,
        "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{" TRACE ",\"spanId\":\"abcdefabcdefabcd\",\"name\":\"a\","
        "\"startTimeUnixNano\":1000,\"endTimeUnixNano\":2000,\"attributes\":[{\"key\":\"%s\",\"value\":{\"arrayValue\":"
        "{\"values\":[{\"intValue\":1},{\"intValue\":2}]}}}]}]}]}]}",
        name);
    load_text(text);
    expect("SELECT max(length(key)), max(length(flat_key)) FROM args", "1024,1024");
    free(text);
}
END_TEST

START_TEST(what_cannot_be_a_span)
{
    load_text(RESOURCE(TEXT(
        "host.name",
        "h")) "{\"traceId\":\"00\",\"spanId\":\"0000000000000001\",\"name\":\"short\","
              "\"startTimeUnixNano\":\"5\",\"endTimeUnixNano\":\"6\"},"
              "{\"traceId\":\"00000000000000000000000000000000\",\"spanId\":\"0000000000000001\","
              "\"name\":\"zero\",\"startTimeUnixNano\":\"5\"},"
              "{" TRACE ",\"spanId\":\"000000000000000g\",\"name\":\"no hex\",\"startTimeUnixNano\":\"5\"},"
              "{" TRACE
              ",\"name\":\"no id\",\"startTimeUnixNano\":\"5\"}," SPAN("1", "", "no start", 0, 6, "") "," SPAN(
                  "2", "", "far", 99999999999999999999, 6,
                  "") "," SPAN("3", "", "good", 10, 0,
                               ",\"droppedEventsCount\":2,\"droppedLinksCount\":"
                               "\"3\"") "," SPAN("4", PARENT("3"), "back", 20, 15, ",\"events\":[{\"name\":\"when\"}]")
                  END "{\"resourceLogs\":[]}\n{\"resourceMetrics\":[]}\n");
    expect("SELECT name, ts, dur FROM slice ORDER BY id", "good,10,-1;back,20,0");
    expect(STATS, "otlp_dropped_items,5;otlp_negative_duration,1;otlp_spans_skipped,6;otlp_unfinished_span,1;"
                  "otlp_unknown_signal,2;otlp_unplaced_events,1");
}
END_TEST

/* Spans of one thread nest on its track; what overlaps, and what has no thread, goes to lanes. */
START_TEST(tracks)
{
#define T ",\"attributes\":[" INT("thread.id", 77) "," TEXT("thread.name", "t") "]"
    load_text(RESOURCE(TEXT("service.name", "s") "," INT("process.pid", 70) "," TEXT("host.name", "h") "," TEXT(
        "telemetry.sdk.language", "cpp"))
                  SPAN("1", "", "outer", 100, 200, T) "," SPAN("2", PARENT("1"), "inner", 110, 150, T) "," SPAN(
                      "3", PARENT("1"), "overlaps", 120, 180,
                      T) "," SPAN("4", PARENT("3"), "in it", 130, 140,
                                  T) "," SPAN("5", "", "async a", 100, 300,
                                              "") "," SPAN("6", PARENT("5"), "child a", 100, 200,
                                                           "") "," SPAN("7", PARENT("5"), "child b", 150, 300,
                                                                        "") "," SPAN("8", "", "async b", 200, 250,
                                                                                     "") "," SPAN("9", "", "later", 300,
                                                                                                  310, "") END);
    expect("SELECT s.name, t.type, s.depth, extract_arg(t.dimension_arg_set_id, 'lane') FROM slice s "
           "JOIN track t ON t.id = s.track_id ORDER BY s.ts, s.dur DESC, s.id",
           "async a,otlp_spans,0,0;outer,otlp_thread,0,-;child a,otlp_spans,1,0;inner,otlp_thread,1,-;"
           "overlaps,otlp_spans,0,1;in it,otlp_thread,2,-;child b,otlp_spans,0,2;async b,otlp_spans,0,1;"
           "later,otlp_spans,0,0");
    expect("SELECT a.name, b.name FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in ORDER BY "
           "1, 2",
           "async a,child b;outer,overlaps;overlaps,in it");
    expect("SELECT tid, thread.name, pid, process.name FROM thread JOIN process USING (upid) WHERE tid = 77",
           "77,t,70,s");
    expect("SELECT DISTINCT utid IS NULL, service FROM otel_span ORDER BY 1", "0,s;1,s");
    expect("SELECT count(*) FROM stats WHERE name GLOB '*overlapping*' AND value > 0", "0");
}
END_TEST

/* thread.id of Java is not the system's. */
START_TEST(threads_of_a_runtime)
{
    load_text(RESOURCE(TEXT("service.name", "s") "," INT("process.pid", 70) "," TEXT("host.name", "h") "," TEXT(
        "telemetry.sdk.language", "java"))
                  SPAN("1", "", "a", 100, 200, T) "," SPAN("2", "", "b", 100, 200,
                                                           ",\"attributes\":[" INT("thread.id", 78) "]") END);
    expect("SELECT t.type, t.name FROM slice s JOIN track t ON t.id = s.track_id ORDER BY s.name",
           "otlp_named_thread,t;otlp_named_thread,Thread 78");
    expect("SELECT count(*) FROM thread WHERE tid IN (77, 78)", "0");
}
END_TEST

START_TEST(machines)
{
    load_text(
        RESOURCE(TEXT("host.id", "aaaaaaaaaaaaaaaaaaaa") "," TEXT("service.name", "one"))
            SPAN("1", "", "a", 100, 200, "") END RESOURCE(TEXT("host.name", "Web.example.org") "," TEXT(
                "service.name", "two") "," TEXT("host.arch", "amd64")) SPAN("2", "", "b", 100, 200, "")
                END RESOURCE(TEXT("k8s.node.name", "web") "," TEXT("service.name", "three"))
                    SPAN("3", "", "c", 100, 200, "") END RESOURCE(TEXT("host.id", "aaaaaaaaaaaaaaaaaaaa") "," TEXT(
                        "host.name", "other") "," TEXT("service.name", "four")) SPAN("4", "", "d", 100, 200, "")
                        END RESOURCE(TEXT("host.id", "b") "," TEXT("host.name", "web") "," TEXT("service.name", "five"))
                            SPAN("5", "", "e", 100, 200, "") END RESOURCE(
                                TEXT("host.id", "c") "," TEXT("host.name", "web") "," TEXT("service.name", "six"))
                                SPAN("6", "", "f", 100, 200, "") END);
    expect("SELECT service, machine.name, machine.arch FROM otel_span JOIN machine ON machine.id = machine_id ORDER BY "
           "otel_span.span_id",
           "one,aaaaaaaaaaaa,-;two,Web.example.org,amd64;three,Web.example.org,amd64;four,aaaaaaaaaaaa,-;"
           "five,Web.example.org,amd64;six,web,-");
    expect("SELECT count(*) FROM machine", "3");
    expect("SELECT int_value FROM metadata WHERE name = 'trace_time_clock_id'", "1");
    expect(STATS, "");
}
END_TEST

START_TEST(twice)
{
    load_text(RESOURCE(TEXT("host.name", "h")) SPAN("1", "", "a", 100, 200, ",\"attributes\":[" INT("x", 1) "]")
                  END RESOURCE(TEXT("host.name", "h")) SPAN("1", "", "a", 100, 200, ",\"attributes\":[" INT("x", 1) "]")
                      END RESOURCE(TEXT("host.name", "h"))
                          SPAN("1", "", "a", 100, 200, ", \"attributes\": [" INT("x", 1) "]")
                              END RESOURCE(TEXT("host.name", "h"))
                                  SPAN("1", "", "a", 100, 200, ",\"attributes\":[" INT("x", 2) "]") "," SPAN(
                                      "2", PARENT("1"), "child", 120, 130, "") END);
    expect("SELECT s.name, extract_arg(arg_set_id, 'x') FROM slice s ORDER BY s.id", "a,1;a,2;child,-");
    expect("SELECT parent_id FROM otel_span WHERE name = 'child'", "0");
    expect(STATS, "otlp_duplicate_span,2;otlp_reused_span_id,1");
}
END_TEST

START_TEST(calls_the_wrong_way_round)
{
    load_text(RESOURCE(TEXT("host.name", "a")) SPAN("1", "", "call", 100, 200,
                                                    ",\"kind\":3") "," SPAN("2", "", "send", 100, 200, ",\"kind\":4")
                  END RESOURCE(TEXT("host.name", "b")) SPAN("3", PARENT("1"), "early", 90, 150, ",\"kind\":2") "," SPAN(
                      "4", PARENT("1"), "late", 150, 210,
                      ",\"kind\":2") "," SPAN("5", PARENT("1"), "fits", 150, 200,
                                              ",\"kind\":2") "," SPAN("6", PARENT("2"), "got", 150, 250, ",\"kind\":5")
                      END);
    expect(STATS, "otlp_causality_violations,2");
}
END_TEST

/* A bad message does not take those behind it along; a cut one is told. */
START_TEST(damaged_lines)
{
    load_text(RESOURCE(TEXT("host.name", "h")) SPAN("1", "", "a", 100, 200, "") END RESOURCE(TEXT("host.name", "h"))
                  SPAN("2", "", "b", 100, 200, "") ",{\"traceId\":\"0001\n" RESOURCE(TEXT("host.name", "h"))
                      SPAN("3", "", "c", 100, 200, "") END "garbage\n" RESOURCE(TEXT("host.name", "h"))
                          SPAN("4", "", "d", 100, 200, "") ",{\"traceId\":\"00");
    expect("SELECT group_concat(name, '') FROM (SELECT name FROM slice ORDER BY name)", "abcd");
    expect(STATS, "otlp_bad_message,2;otlp_truncated,1");
}
END_TEST

/* --- protobuf --- */

static struct pb_writer w;

static void text_attribute(const char *key, const char *value)
{
    size_t kv = pb_begin(&w, OTLP_RESOURCE_ATTRIBUTES);
    pb_put_text(&w, OTLP_KEY_VALUE_KEY, slice_str(key));
    size_t any = pb_begin(&w, OTLP_KEY_VALUE_VALUE);
    pb_put_text(&w, OTLP_ANY_VALUE_STRING_VALUE, slice_str(value));
    pb_end(&w, any);
    pb_end(&w, kv);
}

/* One message with one span, whose number is its id. */
static void message(uint8_t number)
{
    static const char trace[16] = {1};
    char span[8] = {0};
    span[7] = (char)number;
    size_t spans = pb_begin(&w, OTLP_TRACES_DATA_RESOURCE_SPANS), resource = pb_begin(&w, OTLP_RESOURCE_SPANS_RESOURCE);
    text_attribute("service.name", "s");
    text_attribute("host.name", "h");
    pb_end(&w, resource);
    size_t scope = pb_begin(&w, OTLP_RESOURCE_SPANS_SCOPE_SPANS), s = pb_begin(&w, OTLP_SCOPE_SPANS_SPANS);
    pb_put_text(&w, OTLP_SPAN_TRACE_ID, slice_of(trace, sizeof trace));
    pb_put_text(&w, OTLP_SPAN_SPAN_ID, slice_of(span, sizeof span));
    pb_put_text(&w, OTLP_SPAN_NAME, slice_str("op"));
    pb_put_fixed64(&w, OTLP_SPAN_START_TIME_UNIX_NANO, 1000u * number);
    pb_put_fixed64(&w, OTLP_SPAN_END_TIME_UNIX_NANO, 1000u * number + 500);
    pb_end(&w, s);
    pb_end(&w, scope);
    pb_end(&w, spans);
}

/* Logs in protobuf, in the frame of spans: a time of 8 bytes stands where the id of a trace would. */
START_TEST(logs_in_protobuf)
{
    char file[1024];
    size_t n = 0;
    for (uint8_t i = 0; i < 3; i++) {
        w = (struct pb_writer){0};
        if (i == 1) {
            message(1);
        } else {
            size_t logs = pb_begin(&w, OTLP_TRACES_DATA_RESOURCE_SPANS),
                   resource = pb_begin(&w, OTLP_RESOURCE_SPANS_RESOURCE);
            text_attribute("service.name", "s");
            pb_end(&w, resource);
            size_t scope = pb_begin(&w, OTLP_RESOURCE_SPANS_SCOPE_SPANS), record = pb_begin(&w, OTLP_SCOPE_SPANS_SPANS);
            pb_put_fixed64(&w, 1, 1000);  /* time_unix_nano */
            pb_put_fixed64(&w, 11, 1001); /* observed_time_unix_nano */
            pb_put_text(&w, 3, slice_str("INFO"));
            pb_end(&w, record);
            pb_end(&w, scope);
            pb_end(&w, logs);
        }
        struct slice m = pb_written(&w);
        const char head[] = {0, 0, (char)(m.len >> 8), (char)m.len};
        memcpy(file + n, head, sizeof head);
        memcpy(file + n + sizeof head, m.p, m.len);
        n += sizeof head + m.len;
        pb_writer_free(&w);
    }
    ck_assert_int_eq(load(file, n), 0);
    expect("SELECT name FROM slice", "op");
    expect(STATS, "otlp_unknown_signal,2");
}
END_TEST

enum form { ONE_MESSAGE, BE_LENGTH, VARINT, JSON_LINES, FORMS };
enum { MESSAGES = 3 };

/* A file of three messages; where each ends goes to ends. */
static size_t make_file(enum form form, char *out, size_t *ends)
{
    size_t n = 0;
    for (uint8_t i = 1; i <= MESSAGES; i++) {
        if (form == JSON_LINES) {
            n += (size_t)sprintf(
                out + n,
                RESOURCE(TEXT("service.name", "s") "," TEXT(
                    "host.name", "h")) "{" TRACE
                                       ",\"spanId\":\"000000000000000%d\",\"name\":\"op\",\"startTimeUnixNano\":"
                                       "\"%d000\",\"endTimeUnixNano\":\"%d500\"}" END,
                i, i, i);
            ends[i - 1] = n - 1; /* the line's end may be missing */
            continue;
        }
        w = (struct pb_writer){0};
        message(i);
        struct slice m = pb_written(&w);
        if (form == BE_LENGTH) {
            char head[] = {0, 0, (char)(m.len >> 8), (char)m.len};
            memcpy(out + n, head, sizeof head);
            n += sizeof head;
        } else if (form == VARINT) {
            n += pb_encode_varint((uint8_t *)out + n, m.len);
        }
        memcpy(out + n, m.p, m.len);
        ends[i - 1] = n += m.len;
        pb_writer_free(&w);
    }
    return n;
}

/* What came before a cut is there, and the loss is told. */
START_TEST(cut_at_every_byte)
{
    char file[4096];
    size_t ends[MESSAGES], len = make_file((enum form)_i, file, ends);
    for (size_t cut = ends[0]; cut <= len; cut++) {
        int whole = 0;
        for (int i = 0; i < MESSAGES; i++)
            whole += cut >= ends[i];
        ck_assert_msg(load(file, cut) == 0, "form %d, %zu bytes: %s", _i, cut, tp_error(tp));
        const char *got = rows("SELECT count(*) FROM slice");
        int slices = got[0] - '0';
        ck_assert_msg(slices == whole || slices == whole + 1, "form %d, %zu bytes: %s slices, %d messages", _i, cut,
                      got, whole);
        bool at_end = false;
        for (int i = 0; i < MESSAGES; i++)
            at_end |= cut == ends[i] || (_i == JSON_LINES && cut == ends[i] + 1);
        ck_assert_msg((strstr(rows(STATS), "otlp_truncated,1") != NULL) == !at_end, "form %d, %zu bytes: %s", _i, cut,
                      rows(STATS));
    }
    for (size_t cut = 1; cut < ends[0]; cut++) /* nothing is there; it must end */
        (void)load(file, cut);
    load(file, len);
    expect("SELECT ts, dur, slice.name, machine.name FROM slice JOIN track ON track.id = track_id JOIN machine ON "
           "machine.id "
           "= track.machine_id ORDER BY ts",
           "1000,500,op,h;2000,500,op,h;3000,500,op,h");
    expect("SELECT trace_type FROM __intrinsic_trace_file", _i == JSON_LINES ? "otlp_json" : "otlp_proto");
}
END_TEST

/* Spans that all overlap, and spans that all have one id, cost no more than others. */
START_TEST(many_that_overlap)
{
    enum { N = 20000, LINE = 256 };
    char *text = mem_alloc((size_t)N * LINE);
    ck_assert_ptr_nonnull(text);
    size_t n = (size_t)sprintf(text, "%s", RESOURCE(TEXT("host.name", "h")));
    for (int i = 0; i < N; i++)
        n += (size_t)sprintf(
            text + n, "%s{" TRACE ",\"spanId\":\"%016x\",\"startTimeUnixNano\":\"%d\",\"endTimeUnixNano\":\"%d\"}",
            i ? "," : "", i < N / 2 ? i + 1 : 1, i + 1000, 5 * N + i);
    n += (size_t)sprintf(text + n, "%s", END);
    ck_assert_int_eq(load(text, n), 0);
    mem_free(text);
    expect("SELECT count(*), count(DISTINCT track_id) FROM slice", "20000,20000");
    expect(STATS, "otlp_reused_span_id,10000");
}
END_TEST

/* More spans around each other than a track may hold slices: none is lost. */
START_TEST(nested_without_end)
{
    enum { N = 2000, LINE = 256 };
    char *text = mem_alloc((size_t)N * LINE);
    ck_assert_ptr_nonnull(text);
    size_t n = (size_t)sprintf(text, "%s", RESOURCE(TEXT("host.name", "h") "," INT("process.pid", 7)));
    for (int i = 0; i < N; i++)
        n +=
            (size_t)sprintf(text + n,
                            "%s{" TRACE ",\"spanId\":\"%016x\",\"parentSpanId\":\"%016x\",\"startTimeUnixNano\":\"%d\","
                            "\"endTimeUnixNano\":\"%d\"%s}",
                            i ? "," : "", i + 1, i, 1000 + i, 9 * N - i, i % 2 ? T : "");
    n += (size_t)sprintf(text + n, "%s", END);
    ck_assert_int_eq(load(text, n), 0);
    mem_free(text);
    expect("SELECT count(*), max(depth) < 512 FROM slice", "2000,1");
    expect("SELECT count(*) FROM stats WHERE name = 'slice_max_depth_exceeded' AND value > 0", "0");
}
END_TEST

Suite *otlp_suite(void);
Suite *otlp_suite(void)
{
    Suite *s = suite_create("otlp");
    TCase *c = tcase_create("otlp");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, NULL, teardown);
    tcase_add_test(c, every_type_of_attribute);
    tcase_add_test(c, lenient_json);
    tcase_add_test(c, long_names_of_attributes_are_cut);
    tcase_add_test(c, what_cannot_be_a_span);
    tcase_add_test(c, tracks);
    tcase_add_test(c, threads_of_a_runtime);
    tcase_add_test(c, machines);
    tcase_add_test(c, twice);
    tcase_add_test(c, calls_the_wrong_way_round);
    tcase_add_test(c, damaged_lines);
    tcase_add_test(c, logs_in_protobuf);
    tcase_add_test(c, many_that_overlap);
    tcase_add_test(c, nested_without_end);
    tcase_add_loop_test(c, cut_at_every_byte, 0, FORMS);
    suite_add_tcase(s, c);
    return s;
}
