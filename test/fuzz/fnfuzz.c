/* Calls every function, table function, virtual table and macro with 0 to 8 arguments of every type:
 *
 *     fnfuzz CALLS [SEED [memory]]
 *
 * With `memory` it runs out in each call, at one allocation or from there on, ours or SQLite's.
 *
 * Calls are made up from the seed, round all names in turn. Each must give rows or an error within its time; a call
 * that does not end after it was interrupted is a hang, and fails the run. When the program dies, the statement is
 * printed. */
#include "../unit/memory_gate.h"
#include "meridian/tp.h"
#include "sql/engine/heap.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_NAMES = 4096,
    MOST_ROWS = 40,
    MOST_TEXT = 64 << 10,
    LATE_US = 30000,         /* then it is interrupted, again and again */
    HANG_S = 20,             /* so long after that it hangs */
    BETWEEN_RESTORES = 2000, /* calls: what they have made goes */
    HEAP_BYTES = 512 << 20,  /* a call may ask for more, and is refused */
};

enum kind { FUNCTION, TABLE, MACRO, KINDS };

static const struct {
    const char *what, *names; /* name, arguments (-1: any) */
} kinds[KINDS] = {
    {"functions", "SELECT DISTINCT name, narg FROM pragma_function_list ORDER BY 1, 2"},
    {"tables", "SELECT name, -1 FROM pragma_module_list UNION SELECT name, -1 FROM sqlite_master WHERE sql LIKE "
               "'%runtime_table_function%' ORDER BY 1"},
    {"macros", "SELECT name, CASE WHEN args = '[]' THEN 0 ELSE length(args) - length(replace(args, '{', '')) END FROM "
               "__intrinsic_stdlib_objects WHERE object_type LIKE '%macro%' ORDER BY 1"},
};

struct name {
    char *text;
    int n_args;
};

static struct tp *tp;
static struct name names[KINDS][MOST_NAMES];
static size_t n_names[KINDS];
static char statement[MOST_TEXT + 1];
static size_t length;
static volatile sig_atomic_t late;
static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* ---- when it goes wrong ---- */

static void tell(void)
{
    static const char head[] = "\nfnfuzz: in this statement:\n";
    if (write(STDERR_FILENO, head, sizeof head - 1) < 0 || write(STDERR_FILENO, statement, length) < 0 ||
        write(STDERR_FILENO, "\n", 1) < 0)
        return;
}

static void on_death(int signal_number)
{
    tell();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* The sanitizers end the program in their own way. */
void __sanitizer_set_death_callback(void (*callback)(void));
#pragma weak __sanitizer_set_death_callback

static void on_alarm(int signal_number)
{
    (void)signal_number;
    if (++late > HANG_S * 1000000 / LATE_US) {
        static const char text[] = "\nfnfuzz: does not end although it was interrupted";
        if (write(STDERR_FILENO, text, sizeof text - 1) >= 0)
            tell();
        _exit(3);
    }
    tp_interrupt(tp);
}

static void set_alarm(bool on)
{
    struct itimerval often = {.it_interval = {.tv_usec = LATE_US}, .it_value = {.tv_usec = LATE_US}};
    late = 0;
    setitimer(ITIMER_REAL, on ? &often : &(struct itimerval){0}, NULL);
}

/* ---- statements ---- */

static void put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(statement + length, sizeof statement - length, fmt, ap);
    va_end(ap);
    length = n < 0 || (size_t)n >= sizeof statement - length ? sizeof statement - 1 : length + (size_t)n;
}

/* Values of every type, and those that are nearly another's. */
static const char *const values[] = {
    "NULL",
    "0",
    "1",
    "-1",
    "2",
    "3",
    "64",
    "9223372036854775807",
    "-9223372036854775807 - 1",
    "4294967295",
    "4294967296",
    "2147483647",
    "-2147483648",
    "0.5",
    "1e308",
    "-1e308",
    "9e999",
    "1e18",
    "''",
    "'a'",
    "'abc'",
    "'%'",
    "'name'",
    "'slice'",
    "'ts,dur'",
    "'(a'",
    "'[a-'",
    "'(a*)*b'",
    "'{}'",
    "'[1,2'",
    "'{\"a\":[1,2,{\"b\":null}]}'",
    "'$.a'",
    "x''",
    "x'00'",
    "x'ff00ff'",
    "x'0a0101'",
    "zeroblob(100)",
    "zeroblob(100000)",
    "printf('%.*c', 10000, 'x')",
    "'é'",
    "char(0) || 'a'",
    "x'1f8b08'",
    "'2020-01-01'",
    "'SELECT 1'",
    "'foo(x INT)'",
    "'INT'",
    "'sched'",
    "'id'",
    "'count'",
    "'DESC'",
    "printf('%.*c', 3000, '(')",
    "'1,2,3'",
    "'g:0 *:-1'",
    "id",
    "ts",
    "dur",
    "name",
    "track_id",
    "parent_id",
    "arg_set_id",
};

