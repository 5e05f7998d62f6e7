/* Keeps what was read of the files behind maps, under the numbers that the kernel gives for them. */
#include "capture/perf/perf_files.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/sysmacros.h>

/* A number of an inode without its generation may be another file's by now: looked at again after so long. */
enum { CHECK_AGAIN_MS = 1000, MAX_FAILURES = 3, MAX_FILES = 1 << 16 };

/* Names of code that has just been made are looked for so soon; when a process writes none, so late. */
enum { NAMES_AGAIN_MS = 100, NO_NAMES_AGAIN_MS = 1000, MAX_NAMES_BYTES = 128 << 20 };

static bool files_in_flight(const struct perf_files *f)
{
    for (size_t i = 0; i < f->list.n; i++)
        if (f->list.p[i].loading)
            return true;
    return false;
}

bool perf_files_are_loading(const struct perf_files *f)
{
    size_t it = 0;
    for (struct u64map_slot *s; (s = u64map_next(&f->jits, &it)) != NULL;)
        if (((const struct perf_jit *)(uintptr_t)s->value)->loading)
            return true;
    return files_in_flight(f);
}

static void drop_tables(struct perf_files *f, struct perf_file *x)
{
    if (x->tables) {
        f->memory -= unwind_file_memory(x->tables);
        unwind_file_free(x->tables);
        if (f->cache)
            unwind_cache_clear(f->cache);
    }
    x->tables = NULL;
    x->tables_tried = false;
}

/* Tables of files that were not used for longest go, until all fit; not those that came last. */
static void make_room(struct perf_files *f, const struct perf_file *last)
{
    while (f->memory > PERF_TABLES_BYTES) {
        struct perf_file *oldest = NULL;
        for (size_t i = 0; i < f->list.n; i++) {
            struct perf_file *x = &f->list.p[i];
            if (x->tables && x != last && (!oldest || x->used_ms < oldest->used_ms))
                oldest = x;
        }
        if (!oldest)
            return;
        drop_tables(f, oldest);
    }
}

/* Takes in what a load has found. */
static void apply(struct perf_files *f, struct perf_load *l, uint64_t now_ms)
{
    if (l->jit) {
        l->jit->loading = false;
        perf_load_free(l);
        return;
    }
    struct perf_file *x = &f->list.p[l->file];
    x->loading = false;
    x->checked_ms = now_ms;
    if (!l->opened) {
        x->failures++;
        x->failed_pid = l->pid;
    } else if (!l->same) {
        drop_tables(f, x);
        x->known = true;
        x->failures = 0;
        x->is = l->is;
        x->elf = l->elf;
        x->tables = l->tables;
        l->tables = NULL;
        x->tables_tried = l->wants_tables;
        if (x->tables)
            f->memory += unwind_file_memory(x->tables);
        make_room(f, x);
    }
    perf_load_free(l);
}

/* In a thread when there are any. */
static void run(struct perf_files *f, struct perf_load *l, uint64_t now_ms)
{
    if (f->threads && !f->loader)
        f->loader = perf_loader_new();
    if (f->loader && perf_loader_add(f->loader, l))
        return;
    perf_load_run(l);
    apply(f, l, now_ms);
}

static void start(struct perf_files *f, size_t place, const struct perf_file_map *m, bool tables, uint64_t now_ms)
{
    struct perf_file *x = &f->list.p[place];
    struct perf_load *l = mem_zalloc(sizeof *l);
    if (!l)
        return;
    *l = (struct perf_load){.file = (uint32_t)place,
                            .pid = m->pid,
                            .map_start = m->start,
                            .map_end = m->end,
                            .inode = m->inode,
                            .path = mem_strdup(m->path),
                            .wants_tables = tables,
                            .max_bytes = UNWIND_FILE_BYTES};
    if (x->known && x->tables_tried == tables)
        l->had = x->is;
    if (!l->path) {
        perf_load_free(l);
        return;
    }
    x->loading = true;
    x->asked_ms = now_ms;
    run(f, l, now_ms);
}

int32_t perf_files_find(struct perf_files *f, const struct perf_file_map *m, bool wants_tables, uint64_t now_ms)
{
    bool added;
    uint64_t key = hash_combine(hash_combine(makedev(m->major, m->minor), m->inode), m->generation);
    if (f->list.n >= MAX_FILES)
        perf_files_forget(f);
    uint64_t *slot = u64map_put(&f->index, key, &added);
    if (!slot)
        return -1;
    if (added) {
        if (!vec_push(&f->list, (struct perf_file){.key = key})) {
            u64map_del(&f->index, key);
            return -1;
        }
        *slot = f->list.n;
    }
    size_t place = *slot - 1;
    struct perf_file *x = &f->list.p[place];
    x->used_ms = now_ms;
    bool unknown = !x->known && (added || (x->failures < MAX_FAILURES && x->failed_pid != m->pid));
    bool lacks = x->known && wants_tables && !x->tables_tried;
    bool stale = x->known && !m->generation && now_ms - x->checked_ms >= CHECK_AGAIN_MS;
    if (!x->loading && (unknown || lacks || stale))
        start(f, place, m, wants_tables || x->tables_tried, now_ms);
    return (int32_t)place;
}

