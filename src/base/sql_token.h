/* SQL text to tokens, by SQLite's lexical rules.
 *
 * Two things differ from SQLite's own tokenizer, as the PerfettoSQL extensions need them: a lone `!` is a token (macro
 * calls), and `$name(` is a variable followed by a parenthesis. Tokens are views of the text. */
#ifndef MERIDIAN_BASE_SQL_TOKEN_H
#define MERIDIAN_BASE_SQL_TOKEN_H

#include "base/slice.h"

enum token_kind {
    TOKEN_END,
    TOKEN_SPACE,
    TOKEN_COMMENT,
    TOKEN_WORD,     /* a name or keyword without quotes */
    TOKEN_QUOTED,   /* "name", `name` or [name] */
    TOKEN_STRING,   /* 'text' */
    TOKEN_NUMBER,   /* also x'ab' blobs */
    TOKEN_VARIABLE, /* ?, ?1, $a, :a, @a, #a */
    TOKEN_LP,
    TOKEN_RP,
    TOKEN_COMMA,
    TOKEN_SEMI,
    TOKEN_DOT,
    TOKEN_STAR,
    TOKEN_BANG,
    TOKEN_OPERATOR,
    TOKEN_ILLEGAL, /* unterminated string, stray byte, 12ab */
};

/* The token at the start of text[0, len); *kind tells which. Its length; 0 only at the end. */
size_t token_next(const char *text, size_t len, enum token_kind *kind);

static inline bool token_is_blank(enum token_kind kind)
{
    return kind == TOKEN_SPACE || kind == TOKEN_COMMENT;
}

/* Is the token's text this keyword (given in lower case)? */
bool token_is(const char *text, size_t len, const char *keyword);

/* A name token without its quotes, copied (mem_alloc); NULL when out of memory. */
char *token_name(const char *text, size_t len);

#endif
