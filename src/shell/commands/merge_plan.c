/* Reads what the user says about the traces to merge. */
#include "shell/commands/merge_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* --- which trace ------------------------------------------------------------------------------------------------- */

static bool is_called(const struct merge_file *f, const char *text, size_t len)
{
    const char *names[] = {f->path, f->member, base_name(f->path)};
    for (size_t i = 0; i < 3; i++)
        if (strlen(names[i]) == len && memcmp(names[i], text, len) == 0)
            return true;
    return false;
}

static int find_file(const struct merge_plan *p, const char *flag, const char *text, size_t len, size_t *file,
                     struct error *err)
{
    size_t found = 0;
    for (size_t i = 0; i < p->files.n; i++)
        if (is_called(&p->files.p[i], text, len) && !found++)
            *file = i;
    if (found == 1)
        return 0;
    return error_set(err, -MRD_EINVALID,
                     found ? "%s: '%.*s' matches several traces; give the whole path"
                           : "%s: '%.*s' is not one of the given traces",
                     flag, (int)len, text);
}

/* "FILE=VALUE": the value begins behind the first '=' before which a trace is named. `tail`: what may follow the name.
 */
static int split(const struct merge_plan *p, const char *flag, const char *text, const char *form, size_t *file,
                 const char **value, struct error *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return error_set(err, -MRD_EINVALID, "%s: '%s' is not %s", flag, text, form);
    *value = equals + 1;
    for (const char *e = equals; e; e = strchr(e + 1, '=')) {
        if (e[1] && find_file(p, flag, text, (size_t)(e - text), file, NULL) == 0) {
            *value = e + 1;
            return 0;
        }
    }
    return find_file(p, flag, text, (size_t)(equals - text), file, err);
}

/* --- the flags ---------------------------------------------------------------------------------------------------- */

static int no_memory(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

/* --machine FILE=NAME, or FILE:ID=NAME for one of several machines of a trace. */
static int read_machine(struct merge_plan *p, const char *text, struct error *err)
{
    size_t file;
    const char *name;
    if (split(p, "--machine", text, "FILE=NAME or FILE:ID=NAME", &file, &name, NULL) == 0) {
        p->files.p[file].machine = name;
        return 0;
    }
    const char *equals = strchr(text, '='), *colon = equals;
    while (colon && colon > text && *colon != ':')
        colon--;
    char *end;
    errno = 0;
    long long id = colon && *colon == ':' ? strtoll(colon + 1, &end, 10) : -1;
    if (id < 0 || errno || end != equals || id > UINT32_MAX || !equals[1]) /* no ID: say what is wrong with the name */
        return split(p, "--machine", text, "FILE=NAME or FILE:ID=NAME", &file, &name, err);
    int rc = find_file(p, "--machine", text, (size_t)(colon - text), &file, err);
    if (!rc && !vec_push(&p->files.p[file].machines, (struct merge_machine){id, equals + 1}))
        rc = no_memory(err);
    return rc;
}

static const char *const clock_names[] = {"REALTIME",         "REALTIME_COARSE", "MONOTONIC",
                                          "MONOTONIC_COARSE", "MONOTONIC_RAW",   "BOOTTIME"};

static int check_clock(const char *flag, const char *name, struct error *err)
{
    for (size_t i = 0; i < sizeof clock_names / sizeof *clock_names; i++)
        if (strcmp(clock_names[i], name) == 0)
            return 0;
    return error_set(err, -MRD_EINVALID,
                     "%s: '%s' is not a clock; use one of REALTIME, REALTIME_COARSE, MONOTONIC, MONOTONIC_COARSE, "
                     "MONOTONIC_RAW, BOOTTIME",
                     flag, name);
}

/* --clock FILE=CLOCK[@MACHINE] */
static int read_clock(struct merge_plan *p, const char *text, struct error *err)
{
    size_t file;
    const char *value;
    int rc = split(p, "--clock", text, "FILE=CLOCK or FILE=CLOCK@MACHINE", &file, &value, err);
    if (rc)
        return rc;
    const char *at = strchr(value, '@');
    const char *clock = arena_strndup(&p->arena, value, at ? (size_t)(at - value) : strlen(value));
    if (!clock)
        return no_memory(err);
    p->files.p[file].clock = clock;
    p->files.p[file].clock_machine = at ? at + 1 : NULL;
    return check_clock("--clock", clock, err);
}

/* "1500", "-2.5ms", "3s": nanoseconds. False when it is not a time. */
static bool read_time(const char *text, size_t len, int64_t *ns)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"", 1}};
    bool minus = len && *text == '-';
    size_t i = len && (*text == '-' || *text == '+');
    __int128 whole = 0, part = 0, parts = 1;
    size_t digits = 0;
    for (; i < len && text[i] >= '0' && text[i] <= '9' && digits < 19; i++, digits++)
        whole = whole * 10 + (text[i] - '0');
    if (i < len && text[i] == '.')
        for (i++; i < len && text[i] >= '0' && text[i] <= '9' && parts < 1000000000; i++, digits++, parts *= 10)
            part = part * 10 + (text[i] - '0');
    for (size_t u = 0; digits && u < sizeof units / sizeof *units; u++) {
        if (strlen(units[u].name) != len - i || memcmp(units[u].name, text + i, len - i) != 0)
            continue;
        __int128 v = whole * units[u].ns + part * units[u].ns / parts;
        if (v > INT64_MAX)
            return false;
        *ns = minus ? -(int64_t)v : (int64_t)v;
        return true;
    }
    return false;
}

