/* The sources that make or cut spans of time: intersections, spans within others, between moments, of counters. */
#include "summary/query/generator.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What the operators behind the macros of intervals.intersect take. */
enum { MAX_TABLES = 15, MAX_PARTITIONS = 4 };

struct partition {
    char *const *columns;
    size_t n;
};

/* The columns go through macros and are compared by name inside: plain names only. */
static int check_partition(struct query_text *t, const struct partition *p)
{
    static const char *const reserved[] = {"id", "ts", "dur"};
    static const char field[] = "partition_columns";
    if (p->n > MAX_PARTITIONS)
        return query_fail(t->g, -MRD_ELIMIT, field, "more than %d", MAX_PARTITIONS);
    for (size_t i = 0; i < p->n; i++) {
        if (!is_plain_name(p->columns[i]))
            return query_fail(t->g, -MRD_EINVALID, field, "'%.100s' is not a column name", p->columns[i]);
        for (size_t r = 0; r < sizeof reserved / sizeof *reserved; r++)
            if (strcasecmp(p->columns[i], reserved[r]) == 0)
                return query_fail(t->g, -MRD_EINVALID, field, "intervals cannot be partitioned by '%.100s'",
                                  p->columns[i]);
        for (size_t k = 0; k < i; k++)
            if (strcasecmp(p->columns[i], p->columns[k]) == 0)
                return query_fail(t->g, -MRD_EINVALID, field, "'%.100s' is given twice", p->columns[i]);
    }
    return 0;
}

static void put_partition(struct query_text *t, const struct partition *p, const char *before)
{
    for (size_t i = 0; i < p->n; i++)
        put_sql(t, "%s%s%s", i ? ", " : "", before, p->columns[i]);
}

/* ---- intersection ----
 *
 * Its rows come first in the joins (CROSS JOIN keeps the order), and those that they stand for are found by their id.
 */

int put_interval_intersect(struct query_text *t, const structured_query *q)
{
    const Mrd__PerfettoSqlStructuredQuery__IntervalIntersect *ii = q->interval_intersect;
    struct partition p = {ii->partition_columns, ii->n_partition_columns};
    uint32_t unit[MAX_TABLES];
    size_t n = 1 + ii->n_interval_intersect;
    if (n < 2)
        return query_fail(t->g, -MRD_EINVALID, "interval_intersect", "is empty");
    if (n > MAX_TABLES)
        return query_fail(t->g, -MRD_ELIMIT, "interval_intersect", "more than %d", MAX_TABLES - 1);
    int rc = check_partition(t, &p);
    if (rc == 0)
        rc = nested_query(t->g, "base", -1, ii->base_, USED_ONCE, &unit[0]);
    for (size_t i = 1; i < n && rc == 0; i++)
        rc = nested_query(t->g, "interval_intersect", (int)i - 1, ii->interval_intersect[i - 1], USED_ONCE, &unit[i]);
    if (rc == 0)
        rc = need_module(t->g, NULL, "intervals.intersect");
    if (rc < 0)
        return rc;
    put_sql(t, "(SELECT ii.ts, ii.dur%s", p.n ? ", " : "");
    put_partition(t, &p, "ii.");
    for (size_t i = 0; i < n; i++)
        put_sql(t, ", s%zu.id AS id_%zu, s%zu.ts AS ts_%zu, s%zu.dur AS dur_%zu, s%zu.*", i, i, i, i, i, i, i);
    put_sql(t, "\nFROM _interval_intersect!((");
    for (size_t i = 0; i < n; i++) {
        put_sql(t, "%s", i ? ", " : "");
        put_unit(t, unit[i]);
    }
    put_sql(t, "), (");
    put_partition(t, &p, "");
    put_sql(t, ")) AS ii");
    for (size_t i = 0; i < n; i++) {
        put_sql(t, "\nCROSS JOIN ");
        put_unit(t, unit[i]);
        put_sql(t, " AS s%zu ON s%zu.id = ii.id_%zu", i, i, i);
    }
    put_sql(t, ")");
    return 0;
}

/* ---- within intervals ---- */

/* The columns of base that are asked for; clipped, ts and dur are the new ones and go first, the old ones last under
 * other names. */
static int put_selected(struct query_text *t, const Mrd__PerfettoSqlStructuredQuery__ExperimentalFilterToIntervals *f,
                        bool clip)
{
    static const char *const old_names[][2] = {{"ts", "original_ts"}, {"dur", "original_dur"}};
    size_t n = 0;
    if (clip)
        put_sql(t, "ii.ts, ii.dur");
    if (!f->n_select_columns)
        put_sql(t, "%sb.*", clip ? ", " : "");
    for (int old = 0; old <= (clip ? 1 : 0); old++) {
        for (size_t i = 0; i < f->n_select_columns; i++) {
            const char *name = f->select_columns[i], *renamed = NULL;
            int rc = check_name(t->g, "select_columns", name);
            if (rc < 0)
                return rc;
            for (int k = 0; k < 2 && clip; k++)
                renamed = strcasecmp(name, old_names[k][0]) == 0 ? old_names[k][1] : renamed;
            if (old != (renamed != NULL))
                continue;
            put_sql(t, "%sb.", clip || n++ ? ", " : "");
            put_name(t, name);
            if (renamed)
                put_sql(t, " AS %s", renamed);
        }
    }
    return 0;
}

