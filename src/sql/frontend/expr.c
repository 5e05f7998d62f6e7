/* Expressions: precedence climbing over SQLite's operators.
 *
 * parse_binary(c, least) reads an operand and every operator behind it that binds at least as tightly as `least`; the
 * numbers are those of base/sql_operators.def. A prefix NOT takes all that binds tighter than NOT, wherever it stands.
 */
#include "sql/frontend/parser.h"

#include <strings.h>

enum { LOWEST = 1, BEHIND_NOT = 4, EQUALITY = 4, BEHIND_EQUALITY = 5, COLLATION = 11, TIGHTEST = 12 };

static const struct {
    const char *text;
    uint8_t precedence;
} operators[SQL_OP_COUNT] = {
#define PLAN_OP(name, text, precedence, constraint) [SQL_##name] = {text, precedence},
#define SQL_OP(name, text, precedence)              [SQL_##name] = {text, precedence},
#define SQL_ALIAS(name, text)
#include "base/sql_operators.def"
};

static const struct {
    const char *text;
    enum sql_op op;
} aliases[] = {
#define PLAN_OP(name, text, precedence, constraint)
#define SQL_OP(name, text, precedence)
#define SQL_ALIAS(name, text) {text, SQL_##name},
#include "base/sql_operators.def"
};

const char *sql_op_text(enum sql_op op)
{
    return operators[op].text;
}

static struct sql_expr *parse_binary(struct parser *c, int least);

static struct sql_expr *new_expr(struct parser *c, enum expr_kind kind, uint32_t first)
{
    struct sql_expr *e = NEW(c, sql_expr);
    e->kind = (uint8_t)kind;
    e->at.first = first;
    e->height = 1;
    return e;
}

/* The last thing done to a node: its end, and its height. */
static struct sql_expr *done(struct parser *c, struct sql_expr *e)
{
    e->at.end = c->last;
    if (c->bad)
        return e;
    for (const struct sql_expr *a = e->args; a; a = a->next)
        if (a->height >= e->height)
            e->height = (uint16_t)(a->height + 1);
    if (e->height > c->tallest)
        c->tallest = e->height;
    if (e->height > SQL_TREE_MAX_HEIGHT)
        parser_fail(c);
    return e;
}

/* Between these two stands what hangs on a node without being among its args: a query, a window. */
static uint16_t begin_below(struct parser *c)
{
    uint16_t outside = c->tallest;
    c->tallest = 0;
    return outside;
}

static void end_below(struct parser *c, struct sql_expr *e, uint16_t outside)
{
    if (c->tallest >= e->height)
        e->height = (uint16_t)(c->tallest + 1);
    if (c->tallest < outside)
        c->tallest = outside;
}

static void query_below(struct parser *c, struct sql_expr *e)
{
    uint16_t outside = begin_below(c);
    e->query = parse_query(c);
    end_below(c, e, outside);
}

/* Puts a node that is complete (of a query of its own, or with a height) behind the others. */
static void add_arg(struct sql_expr *e, struct sql_expr **end, struct sql_expr *arg)
{
    *end = arg;
    e->n_args++;
}

static struct sql_expr *with_args(struct parser *c, enum expr_kind kind, enum sql_op op, struct sql_expr *a,
                                  struct sql_expr *b)
{
    struct sql_expr *e = new_expr(c, kind, a->at.first);
    e->op = (uint8_t)op;
    e->args = a;
    e->n_args = b ? 2 : 1;
    if (!c->bad)
        a->next = b;
    return e;
}

/* ---- operands ---- */

static struct sql_expr *literal(struct parser *c, enum expr_kind kind)
{
    struct sql_expr *e = new_expr(c, kind, c->i);
    parser_advance(c);
    return done(c, e);
}

static enum expr_kind number_kind(const struct sql_token *t)
{
    if (t->text[0] == 'x' || t->text[0] == 'X')
        return EXPR_BLOB;
    if (t->len > 1 && (t->text[1] | 32) == 'x')
        return EXPR_INTEGER;
    for (uint32_t i = 0; i < t->len; i++)
        if (t->text[i] == '.' || (t->text[i] | 32) == 'e')
            return EXPR_FLOAT;
    return EXPR_INTEGER;
}

