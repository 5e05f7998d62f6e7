/* SQL text to tokens: one function that looks at the first byte and then runs to the token's end. */
#include "base/sql_token.h"

#include "base/alloc.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_name(char c)
{
    return is_name_start(c) || is_digit(c) || c == '$';
}

/* A quoted run that starts at t[0]; a doubled quote stands for itself. */
static size_t quoted(const char *t, size_t n, char close, bool *closed)
{
    size_t i = 1;
    for (; i < n; i++) {
        if (t[i] != close)
            continue;
        if (close != ']' && i + 1 < n && t[i + 1] == close) {
            i++;
            continue;
        }
        *closed = true;
        return i + 1;
    }
    *closed = false;
    return n;
}

/* Where digits from i on end; one separator may stand between two of them ("1_000"). */
static size_t digits_end(const char *t, size_t n, size_t i, bool (*is_one)(char))
{
    size_t first = i;
    while (i < n && (is_one(t[i]) || (t[i] == '_' && i > first && t[i - 1] != '_' && i + 1 < n && is_one(t[i + 1]))))
        i++;
    return i;
}

static size_t number(const char *t, size_t n, enum token_kind *kind)
{
    size_t i = 0;
    *kind = TOKEN_NUMBER;
    if (t[0] == '0' && n > 2 && (t[1] == 'x' || t[1] == 'X') && is_hex(t[2])) {
        i = digits_end(t, n, 2, is_hex);
    } else {
        i = digits_end(t, n, 0, is_digit);
        if (i < n && t[i] == '.')
            i = digits_end(t, n, i + 1, is_digit);
        if (i < n && (t[i] == 'e' || t[i] == 'E')) {
            size_t e = i + 1;
            if (e < n && (t[e] == '+' || t[e] == '-'))
                e++;
            if (e < n && is_digit(t[e]))
                i = digits_end(t, n, e, is_digit);
        }
    }
    while (i < n && is_name(t[i])) { /* "12ab" */
        *kind = TOKEN_ILLEGAL;
        i++;
    }
    return i;
}

static size_t blob(const char *t, size_t n, enum token_kind *kind)
{
    size_t i = 2;
    while (i < n && is_hex(t[i]))
        i++;
    *kind = i < n && t[i] == '\'' && i % 2 == 0 ? TOKEN_NUMBER : TOKEN_ILLEGAL;
    while (i < n && t[i] != '\'')
        i++;
    return i < n ? i + 1 : n;
}

static size_t variable(const char *t, size_t n, enum token_kind *kind)
{
    size_t i = 1;
    bool named = false;
    if (t[0] == '?') {
        while (i < n && is_digit(t[i]))
            i++;
        *kind = TOKEN_VARIABLE;
        return i;
    }
    for (; i < n; i++) {
        if (is_name(t[i]))
            named = true;
        else if (t[i] == ':' && i + 1 < n && t[i + 1] == ':')
            i++;
        else
            break;
    }
    *kind = named ? TOKEN_VARIABLE : TOKEN_ILLEGAL;
    return i;
}

/* The operators; words among them do not come here. */
static const struct {
    const char *text;
    size_t len;
} operators[] = {
#define PLAN_OP(name, text, precedence, constraint) {text, sizeof(text) - 1},
#define SQL_OP(name, text, precedence)              {text, sizeof(text) - 1},
#define SQL_ALIAS(name, text)                       {text, sizeof(text) - 1},
#include "base/sql_operators.def"
};

/* The longest that stands at t[0]. */
static size_t operator(const char *t, size_t n, enum token_kind *kind)
{
    size_t longest = 0;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        size_t len = operators[i].len;
        if (operators[i].text[0] == t[0] && len > longest && len <= n && memcmp(t, operators[i].text, len) == 0)
            longest = len;
    }
    *kind = longest ? TOKEN_OPERATOR : TOKEN_ILLEGAL;
    return longest ? longest : 1;
}

/* A comment at t[0], or 0. */
static size_t comment(const char *t, size_t n)
{
    if (n > 1 && t[0] == '-' && t[1] == '-') {
        const char *nl = memchr(t, '\n', n);
        return nl ? (size_t)(nl - t) : n;
    }
    if (n < 3 || t[0] != '/' || t[1] != '*')
        return 0;
    for (size_t i = 3; i < n; i++)
        if (t[i] == '/' && t[i - 1] == '*')
            return i + 1;
    return n; /* SQLite lets an open comment run to the end */
}

/* What begins with a sign. */
static size_t sign(const char *t, size_t n, enum token_kind *kind)
{
    static const struct {
        char sign;
        uint8_t kind;
    } single[] = {{'(', TOKEN_LP},   {')', TOKEN_RP},  {',', TOKEN_COMMA},
                  {';', TOKEN_SEMI}, {'.', TOKEN_DOT}, {'*', TOKEN_STAR}};
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        if (t[0] == single[i].sign) {
            *kind = (enum token_kind)single[i].kind;
            return 1;
        }
    size_t len = comment(t, n);
    if (len) {
        *kind = TOKEN_COMMENT;
        return len;
    }
    if (t[0] == '!' && (n < 2 || t[1] != '=')) {
        *kind = TOKEN_BANG;
        return 1;
    }
    return operator(t, n, kind);
}

size_t token_next(const char *t, size_t n, enum token_kind *kind)
{
    size_t i = 1;
    bool closed;
    if (n == 0) {
        *kind = TOKEN_END;
        return 0;
    }
    if (is_space(t[0])) {
        while (i < n && is_space(t[i]))
            i++;
        *kind = TOKEN_SPACE;
        return i;
    }
    if ((t[0] == 'x' || t[0] == 'X') && n > 1 && t[1] == '\'')
        return blob(t, n, kind);
    if (is_name_start(t[0])) {
        while (i < n && is_name(t[i]))
            i++;
        *kind = TOKEN_WORD;
        return i;
    }
    if (is_digit(t[0]) || (t[0] == '.' && n > 1 && is_digit(t[1])))
        return number(t, n, kind);
    switch (t[0]) {
    case '\'':
    case '"':
    case '`':
    case '[':
        i = quoted(t, n, t[0] == '[' ? ']' : t[0], &closed);
        *kind = !closed ? TOKEN_ILLEGAL : t[0] == '\'' ? TOKEN_STRING : TOKEN_QUOTED;
        return i;
    case '?':
    case '$':
    case ':':
    case '@':
    case '#':
        return variable(t, n, kind);
    default:
        return sign(t, n, kind);
    }
}

bool token_is(const char *text, size_t len, const char *keyword)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c + 32);
        if (c != keyword[i] || !keyword[i])
            return false;
    }
    return !keyword[len];
}

char *token_name(const char *text, size_t len)
{
    char close = len ? text[0] : 0;
    if (close == '[')
        return mem_strndup(text + 1, len - 2);
    if (close != '"' && close != '`' && close != '\'')
        return mem_strndup(text, len);
    char *out = mem_alloc(len);
    if (!out)
        return NULL;
    size_t n = 0;
    for (size_t i = 1; i + 1 < len; i++) {
        out[n++] = text[i];
        if (text[i] == close)
            i++;
    }
    out[n] = 0;
    return out;
}
