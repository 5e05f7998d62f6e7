/* Random rows in our tables and in SQLite's own, and the comparison of answers. */
#include "mirror.h"

#include "base/hash.h"
#include "base/vec.h"
#include "memory_gate.h"
#include "sql/engine/heap.h"
#include "sql/engine_private.h"
#include "sql/planner/planner.h"

#include <check.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static uint64_t seed_state;

uint32_t pick(uint32_t n)
{
    seed_state ^= seed_state << 13;
    seed_state ^= seed_state >> 7;
    seed_state ^= seed_state << 17;
    return (uint32_t)((seed_state >> 20) % n);
}

/* ---- rows ---- */

static const char *const words[] = {
    "", "a", "aB", "abc", "B", "Sched_switch", "12", "1.5", "-3", "zz", "\xc3\xa9t\xc3\xa9"};
enum { WORDS = sizeof words / sizeof *words };

const char *pick_word(void)
{
    return words[pick(WORDS)];
}

static int64_t small_or_null(uint32_t n)
{
    return pick(6) == 0 ? COL_NULL : (int64_t)pick(n);
}

static strid word_or_null(struct storage *st)
{
    return pick(5) == 0 ? 0 : strpool_intern_str(&st->strings, pick_word());
}

static double a_double(void)
{
    static const double odd[] = {0.0, -0.0, 1e300, -1e300, 9007199254740993.0, 0.25};
    return pick(10) == 0 ? odd[pick(6)] : (double)((int)pick(400) - 200) / (pick(2) ? 4 : 1);
}

static void fill(struct storage *st, uint32_t n_slices)
{
    int64_t ts = -50;
    for (uint32_t i = 0; i < n_slices; i++) {
        ts += pick(4);
        slice_insert(
            st, &(struct slice_row){.ts = ts,
                                    .dur = pick(20) == 0 ? -1 : (int64_t)pick(1u << (pick(20) + 1)),
                                    .track_id = pick(40),
                                    .category = word_or_null(st),
                                    .name = word_or_null(st),
                                    .depth = pick(300),
                                    .parent_id = small_or_null(n_slices),
                                    .arg_set_id = argset_of_cell(i < n_slices / 2 ? COL_NULL : small_or_null(70000)),
                                    .thread_ts = pick(3) ? COL_NULL : (int64_t)((uint64_t)pick(1u << 31) << 32),
                                    .thread_dur = COL_NULL,
                                    .thread_instruction_count = 7,
                                    .thread_instruction_delta = small_or_null(3)});
    }
    for (uint32_t i = 0; i < n_slices / 2; i++)
        counter_insert(st, &(struct counter_row){.ts = (int64_t)i * 2,
                                                 .track_id = pick(40),
                                                 .value = a_double(),
                                                 .arg_set_id = argset_of_cell(small_or_null(9))});
    for (uint32_t i = 0; i < 40; i++) /* ids of these strings ascend, their texts do not */
        machine_insert(st, &(struct machine_row){.raw_id = i / 3,
                                                 .name = strpool_printf(&st->strings, "m%u", 99 - i / 2),
                                                 .sysname = strpool_printf(&st->strings, "m%u", i / 5)});
    for (uint32_t i = 0; i < 60; i++)
        thread_insert(st, &(struct thread_row){.tid = pick(30),
                                               .name = word_or_null(st),
                                               .start_ts = small_or_null(100),
                                               .end_ts = COL_NULL,
                                               .upid = small_or_null(10),
                                               .is_main_thread = pick(2)});
    for (uint32_t i = 0; i < n_slices / 8; i++)
        flow_insert(
            st, &(struct flow_row){.slice_out = i * 37 % n_slices, .slice_in = i * 61 % n_slices, .trace_id = i % 9});
}

const struct mirrored mirrored[MIRRORED] = {
    {T_slice, "slice"}, {T_counter, "counter"}, {T_thread, "thread"}, {T_machine, "machine"}};

static void must(struct engine *e, const char *sql)
{
    char *message = NULL;
    int rc = sqlite3_exec(engine_db(e), sql, NULL, NULL, &message);
    ck_assert_msg(rc == SQLITE_OK, "%s: %s", sql, message ? message : "");
}

static void bind_word(sqlite3_stmt *s, int at, const struct storage *st, const struct column *c, uint32_t row)
{
    int64_t w = column_get(c, row);
    if (w == column_null(c->type))
        sqlite3_bind_null(s, at);
    else if (c->type == COL_STR)
        sqlite3_bind_text(s, at, strpool_cstr(&st->strings, (strid)w), -1, SQLITE_STATIC);
    else if (c->type == COL_F64)
        sqlite3_bind_double(s, at, column_f64(w));
    else
        sqlite3_bind_int64(s, at, w);
}

