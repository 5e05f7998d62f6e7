/* Walks directories for ELF files. */
#include "symbols/symbol_index.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "symbols/elf_image.h"
#include "symbols/safe_file.h"

#include <errno.h>
#include <fts.h>
#include <string.h>
#include <unistd.h>

static uint64_t key_of(struct slice build_id)
{
    return hash_bytes(build_id.p, build_id.len);
}

static int add_file(struct symbol_index *x, const char *path, struct error *err)
{
    struct elf_image e;
    struct error damage = {0};
    int fd;
    if (safe_file_open(path, false, &fd) != SAFE_FILE_OPEN)
        return 0;
    int rc = elf_image_open(&e, fd, &damage);
    if (rc == 0 && !e.build_id_len) /* some have their note in a section alone */
        rc = elf_image_sections(&e, &damage);
    x->n_seen++;
    x->n_damaged += rc < 0 && e.wide;
    uint64_t key = key_of(slice_of(e.build_id, e.build_id_len));
    bool use = rc == 0 && e.build_id_len && e.executable;
    elf_image_close(&e);
    close(fd);
    if (!use)
        return 0;
    char *copy = mem_strdup(path);
    uint64_t *head = copy ? u64map_put(&x->by_key, key, NULL) : NULL;
    if (!head || !vec_push(&x->files, (struct indexed_file){copy, key, (uint32_t)*head})) {
        mem_free(copy);
        return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    *head = x->files.n;
    return 0;
}

int symbol_index_add(struct symbol_index *x, const char *dir, struct error *err)
{
    char *roots[] = {(char *)(uintptr_t)dir, NULL};
    FTS *fts = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    int rc = fts ? 0 : error_set_errno(err, errno, "%s", dir);
    for (FTSENT *f; rc == 0 && (f = fts_read(fts));) {
        if (f->fts_info != FTS_F)
            continue;
        if (x->n_seen == SYMBOL_INDEX_MAX_FILES) {
            x->full = true;
            break;
        }
        rc = add_file(x, f->fts_path, err);
    }
    if (fts)
        fts_close(fts);
    return rc;
}

const char *symbol_index_next(const struct symbol_index *x, struct slice build_id, uint32_t *at)
{
    uint64_t key = key_of(build_id);
    const uint64_t *head = *at ? NULL : u64map_get(&x->by_key, key);
    uint32_t i = *at ? x->files.p[*at - 1].next : head ? (uint32_t)*head : 0;
    *at = i;
    return i ? x->files.p[i - 1].path : NULL;
}

void symbol_index_free(struct symbol_index *x)
{
    for (size_t i = 0; i < x->files.n; i++)
        mem_free(x->files.p[i].path);
    vec_free(&x->files);
    u64map_free(&x->by_key);
}
