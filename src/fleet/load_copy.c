/* Gives a server of a shard what another one has of a load. */
#include "fleet/load_copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { COPY_ROWS = 1 << 16 };                /* that are in memory at a time */
#define MOST_ROWS ((uint64_t)UINT32_MAX + 1) /* of a load in one table: an id has 32 bits */

int fleet_named_table(const struct fleet *f, const struct click_server *s, const char *name, const char *ending,
                      struct error *err)
{
    int at = fleet_schema_find(&f->schema, name, ending);
    return at >= 0 ? at
                   : error_set(err, -MRD_EFORMAT,
                               "%s: names a table '%.60s', which no fleet has: nothing is done with it", s->url, name);
}

static const char *name_of(const struct fleet *f, size_t table)
{
    return f->schema.tables.p[table].name;
}

/* ---- what a commit says ---- */

static int take_line(struct load_rows *r, const struct fleet *f, const struct click_server *from, int64_t load,
                     const struct click_rows *line, struct error *err)
{
    int at = fleet_named_table(f, from, click_cell(line, 0), "", err);
    if (at < 0)
        return error_prefix(err, "the commit of load %" PRId64, load);
    const uint64_t n = click_u64(line, 1);
    if (n > MOST_ROWS)
        return error_set(err, -MRD_EFORMAT,
                         "%s: the commit of load %" PRId64 " says %" PRIu64 " rows of %s, and a load has %" PRIu64
                         " at most",
                         from->url, load, n, name_of(f, (size_t)at), MOST_ROWS);
    if (r->n[at])
        return error_set(err, -MRD_EFORMAT, "%s: the commit of load %" PRId64 " names %s twice", from->url, load,
                         name_of(f, (size_t)at));
    r->n[at] = n;
    return 0;
}

int load_rows_read(struct load_rows *out, const struct fleet *f, const struct click_server *from, int64_t load,
                   struct error *err)
{
    struct click_rows *rows;
    out->n = mem_zalloc((f->schema.tables.n + 1) * sizeof *out->n);
    if (!out->n)
        return fleet_no_memory(err);
    int rc = fleet_ask(from, &rows, err,
                       "SELECT t, n FROM %s_local.commits ARRAY JOIN tables AS t, rows AS n WHERE load = %" PRId64
                       " LIMIT 1 BY t",
                       f->database, load);
    while (rc >= 0 && rows && (rc = click_step_whole(rows, 2, err)) == 1)
        if ((rc = take_line(out, f, from, load, rows, err)) < 0)
            break;
    click_close(rows);
    return rc;
}

void load_rows_free(struct load_rows *r)
{
    mem_free(r->n);
}

static int count_rows(const struct fleet *f, const struct click_server *s, size_t table, int64_t load, uint64_t *n,
                      struct error *err)
{
    return fleet_number(s, n, err, "SELECT count() FROM %s_local.`%s_rows` WHERE load = %" PRId64, f->database,
                        name_of(f, table), load);
}

int load_rows_compare(const struct load_rows *r, const struct fleet *f, const struct click_server *s, int64_t load,
                      bool *all, struct error *err)
{
    int rc = 0;
    *all = true;
    for (size_t i = 0; rc == 0 && *all && i < f->schema.tables.n; i++) {
        uint64_t n = 0;
        if (r->n[i])
            rc = count_rows(f, s, i, load, &n, err);
        *all = rc == 0 && n == r->n[i];
    }
    return rc;
}

/* ---- copying ---- */

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

int load_commit_copy(const struct fleet *f, const struct click_server *from, const struct click_server *to,
                     int64_t load, struct error *err)
{
    char sql[200];
    bool empty;
    snprintf(sql, sizeof sql, "SELECT * FROM %s_local.commits WHERE load = %" PRId64 " LIMIT 1 FORMAT Native",
             f->database, load);
    return copy_answer(f, from, to, sql, "commits", &empty, err);
}

/* What one round copies: rows of a load in a table. */
struct page {
    size_t table;
    int64_t load, after, last; /* ids in between, the last one among them */
};

/* Where the next page ends: COPY_ROWS ids further, or with the load. Only ids are read for that. */
static int find_page(const struct fleet *f, const struct click_server *from, struct page *p, struct error *err)
{
    char sql[512], cell[32];
    char *end;
    snprintf(sql, sizeof sql,
             "SELECT max(id) FROM (SELECT id FROM %s_local.`%s_rows` PREWHERE load = %" PRId64 " AND id > %" PRId64
             " ORDER BY id LIMIT %d)",
             f->database, name_of(f, p->table), p->load, p->after, COPY_ROWS);
    int rc = click_one(from, sql, cell, sizeof cell, err);
    p->last = strtoll(cell, &end, 10);
    if (rc == 0 && (*end || p->last <= p->after))
        rc = error_set(err, -MRD_EFORMAT, "%s: load %" PRId64 " of %s has fewer rows than its commit says", from->url,
                       p->load, name_of(f, p->table));
    return rc;
}

static int copy_page(const struct fleet *f, const struct click_server *from, const struct click_server *to,
                     struct page *p, bool only, struct error *err)
{
    char sql[512], rows[160], ids[80] = "";
    bool empty;
    int rc = only ? 0 : find_page(f, from, p, err);
    if (rc < 0)
        return rc;
    if (!only)
        snprintf(ids, sizeof ids, " AND id > %" PRId64 " AND id <= %" PRId64, p->after, p->last);
    snprintf(rows, sizeof rows, "%s_rows", name_of(f, p->table));
    snprintf(sql, sizeof sql, "SELECT * FROM %s_local.`%s` PREWHERE load = %" PRId64 "%s LIMIT %d FORMAT Native",
             f->database, rows, p->load, ids, COPY_ROWS);
    rc = copy_answer(f, from, to, sql, rows, &empty, err);
    p->after = p->last;
    if (rc == 0 && empty)
        rc = error_set(err, -MRD_EFORMAT, "%s: load %" PRId64 " of %s has fewer rows than its commit says", from->url,
                       p->load, name_of(f, p->table));
    return rc;
}

/* What a load has in one table, in rounds: there are as many as the number of rows asks for, and each must bring all of
 * its own. An id is that of one row. */
static int copy_table(const struct fleet *f, const struct click_server *from, const struct click_server *to,
                      size_t table, int64_t load, uint64_t n, int (*each)(void *ctx, uint64_t rows, struct error *err),
                      void *ctx, struct error *err)
{
    struct page p = {.table = table, .load = load, .after = -1};
    int rc = 0;
    for (uint64_t done = 0, there; rc == 0 && done < n;) {
        const uint64_t wanted = n - done < COPY_ROWS ? n : done + COPY_ROWS;
        rc = copy_page(f, from, to, &p, n <= COPY_ROWS, err);
        if (rc == 0)
            rc = count_rows(f, to, table, load, &there, err);
        if (rc == 0 && there != wanted)
            rc = error_set(err, -MRD_EFORMAT,
                           "%s: has %" PRIu64 " rows of load %" PRId64 " of %s after %s gave it %" PRIu64
                           ": the copy is given up; run it again",
                           to->url, there, load, name_of(f, table), from->url, wanted);
        if (rc == 0)
            rc = each(ctx, wanted - done, err);
        done = wanted;
    }
    return rc;
}

int load_rows_copy(const struct load_rows *r, const struct fleet *f, const struct click_server *from,
                   const struct click_server *to, int64_t load,
                   int (*each)(void *ctx, uint64_t rows, struct error *err), void *ctx, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < f->schema.tables.n; i++)
        rc = copy_table(f, from, to, i, load, r->n[i], each, ctx, err);
    return rc;
}
