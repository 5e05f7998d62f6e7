/* tp_shell query: SQL from an argument, a file or standard input; every result on standard output. */
#include "base/suggest.h"
#include "shell/interrupt.h"
#include "shell/output.h"
#include "shell/shell.h"
#include "shell/ticker.h"

#include "base/file.h"
#include "summary/query/spec.h"
#include "summary/query/structured_query.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SQL_BYTES = 64 << 20 };

struct query_source {
    const char *origin;
    const char *sql;
    size_t len;
    char *owned;
};

/* ---- a structured query of a spec ---- */

static int write_sql(const struct structured_queries *queries, const char *id, char **sql, struct error *err)
{
    struct structured_sql out = {0};
    const structured_query *q = structured_queries_find(queries, id);
    if (!q)
        return error_set(err, -MRD_ENOTFOUND, "--structured-query-id: no spec has a query '%s'", id);
    int rc = structured_query_sql(queries, q, &out, err);
    const char *text = rc == 0 ? structured_sql_standalone(&out) : NULL;
    *sql = text ? mem_strdup(text) : NULL;
    structured_sql_free(&out);
    return rc == 0 && !*sql ? error_set(err, -MRD_ENOMEM, "out of memory") : rc;
}

static int add_queries(struct structured_queries *queries, const char *path, trace_summary_spec **spec,
                       struct error *err)
{
    int rc = spec_read_file(path, spec, err);
    for (size_t i = 0; rc == 0 && i < (*spec)->n_query; i++)
        if ((rc = structured_queries_add(queries, (*spec)->query[i], err)) < 0)
            error_prefix(err, "%s", path);
    return rc;
}

/* The SQL of --structured-query-id; the queries of all --summary-spec may refer to each other. */
static int find_structured(const struct options *o, char **sql, struct error *err)
{
    VEC(trace_summary_spec *) specs = {0};
    struct structured_queries *queries = structured_queries_open();
    int rc = queries && vec_reserve(&specs, o->summary_spec.n) ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
    if (rc == 0 && !o->summary_spec.n)
        rc = error_set(err, -MRD_EINVALID, "query: --structured-query-id needs a --summary-spec");
    for (; rc == 0 && specs.n < o->summary_spec.n; specs.n++)
        rc = add_queries(queries, o->summary_spec.p[specs.n], &specs.p[specs.n], err);
    if (rc == 0)
        rc = write_sql(queries, o->structured_query_id, sql, err);
    structured_queries_close(queries);
    while (specs.n)
        spec_free(specs.p[--specs.n]);
    vec_free(&specs);
    return rc;
}

/* The last argument is SQL when it is not a file (or when it is the second and nothing else gives the SQL). */
static int find_sql(struct shell *sh, struct query_source *src, size_t *n_traces, struct error *err)
{
    struct text_list *args = &sh->opt.positionals;
    const char *file = sh->opt.query_file;
    *n_traces = args->n;
    *src = (struct query_source){.origin = "stdin"};
    if (sh->opt.structured_query_id) {
        int rc = find_structured(&sh->opt, &src->owned, err);
        *src = (struct query_source){sh->opt.structured_query_id, src->owned, rc == 0 ? strlen(src->owned) : 0,
                                     src->owned};
        return rc;
    }
    if (sh->opt.summary_spec.n)
        return error_set(err, -MRD_EINVALID, "query: --summary-spec needs a --structured-query-id");
    if (sh->opt.query_string) {
        src->sql = sh->opt.query_string;
    } else if (sh->opt.remote && args->n == 1) {
        src->sql = args->p[0];
        *n_traces = 0;
    } else if (args->n >= 2 && access(args->p[args->n - 1], F_OK) != 0) {
        const char *last = args->p[args->n - 1];
        if (!strpbrk(last, " \t\r\n();") && strpbrk(last, "./")) /* no statement looks like that */
            return error_set(err, -MRD_ENOTFOUND, "query: '%s' is neither a file nor SQL", last);
        src->sql = args->p[args->n - 1];
        --*n_traces;
    }
    if (src->sql) {
        src->len = strlen(src->sql);
        return 0;
    }
    if (!file && isatty(STDIN_FILENO))
        return error_set(err, -MRD_EINVALID,
                         "query: no SQL provided. Give it as the last argument, with -f FILE, or on standard input");
    file = file ? file : "-";
    for (size_t i = 0; i < args->n && strcmp(file, "-") == 0; i++)
        if (strcmp(args->p[i], "-") == 0)
            return error_set(err, -MRD_EINVALID, "query: trace and SQL cannot both come from standard input");
    if (strcmp(file, "-") != 0)
        src->origin = file;
    int rc = file_read_all(file, MAX_SQL_BYTES, &src->owned, &src->len, err);
    src->sql = src->owned;
    return rc;
}

int shell_run_sql(struct shell *sh, const char *origin, const char *sql, size_t len, int format, unsigned width,
                  struct error *err)
{
    struct text_out *out = mem_alloc(sizeof *out);
    if (!out)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    struct ticker ticker;
    out_init(out, STDOUT_FILENO);
    ticker_start(&ticker, "Running", false);
    out->ticker = ticker_shares(STDOUT_FILENO) ? &ticker : NULL; /* rows are a sign of life */
    struct output output = {.out = out, .format = (enum output_format)format, .width = width};
    struct tp_result *r;
    size_t at = 0, statements = 0;
    int rc;
    while ((rc = tp_query_next(sh->tp, origin, sql, len, &at, &r)) == 1) {
        statements++;
        int64_t rows = output_result(&output, r);
        if (rows < 0) {
            rc = session_error(sh, (int)rows, err);
            tp_result_close(r);
            break;
        }
        tp_result_close(r);
        if (out->error)
            break;
    }
    ticker_stop(&ticker);
    if (rc < 0 && !err->text[0])
        session_error(sh, rc, err);
    else if (rc == 0 && statements == 0)
        rc = error_set(err, -MRD_EINVALID, "No valid SQL to run");
    int written = out_flush(out, rc < 0 ? NULL : err);
    mem_free(out);
    return rc < 0 ? rc : written;
}

int cmd_query(struct shell *sh, struct error *err)
{
    struct query_source src;
    size_t n_traces;
    const char *name = sh->opt.format ? sh->opt.format : "classic";
    int format = output_format_find(name);
    if (format < 0)
        return suggest_refuse(err, "--format", name, output_format_names, OUTPUT_FORMATS);
    if (sh->opt.positionals.n == 0 && !sh->opt.remote)
        return error_set(err, -MRD_EINVALID,
                         "query: a trace file is needed, e.g. tp_shell query trace.pftrace 'select 1'");
    int rc = find_sql(sh, &src, &n_traces, err);
    if (rc == 0)
        rc = session_load(sh, sh->opt.positionals.p, n_traces, err);
    int64_t start = shell_now_ns();
    interrupt_command(sh->tp);
    if (rc == 0)
        rc = shell_run_sql(sh, src.origin, src.sql, src.len, format, 0, err);
    interrupt_end_command();
    int64_t query_ns = shell_now_ns() - start;
    mem_free(src.owned);
    if (rc < 0)
        return rc;
    fprintf(stderr, "Query execution time: %lld ms\n", (long long)(query_ns / 1000000));
    rc = session_write_perf(sh, query_ns, err);
    if (rc == 0 && sh->opt.interactive)
        rc = repl_run(sh, err);
    return rc;
}
