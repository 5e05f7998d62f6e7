/* Queries: WITH, SELECT and its clauses, compounds, VALUES. */
#include "sql/frontend/select.h"

#include "sql/frontend/parser.h"

#include <string.h>
#include <strings.h>

bool parser_at_query(const struct parser *c)
{
    return c->word == WORD_SELECT || c->word == WORD_VALUES || c->word == WORD_WITH;
}

/* ---- ORDER BY, windows ---- */

struct sql_order *parse_order_list(struct parser *c)
{
    struct sql_order *first = NULL, **end = &first;
    do {
        struct sql_order *o = *end = NEW(c, sql_order);
        end = &o->next;
        o->expr = parse_expr(c);
        o->desc = parser_accept_word(c, WORD_DESC);
        if (!o->desc)
            parser_accept_word(c, WORD_ASC);
        if (parser_accept_word(c, WORD_NULLS)) {
            o->nulls_first = parser_accept_word(c, WORD_FIRST);
            o->nulls_last = !o->nulls_first;
            if (o->nulls_last)
                parser_expect_word(c, WORD_LAST);
        }
    } while (parser_accept(c, TOKEN_COMMA));
    return first;
}

static struct sql_name word_name(struct parser *c)
{
    struct sql_name name = {"", 0, c->i};
    if (c->kind == TOKEN_WORD)
        name = (struct sql_name){c->p[c->i].text, c->p[c->i].len, c->i};
    parser_advance(c);
    return name;
}

static void parse_bound(struct parser *c, struct sql_bound *b)
{
    if (parser_accept_word(c, WORD_UNBOUNDED))
        b->kind = BOUND_UNBOUNDED;
    else if (parser_accept_word(c, WORD_CURRENT)) {
        b->kind = BOUND_CURRENT;
        parser_expect_word(c, WORD_ROW);
        return;
    } else {
        b->offset = parse_expr(c);
    }
    bool preceding = parser_accept_word(c, WORD_PRECEDING);
    if (!preceding)
        parser_expect_word(c, WORD_FOLLOWING);
    if (b->kind == BOUND_UNBOUNDED)
        b->side = preceding ? FRAME_PRECEDING : FRAME_FOLLOWING;
    else
        b->kind = preceding ? BOUND_PRECEDING : BOUND_FOLLOWING;
}

static void parse_frame(struct parser *c, struct sql_window *w)
{
    w->frame = word_name(c);
    if (parser_accept_word(c, WORD_BETWEEN)) {
        parse_bound(c, &w->from);
        parser_expect_word(c, WORD_AND);
        parse_bound(c, &w->to);
    } else {
        parse_bound(c, &w->from);
        w->to.kind = BOUND_CURRENT;
    }
    if (!parser_accept_word(c, WORD_EXCLUDE))
        return;
    if (c->word != WORD_NO && c->word != WORD_CURRENT && c->word != WORD_GROUP && c->word != WORD_TIES) {
        parser_fail(c);
        return;
    }
    w->exclude = word_name(c);
    if (sql_name_is(w->exclude, "no"))
        parser_expect_word(c, WORD_OTHERS);
    else if (sql_name_is(w->exclude, "current"))
        parser_expect_word(c, WORD_ROW);
}

static bool at_frame(const struct parser *c)
{
    return c->word == WORD_ROWS || c->word == WORD_RANGE || c->word == WORD_GROUPS;
}

struct sql_window *parse_window_body(struct parser *c)
{
    struct sql_window *w = NEW(c, sql_window);
    w->at.first = c->i;
    if (c->word != WORD_PARTITION && c->word != WORD_ORDER && !at_frame(c) && parser_at_name(c, NAME_OPERAND))
        w->base = parser_name(c, NAME_OPERAND);
    if (parser_accept_word(c, WORD_PARTITION)) {
        uint32_t n;
        parser_expect_word(c, WORD_BY);
        w->partition = parse_expr_list(c, &n);
    }
    if (parser_accept_word(c, WORD_ORDER)) {
        parser_expect_word(c, WORD_BY);
        w->order = parse_order_list(c);
    }
    if (at_frame(c))
        parse_frame(c, w);
    w->at.end = c->last;
    return w;
}

