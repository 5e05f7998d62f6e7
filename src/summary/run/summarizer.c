/* Specs that change, their queries, and the tables in which the rows of these are. */
#include "summary/run/summarizer.h"

#include "summary/run/message.h"
#include "summary/run/query_ids.h"
#include "summary/run/stored_rows.h"
#include "wire/text_format.h"

#include <stdio.h>

struct query {
    const structured_query *message; /* of the spec */
    struct stored *stored;           /* NULL: to be computed */
    struct stored *before;           /* what it was before it changed */
    char *error;                     /* why it cannot be computed */
    int code;
    unsigned visit; /* of the walk that has come here */
};

/* A spec with its queries. */
struct version {
    trace_summary_spec *spec;
    struct structured_queries *tables; /* those that are stored stand as tables */
    struct structured_queries *plain;  /* none does */
    VEC(struct query)
    queries;            /* in the order of the spec */
    struct strpool ids; /* the number of an id is 1 + its place in `queries` */
};

struct summarizer {
    struct query_runner *runner;
    unsigned generation; /* of the runner's engine, whose tables these are */
    struct version now;
    struct stored_rows rows;
    unsigned visits;
    VEC(struct query_change)
    changes;
    struct arena dropped; /* the ids of queries that the last update has dropped */
    struct arena answer;
};

