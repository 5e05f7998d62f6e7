/* Tests that events mean the same in whichever order their fields stand: the readers have a short way for the order
 * that recorders use. */
#include "unit/ftrace_trace.h"

#include "base/hash.h"

enum { EVENTS = 3000, CPUS = 3, THREADS = 12 };

static struct ftrace_trace in_order, shuffled;

static void setup(void)
{
    memset(&in_order, 0, sizeof in_order);
    memset(&shuffled, 0, sizeof shuffled);
}

static void teardown(void)
{
    trace_free(&in_order);
    trace_free(&shuffled);
}

static uint64_t next_random(uint64_t *seed)
{
    return *seed = hash_u64(*seed + 1);
}

/* Numbers on both sides of where a varint needs a byte more. */
static uint64_t number(uint64_t *seed, unsigned bits)
{
    uint64_t n = UINT64_C(1) << next_random(seed) % bits;
    return n - next_random(seed) % 2;
}

/* In pairs of the same length. */
static const char *const names[] = {
    "a",
    "b",
    "kworker/0:1",
    "kworker/1:1",
    "sixteen bytes ok",
    "sixteen bytes oh",
    "seventeen bytes, no",
    "seventeen bytes, oh",
    "",
    "",
    "a name of more than one hundred and twenty-seven bytes, which no kernel has, but whoever writes a trace by hand "
    "may "
    "write it, and it is read",
    "a name of more than one hundred and twenty-seven bytes, which no kernel has, but whoever writes a trace by hand "
    "may "
    "write it, and it is told",
};
enum { NAMES = sizeof names / sizeof *names };

static struct thread {
    unsigned name;
    uint32_t pid;
    uint64_t prio;
} threads[THREADS];

static void choose_threads(uint64_t *seed)
{
    for (unsigned i = 0; i < THREADS; i++) {
        threads[i].name = (unsigned)(next_random(seed) % NAMES);
        threads[i].pid = i ? (uint32_t)number(seed, 31) : 0;
        threads[i].prio = i % 4 == 3 ? number(seed, 64) : 120;
    }
}

/* A field of a message: a name or a number. */
struct field {
    uint32_t id;
    const char *text;
    uint64_t number;
};

static void put_event(struct ftrace_trace *t, uint64_t ts, uint32_t pid, uint32_t id, const struct field *f, unsigned n,
                      bool reversed)
{
    struct pb_writer p = {0};
    for (unsigned k = 0; k < n; k++) {
        unsigned i = reversed ? n - 1 - k : k;
        if (f[i].text)
            pb_put_str(&p, f[i].id, f[i].text);
        else
            pb_put_varint(&p, f[i].id, f[i].number);
    }
    size_t e = pb_begin(&t->w, 2);
    if (reversed)
        pb_put_bytes(&t->w, id, p.p, p.n);
    pb_put_varint(&t->w, FTRACE_EVENT_TIMESTAMP, ts);
    pb_put_varint(&t->w, FTRACE_EVENT_PID, pid);
    if (!reversed)
        pb_put_bytes(&t->w, id, p.p, p.n);
    pb_end(&t->w, e);
    pb_writer_free(&p);
}

static void put_both(uint64_t ts, uint32_t pid, uint32_t id, const struct field *f, unsigned n)
{
    put_event(&in_order, ts, pid, id, f, n, false);
    put_event(&shuffled, ts, pid, id, f, n, true);
}

static void put_switch(uint64_t *seed, uint64_t ts, const struct thread *prev, const struct thread *next)
{
    uint64_t state = next_random(seed) % 3 ? next_random(seed) % 3 : number(seed, 64);
    put_both(ts, prev->pid, FTRACE_EVENT_SCHED_SWITCH,
             (const struct field[]){{1, names[prev->name], 0},
                                    {2, NULL, prev->pid},
                                    {3, NULL, prev->prio},
                                    {4, NULL, state},
                                    {5, names[next->name], 0},
                                    {6, NULL, next->pid},
                                    {7, NULL, next->prio}},
             7);
}

static void put_waking(uint64_t *seed, uint64_t ts, const struct thread *waker, const struct thread *wakee)
{
    struct field f[] = {{1, names[wakee->name], 0},
                        {2, NULL, wakee->pid},
                        {3, NULL, wakee->prio},
                        {4, NULL, 1},
                        {5, NULL, number(seed, 10)}};
    if (next_random(seed) % 2) { /* younger kernels have no field "success" */
        f[3] = f[4];
        put_both(ts, waker->pid, FTRACE_EVENT_SCHED_WAKING, f, 4);
    } else {
        put_both(ts, waker->pid, FTRACE_EVENT_SCHED_WAKING, f, 5);
    }
}

static void begin_bundles(uint32_t cpu)
{
    trace_bundle(&in_order, cpu);
    trace_bundle(&shuffled, cpu);
}

static void end_bundles(void)
{
    trace_bundle_end(&in_order);
    trace_bundle_end(&shuffled);
}