/* WINDOW name AS (…), … */
static struct sql_window *parse_windows(struct parser *c)
{
    struct sql_window *first = NULL, **end = &first;
    do {
        struct sql_name name = parser_name(c, NAME_OPERAND);
        parser_expect_word(c, WORD_AS);
        parser_expect(c, TOKEN_LP);
        struct sql_window *w = *end = parse_window_body(c);
        end = &w->next;
        w->name = name;
        parser_expect(c, TOKEN_RP);
    } while (parser_accept(c, TOKEN_COMMA));
    return first;
}

/* ---- FROM ---- */

static struct sql_from *parse_sources(struct parser *c);

static struct sql_expr *parse_names(struct parser *c)
{
    struct sql_expr *first = NULL, **end = &first;
    do {
        struct sql_expr *e = *end = NEW(c, sql_expr);
        end = &e->next;
        e->kind = EXPR_COLUMN;
        e->height = 1;
        e->at.first = c->i;
        e->name = parser_name(c, NAME_MARKED);
        e->at.end = c->last;
    } while (parser_accept(c, TOKEN_COMMA));
    return first;
}

static struct sql_name parse_alias(struct parser *c)
{
    bool marked = parser_accept_word(c, WORD_AS);
    if (c->kind == TOKEN_STRING) /* AS 'name' */
        return parser_string_name(c);
    if (marked)
        return parser_name(c, NAME_MARKED);
    if (parser_at_name(c, NAME_ALIAS))
        return parser_name(c, NAME_ALIAS);
    return (struct sql_name){"", 0, c->i};
}

void parse_named_source(struct parser *c, struct sql_from *s)
{
    s->name = parser_name(c, NAME_MARKED);
    if (parser_accept(c, TOKEN_DOT)) {
        s->schema = s->name;
        s->name = parser_name(c, NAME_MARKED);
    }
    if (parser_accept(c, TOKEN_LP)) {
        uint32_t n;
        s->form = SOURCE_FUNCTION;
        if (c->kind != TOKEN_RP)
            s->args = parse_expr_list(c, &n);
        parser_expect(c, TOKEN_RP);
    }
}

/* What stands in parentheses: a query, or sources joined. */
static void parse_source_in_parentheses(struct parser *c, struct sql_from *s)
{
    if (!parser_enter(c))
        return;
    parser_advance(c);
    if (parser_at_query(c)) {
        s->form = SOURCE_QUERY;
        s->query = parse_query(c);
    } else {
        s->form = SOURCE_GROUP;
        s->group = parse_sources(c);
    }
    parser_expect(c, TOKEN_RP);
    parser_leave(c);
}

static void parse_source(struct parser *c, struct sql_from *s)
{
    enum sql_word next;
    s->at.first = c->i;
    if (c->kind == TOKEN_LP)
        parse_source_in_parentheses(c, s);
    else
        parse_named_source(c, s);
    s->alias = parse_alias(c);
    parser_peek(c, 1, &next);
    if (c->word == WORD_INDEXED) {
        s->indexed = true;
        parser_advance(c);
        parser_expect_word(c, WORD_BY);
        parser_name(c, NAME_MARKED);
    } else if (c->word == WORD_NOT && next == WORD_INDEXED) {
        s->indexed = true;
        parser_advance(c);
        parser_advance(c);
    }
    if (s->join && parser_accept_word(c, WORD_ON))
        s->on = parse_expr(c);
    else if (s->join && parser_accept_word(c, WORD_USING)) {
        parser_expect(c, TOKEN_LP);
        s->using_columns = parse_names(c);
        parser_expect(c, TOKEN_RP);
    }
    s->at.end = c->last;
}

