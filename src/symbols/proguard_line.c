/* Reads one line of a ProGuard map: a class, a field or a method. */
#include "symbols/proguard.h"

enum { MAX_WORDS = 5 }; /* one more than any line has */

/* Words stand between blanks; a tab is part of a word. */
static size_t split(struct slice line, struct slice words[MAX_WORDS])
{
    size_t n = 0, i = 0;
    while (n < MAX_WORDS) {
        while (i < line.len && line.p[i] == ' ')
            i++;
        size_t start = i;
        while (i < line.len && line.p[i] != ' ')
            i++;
        if (i == start)
            break;
        words[n++] = slice_of(line.p + start, i - start);
    }
    return n;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Takes a number off the front. */
static bool take_number(struct slice *s, uint32_t *value)
{
    uint64_t v = 0;
    size_t i = 0;
    for (; i < s->len && is_digit(s->p[i]); i++) {
        v = v * 10 + (uint64_t)(s->p[i] - '0');
        if (v > UINT32_MAX)
            return false;
    }
    *value = (uint32_t)v;
    *s = slice_of(s->p + i, s->len - i);
    return i > 0;
}

/* Takes "A" or "A:B" off the front; "A" alone is A:A. */
static bool take_lines(struct slice *s, struct proguard_lines *lines)
{
    if (!take_number(s, &lines->first))
        return false;
    lines->known = true;
    lines->last = lines->first;
    if (s->len < 2 || s->p[0] != ':' || !is_digit(s->p[1]))
        return true;
    *s = slice_of(s->p + 1, s->len - 1);
    return take_number(s, &lines->last);
}

/* [A:B:]TYPE name(params)[:C[:D]] */
static const char *method_parse(struct slice type, struct slice what, size_t name_len, struct proguard_member *m)
{
    if (is_digit(type.p[0])) {
        if (!take_lines(&type, &m->obfuscated_lines) || type.len < 2 || type.p[0] != ':')
            return "the lines in front of the type are not A:B:";
    }
    const uint8_t *end = memchr(what.p + name_len, ')', what.len - name_len);
    if (!end)
        return "the parameters have no ')'";
    struct slice tail = slice_of(end + 1, (size_t)(what.p + what.len - (end + 1)));
    m->name = slice_of(what.p, name_len);
    if (!tail.len)
        return NULL;
    bool ok = tail.p[0] == ':';
    tail = slice_of(tail.p + 1, tail.len - 1);
    return ok && take_lines(&tail, &m->source_lines) && !tail.len ? NULL
                                                                  : "the lines behind the parameters are not :C:D";
}

static const char *member_parse(struct slice words[MAX_WORDS], size_t n, struct proguard_member *m, bool *is_method)
{
    if (n != 4 || !slice_eq_str(words[2], "->"))
        return "a member is not TYPE NAME -> SHORT";
    const uint8_t *open = memchr(words[1].p, '(', words[1].len);
    *is_method = open != NULL;
    m->obfuscated = words[3];
    m->name = words[1];
    return open ? method_parse(words[0], words[1], (size_t)(open - words[1].p), m) : NULL;
}

static const char *class_parse(struct slice words[MAX_WORDS], size_t n, struct proguard_member *m)
{
    if (n != 3 || !slice_eq_str(words[1], "->") || words[2].len < 2 || words[2].p[words[2].len - 1] != ':')
        return "a class is not NAME -> SHORT:";
    m->name = words[0];
    m->obfuscated = slice_of(words[2].p, words[2].len - 1);
    return NULL;
}

enum proguard_line proguard_line_parse(struct slice line, struct proguard_member *m, const char **why)
{
    struct slice words[MAX_WORDS];
    bool is_method = false;
    size_t blank = 0;
    if (line.len && line.p[line.len - 1] == '\r')
        line.len--;
    while (blank < line.len && (line.p[blank] == ' ' || line.p[blank] == '\t'))
        blank++;
    if (blank == line.len || line.p[blank] == '#')
        return PROGUARD_NOTHING;

    bool is_member = line.p[0] == ' ';
    size_t n = split(line, words);
    *m = (struct proguard_member){0};
    *why = is_member ? member_parse(words, n, m, &is_method) : class_parse(words, n, m);
    if (!*why && (!m->name.len || m->name.len > PROGUARD_MAX_NAME || m->obfuscated.len > PROGUARD_MAX_NAME))
        *why = m->name.len ? "a name is longer than 4096 bytes" : "a method has no name";
    if (*why)
        return PROGUARD_BAD;
    return !is_member ? PROGUARD_CLASS : is_method ? PROGUARD_METHOD : PROGUARD_FIELD;
}
