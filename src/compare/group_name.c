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