static struct sql_expr *case_expr(struct parser *c)
{
    struct sql_expr *e = new_expr(c, EXPR_CASE, c->i), **end = &e->args;
    parser_advance(c);
    if (c->word != WORD_WHEN) {
        e->has_base = true;
        add_arg(e, end, parse_expr(c));
        end = &(*end)->next;
    }
    do {
        parser_expect_word(c, WORD_WHEN);
        add_arg(e, end, parse_expr(c));
        end = &(*end)->next;
        parser_expect_word(c, WORD_THEN);
        add_arg(e, end, parse_expr(c));
        end = &(*end)->next;
    } while (c->word == WORD_WHEN);
    if (parser_accept_word(c, WORD_ELSE)) {
        e->has_else = true;
        add_arg(e, end, parse_expr(c));
    }
    parser_expect_word(c, WORD_END);
    return done(c, e);
}

/* CAST(x AS TYPE NAME(1, 2)) */
static struct sql_expr *cast_expr(struct parser *c)
{
    struct sql_expr *e = new_expr(c, EXPR_CAST, c->i);
    parser_advance(c);
    parser_expect(c, TOKEN_LP);
    e->args = parse_expr(c);
    e->n_args = 1;
    parser_expect_word(c, WORD_AS);
    e->type.first = c->i;
    while (parser_at_name(c, NAME_OPERAND))
        parser_advance(c);
    if (parser_accept(c, TOKEN_LP)) {
        do {
            if (c->kind == TOKEN_OPERATOR && (*c->p[c->i].text == '-' || *c->p[c->i].text == '+'))
                parser_advance(c);
            parser_expect(c, TOKEN_NUMBER);
        } while (parser_accept(c, TOKEN_COMMA));
        parser_expect(c, TOKEN_RP);
    }
    e->type.end = c->last;
    parser_expect(c, TOKEN_RP);
    return done(c, e);
}

/* FILTER (WHERE …) OVER name, or OVER (…), behind a call. */
static void call_window(struct parser *c, struct sql_expr *e)
{
    enum sql_word next_word;
    enum token_kind next = parser_peek(c, 1, &next_word);
    if (c->word == WORD_FILTER && next == TOKEN_LP) {
        parser_advance(c);
        parser_advance(c);
        parser_expect_word(c, WORD_WHERE);
        e->filter = parse_expr(c);
        parser_expect(c, TOKEN_RP);
        next = parser_peek(c, 1, &next_word);
    }
    if (c->word != WORD_OVER || (next != TOKEN_LP && next != TOKEN_WORD && next != TOKEN_QUOTED))
        return;
    parser_advance(c);
    c->tree->n_windows++;
    if (parser_accept(c, TOKEN_LP)) {
        e->over = parse_window_body(c);
        parser_expect(c, TOKEN_RP);
    } else {
        e->over = NEW(c, sql_window);
        e->over->at.first = c->i;
        e->over->name = parser_name(c, NAME_OPERAND);
        e->over->at.end = c->last;
    }
}

/* The current token is the parenthesis behind a name. */
static struct sql_expr *call_expr(struct parser *c, uint32_t first, struct sql_name name)
{
    struct sql_expr *e = new_expr(c, EXPR_FUNCTION, first);
    e->name = name;
    parser_advance(c);
    if (parser_accept(c, TOKEN_STAR)) {
        e->star = true;
    } else if (c->kind != TOKEN_RP) {
        e->distinct = parser_accept_word(c, WORD_DISTINCT);
        if (!e->distinct)
            parser_accept_word(c, WORD_ALL);
        e->args = parse_expr_list(c, &e->n_args);
    }
    parser_expect(c, TOKEN_RP);
    uint16_t outside = begin_below(c);
    call_window(c, e);
    end_below(c, e, outside);
    return done(c, e);
}