/* Plain tables p_x beside views v_x of ours. */
static void copy(struct engine *e)
{
    struct storage *st = engine_storage(e);
    for (size_t m = 0; m < MIRRORED; m++) {
        const struct table *t = &st->t[mirrored[m].table];
        sqlite3_str *create = sqlite3_str_new(NULL), *insert = sqlite3_str_new(NULL);
        sqlite3_str_appendf(create, "CREATE TABLE p_%s(id INTEGER", mirrored[m].name);
        sqlite3_str_appendf(insert, "INSERT INTO p_%s VALUES(?", mirrored[m].name);
        for (uint32_t c = 0; c < t->def->n_columns; c++) {
            uint8_t type = t->def->columns[c].type;
            sqlite3_str_appendf(create, ", \"%s\" %s", t->def->columns[c].name,
                                type == COL_STR   ? "TEXT"
                                : type == COL_F64 ? "DOUBLE"
                                                  : "INTEGER");
            sqlite3_str_appendall(insert, ",?");
        }
        sqlite3_str_appendall(create, ")");
        sqlite3_str_appendall(insert, ")");
        char *create_text = sqlite3_str_finish(create), *insert_text = sqlite3_str_finish(insert);
        must(e, create_text);
        sqlite3_stmt *s;
        ck_assert_int_eq(sqlite3_prepare_v2(engine_db(e), insert_text, -1, &s, NULL), SQLITE_OK);
        must(e, "BEGIN");
        for (uint32_t row = 0; row < t->n_rows; row++) {
            sqlite3_bind_int64(s, 1, row);
            for (uint32_t c = 0; c < t->def->n_columns; c++)
                bind_word(s, (int)c + 2, st, &t->columns[c], row);
            ck_assert_int_eq(sqlite3_step(s), SQLITE_DONE);
            sqlite3_reset(s);
        }
        must(e, "COMMIT");
        sqlite3_finalize(s);
        sqlite3_free(create_text);
        sqlite3_free(insert_text);
        char view[100];
        snprintf(view, sizeof view, "CREATE VIEW v_%s AS SELECT * FROM %s", mirrored[m].name, t->def->name);
        must(e, view);
    }
}

void mirror_open(struct mirror *m, uint64_t seed, uint32_t n_slices)
{
    struct error err = {0};
    *m = (struct mirror){0};
    seed_state = seed;
    ck_assert_int_eq(storage_init(&m->st), 0);
    fill(&m->st, n_slices);
    ck_assert_msg(engine_open(&m->e, &m->st, &err) == 0, "%s", err.text);
    ck_assert_msg(engine_loaded(m->e, &err) == 0, "%s", err.text);
    copy(m->e);
}

void mirror_run(struct mirror *m, const char *fmt, ...)
{
    char sql[1000];
    struct engine_result r = {0};
    struct error err = {0};
    va_list args;
    va_start(args, fmt);
    vsnprintf(sql, sizeof sql, fmt, args);
    va_end(args);
    int rc = engine_query(m->e, "test", slice_str(sql), &r, NULL, &err);
    while (rc == 0 && engine_result_next(&r, &err) == 1)
        continue;
    ck_assert_msg(err.code == 0, "%s: %s", sql, err.text);
    engine_result_close(&r);
}

void mirror_close(struct mirror *m)
{
    engine_close(m->e);
    storage_free(&m->st);
}

/* ---- queries ---- */

void put(struct text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->p + t->n, sizeof t->p - t->n, fmt, ap);
    va_end(ap);
    if (n > 0)
        t->n += (size_t)n < sizeof t->p - t->n ? (size_t)n : sizeof t->p - t->n - 1;
}

/* ---- answers ---- */

struct answer {
    VEC(uint64_t)
    rows;
    uint64_t order; /* of the sort keys, one after the other */
    char text[300]; /* first rows, for messages */
};

