/* Makes one table of what single recordings answered. */
#include "fleet/per_trace.h"

#include <stdio.h>
#include <stdlib.h>

#define SEPARATOR "\x01" /* between names of columns */

enum { MAX_TOLD = 20 }; /* recordings that failed; of the others their number is said */

/* ---- which recordings have answered ---- */

static int by_trace(const void *a, const void *b)
{
    return strcmp((*(struct asked *const *)a)->trace, (*(struct asked *const *)b)->trace);
}

int perfetto_index(struct perfetto *p, struct error *err)
{
    p->by_trace = mem_alloc((p->asked.n + 1) * sizeof *p->by_trace);
    if (!p->by_trace)
        return fleet_no_memory(err);
    for (size_t i = 0; i < p->asked.n; i++)
        p->by_trace[i] = &p->asked.p[i];
    qsort(p->by_trace, p->asked.n, sizeof *p->by_trace, by_trace);
    return 0;
}

static struct asked *find_asked(struct perfetto *p, const char *trace)
{
    struct asked wanted, *key = &wanted;
    if (strlen(trace) >= sizeof wanted.trace)
        return NULL;
    memcpy(wanted.trace, trace, strlen(trace) + 1);
    struct asked **found = bsearch(&key, p->by_trace, p->asked.n, sizeof *p->by_trace, by_trace);
    return found ? *found : NULL;
}

static void fail(struct perfetto *p, struct asked *a, const char *why)
{
    char text[1024];
    a->failed = true;
    p->failed++;
    snprintf(text, sizeof text, "%.400s: %.500s", a->path, why);
    if (p->what->tell && p->failed <= MAX_TOLD)
        p->what->tell(p->what->ctx, text);
}

/* Numbers of both kinds are numbers; with texts among them all is text. */
static char joined(char a, char b)
{
    if (a == '-' || a == b)
        return b;
    return b == '-' ? a : a == 's' || b == 's' ? 's' : 'd';
}

/* The columns of a recording: those of the first one, or false. */
static int join_columns(struct perfetto *p, const char *names, const char *kinds, bool *same, struct error *err)
{
    *same = true;
    if (!p->names) {
        p->names = mem_strdup(names);
        p->kinds = mem_strdup(kinds);
        return p->names && p->kinds ? 0 : fleet_no_memory(err);
    }
    *same = strcmp(p->names, names) == 0 && strlen(p->kinds) == strlen(kinds);
    for (size_t i = 0; *same && kinds[i]; i++)
        p->kinds[i] = joined(p->kinds[i], kinds[i]);
    return 0;
}

static int take_end(struct perfetto *p, const struct click_rows *rows, struct error *err)
{
    const char *ended = click_cell(rows, 1);
    struct asked *a = find_asked(p, click_cell(rows, 0));
    bool same;
    if (!a || a->answered)
        return error_set(err, -MRD_EFORMAT, "a server has answered about a recording that it was not asked for");
    a->answered = true;
    if (ended[0]) {
        fail(p, a, ended);
        return 0;
    }
    int rc = join_columns(p, click_cell(rows, 3), click_cell(rows, 2), &same, err);
    if (rc == 0 && !same)
        fail(p, a, "the SQL gives other columns here than for the recordings before it");
    return rc;
}

int perfetto_judge(struct perfetto *p, struct error *err)
{
    struct click_rows *rows;
    const struct click_server *entry = &p->f->nodes.p[p->f->entry].server;
    int rc = click_query(entry,
                         "SELECT trace, ended, kinds, arrayStringConcat(arrayMap(c -> assumeNotNull(c), cells), "
                         "'\\x01') AS names FROM perfetto_arrived WHERE isNotNull(ended) ORDER BY trace",
                         p->session, &rows, err);
    while (rc >= 0 && rows && (rc = click_step_whole(rows, 4, err)) == 1)
        if ((rc = take_end(p, rows, err)) < 0)
            break;
    click_close(rows);
    for (size_t i = 0; rc == 0 && i < p->asked.n; i++)
        if (!p->asked.p[i].answered)
            fail(p, &p->asked.p[i], "the answer ended before all rows were there");
    if (rc == 0 && p->failed == p->asked.n)
        rc = error_set(err, -MRD_ESQL, "none of the %zu recordings has answered", p->asked.n);
    return rc;
}

/* ---- the table ---- */

