/* What stands behind FROM, by its names: entries with columns, and which of them an expression means. */
#include "sql/plan/plan_private.h"

#include <string.h>

struct scope_column *scope_find_in(const struct scope_entry *e, struct sql_name name, bool joined)
{
    for (uint32_t i = 0; i < e->n_columns; i++)
        if (sql_name_equal(e->columns[i].name, name) && (joined || !e->columns[i].joined))
            return &e->columns[i];
    return NULL;
}

const struct scope_column *scope_column_of(const struct reader *r, const struct sql_expr *x)
{
    for (uint32_t i = 0; i < r->scope->n_entries; i++) {
        const struct scope_entry *e = &r->scope->entries[i];
        const struct scope_column *c = NULL;
        if (!x->table.len || sql_name_equal(x->table, e->alias))
            c = scope_find_in(e, x->name, x->table.len != 0);
        if (c)
            return c;
    }
    return NULL;
}

bool scope_star_takes(struct scope_column *c, const struct sql_item *star)
{
    bool takes = !c->hidden && (star->table.len || !c->joined);
    c->used |= takes;
    return takes;
}

int scope_find(const struct reader *r, const struct sql_expr *x, struct plan_expr **out)
{
    struct scope_column *found = NULL;
    if (x->schema.len)
        return -1;
    for (uint32_t i = 0; i < r->scope->n_entries; i++) {
        const struct scope_entry *e = &r->scope->entries[i];
        if (x->table.len && !sql_name_equal(x->table, e->alias))
            continue;
        struct scope_column *c = scope_find_in(e, x->name, x->table.len != 0);
        if (c && found)
            return -1;
        found = c ? c : found;
    }
    if (!found)
        return 0;
    found->used = true;
    *out = scope_column_value(found, !x->table.len);
    if (*out && !(*out)->sources && (*out)->op != X_CONST && !r->in_aggregate)
        r->plan->bare_constant = true;
    return *out ? 1 : -1;
}

struct scope_entry *scope_add_entry(struct reader *r, struct sql_name alias, uint32_t n_columns)
{
    struct scope *s = r->scope;
    if (s->n_entries == PLAN_MAX_SOURCES)
        return NULL;
    struct scope_entry *e = &s->entries[s->n_entries];
    *e = (struct scope_entry){.alias = alias};
    e->columns = arena_zalloc(r->planner->arena, (n_columns + 1) * sizeof *e->columns);
    if (!e->columns)
        return NULL;
    s->n_entries++;
    return e;
}

/* SQLite calls the second column x of a query x:1. */
bool scope_add_column(struct reader *r, struct scope_entry *e, struct sql_name name, struct plan_expr *x)
{
    char *made = NULL;
    if (sql_name_is(name, "true") || sql_name_is(name, "false")) /* SQLite calls it column1, or what its place is */
        return false;
    for (int again = 1; scope_find_in(e, name, true); again++) {
        if (again > 3 || memchr(name.p, ':', name.len))
            return false;
        made = arena_printf(r->planner->arena, "%.*s:%d", (int)name.len, name.p, again);
        if (!made)
            return false;
        struct sql_name numbered = {made, (uint32_t)strlen(made), name.at};
        if (!scope_find_in(e, numbered, true)) {
            name = numbered;
            break;
        }
    }
    e->columns[e->n_columns++] = (struct scope_column){.name = name, .expr = x};
    return true;
}
