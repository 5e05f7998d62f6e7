/* Files of other tools that end at any byte: whatever comes before the cut is read, and nothing is made up. */
#include "base/alloc.h"
#include "base/file.h"
#include "importer/importer.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tables that files of these formats fill with events. */
static const int tables[] = {T_slice,       T_counter,          T_profiler_sample,   T_logs,
                             T_sched_slice, T_aggregate_sample, T_android_dumpstate, T_ftrace_event};
enum { TABLES = sizeof tables / sizeof *tables, SMALL = 2500, SHORT = 450, MAX_FILES = 256 };

/* With sanitizers a cut takes ten times as long. */
#ifdef __SANITIZE_ADDRESS__
enum { STRIDE = 7 };
#else
enum { STRIDE = 1 };
#endif

static const struct {
    const char *name;
    size_t skip; /* bytes that are the fuzz target's */
} corpora[] = {{"json", 0},        {"text_art", 1},        {"text_art_v2", 1}, {"text_collapsed", 1},
               {"text_ctrace", 1}, {"text_dumpstate", 1},  {"text_gecko", 1},  {"text_instruments", 1},
               {"text_logcat", 1}, {"text_ninja", 1},      {"text_perf", 1},   {"text_pprof", 1},
               {"text_primes", 1}, {"text_simpleperf", 1}, {"text_strace", 1}, {"text_systrace", 1}};

struct outcome {
    int rc;
    bool told; /* that something is missing */
    uint32_t rows[TABLES];
};

/* What says so of recordings that have an end. */
static bool tells(const struct storage *st)
{
    static const enum stat_key keys[] = {STAT_trace_dat_truncated, STAT_trace_dat_bad_section, STAT_trace_dat_bad_page,
                                         STAT_perf_data_truncated, STAT_otlp_truncated,        STAT_otlp_bad_message};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (stats_get_idx(&st->stats, 0, keys[i], 0))
            return true;
    return false;
}

/* Imports bytes that come in one piece, or in several. */
static struct outcome import(const uint8_t *bytes, size_t len, size_t piece)
{
    struct storage st;
    struct importer *im;
    struct error err = {0};
    struct outcome o;
    ck_assert_int_eq(storage_init(&st), 0);
    ck_assert_int_eq(importer_open(&im, &st, &(struct import_options){0}, &err), 0);
    o.rc = 0;
    for (size_t at = 0; at < len && !o.rc; at += piece)
        o.rc = importer_feed(im, bytes + at, len - at < piece ? len - at : piece, &err);
    int rc = importer_finish(im, o.rc ? NULL : &err);
    o.rc = o.rc ? o.rc : rc;
    o.told = tells(&st);
    ck_assert_msg(o.rc == 0 || (o.rc < 0 && err.text[0]), "a failure without a text");
    for (int i = 0; i < TABLES; i++)
        o.rows[i] = st.t[tables[i]].n_rows;
    importer_close(im);
    storage_free(&st);
    return o;
}

static void cut_everywhere(const char *name, const uint8_t *bytes, size_t len)
{
    struct outcome whole = import(bytes, len, len), last = {0};
    size_t step = len <= SHORT ? STRIDE : STRIDE * (len / SHORT + 1);
    for (size_t end = 1; end <= len; end += step) {
        struct outcome o = import(bytes, end, end % 3 ? end : 7);
        for (int i = 0; i < TABLES; i++) {
            ck_assert_msg(o.rows[i] <= whole.rows[i], "%s cut at %zu: %u rows of table %d, %u when it is whole", name,
                          end, o.rows[i], i, whole.rows[i]);
            ck_assert_msg(o.rows[i] + 1 >= last.rows[i], "%s cut at %zu: %u rows of table %d, %u when cut before", name,
                          end, o.rows[i], i, last.rows[i]);
        }
        last = o;
    }
}

