/* Exports events in Chrome's JSON format: the queries and the writer. */
#include "sql/export_json.h"

#include "base/json_writer.h"
#include "storage/ucpu.h"

#include <string.h>

/* Times are microseconds with three digits behind the point: as texts, since doubles would lose nanoseconds. */
#define MICROSECONDS(ns) "json(format('%s%d.%03d', iif(" ns " < 0, '-', ''), abs(" ns " / 1000), abs(" ns " % 1000)))"
#define MACHINE(row)     "coalesce(" row ".machine_id, 0)"
#define APART(row)       MACHINE(row) " * 10000000"
#define THREAD           "'pid', coalesce(p.pid, 0) + " APART("t") ", 'tid', t.tid + " APART("t")
#define PROCESS(of)      "'pid', coalesce(p.pid, 0) + " APART(of) ", 'tid', 0"
#define SLICE            "'ts', " MICROSECONDS("s.ts") ", 'cat', coalesce(s.category, ''), 'name', coalesce(s.name, '')"
#define ARGS             "'args', json(coalesce(__intrinsic_arg_set_to_json(s.arg_set_id), '{}'))"
/* A whole number keeps its digits; JSON has no infinity. */
#define NUMBER(v)                                                                                                      \
    "CASE WHEN abs(" v ") > 1.7976931348623157e308 THEN NULL WHEN abs(" v ") < 9e18 AND CAST(" v " AS INTEGER) = " v   \
    " THEN CAST(" v " AS INTEGER) ELSE " v " END"
#define LABEL "coalesce(m.name, 'machine ' || m.id)"

/* Each gives one event a row. A slice without a thread is a pair of events with the track as id. */
static const char *const queries[] = {
    "SELECT json_object('ph', 'M', 'name', 'process_name', " PROCESS(
        "p") ", 'args', json_object('name', CASE WHEN " MACHINE("p") " = 0 THEN p.name WHEN p.name IS NULL THEN " LABEL
                                                                     " ELSE p.name || ' [' || " LABEL
                                                                     " || ']' END)) FROM process p LEFT JOIN machine m "
                                                                     "ON m.id = p.machine_id WHERE p.name IS NOT NULL "
                                                                     "OR "
                                                                     "(p.pid = 0 AND p.machine_id > 0)",
    "SELECT json_object('ph', 'M', 'name', 'thread_name', " THREAD
    ", 'args', json_object('name', t.name)) FROM thread t LEFT JOIN process p USING (upid) WHERE t.name IS NOT NULL",
    "SELECT CASE WHEN s.dur > 0 THEN json_object('ph', 'X', " SLICE
    ", 'dur', " MICROSECONDS("s.dur") ", " THREAD ", " ARGS
                                      ") WHEN s.dur = 0 THEN json_object('ph', 'i', 's', 't', " SLICE ", " THREAD
                                      ", " ARGS ") ELSE json_object('ph', 'B', " SLICE ", " THREAD ", " ARGS
                                      ") END FROM slice s JOIN thread_track k ON k.id = s.track_id JOIN thread t USING "
                                      "(utid) LEFT JOIN process p USING "
                                      "(upid)",
    "SELECT json_object('ph', iif(s.dur = 0, 'n', 'b'), 'id', s.track_id, " SLICE
    ", " PROCESS("a") ", " ARGS ") FROM slice s JOIN track a ON a.id = s.track_id LEFT JOIN process_track k ON k.id = "
                      "s.track_id LEFT JOIN process "
                      "p USING (upid) WHERE s.track_id NOT IN (SELECT id FROM thread_track)",
    "SELECT json_object('ph', 'e', 'id', s.track_id, 'ts', " MICROSECONDS("(s.ts + s.dur)") ", 'cat', "
                                                                                            "coalesce(s.category, ''), "
                                                                                            "'name', coalesce(s.name, "
                                                                                            "''), " PROCESS(
                                                                                                "a") ") FROM slice s "
                                                                                                     "JOIN track a ON "
                                                                                                     "a.id = "
                                                                                                     "s.track_id LEFT "
                                                                                                     "JOIN "
                                                                                                     "process_track k "
                                                                                                     "ON k.id = "
                                                                                                     "s.track_id LEFT "
                                                                                                     "JOIN process "
                                                                                                     "p USING (upid) "
                                                                                                     "WHERE s.dur > 0 "
                                                                                                     "AND s.track_id "
                                                                                                     "NOT IN (SELECT "
                                                                                                     "id FROM "
                                                                                                     "thread_track)",
    "SELECT json_object('ph', e.ph, 'bp', 'e', 'id', f.id, 'ts', " MICROSECONDS(
        "s.ts") ", 'cat', 'flow', 'name', 'flow', " THREAD ") FROM flow f JOIN (SELECT 's' AS ph UNION ALL SELECT 'f') "
                "e JOIN slice s ON s.id = iif(e.ph = 's', f.slice_out, "
                "f.slice_in) JOIN thread_track k ON k.id = s.track_id JOIN thread t USING (utid) LEFT JOIN process p "
                "USING (upid)",
    /* A counter is known by its process and name: those that share both get the number of their track. */
    "WITH named AS (SELECT k.id, k.machine_id, coalesce(q.upid, t.upid) AS upid, k.name || coalesce(' [CPU ' || u.cpu "
    "|| "
    "']', ' [thread ' || t.tid || ']', '') AS name FROM counter_track k LEFT JOIN process_counter_track q ON q.id = "
    "k.id LEFT JOIN thread_counter_track h ON h.id = k.id LEFT JOIN thread t USING (utid) LEFT JOIN cpu_counter_track "
    "u "
    "ON u.id = k.id), apart AS (SELECT id, machine_id, upid, iif(count(*) OVER (PARTITION BY machine_id, upid, name) > "
    "1, "
    "name || ' #' || id, name) AS name FROM named) SELECT json_object('ph', 'C', 'ts', " MICROSECONDS(
        "c.ts") ", 'name', coalesce(k.name, ''), " PROCESS("k") ", 'args', json_object('value', " NUMBER("c.value") "))"
                                                                                                                    " F"
                                                                                                                    "RO"
                                                                                                                    "M "
                                                                                                                    "co"
                                                                                                                    "un"
                                                                                                                    "te"
                                                                                                                    "r "
                                                                                                                    "c "
                                                                                                                    "JO"
                                                                                                                    "IN"
                                                                                                                    " a"
                                                                                                                    "pa"
                                                                                                                    "rt"
                                                                                                                    " k"
                                                                                                                    " O"
                                                                                                                    "N "
                                                                                                                    "k."
                                                                                                                    "id"
                                                                                                                    " ="
                                                                                                                    " c"
                                                                                                                    ".t"
                                                                                                                    "ra"
                                                                                                                    "ck"
                                                                                                                    "_i"
                                                                                                                    "d "
                                                                                                                    "LE"
                                                                                                                    "FT"
                                                                                                                    " J"
                                                                                                                    "OI"
                                                                                                                    "N "
                                                                                                                    "pr"
                                                                                                                    "oc"
                                                                                                                    "es"
                                                                                                                    "s "
                                                                                                                    "p "
                                                                                                                    "US"
                                                                                                                    "IN"
                                                                                                                    "G "
                                                                                                                    "(u"
                                                                                                                    "pi"
                                                                                                                    "d"
                                                                                                                    ")",
    /* The scheduling of other machines. */
    "SELECT json_object('ph', 'M', 'name', 'process_name', 'pid', m.id * 10000000 + 9999999, 'tid', 0, 'args', "
    "json_object('name', 'CPUs [' || " LABEL
    " || ']')) FROM machine m WHERE m.id > 0 AND EXISTS (SELECT 1 FROM sched WHERE sched.ucpu / " CPUS_PER_MACHINE_SQL
    " = m.id)",
    "SELECT json_object('ph', 'M', 'name', 'thread_name', 'pid', machine_id * 10000000 + 9999999, 'tid', cpu, 'args', "
    "json_object('name', 'CPU ' || cpu)) FROM cpu WHERE machine_id > 0",
    "SELECT json_object('ph', 'X', 'ts', " MICROSECONDS("s.ts") ", 'dur', " MICROSECONDS(
        "s.dur") ", 'cat', 'sched', 'name', coalesce(t.name, t.tid), 'pid', t.machine_id * 10000000 + 9999999, 'tid', "
                 "s.ucpu % " CPUS_PER_MACHINE_SQL ", "
                 "'args', json_object('tid', t.tid, 'priority', s.priority, 'end_state', s.end_state)) FROM sched s "
                 "JOIN thread t "
                 "USING (utid) WHERE t.machine_id > 0 AND t.tid > 0 AND s.dur >= 0",
};

