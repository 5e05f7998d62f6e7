/* The cursor over a statement's tokens: keywords, names, nodes. */
#include "sql/frontend/parser.h"

#include <strings.h>

/* SQLite's text ends at a NUL; ours may have one in quotes and comments. */
static bool has_nul(const struct sql_token *t)
{
    bool long_text = t->kind == TOKEN_STRING || t->kind == TOKEN_QUOTED || t->kind == TOKEN_COMMENT;
    return long_text && memchr(t->text, 0, t->len);
}

static void settle(struct parser *c, uint32_t i)
{
    while (i < c->n && token_is_blank(c->p[i].kind) && !has_nul(&c->p[i]))
        i++;
    if (i < c->n && has_nul(&c->p[i])) {
        parser_fail(c);
        return;
    }
    c->i = i;
    c->kind = i < c->n ? c->p[i].kind : TOKEN_END;
    c->word = c->kind == TOKEN_WORD ? (uint8_t)sql_word_find(c->p[i].text, c->p[i].len) : WORD_NONE;
}

void parser_start(struct parser *c, struct sql_tree *tree, struct arena *arena, const struct sql_token *p, size_t n)
{
    *tree = (struct sql_tree){.tokens = p, .n_tokens = (uint32_t)n};
    *c = (struct parser){.tree = tree, .arena = arena, .p = p, .n = (uint32_t)n};
    c->core_end = &tree->cores;
    c->cte_end = &tree->ctes;
    settle(c, 0);
}

void parser_advance(struct parser *c)
{
    if (c->i < c->n) {
        c->last = c->i + 1;
        settle(c, c->i + 1);
    }
}

void parser_fail(struct parser *c)
{
    c->bad = true;
    c->i = c->n;
    c->kind = TOKEN_END;
    c->word = WORD_NONE;
}

enum token_kind parser_peek(const struct parser *c, int ahead, enum sql_word *word)
{
    uint32_t i = c->i;
    *word = WORD_NONE;
    for (; ahead > 0; ahead--) {
        i += i < c->n;
        while (i < c->n && token_is_blank(c->p[i].kind))
            i++;
    }
    if (i >= c->n)
        return TOKEN_END;
    if (c->p[i].kind == TOKEN_WORD)
        *word = sql_word_find(c->p[i].text, c->p[i].len);
    return (enum token_kind)c->p[i].kind;
}

bool parser_accept(struct parser *c, enum token_kind kind)
{
    if (c->kind != kind)
        return false;
    parser_advance(c);
    return true;
}

bool parser_accept_word(struct parser *c, enum sql_word word)
{
    if (c->word != word)
        return false;
    parser_advance(c);
    return true;
}

void parser_expect(struct parser *c, enum token_kind kind)
{
    if (!parser_accept(c, kind))
        parser_fail(c);
}

void parser_expect_word(struct parser *c, enum sql_word word)
{
    if (!parser_accept_word(c, word))
        parser_fail(c);
}

/* WINDOW name AS (…) is a clause, where an alias might stand. */
static bool is_window_clause(const struct parser *c)
{
    enum sql_word word;
    enum token_kind kind = parser_peek(c, 1, &word);
    if (kind != TOKEN_WORD && kind != TOKEN_QUOTED)
        return false;
    parser_peek(c, 2, &word);
    return word == WORD_AS;
}

bool parser_at_name(const struct parser *c, enum name_place place)
{
    if (c->kind == TOKEN_QUOTED)
        return true;
    if (c->kind != TOKEN_WORD)
        return false;
    switch (sql_word_kind((enum sql_word)c->word)) {
    case WORD_RESERVED_:
        return false;
    case WORD_JOINING_:
        return place == NAME_MARKED;
    case WORD_PLAIN:
        return true;
    default:
        break;
    }
    if (place == NAME_ALIAS) /* these go on with the expression in front of them */
        return c->word != WORD_LIKE && c->word != WORD_GLOB && c->word != WORD_REGEXP && c->word != WORD_MATCH &&
               !(c->word == WORD_WINDOW && is_window_clause(c));
    return true;
}

/* The text between quotes; a quote that is doubled in it makes a copy. */
static struct sql_name unquoted(struct parser *c, const struct sql_token *t)
{
    struct sql_name name = {t->text, t->len, c->i};
    char close = t->text[0] == '[' ? ']' : t->text[0];
    if ((t->kind != TOKEN_QUOTED && t->kind != TOKEN_STRING) || t->len < 2)
        return name;
    name.p++;
    name.len -= 2;
    if (close == ']' || !memchr(name.p, close, name.len))
        return name;
    char *copy = parser_node(c, name.len);
    uint32_t to = 0;
    for (uint32_t i = 0; i < name.len && !c->bad; i++) {
        copy[to++] = name.p[i];
        i += name.p[i] == close;
    }
    name.p = copy;
    name.len = to;
    return name;
}

struct sql_name parser_name(struct parser *c, enum name_place place)
{
    struct sql_name name = {"", 0, c->i};
    if (parser_at_name(c, place))
        name = unquoted(c, &c->p[c->i]);
    if (name.len)
        parser_advance(c);
    else
        parser_fail(c); /* also a name of no letters: "" */
    return name;
}

struct sql_name parser_string_name(struct parser *c)
{
    struct sql_name name = unquoted(c, &c->p[c->i]);
    if (name.len)
        parser_advance(c);
    else
        parser_fail(c);
    return name;
}

bool sql_name_is(struct sql_name a, const char *text)
{
    return a.len && a.len == strlen(text) && strncasecmp(a.p, text, a.len) == 0;
}

bool sql_name_equal(struct sql_name a, struct sql_name b)
{
    return a.len == b.len && strncasecmp(a.p, b.p, a.len) == 0;
}

void *parser_node(struct parser *c, size_t size)
{
    void *p = c->bad ? NULL : arena_zalloc(c->arena, size);
    if (p)
        return p;
    parser_fail(c);
    memset(&c->waste, 0, sizeof c->waste);
    return &c->waste;
}

bool parser_enter(struct parser *c)
{
    if (c->depth < SQL_TREE_MAX_DEPTH && !c->bad) {
        c->depth++;
        return true;
    }
    parser_fail(c);
    return false;
}

void parser_leave(struct parser *c)
{
    c->depth--;
}
