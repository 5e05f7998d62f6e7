/* Reads the names behind CREATE. */
#include "summary/run/preambles.h"

#include "base/sql_token.h"

#include <ctype.h>
#include <string.h>

/* A name as it is compared: without quotes and case, cut where it is long (then a preamble may run once too often). */
struct created {
    char name[64];
    size_t len;
};

/* Words between CREATE and the name. */
static bool is_kind(const char *text, size_t len)
{
    static const char *const words[] = {"or",       "replace", "perfetto", "temp",  "temporary",
                                        "virtual",  "unique",  "table",    "index", "view",
                                        "function", "macro",   "if",       "not",   "exists"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (token_is(text, len, words[i]))
            return true;
    return false;
}

static void fold(struct created *c, const char *text, size_t len, bool quoted)
{
    text += quoted;
    len -= quoted ? 2 : 0;
    c->len = len < sizeof c->name ? len : sizeof c->name;
    for (size_t i = 0; i < c->len; i++)
        c->name[i] = (char)tolower((unsigned char)text[i]);
}

/* The next name that a statement of the text creates, from *at on; false: there is none. */
static bool next_created(const char *text, size_t *at, struct created *c)
{
    enum { BEGIN, INSIDE, CREATING } state = *at ? INSIDE : BEGIN;
    size_t end = strlen(text);
    while (*at < end) {
        enum token_kind kind;
        const char *token = text + *at;
        size_t n = token_next(token, end - *at, &kind);
        *at += n;
        if (token_is_blank(kind))
            continue;
        if (kind == TOKEN_SEMI)
            state = BEGIN;
        else if (state == BEGIN)
            state = kind == TOKEN_WORD && token_is(token, n, "create") ? CREATING : INSIDE;
        else if (state == CREATING && !(kind == TOKEN_WORD && is_kind(token, n))) {
            fold(c, token, n, kind == TOKEN_QUOTED);
            return true;
        }
    }
    return false;
}

bool preambles_hold(const struct preambles *p, const char *text)
{
    strid id = strpool_find(&p->texts, text, strlen(text));
    struct created c;
    for (size_t at = 0; id && next_created(text, &at, &c);) {
        strid name = strpool_find(&p->names, c.name, c.len);
        if (name && p->makers.p[name - 1] != id)
            return false;
    }
    return id != 0;
}

bool preambles_note(struct preambles *p, const char *text)
{
    strid id = strpool_intern_str(&p->texts, text);
    struct created c;
    for (size_t at = 0; id && next_created(text, &at, &c);) {
        strid name = strpool_intern(&p->names, c.name, c.len);
        if (!name || (name > p->makers.n && !vec_push(&p->makers, id)))
            return false;
        p->makers.p[name - 1] = id;
    }
    return id != 0;
}

void preambles_free(struct preambles *p)
{
    strpool_free(&p->texts);
    strpool_free(&p->names);
    vec_free(&p->makers);
}