/* Of the kernel's lines those that tell of threads: the others are slices and counters already. */
static const char sched_lines[] = "SELECT to_kernel_ftrace(id) FROM ftrace_event WHERE ucpu < " CPUS_PER_MACHINE_SQL
                                  " AND (name GLOB 'sched_*' OR name GLOB 'task_*')";

static const char sched_head[] = "# tracer: nop\n#\n";
/* Viewers take the kernel's clock for that of the rest when they are told so. */
static const char sched_end[] =
    "<...>-1     (-----) [000] .... 0.000000: tracing_mark_write: trace_event_clock_sync: parent_ts=0\n";

/* Calls put_row with the text of each row; *n counts them. */
static int each_row(struct json_writer *w, sqlite3 *db, const char *sql,
                    void (*put_row)(struct json_writer *w, const char *text, size_t len, size_t *n), size_t *n)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(stmt, 0);
        if (text)
            put_row(w, text, (size_t)sqlite3_column_bytes(stmt, 0), n);
        rc = text ? w->rc : SQLITE_NOMEM;
    }
    sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void put_event(struct json_writer *w, const char *text, size_t len, size_t *n)
{
    (*n)++;
    json_put_break(w, "\n");
    json_put_raw(w, text, len);
}

static void put_line(struct json_writer *w, const char *text, size_t len, size_t *n)
{
    if (!(*n)++) {
        json_put_break(w, "\n");
        json_put_key(w, "systemTraceEvents");
        json_put_text_open(w);
        json_put_escaped(w, sched_head, strlen(sched_head));
    }
    json_put_escaped(w, text, len);
    json_put_escaped(w, "\n", 1);
}

int export_json(sqlite3 *db, export_json_write write, void *ctx)
{
    struct json_writer w = {.put = write, .ctx = ctx};
    size_t events = 0, lines = 0;
    int rc = 0;
    json_put_open(&w, '{');
    json_put_key(&w, "displayTimeUnit");
    json_put_str(&w, "ns");
    json_put_key(&w, "traceEvents");
    json_put_open(&w, '[');
    for (size_t i = 0; !rc && i < sizeof queries / sizeof *queries; i++)
        rc = each_row(&w, db, queries[i], put_event, &events);
    json_put_break(&w, "\n");
    json_put_close(&w, ']');
    if (!rc)
        rc = each_row(&w, db, sched_lines, put_line, &lines);
    if (lines) {
        json_put_escaped(&w, sched_end, strlen(sched_end));
        json_put_text_close(&w);
    }
    json_put_close(&w, '}');
    if (!rc && !w.rc)
        w.rc = write(ctx, "\n", 1);
    return rc ? rc : w.rc;
}
