/* Queries that several metrics of a summary use by their ids: computed once, stored as tables for its time. */
#ifndef MERIDIAN_SUMMARY_RUN_SHARED_TABLES_H
#define MERIDIAN_SUMMARY_RUN_SHARED_TABLES_H

#include "summary/run/metric_bundle.h"

struct shared_tables {
    VEC(struct runner_table)
    tables;
};

/* Stores what is used by more than one of: the bundles of `set`, the metadata query (NULL: none), a shared query that
 * one of these uses. What a table cannot hold stays what it was, a query in each that uses it. */
int shared_tables_store(struct shared_tables *t, struct summary_job *job, const struct metric_set *set,
                        const char *metadata_query, struct error *err);
void shared_tables_drop(struct shared_tables *t, struct summary_job *job);

#endif
