/* Owns recognising statements that can be aggregated natively, and rewriting them. */
#include "sql/aggregate/aggregate_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- tokens ---- */

enum { T_END = 0, T_NAME = 'n', T_NUMBER = '0', T_TEXT = '\'' }; /* others: the character; '<' also for <= (see len) */

struct token {
    int kind;
    struct slice s;
};

struct parser {
    const uint8_t *p, *end;
    struct token t; /* the current one */
    bool bad;
};

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static void advance(struct parser *p)
{
    while (p->p < p->end && (*p->p == ' ' || *p->p == '\n' || *p->p == '\t' || *p->p == '\r'))
        p->p++;
    const uint8_t *start = p->p;
    int kind = T_END;
    if (p->p < p->end) {
        uint8_t c = *p->p++;
        kind = c;
        if (is_letter(c)) {
            kind = T_NAME;
            while (p->p < p->end && (is_letter(*p->p) || is_digit(*p->p)))
                p->p++;
        } else if (is_digit(c)) {
            kind = T_NUMBER;
            while (p->p < p->end && (is_digit(*p->p) || *p->p == '.'))
                p->p++;
            p->bad |= p->p < p->end && is_letter(*p->p); /* exponents and hexadecimal stay with SQLite */
        } else if (c == '\'') {
            kind = T_TEXT;
            while (p->p < p->end && *p->p != '\'')
                p->p++;
            p->bad |= p->p == p->end || (p->p + 1 < p->end && p->p[1] == '\''); /* a quote inside stays with SQLite */
            p->p += p->p < p->end;
        } else if (c == '<' || c == '>' || c == '=' || c == '!') {
            if (p->p < p->end && (*p->p == '=' || *p->p == '>'))
                p->p++;
        }
    }
    p->t = (struct token){kind, slice_of(start, (size_t)(p->p - start))};
}

static bool at_word(const struct parser *p, const char *word)
{
    return p->t.kind == T_NAME && p->t.s.len == strlen(word) &&
           sqlite3_strnicmp((const char *)p->t.s.p, word, (int)p->t.s.len) == 0;
}

static bool accept_word(struct parser *p, const char *word)
{
    if (!at_word(p, word))
        return false;
    advance(p);
    return true;
}

static bool accept(struct parser *p, int kind)
{
    if (p->t.kind != kind || p->t.s.len > 1)
        return false;
    advance(p);
    return true;
}

static void expect(struct parser *p, bool ok)
{
    p->bad |= !ok;
}

static bool same_name(struct slice a, struct slice b)
{
    return a.len == b.len && sqlite3_strnicmp((const char *)a.p, (const char *)b.p, (int)a.len) == 0;
}