static int no_memory(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

/* ---- versions ---- */

static void release_query(struct summarizer *s, struct query *q)
{
    stored_rows_release(&s->rows, s->runner, q->stored);
    stored_rows_release(&s->rows, s->runner, q->before);
    mem_free(q->error);
    q->stored = q->before = NULL;
    q->error = NULL;
}

static void free_version(struct summarizer *s, struct version *v)
{
    for (size_t i = 0; i < v->queries.n; i++)
        release_query(s, &v->queries.p[i]);
    vec_free(&v->queries);
    strpool_free(&v->ids);
    structured_queries_close(v->tables);
    structured_queries_close(v->plain);
    spec_free(v->spec);
}

static struct query *find(const struct version *v, const char *id)
{
    strid number = strpool_find(&v->ids, id, strlen(id));
    return number ? &v->queries.p[number - 1] : NULL;
}

/* The engine is another one: every table has gone with the old one. */
static void follow_engine(struct summarizer *s)
{
    if (s->generation == s->runner->generation)
        return;
    s->generation = s->runner->generation;
    stored_rows_gone(&s->rows);
    for (size_t i = 0; i < s->now.queries.n; i++) {
        structured_queries_set_table(s->now.tables, s->now.queries.p[i].message->id, NULL, NULL);
        release_query(s, &s->now.queries.p[i]);
    }
}

int summarizer_open(struct query_runner *runner, struct summarizer **out)
{
    struct summarizer *s = *out = mem_zalloc(sizeof *s);
    if (!s)
        return -MRD_ENOMEM;
    s->runner = runner;
    s->generation = runner->generation;
    s->rows.names.summarizer = runner->n_summarizers++;
    return 0;
}

void summarizer_close(struct summarizer *s)
{
    if (!s)
        return;
    follow_engine(s);
    free_version(s, &s->now);
    stored_rows_free(&s->rows);
    vec_free(&s->changes);
    arena_free(&s->dropped);
    arena_free(&s->answer);
    mem_free(s);
}

/* ---- updating ---- */

/* The queries of a spec, with nothing of their past. */
static int read_version(struct version *v, struct slice bytes, enum spec_format format, struct error *err)
{
    int rc = spec_parse(bytes, format, &v->spec, err);
    v->tables = structured_queries_open();
    v->plain = structured_queries_open();
    if (rc == 0 && (!v->tables || !v->plain))
        rc = no_memory(err);
    if (rc == 0 && v->spec->n_query > SUMMARIZER_MAX_QUERIES)
        rc = error_set(err, -MRD_ELIMIT, "more than %d queries", SUMMARIZER_MAX_QUERIES);
    for (size_t i = 0; rc == 0 && i < v->spec->n_query; i++) {
        const structured_query *q = v->spec->query[i];
        rc = structured_queries_add(v->tables, q, err);
        if (rc == 0)
            rc = structured_queries_add(v->plain, q, err);
        if (rc < 0)
            error_prefix(err, "query[%zu]", i);
        else if (!strpool_intern_str(&v->ids, q->id) || !vec_push(&v->queries, (struct query){.message = q}))
            rc = no_memory(err);
    }
    return rc;
}

static bool same_query(const structured_query *a, const structured_query *b)
{
    bool same;
    return message_compare(&a->base, &b->base, &same) && same; /* without memory: computed again */
}

/* Takes over what is known of the queries that `old` had; those that are gone are noted. */
static int inherit(struct summarizer *s, struct version *old, struct version *next, struct error *err)
{
    for (size_t i = 0; i < old->queries.n; i++) {
        struct query *before = &old->queries.p[i], *now = find(next, before->message->id);
        if (!now) {
            char *id = arena_strndup(&s->dropped, before->message->id, strlen(before->message->id));
            if (!id || !vec_push(&s->changes, (struct query_change){.id = id, .dropped = true}))
                return no_memory(err);
        } else if (before->stored && same_query(before->message, now->message)) {
            now->stored = before->stored;
            before->stored = NULL;
        } else {
            struct stored **last = before->stored ? &before->stored : &before->before;
            now->before = *last;
            *last = NULL;
        }
    }
    return 0;
}

/* Who uses each query, as lists: users[begin[i], begin[i + 1]) are the users of query i. */
struct uses {
    size_t *begin;
    size_t *users;
};

static bool collect_uses(const struct version *v, struct uses *out)
{
    struct query_ids ids = {0};
    VEC(size_t)
    pairs = {0}; /* used, user */
    bool ok = true;
    size_t n = v->queries.n;
    for (size_t i = 0; i < n && ok; i++) {
        ids.n = 0;
        ok = query_ids_collect(&v->queries.p[i].message->base, &ids);
        for (size_t k = 0; k < ids.n && ok; k++) {
            struct query *used = find(v, ids.p[k]);
            ok = !used || (vec_push(&pairs, (size_t)(used - v->queries.p)) && vec_push(&pairs, i));
        }
    }
    out->begin = ok ? mem_zalloc((n + 2) * sizeof *out->begin) : NULL;
    out->users = ok ? mem_alloc((pairs.n / 2 + 1) * sizeof *out->users) : NULL;
    ok = out->begin && out->users;
    for (size_t i = 0; i < pairs.n && ok; i += 2) /* counted two places ahead: filling them moves each back by one */
        out->begin[pairs.p[i] + 2]++;
    for (size_t i = 2; i < n + 2 && ok; i++)
        out->begin[i] += out->begin[i - 1];
    for (size_t i = 0; i < pairs.n && ok; i += 2)
        out->users[out->begin[pairs.p[i] + 1]++] = pairs.p[i + 1];
    vec_free(&pairs);
    vec_free(&ids);
    return ok;
}

/* What uses a query to be computed is to be computed too. */
static int spread(struct version *v, struct error *err)
{
    struct uses uses = {0};
    VEC(size_t)
    work = {0};
    bool ok = collect_uses(v, &uses);
    for (size_t i = 0; i < v->queries.n && ok; i++)
        if (!v->queries.p[i].stored)
            ok = vec_push(&work, i);
    for (size_t w = 0; w < work.n && ok; w++)
        for (size_t u = uses.begin[work.p[w]]; u < uses.begin[work.p[w] + 1] && ok; u++) {
            struct query *user = &v->queries.p[uses.users[u]];
            if (!user->stored)
                continue;
            user->before = user->stored;
            user->stored = NULL;
            ok = vec_push(&work, uses.users[u]);
        }
    mem_free(uses.begin);
    mem_free(uses.users);
    vec_free(&work);
    return ok ? 0 : no_memory(err);
}

static int note_changes(struct summarizer *s, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < s->now.queries.n && rc == 0; i++) {
        const struct query *q = &s->now.queries.p[i];
        if (!vec_push(&s->changes, (struct query_change){.id = q->message->id, .updated = !q->stored}))
            rc = no_memory(err);
        else if (q->stored)
            rc = structured_queries_set_table(s->now.tables, q->message->id, q->stored->table.name, err);
    }
    return rc;
}

