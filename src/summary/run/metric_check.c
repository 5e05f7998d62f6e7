/* The rules for one metric, and for two in one bundle. */
#include "summary/run/metric_check.h"

#include "summary/run/message.h"

typedef Mrd__TraceMetricV2Spec__InternedDimensionSpec interned_spec;
typedef Mrd__TraceMetricV2Spec__InternedDimensionSpec__ColumnSpec interned_column;

enum { MAX_DIMENSIONS = 2000 }; /* SQLite has no more columns */

static bool known_type(Mrd__TraceMetricV2Spec__DimensionType type)
{
    return type >= MRD__TRACE_METRIC_V2_SPEC__DIMENSION_TYPE__STRING &&
           type <= MRD__TRACE_METRIC_V2_SPEC__DIMENSION_TYPE__BOOLEAN;
}

/* Puts their names into `names`. */
static int check_dimensions(const metric_spec *m, struct strpool *names, struct error *err)
{
    const char *field = m->n_dimensions_specs ? "dimensions_specs" : "dimensions";
    if (m->n_dimensions && m->n_dimensions_specs)
        return error_set(err, -MRD_EINVALID, "dimensions and dimensions_specs exclude each other");
    if (metric_n_dimensions(m) > MAX_DIMENSIONS)
        return error_set(err, -MRD_ELIMIT, "%s: more than %d", field, MAX_DIMENSIONS);
    for (size_t i = 0; i < metric_n_dimensions(m); i++) {
        const char *name = metric_dimension_name(m, i);
        if (!name[0])
            return error_set(err, -MRD_EINVALID, "%s[%zu]: no name", field, i);
        if (m->n_dimensions_specs && !known_type(metric_dimension_type(m, i)))
            return error_set(err, -MRD_EINVALID, "dimensions_specs '%.100s': type: missing or unknown", name);
        if (!strpool_intern_str(names, name))
            return error_set(err, -MRD_ENOMEM, "out of memory");
        if (names->n != i + 1)
            return error_set(err, -MRD_EINVALID, "%s '%.100s': named twice", field, name);
    }
    return 0;
}

static int check_column(const interned_column *c, const char *field, struct strpool *names, struct error *err)
{
    if (!c || !c->name || !c->name[0])
        return error_set(err, -MRD_EINVALID, "%s: missing, or has no name", field);
    if (!known_type(c->type))
        return error_set(err, -MRD_EINVALID, "%s '%.100s': type: missing or unknown", field, c->name);
    uint32_t before = names->n;
    if (!strpool_intern_str(names, c->name))
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return names->n > before ? 0 : error_set(err, -MRD_EINVALID, "%s '%.100s': named twice", field, c->name);
}

/* `keys`: of the metric's interned dimensions before this one. */
static int check_interned(const interned_spec *s, const struct strpool *dimensions, struct strpool *keys,
                          struct error *err)
{
    struct strpool names = {0}; /* of the columns of its rows */
    int rc = check_column(s->key_column_spec, "key_column_spec", &names, err);
    if (rc == 0) {
        const char *key = s->key_column_spec->name;
        rc = check_column(s->key_column_spec, "key_column_spec", keys, err);
        if (rc == 0 && !strpool_find(dimensions, key, strlen(key)))
            rc = error_set(err, -MRD_EINVALID, "key_column_spec '%.100s': not a dimension of the metric", key);
    }
    for (size_t i = 0; i < s->n_data_column_specs && rc == 0; i++)
        rc = check_column(s->data_column_specs[i], "data_column_specs", &names, err);
    if (rc == 0 && !s->query)
        rc = error_set(err, -MRD_EINVALID, "query: missing");
    strpool_free(&names);
    return rc;
}

static int check_all_interned(const metric_spec *m, const struct strpool *dimensions, struct error *err)
{
    struct strpool keys = {0};
    int rc = 0;
    for (size_t i = 0; i < m->n_interned_dimension_specs && rc == 0; i++) {
        rc = check_interned(m->interned_dimension_specs[i], dimensions, &keys, err);
        if (rc < 0)
            error_prefix(err, "interned_dimension_specs[%zu]", i);
    }
    strpool_free(&keys);
    return rc;
}

int metric_check(const metric_spec *m, struct error *err)
{
    if (!m->value || !m->value[0])
        return error_set(err, -MRD_EINVALID, "value: missing");
    if (!m->query)
        return error_set(err, -MRD_EINVALID, "query: missing");
    struct strpool dimensions = {0};
    int rc = check_dimensions(m, &dimensions, err);
    if (rc == 0)
        rc = check_all_interned(m, &dimensions, err);
    strpool_free(&dimensions);
    return rc;
}

/* ---- two in one bundle ---- */

static bool same_dimensions(const metric_spec *a, const metric_spec *b)
{
    if (a->dimensions_specs == b->dimensions_specs && a->dimensions == b->dimensions)
        return true; /* of one template */
    size_t n = metric_n_dimensions(a);
    if (metric_n_dimensions(b) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(metric_dimension_name(a, i), metric_dimension_name(b, i)) != 0 ||
            metric_dimension_type(a, i) != metric_dimension_type(b, i))
            return false;
    return true;
}

static int check_same_interned(const metric_spec *first, const metric_spec *m, struct error *err)
{
    bool same = first->n_interned_dimension_specs == m->n_interned_dimension_specs;
    if (!m->n_interned_dimension_specs || first->interned_dimension_specs == m->interned_dimension_specs)
        return 0;
    for (size_t i = 0; i < m->n_interned_dimension_specs && same; i++)
        if (!message_compare(&first->interned_dimension_specs[i]->base, &m->interned_dimension_specs[i]->base, &same))
            return error_set(err, -MRD_ENOMEM, "out of memory");
    return same ? 0
                : error_set(err, -MRD_EINVALID,
                            "interned_dimension_specs: not those of '%.100s', the first of the bundle", first->id);
}

int metric_check_alike(const metric_spec *first, const metric_spec *m, struct error *err)
{
    const char *a = first->bundle_id ? first->bundle_id : "", *b = m->bundle_id ? m->bundle_id : "";
    if (strcmp(a, b) != 0)
        return error_set(err, -MRD_EINVALID, "bundle_id: the bundle is also the id of the metric '%.100s'",
                         a[0] ? m->id : first->id);
    if (first->dimension_uniqueness != m->dimension_uniqueness)
        return error_set(err, -MRD_EINVALID, "dimension_uniqueness: not that of '%.100s', the first of the bundle",
                         first->id);
    if (!same_dimensions(first, m))
        return error_set(err, -MRD_EINVALID, "dimensions: not those of '%.100s', the first of the bundle", first->id);
    return check_same_interned(first, m, err);
}
