/* Splits TSDL text into tokens: words, numbers, strings, punctuation; comments and white space are passed over. */
#ifndef MERIDIAN_IMPORTER_CTF_TSDL_LEXER_H
#define MERIDIAN_IMPORTER_CTF_TSDL_LEXER_H

#include "base/arena.h"

enum tsdl_token {
    TSDL_END,
    TSDL_WORD,
    TSDL_NUMBER,
    TSDL_TEXT,   /* a string literal, escapes undone */
    TSDL_ASSIGN, /* := */
    TSDL_DOTS,   /* ... */
    TSDL_BAD,    /* a byte or literal that cannot be */
    /* any other token is the ASCII code of its character: { } [ ] < > ( ) ; , . = : + - * */
    TSDL_FIRST_CHAR = 32,
};

struct tsdl_lexer {
    const char *p, *end;
    const char *line_start;
    struct arena *arena; /* for words and texts */
    int line;
    /* the current token */
    int token;
    int token_line, token_column; /* from 1 */
    const char *text;             /* TSDL_WORD, TSDL_TEXT: NUL-terminated */
    uint64_t number;
};

void tsdl_lexer_init(struct tsdl_lexer *l, const char *text, size_t len, struct arena *arena);

/* Reads the next token into the lexer. */
void tsdl_next(struct tsdl_lexer *l);

#endif