/* Values that only aggregates make. */
static const char *const pointers[] = {
    "__intrinsic_struct('a', 1)",
    "__intrinsic_struct('id', id, 'ts', ts)",
    "(SELECT __intrinsic_graph_agg(id, id + 1) FROM slice)",
    "(SELECT __intrinsic_graph_agg(1, 1))",
    "(SELECT __intrinsic_array_agg(id) FROM slice LIMIT 5)",
    "(SELECT __intrinsic_array_agg(name) FROM slice)",
    "(SELECT __intrinsic_row_dataframe_agg('id', id, 'b', 1) FROM slice)",
    "(SELECT __intrinsic_tree_from_table('id', id, 'parent_id', parent_id, 'name', name) FROM slice)",
    "(SELECT __intrinsic_interval_tree_intervals_agg(id, ts, dur) FROM slice)",
    "(SELECT __intrinsic_interval_tree_intervals_agg(id, ts, dur, 'depth', depth) FROM slice)",
    "(SELECT __intrinsic_timestamp_set_agg(ts) FROM slice)",
    "(SELECT __intrinsic_counter_per_track_agg(id, ts, 3, 1.5) FROM slice)",
    "(SELECT __intrinsic_wakeup_graph_agg(1, 2, 3, 4, 5, 6, 7))",
    "__intrinsic_interval_create((SELECT __intrinsic_timestamp_set_agg(1)), (SELECT __intrinsic_timestamp_set_agg(2)))",
    "stack_from_stack_profile_callsite(0)",
    "cat_stacks('a', 'b')",
    "__intrinsic_flamegraph_config('a', 1)",
};

static const char *const tables[] = {"slice", "(SELECT 1 AS id, 2 AS ts, 3 AS dur)", "sched", "thread_state", "nosuch",
                                     "args"};

#define PICK(list) list[below(sizeof(list) / sizeof *(list))]

static void put_call(enum kind kind, size_t at, int depth);

static void put_value(int depth)
{
    uint32_t r = below(100);
    if (r < 65)
        put("%s", PICK(values));
    else if (r < 88 || depth > 2)
        put("%s", PICK(pointers));
    else
        put_call(FUNCTION, below((uint32_t)n_names[FUNCTION]), depth + 1);
}

static void put_values(int n, int depth)
{
    for (int i = 0; i < n; i++) {
        put("%s", i ? ", " : "");
        put_value(depth);
    }
}

static int count_for(const struct name *f)
{
    return f->n_args >= 0 && f->n_args < 12 && below(10) ? f->n_args : (int)below(9);
}

static void put_call(enum kind kind, size_t at, int depth)
{
    const struct name *f = &names[kind][at];
    int n = count_for(f);
    put("\"%s\"(", f->text);
    put_values(n, depth);
    if (n && below(30) == 0)
        put(" ORDER BY %s", PICK(values));
    put(")");
    if (below(16) == 0)
        put(" FILTER (WHERE %s)", PICK(values));
    static const char *const windows[] = {
        "",
        "ORDER BY id",
        "PARTITION BY name",
        "ORDER BY ts ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
        "ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        "ORDER BY id GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES",
    };
    if (below(10) == 0)
        put(" OVER (%s)", PICK(windows));
}

static void put_function(size_t at)
{
    static const char *const ends[] = {"", " WHERE 0", " LIMIT 3", " GROUP BY name", " GROUP BY track_id"};
    put("SELECT ");
    put_call(FUNCTION, at, 0);
    if (below(3))
        put(" FROM slice%s", PICK(ends));
}

static void put_table(size_t at)
{
    static const char *const words[] = {"slice",
                                        "sched",
                                        "slice PARTITIONED track_id",
                                        "a",
                                        "",
                                        "x y",
                                        "'q'",
                                        "PARTITIONED",
                                        "slice PARTITIONED",
                                        "(",
                                        "\"a b\"",
                                        "a,b",
                                        "SELECT 1",
                                        "(SELECT * FROM slice)"};
    static const char *const ends[] = {"",
                                       " WHERE rowid = 3",
                                       " WHERE rowid IN (1, 2)",
                                       " ORDER BY 1 DESC",
                                       " WHERE 1 = 1 LIMIT 5",
                                       " AS a JOIN slice AS b ON 1"};
    const struct name *t = &names[TABLE][at];
    if (below(10) == 0) {
        put("CREATE VIRTUAL TABLE v%u USING \"%s\"(", below(100), t->text);
        for (int i = (int)below(5); i > 0; i--)
            put("%s%s", PICK(words), i > 1 ? ", " : "");
        put(")");
        return;
    }
    put("SELECT * FROM \"%s\"(", t->text);
    put_values((int)below(9), 0);
    put(")%s", PICK(ends));
}

