/* What order rows come in when SQLite runs a query: its planner chooses how loops lie within each other, and says so in
 * EXPLAIN QUERY PLAN. Rows are ordered by the rows of the outermost loop, then by those of the next. */
#include "sql/plan/plan_private.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = 120 };

struct line {
    int id, parent;
    const char *text;
};

struct loops {
    struct planner *planner;
    const char *text;
    bool part; /* of a statement: for that as a whole SQLite may make other indexes, or none */
    bool loaded, indexes_read;
    const struct made_indexes *indexes; /* NULL: not known */
    struct line lines[MAX_LINES];
    int n;
};

struct loops *loops_new(struct planner *planner, const char *text, bool part)
{
    struct loops *l = arena_zalloc(planner->arena, sizeof *l);
    if (l) {
        l->planner = planner;
        l->text = text;
        l->part = part;
    }
    return l;
}

/* Most plans need no look at SQLite's. */
static void load(struct loops *l)
{
    if (l->loaded)
        return;
    char *sql = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", l->text);
    sqlite3_stmt *stmt = NULL;
    int rc = sql ? engine_compile(l->planner->e, sql, -1, 0, &stmt, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    l->loaded = true;
    while (rc == SQLITE_OK && stmt && (rc = sqlite3_step(stmt)) == SQLITE_ROW && l->n < MAX_LINES) {
        const char *detail = (const char *)sqlite3_column_text(stmt, 3);
        const char *copy = detail ? arena_strndup(l->planner->arena, detail, strlen(detail)) : NULL;
        rc = copy ? SQLITE_OK : SQLITE_NOMEM;
        if (copy)
            l->lines[l->n++] = (struct line){sqlite3_column_int(stmt, 0), sqlite3_column_int(stmt, 1), copy};
    }
    sqlite3_finalize(stmt);
    if (rc != SQLITE_DONE)
        l->n = 0;
}

/* The step of an arm of the compound that is this step. */
static int arm_of(struct loops *l, int parent, uint32_t arm)
{
    int compound = -1;
    uint32_t n = 0;
    load(l);
    for (int i = 0; i < l->n; i++) {
        if (l->lines[i].parent == parent && compound < 0 && strcmp(l->lines[i].text, "COMPOUND QUERY") == 0)
            compound = l->lines[i].id;
        else if (l->lines[i].parent == compound && ++n == arm)
            return l->lines[i].id;
    }
    return -1;
}

int loops_parent(const struct reader *r)
{
    int parent = 0, child;
    if (!r->loops)
        return -1;
    if (r->loop_up) {
        parent = loops_parent(r->loop_up);
        child = loops_child(r->loops, parent, r->loop_name);
        parent = child < 0 && r->loop_flat ? parent : child;
    }
    return r->loop_arm && parent >= 0 ? arm_of(r->loops, parent, r->loop_arm) : parent;
}

bool loops_say(struct loops *l, int parent, const char *text)
{
    if (!l || parent < 0)
        return false;
    load(l);
    for (int i = 0; i < l->n; i++)
        if (l->lines[i].parent == parent && strcmp(l->lines[i].text, text) == 0)
            return true;
    return false;
}

/* The name behind a verb, when the line begins with it. */
static bool name_behind(const char *text, const char *verb, struct sql_name *out)
{
    size_t n = strlen(verb);
    if (strncmp(text, verb, n) != 0)
        return false;
    out->p = text + n;
    out->len = (uint32_t)strcspn(out->p, " ");
    return true;
}

/* The terms of an order in what our tables say of a scan (` o5 o3- g d`); false: it is not just a grouping. */
static bool read_codes(const char *at, int16_t *columns, uint32_t *n)
{
    bool grouped = strstr(at, " g") != NULL;
    if (strstr(at, " d")) /* one row of each kind, as they lie */
        return grouped;
    for (; (at = strstr(at, " o")); at += 2) {
        char *end;
        long column = strtol(at + 2, &end, 10);
        if (!grouped || end == at + 2 || *end == '-' || *n == PLAN_MAX_ORDER)
            return false;
        columns[(*n)++] = (int16_t)column;
    }
    return true;
}

bool loops_order_of_codes(struct loops *l, int parent, int16_t columns[PLAN_MAX_ORDER], uint32_t *n)
{
    bool outermost = true, ok = l && parent >= 0;
    *n = 0;
    for (int i = 0; ok && i < l->n; i++) {
        struct sql_name name;
        const char *index = strstr(l->lines[i].text, " INDEX 0:");
        if (l->lines[i].parent != parent ||
            (!name_behind(l->lines[i].text, "SCAN ", &name) && !name_behind(l->lines[i].text, "SEARCH ", &name)))
            continue;
        if (index)
            ok = outermost ? read_codes(index + 9, columns, n) : !strstr(index, " o");
        outermost = false;
    }
    return ok;
}

/* SQLite numbers the queries that have no name. */
static bool is_unnamed(struct sql_name printed)
{
    static const char start[] = "(subquery-";
    return printed.len >= sizeof start && memcmp(printed.p, start, sizeof start - 1) == 0;
}

int loops_child(struct loops *l, int parent, struct sql_name name)
{
    int found = -1;
    if (!l)
        return -1;
    load(l);
    for (int i = 0; parent >= 0 && i < l->n; i++) {
        struct sql_name is;
        if (l->lines[i].parent != parent ||
            (!name_behind(l->lines[i].text, "CO-ROUTINE ", &is) && !name_behind(l->lines[i].text, "MATERIALIZE ", &is)))
            continue;
        if (!sql_name_equal(is, name) && (name.len || !is_unnamed(is)))
            continue;
        if (found >= 0) /* two of that name, or without one */
            return -1;
        found = l->lines[i].id;
    }
    return found;
}

bool loops_have_none(struct loops *l, struct sql_name name)
{
    if (!l)
        return false;
    load(l);
    for (int i = 0; i < l->n; i++) {
        struct sql_name is;
        if ((name_behind(l->lines[i].text, "CO-ROUTINE ", &is) || name_behind(l->lines[i].text, "MATERIALIZE ", &is)) &&
            (name.len ? sql_name_equal(is, name) : is_unnamed(is)))
            return false;
    }
    return l->n > 0 && l->n < MAX_LINES;
}

static bool has_name(const struct plan_source *s, struct sql_name name)
{
    for (uint32_t k = 0; k < s->n_printed; k++)
        if (s->printed[k].len ? sql_name_equal(s->printed[k], name) : is_unnamed(name))
            return true;
    return false;
}

/* The source that SQLite prints by this name; -1: none, -2: several. */
static int source_named(const struct query_plan *p, struct sql_name name)
{
    int found = -1;
    for (uint32_t i = 0; i < p->n_sources; i++)
        if (has_name(&p->sources[i], name))
            found = found == -1 ? (int)i : -2;
    return found;
}

/* The groups of a query: are these columns all of its keys? */
static bool are_keys(const struct query_plan *sub, const int16_t *columns, uint32_t n)
{
    uint32_t found = 0;
    for (uint32_t k = 0; k < sub->n_keys; k++)
        for (uint32_t i = 0; i < n; i++) {
            const struct plan_expr *x = sub->items[columns[i]].expr;
            if (x->op == X_COLUMN && x->source == PLAN_GROUPS && x->column == (int16_t)k) {
                found++;
                break;
            }
        }
    return sub->grouped && !sub->n_windows && !sub->next_arm && found == sub->n_keys;
}

/* The columns of a source that conditions make equal to others; n of them. */
static uint32_t equal_columns(const struct query_plan *p, uint8_t source, uint32_t placed, int16_t *out)
{
    const struct plan_source *s = &p->sources[source];
    struct plan_expr *const *terms = plan_has_on(s) ? s->on : p->where;
    uint32_t n = 0, n_terms = plan_has_on(s) ? s->n_on : p->n_where;
    for (uint32_t i = 0; i < n_terms && n < PLAN_MAX_KEYS; i++)
        for (int side = 0; side < 2 && terms[i]->op == X_COMPARE && terms[i]->sql == SQL_EQ; side++) {
            const struct plan_expr *own = terms[i]->args[side], *other = terms[i]->args[1 - side];
            if (own->op == X_COLUMN && own->source == source && own->column >= VTAB_ROW && own->type == other->type &&
                other->sources && !(other->sources & ~placed) && n < PLAN_MAX_KEYS)
                out[n++] = own->column;
        }
    return n;
}

/* Does WHERE keep those rows only for which a left join found none? */
static bool is_missing(const struct query_plan *p, uint8_t source)
{
    for (uint32_t i = 0; i < p->n_where && p->sources[source].left; i++) {
        const struct plan_expr *x = p->where[i], *of = x->op == X_IS_NULL && !x->negated ? x->args[0] : NULL;
        of = of && of->op == X_NULL_ROW ? of->args[0] : of;
        if (of && of->op == X_COLUMN && of->source == source && of->column == VTAB_ROW)
            return true;
    }
    return false;
}

/* Has the source one row at most for each row of the sources before it? */
static bool is_determined(const struct query_plan *p, uint8_t source, uint32_t placed)
{
    int16_t columns[PLAN_MAX_KEYS];
    if (p->sources[source].right)
        return false;
    if (is_missing(p, source))
        return true;
    uint32_t n = equal_columns(p, source, placed, columns);
    for (uint32_t i = 0; i < n; i++)
        if (columns[i] == VTAB_ROW)
            return true;
    return n && p->sources[source].sub && are_keys(p->sources[source].sub, columns, n);
}

static bool is_column_of(const struct plan_expr *x, uint8_t source, int column)
{
    return x->op == X_COLUMN && x->source == source && x->column == column;
}

/* Does WHERE say that a column equals a constant? SQLite puts that into the place of the column in other equalities. */
static bool has_constant(const struct query_plan *p)
{
    for (uint32_t i = 0; i < p->n_where; i++)
        if (p->where[i]->op == X_COMPARE && p->where[i]->sql == SQL_EQ &&
            ((p->where[i]->args[0]->op == X_COLUMN && !p->where[i]->args[1]->sources) ||
             (p->where[i]->args[1]->op == X_COLUMN && !p->where[i]->args[0]->sources)))
            return true;
    return false;
}

/* Does WHERE speak of a source on the right of a left join? Where it passes no row that lacks a partner, SQLite makes
 * the join an inner one, and turns its loops around. */
static bool may_be_inner(const struct query_plan *p, uint32_t source)
{
    bool named = false;
    for (uint32_t i = 0; i < p->n_where; i++)
        named |= p->where[i]->sources >> source & 1;
    return named && p->sources[source].left;
}

struct column_asked {
    uint8_t source;
    int column;
    uint32_t placed;
};

static bool makes_equal(const struct column_asked *c, struct plan_expr *const *terms, uint32_t n, bool constant)
{
    for (uint32_t i = 0; i < n; i++)
        for (int side = 0; side < 2 && terms[i]->op == X_COMPARE && terms[i]->sql == SQL_EQ; side++) {
            const struct plan_expr *own = terms[i]->args[side], *other = terms[i]->args[1 - side];
            if (is_column_of(own, c->source, c->column) &&
                (!(other->sources & ~c->placed) || (constant && other->op == X_COLUMN)))
                return true;
        }
    return false;
}

/* Can a column of the source be equal to a constant, or to something of the sources before it? */
static bool is_equal_to(const struct query_plan *p, uint8_t source, uint32_t placed, int column)
{
    const struct plan_source *s = &p->sources[source];
    struct column_asked c = {source, column, placed};
    bool found = false;
    if (!plan_has_on(s) || may_be_inner(p, source))
        found = makes_equal(&c, p->where, p->n_where, has_constant(p));
    for (uint32_t k = 0; k < p->n_sources && !found; k++)
        if ((k == source && plan_has_on(s)) || may_be_inner(p, k))
            found = makes_equal(&c, p->sources[k].on, p->sources[k].n_on, false);
    return found;
}

/* Does a term of ORDER BY name the source? */
static bool orders(const struct query_plan *p, uint8_t source)
{
    bool named = p->grouped || p->n_windows || p->distinct; /* the order may be of those */
    for (uint32_t i = 0; i < p->n_orders; i++)
        named |= p->orders[i]->sources >> source & 1;
    return named;
}

/* Could SQLite look the source up by the columns that the line tells (`VIRTUAL TABLE INDEX 0:-1= 3in`), and have its
 * rows in an order (` o3`)? */
static bool may_be_looked_up(const struct query_plan *p, uint8_t source, uint32_t placed, const char *line)
{
    const char *at = strstr(line, " INDEX 0:");
    for (at = at ? at + 9 : NULL; at && *at;) {
        char *end;
        long column = strtol(at, &end, 10);
        if (end > at ? *end == '=' && !is_equal_to(p, source, placed, (int)column) : *at == 'o' && !orders(p, source))
            return false;
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return true;
}

/* The loop that a line tells; false: it tells none. */
static bool loop_named(const struct line *line, struct sql_name *name)
{
    return name_behind(line->text, "SCAN ", name) || name_behind(line->text, "SEARCH ", name);
}

/* Lines of a step, read with a guess. */
struct guess {
    const struct loops *l;
    const struct query_plan *p;
    int parent;
    uint32_t alone; /* sources that a line calls by a name of their own */
    uint32_t tries; /* that are left */
};

enum { MOST_TRIES = 200 };

/* Could the lines from `at` on mean the sources that are not placed? True where that is not known. */
static bool fits_rest(struct guess *g, int at, uint32_t placed)
{
    for (; at < g->l->n; at++) {
        const struct line *line = &g->l->lines[at];
        struct sql_name name = {0};
        if (line->parent != g->parent || !loop_named(line, &name))
            continue;
        int source = source_named(g->p, name);
        if (source == -1 && bounds_are_named(g->p, name))
            continue;
        if (source == -1 || !g->tries)
            return true;
        g->tries--;
        if (source >= 0) {
            placed |= 1u << source;
            continue;
        }
        for (uint32_t i = 0; i < g->p->n_sources; i++)
            if (!((placed | g->alone) >> i & 1) && has_name(&g->p->sources[i], name) &&
                may_be_looked_up(g->p, (uint8_t)i, placed, line->text) && fits_rest(g, at + 1, placed | 1u << i))
                return true;
        return false;
    }
    return true;
}

/* Which of several sources of one name a line means, by its lookups and those of the lines behind it, of those that no
 * line calls by another name; -2: it cannot be told. Of those that have one row at most for each row before them it
 * does not matter which comes first. */
static int source_meant(struct guess *g, int at, uint32_t placed)
{
    const struct query_plan *p = g->p;
    const char *line = g->l->lines[at].text;
    struct sql_name name = {0};
    int found = -1;
    bool all_determined = true;
    loop_named(&g->l->lines[at], &name);
    for (uint32_t i = 0; i < p->n_sources; i++) {
        if ((placed | g->alone) >> i & 1 || !has_name(&p->sources[i], name) ||
            !may_be_looked_up(p, (uint8_t)i, placed, line) || !fits_rest(g, at + 1, placed | 1u << i))
            continue;
        all_determined &= is_determined(p, (uint8_t)i, placed);
        if (found >= 0 && !all_determined)
            return -2;
        found = found >= 0 ? found : (int)i;
    }
    return found >= 0 ? found : -2;
}

/* Sources that lines of a step call by a name of their own. */
static uint32_t named_alone(const struct loops *l, int parent, const struct query_plan *p)
{
    uint32_t found = 0;
    for (int i = 0; i < l->n; i++) {
        struct sql_name name = {0};
        if (l->lines[i].parent != parent || !loop_named(&l->lines[i], &name))
            continue;
        int source = source_named(p, name);
        found |= source >= 0 ? 1u << source : 0;
    }
    return found;
}

static bool is_automatic(const struct line *line)
{
    return strstr(line->text, " USING AUTOMATIC ") != NULL;
}

/* Where line `at` says that rows come from an index made for the statement: adds by what it is sorted, unless one row
 * at most is found. False: that is not known. */
static bool adds_order(struct loops *l, int at, struct query_plan *p, uint8_t source, uint32_t placed)
{
    struct index_use use = {.source = source};
    if (!is_automatic(&l->lines[at]) || is_determined(p, source, placed))
        return true;
    if (l->part) /* SQLite may make others for the statement as a whole */
        return false;
    if (!l->indexes_read)
        l->indexes = index_order_read(l->planner, l->text);
    l->indexes_read = true;
    use.made = l->indexes;
    for (int i = 0; i < at; i++)
        use.nth += is_automatic(&l->lines[i]);
    loop_named(&l->lines[at], &use.name);
    use.n_keys = equal_columns(p, source, placed, use.keys);
    return index_order_add(p, &use);
}

static bool walk(struct loops *l, int parent, struct query_plan *p, int depth)
{
    struct guess guess = {l, p, parent, named_alone(l, parent, p), 0};
    for (int i = 0; i < l->n; i++) {
        struct sql_name name;
        if (l->lines[i].parent != parent)
            continue;
        if (strncmp(l->lines[i].text, "MULTI-INDEX OR", 14) == 0 || strncmp(l->lines[i].text, "COMPOUND", 8) == 0)
            return false;
        if (!loop_named(&l->lines[i], &name) || bounds_are_named(p, name))
            continue;
        int source = source_named(p, name);
        uint32_t placed = 0;
        for (uint32_t k = 0; k < p->n_loops; k++)
            placed |= 1u << p->loops[k];
        guess.tries = MOST_TRIES;
        if (source == -2)
            source = source_meant(&guess, i, placed);
        if (source >= 0) {
            if (p->n_loops == PLAN_MAX_SOURCES || !adds_order(l, i, p, (uint8_t)source, placed))
                return false;
            p->loops[p->n_loops++] = (uint8_t)source;
            continue;
        }
        int child = source == -1 && depth < PLAN_MAX_DEPTH ? loops_child(l, parent, name) : -1;
        if (child < 0 || is_automatic(&l->lines[i]) || !walk(l, child, p, depth + 1))
            return false;
    }
    return true;
}

/* A condition with OR may be answered by several lookups, whose rows come one after the other. */
static bool may_look_up_twice(struct loops *l, const struct query_plan *p)
{
    bool any = false;
    for (uint32_t i = 0; i < p->n_where; i++)
        any |= p->where[i]->op == X_OR;
    if (!any || !l)
        return any;
    load(l);
    for (int i = 0; i < l->n; i++)
        if (strncmp(l->lines[i].text, "MULTI-INDEX OR", 14) == 0)
            return true;
    return l->n == 0;
}

/* Of a table that an operator computes SQLite reads the rows of each value of a list one after the other. */
static bool may_read_by_list(const struct query_plan *p)
{
    for (uint32_t i = 0; i < p->n_where; i++)
        for (uint32_t s = 0; s < p->n_sources; s++)
            if (p->sources[s].batches && (p->where[i]->sources & 1u << s) &&
                (p->where[i]->op == X_IN || p->where[i]->op == X_LOOKUP || p->where[i]->op == X_OR))
                return true;
    return false;
}

static bool flatten(struct query_plan *p, struct plan_expr *x)
{
    if (x->op == X_OR)
        return flatten(p, x->args[0]) && flatten(p, x->args[1]);
    if (p->n_arms == PLAN_MAX_LOOKED_UP)
        return false;
    p->arms[p->n_arms++] = x;
    return true;
}

static bool has_or(const struct sql_expr *x)
{
    for (; x; x = x->next)
        if ((x->kind == EXPR_BINARY && x->op == SQL_OR) || has_or(x->args))
            return true;
    return false;
}

/* Has but one core of the statement a condition with OR? */
static bool one_core_has_or(const struct sql_tree *t)
{
    int n = 0;
    for (const struct sql_select *s = t->cores; s; s = s->next_core) {
        n += has_or(s->where);
        for (const struct sql_from *f = s->from; f; f = f->next)
            n += has_or(f->on);
    }
    return n <= 1;
}

/* The lookups of an OR, in a core of one table: the only one of the statement. */
static bool read_arms(struct loops *l, struct query_plan *p)
{
    struct plan_expr *or_term = NULL;
    int lookups = 0, multi = -1;
    if (!p->sources[0].table.name || !one_core_has_or(l->planner->tree))
        return false;
    for (uint32_t i = 0; i < p->n_where; i++) {
        if (p->where[i]->op == X_OR && or_term)
            return false;
        or_term = p->where[i]->op == X_OR ? p->where[i] : or_term;
    }
    for (int i = 0; i < l->n; i++) {
        bool found = strncmp(l->lines[i].text, "MULTI-INDEX OR", 14) == 0;
        if (found && multi >= 0)
            return false;
        multi = found ? l->lines[i].id : multi;
        lookups += multi >= 0 && l->lines[i].parent == multi;
        struct sql_name name = {0};
        bool within =
            multi >= 0 && i > 0 && l->lines[i - 1].parent == multi && l->lines[i].parent == l->lines[i - 1].id;
        if (within && (!name_behind(l->lines[i].text, "SCAN ", &name) || source_named(p, name) != 0))
            return false;
    }
    p->n_arms = 0;
    return multi >= 0 && or_term && flatten(p, or_term) && lookups == (int)p->n_arms;
}

bool loops_order(struct loops *l, int parent, struct query_plan *p)
{
    p->n_loops = p->n_index_terms = 0;
    if (may_read_by_list(p))
        return false;
    if (p->n_sources == 1) {
        if (may_look_up_twice(l, p) && (!l || !read_arms(l, p)))
            return false;
        p->loops[p->n_loops++] = 0;
        return true;
    }
    if (!l || (p->right && p->n_sources > 2)) /* SQLite may turn the loops before a right join around */
        return false;
    load(l);
    return parent >= 0 && walk(l, parent, p, 0) && p->n_loops == p->n_sources &&
           p->n_loops + p->n_index_terms < PLAN_MAX_ORDER;
}

/* Without the sources that have one row at most for each row of those before them. */
static uint32_t reduce(const struct query_plan *p, const uint8_t *order, uint32_t n, uint8_t *out)
{
    uint32_t placed = 0, kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!i || !is_determined(p, order[i], placed))
            out[kept++] = order[i];
        placed |= 1u << order[i];
    }
    return kept;
}

bool loops_agree(const struct query_plan *p)
{
    uint8_t steps[PLAN_MAX_SOURCES], a[PLAN_MAX_SOURCES], b[PLAN_MAX_SOURCES];
    if (p->n_index_terms)
        return false;
    for (uint32_t i = 0; i < p->n_steps; i++)
        steps[i] = p->steps[i].source;
    uint32_t n = reduce(p, steps, p->n_steps, a);
    return n == reduce(p, p->loops, p->n_loops, b) && memcmp(a, b, n) == 0;
}