static int by_hash(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void ask(struct engine *e, const char *query, const char *prefix, uint32_t ordered, struct answer *out)
{
    struct text sql = {.n = 0};
    struct engine_result r;
    struct error err = {0};
    for (const char *s = query; *s; s++)
        *s == '@' ? put(&sql, "%s", prefix) : put(&sql, "%c", *s);
    vec_clear(&out->rows);
    out->order = 0;
    out->text[0] = 0;
    struct engine_script script = {.direct = true};
    int rc = engine_query(e, "test", slice_str(sql.p), &r, &script, &err);
    ck_assert_msg(rc == 0, "%s: %s", sql.p, err.text);
    while ((rc = engine_result_next(&r, &err)) == 1) {
        uint64_t row = 1;
        for (int i = 0; i < r.n_columns; i++) {
            size_t len, at = strlen(out->text);
            const char *text = engine_value_text(&r, i, &len);
            row = hash_combine(row, text ? hash_bytes(text, len) + 1 : 0);
            if ((uint32_t)i + 1 == ordered)
                out->order = hash_combine(out->order, row);
            snprintf(out->text + at, sizeof out->text - at, "%s%s", i ? "," : "\n", text ? text : "NULL");
        }
        ck_assert(vec_push(&out->rows, row));
    }
    ck_assert_msg(rc == 0, "%s: %s", sql.p, err.text);
    engine_result_close(&r);
    if (out->rows.n)
        qsort(out->rows.p, out->rows.n, sizeof *out->rows.p, by_hash);
}

void mirror_compare(struct mirror *m, const char *query, uint32_t ordered)
{
    struct answer ours = {0}, theirs = {0};
    ask(m->e, query, "v_", ordered, &ours);
    ask(m->e, query, "p_", ordered, &theirs);
    bool same = ours.rows.n == theirs.rows.n && ours.order == theirs.order &&
                (ours.rows.n == 0 || memcmp(ours.rows.p, theirs.rows.p, ours.rows.n * 8) == 0);
    ck_assert_msg(same, "%s\nours: %zu rows%s\nSQLite: %zu rows%s", query, ours.rows.n, ours.text, theirs.rows.n,
                  theirs.text);
    vec_free(&ours.rows);
    vec_free(&theirs.rows);
}

/* Memory that runs out while the engine works; fail_at 0: never. */
static struct gate memory;

static void set_gate(bool on)
{
    if (!memory.fail_at)
        return;
    sql_heap_set_gated(on);
    alloc_set_gate(on ? gate_open : NULL, &memory);
}

/* Somebody interrupts the statement before its row of that number is asked for; 0: nobody does. */
static uint32_t interrupt_at;

static int next_row(struct engine *e, struct engine_result *r, uint32_t row, struct error *err)
{
    if (interrupt_at && row == interrupt_at)
        engine_interrupt(e);
    set_gate(true);
    int rc = engine_result_next(r, err);
    set_gate(false);
    return rc;
}

/* Names, rows and the error of a query, one after the other; *planned: not by SQLite alone. `direct`: as rows of the
 * plan, where there is one. */
static uint64_t ask_all(struct engine *e, const char *query, bool direct, bool *planned, struct text *shown)
{
    struct engine_script script = {.direct = direct};
    struct engine_result r = {0};
    struct error err = {0};
    uint64_t all = 0;
    set_gate(true);
    int rc = engine_query(e, "test", slice_str(query), &r, &script, &err);
    set_gate(false);
    const char *sql = r.stmt ? sqlite3_sql(r.stmt) : "";
    *planned = strstr(sql, "FROM __intrinsic_plan") || strstr(sql, "FROM __intrinsic_aggregate(");
    for (int i = 0; r.stmt && i < r.n_columns; i++) {
        const char *name = sqlite3_column_name(r.stmt, i);
        all = hash_combine(all, hash_bytes(name, strlen(name)));
        put(shown, "%s|", name);
    }
    for (uint32_t rows = 0; rc == 0 && (rc = next_row(e, &r, rows, &err)) == 1; rc = 0, rows++)
        for (int i = 0; i < r.n_columns; i++) {
            size_t len;
            set_gate(true);
            int type = engine_value_type(&r, i);
            int64_t number = type == SQLITE_TEXT ? engine_value_int64(&r, i) : 0;
            const char *text = engine_value_text(&r, i, &len);
            set_gate(false);
            all = hash_combine(all, hash_bytes(text, len) + (unsigned)type + (uint64_t)number);
            if (rows < 10)
                put(shown, "%s%s", i ? "," : "\n", text ? text : "NULL");
        }
    if (rc < 0)
        put(shown, "\n%s", err.text);
    engine_result_close(&r);
    ck_assert(rc >= 0 || err.text[0]);
    return rc < 0 ? hash_bytes(err.text, strlen(err.text)) : all;
}

/* Is the answer that was shown an error for want of memory? */
static bool is_out_of_memory(const struct text *shown)
{
    return strstr(shown->p, "out of memory") || strstr(shown->p, "not enough memory");
}

void mirror_check_memory(struct mirror *m, const char *query, unsigned fail_at, bool for_good)
{
    struct text whole = {.n = 0}, shown = {.n = 0}, after = {.n = 0};
    bool planned;
    uint64_t a = ask_all(m->e, query, true, &planned, &whole);
    memory.calls = 0;
    memory.fail_at = fail_at;
    memory.for_good = for_good;
    uint64_t b = ask_all(m->e, query, true, &planned, &shown);
    memory.fail_at = 0;
    ck_assert_msg(a == b || is_out_of_memory(&shown), "%s\nwithout allocation %u%s: %.900s\nwith it: %.900s", query,
                  fail_at, for_good ? " and all that follow" : "", shown.p, whole.p);
    ck_assert_msg(a == ask_all(m->e, query, true, &planned, &after), "%s\nafter a failure: %.900s\nbefore: %.900s",
                  query, after.p, whole.p);
}

bool mirror_check_interrupt(struct mirror *m, const char *query, uint32_t row)
{
    struct text whole = {.n = 0}, shown = {.n = 0}, after = {.n = 0};
    bool planned;
    uint64_t a = ask_all(m->e, query, true, &planned, &whole);
    interrupt_at = row;
    uint64_t b = ask_all(m->e, query, true, &planned, &shown);
    interrupt_at = 0;
    bool interrupted = strstr(shown.p, "\ninterrupted");
    ck_assert_msg(a == b || interrupted, "%s\ninterrupted at row %u: %.900s\nnot interrupted: %.900s", query, row,
                  shown.p, whole.p);
    ck_assert_msg(a == ask_all(m->e, query, true, &planned, &after), "%s\nafter an interrupt: %.900s\nbefore: %.900s",
                  query, after.p, whole.p);
    return interrupted;
}

/* The engine that is to stop when the processor has worked for so long. */
static struct engine *volatile timed;
static volatile sig_atomic_t time_is_over;

static void stop(int signal_number)
{
    (void)signal_number;
    time_is_over = 1;
    engine_interrupt(timed);
}

/* As ask_all(), for `ms` at most (0: as long as it takes). Whether the statement was stopped is in time_is_over. */
static uint64_t ask_in_time(struct engine *e, const char *query, uint32_t ms, bool *planned, struct text *shown)
{
    struct itimerval at = {.it_value = {ms / 1000, ms % 1000 * 1000}}, never = {.it_value = {0}};
    time_is_over = 0;
    timed = e;
    signal(SIGPROF, stop);
    setitimer(ITIMER_PROF, &at, NULL);
    uint64_t all = ask_all(e, query, true, planned, shown);
    setitimer(ITIMER_PROF, &never, NULL);
    engine_interrupt_clear(e);
    return all;
}

static uint64_t ask_sqlite(struct engine *e, const char *query, uint32_t ms, struct text *shown)
{
    bool planned;
    planner_switch(e, false);
    uint64_t all = ask_in_time(e, query, ms, &planned, shown);
    planner_switch(e, true);
    ck_assert(!planned);
    return all;
}

enum { SLOWER = 10 };

bool mirror_compare_planner(struct mirror *m, const char *query)
{
    struct text ours = {.n = 0}, stepped = {.n = 0}, theirs = {.n = 0};
    bool planned, by_sqlite;
    uint64_t visited = m->e->plan_visited, a = ask_in_time(m->e, query, m->most_ms, &planned, &ours), b, c;
    if (time_is_over) {
        ask_sqlite(m->e, query, m->most_ms / SLOWER, &theirs);
        if (!time_is_over)
            fprintf(stderr, "%d times as slow with plans: %s\n", SLOWER, query);
        return false;
    }
    if (!planned && m->e->plan_visited == visited)
        return false; /* no plan has looked at a row: the answer is SQLite's */
    b = ask_sqlite(m->e, query, m->most_ms, &theirs);
    if (time_is_over)
        return false;
    ck_assert_msg(a == b, "%s\nplanned: %.900s\nSQLite: %.900s", query, ours.p, theirs.p);
    c = planned ? ask_all(m->e, query, false, &by_sqlite, &stepped) : a;
    ck_assert_msg(c == b, "%s\nplanned, rows by SQLite: %.900s\nSQLite: %.900s", query, stepped.p, theirs.p);
    m->compared++;
    return planned;
}

uint64_t mirror_visited_by(struct mirror *m, const char *query)
{
    uint64_t before = m->e->plan_visited;
    ck_assert_msg(mirror_compare_planner(m, query), "no plan: %s", query);
    return (m->e->plan_visited - before) / 2; /* it has been run twice */
}

void mirror_compare_made(struct mirror *m, uint32_t (*make)(struct text *t), int n)
{
    for (int i = 0; i < n; i++) {
        struct text query;
        uint32_t ordered = make(&query);
        mirror_compare(m, query.p, ordered);
    }
}
