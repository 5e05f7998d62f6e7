/* The table `sqlstats`: the last queries of this engine, oldest first. Times are nanoseconds since the start of the
 * machine; 0 where a query has not come to that point. */
#include "sql/query_log.h"

#include "base/clock.h"
#include "sql/engine_private.h"
#include "sql/extensions.h"

#include <string.h>

enum { QUERIES = 100, LONGEST_TEXT = 64 * 1024 };

struct logged_query {
    char *text;
    size_t len;
    int64_t started, first_row, ended;
};

struct query_log {
    struct logged_query ring[QUERIES];
    uint64_t begun; /* queries so far: the n-th from 1 on lies at (n - 1) % QUERIES */
};

static struct logged_query *find(struct engine *e, uint64_t query)
{
    struct query_log *log = e->queries;
    bool kept = log && query && query <= log->begun && query + QUERIES > log->begun;
    return kept ? &log->ring[(query - 1) % QUERIES] : NULL;
}

uint64_t query_log_begin(struct engine *e, struct slice sql, int64_t started)
{
    size_t len = sql.len < LONGEST_TEXT ? sql.len : LONGEST_TEXT;
    if (!e->queries)
        e->queries = mem_zalloc(sizeof *e->queries);
    char *text = e->queries ? mem_strndup((const char *)sql.p, len) : NULL;
    if (!text)
        return 0;
    struct logged_query *q = &e->queries->ring[e->queries->begun % QUERIES];
    mem_free(q->text);
    *q = (struct logged_query){.text = text, .len = strlen(text), .started = started};
    return ++e->queries->begun;
}

void query_log_first_row(struct engine *e, uint64_t query)
{
    struct logged_query *q = find(e, query);
    if (q)
        q->first_row = clock_now_ns(CLOCK_BOOTTIME);
}

void query_log_end(struct engine *e, uint64_t query)
{
    struct logged_query *q = find(e, query);
    if (q)
        q->ended = clock_now_ns(CLOCK_BOOTTIME);
}

void query_log_free(struct engine *e)
{
    for (size_t i = 0; e->queries && i < QUERIES; i++)
        mem_free(e->queries->ring[i].text);
    mem_free(e->queries);
    e->queries = NULL;
}

static int compute(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    const struct query_log *log = e->queries;
    (void)args;
    (void)err;
    for (uint64_t n = log && log->begun > QUERIES ? log->begun - QUERIES : 0; log && n < log->begun; n++) {
        const struct logged_query *q = &log->ring[n % QUERIES];
        const int64_t words[] = {strpool_intern(&e->storage->strings, q->text, q->len), q->started, q->first_row,
                                 q->ended};
        if (!words[0] || table_append(out, words) == UINT32_MAX)
            return -MRD_ENOMEM;
    }
    return 0;
}

static const struct column_def columns[] = {
    {"query", COL_STR, 0, "The text, up to its first 64 KB."},
    {"started", COL_I64, 0, "When it began."},
    {"first_next", COL_I64, 0, "When its first row was there."},
    {"ended", COL_I64, 0, "When its result was closed."},
};
static const struct table_def def = {"sqlstats", columns, 4, "The last 100 queries and how long they took."};
static const struct engine_table_function tables[] = {{.name = "sqlstats", .def = &def, .compute = compute}};

int query_log_attach(struct engine *e, struct error *err)
{
    return engine_register_table_functions(e, tables, 1, err);
}