static void put_name(struct click_text *t, const char *name, size_t n)
{
    click_put(t, "`");
    for (size_t i = 0; i < n; i++)
        click_putf(t, name[i] == '`' || name[i] == '\\' ? "\\%c" : "%c", name[i]);
    click_put(t, "`");
}

static bool is_taken(const struct perfetto *p, const char *name, size_t n)
{
    if ((n == 5 && memcmp(name, "trace", 5) == 0) || (n == 3 && memcmp(name, "row", 3) == 0))
        return true;
    for (const char *other = p->names; other < name; other += strcspn(other, SEPARATOR) + 1)
        if (strcspn(other, SEPARATOR) == n && memcmp(other, name, n) == 0)
            return true;
    return false;
}

static const char *type_of(char kind)
{
    return kind == 'i' ? "Int64" : kind == 'd' ? "Float64" : "String";
}

/* The columns with their types, and what each is made of. */
static int put_columns(const struct perfetto *p, struct click_text *columns, struct click_text *values,
                       struct error *err)
{
    const char *name = p->names;
    for (size_t i = 0; p->kinds[i]; i++) {
        const size_t n = strcspn(name, SEPARATOR);
        if (n == 0 || is_taken(p, name, n))
            return error_set(err, -MRD_EINVALID,
                             n ? "the SQL has a column '%.*s' too many: give it another name with AS%s"
                               : "the SQL has a column without a name%.*s: give it one with AS%s",
                             (int)(n < 100 ? n : 100), name, n ? " (trace and row are made)" : "");
        click_put(columns, ", ");
        put_name(columns, name, n);
        click_putf(columns, " Nullable(%s)", type_of(p->kinds[i]));
        if (p->kinds[i] == 'i' || p->kinds[i] == 'd')
            click_putf(values, ", to%sOrNull(cells[%zu])", type_of(p->kinds[i]), i + 1);
        else
            click_putf(values, ", cells[%zu]", i + 1);
        name += n + (name[n] != '\0');
    }
    return p->kinds[0] ? 0 : error_set(err, -MRD_EINVALID, "the PerfettoSQL has no rows to give");
}

/* The table of those whose rows do not count. */
static int name_failed(struct perfetto *p, struct error *err)
{
    struct click_text lines = {0};
    for (size_t i = 0; i < p->asked.n; i++)
        if (p->asked.p[i].failed)
            click_putf(&lines, "%s\n", p->asked.p[i].trace);
    int rc = lines.bad
                 ? fleet_no_memory(err)
                 : perfetto_run(p, "CREATE TEMPORARY TABLE perfetto_failed (trace String)", slice_of(NULL, 0), err);
    if (rc == 0 && lines.bytes.n)
        rc = perfetto_run(p, "INSERT INTO perfetto_failed FORMAT TabSeparated", slice_of(lines.bytes.p, lines.bytes.n),
                          err);
    click_text_free(&lines);
    return rc;
}

static int fill(struct perfetto *p, const struct click_text *columns, const struct click_text *values,
                struct error *err)
{
    struct click_text sql = {0};
    click_putf(&sql, "CREATE TEMPORARY TABLE perfetto (trace String, row UInt64%s)", click_string(columns));
    int rc = sql.bad ? fleet_no_memory(err) : perfetto_run(p, click_string(&sql), slice_of(NULL, 0), err);
    vec_clear(&sql.bytes);
    click_putf(&sql,
               "INSERT INTO perfetto SELECT trace, row%s FROM perfetto_arrived WHERE isNull(ended) AND trace NOT IN "
               "(SELECT trace FROM perfetto_failed)",
               click_string(values));
    if (rc == 0)
        rc = sql.bad ? fleet_no_memory(err) : perfetto_run(p, click_string(&sql), slice_of(NULL, 0), err);
    click_text_free(&sql);
    return rc < 0 ? rc : perfetto_run(p, "DROP TABLE perfetto_arrived", slice_of(NULL, 0), err);
}

int perfetto_make_table(struct perfetto *p, struct error *err)
{
    struct click_text columns = {0}, values = {0};
    int rc = put_columns(p, &columns, &values, err);
    if (rc == 0)
        rc = columns.bad || values.bad ? fleet_no_memory(err) : name_failed(p, err);
    if (rc == 0)
        rc = fill(p, &columns, &values, err);
    click_text_free(&columns);
    click_text_free(&values);
    return rc;
}