int summarizer_update(struct summarizer *s, struct slice spec, enum spec_format format,
                      const struct query_change **changes, size_t *n, struct error *err)
{
    struct version next = {0};
    vec_clear(&s->changes);
    arena_free(&s->dropped);
    follow_engine(s);
    int rc = read_version(&next, spec, format, err);
    if (rc < 0) {
        free_version(s, &next);
        return rc;
    }
    rc = inherit(s, &s->now, &next, err);
    free_version(s, &s->now);
    s->now = next;
    if (rc == 0)
        rc = spread(&s->now, err);
    if (rc == 0)
        rc = note_changes(s, err);
    if (rc < 0) { /* out of memory on the way: whether what is stored is still right has not been found out */
        struct version nothing = {0};
        free_version(s, &s->now);
        s->now = nothing;
        return rc;
    }
    *changes = s->changes.p;
    *n = s->changes.n;
    return 0;
}

/* ---- computing ---- */

/* Stores a query's rows, or finds that they are. */
static int compute(struct summarizer *s, struct query *q, struct error *err)
{
    struct structured_sql sql = {0};
    struct arena mem = {0};
    const char *whole = NULL, *origin = arena_printf(&mem, "query '%.100s'", q->message->id);
    int rc = origin ? structured_query_sql(s->now.tables, q->message, &sql, err) : no_memory(err);
    if (rc == 0)
        whole = structured_sql_standalone(&sql);
    if (rc == 0 && !whole)
        rc = no_memory(err);
    struct stored *stored = rc == 0 ? stored_rows_find(&s->rows, whole) : NULL;
    if (rc == 0 && !stored)
        rc = stored_rows_add(&s->rows, s->runner, origin, &sql, whole, &stored, err);
    if (rc == 0) {
        stored->users++;
        q->stored = stored;
        rc = structured_queries_set_table(s->now.tables, q->message->id, stored->table.name, err);
    }
    if (rc == 0) {
        stored_rows_release(&s->rows, s->runner, q->before);
        q->before = NULL;
    } else {
        stored_rows_release(&s->rows, s->runner, q->stored);
        q->stored = NULL;
    }
    structured_sql_free(&sql);
    arena_free(&mem);
    return rc;
}

/* Remembers why a query cannot be computed, unless it could be another time. */
static void remember_error(struct query *q, const char *because_of, int rc, const char *text)
{
    size_t room = strlen(text) + (because_of ? strlen(because_of) : 0) + sizeof "it uses '', which failed: ";
    if (rc == -MRD_ECANCELLED || rc == -MRD_ENOMEM)
        return;
    q->error = mem_alloc(room);
    q->code = rc;
    if (q->error && because_of)
        snprintf(q->error, room, "it uses '%.100s', which failed: %s", because_of, text);
    else if (q->error)
        snprintf(q->error, room, "%s", text);
}

/* A query being walked: the ids that it uses are on a stack. */
struct step {
    size_t query;
    size_t first_id, next_id;
};

struct query_path {
    VEC(struct step)
    steps;
    struct query_ids ids;
};

static int enter(struct summarizer *s, struct query_path *w, struct query *q, struct error *err)
{
    size_t first = w->ids.n;
    q->visit = s->visits;
    struct step step = {(size_t)(q - s->now.queries.p), first, first};
    bool ok = query_ids_collect(&q->message->base, &w->ids) && vec_push(&w->steps, step);
    return ok ? 0 : no_memory(err);
}

