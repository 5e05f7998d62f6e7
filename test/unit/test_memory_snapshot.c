/* Dumps of Chrome's memory: parts inside parts, and memory that several processes own. */
#include "unit/pb_text.h"
#include "unit/trace_fixture.h"

#include <string.h>

static struct trace_fixture f;
static struct pb_writer *const w = &f.w;

static void setup(void)
{
    trace_fixture_open(&f);
}

static void teardown(void)
{
    trace_fixture_close(&f);
}

#define ROWS(table)              (f.st.t[T_##table].n_rows)
#define GET(table, column, row)  ROW_GET(&f.st, table, column, row)
#define TEXT(table, column, row) fixture_text(&f, GET(table, column, row))
#define STAT(name)               stats_get(&f.st.stats, 0, STAT_##name)

#define PACKET(ts, ...)                                                                                                \
    do {                                                                                                               \
        packet_begin(&f, ts);                                                                                          \
        put(w, __VA_ARGS__);                                                                                           \
        packet_end(&f);                                                                                                \
    } while (0)

/* The row of a part; its process is looked at where two have one of the name. */
static uint32_t part(const char *path, int64_t pid)
{
    for (uint32_t i = 0; i < ROWS(memory_snapshot_node); i++) {
        uint32_t process = (uint32_t)GET(memory_snapshot_node, process_snapshot_id, i);
        int64_t of = GET(process, pid, (uint32_t)GET(process_memory_snapshot, upid, process));
        if (strcmp(TEXT(memory_snapshot_node, path, i), path) == 0 && of == pid)
            return i;
    }
    ck_abort_msg("no part %s of %lld", path, (long long)pid);
}

static void check_part(const char *path, int64_t pid, int64_t size, int64_t effective)
{
    uint32_t row = part(path, pid);
    ck_assert_msg(GET(memory_snapshot_node, size, row) == size, "%s: size %lld", path,
                  (long long)GET(memory_snapshot_node, size, row));
    ck_assert_msg(GET(memory_snapshot_node, effective_size, row) == effective, "%s: effective size %lld", path,
                  (long long)GET(memory_snapshot_node, effective_size, row));
}

