/* Brings the replicas of a shard to the same, and takes away what does not count.
 *
 * What may be different: a commit reached one replica and not another (fleet_settle() gives it to the other when the
 * rows are there; else fleet_repair() copies them), a server came back with less than it had, a load was begun and
 * never committed. A load that is in drops anywhere is dropped everywhere. Lines go from a server in this order: rows,
 * commit, begun, drop; so that whatever ends this half-way is found by the next run. */
#include "fleet/load_copy.h"
#include "fleet/loads.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* A DateTime is further back than a number of seconds. Differences of DateTimes wrap where they would be below 1970. */
#define OLDER(column, than) "toInt64(toUInt32(" column ")) " than " toInt64(toUInt32(now())) - %" PRId64

/* What one server has. */
struct holding {
    const struct fleet_node *node;
    struct loads commits, drops;
};

/* One run of fleet_repair(). */
struct repairing {
    const struct fleet_repair *how;
    struct fleet_repaired *done;
    int64_t end_ns;
};

struct shard {
    struct fleet *f;
    struct repairing *run; /* NULL: nobody wants to know how far it is */
    struct holding *nodes;
    size_t n;
    struct loads commits, drops; /* of any */
};

static void close_shard(struct shard *s)
{
    for (size_t i = 0; s->nodes && i < s->n; i++) {
        loads_free(&s->nodes[i].commits);
        loads_free(&s->nodes[i].drops);
    }
    mem_free(s->nodes);
    loads_free(&s->commits);
    loads_free(&s->drops);
}

enum { DAY_S = 24 * 3600 };

/* Before a piece of work at a server: says how far it is, and whether there is still time. A false server that does
 * each thing in the time that it may take would else take as many of these times as it names loads. */
static int begin_step(const struct shard *s, const struct holding *at, const char *what, uint64_t done, uint64_t of,
                      struct error *err)
{
    const struct repairing *run = s->run;
    if (!run)
        return 0;
    const struct fleet_repair_step step = {.what = what,
                                           .shard = at->node->shard,
                                           .replica = at->node->replica,
                                           .done = done,
                                           .of = of,
                                           .rows = run->done->rows};
    if (run->how->progress)
        run->how->progress(run->how->ctx, &step);
    return clock_now_ns(CLOCK_MONOTONIC) < run->end_ns
               ? 0
               : error_set(err, -MRD_ETIMEOUT,
                           "%s: not at an end in the time that repair has (%s %" PRIu64 " of %" PRIu64
                           " loads): run it again, it goes on where it stopped",
                           at->node->server.url, what, done, of);
}

static int read_loads(struct loads *out, const struct fleet *f, const struct click_server *s, const char *table,
                      struct error *err)
{
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT load FROM %s_local.%s", f->database, table);
    return loads_read(out, s, sql, err);
}

static int open_shard(struct shard *s, struct fleet *f, unsigned number, struct repairing *run, struct error *err)
{
    *s = (struct shard){.f = f, .run = run};
    const struct fleet_node *nodes = fleet_shard_nodes(f, number, &s->n);
    s->nodes = mem_zalloc((s->n + 1) * sizeof *s->nodes);
    int rc = s->nodes ? 0 : fleet_no_memory(err);
    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        struct holding *h = &s->nodes[i];
        h->node = &nodes[i];
        rc = read_loads(&h->drops, f, &h->node->server, "drops", err);
        if (rc == 0)
            rc = read_loads(&h->commits, f, &h->node->server, "commits", err);
        if (rc == 0)
            rc = loads_add(&s->drops, &h->drops, err);
        if (rc == 0)
            rc = loads_add(&s->commits, &h->commits, err);
    }
    return rc;
}

/* ---- removing ---- */

enum { MUTATION_SECONDS = 3600 };

/* Statements that delete run behind the answer. */
static int wait_for_deletes(const struct fleet *f, const struct click_server *s, struct error *err)
{
    int64_t end = clock_now_ns(CLOCK_MONOTONIC) + MUTATION_SECONDS * INT64_C(1000000000);
    uint64_t left = 1;
    for (;;) {
        int rc = fleet_number(s, &left, err,
                              "SELECT count() FROM system.mutations WHERE database = '%s_local' AND is_done = 0",
                              f->database);
        if (rc < 0 || left == 0)
            return rc;
        if (clock_now_ns(CLOCK_MONOTONIC) > end)
            return error_set(err, -MRD_ETIMEOUT,
                             "%s: rows are still being deleted after %d minutes; see system.mutations", s->url,
                             MUTATION_SECONDS / 60);
        nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    }
}

