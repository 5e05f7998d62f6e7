/* Names without the numbers that differ from run to run. */
#include "compare/group_name.h"

#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_separator(char c)
{
    return c && strchr("-:/_# .", c);
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* The bytes of an id at `s`: hexadecimal digits, with separators between them as a UUID has. 0: none is there. */
static size_t id_bytes(const char *s)
{
    static const unsigned char parts[] = {8, 4, 4, 4, 12};
    enum { LEAST = 12 };
    size_t plain = 0, at = 0;
    while (is_hex(s[plain]))
        plain++;
    if (plain >= LEAST)
        return plain;
    for (size_t part = 0; part < sizeof parts; part++) {
        if (part && s[at] != '-' && s[at] != '_')
            return 0;
        at += part > 0;
        for (size_t i = 0; i < parts[part]; i++)
            if (!is_hex(s[at++]))
                return 0;
    }
    return at;
}

const char *cgroup_group_name(const char *path, char *to, size_t room)
{
    size_t n = 0;
    char whole[4096];
    for (const char *p = path ? path : ""; *p && n + 1 < sizeof whole;) {
        size_t id = id_bytes(p);
        whole[n++] = id ? '*' : *p;
        p += id ? id : 1;
    }
    whole[n] = 0;
    return group_name(whole, to, room);
}

const char *group_name(const char *name, char *to, size_t room)
{
    size_t n = 0, len = name ? strlen(name) : 0;
    for (size_t i = 0; i < len;) {
        bool counted = i && is_digit(name[i]) &&
                       (is_separator(name[i - 1]) || (i > 1 && name[i - 1] == 'u' && is_separator(name[i - 2])));
        size_t whole = utf8_sequence(name + i, len - i), take = whole ? whole : 1;
        if (n + take >= room)
            break;
        if (counted) {
            to[n++] = '*';
            while (is_digit(name[i]))
                i++;
            continue;
        }
        memcpy(to + n, name + i, take);
        if (!whole || (unsigned char)to[n] < ' ' || to[n] == 0x7f)
            to[n] = '?';
        n += take;
        i += take;
    }
    to[n] = 0;
    return to;
}