START_TEST(parts_add_up)
{
    PACKET(10, "73{2:2 3{1:7 2{1:1 2'malloc' 4:100 5{1'objects' 2:2 3:9} 5{1'kind' 4'x'} 5{1'a' 2:1 3:5}}"
               "  2{1:2 2'malloc/used' 4:60} 2{1:3 2'blink/deep/leaf' 4:8} 2{1:4 2'empty'} 2{1:5 2'x' 5{1'none'}}"
               "  2{1:6 2'a/big' 4:50} 2{1:7 2'a' 5{1'size' 2:1 3:20}}}}");
    PACKET(10, "73{3{1:7 2{1:1 2'malloc' 4:1}} 3{1:8 2{1:9 2'malloc' 4:5}}}"); /* the first dump of 7 counts */
    PACKET(20, "73{2:1}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(memory_snapshot), 2);
    ck_assert_int_eq(GET(memory_snapshot, timestamp, 0), 10);
    ck_assert_str_eq(TEXT(memory_snapshot, detail_level, 0), "background");
    ck_assert_str_eq(TEXT(memory_snapshot, detail_level, 1), "light");
    ck_assert_str_eq(TEXT(track, type, (uint32_t)GET(memory_snapshot, track_id, 0)), "legacy_chrome_global_instants");
    ck_assert_uint_eq(ROWS(process_memory_snapshot), 4); /* 7, 8, what they share; what is shared in the second */
    check_part("malloc", 7, 100, 100);
    check_part("malloc/used", 7, 60, 60);
    check_part("malloc/<unspecified>", 7, 40, 40);
    check_part("malloc", 8, 5, 5);
    check_part("blink", 7, 8, 8);
    check_part("blink/deep/leaf", 7, 8, 8);
    check_part("empty", 7, COL_NULL, COL_NULL);
    check_part("a", 7, 50, 50); /* more than it says */
    ck_assert_int_eq(GET(memory_snapshot_node, parent_node_id, part("malloc/used", 7)), part("malloc", 7));
    ck_assert_int_eq(GET(memory_snapshot_node, parent_node_id, part("malloc", 7)), COL_NULL);
    ck_assert_str_eq(fixture_args(&f, ROW_ARGS(&f.st, memory_snapshot_node, arg_set_id, part("malloc", 7))),
                     "a.value=5 a.unit=bytes kind.value=x objects.value=9 objects.unit=objects");
    ck_assert_uint_eq(part("a", 7), 0); /* in the order of their names */
    ck_assert_uint_eq(part("a/big", 7), 1);
    ck_assert_int_eq(STAT(memory_snapshot_parser_failure), 1);
}
END_TEST

START_TEST(owners_share_what_they_own)
{
    PACKET(10, "73{3{1:1 2{1:10 2'one' 4:40} 3{1:10 2:99 3:2} 2{1:99 2'global/g' 4:40}}"
               "  3{1:2 2{1:20 2'two' 4:30} 3{1:20 2:99 3:1} 3{1:20 2:10} 3{1:77 2:99} 2{1:99 2'global/other' 4:1}}}");
    trace_fixture_load(&f);
    check_part("one", 1, 40, 40);
    check_part("two", 2, 30, 0);
    check_part("global", 0, 40, 0);
    check_part("global/g", 0, 40, 0);
    ck_assert_uint_eq(ROWS(memory_snapshot_node), 4);
    ck_assert_uint_eq(ROWS(memory_snapshot_edge), 2); /* the newest first */
    ck_assert_int_eq(GET(memory_snapshot_edge, source_node_id, 0), part("two", 2));
    ck_assert_int_eq(GET(memory_snapshot_edge, target_node_id, 0), part("global/g", 0));
    ck_assert_int_eq(GET(memory_snapshot_edge, importance, 1), 2);
}
END_TEST

START_TEST(equal_owners_share_step_by_step)
{
    PACKET(10, "73{3{1:1 2{1:1 2'small' 4:10} 2{1:2 2'large' 4:30} 2{1:3 2'all' 4:50} 2{1:4 2'all/in' 4:50}"
               "  3{1:1 2:3} 3{1:2 2:3}}}");
    trace_fixture_load(&f);
    check_part("small", 1, 10, 5);  /* half of 10 */
    check_part("large", 1, 30, 25); /* the other half, and 20 alone */
    check_part("all", 1, 50, 20);
    check_part("all/in", 1, 50, 20);
}
END_TEST

START_TEST(parts_that_own_inside_count_once)
{
    PACKET(10, "73{3{1:1 2{1:1 2'h/x' 4:10} 2{1:2 2'h/y' 4:10} 3{1:2 2:1}}}");
    trace_fixture_load(&f);
    ck_assert_int_eq(GET(memory_snapshot_node, size, part("h", 1)), 10);
    check_part("h/x", 1, 10, 0);
    check_part("h/y", 1, 10, 10);
}
END_TEST

START_TEST(circles_and_depths_are_survived)
{
    char path[2 * 400 + 1] = "";
    for (int i = 0; i < 400; i++)
        memcpy(path + 2 * (size_t)i, "d/", 2);
    PACKET(10,
           "73{3{1:1 2{1:1 2'a' 4:10} 2{1:2 2'a/b' 4:10} 3{1:2 2:1} 3{1:1 2:2} 2{1:3 2'%s'} 2{1:4 2''} 2{1:5 2'/'}"
           "  2{1:6 2'c'} 3{1:6 2:6}}}",
           path);
    trace_fixture_load(&f);
    ck_assert_int_eq(STAT(memory_snapshot_parser_failure), 2);
    ck_assert_uint_eq(ROWS(memory_snapshot_edge), 3);
}
END_TEST

Suite *memory_snapshot_suite(void);

Suite *memory_snapshot_suite(void)
{
    Suite *s = suite_create("memory_snapshot");
    TCase *c = tcase_create("dumps");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, parts_add_up);
    tcase_add_test(c, owners_share_what_they_own);
    tcase_add_test(c, equal_owners_share_step_by_step);
    tcase_add_test(c, parts_that_own_inside_count_once);
    tcase_add_test(c, circles_and_depths_are_survived);
    suite_add_tcase(s, c);
    return s;
}