static int delete_from(const struct fleet *f, const struct click_server *s, const char *table, const char *loads,
                       struct error *err)
{
    uint64_t n;
    int rc =
        fleet_number(s, &n, err, "SELECT count() FROM %s_local.`%s` WHERE load IN (%s)", f->database, table, loads);
    if (rc == 0 && n)
        rc = fleet_run(s, err, "ALTER TABLE %s_local.`%s` DELETE WHERE load IN (%s)", f->database, table, loads);
    return rc;
}

/* Takes the rows of these loads (a list for IN) away, and waits until they are gone. */
static int remove_rows(struct fleet *f, const struct click_server *s, const char *loads, struct error *err)
{
    struct click_rows *tables; /* that have rows: most have none */
    int rc = fleet_ask(s, &tables, err,
                       "SELECT DISTINCT table FROM system.parts WHERE active AND database = '%s_local' AND table LIKE "
                       "'%%\\_rows'",
                       f->database);
    while (rc >= 0 && tables && (rc = click_step_whole(tables, 1, err)) == 1) {
        if ((rc = fleet_named_table(f, s, click_cell(tables, 0), "_rows", err)) >= 0)
            rc = delete_from(f, s, click_cell(tables, 0), loads, err);
        if (rc < 0)
            break;
    }
    click_close(tables);
    return rc < 0 ? rc : wait_for_deletes(f, s, err);
}

typedef int (*remover)(struct fleet *f, const struct click_server *s, const char *list, struct error *err);

/* Calls `each` for pieces of a list. */
static int in_pieces(const struct shard *s, const struct holding *at, const struct loads *loads, remover each,
                     struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < loads->list.n; i += LOADS_A_STATEMENT) {
        struct click_text t = {0};
        loads_put(&t, loads, i, i + LOADS_A_STATEMENT);
        rc = t.bad ? fleet_no_memory(err) : begin_step(s, at, "removing", i, loads->list.n, err);
        if (rc == 0)
            rc = each(s->f, &at->node->server, click_string(&t), err);
        click_text_free(&t);
    }
    return rc;
}

static int remove_begun(struct fleet *f, const struct click_server *s, const char *list, struct error *err)
{
    int rc = delete_from(f, s, "begun", list, err);
    return rc < 0 ? rc : wait_for_deletes(f, s, err);
}

static int remove_lines(struct fleet *f, const struct click_server *s, const char *list, struct error *err)
{
    int rc = delete_from(f, s, "commits", list, err);
    return rc < 0 ? rc : remove_begun(f, s, list, err);
}

static int remove_drops(struct fleet *f, const struct click_server *s, const char *list, struct error *err)
{
    int rc = delete_from(f, s, "drops", list, err);
    return rc < 0 ? rc : wait_for_deletes(f, s, err);
}

/* Takes away all that is dropped, on all servers of the shard. */
static int remove_dropped(struct shard *s, struct error *err)
{
    static const remover steps[] = {remove_rows, remove_lines, remove_drops};
    int rc = 0;
    for (size_t k = 0; k < 3 && s->drops.list.n; k++)
        for (size_t i = 0; rc == 0 && i < s->n; i++)
            rc = in_pieces(s, &s->nodes[i], &s->drops, steps[k], err);
    return rc;
}

/* ---- drops ---- */

/* Every server of the shard gets the lines of drops that it has not. */
static int spread_drops(struct shard *s, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        struct loads missing = {0};
        struct click_text t = {0};
        rc = loads_without(&missing, &s->drops, &s->nodes[i].drops, err);
        for (size_t k = 0; k < missing.list.n; k++)
            click_putf(&t, "%" PRId64 "\n", missing.list.p[k]);
        if (rc == 0 && t.bad)
            rc = fleet_no_memory(err);
        if (rc == 0 && missing.list.n) {
            char sql[160];
            snprintf(sql, sizeof sql, "INSERT INTO %s_local.drops (load) FORMAT TabSeparated", s->f->database);
            rc = click_run(&s->nodes[i].node->server, sql, NULL, slice_of(t.bytes.p, t.bytes.n), err);
        }
        if (rc == 0)
            rc = loads_add(&s->nodes[i].drops, &missing, err);
        click_text_free(&t);
        loads_free(&missing);
    }
    return rc;
}

/* ---- commits ---- */

static const struct holding *who_has(const struct shard *s, int64_t load)
{
    for (size_t i = 0; i < s->n; i++)
        if (loads_have(&s->nodes[i].commits, load))
            return &s->nodes[i];
    return NULL;
}

