/* A regular expression as a tree, between its parser and its compiler. */
#ifndef MERIDIAN_SQL_FUNCTIONS_REGEX_TREE_H
#define MERIDIAN_SQL_FUNCTIONS_REGEX_TREE_H

#include "base/arena.h"
#include "sql/functions/regex.h"

#include <ctype.h>

enum node_kind { NODE_EMPTY, NODE_SET, NODE_CAT, NODE_ALT, NODE_REPEAT, NODE_GROUP, NODE_ASSERT };
enum assert_kind { ASSERT_BEGIN, ASSERT_END, ASSERT_WORD, ASSERT_NOT_WORD };

struct byte_set {
    uint64_t bits[4];
};

struct regex_node {
    uint8_t kind;
    bool lazy;
    int group;               /* NODE_GROUP: number or -1; NODE_ASSERT: enum assert_kind */
    int min, max;            /* NODE_REPEAT; max -1: no end */
    struct regex_node *a;    /* what is inside; of NODE_CAT and NODE_ALT the first of several */
    struct regex_node *next; /* the one behind it in the same sequence, or the next alternative */
    struct byte_set set;
};

struct regex_parser {
    const uint8_t *p, *end;
    struct arena arena;
    struct error *err;
    int n_groups, depth, n_nodes;
    bool ignore_case;
    int rc;
};

/* The most that an expression may take; of it in the tree: */
enum { REGEX_MAX_CODE = 50000, REGEX_MAX_NODES = 2 * REGEX_MAX_CODE };

/* The tree of the whole pattern, in the parser's arena; NULL with p->rc and p->err when it is none. */
struct regex_node *regex_parse(struct regex_parser *p);

/* Sets p->rc and p->err, the first time; returns NULL. */
struct regex_node *regex_parse_fail(struct regex_parser *p, int code, const char *text);

static inline bool set_has(const struct byte_set *s, uint8_t c)
{
    return s->bits[c >> 6] >> (c & 63) & 1;
}

static inline bool is_word(int c)
{
    return isalnum(c) || c == '_';
}

#endif
