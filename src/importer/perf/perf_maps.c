/* Address spaces. */
#include "importer/perf/perf_maps.h"

#include "base/bisect.h"

enum { MAX_INHERITED = 1 << 20 };

struct perf_space *perf_space_of(struct perf_spaces *s, uint32_t pid)
{
    bool added;
    struct perf_space *near = perf_space_near(s, pid);
    if (near)
        return near;
    uint64_t *slot = u64map_put(&s->by_pid, pid, &added);
    if (!slot)
        return NULL;
    if (added) {
        *slot = s->list.n;
        struct perf_space *fresh = vec_add(&s->list);
        if (!fresh) {
            u64map_del(&s->by_pid, pid);
            return NULL;
        }
        fresh->dummy = UINT32_MAX;
    }
    s->recent[pid % PERF_RECENT_SPACES].pid = pid;
    s->recent[pid % PERF_RECENT_SPACES].at = (uint32_t)*slot + 1;
    return &s->list.p[*slot];
}

/* The first map that ends behind `address`. */
static size_t first_behind(const struct perf_space *s, uint64_t address)
{
    size_t first = s->maps.n;
    BISECT(first, mid, s->maps.p[mid].end <= address);
    return first;
}

bool perf_space_map(struct perf_space *s, struct perf_map map)
{
    s->version++;
    if (map.end <= map.start)
        return true;
    size_t from = first_behind(s, map.start), to = from;
    while (to < s->maps.n && s->maps.p[to].start < map.end)
        to++;
    s->moved += (s->maps.n - to) * sizeof *s->maps.p;
    if (s->moved > PERF_MAX_MOVED) {
        vec_clear(&s->maps);
        s->moved = from = to = 0;
    }
    struct perf_map pieces[3];
    size_t n = 0;
    if (from < to && s->maps.p[from].start < map.start) {
        pieces[n] = s->maps.p[from];
        pieces[n++].end = map.start;
    }
    pieces[n++] = map;
    if (from < to && s->maps.p[to - 1].end > map.end) {
        pieces[n] = s->maps.p[to - 1];
        pieces[n++].start = map.end;
    }
    if (!vec_reserve(&s->maps, s->maps.n + n))
        return false;
    memmove(s->maps.p + from + n, s->maps.p + to, (s->maps.n - to) * sizeof *s->maps.p);
    memcpy(s->maps.p + from, pieces, n * sizeof *pieces);
    s->maps.n = s->maps.n - (to - from) + n;
    return true;
}

const struct perf_map *perf_space_find(const struct perf_space *s, uint64_t address)
{
    size_t i = first_behind(s, address);
    return i < s->maps.n && s->maps.p[i].start <= address ? &s->maps.p[i] : NULL;
}

bool perf_space_inherit(struct perf_spaces *s, uint32_t child, uint32_t parent)
{
    struct perf_space *to = perf_space_of(s, child), *from = to ? perf_space_of(s, parent) : NULL;
    to = from ? perf_space_of(s, child) : NULL; /* it may have moved */
    if (!to || to == from || s->inherited + from->maps.n > MAX_INHERITED)
        return to != NULL;
    to->version++;
    vec_clear(&to->maps);
    if (!vec_reserve(&to->maps, from->maps.n))
        return false;
    if (from->maps.n)
        memcpy(to->maps.p, from->maps.p, from->maps.n * sizeof *to->maps.p);
    to->maps.n = from->maps.n;
    s->inherited += from->maps.n;
    return true;
}

void perf_space_clear(struct perf_spaces *s, uint32_t pid)
{
    struct perf_space *space = perf_space_of(s, pid);
    if (!space)
        return;
    space->version++;
    vec_clear(&space->maps);
}

void perf_spaces_free(struct perf_spaces *s)
{
    vec_free(&s->kernel.maps);
    for (size_t i = 0; i < s->list.n; i++)
        vec_free(&s->list.p[i].maps);
    vec_free(&s->list);
    u64map_free(&s->by_pid);
}
