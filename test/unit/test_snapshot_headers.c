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

/* A snapshot of a counter's values, in memory; the caller frees it. */
static uint8_t *make_of(int events, const char *value_format, size_t *len)
{
    char trace[] = "/tmp/unit-headers-XXXXXX", path[sizeof trace + 8];
    int fd = mkstemp(trace);
    FILE *f = fdopen(fd, "w");
    struct tp *tp;
    snprintf(path, sizeof path, "%s.snap", trace);
    fprintf(f, "{\"traceEvents\":[");
    for (int i = 0; i < events; i++) {
        fprintf(f, "%s{\"ph\":\"C\",\"ts\":%d,\"pid\":1,\"name\":\"c\",\"args\":{\"v\":", i ? "," : "", i);
        fprintf(f, value_format, 1 + i * 7 % (events + 1));
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

static uint8_t *make(const char *value_format, size_t *len)
{
    return make_of(600, value_format, len);
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

/* Reads the answer to a question: how it ends. */
static int ask_for(const char *sql, const uint8_t *file, size_t len)
{
    static const struct tp_config config = {.no_native_plans = true};
    struct tp *tp;
    struct tp_result *r;
    ck_assert_int_eq(tp_open(&tp, &config), 0);
    int rc = tp_feed(tp, file, len);
    rc = rc ? rc : tp_finish(tp);
    rc = rc ? rc : tp_query(tp, sql, &r);
    if (rc == 0) {
        while ((rc = tp_step(r)) == 1)
            ;
        tp_result_close(r);
    }
    tp_close(tp);
    return rc;
}

static int ask(const uint8_t *file, size_t len)
{
    return ask_for("SELECT value FROM counter ORDER BY value, id", file, len);
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

/* Where the columns of a table could be among those of another one, by their types; that one's number when nowhere. */
static uint32_t place_among(const struct table_def *twin, const struct table_def *own)
{
    for (uint32_t at = 0; at + twin->n_columns <= own->n_columns; at++) {
        uint32_t same = 0;
        while (same < twin->n_columns && twin->columns[same].type == own->columns[at + same].type)
            same++;
        if (same == twin->n_columns)
            return at;
    }
    return own->n_columns;
}

/* A table that is columns of another one with fewer rows: the rest of that one's rows would be checked by nobody. */
START_TEST(columns_of_two_tables)
{
    size_t len, n;
    unsigned tried = 0;
    uint8_t *file = make("%d", &len), *copy = aligned_alloc(64, (len + 63) / 64 * 64);
    struct snapshot_trailer *t = (void *)(copy + len - sizeof *t);
    memcpy(copy, file, len);
    struct snapshot_table *tables = (void *)reseal_section(copy, len, t, SNAPSHOT_TABLES, &n);
    n /= sizeof *tables;
    for (size_t i = 0; i < n; i++) {
        uint32_t own = tables[i].table;
        for (uint32_t twin = 0; twin < T_COUNT; twin++) {
            size_t at = own < twin ? i + 1 : i - 1; /* the neighbour makes room: tables are in their order */
            uint32_t place = place_among(&table_defs[twin], &table_defs[own]);
            if (twin == own || at >= n || place == table_defs[own].n_columns ||
                (own < twin ? at + 1 < n && tables[at + 1].table <= twin : at > 0 && tables[at - 1].table >= twin))
                continue;
            tables[at] = (struct snapshot_table){twin, 1, tables[i].first_column + place, table_defs[twin].n_columns};
            snapshot_reseal(copy, len);
            ck_assert_int_lt(ask(copy, len), 0);
            memcpy(copy, file, len);
            tried++;
        }
    }
    ck_assert_uint_gt(tried, 0);
    free(copy);
    free(file);
}
END_TEST

/* Headers of chunks among the data, which reads as zeros once something is damaged. */
START_TEST(headers_among_the_data)
{
    size_t len, n;
    uint8_t *file = make("%d", &len);
    struct snapshot_trailer *t = (void *)(file + len - sizeof *t);
    struct snapshot_place *data = &t->sections[SNAPSHOT_DATA], *chunks = &t->sections[SNAPSHOT_CHUNKS];
    uint64_t to = (data->offset + data->len - chunks->len) / SNAPSHOT_ALIGN * SNAPSHOT_ALIGN;
    ck_assert_uint_lt(chunks->len + SNAPSHOT_ALIGN, SNAPSHOT_SPARE);
    const uint8_t *from = reseal_section(file, len, t, SNAPSHOT_CHUNKS, &n);
    memcpy(file + to, from, n);
    chunks->offset = to;
    snapshot_reseal(file, len);
    ck_assert_int_lt(ask(file, len), 0);
    free(file);
}
END_TEST

/* Blocks of strings that say they have the same text: each is summed up when it is first read. */
START_TEST(strings_of_one_text)
{
    size_t len, n;
    uint8_t *file = make_of(3000, "%1$d},\"id\":\"a%1$d\",\"x\":{\"z\":0", &len);
    struct snapshot_trailer *t = (void *)(file + len - sizeof *t);
    struct snapshot_string *strings = (void *)reseal_section(file, len, t, SNAPSHOT_STRINGS, &n);
    uint64_t *sums = (void *)reseal_section(file, len, t, SNAPSHOT_STRING_SUMS, &n);
    const char *all = "SELECT sum(length(name)) FROM track";
    ck_assert_uint_ge(t->n_strings, 2 * SNAPSHOT_BLOCK);
    ck_assert_int_eq(ask_for(all, file, len), 0);
    const uint8_t *bytes = reseal_section(file, len, t, SNAPSHOT_STRING_TEXT, &n);
    uint64_t text = strings[SNAPSHOT_BLOCK].at;
    for (uint32_t i = SNAPSHOT_BLOCK; i < t->n_strings; i++)
        strings[i] = strings[i % SNAPSHOT_BLOCK];
    for (uint32_t first = SNAPSHOT_BLOCK; first < t->n_strings; first += SNAPSHOT_BLOCK) {
        uint32_t end = t->n_strings - first < SNAPSHOT_BLOCK ? t->n_strings - first : SNAPSHOT_BLOCK;
        struct checksum sum = checksum_of(strings, end * sizeof *strings, 0);
        checksum_add(&sum, checksum_of(bytes, strings[end - 1].at + strings[end - 1].len + 1, 0));
        sums[first / SNAPSHOT_BLOCK] = sum.low;
    }
    t->sections[SNAPSHOT_STRING_TEXT].len = text;
    snapshot_reseal(file, len);
    ck_assert_int_lt(ask_for(all, file, len), 0);
    free(file);
}
END_TEST

/* A column's range that its type cannot have: arrays are sized by it. */
START_TEST(range_beyond_the_type)
{
    size_t len;
    struct col_chunk *k;
    uint8_t *file = make("%d", &len);
    struct snapshot_column *c = find(file, len, T_counter, counter_c_track_id, &k);
    c->max = _i ? INT64_MAX : INT64_C(1) << 32;
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
    tcase_add_test(t, columns_of_two_tables);
    tcase_add_test(t, headers_among_the_data);
    tcase_add_test(t, strings_of_one_text);
    tcase_add_loop_test(t, range_beyond_the_type, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
