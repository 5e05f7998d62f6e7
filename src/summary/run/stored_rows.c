/* Tables by the SQL that made them. */
#include "summary/run/stored_rows.h"

#include "base/clock.h"
#include "base/hash.h"

#include <time.h>

static int no_memory(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

static uint64_t hash_of(const char *sql)
{
    return hash_bytes(sql, strlen(sql));
}

struct stored *stored_rows_find(const struct stored_rows *s, const char *whole_sql)
{
    uint64_t *at = u64map_get(&s->by_sql, hash_of(whole_sql));
    struct stored *stored = at ? (struct stored *)(uintptr_t)*at : NULL;
    return stored && strcmp(stored->sql, whole_sql) == 0 ? stored : NULL;
}

static void link_in(struct stored_rows *s, struct stored *stored)
{
    stored->next = s->all;
    if (s->all)
        s->all->prev = stored;
    s->all = stored;
    u64map_set(&s->by_sql, hash_of(stored->sql), (uintptr_t)stored); /* without memory: it is not shared */
}

static void link_out(struct stored_rows *s, struct stored *stored)
{
    if (stored->prev)
        stored->prev->next = stored->next;
    else
        s->all = stored->next;
    if (stored->next)
        stored->next->prev = stored->prev;
    if (stored_rows_find(s, stored->sql) == stored)
        u64map_del(&s->by_sql, hash_of(stored->sql));
}

static void free_stored(struct stored *stored)
{
    arena_free(&stored->mem);
    mem_free(stored->sql);
    mem_free(stored);
}

void stored_rows_release(struct stored_rows *s, struct query_runner *runner, struct stored *stored)
{
    if (!stored || --stored->users)
        return;
    link_out(s, stored);
    query_runner_drop(runner, &stored->table);
    free_stored(stored);
}

void stored_rows_gone(struct stored_rows *s)
{
    for (struct stored *stored = s->all; stored; stored = stored->next)
        stored->table.name[0] = '\0';
    u64map_clear(&s->by_sql);
}

void stored_rows_free(struct stored_rows *s)
{
    u64map_free(&s->by_sql);
}

static double now_ms(void)
{
    return (double)clock_now_ns(CLOCK_MONOTONIC) / 1e6;
}

/* The columns and the number of rows of a new table. */
static int describe(struct stored *stored, struct engine *e, struct error *err)
{
    struct engine_result r = {0};
    const struct table *rows = engine_find_table(e, stored->table.name);
    const char *sql = arena_printf(&stored->mem, "SELECT * FROM %s LIMIT 0", stored->table.name);
    int rc = sql ? engine_query(e, NULL, slice_str(sql), &r, NULL, err) : no_memory(err);
    stored->n_rows = rows ? rows->n_rows : 0;
    stored->columns = rc == 0 ? arena_alloc(&stored->mem, ((size_t)r.n_columns + 1) * sizeof *stored->columns) : NULL;
    for (int i = 0; rc == 0 && stored->columns && i < r.n_columns; i++) {
        const char *name = engine_result_column_name(&r, i);
        stored->columns[stored->n_columns++] = arena_strndup(&stored->mem, name, strlen(name));
    }
    engine_result_close(&r);
    return rc == 0 && stored->mem.failed ? no_memory(err) : rc;
}

int stored_rows_add(struct stored_rows *s, struct query_runner *runner, const char *origin,
                    const struct structured_sql *sql, const char *whole_sql, struct stored **out, struct error *err)
{
    struct stored *stored = *out = mem_zalloc(sizeof *stored);
    double start = now_ms();
    if (!stored)
        return no_memory(err);
    stored->sql = mem_strdup(whole_sql);
    int rc = stored->sql ? query_runner_prepare(runner, origin, sql, err) : no_memory(err);
    if (rc == 0)
        rc = query_runner_store(runner, origin, &s->names, sql->sql, &stored->table, err);
    stored->duration_ms = now_ms() - start;
    if (rc == 0)
        rc = describe(stored, runner->engine, err);
    if (rc == 0) {
        link_in(s, stored);
        return 0;
    }
    query_runner_drop(runner, &stored->table);
    free_stored(stored);
    *out = NULL;
    return rc;
}