/* Gives `to` the commit of a load when it has all rows; *all: it has. */
static int give_commit(struct shard *s, const struct holding *to, int64_t load, bool *all, struct error *err)
{
    const struct click_server *from = &who_has(s, load)->node->server, *there = &to->node->server;
    struct load_rows rows;
    *all = false;
    int rc = load_rows_read(&rows, s->f, from, load, err);
    if (rc == 0)
        rc = load_rows_compare(&rows, s->f, there, load, all, err);
    if (rc == 0 && *all)
        rc = load_commit_copy(s->f, from, there, load, err);
    load_rows_free(&rows);
    return rc;
}

/* Gives `to` the commits of loads whose rows it has; the others go to `incomplete`. */
static int give_commits(struct shard *s, struct holding *to, const struct loads *loads, struct loads *incomplete,
                        struct fleet_repaired *done, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < loads->list.n; i++) {
        const int64_t load = loads->list.p[i];
        bool all = false;
        rc = begin_step(s, to, "comparing", i, loads->list.n, err);
        if (rc == 0)
            rc = give_commit(s, to, load, &all, err);
        if (rc == 0 && !all && !vec_push(&incomplete->list, load))
            rc = fleet_no_memory(err);
        done->settled += rc == 0 && all;
    }
    return rc;
}

/* What is being copied to a server. */
struct copying {
    struct shard *s;
    const struct holding *to;
    uint64_t done, of;
};

static int copied_rows(void *ctx, uint64_t rows, struct error *err)
{
    const struct copying *c = ctx;
    c->s->run->done->rows += rows;
    return begin_step(c->s, c->to, "copying", c->done, c->of, err);
}

static int copy_load(struct copying *c, int64_t load, struct error *err)
{
    const struct click_server *from = &who_has(c->s, load)->node->server, *there = &c->to->node->server;
    struct load_rows rows;
    int rc = load_rows_read(&rows, c->s->f, from, load, err);
    if (rc == 0)
        rc = load_rows_copy(&rows, c->s->f, from, there, load, copied_rows, c, err);
    if (rc == 0)
        rc = load_commit_copy(c->s->f, from, there, load, err);
    load_rows_free(&rows);
    return rc;
}

/* Gives `to` the rows and then the commits of loads of which it has nothing, or what an earlier run left half-way. */
static int copy_loads(struct shard *s, const struct holding *to, const struct loads *loads, struct error *err)
{
    struct copying c = {.s = s, .to = to, .of = loads->list.n};
    int rc = in_pieces(s, to, loads, remove_rows, err);
    for (; rc == 0 && c.done < c.of; c.done++) {
        rc = begin_step(s, to, "copying", c.done, c.of, err);
        if (rc == 0)
            rc = copy_load(&c, loads->list.p[c.done], err);
        s->run->done->copied += rc == 0;
    }
    return rc;
}

/* Every server of the shard gets the commits that it has not; a run of fleet_repair() gives the rows before them when
 * they are not there. */
static int spread_commits(struct shard *s, struct fleet_repaired *done, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        struct loads missing = {0}, wanted = {0}, incomplete = {0};
        rc = loads_without(&missing, &s->commits, &s->nodes[i].commits, err);
        if (rc == 0)
            rc = loads_without(&wanted, &missing, &s->drops, err);
        if (rc == 0)
            rc = give_commits(s, &s->nodes[i], &wanted, &incomplete, done, err);
        if (rc == 0 && s->run && incomplete.list.n)
            rc = copy_loads(s, &s->nodes[i], &incomplete, err);
        loads_free(&missing);
        loads_free(&wanted);
        loads_free(&incomplete);
    }
    return rc;
}

int fleet_settle(struct fleet *f, uint64_t *settled, struct error *err)
{
    struct fleet_repaired done = {0};
    int rc = 0;
    for (unsigned i = 0; i < f->n_shards && rc == 0; i++) {
        struct shard s;
        size_t n;
        struct error ignored;
        fleet_shard_nodes(f, i, &n);
        if (n < 2)
            continue;
        int opened = open_shard(&s, f, i, NULL, &ignored);
        if (opened == 0)
            rc = spread_drops(&s, err);
        if (opened == 0 && rc == 0)
            rc = spread_commits(&s, &done, err);
        if (rc < 0 && rc != -MRD_ENOMEM && rc != -MRD_ESQL)
            rc = 0; /* a server has gone meanwhile */
        close_shard(&s);
    }
    *settled = done.settled;
    return rc;
}

/* ---- all of it ---- */

/* Loads that were begun long ago and have no commit anywhere in the shard, and those of a trace that another load has
 * brought in as well: the former's rows go at once, the latter become drops. */
