/* Keeps the maps of processes. */
#include "capture/perf/perf_process.h"

#include "base/alloc.h"
#include "base/bisect.h"
#include "base/file.h"
#include "capture/probes/proc_status.h"

#include <stdio.h>
#include <stdlib.h>

/* A process that maps code all the time (a JIT compiler) does not make us grow without end. */
enum { MAX_MAPS = 16384, MAX_MAPS_BYTES = 64 << 20 };

struct perf_process *perf_process_get(struct perf_processes *ps, int32_t pid)
{
    uint64_t *slot = u64map_put(&ps->index, (uint32_t)pid, NULL);
    if (!slot)
        return NULL;
    if (!*slot) {
        struct perf_process *p = mem_zalloc(sizeof *p);
        if (!p)
            return NULL;
        p->pid = pid;
        *slot = (uint64_t)(uintptr_t)p;
    }
    return (struct perf_process *)(uintptr_t)*slot;
}

/* ---- maps ---- */

/* The first map that ends behind `address`. */
static size_t first_behind(const struct perf_process *p, uint64_t address)
{
    size_t at = p->maps.n;
    BISECT(at, mid, p->maps.p[mid].end <= address);
    return at;
}

struct perf_map *perf_process_find(struct perf_process *p, uint64_t address)
{
    size_t i = first_behind(p, address);
    return i < p->maps.n && p->maps.p[i].start <= address ? &p->maps.p[i] : NULL;
}

static bool same_map(const struct perf_map *a, const struct perf_map *b)
{
    return a->start == b->start && a->end == b->end && a->offset == b->offset && a->inode == b->inode &&
           a->path == b->path;
}

/* Puts a map in its place; those that it overlaps are gone. */
static void add_map(struct perf_processes *ps, struct perf_process *p, const struct perf_map *m)
{
    size_t at = first_behind(p, m->start), end = at, room = p->maps.cap;
    if (m->end <= m->start)
        return;
    if (at < p->maps.n && same_map(&p->maps.p[at], m))
        return;
    while (end < p->maps.n && p->maps.p[end].start < m->end)
        end++;
    if (p->maps.n >= MAX_MAPS && at == end) {
        vec_clear(&p->maps);
        p->read = false;
        at = end = 0;
    }
    if (!vec_reserve(&p->maps, p->maps.n + 1))
        return;
    ps->map_room += p->maps.cap - room;
    memmove(p->maps.p + at + 1, p->maps.p + end, (p->maps.n - end) * sizeof *p->maps.p);
    p->maps.n = p->maps.n - (end - at) + 1;
    p->maps.p[at] = *m;
}

/* One line: start-end perms offset major:minor inode path. */
static bool parse_line(struct perf_processes *ps, char *line, struct perf_map *m)
{
    unsigned long start, end, offset, inode;
    unsigned major, minor;
    char perms[5];
    int path = 0;
    if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &start, &end, perms, &offset, &major, &minor, &inode, &path) < 7 ||
        !path || !strchr(perms, 'x'))
        return false;
    *m =
        (struct perf_map){.start = start, .end = end, .offset = offset, .inode = inode, .major = major, .minor = minor};
    if (line[path])
        m->path = strpool_intern_str(&ps->paths, line + path);
    return true;
}

void perf_process_parse(struct perf_processes *ps, struct perf_process *p, struct slice text)
{
    char line[4352]; /* a path has up to 4096 bytes */
    while (text.len) {
        const uint8_t *nl = memchr(text.p, '\n', text.len);
        size_t len = nl ? (size_t)(nl - text.p) : text.len;
        struct perf_map m;
        if (len < sizeof line) {
            memcpy(line, text.p, len);
            line[len] = 0;
            if (parse_line(ps, line, &m))
                add_map(ps, p, &m);
        }
        len += nl != NULL;
        text = slice_of(text.p + len, text.len - len);
    }
}

bool perf_process_read(struct perf_processes *ps, struct perf_process *p, uint64_t now_ms)
{
    char path[48], *text;
    size_t len;
    p->read_ms = now_ms;
    snprintf(path, sizeof path, "/proc/%d/maps", p->pid);
    if (p->pid <= 0 || file_read_all(path, MAX_MAPS_BYTES, &text, &len, NULL))
        return false;
    perf_process_parse(ps, p, slice_of(text, len));
    mem_free(text);
    p->read |= len > 0; /* a process that ends has none */
    return p->read;
}

uint64_t perf_process_began(int32_t pid)
{
    struct proc_times times;
    return proc_times_read(pid, &times) ? times.start_from_boot_ns : UINT64_MAX;
}

void perf_process_record(struct perf_processes *ps, const struct perf_record *r)
{
    struct perf_process *p = perf_process_get(ps, r->pid);
    if (!p)
        return;
    if (r->kind == PERF_KIND_FORK) {
        if (r->pid == r->parent)
            return; /* a thread */
        p->parent = r->parent;
        vec_clear(&p->maps); /* of a process of that number before */
        p->read = false;
        p->began = 0;
        return;
    }
    struct perf_map m = {.start = r->map_start,
                         .end = r->map_end,
                         .offset = r->map_offset,
                         .inode = r->map_inode,
                         .inode_generation = r->map_generation,
                         .major = r->map_major,
                         .minor = r->map_minor};
    if (r->path.len && !(r->path.len == 6 && memcmp(r->path.p, "//anon", 6) == 0))
        m.path = strpool_intern(&ps->paths, r->path.p, r->path.len);
    add_map(ps, p, &m);
}

bool perf_process_inherit(struct perf_processes *ps, struct perf_process *p, uint64_t now_ms)
{
    struct perf_process *parent = p->maps.n || p->parent <= 0 ? NULL : perf_process_get(ps, p->parent);
    if (parent && parent != p) {
        if (!parent->maps.n)
            perf_process_read(ps, parent, now_ms);
        for (size_t i = 0; i < parent->maps.n; i++)
            add_map(ps, p, &parent->maps.p[i]);
    }
    return p->maps.n > 0;
}

struct perf_map *perf_process_find_in_parent(struct perf_processes *ps, const struct perf_process *p, uint64_t address,
                                             uint64_t now_ms)
{
    struct perf_process *parent = p->parent > 0 && p->parent != p->pid ? perf_process_get(ps, p->parent) : NULL;
    if (parent && !parent->maps.n && parent->read_ms != now_ms)
        perf_process_read(ps, parent, now_ms);
    return parent ? perf_process_find(parent, address) : NULL;
}

/* ---- life ---- */

void perf_processes_forget(struct perf_processes *ps)
{
    size_t it = 0;
    for (struct u64map_slot *s; (s = u64map_next(&ps->index, &it)) != NULL;) {
        struct perf_process *p = (struct perf_process *)(uintptr_t)s->value;
        vec_free(&p->maps);
        p->read = false;
        p->began = 0;
    }
    strpool_free(&ps->paths);
    ps->paths = (struct strpool){0};
    ps->map_room = 0;
}

void perf_processes_bound(struct perf_processes *ps)
{
    if (ps->index.n > PERF_PROCESSES_MAX)
        perf_processes_free(ps);
    else if (ps->map_room > PERF_MAPS_MAX || ps->paths.bytes.total_bytes > PERF_PATHS_MAX_BYTES)
        perf_processes_forget(ps);
}

void perf_processes_free(struct perf_processes *ps)
{
    size_t it = 0;
    perf_processes_forget(ps);
    for (struct u64map_slot *s; (s = u64map_next(&ps->index, &it)) != NULL;)
        mem_free((struct perf_process *)(uintptr_t)s->value);
    u64map_free(&ps->index);
}