/* Intervals that overlap are one before spans are cut by them, so that no moment of a span comes twice. */
static void put_merged(struct query_text *t, const struct partition *p, uint32_t intervals)
{
    put_sql(t, "(SELECT row_number() OVER (ORDER BY ts) AS id, ts, dur%s", p->n ? ", " : "");
    put_partition(t, p, "");
    put_sql(t, "%s", p->n ? " FROM interval_merge_overlapping_partitioned!(" : " FROM interval_merge_overlapping!(");
    put_unit(t, intervals);
    put_sql(t, "%s", p->n ? ", (" : ", 0");
    put_partition(t, p, "");
    put_sql(t, "%s", p->n ? ")))" : "))");
}

int put_filter_to_intervals(struct query_text *t, const structured_query *q)
{
    const Mrd__PerfettoSqlStructuredQuery__ExperimentalFilterToIntervals *f = q->experimental_filter_to_intervals;
    struct partition p = {f->partition_columns, f->n_partition_columns};
    bool clip = !f->has_clip_to_intervals || f->clip_to_intervals;
    uint32_t base, intervals;
    int rc = check_partition(t, &p);
    if (rc == 0)
        rc = nested_query(t->g, "base", -1, f->base_, USED_ONCE, &base);
    if (rc == 0)
        rc = nested_query(t->g, "intervals", -1, f->intervals, USED_ONCE, &intervals);
    if (rc == 0)
        rc = need_module(t->g, NULL, "intervals.intersect");
    if (rc == 0)
        rc = need_module(t->g, NULL, "intervals.overlap");
    if (rc < 0)
        return rc;
    put_sql(t, "(SELECT ");
    rc = put_selected(t, f, clip);
    put_sql(t, "\nFROM _interval_intersect!((");
    put_unit(t, base);
    put_sql(t, ", ");
    put_merged(t, &p, intervals);
    put_sql(t, "), (");
    put_partition(t, &p, "");
    put_sql(t, ")) AS ii\nCROSS JOIN ");
    put_unit(t, base);
    put_sql(t, " AS b ON b.id = ii.id_0)");
    return rc;
}

/* ---- new spans ---- */

int put_create_slices(struct query_text *t, const structured_query *q)
{
    const Mrd__PerfettoSqlStructuredQuery__ExperimentalCreateSlices *c = q->experimental_create_slices;
    const struct {
        const char *query, *field;
        const structured_query *q;
        const char *column;
    } sides[] = {{"starts_query", "starts_ts_column", c->starts_query, c->starts_ts_column},
                 {"ends_query", "ends_ts_column", c->ends_query, c->ends_ts_column}};
    int rc = need_module(t->g, NULL, "intervals.create_intervals");
    for (size_t i = 0; i < 2 && rc == 0; i++) {
        const char *column = sides[i].column && *sides[i].column ? sides[i].column : "ts";
        uint32_t unit;
        rc = nested_query(t->g, sides[i].query, -1, sides[i].q, USED_ONCE, &unit);
        put_sql(t, "%s(SELECT ", i ? ", " : "_interval_create!(");
        if (rc == 0)
            rc = put_column(t, sides[i].field, column);
        put_sql(t, " AS ts FROM ");
        if (rc == 0)
            put_unit(t, unit);
        put_sql(t, ")");
    }
    put_sql(t, ")");
    return rc;
}

int put_counter_intervals(struct query_text *t, const structured_query *q)
{
    uint32_t unit;
    int rc = nested_query(t->g, "input_query", -1, q->experimental_counter_intervals->input_query, USED_ONCE, &unit);
    if (rc == 0)
        rc = need_module(t->g, NULL, "counters.intervals");
    if (rc < 0)
        return rc;
    put_sql(t, "counter_leading_intervals!(");
    put_unit(t, unit);
    put_sql(t, ")");
    return 0;
}

#define MODE(name) MRD__PERFETTO_SQL_STRUCTURED_QUERY__EXPERIMENTAL_TIME_RANGE__MODE__##name

/* One span, of id 0. What a dynamic one leaves open is the trace's. */
int put_time_range(struct query_text *t, const structured_query *q)
{
    const Mrd__PerfettoSqlStructuredQuery__ExperimentalTimeRange *r = q->experimental_time_range;
    if (!r->has_mode || (r->mode != MODE(STATIC) && r->mode != MODE(DYNAMIC)))
        return query_fail(t->g, -MRD_EINVALID, "mode", "must be STATIC or DYNAMIC");
    if (r->mode == MODE(STATIC) && !(r->has_ts && r->has_dur))
        return query_fail(t->g, -MRD_EINVALID, r->has_ts ? "dur" : "ts", "is missing, which a STATIC range needs");
    put_sql(t, "(SELECT 0 AS id, ");
    if (r->has_ts)
        put_sql(t, "%" PRId64, r->ts);
    else
        put_sql(t, "trace_start()");
    put_sql(t, " AS ts, ");
    if (r->has_dur)
        put_sql(t, "%" PRId64, r->dur);
    else
        put_sql(t, "trace_dur()");
    put_sql(t, " AS dur)");
    return 0;
}
