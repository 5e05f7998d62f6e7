/* Chooses between the languages, and writes what libiberty says into a bounded text. */
#include "demangle/demangle.h"

#include <libiberty/demangle.h>
#include <string.h>

struct text {
    char *p;
    size_t n, room;
    bool full;
};

static void append(const char *s, size_t len, void *opaque)
{
    struct text *t = opaque;
    if (t->full || len >= t->room - t->n) {
        t->full = true;
        return;
    }
    if (len) /* libiberty's empty texts may have no place */
        memcpy(t->p + t->n, s, len);
    t->n += len;
}

/* Compilers name the parts and copies of a function by a suffix; libiberty writes "[clone .cold]" for it. */
static void shorten_clones(struct text *t)
{
    static const char clone[] = "[clone ";
    char *at = t->p;
    t->p[t->n] = 0;
    while ((at = strstr(at, clone))) {
        char *end = strchr(at, ']');
        size_t cut = sizeof clone - 2; /* all but "[", which becomes "(" */
        if (!end)
            break;
        *at = '(';
        *end = ')';
        memmove(at + 1, at + 1 + cut, (size_t)(t->p + t->n + 1 - (at + 1 + cut)));
        t->n -= cut;
    }
}

/* "17h" and 16 digits before the end: what the older compilers of Rust add to a name that is else one of C++. */
static bool has_rust_hash(const char *name, size_t len)
{
    for (size_t i = 0; i + 20 <= len; i++)
        if (memcmp(name + i, "17h", 3) == 0 && name[i + 19] == 'E' && strspn(name + i + 3, "0123456789abcdef") == 16)
            return true;
    return false;
}

size_t demangle(struct slice in, bool deep, char *out, size_t room)
{
    char name[DEMANGLE_MAX_MANGLED_DEEP + 1];
    size_t max = deep ? DEMANGLE_MAX_MANGLED_DEEP : DEMANGLE_MAX_MANGLED;
    struct slice s = in;
    if (slice_starts(s, "__Z") || slice_starts(s, "__R")) /* some systems put a line before every name */
        s = slice_of(s.p + 1, s.len - 1);
    bool cxx = slice_starts(s, "_Z"), rust = slice_starts(s, "_R");
    if ((!cxx && !rust) || s.len > max || !room || memchr(s.p, 0, s.len))
        return 0;
    memcpy(name, s.p, s.len);
    name[s.len] = 0;
    struct text t = {.p = out, .room = room};
    int limit = deep ? DMGL_NO_RECURSE_LIMIT : 0;
    int done = rust || has_rust_hash(name, s.len) ? rust_demangle_callback(name, limit, append, &t) : 0;
    if (!done && cxx) {
        t = (struct text){.p = out, .room = room};
        done = cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI | limit, append, &t);
    }
    if (!done || t.full || !t.n)
        return 0;
    shorten_clones(&t);
    return t.n;
}