/* Computes the query on top, which everything below uses. */
static int leave(struct summarizer *s, struct query_path *w, struct error *err)
{
    struct step top = w->steps.p[--w->steps.n];
    struct query *q = &s->now.queries.p[top.query];
    w->ids.n = top.first_id;
    int rc = q->error ? error_set(err, q->code, "%s", q->error) : compute(s, q, err);
    const char *whole = rc == -MRD_ESQL ? engine_error_text(s->runner->engine) : "";
    if (rc < 0 && !q->error)
        remember_error(q, NULL, rc, whole[0] ? whole : err->text);
    for (size_t i = 0; i < w->steps.n && rc < 0 && q->error; i++)
        remember_error(&s->now.queries.p[w->steps.p[i].query], q->message->id, rc, q->error);
    return rc;
}

/* Computes a query and what it uses, those first. A cycle of ids is left to the generator, which names it. */
static int compute_all(struct summarizer *s, struct query *q, struct error *err)
{
    struct query_path w = {0};
    s->visits++;
    int rc = enter(s, &w, q, err);
    while (rc == 0 && w.steps.n) {
        struct step *top = vec_last(&w.steps);
        if (w.steps.n > 1 && s->now.queries.p[top->query].error) {
            rc = leave(s, &w, err);
        } else if (top->next_id == w.ids.n) {
            rc = leave(s, &w, err);
        } else {
            struct query *used = find(&s->now, w.ids.p[top->next_id++]);
            if (used && !used->stored && used->visit != s->visits)
                rc = enter(s, &w, used, err);
        }
    }
    vec_free(&w.steps);
    vec_free(&w.ids);
    return rc;
}

/* ---- answering ---- */

static const char *text_of(struct summarizer *s, const structured_query *q)
{
    struct pb_writer text = {0};
    uint8_t *bytes;
    size_t n;
    if (!message_pack(&q->base, &bytes, &n))
        return NULL;
    text_print(&mrd__perfetto_sql_structured_query__descriptor, slice_of(bytes, n), 0, &text);
    char *copy = text.failed ? NULL : arena_strndup(&s->answer, text.p ? (const char *)text.p : "", text.n);
    pb_writer_free(&text);
    mem_free(bytes);
    return copy;
}

/* SQL on no table of ours; when it cannot be made (it may be too long where tables are short), that on the tables. */
static const char *standalone(struct summarizer *s, const struct query *q)
{
    struct structured_sql sql = {0};
    struct error ignored = {0};
    const char *text =
        structured_query_sql(s->now.plain, q->message, &sql, &ignored) == 0 ? structured_sql_standalone(&sql) : NULL;
    const char *copy = text ? arena_strndup(&s->answer, text, strlen(text)) : q->stored->sql;
    structured_sql_free(&sql);
    return copy;
}

int summarizer_query(struct summarizer *s, const char *id, struct query_table *out, struct error *err)
{
    *out = (struct query_table){0};
    arena_free(&s->answer);
    follow_engine(s);
    struct query *q = find(&s->now, id);
    if (!q)
        return 0;
    out->exists = true;
    if (q->error) {
        engine_set_error_text(s->runner->engine, q->error);
        return error_set(err, q->code, "%s", q->error);
    }
    int rc = q->stored ? 0 : compute_all(s, q, err);
    if (rc < 0) {
        if (q->error)
            engine_set_error_text(s->runner->engine, q->error);
        return rc;
    }
    out->table = q->stored->table.name;
    out->n_rows = q->stored->n_rows;
    out->columns = q->stored->columns;
    out->n_columns = q->stored->n_columns;
    out->duration_ms = q->stored->duration_ms;
    out->sql = q->stored->sql;
    out->text = text_of(s, q->message);
    out->standalone = standalone(s, q);
    return out->text && out->standalone ? 0 : no_memory(err);
}