START_TEST(a_file_may_end_anywhere)
{
    char dir[512], path[1024];
    snprintf(dir, sizeof dir, MERIDIAN_SOURCE_DIR "/test/fuzz/corpus/%s", corpora[_i].name);
    DIR *d = opendir(dir);
    ck_assert_msg(d != NULL, "%s", dir);
    int files = 0;
    for (struct dirent *e; (e = readdir(d)) && files < MAX_FILES;) {
        char *text;
        size_t len;
        struct error err;
        if (e->d_name[0] == '.' || strstr(e->d_name, "-cut") || strstr(e->d_name, "-crlf") ||
            strstr(e->d_name, "-pieces"))
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        ck_assert_msg(file_read_all(path, 1 << 24, &text, &len, &err) == 0, "%s", err.text);
        if (len > 1 && len <= SMALL) {
            cut_everywhere(e->d_name, (const uint8_t *)text + corpora[_i].skip, len - corpora[_i].skip);
            files++;
        }
        mem_free(text);
    }
    closedir(d);
    ck_assert_int_ge(files, 1);
}
END_TEST

/* Recordings of trace-cmd, perf and OpenTelemetry, of a few events: a file that is whole but for its end fails, or says
 * what it is, and has every row that a shorter piece of it had. A stream says nothing where it ends between two
 * records. Of a page whose end is missing the events that are there are read: where it ends with padding, that is all
 * of them. All bytes are tried in every build. */
enum { SLICE, FTRACE_EVENT = TABLES - 1 };
static const struct {
    const char *path;
    int table;
    uint32_t events;
    bool stream, padded;
} recordings[] = {{"trace_dat/small-v6", FTRACE_EVENT, 14, false, true},
                  {"trace_dat/small-be32-v7", FTRACE_EVENT, 14, false, true},
                  {"trace_dat/small-v7-zlib", FTRACE_EVENT, 14, false, false},
                  {"perf/small-file", FTRACE_EVENT, 5, false, false},
                  {"perf/small-stream", FTRACE_EVENT, 5, true, false},
                  {"perf/small-zstd", FTRACE_EVENT, 5, false, false},
                  {"otlp/lines.json", SLICE, 4, true, false},
                  {"otlp/bare.pb", SLICE, 2, true, false},
                  {"otlp/be32.pb", SLICE, 2, true, false},
                  {"otlp/be32-zstd.pb", SLICE, 2, true, false},
                  {"otlp/varint-whole.pb", SLICE, 2, true, false}};

START_TEST(a_recording_may_end_anywhere)
{
    const int table = recordings[_i].table;
    char path[512], *text;
    size_t len, ends_of_records = 0;
    struct error err;
    snprintf(path, sizeof path, MERIDIAN_SOURCE_DIR "/test/fuzz/corpus/%s", recordings[_i].path);
    ck_assert_msg(file_read_all(path, 1 << 24, &text, &len, &err) == 0, "%s", err.text);
    struct outcome whole = import((uint8_t *)text, len, len), last = {0};
    ck_assert_int_eq(whole.rc, 0);
    ck_assert(!whole.told);
    ck_assert_uint_eq(whole.rows[table], recordings[_i].events);
    for (size_t end = 1; end < len; end++) {
        struct outcome o = import((uint8_t *)text, end, end % 3 ? end : 7);
        bool all = true;
        for (int i = 0; i < TABLES && !o.rc; i++) {
            ck_assert_msg(o.rows[i] <= whole.rows[i] && o.rows[i] >= last.rows[i],
                          "%s cut at %zu: %u rows of table %d; %u when it is whole, %u when cut before", path, end,
                          o.rows[i], i, whole.rows[i], last.rows[i]);
            all &= o.rows[i] == whole.rows[i];
        }
        ck_assert_msg(!last.rows[table] || !o.rc, "%s cut at %zu: what was read before is refused", path, end);
        ends_of_records += !o.rc && !o.told && !all;
        ck_assert_msg(o.rc || o.told || all || recordings[_i].stream, "%s cut at %zu: no word of it", path, end);
        if (!o.rc)
            last = o;
    }
    enum { RECORDS = 10 };
    ck_assert_uint_le(ends_of_records, recordings[_i].stream ? RECORDS : 0);
    if (recordings[_i].padded) {
        struct outcome o = import((uint8_t *)text, len - 1, len);
        ck_assert_uint_eq(o.rows[table], recordings[_i].events);
    }
    mem_free(text);
}
END_TEST