/* name, table.name, schema.table.name, name(…) */
static struct sql_expr *name_expr(struct parser *c)
{
    uint32_t first = c->i;
    bool quoted = c->kind == TOKEN_QUOTED;
    struct sql_name parts[3] = {parser_name(c, NAME_OPERAND)};
    int n = 1;
    if (c->kind == TOKEN_LP)
        return call_expr(c, first, parts[0]);
    while (n < 3 && parser_accept(c, TOKEN_DOT)) {
        quoted = false;
        parts[n++] = parser_name(c, NAME_MARKED);
    }
    struct sql_expr *e = new_expr(c, EXPR_COLUMN, first);
    e->name = parts[n - 1];
    if (n > 1)
        e->table = parts[n - 2];
    if (n > 2)
        e->schema = parts[0];
    e->quoted = quoted && !c->bad && c->p[first].text[0] == '"';
    return done(c, e);
}

/* Behind the parenthesis of a query. */
static struct sql_expr *query_expr(struct parser *c, enum expr_kind kind, uint32_t first)
{
    struct sql_expr *e = new_expr(c, kind, first);
    query_below(c, e);
    parser_expect(c, TOKEN_RP);
    return done(c, e);
}

static struct sql_expr *in_parentheses(struct parser *c)
{
    uint32_t first = c->i;
    struct sql_expr *e;
    if (!parser_enter(c))
        return new_expr(c, EXPR_NULL, first);
    parser_advance(c);
    if (parser_at_query(c)) {
        e = query_expr(c, EXPR_SELECT, first);
    } else {
        uint32_t n;
        e = parse_expr_list(c, &n);
        if (n > 1) {
            struct sql_expr *row = new_expr(c, EXPR_ROW, first);
            row->args = e;
            row->n_args = n;
            e = row;
        }
        parser_expect(c, TOKEN_RP);
        if (n > 1)
            e = done(c, e);
    }
    parser_leave(c);
    return e;
}

static struct sql_expr *word_operand(struct parser *c)
{
    enum sql_word next_word;
    enum token_kind next = parser_peek(c, 1, &next_word);
    switch (c->word) {
    case WORD_NULL:
        return literal(c, EXPR_NULL);
    case WORD_CURRENT_DATE:
    case WORD_CURRENT_TIME:
    case WORD_CURRENT_TIMESTAMP:
        return literal(c, EXPR_CURRENT);
    case WORD_CASE:
        return case_expr(c);
    case WORD_EXISTS: {
        uint32_t first = c->i;
        parser_advance(c);
        parser_expect(c, TOKEN_LP);
        return query_expr(c, EXPR_EXISTS, first);
    }
    case WORD_CAST:
        return next == TOKEN_LP ? cast_expr(c) : name_expr(c);
    case WORD_RAISE:
        if (next == TOKEN_LP)
            parser_fail(c); /* for triggers */
        return name_expr(c);
    default:
        return name_expr(c);
    }
}

static struct sql_expr *prefixed(struct parser *c, enum sql_op op, int least)
{
    struct sql_expr *e = new_expr(c, EXPR_UNARY, c->i);
    e->op = (uint8_t)op;
    if (!parser_enter(c))
        return e;
    parser_advance(c);
    e->args = parse_binary(c, least);
    e->n_args = 1;
    parser_leave(c);
    return done(c, e);
}

static struct sql_expr *operand(struct parser *c)
{
    const struct sql_token *t = &c->p[c->i];
    switch (c->kind) {
    case TOKEN_NUMBER:
        return literal(c, number_kind(t));
    case TOKEN_STRING:
        return literal(c, EXPR_STRING);
    case TOKEN_VARIABLE:
        c->tree->n_parameters++;
        return literal(c, EXPR_PARAMETER);
    case TOKEN_LP:
        return in_parentheses(c);
    case TOKEN_QUOTED:
        return name_expr(c);
    case TOKEN_WORD:
        return c->word == WORD_NOT ? prefixed(c, SQL_NOT, BEHIND_NOT) : word_operand(c);
    case TOKEN_OPERATOR:
        if (t->len == 1 && *t->text == '-')
            return prefixed(c, SQL_SUBTRACT, TIGHTEST);
        if (t->len == 1 && *t->text == '+')
            return prefixed(c, SQL_ADD, TIGHTEST);
        if (t->len == 1 && *t->text == '~')
            return prefixed(c, SQL_BIT_NOT, TIGHTEST);
        break;
    default:
        break;
    }
    parser_fail(c);
    return new_expr(c, EXPR_NULL, c->i);
}

