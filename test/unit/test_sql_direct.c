/* Rows that go from a plan to the caller without SQLite in between: memory that runs out while they are read, at every
 * call, and interrupts between any two. */
#include "mirror.h"

#include <check.h>

enum { ROWS = 700, SCANNED = 6000 };

/* Scans, answers, texts, reals, numbers read as texts, and scans that give up behind some thousand rows. */
static const char *const statements[] = {
    "SELECT id, ts, dur, name, category FROM v_slice",
    "SELECT id, name || id, dur / 3.0, ts + 1 FROM v_slice WHERE dur > 3 AND name IS NOT NULL LIMIT 600 OFFSET 7",
    "SELECT id, value, value * 2 FROM v_counter WHERE value > (SELECT avg(value) FROM v_counter)",
    "SELECT name, count(*), sum(dur), avg(dur), min(category) FROM v_slice GROUP BY name ORDER BY 2 DESC, 1",
    "SELECT s.id, t.name, s.name FROM v_slice s JOIN v_thread t ON t.id = s.depth ORDER BY s.dur, s.id",
    "SELECT id, lag(dur) OVER (PARTITION BY depth ORDER BY ts, id), name FROM v_slice",
    "SELECT name FROM v_slice UNION SELECT category FROM v_slice",
};

static const char *const late[] = {
    "SELECT id, ts, (id / 2700) * 9223372036854775807, name FROM v_slice WHERE id / 2700 < 2",
    "SELECT id, name, dur / 7.0 FROM v_slice WHERE (id / 2700) * 4611686018427387905 != 7",
};

enum { STATEMENTS = sizeof statements / sizeof *statements, LATE = sizeof late / sizeof *late };

/* The calls of a statement are some hundreds; each of them fails here, most of them alone and with all that follow. */
START_TEST(memory_runs_out_at_a_value)
{
    struct mirror m;
    mirror_open(&m, 271127, ROWS);
    for (unsigned at = 1; at <= 400; at++)
        mirror_check_memory(&m, statements[_i], at, at % 2);
    mirror_close(&m);
}
END_TEST

/* What SQLite goes on with passes over the rows that were given. */
START_TEST(memory_runs_out_behind_a_scan)
{
    struct mirror m;
    mirror_open(&m, 271128, SCANNED);
    for (unsigned at = 1; at <= 6000; at += 1 + at / 16)
        mirror_check_memory(&m, late[_i], at, at % 2);
    mirror_close(&m);
}
END_TEST

START_TEST(interrupts_between_rows)
{
    struct mirror m;
    unsigned interrupted = 0;
    mirror_open(&m, 271129, SCANNED);
    for (size_t i = 0; i < STATEMENTS + LATE; i++) {
        const char *sql = i < STATEMENTS ? statements[i] : late[i - STATEMENTS];
        for (uint32_t row = 1; row < SCANNED; row += 1 + row / 2)
            interrupted += mirror_check_interrupt(&m, sql, row);
    }
    ck_assert_uint_gt(interrupted, 50);
    mirror_close(&m);
}
END_TEST

Suite *sql_direct_suite(void);
Suite *sql_direct_suite(void)
{
    Suite *s = suite_create("sql_direct");
    TCase *t = tcase_create("rows");
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, memory_runs_out_at_a_value, 0, STATEMENTS);
    tcase_add_loop_test(t, memory_runs_out_behind_a_scan, 0, LATE);
    tcase_add_test(t, interrupts_between_rows);
    suite_add_tcase(s, t);
    return s;
}