/* A name that is not a word of the grammar. */
static bool at_name(const struct parser *p)
{
    static const char *const words[] = {
        "select", "distinct",  "all",    "from",    "where",   "group",   "by",     "having",  "order",  "limit",
        "join",   "left",      "inner",  "cross",   "natural", "on",      "using",  "as",      "and",    "or",
        "not",    "is",        "null",   "in",      "glob",    "between", "asc",    "desc",    "offset", "union",
        "except", "intersect", "window", "indexed", "case",    "cast",    "exists", "collate", "full",   "right",
        "outer",  "like",      "isnull", "notnull", "over",    "filter",  "nulls"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (at_word(p, words[i]))
            return false;
    return p->t.kind == T_NAME;
}

/* ---- the statement ---- */

struct item {      /* of the SELECT list */
    char function; /* 0: a column; '*' count(*); 'c' count, 's' sum, 'm' min, 'x' max */
    int column;    /* index of names */
    struct slice alias;
};

struct filter {
    int column;
    enum plan_op op;
    struct slice literal[2]; /* sign and number, or text with its quotes; empty for IS NULL */
};

struct order {
    int item;
    bool desc;
};

struct statement {
    struct slice names[AGGREGATE_MAX_COLUMNS]; /* columns that occur, as they are written */
    int n_names;
    int at[AGGREGATE_MAX_COLUMNS]; /* what they are: column of the table, VTAB_ROW */
    struct item items[AGGREGATE_MAX_COLUMNS];
    int n_items;
    struct slice table, table_alias;
    struct filter filters[AGGREGATE_MAX_VALUES];
    int n_filters;
    int groups[AGGREGATE_MAX_COLUMNS]; /* names */
    int n_groups;
    struct order orders[AGGREGATE_MAX_COLUMNS];
    int n_orders;
    struct slice limit, offset;
};

/* [table.]column: its index among names. */
static int parse_column(struct parser *p, struct statement *s)
{
    struct slice name = p->t.s;
    expect(p, at_name(p));
    advance(p);
    if (accept(p, '.')) {
        struct slice qualifier = name;
        /* the FROM clause has not been read yet when the list is: remember the only qualifier there may be */
        if (!s->table_alias.len)
            s->table_alias = qualifier;
        expect(p, same_name(s->table_alias, qualifier));
        name = p->t.s;
        expect(p, at_name(p));
        advance(p);
    }
    for (int i = 0; i < s->n_names; i++)
        if (same_name(s->names[i], name))
            return i;
    if (s->n_names == AGGREGATE_MAX_COLUMNS) {
        p->bad = true;
        return 0;
    }
    s->names[s->n_names] = name;
    return s->n_names++;
}

static char function_of(const struct parser *p)
{
    static const struct {
        const char *name;
        char function;
    } functions[] = {{"count", 'c'}, {"sum", 's'}, {"min", 'm'}, {"max", 'x'}};
    const uint8_t *q = p->p;
    while (q < p->end && *q == ' ')
        q++;
    if (q == p->end || *q != '(')
        return 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (at_word(p, functions[i].name))
            return functions[i].function;
    return '?';
}

/* A column or an aggregate of one. */
static struct item parse_value(struct parser *p, struct statement *s)
{
    struct item item = {.function = function_of(p)};
    if (item.function == 0) {
        item.column = parse_column(p, s);
        return item;
    }
    expect(p, item.function != '?');
    advance(p);
    expect(p, accept(p, '('));
    if (item.function == 'c' && accept(p, '*'))
        item.function = '*';
    else
        item.column = parse_column(p, s);
    expect(p, accept(p, ')'));
    return item;
}

static void parse_items(struct parser *p, struct statement *s)
{
    do {
        struct item item = parse_value(p, s);
        if (accept_word(p, "as")) {
            expect(p, at_name(p));
            item.alias = p->t.s;
            advance(p);
        } else if (at_name(p)) {
            item.alias = p->t.s;
            advance(p);
        }
        if (s->n_items == AGGREGATE_MAX_COLUMNS) {
            p->bad = true;
            return;
        }
        s->items[s->n_items++] = item;
    } while (accept(p, ',') && !p->bad);
}

static void parse_from(struct parser *p, struct statement *s)
{
    expect(p, accept_word(p, "from") && at_name(p));
    s->table = p->t.s;
    advance(p);
    struct slice alias = s->table;
    bool as = accept_word(p, "as");
    expect(p, !as || at_name(p));
    if (at_name(p)) {
        alias = p->t.s;
        advance(p);
    }
    expect(p, !s->table_alias.len || same_name(s->table_alias, alias));
    s->table_alias = alias;
}

static void parse_literal(struct parser *p, struct filter *f)
{
    if (p->t.kind == '-') {
        f->literal[0] = p->t.s;
        advance(p);
        expect(p, p->t.kind == T_NUMBER);
    }
    expect(p, p->t.kind == T_NUMBER || p->t.kind == T_TEXT);
    f->literal[1] = p->t.s;
    advance(p);
}

static enum plan_op operator_of(struct parser *p)
{
    static const struct {
        const char *text;
        enum plan_op op;
    } operators[] = {{"=", PLAN_EQ}, {"==", PLAN_EQ}, {"!=", PLAN_NE}, {"<>", PLAN_NE},
                     {"<", PLAN_LT}, {"<=", PLAN_LE}, {">", PLAN_GT},  {">=", PLAN_GE}};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (slice_eq_str(p->t.s, operators[i].text)) {
            advance(p);
            return operators[i].op;
        }
    if (accept_word(p, "glob"))
        return PLAN_GLOB;
    p->bad = true;
    return PLAN_EQ;
}

static void add_filter(struct parser *p, struct statement *s, struct filter f)
{
    if (s->n_filters == AGGREGATE_MAX_VALUES)
        p->bad = true;
    else
        s->filters[s->n_filters++] = f;
}

static void parse_where(struct parser *p, struct statement *s)
{
    do {
        struct filter f = {.column = parse_column(p, s)};
        if (accept_word(p, "is")) {
            f.op = accept_word(p, "not") ? PLAN_NOTNULL : PLAN_ISNULL;
            expect(p, accept_word(p, "null"));
        } else if (accept_word(p, "between")) {
            f.op = PLAN_GE;
            parse_literal(p, &f);
            add_filter(p, s, f);
            expect(p, accept_word(p, "and"));
            f = (struct filter){.column = f.column, .op = PLAN_LE};
            parse_literal(p, &f);
        } else {
            f.op = operator_of(p);
            parse_literal(p, &f);
        }
        add_filter(p, s, f);
    } while (accept_word(p, "and") && !p->bad);
}

/* An item by its place ("2"), or -1. */
static int item_by_place(struct parser *p, const struct statement *s)
{
    if (p->t.kind != T_NUMBER)
        return -1;
    int place = 0;
    for (size_t i = 0; i < p->t.s.len; i++) {
        expect(p, is_digit(p->t.s.p[i]) && place < 100);
        place = p->bad ? 0 : place * 10 + (p->t.s.p[i] - '0');
    }
    expect(p, place >= 1 && place <= s->n_items);
    advance(p);
    return p->bad ? -1 : place - 1;
}

static bool is_alias(const struct statement *s, struct slice name)
{
    for (int i = 0; i < s->n_items; i++)
        if (s->items[i].alias.len && same_name(s->items[i].alias, name))
            return true;
    return false;
}

static void parse_groups(struct parser *p, struct statement *s)
{
    do {
        int column, item = p->t.kind == T_NUMBER ? item_by_place(p, s) : -1;
        if (item >= 0) {
            expect(p, s->items[item].function == 0);
            column = s->items[item].column;
        } else {
            expect(p, function_of(p) == 0 && !is_alias(s, p->t.s)); /* a name of two meanings stays with SQLite */
            column = parse_column(p, s);
        }
        if (s->n_groups == AGGREGATE_MAX_COLUMNS) {
            p->bad = true;
            return;
        }
        s->groups[s->n_groups++] = column;
    } while (accept(p, ',') && !p->bad);
}

static int ordered_item(struct parser *p, struct statement *s)
{
    if (p->t.kind == T_NUMBER)
        return item_by_place(p, s);
    struct slice name = p->t.s;
    if (function_of(p) == 0 && is_alias(s, name)) {
        int found = -1;
        for (int i = 0; i < s->n_items; i++)
            if (s->items[i].alias.len && same_name(s->items[i].alias, name))
                found = found < 0 ? i : -2;
        advance(p);
        expect(p, found >= 0 && p->t.kind != '.');
        return found;
    }
    struct item want = parse_value(p, s);
    for (int i = 0; i < s->n_items; i++)
        if (s->items[i].function == want.function && (want.function == '*' || s->items[i].column == want.column))
            return i;
    p->bad = true;
    return -1;
}

static void parse_orders(struct parser *p, struct statement *s)
{
    do {
        struct order o = {.item = ordered_item(p, s)};
        o.desc = accept_word(p, "desc");
        if (!o.desc)
            accept_word(p, "asc");
        if (s->n_orders == AGGREGATE_MAX_COLUMNS) {
            p->bad = true;
            return;
        }
        s->orders[s->n_orders++] = o;
    } while (accept(p, ',') && !p->bad);
}

static bool parse(struct slice sql, struct statement *s)
{
    struct parser p = {.p = sql.p, .end = sql.p + sql.len};
    *s = (struct statement){0};
    advance(&p);
    if (!accept_word(&p, "select"))
        return false;
    parse_items(&p, s);
    if (p.bad)
        return false;
    parse_from(&p, s);
    if (accept_word(&p, "where"))
        parse_where(&p, s);
    if (accept_word(&p, "group")) {
        expect(&p, accept_word(&p, "by"));
        parse_groups(&p, s);
    }
    if (accept_word(&p, "order")) {
        expect(&p, accept_word(&p, "by"));
        parse_orders(&p, s);
    }
    if (accept_word(&p, "limit")) {
        s->limit = p.t.s;
        expect(&p, p.t.kind == T_NUMBER);
        advance(&p);
        if (accept_word(&p, "offset")) {
            s->offset = p.t.s;
            expect(&p, p.t.kind == T_NUMBER);
            advance(&p);
        }
    }
    accept(&p, ';');
    return !p.bad && p.t.kind == T_END;
}

/* ---- what the names mean ---- */

/* The vtab whose address EXPLAIN shows as "vtab:HEX". */
static const struct engine_known_table *known_by_address(struct engine *e, const char *p4)
{
    if (!p4 || strncmp(p4, "vtab:", 5) != 0)
        return NULL;
    unsigned long long address = strtoull(p4 + 5, NULL, 16);
    for (size_t i = 0; i < e->known.n; i++)
        if ((unsigned long long)(uintptr_t)e->known.p[i].vtab == address)
            return &e->known.p[i];
    return NULL;
}

/* The program of SELECT names FROM table shows the table and the columns, and that there is nothing but a plain walk
 * over one table of ours between: a view with a condition or a join has other steps. */
const struct engine_known_table *aggregate_resolve(struct engine *e, const struct slice *names, int n_names,
                                                   struct slice table, int *at)
{
    static const char *const harmless[] = {"Init", "Integer",     "ResultRow", "VNext",
                                           "Halt", "Transaction", "Goto",      "Explain"};
    const struct engine_known_table *found = NULL;
    sqlite3_stmt *stmt = NULL;
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendall(sql, "EXPLAIN SELECT ");
    for (int i = 0; i < n_names; i++)
        sqlite3_str_appendf(sql, "%s\"%.*w\"", i ? "," : "", (int)names[i].len, names[i].p);
    sqlite3_str_appendf(sql, "%s FROM \"%.*w\"", n_names ? "" : "1", (int)table.len, table.p);
    char *text = sqlite3_str_finish(sql);
    bool ok = text && sqlite3_prepare_v2(e->db, text, -1, &stmt, NULL) == SQLITE_OK;
    int n = 0;
    while (ok && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *op = (const char *)sqlite3_column_text(stmt, 1), *p4 = (const char *)sqlite3_column_text(stmt, 5);
        if (!op)
            ok = false;
        else if (strcmp(op, "VOpen") == 0)
            ok = !found && (found = known_by_address(e, p4)) != NULL;
        else if (strcmp(op, "VFilter") == 0)
            ok = found && (!p4 || !*p4);
        else if (strcmp(op, "VColumn") == 0 && (ok = found && n < n_names))
            at[n++] = found->vtab->columns.at[sqlite3_column_int(stmt, 3)];
        else if (ok && strcmp(op, "VColumn") != 0) {
            bool known = false;
            for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
                known |= strcmp(op, harmless[i]) == 0;
            ok = known;
        }
    }
    sqlite3_finalize(stmt);
    sqlite3_free(text);
    for (int i = 0; i < n; i++)
        ok = ok && at[i] >= VTAB_ROW; /* not an argument of a function */
    return ok && n == n_names ? found : NULL;
}

static const struct column *column_of(const struct table *t, const struct statement *s, int name)
{
    return s->at[name] >= 0 ? &t->columns[s->at[name]] : NULL;
}

/* Does the statement ask for one set of args? The virtual table decodes only that one. */
static bool wants_one_set(const struct engine_known_table *known, const struct statement *s)
{
    for (int i = 0; known->vtab->source->is_args && i < s->n_filters; i++)
        if (s->at[s->filters[i].column] == args_c_arg_set_id && s->filters[i].op == PLAN_EQ)
            return true;
    return false;
}

/* Would the answer be the same, and is it in reach? */
static bool suits(const struct table *t, const struct statement *s)
{
    double groups = 1;
    bool aggregates = false;
    if (t->n_rows < AGGREGATE_MIN_ROWS)
        return false;
    for (int i = 0; i < s->n_groups; i++) {
        const struct column *c = column_of(t, s, s->groups[i]);
        if (!c || c->type == COL_F64)
            return false;
        groups *= c->min <= c->max ? (double)c->max - (double)c->min + 2 : 2;
    }
    for (int i = 0; i < s->n_items; i++) {
        const struct item *item = &s->items[i];
        const struct column *c = item->function == '*' ? NULL : column_of(t, s, item->column);
        aggregates |= item->function != 0;
        if (item->function == 0) {
            bool grouped = false;
            for (int g = 0; g < s->n_groups; g++)
                grouped |= s->groups[g] == item->column;
            if (!grouped)
                return false;
        } else if (item->function != '*' && (!c || (c->type == COL_STR && item->function != 'c'))) {
            return false;
        }
    }
    for (int i = 0; i < s->n_filters; i++) {
        const struct filter *f = &s->filters[i];
        const struct column *c = column_of(t, s, f->column);
        bool text = f->literal[1].len && f->literal[1].p[0] == '\'', string = c && c->type == COL_STR;
        if ((f->literal[1].len && text != string) || (f->op == PLAN_GLOB && !string))
            return false;
    }
    return groups <= AGGREGATE_MAX_GROUPS && (aggregates || s->n_groups) && s->n_groups <= 4;
}

/* ---- the other statement ---- */

static const char *const op_words[PLAN_OP_COUNT] = {
    [PLAN_EQ] = "=",  [PLAN_NE] = "!=",     [PLAN_LT] = "<",        [PLAN_LE] = "<=",          [PLAN_GT] = ">",
    [PLAN_GE] = ">=", [PLAN_GLOB] = "glob", [PLAN_ISNULL] = "null", [PLAN_NOTNULL] = "notnull"};

/* "table g:3- g:5 n s:1 | 1:>= 4:=": groups, aggregates, tests; columns by number. */
static void append_spec(sqlite3_str *out, const struct statement *s, const char *table)
{
    sqlite3_str_appendf(out, "'%q", table);
    for (int i = 0; i < s->n_groups; i++) {
        /* SQLite turns the groups round when as many columns order the answer (the order of ties shows it). */
        bool desc = s->n_orders == s->n_groups && s->orders[i].desc;
        sqlite3_str_appendf(out, " g:%d%s", s->at[s->groups[i]], desc ? "-" : "");
    }
    for (int i = 0; i < s->n_items; i++)
        if (s->items[i].function)
            sqlite3_str_appendf(out, " %c:%d", s->items[i].function,
                                s->items[i].function == '*' ? 0 : s->at[s->items[i].column]);
    for (int i = 0; i < s->n_filters; i++)
        sqlite3_str_appendf(out, " ?:%d:%s", s->at[s->filters[i].column], op_words[s->filters[i].op]);
    sqlite3_str_appendall(out, "'");
    for (int i = 0; i < s->n_filters; i++) {
        const struct filter *f = &s->filters[i];
        if (f->literal[1].len)
            sqlite3_str_appendf(out, ",%.*s%.*s", (int)f->literal[0].len,
                                f->literal[0].len ? (const char *)f->literal[0].p : "", (int)f->literal[1].len,
                                f->literal[1].p);
        else
            sqlite3_str_appendall(out, ",0");
    }
}

/* Which column of the table function an item is: groups first, then aggregates. */
static int output_of(const struct statement *s, int item)
{
    int n = s->n_groups;
    for (int i = 0; i < item; i++)
        n += s->items[i].function != 0;
    if (s->items[item].function)
        return n;
    for (int g = 0; g < s->n_groups; g++)
        if (s->groups[g] == s->items[item].column)
            return g;
    return 0;
}

bool aggregate_is_plain(const char *name)
{
    for (; *name; name++)
        if (!is_letter((uint8_t)*name) && !is_digit((uint8_t)*name))
            return false;
    return true;
}

sqlite3_stmt *aggregate_prepare(struct engine *e, struct slice sql, sqlite3_stmt *original)
{
    struct statement s;
    if (!parse(sql, &s) || sqlite3_column_count(original) != s.n_items)
        return NULL;
    const struct engine_known_table *known = aggregate_resolve(e, s.names, s.n_names, s.table, s.at);
    if (!known || !aggregate_is_plain(known->name) || wants_one_set(known, &s) ||
        engine_find_table(e, known->name) != known->table)
        return NULL;
    if (!known->table->final)
        table_finalize((struct table *)(uintptr_t)known->table);
    if (!suits(known->table, &s))
        return NULL;
    sqlite3_stmt *stmt = NULL;
    sqlite3_str *out = sqlite3_str_new(NULL);
    for (int i = 0; i < s.n_items; i++)
        sqlite3_str_appendf(out, "%s c%d AS \"%w\"", i ? "," : "SELECT", output_of(&s, i),
                            sqlite3_column_name(original, i));
    sqlite3_str_appendall(out, " FROM __intrinsic_aggregate(");
    append_spec(out, &s, known->name);
    sqlite3_str_appendall(out, ")");
    for (int i = 0; i < s.n_orders; i++)
        sqlite3_str_appendf(out, "%s c%d%s", i ? "," : " ORDER BY", output_of(&s, s.orders[i].item),
                            s.orders[i].desc ? " DESC" : "");
    if (s.limit.len)
        sqlite3_str_appendf(out, " LIMIT %.*s", (int)s.limit.len, s.limit.p);
    if (s.offset.len)
        sqlite3_str_appendf(out, " OFFSET %.*s", (int)s.offset.len, s.offset.p);
    char *text = sqlite3_str_finish(out);
    if (text && sqlite3_prepare_v2(e->db, text, -1, &stmt, NULL) != SQLITE_OK)
        stmt = NULL;
    sqlite3_free(text);
    return stmt;
}
