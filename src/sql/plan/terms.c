/* Terms of GROUP BY and ORDER BY: places in the list behind SELECT, names of it, or expressions. */
#include "sql/plan/varied.h"

/* The item that a number names, or an alias in ORDER BY; -1: none. */
static int item_of(const struct reader *r, const struct sql_select *s, const struct sql_expr *x, bool aliases)
{
    int at = 0, found = -1;
    for (const struct sql_item *i = s->items; i; i = i->next, at++) {
        if (i->star)
            return -2;
        if (aliases && x->kind == EXPR_COLUMN && !x->table.len && i->alias.len && sql_name_equal(i->alias, x->name) &&
            found < 0)
            found = at;
    }
    if (x->kind != EXPR_INTEGER)
        return found;
    const struct sql_token *t = &r->tree->tokens[x->at.first];
    int place = 0;
    for (uint32_t i = 0; i < t->len && place < 1000; i++)
        place = place * 10 + (t->text[i] - '0');
    return place >= 1 && place <= at ? place - 1 : -2;
}

static bool has_star(const struct sql_select *s)
{
    for (const struct sql_item *i = s->items; i; i = i->next)
        if (i->star)
            return true;
    return false;
}

/* GROUP BY shows what it compares. */
static struct plan_expr *read_compared(struct reader *r, enum collation c, const struct sql_expr *x, bool order)
{
    enum collation own = collate_take(&x);
    c = c == COLLATE_NONE ? own : c;
    if (own == COLLATE_UNKNOWN || c == COLLATE_UNKNOWN)
        return NULL;
    struct plan_expr *json = read_json(r, x);
    if (json)
        return collate_value(r, c, json);
    struct plan_expr *out = order ? read_mixed(r, x) : read_varied(r, x);
    if (out && out->varied)
        return collate_value(r, c, order ? varied_compared(r->plan, out) : out);
    return collate_value(r, c, mixed_to_real(r, out));
}

/* What is read in another way where values are compared. */
static bool is_read_as_term(const struct sql_expr *x)
{
    bool json = x->kind == EXPR_FUNCTION && (sql_name_is(x->name, "json_object") || sql_name_is(x->name, "json_array"));
    return json || x->kind == EXPR_COLLATE;
}

/* The item that a name of GROUP BY means, where no table has it; NULL: it is no such name. */
static const struct sql_item *alias_of(const struct reader *r, const struct sql_select *s, const struct sql_expr *x)
{
    const struct sql_item *found = NULL;
    struct plan_expr *column;
    if (x->kind != EXPR_COLUMN || x->table.len || scope_find(r, x, &column) != 0)
        return NULL;
    for (const struct sql_item *i = s->items; i; i = i->next)
        if (i->alias.len && sql_name_equal(i->alias, x->name)) {
            if (found)
                return NULL;
            found = i;
        }
    return found && found->expr && is_read_as_term(found->expr) ? found : NULL;
}

struct plan_expr *read_term(struct reader *r, const struct sql_select *s, const struct sql_expr *x, bool order)
{
    enum collation c = collate_take(&x);
    int item = x->kind == EXPR_INTEGER || !has_star(s) ? item_of(r, s, x, order) : -1;
    for (const struct sql_item *i = s->items; order && i && x->kind == EXPR_COLUMN && has_star(s); i = i->next)
        if (i->alias.len && sql_name_equal(i->alias, x->name)) /* which it means, whatever * has */
            return NULL;
    if (item == -2)
        return NULL;
    const struct sql_item *i = item < 0 && !order ? alias_of(r, s, x) : item < 0 ? NULL : s->items;
    for (int k = 0; k < item; k++)
        i = i->next;
    return read_compared(r, c, i ? i->expr : x, order);
}
