/* Chooses metrics, makes those of templates, groups them. */
#include "summary/run/metric_set.h"

#include "summary/run/metric_check.h"

#include <strings.h>

typedef Mrd__TraceMetricV2TemplateSpec metric_template;

enum { MAX_SET_BYTES = 64 << 20 }; /* what templates may unfold to; the specs themselves are smaller */

static int no_memory(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

size_t metric_n_dimensions(const metric_spec *m)
{
    return m->n_dimensions_specs ? m->n_dimensions_specs : m->n_dimensions;
}

const char *metric_dimension_name(const metric_spec *m, size_t i)
{
    const char *name = m->n_dimensions_specs ? m->dimensions_specs[i]->name : m->dimensions[i];
    return name ? name : "";
}

Mrd__TraceMetricV2Spec__DimensionType metric_dimension_type(const metric_spec *m, size_t i)
{
    return m->n_dimensions_specs ? m->dimensions_specs[i]->type
                                 : MRD__TRACE_METRIC_V2_SPEC__DIMENSION_TYPE__DIMENSION_TYPE_UNSPECIFIED;
}

/* ---- choosing ---- */

static int check_id(const char *id, const char *where, size_t i, const char *spec, struct error *err)
{
    if (!id || !id[0])
        return error_set(err, -MRD_EINVALID, "%s: %s[%zu]: id: missing", spec, where, i);
    if (strcasecmp(id, "all") == 0)
        return error_set(err, -MRD_EINVALID, "%s: metric '%.100s': id: reserved, it stands for all metrics", spec, id);
    return 0;
}

/* The place of a metric with this id; *wanted false: nobody asked for it. */
static int find_place(struct metric_set *set, const struct metric_choice *c, const char *id, const char *spec,
                      bool *wanted, size_t *place, struct error *err)
{
    strid number = strpool_find(&set->ids, id, strlen(id));
    *wanted = c->all || number;
    if (!*wanted)
        return 0;
    if (number && set->metrics.p[number - 1].spec)
        return error_set(err, -MRD_EINVALID, "%s: metric '%.100s': id: defined twice", spec, id);
    if (!number) {
        number = strpool_intern_str(&set->ids, id);
        if (!number || !vec_add(&set->metrics))
            return no_memory(err);
    }
    *place = number - 1;
    return 0;
}

static int check(const metric_spec *m, const char *spec, struct error *err)
{
    return metric_check(m, err) < 0 ? error_prefix(err, "%s: metric '%.100s'", spec, m->id) : 0;
}

static int choose_from_metrics(struct metric_set *set, const struct metric_choice *c, size_t spec, struct error *err)
{
    for (size_t i = 0; i < c->specs[spec]->n_metric_spec; i++) {
        const metric_spec *m = c->specs[spec]->metric_spec[i];
        bool wanted;
        size_t place = 0;
        int rc = check_id(m->id, "metric_spec", i, c->names[spec], err);
        if (rc == 0)
            rc = find_place(set, c, m->id, c->names[spec], &wanted, &place, err);
        if (rc == 0 && wanted)
            rc = check(m, c->names[spec], err);
        if (rc < 0)
            return rc;
        if (wanted)
            set->metrics.p[place].spec = m;
    }
    return 0;
}

/* ---- templates ---- */

struct value_column {
    const char *name;
    const Mrd__TraceMetricV2TemplateSpec__ValueColumnSpec *more; /* NULL: a bare name */
};

static struct value_column value_column(const metric_template *t, size_t i)
{
    if (t->n_value_columns)
        return (struct value_column){t->value_columns[i], NULL};
    return (struct value_column){t->value_column_specs[i]->name, t->value_column_specs[i]};
}

/* One metric of a template: it shares everything but its own texts with it. */
static metric_spec *unfold(struct metric_set *set, const metric_template *t, char *id, struct value_column column)
{
    metric_spec *m = arena_alloc(&set->mem, sizeof *m);
    char *value = arena_strndup(&set->mem, column.name, strlen(column.name));
    if (!m || !value)
        return NULL;
    mrd__trace_metric_v2_spec__init(m);
    m->id = id;
    m->value = value;
    m->n_dimensions = t->n_dimensions;
    m->dimensions = t->dimensions;
    m->n_dimensions_specs = t->n_dimensions_specs;
    m->dimensions_specs = t->dimensions_specs;
    m->query = t->query;
    m->has_dimension_uniqueness = t->has_dimension_uniqueness;
    m->dimension_uniqueness = t->dimension_uniqueness;
    m->bundle_id = t->disable_auto_bundling ? NULL : t->id_prefix;
    m->n_interned_dimension_specs = t->n_interned_dimension_specs;
    m->interned_dimension_specs = t->interned_dimension_specs;
    if (column.more) {
        m->has_polarity = column.more->has_polarity;
        m->polarity = column.more->polarity;
    }
    if (column.more &&
        column.more->unit_oneof_case == MRD__TRACE_METRIC_V2_TEMPLATE_SPEC__VALUE_COLUMN_SPEC__UNIT_ONEOF_UNIT) {
        m->unit_oneof_case = MRD__TRACE_METRIC_V2_SPEC__UNIT_ONEOF_UNIT;
        m->unit = column.more->unit;
    } else if (column.more && column.more->unit_oneof_case ==
                                  MRD__TRACE_METRIC_V2_TEMPLATE_SPEC__VALUE_COLUMN_SPEC__UNIT_ONEOF_CUSTOM_UNIT) {
        m->unit_oneof_case = MRD__TRACE_METRIC_V2_SPEC__UNIT_ONEOF_CUSTOM_UNIT;
        m->custom_unit = column.more->custom_unit;
    }
    return m;
}

static int choose_from_template(struct metric_set *set, const struct metric_choice *c, const metric_template *t,
                                const char *spec, struct error *err)
{
    size_t n = t->n_value_columns + t->n_value_column_specs;
    bool checked = false; /* what its metrics share, and they differ in no more than names that are there */
    for (size_t i = 0; i < n; i++) {
        struct value_column column = value_column(t, i);
        bool wanted;
        size_t place = 0;
        if (!column.name || !column.name[0])
            return error_set(err, -MRD_EINVALID, "%s: template '%.100s': %s[%zu]: no name", spec, t->id_prefix,
                             t->n_value_columns ? "value_columns" : "value_column_specs", i);
        char *id = arena_printf(&set->mem, "%s_%s", t->id_prefix, column.name);
        if (!id)
            return no_memory(err);
        if (set->mem.total_bytes > MAX_SET_BYTES)
            return error_set(err, -MRD_ELIMIT, "%s: template '%.100s': makes too many metrics", spec, t->id_prefix);
        int rc = find_place(set, c, id, spec, &wanted, &place, err);
        if (rc == 0 && wanted) {
            metric_spec *m = unfold(set, t, id, column);
            if (!m)
                rc = no_memory(err);
            else if (!checked)
                rc = check(m, spec, err);
            checked = true;
            set->metrics.p[place].spec = m;
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int choose_from_templates(struct metric_set *set, const struct metric_choice *c, size_t spec, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < c->specs[spec]->n_metric_template_spec && rc == 0; i++) {
        const metric_template *t = c->specs[spec]->metric_template_spec[i];
        const char *name = c->names[spec];
        if (!t->id_prefix || !t->id_prefix[0])
            return error_set(err, -MRD_EINVALID, "%s: metric_template_spec[%zu]: id_prefix: missing", name, i);
        if (t->n_value_columns && t->n_value_column_specs)
            return error_set(err, -MRD_EINVALID,
                             "%s: template '%.100s': value_columns and value_column_specs exclude each other", name,
                             t->id_prefix);
        if (!t->n_value_columns && !t->n_value_column_specs)
            return error_set(err, -MRD_EINVALID, "%s: template '%.100s': value_columns: missing", name, t->id_prefix);
        rc = choose_from_template(set, c, t, name, err);
    }
    return rc;
}

/* ---- bundles ---- */

static int put_into_bundle(struct metric_set *set, size_t i, struct error *err)
{
    const metric_spec *m = set->metrics.p[i].spec;
    const char *id = m->bundle_id && m->bundle_id[0] ? m->bundle_id : m->id;
    strid number = strpool_intern_str(&set->bundle_ids, id);
    if (!number)
        return no_memory(err);
    if (number > set->bundles.n)
        return vec_push(&set->bundles, (struct metric_bundle){id, i, i, 1}) ? 0 : no_memory(err);
    struct metric_bundle *b = &set->bundles.p[number - 1];
    bool of_one_template = set->metrics.p[b->last].spec->query == m->query; /* the last one has been found alike */
    int rc = of_one_template ? 0 : metric_check_alike(set->metrics.p[b->first].spec, m, err);
    if (rc < 0)
        return error_prefix(err, "bundle '%.100s': metric '%.100s'", id, m->id);
    set->metrics.p[b->last].next = i;
    b->last = i;
    b->n_metrics++;
    return 0;
}

int metric_set_choose(struct metric_set *set, const struct metric_choice *c, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < c->n_ids && !c->all; i++) {
        if (strcasecmp(c->ids[i], "all") == 0)
            return error_set(err, -MRD_EINVALID, "'%.100s' selects all metrics; pass it alone", c->ids[i]);
        strid number = strpool_intern_str(&set->ids, c->ids[i]);
        if (!number || (number > set->metrics.n && !vec_add(&set->metrics)))
            return no_memory(err);
    }
    for (size_t i = 0; i < c->n_specs && rc == 0; i++)
        rc = choose_from_metrics(set, c, i, err);
    for (size_t i = 0; i < c->n_specs && rc == 0; i++)
        rc = choose_from_templates(set, c, i, err);
    for (size_t i = 0; i < set->metrics.n && rc == 0; i++) {
        if (set->metrics.p[i].spec)
            rc = put_into_bundle(set, i, err);
        else
            rc = error_set(err, -MRD_ENOTFOUND, "metric '%.100s': no spec has it",
                           strpool_cstr(&set->ids, (strid)i + 1));
    }
    return rc;
}

void metric_set_free(struct metric_set *set)
{
    arena_free(&set->mem);
    vec_free(&set->metrics);
    vec_free(&set->bundles);
    strpool_free(&set->ids);
    strpool_free(&set->bundle_ids);
}
