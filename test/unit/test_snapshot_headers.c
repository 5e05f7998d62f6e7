/* Tests what headers of a snapshot's columns may say: whoever reads words sizes arrays by them. */
#include "meridian/tp.h"

#include "../fuzz/snapshot_reseal.h"
#include "storage/column.h"
#include "storage/storage.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A snapshot of a counter of 600 values, in memory; the caller frees it. */
static uint8_t *make(const char *value_format, size_t *len)
{
    char trace[] = "/tmp/unit-headers-XXXXXX", path[sizeof trace + 8];
    int fd = mkstemp(trace);
    FILE *f = fdopen(fd, "w");
    struct tp *tp;
    snprintf(path, sizeof path, "%s.snap", trace);
    fprintf(f, "{\"traceEvents\":[");
    for (int i = 0; i < 600; i++) {
        fprintf(f, "%s{\"ph\":\"C\",\"ts\":%d,\"pid\":1,\"name\":\"c\",\"args\":{\"v\":", i ? "," : "", i);
        fprintf(f, value_format, 1 + i * 7 % 601);
        fprintf(f, "}}");
    }
    fprintf(f, "]}");
    fclose(f);
    ck_assert(tp_open(&tp, NULL) == 0 && tp_load(tp, trace) == 0 && tp_finish(tp) == 0);
    ck_assert_int_eq(tp_write_snapshot(tp, path, trace), 0);
    tp_close(tp);
    f = fopen(path, "rb");
    fseek(f, 0, SEEK_END);
    *len = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = aligned_alloc(64, (*len + 63) / 64 * 64);
    ck_assert(fread(bytes, 1, *len, f) == *len);
    fclose(f);
    unlink(path);
    unlink(trace);
    return bytes;
}

/* A column's record and its only chunk. */
static struct snapshot_column *find(uint8_t *file, size_t len, uint32_t table, uint32_t column,
                                    struct col_chunk **chunk)
{
    struct snapshot_trailer *t = (void *)(file + len - sizeof *t);
    size_t n, size;
    struct snapshot_table *tables = (void *)reseal_section(file, len, t, SNAPSHOT_TABLES, &n);
    struct snapshot_column *columns = (void *)reseal_section(file, len, t, SNAPSHOT_COLUMNS, &size);
    struct col_chunk *chunks = (void *)reseal_section(file, len, t, SNAPSHOT_CHUNKS, &size);
    for (size_t i = 0; i < n / sizeof *tables; i++)
        if (tables[i].table == table) {
            struct snapshot_column *c = &columns[tables[i].first_column + column];
            *chunk = &chunks[c->first_chunk];
            return c;
        }
    ck_abort_msg("no such table");
    return NULL;
}

/* Reads the values in order: how it ends. */
static int ask(const uint8_t *file, size_t len)
{
    static const struct tp_config config = {.no_native_plans = true};
    struct tp *tp;
    struct tp_result *r;
    ck_assert_int_eq(tp_open(&tp, &config), 0);
    int rc = tp_feed(tp, file, len);
    rc = rc ? rc : tp_finish(tp);
    rc = rc ? rc : tp_query(tp, "SELECT value FROM counter ORDER BY value, id", &r);
    if (rc == 0) {
        while ((rc = tp_step(r)) == 1)
            ;
        tp_result_close(r);
    }
    tp_close(tp);
    return rc;
}

/* The header says that all doubles are within the ten behind the first. */
static void narrow(uint8_t *file, size_t len, int64_t min)
{
    struct col_chunk *k;
    struct snapshot_column *c = find(file, len, T_counter, counter_c_value, &k);
    k->min = c->min = min;
    k->max = c->max = min + 10;
    snapshot_reseal(file, len);
}

START_TEST(doubles_beyond_their_header)
{
    static const char *const formats[] = {"%d", "%d.25"}; /* codes, and words as they are */
    static const uint8_t kinds[][2] = {{CHUNK_U8F, CHUNK_U32F}, {CHUNK_RAW, CHUNK_RAW}};
    size_t len;
    struct col_chunk *k;
    uint8_t *file = make(formats[_i], &len);
    find(file, len, T_counter, counter_c_value, &k);
    ck_assert(k->kind >= kinds[_i][0] && k->kind <= kinds[_i][1]);
    ck_assert_int_eq(ask(file, len), 0);
    narrow(file, len, k->min);
    ck_assert_int_lt(ask(file, len), 0);
    free(file);
}
END_TEST

/* Integers of a narrow range as words: damaged ones would read as 0, which is not in it. */
START_TEST(words_of_a_narrow_range)
{
    size_t len;
    struct col_chunk *k, *words;
    uint8_t *file = make("%d.25", &len);
    find(file, len, T_counter, counter_c_value, &words);
    struct snapshot_column *c = find(file, len, T_counter, counter_c_track_id, &k);
    *k = (struct col_chunk){.kind = CHUNK_RAW, .min = 1000, .max = 1010};
    k->at = words->at;
    c->min = 1000;
    c->max = 1010;
    snapshot_reseal(file, len);
    ck_assert_int_lt(ask(file, len), 0);
    free(file);
}
END_TEST

Suite *snapshot_headers_suite(void);
Suite *snapshot_headers_suite(void)
{
    Suite *s = suite_create("snapshot_headers");
    TCase *t = tcase_create("headers");
    tcase_add_loop_test(t, doubles_beyond_their_header, 0, 2);
    tcase_add_test(t, words_of_a_narrow_range);
    suite_add_tcase(s, t);
    return s;
}
