/* The tokens of TSDL. */
#include "importer/ctf/tsdl_lexer.h"

#include <ctype.h>
#include <string.h>

void tsdl_lexer_init(struct tsdl_lexer *l, const char *text, size_t len, struct arena *arena)
{
    *l = (struct tsdl_lexer){.p = text, .end = text + len, .line_start = text, .arena = arena, .line = 1};
    tsdl_next(l);
}

static void new_line(struct tsdl_lexer *l)
{
    l->line++;
    l->line_start = l->p;
}

static bool starts(const struct tsdl_lexer *l, const char *s)
{
    size_t n = strlen(s);
    return (size_t)(l->end - l->p) >= n && memcmp(l->p, s, n) == 0;
}

/* False when a comment does not end. */
static bool skip_blank(struct tsdl_lexer *l)
{
    for (;;) {
        if (l->p == l->end)
            return true;
        if (*l->p == '\n') {
            l->p++;
            new_line(l);
        } else if (isspace((unsigned char)*l->p) || *l->p == 0) {
            l->p++;
        } else if (starts(l, "//")) {
            while (l->p < l->end && *l->p != '\n')
                l->p++;
        } else if (starts(l, "/*")) {
            for (l->p += 2; !starts(l, "*/");) {
                if (l->p == l->end)
                    return false;
                if (*l->p++ == '\n')
                    new_line(l);
            }
            l->p += 2;
        } else {
            return true;
        }
    }
}

static int read_word(struct tsdl_lexer *l)
{
    const char *from = l->p;
    while (l->p < l->end && (isalnum((unsigned char)*l->p) || *l->p == '_'))
        l->p++;
    l->text = arena_strndup(l->arena, from, (size_t)(l->p - from));
    return l->text ? TSDL_WORD : TSDL_BAD;
}

static int digit_of(int c)
{
    return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : 99;
}

static int read_number(struct tsdl_lexer *l)
{
    int base = 10;
    if (starts(l, "0x") || starts(l, "0X")) {
        base = 16;
        l->p += 2;
    } else if (starts(l, "0b") || starts(l, "0B")) {
        base = 2;
        l->p += 2;
    } else if (*l->p == '0') {
        base = 8;
    }
    uint64_t v = 0;
    bool any = false;
    for (; l->p < l->end && digit_of((unsigned char)*l->p) < base; l->p++, any = true) {
        uint64_t d = (uint64_t)digit_of((unsigned char)*l->p);
        if (v > (UINT64_MAX - d) / (uint64_t)base)
            return TSDL_BAD;
        v = v * (uint64_t)base + d;
    }
    while (l->p < l->end && strchr("uUlL", *l->p) && *l->p)
        l->p++;
    l->number = v;
    bool ends_here = l->p == l->end || !(isalnum((unsigned char)*l->p) || *l->p == '_');
    return any && ends_here ? TSDL_NUMBER : TSDL_BAD;
}

static int read_text(struct tsdl_lexer *l)
{
    const char *from = ++l->p;
    while (l->p < l->end && *l->p != '"' && *l->p != '\n')
        l->p += *l->p == '\\' && l->p + 1 < l->end ? 2 : 1;
    if (l->p >= l->end || *l->p != '"')
        return TSDL_BAD;
    char *out = arena_strndup(l->arena, from, (size_t)(l->p - from));
    if (!out)
        return TSDL_BAD;
    char *w = out;
    for (const char *r = out; *r; r++) {
        if (*r != '\\') {
            *w++ = *r;
            continue;
        }
        static const char escapes[] = "n\nt\tr\ra\ab\bf\fv\v";
        const char *e = r[1] ? strchr(escapes, r[1]) : NULL;
        r++;
        if (!*r)
            break;
        *w++ = e && (e - escapes) % 2 == 0 ? e[1] : *r;
    }
    *w = 0;
    l->text = out;
    l->p++;
    return TSDL_TEXT;
}

void tsdl_next(struct tsdl_lexer *l)
{
    bool whole = skip_blank(l);
    l->token_line = l->line;
    l->token_column = (int)(l->p - l->line_start) + 1;
    if (!whole) {
        l->token = TSDL_BAD;
    } else if (l->p == l->end) {
        l->token = TSDL_END;
    } else if (isalpha((unsigned char)*l->p) || *l->p == '_') {
        l->token = read_word(l);
    } else if (isdigit((unsigned char)*l->p)) {
        l->token = read_number(l);
    } else if (*l->p == '"') {
        l->token = read_text(l);
    } else if (starts(l, ":=")) {
        l->p += 2;
        l->token = TSDL_ASSIGN;
    } else if (starts(l, "...")) {
        l->p += 3;
        l->token = TSDL_DOTS;
    } else if (strchr("{}[]<>();,.=:+-*", *l->p)) {
        l->token = *l->p++;
    } else {
        l->token = TSDL_BAD;
    }
}