/* ---- operators ---- */

/* The sign that stands next, or SQL_OP_COUNT. */
static enum sql_op sign(const struct parser *c)
{
    const struct sql_token *t = &c->p[c->i];
    if (c->kind == TOKEN_STAR)
        return SQL_MULTIPLY;
    if (c->kind != TOKEN_OPERATOR)
        return SQL_OP_COUNT;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strlen(aliases[i].text) == t->len && memcmp(aliases[i].text, t->text, t->len) == 0)
            return aliases[i].op;
    for (int op = 0; op < SQL_OP_COUNT; op++)
        if (operators[op].precedence && strlen(operators[op].text) == t->len &&
            memcmp(operators[op].text, t->text, t->len) == 0)
            return (enum sql_op)op;
    return SQL_OP_COUNT;
}

/* The operator that the keyword is, NOT passed over. */
static enum sql_op word_operator(const struct parser *c, bool *negated)
{
    enum sql_word word = (enum sql_word)c->word;
    *negated = word == WORD_NOT;
    if (*negated)
        parser_peek(c, 1, &word);
    switch (word) {
    case WORD_BETWEEN:
        return SQL_BETWEEN;
    case WORD_IN:
        return SQL_IN;
    case WORD_LIKE:
        return SQL_LIKE;
    case WORD_GLOB:
        return SQL_GLOB;
    case WORD_REGEXP:
        return SQL_REGEXP;
    case WORD_MATCH:
        return SQL_MATCH;
    case WORD_NULL:
        return *negated ? SQL_NOTNULL : SQL_OP_COUNT;
    default:
        break;
    }
    if (*negated)
        return SQL_OP_COUNT;
    return word == WORD_AND       ? SQL_AND
           : word == WORD_OR      ? SQL_OR
           : word == WORD_IS      ? SQL_IS
           : word == WORD_ISNULL  ? SQL_ISNULL
           : word == WORD_NOTNULL ? SQL_NOTNULL
                                  : SQL_OP_COUNT;
}

/* Behind IS: [NOT] [DISTINCT FROM] x. */
static struct sql_expr *is_expr(struct parser *c, struct sql_expr *left)
{
    bool negated = parser_accept_word(c, WORD_NOT), distinct = parser_accept_word(c, WORD_DISTINCT);
    if (distinct)
        parser_expect_word(c, WORD_FROM);
    if (c->word == WORD_NOT)
        parser_fail(c); /* IS NOT NOT x: what binds how is SQLite's secret */
    struct sql_expr *right = parse_binary(c, BEHIND_EQUALITY);
    struct sql_expr *e = with_args(c, EXPR_BINARY, negated != distinct ? SQL_ISNOT : SQL_IS, left, right);
    e->distinct = distinct;
    return done(c, e);
}

static struct sql_expr *between_expr(struct parser *c, struct sql_expr *left)
{
    struct sql_expr *low = parse_binary(c, EQUALITY);
    parser_expect_word(c, WORD_AND);
    struct sql_expr *high = parse_binary(c, BEHIND_EQUALITY);
    struct sql_expr *e = with_args(c, EXPR_BETWEEN, SQL_BETWEEN, left, low);
    if (!c->bad) {
        low->next = high;
        e->n_args = 3;
    }
    return done(c, e);
}

