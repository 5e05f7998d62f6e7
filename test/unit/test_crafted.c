/* Files made to be slow: each is imported beside a harmless twin of the same size, and must not cost much more. */
#include "importer/clock/clock_graph.h"
#include "importer/core/metadata.h"
#include "importer/ctf/ctf_internal.h"
#include "importer/merge/manifest.h"
#include "importer_fixture.h"
#include "pb_text.h"
#include "trace_fixture.h"

#include <time.h>

enum { SAMPLES = 4000, FIELDS = 60000, LETTERS = 600000 };

static double import_seconds(void (*write)(struct pb_writer *w, bool harmless), bool harmless)
{
    struct trace_fixture f;
    struct timespec begin, end;
    trace_fixture_open(&f);
    write(&f.w, harmless);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    trace_fixture_load(&f);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    trace_fixture_close(&f);
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

/* A message's long part: fields that nobody knows. */
static void put_fields_of_nobody(struct pb_writer *w)
{
    for (int i = 0; i < FIELDS; i++)
        pb_put_varint(w, 15, 1);
}

/* A packet of sequence 1 that holds one message `depth` fields deep, with the long part and `text` in it. */
static void put_long(struct pb_writer *w, const uint32_t *path, size_t depth, const char *text)
{
    size_t at[8];
    at[0] = pb_begin(w, 1);
    put(w, "8:1 10:1 13:1");
    for (size_t i = 0; i < depth; i++)
        at[i + 1] = pb_begin(w, path[i]);
    put_fields_of_nobody(w);
    put(w, "%s", text);
    for (size_t i = depth + 1; i-- > 0;)
        pb_end(w, at[i]);
}
#define PUT_LONG(w, text, ...)                                                                                         \
    put_long(w, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), text)

/* The twin's samples are of a sequence that has none of it. */
static void put_samples(struct pb_writer *w, bool harmless, const char *sample)
{
    if (harmless)
        put(w, "1{8:1 10:2 13:1 59{100{1'x'}}}");
    for (int i = 0; i < SAMPLES; i++)
        put(w, "1{8:%d 10:%d %s}", 2 + i, harmless ? 2 : 1, sample);
}

static void perf_defaults(struct pb_writer *w, bool harmless)
{
    PUT_LONG(w, "1{1:1000}", 59, 12);
    put_samples(w, harmless, "66{1:0 2:1 3:1}");
}

static void perf_other_defaults(struct pb_writer *w, bool harmless)
{
    PUT_LONG(w, "12{1{1:1000}}", 59);
    put_samples(w, harmless, "66{1:0 2:1 3:1}");
}

static void perf_timebase(struct pb_writer *w, bool harmless)
{
    PUT_LONG(w, "1:1000", 59, 12, 1);
    put_samples(w, harmless, "66{1:0 2:1 3:1}");
}

static void perf_follower_name(struct pb_writer *w, bool harmless)
{
    static char name[LETTERS];
    memset(name, 'x', sizeof name);
    size_t packet = pb_begin(w, 1);
    put(w, "8:1 10:1 13:1");
    size_t defaults = pb_begin(w, 59), perf = pb_begin(w, 12), follower = pb_begin(w, 4);
    pb_put_bytes(w, 4, name, sizeof name);
    pb_end(w, follower);
    pb_end(w, perf);
    pb_end(w, defaults);
    pb_end(w, packet);
    put_samples(w, harmless, "66{1:0 2:1 3:1 7:1}");
}

static void stack_defaults(struct pb_writer *w, bool harmless)
{
    PUT_LONG(w, "1'x'", 59, 100);
    put_samples(w, harmless, "135{}");
}

static void stack_default_counter(struct pb_writer *w, bool harmless)
{
    PUT_LONG(w, "3:1", 59, 100, 2);
    put_samples(w, harmless, "135{11:1}");
}

static void stack_task(struct pb_writer *w, bool harmless)
{
    PUT_LONG(w, "1:1 2:7 3:7", 12, 48);
    put_samples(w, harmless, "135{2:1}");
}

static void stack_execution(struct pb_writer *w, bool harmless)
{
    PUT_LONG(w, "1:1 2:0", 12, 49);
    put_samples(w, harmless, "135{4:1}");
}

static void stack_counter(struct pb_writer *w, bool harmless)
{
    PUT_LONG(w, "1:1 2'c'", 12, 50);
    put_samples(w, harmless, "135{13:1 14:1}");
}

static const struct {
    const char *name;
    void (*write)(struct pb_writer *w, bool harmless);
} crafted[] = {
    {"perf sample defaults", perf_defaults},
    {"defaults of something else", perf_other_defaults},
    {"a timebase", perf_timebase},
    {"the name of a follower", perf_follower_name},
    {"stack sample defaults", stack_defaults},
    {"a counter among the defaults", stack_default_counter},
    {"an interned task", stack_task},
    {"an interned execution", stack_execution},
    {"an interned counter", stack_counter},
};