/* Runs of events of one cpu; who is switched from is nearly always who was switched to. */
static void put_events(uint64_t *seed)
{
    unsigned running[CPUS] = {0}, cpu = 0;
    uint64_t ts = number(seed, 60);
    begin_bundles(0);
    for (unsigned i = 0; i < EVENTS; i++) {
        if (next_random(seed) % 200 == 0) {
            end_bundles();
            begin_bundles(cpu = (unsigned)(next_random(seed) % CPUS));
        }
        if (next_random(seed) % 500 == 0)
            choose_threads(seed); /* the same names and pids, otherwise paired */
        ts += next_random(seed) % 100;
        unsigned next = (unsigned)(next_random(seed) % THREADS);
        unsigned prev = next_random(seed) % 50 ? running[cpu] : (unsigned)(next_random(seed) % THREADS);
        struct thread before = threads[prev];
        before.name ^= next_random(seed) % 20 == 0; /* renamed while it ran */
        if (next_random(seed) % 3) {
            put_switch(seed, ts, &before, &threads[next]);
            running[cpu] = next;
        } else {
            put_waking(seed, ts, &before, &threads[next]);
        }
    }
    end_bundles();
}

static const char *text_of(const struct ftrace_trace *t, int64_t id)
{
    return id ? strpool_cstr(&t->st.strings, (strid)id) : "NULL";
}

static void assert_same_column(int table, uint32_t column)
{
    const struct table *a = &in_order.st.t[table], *b = &shuffled.st.t[table];
    ck_assert_uint_eq(a->n_rows, b->n_rows);
    for (uint32_t row = 0; row < a->n_rows; row++) {
        int64_t x = table_get(a, column, row), y = table_get(b, column, row);
        bool same = a->columns[column].type == COL_STR ? !strcmp(text_of(&in_order, x), text_of(&shuffled, y)) : x == y;
        ck_assert_msg(same, "%s, column %u, row %u: %lld, not %lld", a->def->name, column, row, (long long)y,
                      (long long)x);
    }
}

static void assert_same_args(void)
{
    ck_assert_uint_eq(ROWS(&in_order, ftrace_event), ROWS(&shuffled, ftrace_event));
    for (uint32_t row = 0; row < ROWS(&in_order, ftrace_event); row++) {
        if (strcmp(TEXT_CELL(&in_order, ftrace_event, name, row), "sched_switch") != 0)
            continue; /* args of others stand as they were written */
        char text[4096];
        snprintf(text, sizeof text, "%s", trace_args(&in_order, CELL(&in_order, ftrace_event, arg_set_id, row)));
        ck_assert_str_eq(text, trace_args(&shuffled, CELL(&shuffled, ftrace_event, arg_set_id, row)));
    }
}

START_TEST(events_mean_the_same_in_any_order)
{
    static const int tables[] = {T_sched_slice, T_thread_state, T_spurious_sched_wakeup, T_thread, T_process};
    uint64_t seed = (uint64_t)_i * 7919;
    choose_threads(&seed);
    put_events(&seed);
    trace_import(&in_order);
    trace_import(&shuffled);
    ck_assert_int_eq(in_order.result, 0);
    ck_assert_int_eq(shuffled.result, 0);
    ck_assert_uint_eq(ROWS(&in_order, ftrace_event), EVENTS);
    ck_assert_uint_gt(ROWS(&in_order, sched_slice), EVENTS / 3);
    for (unsigned i = 0; i < sizeof tables / sizeof *tables; i++)
        for (uint32_t c = 0; c < in_order.st.t[tables[i]].def->n_columns; c++)
            assert_same_column(tables[i], c);
    assert_same_args();
    ck_assert_int_eq(TRACE_STAT(&in_order, mismatched_sched_switch_tids),
                     TRACE_STAT(&shuffled, mismatched_sched_switch_tids));
}
END_TEST

/* What pb_next() reads, by the words of pb_word(): 1 to 10 bytes of a varint, and what is behind it or nothing. */
START_TEST(words_read_what_varints_are)
{
    uint64_t seed = 4711;
    for (unsigned i = 0; i < 20000; i++) {
        struct pb_writer w = {0};
        uint64_t value = number(&seed, 64), by_word = 0;
        pb_put_raw(&w, "before it", 8);
        size_t at = w.n;
        pb_put_varint(&w, 5, value);
        size_t len = w.n - at;
        if (i % 2)
            pb_put_varint(&w, 6, number(&seed, 64));
        uint64_t word = pb_word(w.p + at, w.p + w.n);
        unsigned n = pb_word_varint(word, 5, &by_word);
        ck_assert_uint_eq(n, len <= 5 ? len : 0);
        ck_assert(!n || by_word == value);
        ck_assert_uint_eq(pb_word_varint(word, 4, &by_word), 0);
        n = pb_word_value(pb_word(w.p + at + 1, w.p + w.n), &by_word);
        ck_assert_uint_eq(n, len <= 9 ? len - 1 : 0);
        ck_assert(!n || by_word == value);
        pb_writer_free(&w);
    }
}
END_TEST

Suite *ftrace_order_suite(void);
Suite *ftrace_order_suite(void)
{
    Suite *s = suite_create("ftrace_order");
    TCase *c = tcase_create("fields");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, events_mean_the_same_in_any_order, 0, 20);
    tcase_add_test(c, words_read_what_varints_are);
    suite_add_tcase(s, c);
    return s;
}
