/* Keeps the names of threads that are new. */
#include "capture/perf/perf_names.h"

#include "base/alloc.h"
#include "capture/probes/proc_text.h"

#include <stdio.h>
#include <string.h>

enum { MAX_NAMES = 1 << 16 }; /* then those of threads that have ended go, with all others */

static struct perf_name *find(const struct perf_names *names, int32_t tid)
{
    const uint64_t *at = u64map_get(&names->index, (uint32_t)tid);
    return at ? &names->list.p[*at] : NULL;
}

static struct perf_name *make(struct perf_names *names, int32_t tid)
{
    struct perf_name *name = find(names, tid);
    if (name)
        return name;
    if (names->list.n >= MAX_NAMES) {
        u64map_clear(&names->index);
        vec_clear(&names->list);
    }
    name = vec_add(&names->list);
    if (name && !u64map_set(&names->index, (uint32_t)tid, names->list.n - 1)) {
        names->list.n--;
        name = NULL;
    }
    return name;
}

void perf_names_record(struct perf_names *names, const struct perf_record *r)
{
    struct perf_name next = {0};
    if (r->kind == PERF_KIND_FORK) {
        const struct perf_name *parent = find(names, r->parent_tid);
        if (parent)
            memcpy(next.text, parent->text, sizeof next.text);
    } else {
        memcpy(next.text, r->path.p, r->path.len < sizeof next.text ? r->path.len : sizeof next.text - 1);
    }
    struct perf_name *name = make(names, r->tid);
    if (name)
        *name = next;
}

const char *perf_names_tell(struct perf_names *names, int32_t pid, int32_t tid)
{
    struct perf_name *name = find(names, tid);
    char path[64];
    if (!name || name->told)
        return NULL;
    name->told = true;
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, tid);
    if (!name->text[0] && text_read_once(path, name->text, sizeof name->text) > 0)
        text_trim(name->text);
    return name->text[0] ? name->text : NULL;
}

void perf_names_free(struct perf_names *names)
{
    u64map_free(&names->index);
    vec_free(&names->list);
}