START_TEST(what_samples_share_is_read_once)
{
    double plain = import_seconds(crafted[_i].write, true), slow = import_seconds(crafted[_i].write, false);
    ck_assert_msg(slow < 4 * plain + 0.05, "%s: %.3f s, its twin %.3f s", crafted[_i].name, slow, plain);
}
END_TEST

START_TEST(a_context_is_none_of_its_parents)
{
    struct trace_fixture f;
    trace_fixture_open(&f);
    put(&f.w, "1{8:1 10:1 13:1 12{48{1:1 2:7 3:7 4:1} 51{1:1 2'a' 4:2} 51{1:2 2'b' 4:1}}} 1{8:2 10:1 135{2:1}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(f.st.t[T_profiler_async_context].n_rows, 2);
    ck_assert_int_eq(ROW_GET(&f.st, profiler_async_context, parent_id, 0), COL_NULL); /* b's, which is a's */
    ck_assert_int_eq(ROW_GET(&f.st, profiler_async_context, parent_id, 1), 0);
    trace_fixture_close(&f);
}
END_TEST

/* --- CTF metadata ------------------------------------------------------------------------------------------------- */

static void struct_of_all_events(FILE *f)
{
    fputs("struct big {", f);
    for (int i = 0; i < 8000; i++)
        fprintf(f, "u8 f%d;", i);
    fputs("};", f);
    for (int i = 0; i < 30000; i++)
        fprintf(f, "event{fields:=struct{struct big b;};};");
}

static void copies_for_all_events(FILE *f) /* what it refers to stands outside of it */
{
    fputs("struct big { u8 l[n];", f);
    for (int i = 0; i < 3000; i++)
        fprintf(f, "u8 f%d;", i);
    fputs("};", f);
    for (int i = 0; i < 3000; i++)
        fprintf(f, "event{id=%d;fields:=struct{u8 n; struct big b;};};", i);
}

static void many_aliases(FILE *f)
{
    for (int i = 0; i < 8000; i++)
        fprintf(f, "typedef u8 a%d;", i);
}

static void many_streams(FILE *f)
{
    for (int i = 0; i < 8000; i++)
        fprintf(f, "stream{id=%d;};", i);
}

static void many_lengths(FILE *f)
{
    fputs("event { fields := struct {", f);
    for (int i = 0; i < 4000; i++)
        fprintf(f, "u8 f%d; u8 g%d[f0];", i, i);
    fputs("}; };", f);
}

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void (*const metadata[])(FILE *f) = {struct_of_all_events, copies_for_all_events, many_aliases, many_streams,
                                            many_lengths};

START_TEST(metadata_is_read_soon_or_refused)
{
    char *text;
    size_t len;
    struct timespec begin, end;
    struct ctf_metadata m;
    struct error err = {0};
    FILE *f = open_memstream(&text, &len);
    ck_assert_ptr_nonnull(f);
    fputs("/* CTF 1.8 */ typealias integer { size = 8; } := u8;", f);
    metadata[_i](f);
    fclose(f);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    int rc = tsdl_parse(&m, text, len, &err);
    for (size_t i = 0; rc == 0 && i < m.events.n; i++)
        (void)ctf_fields_position_free(&m, m.events.p[i]);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    ck_assert_msg(rc == 0 || strstr(err.text, "too complex"), "%s", err.text);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    ck_assert_msg(seconds < 1.5, "%zu bytes took %.2f s", len, seconds);
    ck_assert_uint_lt(m.arena.total_bytes, 200 << 20);
    ctf_metadata_free(&m);
    free(text);
}
END_TEST

/* --- what trackers remember --------------------------------------------------------------------------------------- */

enum { MANY = 60000 };

static void threads_without_process(struct importer_fixture *f)
{
    struct process_tracker *t = f->m.processes;
    for (int i = 0; i < MANY; i++)
        process_tracker_associate_threads(t, process_tracker_thread(t, 100000 + 2 * i),
                                          process_tracker_thread(t, 100001 + 2 * i));
    for (int i = 0; i < MANY; i++)
        process_tracker_update_thread(t, 10 + i % 100, 5);
    uint32_t utid = process_tracker_update_thread(t, 100000, 7); /* the other one comes along */
    ck_assert_uint_eq(process_tracker_thread_process(t, process_tracker_thread(t, 100001)),
                      process_tracker_thread_process(t, utid));
}

static void one_tid_of_all_processes(struct importer_fixture *f)
{
    for (int i = 0; i < MANY; i++)
        process_tracker_update_thread(f->m.processes, 5, 100 + i);
}

static void args_of_both_ends(struct importer_fixture *f)
{
    struct arg_list begin = {0}, end = {0};
    for (int i = 0; i < MANY; i++) {
        arg_list_add(&f->st.args, &begin, (strid)i, (strid)i, ARG_INT, 1);
        arg_list_add(&f->st.args, &end, (strid)(i + 7), (strid)(i + 7), ARG_INT, 2);
    }
    ck_assert(arg_list_merge(&begin, &end));
    ck_assert_uint_eq(begin.n, MANY + 7);
    ck_assert_int_eq(begin.p[6].word, 1);
    ck_assert_int_eq(begin.p[7].word, 2);
    ck_assert_uint_eq(begin.p[MANY].key, MANY);
    arg_list_free(&begin);
    arg_list_free(&end);
}

static void clocks_of_one_snapshot(struct importer_fixture *f)
{
    enum { CLOCKS = 1200 };
    static struct clock_reading readings[CLOCKS];
    struct clock_graph *g = clock_graph_open(&f->st);
    int64_t value;
    for (uint32_t i = 0; i < CLOCKS; i++)
        readings[i] = (struct clock_reading){.clock = {.id = 1000 + i}, .value = i};
    clock_graph_add_snapshot(g, readings, CLOCKS);
    ck_assert_int_eq(stats_get(&f->st.stats, 0, STAT_invalid_clock_snapshots), 1);
    ck_assert_int_eq(clock_graph_convert(g, readings[0].clock, 5, readings[31].clock, &value), 0);
    ck_assert_int_eq(value, 36);
    clock_graph_close(g);
}

static void kinds_of_snapshots(struct importer_fixture *f)
{
    struct clock_graph *g = clock_graph_open(&f->st);
    int64_t value;
    for (uint32_t i = 0; i < MANY / 3; i++) { /* each has a clock of its own, and none is trace time */
        struct clock_reading readings[] = {{.clock = {.id = CLOCK_ID_MONOTONIC}, .value = i},
                                           {.clock = {.id = 1000 + i}}};
        clock_graph_add_snapshot(g, readings, 2);
        (void)clock_graph_to_trace_time(g, readings[0].clock, i, &value);
    }
    clock_graph_close(g);
}

static void files_of_an_archive(struct importer_fixture *f)
{
    uint32_t first = f->st.t[T_metadata].n_rows;
    for (int i = 0; i < 2 * MANY; i++) { /* each is told twice of what type it is */
        f->im.trace_file = (uint32_t)(i % MANY);
        metadata_str(&f->im, NULL, METADATA_trace_type, import_str(&f->im, i < MANY ? "first" : "second"));
    }
    ck_assert_uint_eq(f->st.t[T_metadata].n_rows, first + MANY);
    ck_assert_int_eq(ROW_GET(&f->st, metadata, trace_id, first + 7), 7);
    ck_assert_int_eq(ROW_GET(&f->st, metadata, str_value, first + 7), import_str(&f->im, "second"));
}

static void (*const trackers[])(struct importer_fixture *f) = {files_of_an_archive,      threads_without_process,
                                                               one_tid_of_all_processes, args_of_both_ends,
                                                               clocks_of_one_snapshot,   kinds_of_snapshots};

START_TEST(trackers_do_not_look_through_all)
{
    struct importer_fixture f;
    importer_fixture_open(&f);
    double begin = now();
    trackers[_i](&f);
    double seconds = now() - begin;
    ck_assert_msg(seconds < 5, "%.2f s", seconds); /* sanitized, on a slow machine; it was minutes */
    importer_fixture_close(&f);
}
END_TEST

START_TEST(a_manifest_of_so_many_files_is_refused)
{
    char *text;
    size_t len;
    struct manifest m;
    struct error err = {0};
    FILE *f = open_memstream(&text, &len);
    fputs("{\"perfetto_manifest\": {\"version\": 1, \"files\": [{\"path\": \"a\"}", f);
    for (int i = 0; i < 4096; i++)
        fputs(", {\"path\": \"a\"}", f);
    fputs("]}}", f);
    fclose(f);
    ck_assert_int_eq(manifest_parse(&m, slice_of(text, len), &err), -MRD_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "more than 4096 files"));
    free(text);
}
END_TEST

Suite *crafted_suite(void);
Suite *crafted_suite(void)
{
    Suite *s = suite_create("crafted");
    TCase *c = tcase_create("crafted");
    tcase_add_loop_test(c, what_samples_share_is_read_once, 0, (int)(sizeof crafted / sizeof *crafted));
    tcase_add_test(c, a_context_is_none_of_its_parents);
    tcase_add_loop_test(c, trackers_do_not_look_through_all, 0, (int)(sizeof trackers / sizeof *trackers));
    tcase_add_test(c, a_manifest_of_so_many_files_is_refused);
    tcase_add_loop_test(c, metadata_is_read_soon_or_refused, 0, (int)(sizeof metadata / sizeof *metadata));
    suite_add_tcase(s, c);
    return s;
}