/* A string of 100 MB, lists in lists, keys that come twice, text that is no UTF-8: the events beside them are read. */
static const struct {
    const char *before, *fill, *after;
    size_t n;
    uint32_t slices;
} odd[] = {
#define EVENT(name) "{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"tid\":1,\"name\":\"" name "\"}"
    {"[" EVENT("a") ",{\"ph\":\"X\",\"ts\":2,\"dur\":1,\"args\":{\"s\":\"", "0123456789", "\"}}," EVENT("b") "]",
     10000000, 3},
    {"[" EVENT("a") ",{\"ph\":\"X\",\"ts\":2,\"dur\":1,\"name\":\"", "0123456789", "\"}," EVENT("b") "]", 10000000, 3},
    {"[" EVENT("a") ",{\"ph\":\"X\",\"ts\":2,\"dur\":1,\"args\":{\"k\":", "[", "", 1000000, 1},
    {"[" EVENT("a") ",{\"ph\":\"X\",\"ts\":2,\"dur\":1,\"args\":", "{\"a\":", "", 1000000, 1},
    {"[{\"ph\":\"X\",\"ts\":2,\"dur\":1,", "\"name\":\"n\",", "\"tid\":1}]", 1000, 1},
    {"[" EVENT("a") "," EVENT("\xff\xfe\xc0\x80") "," EVENT("\\ud83d") "," EVENT("\\udc00\\ud800"), "", "]", 1, 4},
    {"\xef\xbb\xbf[\r\n" EVENT("a") ",\r\n" EVENT("b"), "\r\n", "]\r\n", 3, 2},
    {"[" EVENT("a") ",{\"ph\":\"X\",\"ts\":NaN,\"dur\":1}," EVENT("b"), "", "]", 1, 2},
    {"[" EVENT("a") ",{\"ph\":\"X\",\"ts\":2,\"dur\":-Infinity}," EVENT("b"), "", "]", 1, 2},
#undef EVENT
};

START_TEST(odd_json_leaves_the_rest)
{
    size_t before = strlen(odd[_i].before), fill = strlen(odd[_i].fill), after = strlen(odd[_i].after);
    size_t len = before + fill * odd[_i].n + after;
    uint8_t *text = malloc(len + 1);
    ck_assert_ptr_nonnull(text);
    memcpy(text, odd[_i].before, before);
    for (size_t i = 0; i < odd[_i].n; i++)
        memcpy(text + before + i * fill, odd[_i].fill, fill);
    memcpy(text + len - after, odd[_i].after, after);
    struct outcome o = import(text, len, len), pieces = import(text, len, len > 1 << 20 ? 65536 : 13);
    free(text);
    ck_assert_uint_eq(o.rows[0], odd[_i].slices);
    ck_assert_uint_eq(pieces.rows[0], odd[_i].slices);
}
END_TEST

Suite *cuts_suite(void);
Suite *cuts_suite(void)
{
    Suite *s = suite_create("cuts");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_file_may_end_anywhere, 0, sizeof corpora / sizeof *corpora);
    tcase_add_loop_test(t, a_recording_may_end_anywhere, 0, sizeof recordings / sizeof *recordings);
    tcase_add_loop_test(t, odd_json_leaves_the_rest, 0, sizeof odd / sizeof *odd);
    suite_add_tcase(s, t);
    return s;
}
