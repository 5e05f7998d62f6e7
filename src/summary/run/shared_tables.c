/* Counts who uses which shared query, and stores those used twice, what they use themselves first. */
#include "summary/run/shared_tables.h"

#include "summary/run/query_ids.h"

enum { MAX_DEPTH = STRUCTURED_QUERY_MAX_DEPTH };

struct shared_query {
    size_t users;
    size_t last_user; /* so that one user counts once */
    bool walked;      /* what it uses has been counted */
};

struct use_count {
    const struct structured_queries *shared;
    struct strpool ids;
    VEC(struct shared_query)
    queries;          /* by the number of the id, less one */
    VEC(strid) order; /* of first use, each behind what it uses */
    size_t n_users;
    struct query_ids found; /* a stack: those of the message being walked are on top */
};

static int no_memory(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

static int use(struct use_count *w, const ProtobufCMessage *message, size_t user, unsigned depth, struct error *err);

/* A user of the query `id`: the first one counts what that uses in its turn. */
static int use_id(struct use_count *w, const char *id, size_t user, unsigned depth, struct error *err)
{
    strid number = strpool_intern_str(&w->ids, id);
    if (!number || (number > w->queries.n && !vec_add(&w->queries)))
        return no_memory(err);
    struct shared_query *s = &w->queries.p[number - 1];
    s->users += s->last_user != user;
    s->last_user = user;
    const structured_query *q = structured_queries_find(w->shared, id);
    if (s->walked || !q || depth >= MAX_DEPTH) /* what is too deep or not there is told when its SQL is made */
        return 0;
    s->walked = true;
    int rc = use(w, &q->base, ++w->n_users, depth + 1, err);
    if (rc == 0 && !vec_push(&w->order, number))
        rc = no_memory(err);
    return rc;
}

static int use(struct use_count *w, const ProtobufCMessage *message, size_t user, unsigned depth, struct error *err)
{
    size_t from = w->found.n;
    int rc = query_ids_collect(message, &w->found) ? 0 : no_memory(err);
    for (size_t i = from; i < w->found.n && rc == 0; i++)
        rc = use_id(w, w->found.p[i], user, depth, err);
    w->found.n = from;
    return rc;
}

/* Metrics of a bundle run one query: that of the first. Its interned dimensions are messages inside it. */
static int use_all(struct use_count *w, const struct metric_set *set, const char *metadata_query, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < set->bundles.n && rc == 0; i++)
        rc = use(w, &set->metrics.p[set->bundles.p[i].first].spec->base, ++w->n_users, 0, err);
    if (rc == 0 && metadata_query)
        rc = use_id(w, metadata_query, ++w->n_users, 0, err);
    return rc;
}

static int store(struct shared_tables *t, struct summary_job *job, const char *id, struct error *err)
{
    struct structured_sql sql = {0};
    struct runner_table table = {{0}};
    struct error why = {0};
    struct arena mem = {0};
    const char *origin = arena_printf(&mem, "query '%.100s'", id);
    bool prepared = true;
    int rc = origin ? structured_query_sql(job->shared, structured_queries_find(job->shared, id), &sql, &why)
                    : no_memory(&why);
    if (rc == 0) {
        rc = query_runner_prepare(job->runner, origin, &sql, &why);
        prepared = rc == 0;
    }
    if (rc == 0)
        rc = query_runner_store(job->runner, origin, NULL, sql.sql, &table, &why);
    structured_sql_free(&sql);
    arena_free(&mem);
    if (!prepared || rc == -MRD_ENOMEM || rc == -MRD_ECANCELLED) { /* a second try would find half a preamble done */
        *err = why;
        return rc;
    }
    if (rc < 0)
        return 0; /* whoever uses it tells why, if it cannot run at all */
    rc = structured_queries_set_table(job->shared, id, table.name, err);
    if (rc == 0 && vec_push(&t->tables, table))
        return 0;
    structured_queries_set_table(job->shared, id, NULL, NULL);
    query_runner_drop(job->runner, &table);
    return rc < 0 ? rc : no_memory(err);
}

int shared_tables_store(struct shared_tables *t, struct summary_job *job, const struct metric_set *set,
                        const char *metadata_query, struct error *err)
{
    struct use_count w = {.shared = job->shared};
    int rc = use_all(&w, set, metadata_query, err);
    for (size_t i = 0; i < w.order.n && rc == 0; i++)
        if (w.queries.p[w.order.p[i] - 1].users > 1)
            rc = store(t, job, strpool_cstr(&w.ids, w.order.p[i]), err);
    strpool_free(&w.ids);
    vec_free(&w.queries);
    vec_free(&w.order);
    vec_free(&w.found);
    return rc;
}

void shared_tables_drop(struct shared_tables *t, struct summary_job *job)
{
    for (size_t i = 0; i < t->tables.n; i++)
        query_runner_drop(job->runner, &t->tables.p[i]);
    vec_free(&t->tables);
}
