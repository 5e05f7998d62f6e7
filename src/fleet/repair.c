/* Brings the replicas of a shard to the same, and takes away what does not count.
 *
 * What may be different: a commit reached one replica and not another (fleet_settle() gives it to the other when the
 * rows are there; else fleet_repair() copies them), a server came back with less than it had, a load was begun and
 * never committed. A load that is in drops anywhere is dropped everywhere. Lines go from a server in this order: rows,
 * commit, begun, drop; so that whatever ends this half-way is found by the next run. */
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

struct shard {
    struct fleet *f;
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

static int read_loads(struct loads *out, const struct fleet *f, const struct click_server *s, const char *table,
                      struct error *err)
{
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT load FROM %s_local.%s", f->database, table);
    return loads_read(out, s, sql, err);
}

static int open_shard(struct shard *s, struct fleet *f, unsigned number, struct error *err)
{
    *s = (struct shard){.f = f};
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

int fleet_remove_rows(struct fleet *f, const struct click_server *s, const char *loads, struct error *err)
{
    struct click_rows *tables; /* that have rows: most have none */
    int rc = fleet_ask(s, &tables, err,
                       "SELECT DISTINCT table FROM system.parts WHERE active AND database = '%s_local' AND table LIKE "
                       "'%%\\_rows'",
                       f->database);
    while (rc >= 0 && tables && (rc = click_step_whole(tables, 1, err)) == 1)
        if ((rc = delete_from(f, s, click_cell(tables, 0), loads, err)) < 0)
            break;
    click_close(tables);
    return rc < 0 ? rc : wait_for_deletes(f, s, err);
}

/* Calls `each` for pieces of a list. */
static int in_pieces(struct fleet *f, const struct click_server *s, const struct loads *loads,
                     int (*each)(struct fleet *f, const struct click_server *s, const char *list, struct error *err),
                     struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < loads->list.n; i += LOADS_A_STATEMENT) {
        struct click_text t = {0};
        loads_put(&t, loads, i, i + LOADS_A_STATEMENT);
        rc = t.bad ? fleet_no_memory(err) : each(f, s, click_string(&t), err);
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
    static int (*const steps[])(struct fleet *, const struct click_server *, const char *,
                                struct error *) = {fleet_remove_rows, remove_lines, remove_drops};
    int rc = 0;
    for (size_t k = 0; k < 3 && s->drops.list.n; k++)
        for (size_t i = 0; rc == 0 && i < s->n; i++)
            rc = in_pieces(s->f, &s->nodes[i].node->server, &s->drops, steps[k], err);
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

/* The rows of a load on a server, by its commit's tables: *all: as many of each as the commit says. */
static int has_rows(const struct fleet *f, const struct click_server *with_commit, const struct click_server *s,
                    int64_t load, bool *all, struct error *err)
{
    struct click_rows *rows;
    *all = false;
    int rc = fleet_ask(with_commit, &rows, err,
                       "SELECT t, n FROM %s_local.commits ARRAY JOIN tables AS t, rows AS n WHERE load = %" PRId64
                       " LIMIT 1 BY t",
                       f->database, load);
    bool same = true;
    while (rc >= 0 && rows && same && (rc = click_step_whole(rows, 2, err)) == 1) {
        uint64_t n;
        rc = fleet_number(s, &n, err, "SELECT count() FROM %s_local.`%s_rows` WHERE load = %" PRId64, f->database,
                          click_cell(rows, 0), load);
        if (rc < 0)
            break;
        same = n == click_u64(rows, 1);
    }
    click_close(rows);
    *all = same && rc >= 0;
    return rc < 0 ? rc : 0;
}

/* Takes what `sql` answers from one server to a table of another; *empty: it was nothing. */
static int copy_answer(const struct fleet *f, const struct click_server *from, const struct click_server *to,
                       const char *sql, const char *table, bool *empty, struct error *err)
{
    struct click_text bytes = {0};
    char into[300];
    int rc = click_fetch(from, sql, &bytes, err);
    snprintf(into, sizeof into, "INSERT INTO %s_local.`%s` FORMAT Native", f->database, table);
    if (rc == 0 && bytes.bytes.n)
        rc = click_run(to, into, NULL, slice_of(bytes.bytes.p, bytes.bytes.n), err);
    *empty = !bytes.bytes.n;
    click_text_free(&bytes);
    return rc;
}

static int copy_commit(const struct fleet *f, const struct click_server *from, const struct click_server *to,
                       int64_t load, struct error *err)
{
    char sql[200];
    bool empty;
    snprintf(sql, sizeof sql, "SELECT * FROM %s_local.commits WHERE load = %" PRId64 " LIMIT 1 FORMAT Native",
             f->database, load);
    return copy_answer(f, from, to, sql, "commits", &empty, err);
}

enum { COPY_ROWS = 1 << 16 }; /* that are in memory at a time */

static int copy_table(const struct fleet *f, const struct click_server *from, const struct click_server *to,
                      const char *table, int64_t load, uint64_t n, struct error *err)
{
    char sql[512], rows[160];
    bool empty;
    int rc = 0;
    snprintf(rows, sizeof rows, "%s_rows", table);
    for (uint64_t done = 0; rc == 0 && done < n; done += COPY_ROWS) {
        /* The order decides nothing but that each row is in one piece; a table without ids has few rows. */
        snprintf(sql, sizeof sql,
                 "SELECT * FROM %s_local.`%s` WHERE load = %" PRId64 "%s LIMIT %" PRIu64 ", %d FORMAT Native",
                 f->database, rows, load, n > COPY_ROWS ? " ORDER BY id" : "", done, COPY_ROWS);
        rc = copy_answer(f, from, to, sql, rows, &empty, err);
        if (rc == 0 && empty)
            rc = error_set(err, -MRD_EFORMAT, "%s: load %" PRId64 " of %s has fewer rows than its commit says",
                           from->url, load, table);
    }
    return rc;
}

static int copy_rows(struct fleet *f, const struct click_server *from, const struct click_server *to, int64_t load,
                     struct error *err)
{
    struct click_rows *rows;
    int rc = fleet_ask(from, &rows, err,
                       "SELECT t, n FROM %s_local.commits ARRAY JOIN tables AS t, rows AS n WHERE load = %" PRId64
                       " LIMIT 1 BY t",
                       f->database, load);
    while (rc >= 0 && rows && (rc = click_step_whole(rows, 2, err)) == 1)
        if ((rc = copy_table(f, from, to, click_cell(rows, 0), load, click_u64(rows, 1), err)) < 0)
            break;
    click_close(rows);
    return rc < 0 ? rc : 0;
}

static const struct holding *who_has(const struct shard *s, int64_t load)
{
    for (size_t i = 0; i < s->n; i++)
        if (loads_have(&s->nodes[i].commits, load))
            return &s->nodes[i];
    return NULL;
}

/* Gives `to` the commits of loads whose rows it has; the others go to `incomplete`. */
static int give_commits(struct shard *s, struct holding *to, const struct loads *loads, struct loads *incomplete,
                        struct fleet_repaired *done, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < loads->list.n; i++) {
        const int64_t load = loads->list.p[i];
        const struct click_server *from = &who_has(s, load)->node->server;
        bool all;
        rc = has_rows(s->f, from, &to->node->server, load, &all, err);
        if (rc == 0 && all)
            rc = copy_commit(s->f, from, &to->node->server, load, err);
        else if (rc == 0 && !vec_push(&incomplete->list, load))
            rc = fleet_no_memory(err);
        done->settled += rc == 0 && all;
    }
    return rc;
}

/* Gives `to` the rows and then the commits of loads of which it has nothing, or what an earlier run left half-way. */
static int copy_loads(struct shard *s, struct holding *to, const struct loads *loads, struct fleet_repaired *done,
                      struct error *err)
{
    const struct click_server *there = &to->node->server;
    int rc = in_pieces(s->f, there, loads, fleet_remove_rows, err);
    for (size_t i = 0; rc == 0 && i < loads->list.n; i++) {
        const int64_t load = loads->list.p[i];
        const struct click_server *from = &who_has(s, load)->node->server;
        bool all = false;
        rc = copy_rows(s->f, from, there, load, err);
        if (rc == 0)
            rc = has_rows(s->f, from, there, load, &all, err);
        if (rc == 0 && !all)
            rc = error_set(err, -MRD_EIO,
                           "%s: the rows that %s has of load %" PRId64 " did not arrive whole; run it again",
                           there->url, from->url, load);
        if (rc == 0)
            rc = copy_commit(s->f, from, there, load, err);
        done->copied += rc == 0;
    }
    return rc;
}

/* Every server of the shard gets the commits that it has not; with `copy`, the rows before them when they are not
 * there. */
static int spread_commits(struct shard *s, struct fleet_repaired *done, bool copy, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        struct loads missing = {0}, wanted = {0}, incomplete = {0};
        rc = loads_without(&missing, &s->commits, &s->nodes[i].commits, err);
        if (rc == 0)
            rc = loads_without(&wanted, &missing, &s->drops, err);
        if (rc == 0)
            rc = give_commits(s, &s->nodes[i], &wanted, &incomplete, done, err);
        if (rc == 0 && copy && incomplete.list.n)
            rc = copy_loads(s, &s->nodes[i], &incomplete, done, err);
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
        int opened = open_shard(&s, f, i, &ignored);
        if (opened == 0)
            rc = spread_drops(&s, err);
        if (opened == 0 && rc == 0)
            rc = spread_commits(&s, &done, false, err);
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
        const struct click_server *server = &s->nodes[i].node->server;
        struct loads begun = {0}, gone = {0};
        char sql[320];
        snprintf(sql, sizeof sql, "SELECT load FROM %s_local.begun WHERE " OLDER("at", "<="), s->f->database, older_s);
        rc = loads_read(&begun, server, sql, err);
        if (rc == 0)
            rc = loads_without(&gone, &begun, &s->commits, err);
        if (rc == 0)
            rc = in_pieces(s->f, server, &gone, fleet_remove_rows, err);
        if (rc == 0)
            rc = in_pieces(s->f, server, &gone, remove_begun, err);
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

int fleet_repair(struct fleet *f, int64_t older_s, struct fleet_repaired *out, struct error *err)
{
    *out = (struct fleet_repaired){0};
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < f->n_shards; i++) {
        struct shard s;
        rc = open_shard(&s, f, i, err);
        if (rc == 0)
            rc = spread_drops(&s, err);
        if (rc == 0)
            rc = spread_commits(&s, out, true, err);
        if (rc == 0)
            rc = remove_abandoned(&s, older_s, out, err);
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
        struct loads there = {0};
        rc = loads_read(&there, &s->nodes[i].node->server, click_string(&t), err);
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
            rc = open_shard(&s, f, i, err);
            if (rc == 0)
                rc = pass == 0 ? choose_drops(&s, older_s, condition, &out->traces, err) : remove_dropped(&s, err);
            close_shard(&s);
        }
    }
    return rc;
}