/* A comma, or JOIN and the words in front of it: bits; 0: none stands here. */
static uint8_t parse_join(struct parser *c)
{
    static const struct {
        uint8_t word, bits;
    } kinds[] = {{WORD_NATURAL, JOIN_NATURAL},        {WORD_LEFT, JOIN_LEFT},   {WORD_RIGHT, JOIN_RIGHT},
                 {WORD_FULL, JOIN_LEFT | JOIN_RIGHT}, {WORD_INNER, JOIN_INNER}, {WORD_CROSS, JOIN_CROSS | JOIN_INNER}};
    unsigned bits = 0;
    if (parser_accept(c, TOKEN_COMMA))
        return JOIN_COMMA;
    if (c->word != WORD_JOIN && (c->word == WORD_NONE || sql_word_kind((enum sql_word)c->word) != WORD_JOINING_))
        return 0;
    for (int n = 0; n < 3 && c->word != WORD_JOIN; n++) {
        bool known = c->word == WORD_OUTER && bits & (JOIN_LEFT | JOIN_RIGHT);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !known; i++)
            if (c->word == kinds[i].word && !(bits & kinds[i].bits)) {
                bits |= kinds[i].bits;
                known = true;
            }
        if (!known)
            parser_fail(c);
        parser_advance(c);
    }
    parser_expect_word(c, WORD_JOIN);
    if ((bits & JOIN_INNER) && (bits & (JOIN_LEFT | JOIN_RIGHT)))
        parser_fail(c);
    return (uint8_t)(bits & (JOIN_LEFT | JOIN_RIGHT) ? bits : bits | JOIN_INNER);
}

static struct sql_from *parse_sources(struct parser *c)
{
    struct sql_from *first = NULL, **end = &first;
    uint8_t join = 0;
    do {
        struct sql_from *s = *end = NEW(c, sql_from);
        end = &s->next;
        s->join = join;
        parse_source(c, s);
        join = parse_join(c);
    } while (join && !c->bad);
    return first;
}

/* ---- SELECT ---- */

/* Is this `name.*`? */
static bool at_table_star(const struct parser *c)
{
    enum sql_word word;
    return parser_at_name(c, NAME_MARKED) && parser_peek(c, 1, &word) == TOKEN_DOT &&
           parser_peek(c, 2, &word) == TOKEN_STAR;
}

static void parse_item(struct parser *c, struct sql_item *item)
{
    item->at.first = c->i;
    if (at_table_star(c)) {
        item->table = parser_name(c, NAME_MARKED);
        parser_advance(c);
    }
    if (parser_accept(c, TOKEN_STAR)) {
        item->star = true;
        item->at.end = c->last;
        return;
    }
    item->expr = parse_expr(c);
    item->at.end = c->last;
    item->alias = parse_alias(c);
}

static void parse_core(struct parser *c, struct sql_select *s)
{
    struct sql_item **end = &s->items;
    uint32_t n;
    s->distinct = parser_accept_word(c, WORD_DISTINCT);
    if (!s->distinct)
        parser_accept_word(c, WORD_ALL);
    do {
        struct sql_item *item = *end = NEW(c, sql_item);
        end = &item->next;
        parse_item(c, item);
        s->n_items++;
    } while (parser_accept(c, TOKEN_COMMA));
    s->from_at.first = c->i;
    if (parser_accept_word(c, WORD_FROM))
        s->from = parse_sources(c);
    s->from_at.end = c->last;
    if (parser_accept_word(c, WORD_WHERE))
        s->where = parse_expr(c);
    if (parser_accept_word(c, WORD_GROUP)) {
        parser_expect_word(c, WORD_BY);
        s->group = parse_expr_list(c, &n);
    }
    if (parser_accept_word(c, WORD_HAVING))
        s->having = parse_expr(c);
    if (parser_accept_word(c, WORD_WINDOW))
        s->windows = parse_windows(c);
}

static void parse_values(struct parser *c, struct sql_select *s)
{
    struct sql_expr **end = &s->rows;
    do {
        struct sql_expr *row = *end = NEW(c, sql_expr);
        end = &row->next;
        row->kind = EXPR_ROW;
        row->height = 1;
        row->at.first = c->i;
        parser_expect(c, TOKEN_LP);
        row->args = parse_expr_list(c, &row->n_args);
        parser_expect(c, TOKEN_RP);
        row->at.end = c->last;
    } while (parser_accept(c, TOKEN_COMMA));
}

static enum compound parse_compound(struct parser *c)
{
    if (parser_accept_word(c, WORD_UNION))
        return parser_accept_word(c, WORD_ALL) ? COMPOUND_UNION_ALL : COMPOUND_UNION;
    if (parser_accept_word(c, WORD_INTERSECT))
        return COMPOUND_INTERSECT;
    return parser_accept_word(c, WORD_EXCEPT) ? COMPOUND_EXCEPT : COMPOUND_NONE;
}

