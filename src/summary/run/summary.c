/* Makes summaries: reads the specs, stores what several metrics share, then one bundle after the other. */
#include "summary/run/summary.h"

#include "summary/run/cells.h"
#include "summary/run/metric_bundle.h"
#include "summary/run/shared_tables.h"
#include "wire/text_format.h"

/* The specs, read. */
struct specs {
    VEC(trace_summary_spec *)
    p;
    VEC(const char *)
    names;
};

static int no_memory(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

static int read_specs(const struct summary_request *request, struct specs *out, struct error *err)
{
    size_t bytes = 0;
    int rc = 0;
    for (size_t i = 0; i < request->n_sources && rc == 0; i++) {
        const struct summary_source *source = &request->sources[i];
        trace_summary_spec *spec;
        bytes += source->bytes.len;
        if (bytes > SPEC_MAX_BYTES && i)
            return error_set(err, -MRD_ELIMIT, "%s: more than %d bytes of specs with those before it", source->name,
                             SPEC_MAX_BYTES);
        rc = spec_parse(source->bytes, source->format, &spec, err);
        if (rc < 0)
            return error_prefix(err, "%s", source->name);
        if (!vec_push(&out->p, spec)) {
            spec_free(spec);
            return no_memory(err);
        }
        if (!vec_push(&out->names, source->name))
            rc = no_memory(err);
    }
    return rc;
}

static int add_queries(struct structured_queries *shared, const struct specs *specs, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < specs->p.n; i++)
        for (size_t q = 0; q < specs->p.p[i]->n_query && rc == 0; q++) {
            rc = structured_queries_add(shared, specs->p.p[i]->query[q], err);
            if (rc < 0)
                error_prefix(err, "%s: query[%zu]", specs->names.p[i], q);
        }
    return rc;
}

/* ---- metadata ---- */

static struct slice text_of(const struct engine_result *r, int column)
{
    const unsigned char *text = sqlite3_column_text(r->stmt, column);
    return slice_of(text, text ? (size_t)sqlite3_column_bytes(r->stmt, column) : 0);
}

static int put_metadata_rows(struct summary_job *job, struct engine_result *r, const char *origin, struct error *err)
{
    int key = result_column(r, "key"), value = result_column(r, "value"), rc;
    if (r->n_columns == 0)
        return 0;
    if (r->n_columns != 2 || key < 0 || value < 0)
        return error_set(err, -MRD_EINVALID, "%s: the query has %d columns; metadata are the columns key and value",
                         origin, r->n_columns);
    while ((rc = engine_result_next(r, err)) == 1) {
        int key_cell = sqlite3_column_type(r->stmt, key), value_cell = sqlite3_column_type(r->stmt, value);
        if (key_cell != SQLITE_TEXT || (value_cell != SQLITE_TEXT && value_cell != SQLITE_NULL))
            return error_set(err, -MRD_EINVALID, "%s: the %s of a row is not a string", origin,
                             key_cell != SQLITE_TEXT ? "key" : "value");
        if (value_cell == SQLITE_NULL)
            continue;
        size_t mark = pb_begin(job->out, SUMMARY_METADATA);
        pb_put_text(job->out, METADATA_KEY, text_of(r, key));
        pb_put_text(job->out, METADATA_VALUE, text_of(r, value));
        rc = summary_check_size(job, err);
        if (rc < 0)
            return rc;
        pb_end(job->out, mark);
    }
    return rc < 0 ? query_runner_failed(job->runner, origin, rc, err) : 0;
}

static int put_metadata(struct summary_job *job, const char *id, struct error *err)
{
    struct structured_sql sql = {0};
    struct engine_result r = {0};
    struct arena mem = {0};
    structured_query q; /* by its id: its rows may be stored */
    mrd__perfetto_sql_structured_query__init(&q);
    q.source_case = MRD__PERFETTO_SQL_STRUCTURED_QUERY__SOURCE_INNER_QUERY_ID;
    q.inner_query_id = (char *)id;
    const char *origin = arena_printf(&mem, "metadata query '%.100s'", id);
    int rc = origin ? 0 : no_memory(err);
    if (rc == 0 && !structured_queries_find(job->shared, id))
        rc = error_set(err, -MRD_ENOTFOUND, "%s: no spec has it", origin);
    if (rc == 0) {
        rc = structured_query_sql(job->shared, &q, &sql, err);
        if (rc < 0)
            error_prefix(err, "%s", origin);
    }
    if (rc == 0)
        rc = query_runner_prepare(job->runner, origin, &sql, err);
    if (rc == 0)
        rc = query_runner_open(job->runner, origin, sql.sql, &r, err);
    if (rc == 0)
        rc = put_metadata_rows(job, &r, origin, err);
    engine_result_close(&r);
    structured_sql_free(&sql);
    arena_free(&mem);
    return rc;
}

/* ---- the whole ---- */

static int make(struct summary_job *job, const struct summary_request *request, const struct specs *specs,
                struct error *err)
{
    struct metric_set set = {0};
    struct shared_tables tables = {0};
    const struct metric_choice choice = {
        .specs = (const trace_summary_spec *const *)specs->p.p,
        .names = specs->names.p,
        .n_specs = specs->p.n,
        .ids = request->metric_ids,
        .n_ids = request->n_metric_ids,
        .all = request->all_metrics,
    };
    int rc = add_queries(job->shared, specs, err);
    if (rc == 0)
        rc = metric_set_choose(&set, &choice, err);
    if (rc == 0)
        rc = shared_tables_store(&tables, job, &set, request->metadata_query, err);
    for (size_t i = 0; i < set.bundles.n && rc == 0; i++)
        rc = bundle_write(job, &set, &set.bundles.p[i], err);
    if (rc == 0 && request->metadata_query)
        rc = put_metadata(job, request->metadata_query, err);
    shared_tables_drop(&tables, job);
    metric_set_free(&set);
    return rc;
}

int summary_make(struct query_runner *runner, const struct summary_request *request, struct pb_writer *out,
                 struct error *err)
{
    struct pb_writer wire = {0};
    struct specs specs = {0};
    struct summary_job job = {.runner = runner, .shared = structured_queries_open(), .out = &wire};
    int rc = job.shared ? read_specs(request, &specs, err) : no_memory(err);
    if (rc == 0)
        rc = make(&job, request, &specs, err);
    if (rc == 0)
        rc = summary_check_size(&job, err);
    if (rc == 0 && request->text)
        text_print(&mrd__trace_summary__descriptor, pb_written(&wire), 0, out);
    else if (rc == 0)
        pb_put_raw(out, wire.p, wire.n);
    if (rc == 0 && out->failed)
        rc = no_memory(err);
    pb_writer_free(&wire);
    structured_queries_close(job.shared);
    for (size_t i = 0; i < specs.p.n; i++)
        spec_free(specs.p.p[i]);
    vec_free(&specs.p);
    vec_free(&specs.names);
    return rc;
}