bool perf_file_is_late(const struct perf_file *x, uint64_t now_ms)
{
    return x->loading && now_ms - x->asked_ms < PERF_LOAD_WAIT_MS;
}

void perf_files_collect(struct perf_files *f, uint64_t now_ms, uint32_t wait_ms)
{
    struct perf_load *l;
    while (f->loader && (l = perf_loader_take(f->loader, wait_ms)) != NULL)
        apply(f, l, now_ms);
}

/* ---- names of code without a file ---- */

static void drop_jit(struct perf_jit *j)
{
    perf_jit_free(j);
    mem_free(j);
}

/* Forgets the names of all processes but those that are being read. */
static void drop_jits(struct perf_files *f)
{
    size_t it = 0;
    struct u64map kept = {0};
    for (struct u64map_slot *s; (s = u64map_next(&f->jits, &it)) != NULL;) {
        struct perf_jit *j = (struct perf_jit *)(uintptr_t)s->value;
        if (!j->loading || !u64map_set(&kept, s->key, s->value))
            drop_jit(j);
    }
    u64map_free(&f->jits);
    f->jits = kept;
}

static struct perf_jit *jit_of(struct perf_files *f, int32_t pid, uint64_t began)
{
    size_t it = 0, bytes = 0;
    uint64_t key = hash_combine((uint32_t)pid, began), *slot = u64map_get(&f->jits, key);
    if (slot)
        return (struct perf_jit *)(uintptr_t)*slot;
    for (struct u64map_slot *s; (s = u64map_next(&f->jits, &it)) != NULL;) {
        const struct perf_jit *j = (struct perf_jit *)(uintptr_t)s->value;
        bytes += j->loading ? 0 : perf_jit_memory(j);
    }
    if (bytes > MAX_NAMES_BYTES)
        drop_jits(f);
    struct perf_jit *j = mem_zalloc(sizeof *j);
    if (!j)
        return NULL;
    j->pid = pid;
    j->began = began;
    if (!u64map_set(&f->jits, key, (uint64_t)(uintptr_t)j)) {
        mem_free(j);
        return NULL;
    }
    return j;
}

const struct perf_jit *perf_files_jit(struct perf_files *f, int32_t pid, uint64_t began, const char *dump,
                                      uint64_t dump_inode, uint64_t address, uint64_t now_ms)
{
    struct perf_jit *j = jit_of(f, pid, began);
    if (!j || j->loading)
        return j;
    uint64_t again_ms = j->map.inode || j->dump.inode ? NAMES_AGAIN_MS : NO_NAMES_AGAIN_MS;
    bool new_dump = dump && !j->dump_path;
    if (new_dump) {
        j->dump_path = mem_strdup(dump);
        j->dump_inode = dump_inode;
    }
    if (!new_dump && j->asked_ms && (now_ms - j->asked_ms < again_ms || perf_jit_name(j, address).len))
        return j;
    struct perf_load *l = mem_zalloc(sizeof *l);
    if (!l)
        return j;
    l->jit = j;
    j->loading = true;
    j->asked_ms = now_ms;
    run(f, l, now_ms);
    return j;
}

bool perf_jit_is_late(const struct perf_jit *j, uint64_t now_ms)
{
    return j->loading && now_ms - j->asked_ms < PERF_LOAD_WAIT_MS;
}

/* ---- life ---- */

struct unwind_cache *perf_files_cache(struct perf_files *f)
{
    if (!f->cache)
        f->cache = unwind_cache_new();
    return f->cache;
}

const struct unwind_file *perf_files_vdso(struct perf_files *f)
{
    enum { VDSO_MAX = 1 << 18 };
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR); /* the kernel's: what it says holds */
    if (f->vdso || !h)
        return f->vdso;
    uint64_t n = h->e_shoff + (uint64_t)h->e_shnum * h->e_shentsize; /* which come last */
    if (n > VDSO_MAX || unwind_file_image(&f->vdso, slice_of(h, n), VDSO_MAX, NULL))
        f->vdso = NULL;
    return f->vdso;
}

void perf_files_forget(struct perf_files *f)
{
    bool busy = files_in_flight(f);
    drop_jits(f);
    for (size_t i = 0; i < f->list.n; i++) {
        drop_tables(f, &f->list.p[i]);
        f->list.p[i].known = false;
        f->list.p[i].failures = 0;
        f->list.p[i].failed_pid = 0;
    }
    if (busy) /* what is being read knows its place */
        return;
    vec_clear(&f->list);
    u64map_clear(&f->index);
    f->epoch++;
}

void perf_files_free(struct perf_files *f)
{
    size_t it = 0;
    bool all = perf_loader_free(f->loader);
    f->loader = NULL;
    for (struct u64map_slot *s; (s = u64map_next(&f->jits, &it)) != NULL;) {
        struct perf_jit *j = (struct perf_jit *)(uintptr_t)s->value;
        if (all || !j->loading) /* else a thread still has it */
            drop_jit(j);
    }
    u64map_free(&f->jits);
    for (size_t i = 0; i < f->list.n; i++)
        drop_tables(f, &f->list.p[i]);
    vec_free(&f->list);
    u64map_free(&f->index);
    unwind_cache_free(f->cache);
    unwind_file_free(f->vdso);
    *f = (struct perf_files){0};
}
