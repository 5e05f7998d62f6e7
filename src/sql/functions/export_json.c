/* export_json(path): slices, flows and counters as a file in Chrome's trace event format, which other viewers read. */
#include "base/output_file.h"
#include "sql/functions/functions.h"

/* Times are microseconds with three digits behind the point: as texts, since doubles would lose nanoseconds. */
#define MICROSECONDS(ns) "json(format('%s%d.%03d', iif(" ns " < 0, '-', ''), abs(" ns " / 1000), abs(" ns " % 1000)))"
#define ARGS             "'args', json(coalesce(__intrinsic_arg_set_to_json(s.arg_set_id), '{}'))"
#define SLICE            "'ts', " MICROSECONDS("s.ts") ", 'cat', coalesce(s.category, ''), 'name', coalesce(s.name, '')"
#define THREAD           "'pid', coalesce(p.pid, 0), 'tid', t.tid"

/* Each gives one event a row. A slice without a thread is a pair of events with the track as id. */
static const char *const queries[] = {
    "SELECT json_object('ph', 'M', 'name', 'process_name', 'pid', pid, 'tid', 0, 'args', json_object('name', name)) "
    "FROM process WHERE name IS NOT NULL",
    "SELECT json_object('ph', 'M', 'name', 'thread_name', " THREAD
    ", 'args', json_object('name', t.name)) FROM thread t "
    "LEFT JOIN process p USING (upid) WHERE t.name IS NOT NULL",
    "SELECT CASE WHEN s.dur > 0 THEN json_object('ph', 'X', " SLICE
    ", 'dur', " MICROSECONDS("s.dur") ", " THREAD ", " ARGS
                                      ") WHEN s.dur = 0 THEN json_object('ph', 'i', 's', 't', " SLICE ", " THREAD
                                      ", " ARGS ") ELSE json_object('ph', 'B', " SLICE ", " THREAD ", " ARGS
                                      ") END FROM slice s JOIN thread_track k ON k.id = s.track_id JOIN thread t USING "
                                      "(utid) LEFT JOIN process p USING (upid)",
    "SELECT json_object('ph', iif(s.dur = 0, 'n', 'b'), 'id', s.track_id, " SLICE
    ", 'pid', coalesce(p.pid, 0), 'tid', 0, " ARGS
    ") FROM slice s LEFT JOIN process_track k ON k.id = s.track_id LEFT JOIN process p USING (upid) WHERE s.track_id "
    "NOT IN (SELECT id FROM thread_track)",
    "SELECT json_object('ph', 'e', 'id', s.track_id, 'ts', " MICROSECONDS(
        "(s.ts + s.dur)") ", 'cat', coalesce(s.category, "
                          "''), 'name', coalesce(s.name, ''), 'pid', coalesce(p.pid, 0), 'tid', 0) FROM slice s LEFT "
                          "JOIN process_track k ON k.id "
                          "= s.track_id LEFT JOIN process p USING (upid) WHERE s.dur > 0 AND s.track_id NOT IN (SELECT "
                          "id FROM thread_track)",
    "SELECT json_object('ph', e.ph, 'bp', 'e', 'id', f.id, 'ts', " MICROSECONDS(
        "s.ts") ", 'cat', 'flow', 'name', 'flow', " THREAD ") FROM flow f JOIN (SELECT 's' AS ph UNION ALL SELECT 'f') "
                "e JOIN slice s ON s.id = iif(e.ph = 's', f.slice_out, "
                "f.slice_in) JOIN thread_track k ON k.id = s.track_id JOIN thread t USING (utid) LEFT JOIN process p "
                "USING (upid)",
    "SELECT json_object('ph', 'C', 'ts', " MICROSECONDS(
        "c.ts") ", 'name', k.name, 'pid', coalesce(p.pid, 0), 'tid', 0, "
                "'args', json_object('value', c.value)) FROM counter c JOIN counter_track k ON k.id = c.track_id LEFT "
                "JOIN "
                "process_counter_track q ON q.id = k.id LEFT JOIN process p USING (upid)",
};

/* Writes the rows of a query, each behind a comma but the first of all. */
static int write_events(sqlite3 *db, const char *query, struct output_file *out, bool *first, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = 0, step = sqlite3_prepare_v2(db, query, -1, &stmt, NULL);
    while (rc == 0 && step != SQLITE_DONE) {
        step = step == SQLITE_OK || step == SQLITE_ROW ? sqlite3_step(stmt) : step;
        const char *text = step == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
        if (step != SQLITE_ROW && step != SQLITE_DONE)
            rc = error_set(err, -MRD_ESQL, "%s", sqlite3_errmsg(db));
        else if (step == SQLITE_ROW && !text)
            rc = error_set(err, -MRD_ENOMEM, "out of memory");
        else if (text && (rc = output_file_write(out, *first ? "\n" : ",\n", *first ? 1 : 2, err)) == 0)
            rc = output_file_write(out, text, (size_t)sqlite3_column_bytes(stmt, 0), err);
        *first &= step != SQLITE_ROW;
    }
    sqlite3_finalize(stmt);
    return rc;
}

static int write_file(sqlite3 *db, const char *path, struct error *err)
{
    static const char head[] = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", tail[] = "\n]}\n";
    struct output_file out;
    bool first = true;
    int rc = output_file_open(&out, path, err);
    if (rc == 0)
        rc = output_file_write(&out, head, sizeof head - 1, err);
    for (size_t i = 0; rc == 0 && i < sizeof queries / sizeof *queries; i++)
        rc = write_events(db, queries[i], &out, &first, err);
    if (rc == 0)
        rc = output_file_write(&out, tail, sizeof tail - 1, err);
    return output_file_close(&out, rc, err);
}

static void export_json(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    sqlite3 *db = sqlite3_context_db_handle(ctx);
    const char *path = (const char *)sqlite3_value_text(argv[0]);
    struct error err = {0};
    (void)argc;
    if (sqlite3_value_type(argv[0]) != SQLITE_TEXT)
        function_error(ctx, "EXPORT_JSON: the argument should be the path of a file");
    else if (!function_files_allowed(db))
        function_error(ctx, "EXPORT_JSON: SQL may not write files here");
    else if (write_file(db, path, &err) != 0)
        function_error(ctx, "EXPORT_JSON: %s", err.text);
    else
        sqlite3_result_pointer(ctx, db, "VOID", NULL); /* a statement whose row does not count */
}

static const struct engine_function rows[] = {
    {.name = "export_json", .n_args = 1, .flags = SQLITE_DIRECTONLY, .scalar = export_json},
};

FUNCTION_ROWS(export_json, rows);