static void put_macro(size_t at)
{
    const struct name *m = &names[MACRO][at];
    int n = count_for(m);
    put(below(2) ? "SELECT * FROM %s!(" : "SELECT %s!(", m->text);
    for (int i = 0; i < n; i++) {
        put("%s", i ? ", " : "");
        if (below(2))
            put("%s", PICK(tables));
        else if (below(4))
            put("%s", PICK(values));
        else
            put("(%s, %s)", PICK(values), PICK(values));
    }
    put(")");
}

/* ---- memory ---- */

static struct gate memory;

/* Half of the failures are early: where something is opened. */
static void let_memory_fail(bool on)
{
    if (on) {
        memory.fail_at = 1 + below(below(2) ? 40 : 1500);
        memory.for_good = below(2);
    }
    memory.calls = 0;
    sql_heap_set_gated(on);
    alloc_set_gate(on ? gate_open : NULL, &memory);
}

/* ---- the run ---- */

static void ask(const char *sql)
{
    struct tp_result *r;
    if (tp_query(tp, sql, &r) != 0)
        return;
    for (int rows = 0; rows < MOST_ROWS && tp_step(r) == 1; rows++)
        for (int c = 0; c < tp_columns(r); c++)
            tp_text(r, c, NULL);
    tp_result_close(r);
}

static void read_names(enum kind kind)
{
    struct tp_result *r;
    if (tp_query(tp, kinds[kind].names, &r) != 0) {
        fprintf(stderr, "fnfuzz: %s: %s\n", kinds[kind].what, tp_error(tp));
        exit(2);
    }
    while (n_names[kind] < MOST_NAMES && tp_step(r) == 1)
        names[kind][n_names[kind]++] = (struct name){strdup(tp_text(r, 0, NULL)), (int)tp_int64(r, 1)};
    tp_result_close(r);
    if (!n_names[kind]) {
        fprintf(stderr, "fnfuzz: there are no %s\n", kinds[kind].what);
        exit(2);
    }
}

static void open_trace(void)
{
    if (tp_open(&tp, NULL) != 0 || tp_load(tp, MERIDIAN_SOURCE_DIR "/test/data/track-events.pftrace") != 0 ||
        tp_finish(tp) != 0) {
        fprintf(stderr, "fnfuzz: %s\n", tp_error(tp));
        exit(2);
    }
}

static void catch_death(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], on_death);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(tell);
    signal(SIGALRM, on_alarm);
}

int main(int argc, char **argv)
{
    static void (*const put_statement[KINDS])(size_t) = {put_function, put_table, put_macro};
    /* what is under test is ours: half of the calls are functions, a third tables */
    static const enum kind turns[] = {FUNCTION, TABLE, FUNCTION, MACRO, FUNCTION, TABLE};
    long calls = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    open_trace();
    ask("INCLUDE PERFETTO MODULE *");
    for (int k = 0; k < KINDS; k++)
        read_names((enum kind)k);
    sql_heap_limit(sql_heap_held() + HEAP_BYTES);
    catch_death();
    bool short_of_memory = argc > 3;
    size_t next[KINDS] = {0};
    long failed = 0, interrupted = 0;
    for (long i = 0; i < calls; i++) {
        enum kind kind = turns[(size_t)i % (sizeof turns / sizeof *turns)];
        length = 0;
        put_statement[kind](next[kind]++ % n_names[kind]);
        set_alarm(true);
        if (short_of_memory)
            let_memory_fail(true);
        ask(statement);
        if (short_of_memory)
            let_memory_fail(false);
        interrupted += late != 0;
        set_alarm(false);
        tp_interrupt_clear(tp);
        failed += tp_error(tp)[0] != 0;
        if (i % BETWEEN_RESTORES == BETWEEN_RESTORES - 1) {
            tp_restore_initial_tables(tp);
            ask("INCLUDE PERFETTO MODULE *");
        }
    }
    for (int k = 0; k < KINDS; k++) {
        printf("%zu %s, ", n_names[k], kinds[k].what);
        for (size_t i = 0; i < n_names[k]; i++)
            free(names[k][i].text);
    }
    printf("%ld calls: %ld refused, %ld interrupted\n", calls, failed, interrupted);
    tp_close(tp);
    return 0;
}
