/* Rows of a bundle's query, their dimensions and values, and the interned dimensions that go with them. */
#include "summary/run/metric_bundle.h"

#include "summary/run/cells.h"
#include "summary/run/message.h"

#include <stdio.h>

enum {
    MAX_ORIGIN = 160,
    MAX_COMPARED_BYTES = 64 << 20, /* of SQL, to find that the metrics of a bundle have one query */
};

/* A dimension of the rows. */
struct dimension {
    const char *name;
    dimension_type type;
    int column;
    bool interned;       /* key of an interned dimension: */
    struct strpool keys; /* its cells, as they have been written */
};

/* A bundle on its way. */
struct rows {
    struct summary_job *job;
    const struct metric_set *set;
    const struct metric_bundle *bundle;
    const metric_spec *first;
    char origin[MAX_ORIGIN]; /* "metric 'x'" */
    struct engine_result result;
    VEC(struct dimension)
    dimensions;
    VEC(int)
    values;                   /* the column of each metric's value */
    struct strpool seen;      /* UNIQUE: the dimensions of the rows so far, as they have been written */
    struct pb_writer scratch; /* a key being looked up */
};

static int no_memory(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

int summary_check_size(const struct summary_job *job, struct error *err)
{
    if (job->out->n > SUMMARY_MAX_BYTES)
        return error_set(err, -MRD_ELIMIT, "the summary is larger than %d MiB", SUMMARY_MAX_BYTES >> 20);
    return job->out->failed ? no_memory(err) : 0;
}

static const metric_spec *spec_of(const struct rows *r, size_t metric)
{
    return r->set->metrics.p[metric].spec;
}

static void name_origin(char *out, const metric_spec *m)
{
    snprintf(out, MAX_ORIGIN, "metric '%.*s'", MAX_ORIGIN - 32, m->id);
}

/* ---- the query ---- */

static bool same_sql(const struct structured_sql *a, const struct structured_sql *b)
{
    bool same = strcmp(a->sql, b->sql) == 0 && a->preambles.n == b->preambles.n;
    for (strid i = 1; i <= a->preambles.n && same; i++)
        same = strcmp(strpool_cstr(&a->preambles, i), strpool_cstr(&b->preambles, i)) == 0;
    return same;
}

static int check_sql(struct rows *r, const metric_spec *m, const struct structured_sql *sql, size_t *compared,
                     struct error *err)
{
    struct structured_sql other = {0};
    int rc = structured_query_sql(r->job->shared, m->query, &other, err);
    if (rc == 0 && !same_sql(&other, sql))
        rc = error_set(err, -MRD_EINVALID, "query: not that of '%.100s', the first of the bundle '%.100s'",
                       r->first->id, r->bundle->id);
    *compared += rc == 0 ? other.sql_len : 0;
    if (rc == 0 && *compared > MAX_COMPARED_BYTES)
        rc = error_set(err, -MRD_ELIMIT, "query: too long to compare with those of the bundle '%.100s': use a template",
                       r->bundle->id);
    structured_sql_free(&other);
    return rc;
}

/* Metrics that are not of one template must still say the same: as messages, or else as SQL. */
static int check_same_query(struct rows *r, const struct structured_sql *sql, struct error *err)
{
    const metric_spec *before = r->first; /* whose query is right */
    size_t compared = 0;
    int rc = 0;
    FOR_METRICS_OF_BUNDLE(r->set, r->bundle, i)
    {
        const metric_spec *m = spec_of(r, i);
        bool same = m->query == before->query;
        if (rc == 0 && !same && !message_compare(&m->query->base, &before->query->base, &same))
            rc = no_memory(err);
        if (rc == 0 && !same)
            rc = check_sql(r, m, sql, &compared, err);
        if (rc < 0)
            return error_prefix(err, "metric '%.100s'", m->id);
        before = m;
    }
    return 0;
}

static int open_rows(struct rows *r, struct error *err)
{
    struct structured_sql sql = {0};
    int rc = structured_query_sql(r->job->shared, r->first->query, &sql, err);
    if (rc < 0)
        error_prefix(err, "%s", r->origin);
    if (rc == 0)
        rc = check_same_query(r, &sql, err);
    if (rc == 0)
        rc = query_runner_prepare(r->job->runner, r->origin, &sql, err);
    if (rc == 0)
        rc = query_runner_open(r->job->runner, r->origin, sql.sql, &r->result, err);
    structured_sql_free(&sql);
    return rc;
}

/* ---- its columns ---- */

static int find_column(struct rows *r, const metric_spec *m, const char *field, const char *name, int *column,
                       struct error *err)
{
    *column = result_column(&r->result, name);
    return *column >= 0 ? 0
                        : error_set(err, -MRD_EINVALID, "metric '%.100s': %s: the query has no column '%.100s'", m->id,
                                    field, name);
}

static int find_dimensions(struct rows *r, struct error *err)
{
    const metric_spec *m = r->first;
    struct strpool keys = {0};
    int rc = 0;
    for (size_t i = 0; i < m->n_interned_dimension_specs; i++)
        strpool_intern_str(&keys, m->interned_dimension_specs[i]->key_column_spec->name);
    for (size_t i = 0; i < metric_n_dimensions(m) && rc == 0; i++) {
        struct dimension d = {.name = metric_dimension_name(m, i), .type = metric_dimension_type(m, i)};
        d.interned = strpool_find(&keys, d.name, strlen(d.name)) != 0;
        rc = find_column(r, m, m->n_dimensions_specs ? "dimensions_specs" : "dimensions", d.name, &d.column, err);
        if (rc == 0 && !vec_push(&r->dimensions, d))
            rc = no_memory(err);
    }
    if (rc == 0 && keys.failed)
        rc = no_memory(err);
    strpool_free(&keys);
    return rc;
}

static int find_columns(struct rows *r, struct error *err)
{
    int rc = find_dimensions(r, err);
    FOR_METRICS_OF_BUNDLE(r->set, r->bundle, i)
    {
        int column;
        if (rc == 0)
            rc = find_column(r, spec_of(r, i), "value", spec_of(r, i)->value, &column, err);
        if (rc == 0 && !vec_push(&r->values, column))
            rc = no_memory(err);
    }
    return rc;
}

/* ---- writing ---- */

static int put_specs(struct rows *r, struct error *err)
{
    FOR_METRICS_OF_BUNDLE(r->set, r->bundle, i)
    {
        uint8_t *bytes;
        size_t size;
        if (!message_pack(&spec_of(r, i)->base, &bytes, &size))
            return no_memory(err);
        pb_put_bytes(r->job->out, BUNDLE_SPECS, bytes, size);
        mem_free(bytes);
        int rc = summary_check_size(r->job, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The cell of a row that an interned dimension is keyed by, in the form that keys are compared in. */
static int write_key(struct rows *r, sqlite3_stmt *row, int column, struct error *err)
{
    pb_writer_clear(&r->scratch);
    int rc = cell_put_dimension(&r->scratch, 1, row, column, 0, err);
    return rc == 0 && r->scratch.failed ? no_memory(err) : rc;
}

static int put_dimensions(struct rows *r, struct error *err)
{
    struct pb_writer *w = r->job->out;
    size_t from = w->n;
    for (size_t i = 0; i < r->dimensions.n; i++) {
        struct dimension *d = &r->dimensions.p[i];
        int rc = cell_put_dimension(w, ROW_DIMENSION, r->result.stmt, d->column, d->type, err);
        if (rc == 0 && d->interned)
            rc = write_key(r, r->result.stmt, d->column, err);
        if (rc == 0 && d->interned && !strpool_intern(&d->keys, r->scratch.p, r->scratch.n))
            return no_memory(err);
        if (rc < 0)
            return error_prefix(err, "%s: dimension '%.100s'", r->origin, d->name);
    }
    if (r->first->dimension_uniqueness != MRD__TRACE_METRIC_V2_SPEC__DIMENSION_UNIQUENESS__UNIQUE || w->failed)
        return 0;
    uint32_t before = r->seen.n;
    if (!strpool_intern(&r->seen, w->p ? (const void *)(w->p + from) : "", w->n - from))
        return no_memory(err);
    return r->seen.n > before
               ? 0
               : error_set(err, -MRD_EINVALID,
                           "%s: dimension_uniqueness: UNIQUE, and two rows have the same dimensions", r->origin);
}

static int put_values(struct rows *r, struct error *err)
{
    size_t metric = r->bundle->first;
    for (size_t i = 0; i < r->values.n; i++, metric = r->set->metrics.p[metric].next) {
        int rc = cell_put_value(r->job->out, ROW_VALUES, r->result.stmt, r->values.p[i], err);
        if (rc < 0)
            return error_prefix(err, "metric '%.100s': value '%.100s'", spec_of(r, metric)->id,
                                spec_of(r, metric)->value);
    }
    return 0;
}

/* A row without any value is left out. */
static bool has_value(const struct rows *r)
{
    for (size_t i = 0; i < r->values.n; i++)
        if (sqlite3_column_type(r->result.stmt, r->values.p[i]) != SQLITE_NULL)
            return true;
    return false;
}

static int put_rows(struct rows *r, struct error *err)
{
    int rc;
    while ((rc = engine_result_next(&r->result, err)) == 1) {
        if (!has_value(r))
            continue;
        size_t mark = pb_begin(r->job->out, BUNDLE_ROW);
        rc = put_dimensions(r, err);
        if (rc == 0)
            rc = put_values(r, err);
        if (rc == 0)
            rc = summary_check_size(r->job, err);
        if (rc < 0)
            return rc;
        pb_end(r->job->out, mark);
    }
    return rc < 0 ? query_runner_failed(r->job->runner, r->origin, rc, err) : 0;
}

/* ---- interned dimensions ---- */

struct interned {
    const Mrd__TraceMetricV2Spec__InternedDimensionSpec *spec;
    const struct dimension *dimension;
    char origin[MAX_ORIGIN + 64];
    struct engine_result result;
    int key;
    VEC(int)
    columns;       /* of the data */
    uint8_t *done; /* for each key: its row has been written */
};

static int interned_column(struct interned *in, const char *name, int *column, struct error *err)
{
    *column = result_column(&in->result, name);
    return *column >= 0 ? 0 : error_set(err, -MRD_EINVALID, "%s: the query has no column '%.100s'", in->origin, name);
}

static int open_interned(struct rows *r, struct interned *in, struct error *err)
{
    struct structured_sql sql = {0};
    int rc = structured_query_sql(r->job->shared, in->spec->query, &sql, err);
    if (rc < 0)
        error_prefix(err, "%s", in->origin);
    if (rc == 0)
        rc = query_runner_prepare(r->job->runner, in->origin, &sql, err);
    if (rc == 0)
        rc = query_runner_open(r->job->runner, in->origin, sql.sql, &in->result, err);
    structured_sql_free(&sql);
    if (rc == 0)
        rc = interned_column(in, in->spec->key_column_spec->name, &in->key, err);
    for (size_t i = 0; i < in->spec->n_data_column_specs && rc == 0; i++) {
        int column;
        rc = interned_column(in, in->spec->data_column_specs[i]->name, &column, err);
        if (rc == 0 && !vec_push(&in->columns, column))
            rc = no_memory(err);
    }
    return rc;
}

static int put_interned_row(struct rows *r, struct interned *in, struct error *err)
{
    struct pb_writer *w = r->job->out;
    int rc = write_key(r, in->result.stmt, in->key, err);
    strid key = rc == 0 ? strpool_find(&in->dimension->keys, r->scratch.p, r->scratch.n) : 0;
    if (rc == 0 && !key)
        return 0; /* no row has it */
    if (rc == 0 && in->done[key - 1])
        rc = error_set(err, -MRD_EINVALID, "key '%.100s': two rows have the same", in->spec->key_column_spec->name);
    if (rc < 0)
        return error_prefix(err, "%s", in->origin);
    in->done[key - 1] = true;
    size_t mark = pb_begin(w, INTERNED_ROWS);
    rc = cell_put_dimension(w, INTERNED_KEY, in->result.stmt, in->key, in->spec->key_column_spec->type, err);
    if (rc < 0)
        return error_prefix(err, "%s: key '%.100s'", in->origin, in->spec->key_column_spec->name);
    for (size_t i = 0; i < in->columns.n; i++) {
        rc = cell_put_dimension(w, INTERNED_VALUES, in->result.stmt, in->columns.p[i],
                                in->spec->data_column_specs[i]->type, err);
        if (rc < 0)
            return error_prefix(err, "%s: column '%.100s'", in->origin, in->spec->data_column_specs[i]->name);
    }
    rc = summary_check_size(r->job, err);
    if (rc == 0)
        pb_end(w, mark);
    return rc;
}

static int put_interned(struct rows *r, struct interned *in, struct error *err)
{
    size_t mark = pb_begin(r->job->out, BUNDLE_INTERNED);
    in->done = mem_zalloc(in->dimension->keys.n + 1);
    int rc = in->done ? open_interned(r, in, err) : no_memory(err);
    if (rc < 0)
        return rc;
    while ((rc = engine_result_next(&in->result, err)) == 1) {
        rc = put_interned_row(r, in, err);
        if (rc < 0)
            return rc;
    }
    if (rc < 0)
        return query_runner_failed(r->job->runner, in->origin, rc, err);
    pb_end(r->job->out, mark);
    return 0;
}

static int put_all_interned(struct rows *r, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < r->first->n_interned_dimension_specs && rc == 0; i++) {
        struct interned in = {.spec = r->first->interned_dimension_specs[i]};
        snprintf(in.origin, sizeof in.origin, "%s: interned_dimension_specs[%zu]", r->origin, i);
        for (size_t d = 0; d < r->dimensions.n; d++)
            if (strcmp(r->dimensions.p[d].name, in.spec->key_column_spec->name) == 0)
                in.dimension = &r->dimensions.p[d];
        rc = put_interned(r, &in, err);
        engine_result_close(&in.result);
        vec_free(&in.columns);
        mem_free(in.done);
    }
    return rc;
}

int bundle_write(struct summary_job *job, const struct metric_set *set, const struct metric_bundle *b,
                 struct error *err)
{
    struct rows r = {.job = job, .set = set, .bundle = b, .first = set->metrics.p[b->first].spec};
    name_origin(r.origin, r.first);
    size_t mark = pb_begin(job->out, SUMMARY_BUNDLES);
    pb_put_str(job->out, BUNDLE_ID, b->id);
    int rc = open_rows(&r, err);
    if (rc == 0)
        rc = find_columns(&r, err);
    if (rc == 0)
        rc = put_specs(&r, err);
    if (rc == 0)
        rc = put_rows(&r, err);
    engine_result_close(&r.result);
    if (rc == 0)
        rc = put_all_interned(&r, err);
    if (rc == 0)
        pb_end(job->out, mark);
    for (size_t i = 0; i < r.dimensions.n; i++)
        strpool_free(&r.dimensions.p[i].keys);
    vec_free(&r.dimensions);
    vec_free(&r.values);
    strpool_free(&r.seen);
    pb_writer_free(&r.scratch);
    return rc;
}