static void parse_with(struct parser *c, struct sql_query *q)
{
    struct sql_cte **end = &q->ctes;
    enum sql_word next;
    parser_peek(c, 1, &next);
    q->recursive = c->word == WORD_RECURSIVE && next != WORD_AS;
    if (q->recursive)
        parser_advance(c);
    do {
        struct sql_cte *cte = *end = NEW(c, sql_cte);
        end = &cte->next;
        cte->name = parser_name(c, NAME_MARKED);
        if (parser_accept(c, TOKEN_LP)) {
            cte->columns = parse_names(c);
            parser_expect(c, TOKEN_RP);
        }
        parser_expect_word(c, WORD_AS);
        cte->not_materialized = parser_accept_word(c, WORD_NOT);
        if (cte->not_materialized)
            parser_expect_word(c, WORD_MATERIALIZED);
        else
            cte->materialized = parser_accept_word(c, WORD_MATERIALIZED);
        parser_expect(c, TOKEN_LP);
        cte->query = parse_query(c);
        parser_expect(c, TOKEN_RP);
        *c->cte_end = cte;
        c->cte_end = &cte->next_cte;
    } while (parser_accept(c, TOKEN_COMMA));
}

/* Returns the last of them. */
static const struct sql_select *parse_cores(struct parser *c, struct sql_query *q)
{
    struct sql_select *s;
    struct sql_select **end = &q->selects;
    enum compound compound = COMPOUND_NONE;
    do {
        s = *end = NEW(c, sql_select);
        end = &s->next;
        s->compound = (uint8_t)compound;
        s->query = q;
        s->at.first = c->i;
        if (parser_accept_word(c, WORD_VALUES)) {
            parse_values(c, s);
        } else {
            parser_expect_word(c, WORD_SELECT);
            parse_core(c, s);
        }
        s->at.end = c->last;
        *c->core_end = s;
        c->core_end = &s->next_core;
        compound = parse_compound(c);
    } while (compound != COMPOUND_NONE);
    return s;
}

static void parse_tail(struct parser *c, struct sql_query *q)
{
    if (parser_accept_word(c, WORD_ORDER)) {
        parser_expect_word(c, WORD_BY);
        q->order = parse_order_list(c);
    }
    if (parser_accept_word(c, WORD_LIMIT)) {
        q->limit = parse_expr(c);
        if (parser_accept_word(c, WORD_OFFSET)) {
            q->offset = parse_expr(c);
        } else if (parser_accept(c, TOKEN_COMMA)) { /* LIMIT offset, limit */
            q->offset = q->limit;
            q->limit = parse_expr(c);
        }
    }
}

struct sql_query *parse_query(struct parser *c)
{
    struct sql_query *q = NEW(c, sql_query);
    q->at.first = c->i;
    if (!parser_enter(c))
        return q;
    if (parser_accept_word(c, WORD_WITH))
        parse_with(c, q);
    if (!parse_cores(c, q)->rows) /* behind VALUES there is neither order nor limit, in SQLite */
        parse_tail(c, q);
    q->at.end = c->last;
    parser_leave(c);
    return q;
}

bool sql_tree_parse(struct sql_tree *out, struct arena *arena, const struct sql_token *p, size_t n)
{
    struct parser c;
    if (n > UINT32_MAX / 2)
        return false;
    parser_start(&c, out, arena, p, n);
    if (!parser_at_query(&c))
        return false;
    out->query = parse_query(&c);
    parser_accept(&c, TOKEN_SEMI);
    if (c.i < c.n)
        parser_fail(&c);
    return !c.bad;
}

const char *sql_tree_text(const struct sql_tree *t, struct arena *arena, struct sql_span span, size_t *len)
{
    return sql_tokens_join(arena, t->tokens + span.first, span.end - span.first, len);
}

const char *sql_item_text(const struct sql_tree *t, struct arena *arena, struct sql_span item, size_t *len)
{
    while (item.end < t->n_tokens && token_is_blank(t->tokens[item.end].kind))
        item.end++;
    char *text = sql_tokens_join(arena, t->tokens + item.first, item.end - item.first, len);
    while (text && *len && strchr(" \t\n\v\f\r", text[*len - 1]))
        text[--*len] = 0;
    return text;
}