static int remove_abandoned(struct shard *s, int64_t older_s, struct fleet_repaired *done, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        struct loads begun = {0}, gone = {0};
        char sql[320];
        snprintf(sql, sizeof sql, "SELECT load FROM %s_local.begun WHERE " OLDER("at", "<="), s->f->database, older_s);
        rc = loads_read(&begun, &s->nodes[i].node->server, sql, err);
        if (rc == 0)
            rc = loads_without(&gone, &begun, &s->commits, err);
        if (rc == 0)
            rc = in_pieces(s, &s->nodes[i], &gone, remove_rows, err);
        if (rc == 0)
            rc = in_pieces(s, &s->nodes[i], &gone, remove_begun, err);
        done->removed += rc == 0 && i == 0 ? gone.list.n : 0;
        loads_free(&begun);
        loads_free(&gone);
    }
    return rc;
}

static int drop_doubles(struct shard *s, struct fleet_repaired *done, struct error *err)
{
    struct loads shadowed = {0}, kept = {0};
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT load FROM %s_local.loads", s->f->database);
    int rc = loads_read(&kept, &s->nodes[0].node->server, sql, err);
    if (rc == 0)
        rc = read_loads(&s->commits, s->f, &s->nodes[0].node->server, "commits", err);
    if (rc == 0)
        rc = loads_without(&shadowed, &s->commits, &kept, err);
    if (rc == 0) {
        size_t before = s->drops.list.n;
        rc = loads_add(&s->drops, &shadowed, err);
        done->removed += s->drops.list.n - before;
    }
    if (rc == 0)
        rc = spread_drops(s, err);
    loads_free(&shadowed);
    loads_free(&kept);
    return rc;
}

int fleet_repair(struct fleet *f, const struct fleet_repair *how, struct fleet_repaired *out, struct error *err)
{
    const unsigned limit_s = how->limit_s ? how->limit_s : DAY_S;
    struct repairing run = {how, out, clock_now_ns(CLOCK_MONOTONIC) + limit_s * INT64_C(1000000000)};
    *out = (struct fleet_repaired){0};
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < f->n_shards; i++) {
        struct shard s;
        rc = open_shard(&s, f, i, &run, err);
        if (rc == 0)
            rc = spread_drops(&s, err);
        if (rc == 0)
            rc = spread_commits(&s, out, err);
        if (rc == 0)
            rc = remove_abandoned(&s, how->older_s, out, err);
        if (rc == 0)
            rc = drop_doubles(&s, out, err);
        if (rc == 0)
            rc = remove_dropped(&s, err);
        close_shard(&s);
    }
    return rc;
}

/* The loads of a shard that are to be dropped become drops on all of its servers: from then on they count no more. */
static int choose_drops(struct shard *s, int64_t older_s, const char *condition, uint64_t *n, struct error *err)
{
    struct click_text t = {0};
    struct loads chosen = {0};
    click_putf(&t,
               "SELECT load FROM %s_local.commits WHERE load IN (SELECT load FROM %s_local.loads) AND " OLDER(
                   "recorded", "<") "%s%s%s",
               s->f->database, s->f->database, older_s, condition ? " AND (" : "", condition ? condition : "",
               condition ? ")" : "");
    int rc = t.bad ? fleet_no_memory(err) : 0;
    for (size_t i = 0; rc == 0 && i < s->n; i++) { /* one of them may have less than the others */
        const struct click_server server = click_patient(&s->nodes[i].node->server);
        struct loads there = {0};
        rc = loads_read(&there, &server, click_string(&t), err);
        if (rc == 0)
            rc = loads_add(&chosen, &there, err);
        loads_free(&there);
    }
    if (rc == 0)
        rc = loads_add(&s->drops, &chosen, err);
    if (rc == 0)
        rc = spread_drops(s, err);
    *n += rc == 0 ? chosen.list.n : 0;
    click_text_free(&t);
    loads_free(&chosen);
    return rc;
}

int fleet_drop(struct fleet *f, int64_t older_s, const char *condition, struct fleet_dropped *out, struct error *err)
{
    uint64_t settled;
    *out = (struct fleet_dropped){0};
    int rc = fleet_settle(f, &settled, err);
    for (unsigned pass = 0; pass < 2; pass++) { /* first all count no more, then the rows go */
        for (unsigned i = 0; rc == 0 && i < f->n_shards; i++) {
            struct shard s;
            rc = open_shard(&s, f, i, NULL, err);
            if (rc == 0)
                rc = pass == 0 ? choose_drops(&s, older_s, condition, &out->traces, err) : remove_dropped(&s, err);
            close_shard(&s);
        }
    }
    return rc;
}
