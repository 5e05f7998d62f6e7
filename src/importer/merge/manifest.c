/* Reads and checks the manifest. */
#include "importer/merge/manifest.h"

#include "importer/clock/clock_queries.h"
#include "importer/merge/json.h"

enum { MAX_FILES = 4096 }; /* each is looked for among all */

#define CLOCK_NAMES "REALTIME, REALTIME_COARSE, MONOTONIC, MONOTONIC_COARSE, MONOTONIC_RAW, BOOTTIME"

static int wrong(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int wrong(struct error *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    error_vset(err, -MRD_EFORMAT, fmt, ap);
    va_end(ap);
    return -MRD_EFORMAT;
}

static const char *text_of(const struct json *j)
{
    return j && j->type == JSON_STRING ? j->text : NULL;
}

static bool is_type(const struct json *j, enum json_type type)
{
    return j && j->type == type;
}

/* A text that may be missing, but must be one. */
static int text_at(const struct json *j, const char *name, const char **text, struct error *err)
{
    *text = text_of(j);
    return j && !*text ? wrong(err, "%s must be a string", name) : 0;
}

static int clock_of(const struct json *j, const char *section, uint32_t *clock, struct error *err)
{
    const char *name = text_of(j);
    *clock = name ? clock_by_name(name) : 0;
    if (!*clock || *clock > 6) /* only the clocks of the kernel have names here */
        return wrong(err, "%s: unknown clock name: %s. Use one of " CLOCK_NAMES, section,
                     name ? name : "(not a string)");
    return 0;
}

static size_t count(const struct json *list)
{
    size_t n = 0;
    for (const struct json *c = list ? list->first : NULL; c; c = c->next)
        n++;
    return n;
}

static int read_machines(struct manifest *m, struct manifest_file *f, const struct json *list, struct error *err)
{
    if (!is_type(list, JSON_ARRAY))
        return wrong(err, "machines must be an array");
    f->machines = arena_zalloc(&m->arena, (count(list) + 1) * sizeof *f->machines);
    if (!f->machines)
        return -MRD_ENOMEM;
    for (const struct json *c = list->first; c; c = c->next) {
        const struct json *id = json_get(c, "id");
        const char *name = text_of(json_get(c, "name"));
        if (!is_type(id, JSON_INT) || !name)
            return wrong(err, "machines entries need an integer id and a string name");
        if (id->too_large || id->number < 0 || id->number > UINT32_MAX)
            return wrong(err, "machines: id must be in [0, 4294967295]");
        if (!*name)
            return wrong(err, "machines: name must be non-empty");
        f->machines[f->n_machines++] = (struct declared_machine){(uint32_t)id->number, name};
    }
    return 0;
}

static int read_clocks(struct manifest *m, struct manifest_file *f, const struct json *clocks, struct error *err)
{
    const struct json *clock = json_get(clocks, "clock"), *sync = json_get(clocks, "sync_to");
    const struct json *sync_clock = json_get(sync, "clock"), *offset = json_get(clocks, "offset_ns");
    if (!is_type(clocks, JSON_OBJECT))
        return wrong(err, "clocks must be an object");
    int rc = text_at(json_get(clocks, "machine"), "clocks: machine", &f->clock_machine, err);
    if (!rc && clock)
        rc = clock_of(clock, "clocks", &f->clock, err);
    if (rc)
        return rc;
    if (!sync)
        return wrong(err, "clocks: a sync_to block is required");
    if (!is_type(sync, JSON_OBJECT))
        return wrong(err, "clocks: sync_to must be an object");
    const char *file = text_of(json_get(sync, "file"));
    f->has_clocks = true;
    if (!file)
        return wrong(err, "clocks: sync_to.file is required and must be a string");
    if ((rc = text_at(json_get(sync, "machine"), "clocks: sync_to.machine", &f->sync_machine, err)))
        return rc;
    f->sync_file = manifest_find(m, file);
    if (!f->sync_file)
        return wrong(err,
                     "clocks: sync_to.file names unknown file '%s'. It must match the path of an entry in the files "
                     "array",
                     file);
    if (sync_clock && (rc = clock_of(sync_clock, "clocks", &f->sync_clock, err)))
        return rc;
    if (offset && offset->type != JSON_INT)
        return wrong(err, "clocks: offset_ns must be an integer");
    if (offset && offset->too_large)
        return wrong(err, "clocks: offset_ns is out of range");
    f->offset_ns = offset ? offset->number : 0;
    return 0;
}

static int read_file(struct manifest *m, struct manifest_file *f, const struct json *j, struct error *err)
{
    const struct json *machine = json_get(j, "machine"), *machines = json_get(j, "machines");
    if (machine && machines)
        return wrong(err, "machine and machines are mutually exclusive");
    if (machine) {
        f->machine = text_of(json_get(machine, "name"));
        if (!f->machine)
            return wrong(err, "machine must be an object with a string name");
        if (!*f->machine)
            return wrong(err, "machine: name must be non-empty");
    }
    int rc = machines ? read_machines(m, f, machines, err) : 0;
    const struct json *clocks = json_get(j, "clocks");
    if (!rc && clocks)
        rc = read_clocks(m, f, clocks, err);
    return rc;
}

static int read_files(struct manifest *m, const struct json *list, struct error *err)
{
    if (list && !is_type(list, JSON_ARRAY))
        return wrong(err, "files must be an array");
    if (count(list) > MAX_FILES)
        return wrong(err, "more than %d files", MAX_FILES);
    m->files = arena_zalloc(&m->arena, (count(list) + 1) * sizeof *m->files);
    if (!m->files)
        return -MRD_ENOMEM;
    for (const struct json *c = list ? list->first : NULL; c;
         c = c->next) { /* all paths first: files name each other */
        m->files[m->n_files].path = text_of(json_get(c, "path"));
        if (!m->files[m->n_files++].path)
            return wrong(err, "files entries must be objects with a string path");
    }
    size_t i = 0;
    for (const struct json *c = list ? list->first : NULL; c; c = c->next) {
        int rc = read_file(m, &m->files[i++], c, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_trace_time(struct manifest *m, const struct json *j, struct error *err)
{
    const char *file;
    if (!is_type(j, JSON_OBJECT))
        return wrong(err, "trace_time must be an object");
    if (!json_get(j, "clock"))
        return wrong(err, "trace_time needs a clock");
    int rc = clock_of(json_get(j, "clock"), "trace_time", &m->trace_clock, err);
    if (!rc)
        rc = text_at(json_get(j, "file"), "trace_time: file", &file, err);
    if (!rc)
        rc = text_at(json_get(j, "machine"), "trace_time: machine", &m->trace_machine, err);
    if (rc)
        return rc;
    if (m->trace_machine && !file)
        return wrong(err, "trace_time: machine is ambiguous, name the file too");
    m->trace_file = file ? manifest_find(m, file) : NULL;
    if (file && !m->trace_file)
        return wrong(err,
                     "trace_time: file names unknown file '%s'. It must match the path of an entry in the files array",
                     file);
    return 0;
}

static int read_attributes(struct manifest *m, const struct json *j, struct error *err)
{
    if (j->type != JSON_OBJECT)
        return wrong(err, "attributes must be an object of string or integer values");
    m->attributes = arena_zalloc(&m->arena, (count(j) + 1) * sizeof *m->attributes);
    if (!m->attributes)
        return -MRD_ENOMEM;
    for (const struct json *c = j->first; c; c = c->next) {
        if (!*c->key)
            return wrong(err, "attributes: keys must be non-empty");
        if (c->type != JSON_STRING && (c->type != JSON_INT || c->too_large))
            return wrong(err, "attributes: '%s' must be a string or an integer", c->key);
        m->attributes[m->n_attributes++] = (struct manifest_attribute){c->key, text_of(c), c->number};
    }
    return 0;
}

static int read_document(struct manifest *m, struct slice text, struct error *err)
{
    struct json *root = json_parse(&m->arena, text, err);
    if (!root)
        return err && err->code ? err->code : -MRD_EFORMAT;
    const struct json *j = json_get(root, "perfetto_manifest"), *version = json_get(j, "version");
    if (!version)
        return wrong(err, "missing required field: version");
    if (version->type != JSON_INT)
        return wrong(err, "version must be an integer");
    if (version->number != 1)
        return wrong(err, "unsupported version: %s. Only version 1 is supported",
                     version->text ? version->text : "(none)");
    int rc = read_files(m, json_get(j, "files"), err);
    if (!rc && json_get(j, "trace_time"))
        rc = read_trace_time(m, json_get(j, "trace_time"), err);
    if (!rc && json_get(j, "attributes"))
        rc = read_attributes(m, json_get(j, "attributes"), err);
    return rc;
}

int manifest_parse(struct manifest *m, struct slice text, struct error *err)
{
    *m = (struct manifest){0};
    struct error local = {0};
    if (!err)
        err = &local;
    int rc = read_document(m, text, err);
    if (rc == -MRD_ENOMEM)
        error_set(err, rc, "out of memory");
    if (rc) {
        error_prefix(err, "perfetto_manifest");
        manifest_free(m);
    }
    return rc;
}

struct manifest_file *manifest_find(const struct manifest *m, const char *path)
{
    for (size_t i = 0; i < m->n_files; i++)
        if (m->files[i].path && strcmp(m->files[i].path, path) == 0)
            return &m->files[i];
    return NULL;
}

bool manifest_declares(const struct manifest_file *f, const char *name)
{
    if (f->machine && strcmp(f->machine, name) == 0)
        return true;
    for (size_t i = 0; i < f->n_machines; i++)
        if (strcmp(f->machines[i].name, name) == 0)
            return true;
    return false;
}

void manifest_free(struct manifest *m)
{
    arena_free(&m->arena);
    *m = (struct manifest){0};
}
