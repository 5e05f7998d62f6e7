/* CTF traces as directories of mapped files. */
#include "importer/ctf/ctf_trace.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MAX_LEVELS = 8, MAX_DIRECTORIES = 1024, MAX_TRACES = 1024 /* each is compared with all hosts */ };

static bool join(char *buf, size_t size, const char *dir, const char *name)
{
    int n = snprintf(buf, size, "%s/%s", dir, name);
    return n > 0 && (size_t)n < size;
}

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A directory that is no link to one: those may lead in circles, or out of what the user named. */
static bool is_dir_itself(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool has_metadata(const char *dir)
{
    char path[4096];
    struct stat st;
    return join(path, sizeof path, dir, "metadata") && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

struct directory_walk {
    int (*fn)(void *ctx, const char *dir);
    void *ctx;
    unsigned seen; /* directories */
};

/* Calls fn for every directory with metadata at or below `dir`, in order of names; stops when it returns non-zero.
 * -MRD_ELIMIT when there are too many to look at. */
static int walk(struct directory_walk *w, const char *dir, int level)
{
    if (has_metadata(dir))
        return w->fn(w->ctx, dir);
    if (w->seen++ == MAX_DIRECTORIES)
        return -MRD_ELIMIT;
    struct dirent **names;
    int n = level < MAX_LEVELS ? scandir(dir, &names, NULL, alphasort) : 0, rc = 0;
    for (int i = 0; i < n; i++) {
        char path[4096];
        if (!rc && names[i]->d_name[0] != '.' && join(path, sizeof path, dir, names[i]->d_name) && is_dir_itself(path))
            rc = walk(w, path, level + 1);
        free(names[i]);
    }
    if (n > 0)
        free(names);
    return rc;
}

static int found(void *ctx, const char *dir)
{
    (void)ctx;
    (void)dir;
    return 1;
}

bool ctf_is_trace(const char *path)
{
    struct directory_walk w = {.fn = found};
    return is_dir(path) && walk(&w, path, 0) > 0;
}

static int map_streams(struct ctf_trace *t, struct error *err)
{
    struct dirent **names;
    int n = scandir(t->path, &names, NULL, alphasort), rc = 0;
    if (n < 0)
        return error_set_errno(err, errno, "%s", t->path);
    for (int i = 0; i < n; i++) {
        char path[4096];
        struct stat st;
        const char *name = names[i]->d_name;
        bool stream = name[0] != '.' && strcmp(name, "metadata") != 0 && join(path, sizeof path, t->path, name) &&
                      stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
        if (stream && !rc) {
            struct mapped_file m;
            rc = mapped_file_open(&m, path, err);
            if (!rc && !vec_push(&t->streams, m)) {
                mapped_file_close(&m);
                rc = error_set(err, -MRD_ENOMEM, "%s: out of memory", path);
            }
            if (!rc)
                t->bytes += m.bytes.len;
        }
        free(names[i]);
    }
    free(names);
    return rc;
}

static struct ctf_trace *new_trace(const char *path, struct error *err)
{
    struct ctf_trace *t = mem_zalloc(sizeof *t);
    if (!t || !(t->path = mem_strdup(path))) {
        ctf_trace_close(t);
        error_set(err, -MRD_ENOMEM, "%s: out of memory", path);
        return NULL;
    }
    return t;
}

static int read_metadata(struct ctf_trace *t, struct slice file, struct error *err)
{
    struct arena text_arena = {0};
    char *text;
    size_t len;
    int rc = ctf_metadata_text(file, &text_arena, &text, &len, err);
    if (!rc)
        rc = ctf2_is_metadata(text, len) ? ctf2_parse(&t->metadata, text, len, err)
                                         : tsdl_parse(&t->metadata, text, len, err);
    arena_free(&text_arena);
    return rc ? error_prefix(err, "%s", t->path) : 0;
}

static int keep(struct ctf_trace *t, ctf_traces *out, int rc, struct error *err)
{
    if (!rc && out->n >= MAX_TRACES)
        rc = error_set(err, -MRD_ELIMIT, "%s: more than %d CTF traces", t->path, MAX_TRACES);
    if (!rc && !vec_push(out, t))
        rc = error_set(err, -MRD_ENOMEM, "%s: out of memory", t->path);
    if (rc)
        ctf_trace_close(t);
    return rc;
}

static int open_directory(const char *dir, ctf_traces *out, struct error *err)
{
    struct ctf_trace *t = new_trace(dir, err);
    char path[4096];
    if (!t)
        return -MRD_ENOMEM;
    int rc = join(path, sizeof path, dir, "metadata") ? mapped_file_open(&t->metadata_file, path, err)
                                                      : error_set(err, -MRD_EINVALID, "%s: path too long", dir);
    if (!rc)
        rc = read_metadata(t, t->metadata_file.bytes, err);
    if (!rc)
        rc = map_streams(t, err);
    return keep(t, out, rc, err);
}

bool ctf_is_metadata(struct slice bytes)
{
    static const uint8_t magic[2][4] = {{0x75, 0xD1, 0x1D, 0x57}, {0x57, 0x1D, 0xD1, 0x75}};
    return slice_starts(bytes, "/* CTF 1") || ctf2_is_metadata((const char *)bytes.p, bytes.len) ||
           (bytes.len >= 4 && (memcmp(bytes.p, magic[0], 4) == 0 || memcmp(bytes.p, magic[1], 4) == 0));
}

int ctf_open_files(const char *path, const struct ctf_file *files, size_t n, ctf_traces *out, struct error *err)
{
    struct ctf_trace *t = new_trace(path, err);
    int rc = t ? 0 : -MRD_ENOMEM;
    for (size_t i = 0; i < n && !rc; i++) {
        if (strcmp(files[i].name, "metadata") == 0)
            rc = read_metadata(t, files[i].bytes, err);
        else if (files[i].bytes.len && !vec_push(&t->streams, (struct mapped_file){.bytes = files[i].bytes}))
            rc = error_set(err, -MRD_ENOMEM, "%s: out of memory", path);
    }
    return t ? keep(t, out, rc, err) : rc;
}

struct opening {
    ctf_traces *out;
    struct error *err;
    int rc; /* of the first trace that failed */
};

static int open_next(void *ctx, const char *dir)
{
    struct opening *o = ctx;
    int rc = open_directory(dir, o->out, o->rc ? NULL : o->err);
    o->rc = o->rc ? o->rc : rc;
    return rc == -MRD_ENOMEM ? rc : 0;
}

int ctf_open_all(const char *path, ctf_traces *out, struct error *err)
{
    struct opening o = {out, err, 0};
    struct directory_walk w = {.fn = open_next, .ctx = &o};
    if (walk(&w, path, 0) == -MRD_ELIMIT && !o.rc)
        o.rc = error_set(err, -MRD_ELIMIT, "%s: more than %d directories", path, MAX_DIRECTORIES);
    return o.rc;
}

const char *ctf_trace_hostname(const struct ctf_trace *t)
{
    return ctf_env_get(&t->metadata, "hostname");
}

const struct ctf_clock *ctf_trace_clock(const struct ctf_trace *t)
{
    const struct ctf_metadata *m = &t->metadata;
    for (size_t i = 0; i < m->streams.n; i++)
        if (m->streams.p[i]->clock >= 0)
            return &m->clocks.p[m->streams.p[i]->clock];
    return m->clocks.n ? m->clocks.p : NULL;
}

const char *ctf_trace_clock_uuid(const struct ctf_trace *t)
{
    const struct ctf_clock *c = ctf_trace_clock(t);
    return c ? c->uuid : "";
}

const char *ctf_trace_identity(const struct ctf_trace *t)
{
    return t->metadata.identity ? t->metadata.identity : t->metadata.uuid;
}

const char *ctf_trace_uid(const struct ctf_trace *t)
{
    return t->metadata.uid ? t->metadata.uid : t->metadata.uuid;
}

int64_t ctf_trace_shrank(const struct ctf_trace *t)
{
    int64_t n = mapped_file_shrank(&t->metadata_file);
    for (size_t i = 0; i < t->streams.n; i++)
        n += mapped_file_shrank(&t->streams.p[i]);
    return n;
}

void ctf_trace_close(struct ctf_trace *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->streams.n; i++)
        mapped_file_close(&t->streams.p[i]);
    vec_free(&t->streams);
    mapped_file_close(&t->metadata_file);
    ctf_metadata_free(&t->metadata);
    mem_free(t->path);
    mem_free(t);
}
