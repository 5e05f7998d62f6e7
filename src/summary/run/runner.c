/* Structured SQL on an engine. */
#include "summary/run/runner.h"

#include <inttypes.h>
#include <stdio.h>

void query_runner_set_engine(struct query_runner *r, struct engine *engine)
{
    r->engine = engine;
    r->generation++;
    preambles_free(&r->preambles);
    vec_clear(&r->pending_drops); /* gone with their engine */
}

void query_runner_free(struct query_runner *r)
{
    preambles_free(&r->preambles);
    vec_free(&r->pending_drops);
}

int query_runner_failed(struct query_runner *r, const char *origin, int rc, struct error *err)
{
    const char *whole = engine_error_text(r->engine);
    size_t room = strlen(whole) + strlen(origin) + sizeof ": ";
    char *text = whole[0] ? mem_alloc(room) : NULL;
    if (text) {
        snprintf(text, room, "%s: %s", origin, whole);
        engine_set_error_text(r->engine, text);
    }
    mem_free(text);
    error_prefix(err, "%s", origin);
    return rc;
}

/* ---- dropping ---- */

static int drop(struct query_runner *r, const struct runner_table *t)
{
    enum { TRIES = 3 }; /* whoever interrupts a query does so more than once, and may hit this statement */
    char sql[RUNNER_TABLE_NAME + 32];
    struct error err = {0};
    int rc = -MRD_ECANCELLED;
    snprintf(sql, sizeof sql, "DROP TABLE IF EXISTS %s", t->name);
    for (int i = 0; i < TRIES && rc == -MRD_ECANCELLED; i++)
        rc = engine_run(r->engine, NULL, sql, &err);
    return rc;
}

/* Tables that somebody was reading: perhaps no more. */
static void retry_drops(struct query_runner *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->pending_drops.n; i++)
        if (drop(r, &r->pending_drops.p[i]) < 0)
            r->pending_drops.p[kept++] = r->pending_drops.p[i];
    r->pending_drops.n = kept;
}

void query_runner_drop(struct query_runner *r, struct runner_table *t)
{
    if (!t->name[0] || !r->engine)
        return;
    const char *whole = engine_error_text(r->engine);
    char *text = whole[0] ? mem_strdup(whole) : NULL;
    retry_drops(r);
    if (drop(r, t) < 0)
        (void)!vec_push(&r->pending_drops, *t);
    engine_set_error_text(r->engine, text ? text : "");
    mem_free(text);
    t->name[0] = '\0';
}

/* ---- running ---- */

/* An interrupt may come between two statements, and the next one begins by forgetting it. */
static int check_interrupt(struct query_runner *r, struct error *err)
{
    return engine_was_interrupted(r->engine) ? error_set(err, -MRD_ECANCELLED, "interrupted") : 0;
}

static int include(struct query_runner *r, const char *module, struct error *err)
{
    struct arena mem = {0};
    const char *sql = arena_printf(&mem, "INCLUDE PERFETTO MODULE %s", module);
    int rc = sql ? engine_run(r->engine, NULL, sql, err) : error_set(err, -MRD_ENOMEM, "out of memory");
    arena_free(&mem);
    return rc;
}

static int run_preamble(struct query_runner *r, const char *origin, const char *text, struct error *err)
{
    struct engine_result rows;
    struct engine_script script = {0};
    if (preambles_hold(&r->preambles, text))
        return 0;
    int rc = engine_query(r->engine, origin, slice_str(text), &rows, &script, err);
    if (rc == -MRD_EINVALID)
        return 0; /* blanks and comments */
    while (rc == 0 && (rc = engine_result_next(&rows, err)) == 1)
        rc = 0;
    engine_result_close(&rows);
    if (rc == 0 && script.n_statements_with_output)
        rc = error_set(err, -MRD_EINVALID, "preamble: one of its statements has rows; only `sql` may have them");
    if (rc == 0 && !preambles_note(&r->preambles, text))
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    return rc;
}

int query_runner_prepare(struct query_runner *r, const char *origin, const struct structured_sql *sql,
                         struct error *err)
{
    int rc = check_interrupt(r, err);
    for (strid i = 1; i <= sql->modules.n && rc == 0; i++)
        rc = include(r, strpool_cstr(&sql->modules, i), err);
    for (strid i = 1; i <= sql->preambles.n && rc == 0; i++)
        rc = run_preamble(r, origin, strpool_cstr(&sql->preambles, i), err);
    return rc < 0 ? query_runner_failed(r, origin, rc, err) : 0;
}

int query_runner_open(struct query_runner *r, const char *origin, const char *sql, struct engine_result *out,
                      struct error *err)
{
    int rc = check_interrupt(r, err);
    if (rc == 0)
        rc = engine_query(r->engine, origin, slice_str(sql), out, NULL, err);
    return rc < 0 ? query_runner_failed(r, origin, rc, err) : 0;
}

int query_runner_store(struct query_runner *r, const char *origin, struct runner_names *names, const char *sql,
                       struct runner_table *out, struct error *err)
{
    struct arena mem = {0};
    if (names)
        snprintf(out->name, sizeof out->name, "_exp_mat_%" PRIu64 "_%" PRIu64, names->summarizer, names->n_tables++);
    else
        snprintf(out->name, sizeof out->name, "_meridian_summary_%" PRIu64, ++r->n_tables);
    const char *create = arena_printf(&mem, "CREATE PERFETTO TABLE %s AS %s", out->name, sql);
    int rc = create ? check_interrupt(r, err) : error_set(err, -MRD_ENOMEM, "out of memory");
    if (rc == 0)
        rc = engine_run(r->engine, origin, create, err);
    arena_free(&mem);
    if (rc == 0)
        return 0;
    out->name[0] = '\0';
    return query_runner_failed(r, origin, rc, err);
}
