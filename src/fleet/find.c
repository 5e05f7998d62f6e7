/* Finds the recordings that a command line names. */
#include "fleet/find.h"

#include "export/source.h"

#include <errno.h>
#include <fts.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int no_memory(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

/* A path that means the same to a server of this machine. */
static char *whole_path(const char *path)
{
    char here[4096], *whole;
    if (path[0] == '/' || !getcwd(here, sizeof here))
        return mem_strdup(path);
    size_t n = strlen(here), room = n + strlen(path) + 2;
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    if ((whole = mem_alloc(room)))
        snprintf(whole, room, "%s%s%s", here, n > 1 ? "/" : "", path);
    return whole;
}

static int add_file(struct fleet_files *out, const char *path, const struct stat *st, struct error *err)
{
    struct fleet_file f = {whole_path(path), (uint64_t)st->st_size, st->st_mtime, S_ISDIR(st->st_mode)};
    if (f.path && vec_push(&out->list, f))
        return 0;
    mem_free(f.path);
    return no_memory(err);
}

/* Directories of CTF have a file of this name, and are one recording. */
static bool is_recording(const char *directory)
{
    char path[4096];
    return (size_t)snprintf(path, sizeof path, "%s/metadata", directory) < sizeof path && access(path, F_OK) == 0;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int walk(const char *directory, int (*each)(void *ctx, FTS *fts, FTSENT *e, struct error *err), void *ctx,
                struct error *err)
{
    char *roots[] = {(char *)directory, NULL};
    FTS *fts = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    int rc = fts ? 0 : error_set_errno(err, errno, "%s", directory);
    for (FTSENT *e; rc == 0 && (e = fts_read(fts));) {
        if (e->fts_level > 0 && e->fts_name[0] == '.')
            fts_set(fts, e, FTS_SKIP);
        else if (e->fts_info == FTS_ERR || e->fts_info == FTS_DNR)
            rc = error_set_errno(err, e->fts_errno, "%s", e->fts_path);
        else
            rc = each(ctx, fts, e, err);
    }
    if (fts)
        fts_close(fts);
    return rc;
}

static int take_entry(void *ctx, FTS *fts, FTSENT *e, struct error *err)
{
    if (e->fts_info == FTS_F)
        return add_file(ctx, e->fts_path, e->fts_statp, err);
    if (e->fts_info != FTS_D || !is_recording(e->fts_path))
        return 0;
    fts_set(fts, e, FTS_SKIP);
    return add_file(ctx, e->fts_path, e->fts_statp, err);
}

static int find_one(struct fleet_files *out, const char *path, struct error *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return error_set_errno(err, errno, "%s", path);
    return S_ISDIR(st.st_mode) ? walk(path, take_entry, out, err) : add_file(out, path, &st, err);
}

static int find_pattern(struct fleet_files *out, const char *pattern, struct error *err)
{
    glob_t g;
    int rc = glob(pattern, 0, NULL, &g);
    if (rc == GLOB_NOSPACE)
        return no_memory(err);
    if (rc != 0)
        return error_set(err, -MRD_ENOTFOUND, "%s: no file is called like that", pattern);
    for (size_t i = 0; rc == 0 && i < g.gl_pathc; i++)
        rc = find_one(out, g.gl_pathv[i], err);
    globfree(&g);
    return rc;
}

int fleet_find(struct fleet_files *out, const char *const *paths, size_t n, struct error *err)
{
    int rc = 0;
    *out = (struct fleet_files){0};
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = strpbrk(paths[i], "*?[") && access(paths[i], F_OK) != 0 ? find_pattern(out, paths[i], err)
                                                                     : find_one(out, paths[i], err);
    if (rc < 0)
        fleet_files_free(out);
    return rc;
}

void fleet_files_free(struct fleet_files *files)
{
    for (size_t i = 0; i < files->list.n; i++)
        mem_free(files->list.p[i].path);
    vec_free(&files->list);
}

struct paths {
    VEC(char *) list;
};

static int take_path(void *ctx, FTS *fts, FTSENT *e, struct error *err)
{
    struct paths *p = ctx;
    (void)fts;
    char *copy = e->fts_info == FTS_F ? mem_strdup(e->fts_path) : NULL;
    if (e->fts_info != FTS_F || (copy && vec_push(&p->list, copy)))
        return 0;
    mem_free(copy);
    return no_memory(err);
}

int fleet_file_id(const struct fleet_file *file, char *id, struct error *err)
{
    struct paths p = {0};
    if (!file->is_directory)
        return export_files_id((const char *const[]){file->path}, 1, id, err);
    int rc = walk(file->path, take_path, &p, err);
    if (rc == 0)
        rc = export_files_id((const char *const *)p.list.p, p.list.n, id, err);
    for (size_t i = 0; i < p.list.n; i++)
        mem_free(p.list.p[i]);
    vec_free(&p.list);
    return rc;
}
