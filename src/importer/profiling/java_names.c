/* Reads Java names: printed methods, wrapped classes, packages in the paths of files. */
#include "importer/profiling/profiling_internal.h"

struct slice java_method_name(struct slice printed)
{
    const uint8_t *open = printed.len ? memchr(printed.p, '(', printed.len) : NULL;
    size_t end = open ? (size_t)(open - printed.p) : printed.len, start = end;
    while (start && printed.p[start - 1] != ' ')
        start--;
    return slice_of(printed.p + start, end - start);
}

static bool starts_with(struct slice s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len >= n && !memcmp(s.p, prefix, n);
}

static struct slice drop(struct slice s, size_t n)
{
    return slice_of(s.p + n, s.len - n);
}

struct slice java_bare_class(struct slice name)
{
    static const char wrapped[] = "java.lang.Class<";
    if (starts_with(name, wrapped) && name.p[name.len - 1] == '>')
        name = slice_of(name.p + sizeof wrapped - 1, name.len - sizeof wrapped);
    while (name.len >= 2 && !memcmp(name.p + name.len - 2, "[]", 2))
        name.len -= 2;
    return name;
}

/* The first part of a path, and what comes after its slash. */
static struct slice first_part(struct slice path, struct slice *rest)
{
    const uint8_t *slash = path.len ? memchr(path.p, '/', path.len) : NULL;
    size_t n = slash ? (size_t)(slash - path.p) : path.len;
    *rest = slash ? drop(path, n + 1) : slice_of(path.p + n, 0);
    return slice_of(path.p, n);
}

/* Installed applications are in "/data/app/PACKAGE-XYZ/…", since Android 11 in "/data/app/~~ABC/PACKAGE-XYZ/…". */
strid package_of_path(struct machine_ctx *m, struct slice path, bool *bad)
{
    static const char installed[] = "/data/app/";
    if (!starts_with(path, installed))
        return 0;
    struct slice rest, part = first_part(drop(path, sizeof installed - 1), &rest);
    if (starts_with(part, "~~"))
        part = first_part(rest, &rest);
    const uint8_t *dash = part.len ? memchr(part.p, '-', part.len) : NULL; /* no package has one in its name */
    if (!dash) {
        *bad = true;
        return 0;
    }
    return import_slice(m->im, slice_of(part.p, (size_t)(dash - part.p)));
}
