/* What the two halves of the parser of SELECT share: the cursor over the tokens. Inside of frontend/ only. */
#ifndef MERIDIAN_SQL_FRONTEND_PARSER_H
#define MERIDIAN_SQL_FRONTEND_PARSER_H

#include "sql/frontend/keywords.h"
#include "sql/frontend/select.h"

struct parser {
    struct sql_tree *tree;
    struct arena *arena;
    const struct sql_token *p;
    uint32_t n;
    uint32_t i;    /* the current token, not blank; n at the end */
    uint8_t kind;  /* its kind; TOKEN_END at the end, and when `bad` */
    uint8_t word;  /* enum sql_word, when it is a word */
    uint32_t last; /* behind the token before */
    uint32_t depth;
    uint16_t tallest;             /* expression since the query around it began */
    struct sql_select **core_end; /* where the next core is hung in */
    struct sql_cte **cte_end;
    bool bad;
    union { /* what a parser that has failed writes to, and nobody reads */
        struct sql_expr expr;
        struct sql_select select;
        struct sql_from source;
        struct sql_window window;
    } waste;
};

void parser_start(struct parser *c, struct sql_tree *tree, struct arena *arena, const struct sql_token *p, size_t n);
void parser_advance(struct parser *c);
void parser_fail(struct parser *c); /* no tree comes of it: every loop ends */
/* The token behind the current one, or behind that; *word: which keyword it is. */
enum token_kind parser_peek(const struct parser *c, int ahead, enum sql_word *word);

bool parser_accept(struct parser *c, enum token_kind kind);
bool parser_accept_word(struct parser *c, enum sql_word word);
void parser_expect(struct parser *c, enum token_kind kind);
void parser_expect_word(struct parser *c, enum sql_word word);

/* Where may a name stand: among operands, behind AS or a dot, behind an expression or a table without AS. */
enum name_place { NAME_OPERAND, NAME_MARKED, NAME_ALIAS };
bool parser_at_name(const struct parser *c, enum name_place place);
struct sql_name parser_name(struct parser *c, enum name_place place); /* fails when none is there */
struct sql_name parser_string_name(struct parser *c);                 /* of the string that stands next */

/* Zeroed, never NULL: when memory is short the parser fails, and a node to write to is given all the same. */
void *parser_node(struct parser *c, size_t size);
#define NEW(c, type) ((struct type *)parser_node((c), sizeof(struct type)))

/* Nesting of queries and parentheses. Each enter that gives true has its leave. */
bool parser_enter(struct parser *c);
void parser_leave(struct parser *c);

struct sql_expr *parse_expr(struct parser *c); /* never NULL */
struct sql_expr *parse_expr_list(struct parser *c, uint32_t *n);
struct sql_query *parse_query(struct parser *c);
void parse_named_source(struct parser *c, struct sql_from *s); /* [schema.]name [(arguments)] */
struct sql_order *parse_order_list(struct parser *c);
struct sql_window *parse_window_body(struct parser *c);
bool parser_at_query(const struct parser *c); /* SELECT, VALUES or WITH stands next */

#endif
