/* Walks over structured queries: shared ones by id, WITH clauses in order, where in the spec an error is. */
#include "summary/query/structured_query.h"

#include "base/strpool.h"
#include "base/u64map.h"
#include "summary/query/generator.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- shared queries ---- */

struct shared_entry {
    const structured_query *q;
    char *table; /* where its rows are stored; NULL: nowhere */
};

struct structured_queries {
    struct strpool ids;
    VEC(struct shared_entry) entries; /* [id - 1] */
};

struct structured_queries *structured_queries_open(void)
{
    return mem_zalloc(sizeof(struct structured_queries));
}

void structured_queries_close(struct structured_queries *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->entries.n; i++)
        mem_free(s->entries.p[i].table);
    vec_free(&s->entries);
    strpool_free(&s->ids);
    mem_free(s);
}

static struct shared_entry *find_entry(const struct structured_queries *s, const char *id)
{
    strid at = s ? strpool_find(&s->ids, id, strlen(id)) : 0;
    return at ? &s->entries.p[at - 1] : NULL;
}

int structured_queries_add(struct structured_queries *s, const structured_query *q, struct error *err)
{
    if (!q->id || !*q->id)
        return error_set(err, -MRD_EINVALID, "a shared query needs an id");
    if (find_entry(s, q->id))
        return error_set(err, -MRD_EEXISTS, "query '%.100s': two queries have this id", q->id);
    if (!vec_push(&s->entries, (struct shared_entry){q, NULL}))
        return error_set(err, -MRD_ENOMEM, "out of memory");
    if (strpool_intern_str(&s->ids, q->id) != s->entries.n) {
        s->entries.n--;
        return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    return 0;
}

const structured_query *structured_queries_find(const struct structured_queries *s, const char *id)
{
    const struct shared_entry *e = find_entry(s, id);
    return e ? e->q : NULL;
}

int structured_queries_set_table(struct structured_queries *s, const char *id, const char *table, struct error *err)
{
    struct shared_entry *e = find_entry(s, id);
    if (!e)
        return error_set(err, -MRD_ENOTFOUND, "no query '%.100s'", id);
    char *copy = table ? mem_strdup(table) : NULL;
    if (table && !copy)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    mem_free(e->table);
    e->table = copy;
    return 0;
}

/* ---- where the walk is ---- */

enum { MAX_PATH = 4 * STRUCTURED_QUERY_MAX_DEPTH };

int path_enter(struct generator *g, const char *field, int index)
{
    if (g->path.n >= MAX_PATH)
        return query_fail(g, -MRD_ELIMIT, field, "nested more than %d deep", MAX_PATH);
    if (!vec_push(&g->path, (struct query_step){.field = field, .index = index}))
        return query_fail(g, -MRD_ENOMEM, field, "out of memory");
    return 0;
}

void path_leave(struct generator *g)
{
    g->path.n--;
}

/* "query 'id'" of the innermost query that has one, and in `text` the fields from there to here: the last ones, where
 * they are many. */
static const char *describe_path(const struct generator *g, char *text, size_t size)
{
    enum { SHOWN_FIELDS = 6 };
    size_t from = g->path.n, n = 0;
    while (from && !g->path.p[from - 1].id)
        from--;
    const char *id = from ? g->path.p[from - 1].id : NULL;
    if (g->path.n - from > SHOWN_FIELDS) {
        from = g->path.n - SHOWN_FIELDS;
        n += (size_t)snprintf(text, size, "…");
    }
    text[n] = 0;
    for (; from < g->path.n && n < size; from++) {
        const struct query_step *s = &g->path.p[from];
        const char *dot = n ? "." : "";
        if (*s->field)
            n += (size_t)(s->index < 0 ? snprintf(text + n, size - n, "%s%s", dot, s->field)
                                       : snprintf(text + n, size - n, "%s%s[%d]", dot, s->field, s->index));
    }
    return id;
}

int query_fail(struct generator *g, int code, const char *field, const char *fmt, ...)
{
    char path[256];
    const char *id = describe_path(g, path, sizeof path);
    const char *dot = field && path[0] ? "." : "", *colon = field || path[0] ? ": " : "";
    va_list ap;
    va_start(ap, fmt);
    error_vset(g->err, code, fmt, ap);
    va_end(ap);
    if (g->err)
        error_prefix(g->err, id ? "query '%.100s'%s%s%s%s" : "query%.0s%s%s%s%s", id ? id : "", colon, path, dot,
                     field ? field : "");
    return code;
}

/* ---- modules and preambles ---- */

int need_module(struct generator *g, const char *field, const char *module)
{
    size_t len = strlen(module);
    if (!len || strspn(module, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.*") != len)
        return query_fail(g, -MRD_EINVALID, field, "'%.100s' is not a module name", module);
    return strpool_intern(&g->out->modules, module, len) ? 0 : query_fail(g, -MRD_ENOMEM, NULL, "out of memory");
}

int need_preamble(struct generator *g, struct slice text)
{
    if (text.len > STRUCTURED_QUERY_MAX_BYTES - g->bytes)
        return query_fail(g, -MRD_ELIMIT, NULL, "the SQL would be longer than %d bytes", STRUCTURED_QUERY_MAX_BYTES);
    g->bytes += text.len;
    return strpool_intern(&g->out->preambles, text.p, text.len) ? 0 : query_fail(g, -MRD_ENOMEM, NULL, "out of memory");
}

/* ---- queries ---- */

/* A name for a WITH clause: a number makes it unlike any other, the id is for the reader. */
static const char *unit_name(struct generator *g, const structured_query *q)
{
    enum { SHOWN_ID = 40 };
    char id[SHOWN_ID + 1] = "";
    for (size_t i = 0; q->id && q->id[i] && i < SHOWN_ID; i++)
        id[i] = isalnum((unsigned char)q->id[i]) ? q->id[i] : '_';
    return arena_printf(&g->out->mem, *id ? "_sq_%zu_%s" : "_sq_%zu", ++g->named_units, id);
}

static int put_modules(struct generator *g, const structured_query *q)
{
    for (size_t i = 0; i < q->n_referenced_modules; i++) {
        int rc = need_module(g, "referenced_modules", q->referenced_modules[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The text of `q`, whose step is the last of the path; `put` writes all of it or its FROM clause. */
static int write_query(struct generator *g, const structured_query *q,
                       int (*put)(struct query_text *, const structured_query *), struct query_text *t)
{
    *t = (struct query_text){.g = g, .uses = 1};
    if (g->depth >= STRUCTURED_QUERY_MAX_DEPTH)
        return query_fail(g, -MRD_ELIMIT, NULL, "more than %d queries inside each other", STRUCTURED_QUERY_MAX_DEPTH);
    g->depth++;
    int rc = put_modules(g, q);
    if (rc == 0)
        rc = put(t, q);
    g->depth--;
    return rc < 0 ? rc : t->failed;
}

/* Makes `q` a WITH clause behind those that it reads, or another name for one of them. */
static int add_unit(struct generator *g, const structured_query *q, enum query_use use, uint32_t *unit)
{
    struct query_text t;
    bool named = use != USED_IN_SQL && is_whole(q);
    int rc = write_query(g, q, named ? put_source : put_query, &t);
    if (rc == 0) {
        char *text = arena_strndup(&g->out->mem, t.p, t.n);
        struct query_unit u = {.name = named ? text : unit_name(g, q),
                               .sql = named ? NULL : text,
                               .sql_len = t.n,
                               .narrowing = use == USED_ONCE && is_narrowing(q),
                               .uses = t.uses - named};
        *unit = (uint32_t)g->units.n;
        if (!text || !u.name || !vec_push(&g->units, u))
            rc = query_fail(g, -MRD_ENOMEM, NULL, "out of memory");
    }
    query_text_free(&t);
    return rc;
}

int nested_query(struct generator *g, const char *field, int index, const structured_query *q, enum query_use use,
                 uint32_t *unit)
{
    if (!q)
        return query_fail(g, -MRD_EINVALID, field, "is missing");
    int rc = path_enter(g, field, index);
    if (rc < 0)
        return rc;
    vec_last(&g->path)->id = q->id && *q->id ? q->id : NULL;
    rc = add_unit(g, q, use, unit);
    path_leave(g);
    return rc;
}

int shared_query(struct generator *g, const char *id, uint32_t *unit, const char **table)
{
    static const char field[] = "inner_query_id";
    const struct shared_entry *e = find_entry(g->shared, id);
    *table = NULL;
    for (size_t i = 0; i < g->path.n; i++)
        if (g->path.p[i].id && strcmp(g->path.p[i].id, id) == 0)
            return query_fail(g, -MRD_EINVALID, field, "a cycle: '%.100s' depends on itself", id);
    if (!e)
        return query_fail(g, -MRD_ENOTFOUND, field, "there is no query '%.100s'", id);
    if (e->table) {
        *table = e->table;
        return 0;
    }
    const uint64_t *known = u64map_get(&g->shared_units, (uint64_t)(uintptr_t)e->q);
    if (known) {
        *unit = (uint32_t)*known;
        return 0;
    }
    int rc = nested_query(g, field, -1, e->q, USED_BY_ID, unit);
    if (rc == 0 && !u64map_set(&g->shared_units, (uint64_t)(uintptr_t)e->q, *unit))
        rc = query_fail(g, -MRD_ENOMEM, field, "out of memory");
    return rc;
}

/* ---- the statement ---- */

/* WITH, the clauses in order, and the text of the query itself. */
static int assemble(struct generator *g, const struct query_text *root)
{
    size_t size = root->n + 1, n = 0;
    const char *before = "WITH ";
    for (size_t i = 0; i < g->units.n; i++)
        if (g->units.p[i].sql)
            size += strlen(g->units.p[i].name) + g->units.p[i].sql_len + sizeof "WITH  AS NOT MATERIALIZED (\n\n)\n";
    char *sql = arena_alloc_bytes(&g->out->mem, size);
    if (!sql)
        return query_fail(g, -MRD_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < g->units.n; i++) {
        const struct query_unit *u = &g->units.p[i];
        if (!u->sql)
            continue;
        n += (size_t)snprintf(sql + n, size - n, "%s%s AS %s(\n%s\n)", before, u->name,
                              u->narrowing ? "NOT MATERIALIZED " : "", u->sql);
        before = ",\n";
    }
    if (n)
        sql[n++] = '\n';
    memcpy(sql + n, root->p, root->n + 1);
    g->out->sql = sql;
    g->out->sql_len = n + root->n;
    return 0;
}

int structured_query_sql(const struct structured_queries *shared, const structured_query *q, struct structured_sql *out,
                         struct error *err)
{
    struct generator g = {.shared = shared, .out = out, .err = err};
    struct query_text root = {0};
    int rc = path_enter(&g, "", -1);
    if (rc == 0) {
        g.path.p[0].id = q->id && *q->id ? q->id : NULL;
        rc = write_query(&g, q, put_query, &root);
    }
    if (rc == 0)
        rc = assemble(&g, &root);
    query_text_free(&root);
    vec_free(&g.units);
    vec_free(&g.path);
    u64map_free(&g.shared_units);
    return rc;
}

const char *structured_sql_standalone(struct structured_sql *out)
{
    static const char include[] = "INCLUDE PERFETTO MODULE %s;\n", preamble[] = "%s\n;\n";
    size_t size = out->sql_len + 1, n = 0;
    for (strid i = 1; i <= out->modules.n; i++)
        size += strpool_view(&out->modules, i).len + sizeof include;
    for (strid i = 1; i <= out->preambles.n; i++)
        size += strpool_view(&out->preambles, i).len + sizeof preamble;
    char *text = arena_alloc_bytes(&out->mem, size);
    if (!text)
        return NULL;
    for (strid i = 1; i <= out->modules.n; i++)
        n += (size_t)snprintf(text + n, size - n, include, strpool_cstr(&out->modules, i));
    for (strid i = 1; i <= out->preambles.n; i++)
        n += (size_t)snprintf(text + n, size - n, preamble, strpool_cstr(&out->preambles, i));
    memcpy(text + n, out->sql, out->sql_len + 1);
    return text;
}

void structured_sql_free(struct structured_sql *out)
{
    arena_free(&out->mem);
    strpool_free(&out->modules);
    strpool_free(&out->preambles);
    *out = (struct structured_sql){0};
}