/* --offset FILE=TIME[@OTHER] */
static int read_offset(struct merge_plan *p, const char *text, struct error *err)
{
    size_t file, other = 0;
    const char *value;
    int rc = split(p, "--offset", text, "FILE=TIME or FILE=TIME@OTHER", &file, &value, err);
    if (rc)
        return rc;
    const char *at = strchr(value, '@');
    struct merge_file *f = &p->files.p[file];
    if (!read_time(value, at ? (size_t)(at - value) : strlen(value), &f->offset_ns))
        return error_set(err, -MRD_EINVALID, "--offset: invalid duration '%s'; write it like -1500, 20us, 3.5ms or 2s",
                         value);
    if (at)
        rc = find_file(p, "--offset", at + 1, strlen(at + 1), &other, err);
    if (!rc && other == file)
        rc = error_set(err, -MRD_EINVALID, "--offset: %s cannot be relative to itself; name another trace after '@'",
                       f->member);
    f->to = other;
    f->has_offset = true;
    return rc;
}

/* --timeline FILE[=CLOCK] */
static int read_timeline(struct merge_plan *p, const char *text, struct error *err)
{
    int rc = 0;
    p->has_timeline = true;
    p->timeline_clock = "BOOTTIME";
    if (!strchr(text, '='))
        rc = find_file(p, "--timeline", text, strlen(text), &p->timeline, err);
    else if (find_file(p, "--timeline", text, strlen(text), &p->timeline, NULL))
        rc = split(p, "--timeline", text, "FILE or FILE=CLOCK", &p->timeline, &p->timeline_clock, err);
    return rc ? rc : check_clock("--timeline", p->timeline_clock, err);
}

/* --attribute KEY=VALUE */
static int read_attribute(struct merge_plan *p, const char *text, struct error *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return error_set(err, -MRD_EINVALID, "--attribute: '%s' is not KEY=VALUE", text);
    const char *key = arena_strndup(&p->arena, text, (size_t)(equals - text));
    if (!key || !vec_push(&p->attributes, (struct merge_attribute){key, equals + 1}))
        return no_memory(err);
    return 0;
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

static bool is_member(const struct merge_plan *p, const char *name)
{
    bool taken = strcmp(name, MERGE_MANIFEST) == 0;
    for (size_t i = 0; i < p->files.n && !taken; i++)
        taken = strcmp(p->files.p[i].member, name) == 0;
    return taken;
}

static int add_file(struct merge_plan *p, const char *path, struct error *err)
{
    struct merge_file f = {.path = path, .member = base_name(path)};
    for (size_t i = 0; i < p->files.n; i++)
        if (strcmp(p->files.p[i].path, path) == 0)
            return error_set(err, -MRD_EINVALID, "%s is given twice", path);
    for (size_t n = p->files.n + 1; f.member && is_member(p, f.member); n++) /* "3-x" may be the name of a file too */
        f.member = arena_printf(&p->arena, "%zu-%s", n, base_name(path));
    return f.member && vec_push(&p->files, f) ? 0 : no_memory(err);
}

int merge_plan_read(struct merge_plan *p, const struct options *o, size_t first, struct error *err)
{
    const struct {
        const struct text_list *values;
        int (*read)(struct merge_plan *p, const char *text, struct error *err);
    } lists[] = {
        {&o->machine, read_machine},
        {&o->clock, read_clock},
        {&o->offset, read_offset},
        {&o->attribute, read_attribute},
    };
    int rc = 0;
    for (size_t i = first; i < o->positionals.n && !rc; i++)
        rc = add_file(p, o->positionals.p[i], err);
    for (size_t f = 0; f < sizeof lists / sizeof *lists; f++)
        for (size_t i = 0; i < lists[f].values->n && !rc; i++)
            rc = lists[f].read(p, lists[f].values->p[i], err);
    if (!rc && o->timeline)
        rc = read_timeline(p, o->timeline, err);
    return rc;
}

void merge_plan_free(struct merge_plan *p)
{
    for (size_t i = 0; i < p->files.n; i++) {
        vec_free(&p->files.p[i].machines);
        vec_free(&p->files.p[i].seen);
    }
    vec_free(&p->files);
    vec_free(&p->attributes);
    arena_free(&p->arena);
}

const char *merge_file_clock(const struct merge_file *f)
{
    return f->clock ? f->clock : f->has_clocks ? "BOOTTIME" : NULL;
}