static struct sql_expr *match_expr(struct parser *c, enum sql_op op, struct sql_expr *left)
{
    struct sql_expr *pattern = parse_binary(c, BEHIND_EQUALITY), *escape = NULL;
    if (parser_accept_word(c, WORD_ESCAPE))
        escape = parse_binary(c, BEHIND_EQUALITY);
    struct sql_expr *e = with_args(c, EXPR_MATCH, op, left, pattern);
    if (!c->bad && escape) {
        pattern->next = escape;
        e->n_args = 3;
    }
    return done(c, e);
}

/* Behind IN: (list), (query), name, f(…). */
static struct sql_expr *in_expr(struct parser *c, struct sql_expr *left)
{
    struct sql_expr *e = with_args(c, EXPR_IN, SQL_IN, left, NULL);
    if (c->kind != TOKEN_LP) {
        struct sql_from *s = e->in_table = NEW(c, sql_from);
        s->at.first = c->i;
        parse_named_source(c, s);
        s->at.end = c->last;
        return done(c, e);
    }
    if (!parser_enter(c))
        return e;
    parser_advance(c);
    if (parser_at_query(c)) {
        query_below(c, e);
    } else if (c->kind != TOKEN_RP) {
        uint32_t n;
        struct sql_expr *list = parse_expr_list(c, &n);
        if (!c->bad) {
            left->next = list;
            e->n_args = n + 1;
        }
    }
    parser_expect(c, TOKEN_RP);
    parser_leave(c);
    return done(c, e);
}

/* The operator has been seen to be a word; takes it and what belongs to it. */
static struct sql_expr *word_expr(struct parser *c, enum sql_op op, bool negated, struct sql_expr *left)
{
    struct sql_expr *e;
    parser_advance(c);
    if (negated)
        parser_advance(c);
    switch (op) {
    case SQL_ISNULL:
    case SQL_NOTNULL:
        return done(c, with_args(c, EXPR_UNARY, op, left, NULL));
    case SQL_IS:
        return is_expr(c, left);
    case SQL_BETWEEN:
        e = between_expr(c, left);
        break;
    case SQL_IN:
        e = in_expr(c, left);
        break;
    default:
        e = match_expr(c, op, left);
        break;
    }
    e->negated = negated;
    return e;
}

static struct sql_expr *collated(struct parser *c, struct sql_expr *left)
{
    struct sql_expr *e = with_args(c, EXPR_COLLATE, SQL_OP_COUNT, left, NULL);
    parser_advance(c);
    e->name = parser_name(c, NAME_MARKED);
    return done(c, e);
}

static struct sql_expr *parse_binary(struct parser *c, int least)
{
    struct sql_expr *left = operand(c);
    while (!c->bad) {
        bool negated = false;
        enum sql_op op = c->kind == TOKEN_WORD ? word_operator(c, &negated) : sign(c);
        if (c->word == WORD_COLLATE && least <= COLLATION) {
            left = collated(c, left);
            continue;
        }
        if (op == SQL_OP_COUNT)
            break;
        bool null_test = op == SQL_ISNULL || op == SQL_NOTNULL;
        int precedence = null_test ? EQUALITY : operators[op].precedence;
        if (precedence < least)
            break;
        if (precedence == EQUALITY && c->kind == TOKEN_WORD) {
            left = word_expr(c, op, negated, left);
            continue;
        }
        parser_advance(c);
        struct sql_expr *right = parse_binary(c, precedence + 1);
        left = done(c, with_args(c, EXPR_BINARY, op, left, right));
    }
    return left;
}

struct sql_expr *parse_expr(struct parser *c)
{
    struct sql_expr *e;
    if (!parser_enter(c))
        return new_expr(c, EXPR_NULL, c->i);
    e = parse_binary(c, LOWEST);
    parser_leave(c);
    return e;
}

struct sql_expr *parse_expr_list(struct parser *c, uint32_t *n)
{
    struct sql_expr *first = NULL, **end = &first;
    *n = 0;
    do {
        *end = parse_expr(c);
        end = &(*end)->next;
        ++*n;
    } while (parser_accept(c, TOKEN_COMMA));
    return first;
}
