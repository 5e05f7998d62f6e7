/* CREATE PERFETTO INDEX and DROP PERFETTO INDEX. */
#include "sql/dialect/undo.h"

#include <strings.h>

static char *name_of(const struct sql_token *t)
{
    return token_name(t->text, t->len);
}

static void forget_index(struct dialect *d, struct sql_index *i)
{
    mem_free(i->name);
    mem_free(i->table);
    *i = *vec_last(&d->indexes);
    d->indexes.n--;
}

/* An index whose table is gone, or was made anew, went with it. */
static struct sql_index *find_index(struct dialect *d, const char *name)
{
    for (size_t i = 0; i < d->indexes.n; i++) {
        struct sql_index *x = &d->indexes.p[i];
        if (strcasecmp(x->name, name) != 0)
            continue;
        if (engine_has_index(d->e, x->name, x->table))
            return x;
        forget_index(d, x);
        return NULL;
    }
    return NULL;
}

static void remove_index(struct dialect *d, struct sql_index *i)
{
    engine_drop_index(d->e, i->name, i->table);
    forget_index(d, i);
}

void exec_forget_index(struct dialect *d, const char *name)
{
    struct sql_index *i = find_index(d, name);
    if (i)
        remove_index(d, i);
}

enum { INDEX_MAX_COLUMNS = 12 };

static bool has_column(const struct table *t, const char *name)
{
    for (uint32_t i = 0; i < t->def->n_columns; i++)
        if (strcasecmp(t->def->columns[i].name, name) == 0)
            return true;
    return false;
}

/* The index itself; the first error of a column points at it. */
static int make_index(struct exec *x, const struct parsed *p, const char *name, const char *on)
{
    char *columns[INDEX_MAX_COLUMNS] = {0};
    int rc = 0;
    if (p->args.n > INDEX_MAX_COLUMNS)
        return exec_fail(x, p->args.p[INDEX_MAX_COLUMNS].name, "CREATE PERFETTO INDEX: more than %d columns",
                         INDEX_MAX_COLUMNS);
    for (size_t i = 0; rc == 0 && i < p->args.n; i++) {
        columns[i] = name_of(p->args.p[i].name);
        rc = columns[i] ? 0 : error_set(x->err, -MRD_ENOMEM, "out of memory");
        if (rc == 0 && !has_column(engine_find_table(x->d->e, on), columns[i]))
            rc =
                exec_fail(x, p->args.p[i].name, "CREATE PERFETTO INDEX: table '%s' has no column '%s'", on, columns[i]);
    }
    if (rc == 0 && (rc = engine_add_index(x->d->e, name, on, (const char *const *)columns, p->args.n, x->err)) != 0)
        rc = exec_fail_offset(x, x->p, x->n, -1);
    for (size_t i = 0; i < p->args.n; i++)
        mem_free(columns[i]);
    return rc;
}

static int add_index(struct exec *x, const struct parsed *p, const char *name, const char *on)
{
    if (!engine_find_table(x->d->e, on))
        return exec_fail(x, p->on, "CREATE PERFETTO INDEX: table '%s' not found", on);
    struct sql_index *old = find_index(x->d, name);
    if (old && !p->replace)
        return exec_fail(x, p->name, "CREATE PERFETTO INDEX: index '%s' already exists", name);
    struct sql_index made = {mem_strdup(name), mem_strdup(on)};
    bool room = made.name && made.table && vec_reserve(&x->d->indexes, x->d->indexes.n + 1);
    int rc = room ? make_index(x, p, name, on) : error_set(x->err, -MRD_ENOMEM, "out of memory");
    if (rc) {
        mem_free(made.name);
        mem_free(made.table);
        return rc;
    }
    old = find_index(x->d, name); /* the room may lie elsewhere than before */
    if (old)
        remove_index(x->d, old);
    vec_push(&x->d->indexes, made);
    return old ? 0 : undo_note(x, UNDO_INDEX, name, 0);
}

int exec_index(struct exec *x, const struct parsed *p)
{
    char *name = name_of(p->name), *on = name_of(p->on);
    int rc = name && on ? add_index(x, p, name, on) : error_set(x->err, -MRD_ENOMEM, "out of memory");
    mem_free(name);
    mem_free(on);
    return rc;
}

int exec_drop_index(struct exec *x, const struct parsed *p)
{
    char *name = name_of(p->name), *on = name_of(p->on);
    struct sql_index *index = name && on ? find_index(x->d, name) : NULL;
    int rc = 0;
    if (!index || strcasecmp(index->table, on) != 0)
        rc = exec_fail(x, p->name, "DROP PERFETTO INDEX: no index '%s' on table '%s'", name ? name : "", on ? on : "");
    else
        remove_index(x->d, index);
    mem_free(name);
    mem_free(on);
    return rc;
}
