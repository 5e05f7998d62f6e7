/* tp_shell util deobfuscate: ProGuard maps as packets that give a trace the names that were shortened. */
#include "base/file.h"
#include "shell/commands/util.h"
#include "shell/convert/out_file.h"
#include "symbols/proguard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_MAP_BYTES = 256 << 20 };

/* What was given: [PACKAGE=]FILE of a flag, PACKAGE=FILE of the environment. */
struct map_name {
    struct slice package, path;
};

struct map_names {
    VEC(struct map_name)
    list;
};

static int add_name(struct map_names *names, struct slice entry, bool needs_package, struct error *err)
{
    const uint8_t *eq = entry.len ? memchr(entry.p, '=', entry.len) : NULL;
    struct map_name name = {.package = slice_of(entry.p, eq ? (size_t)(eq - entry.p) : 0), .path = entry};
    if (eq)
        name.path = slice_of(eq + 1, entry.len - name.package.len - 1);
    if ((needs_package && !eq) || !name.path.len)
        return error_set(err, -MRD_EINVALID, "%s: '%.*s' is not %s",
                         needs_package ? "PERFETTO_PROGUARD_MAP" : "--proguard-map", (int)entry.len,
                         (const char *)entry.p, needs_package ? "PACKAGE=FILE" : "[PACKAGE=]FILE");
    return vec_push(&names->list, name) ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
}

static int find_names(const struct shell *sh, bool environment, struct map_names *names, struct error *err)
{
    const char *env = environment ? getenv("PERFETTO_PROGUARD_MAP") : NULL;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sh->opt.proguard_map.n; i++)
        rc = add_name(names, slice_str(sh->opt.proguard_map.p[i]), false, err);
    for (struct slice rest = slice_str(env ? env : ""); rc == 0 && rest.len;) {
        const uint8_t *colon = memchr(rest.p, ':', rest.len);
        struct slice entry = slice_of(rest.p, colon ? (size_t)(colon - rest.p) : rest.len);
        rest = slice_of(rest.p + entry.len, rest.len - entry.len);
        if (colon)
            rest = slice_of(rest.p + 1, rest.len - 1);
        if (entry.len)
            rc = add_name(names, entry, true, err);
    }
    return rc;
}

/* The trace is not read; but a name that is wrong is a mistake, and the names do not replace the trace. */
static int check_trace(const char *trace, const char *out, struct error *err)
{
    if (!trace || strcmp(trace, "-") == 0)
        return 0;
    int fd = open(trace, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_set_errno(err, errno, "%s", trace);
    close(fd);
    if (out && strcmp(out, "-") != 0 && session_same_file(trace, out))
        return error_set(err, -MRD_EINVALID,
                         "deobfuscate: only the names are written, and %s would be lost; give another file to write, "
                         "then append it to the trace",
                         trace);
    return 0;
}

static int add_map(const struct map_name *name, struct pb_writer *packets, struct error *err)
{
    struct proguard_map map = {0};
    size_t before = packets->n;
    char *path = mem_alloc(name->path.len + 1), *text = NULL;
    size_t len = 0;
    if (!path)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    memcpy(path, name->path.p, name->path.len);
    path[name->path.len] = 0;
    int rc = file_read_all(path, MAX_MAP_BYTES, &text, &len, err);
    if (rc == 0) {
        rc = proguard_parse(&map, slice_of(text, len), err);
        if (rc == 0)
            rc = proguard_write(&map, name->package, packets, err);
        if (rc < 0)
            error_prefix(err, "failed to parse ProGuard map %s", path);
    }
    if (rc < 0)
        packets->n = before;
    proguard_free(&map);
    mem_free(text);
    mem_free(path);
    return rc;
}

int util_proguard_packets(const struct shell *sh, bool environment, bool may_fail, struct pb_writer *w, size_t *n,
                          struct error *err)
{
    struct map_names names = {0};
    int rc = find_names(sh, environment, &names, err);
    *n = 0;
    for (size_t i = 0; rc == 0 && i < names.list.n; i++) {
        rc = add_map(&names.list.p[i], w, err);
        *n += rc == 0;
        if (rc < 0 && rc != -MRD_ENOMEM && may_fail && i >= sh->opt.proguard_map.n) {
            fprintf(stderr, "%s\n", err->text);
            rc = 0;
        }
    }
    vec_free(&names.list);
    return rc;
}

int util_deobfuscate(struct shell *sh, struct error *err)
{
    const struct text_list *args = &sh->opt.positionals;
    const char *trace = args->n > 1 ? args->p[1] : NULL, *path = args->n > 2 ? args->p[2] : sh->opt.output;
    struct pb_writer packets = {0};
    size_t n = 0;
    if (args->n > 3 || (args->n > 2 && sh->opt.output))
        return error_set(err, -MRD_EINVALID, "deobfuscate: give one trace and one file to write");
    int rc = check_trace(trace, path, err);
    if (rc == 0)
        rc = util_proguard_packets(sh, true, false, &packets, &n, err);
    if (rc == 0 && !n)
        rc = error_set(err, -MRD_EINVALID,
                       "deobfuscate: no ProGuard map is given: use --proguard-map [PACKAGE=]FILE, or set "
                       "PERFETTO_PROGUARD_MAP to PACKAGE=FILE[:PACKAGE=FILE...]");
    struct out_file *out = rc == 0 ? out_file_open(path, NULL, err) : NULL;
    if (rc == 0)
        rc = out ? out_file_write(out, packets.p, packets.n) : err->code;
    rc = out_file_finish(out, rc, err);
    pb_writer_free(&packets);
    return rc;
}
