/* The processes, services and threads that the resources of OTLP are. */
#include "importer/otlp/otlp_internal.h"

#include "base/hash.h"
#include "importer/track/process_tracker.h"

enum { SMALL_PID = 1000 /* below it, a container's process is most likely numbered by its own namespace */ };

/* The index that stands for a text, `next` when it is new. */
static uint32_t group(struct otlp *o, strid text, size_t next, bool *added)
{
    uint64_t *at = u64map_put(&o->groups, text, added);
    if (!at) {
        o->im->failed = true;
        *added = false;
        return 0;
    }
    if (*added)
        *at = next;
    return (uint32_t)*at;
}

static const char *text_of(const struct otlp *o, strid s)
{
    return strpool_cstr(&o->im->st->strings, s);
}

/* Whether the number of a process is one of its container, and the system's is not known. */
static bool is_namespaced(const struct otlp *o, const struct otlp_resource *res, bool others)
{
    (void)o;
    return others && res->facts[FACT_CONTAINER] && res->pid && res->pid < SMALL_PID;
}

static uint32_t process_of(struct otlp *o, struct otlp_resource *res, uint32_t index)
{
    struct strpool *strings = &o->im->st->strings;
    bool added;
    strid key = res->pid
                    ? strpool_printf(strings, "otlp\x1fpid\x1f%u\x1f%lld", res->m->id, (long long)res->pid)
                    : strpool_printf(strings, "otlp\x1fprocess\x1f%u\x1f%s\x1f%s\x1f%s\x1f%s", res->m->id,
                                     text_of(o, res->facts[FACT_NAMESPACE]), text_of(o, res->facts[FACT_SERVICE]),
                                     text_of(o, res->facts[FACT_INSTANCE]), text_of(o, res->facts[FACT_CONTAINER]));
    uint32_t at = group(o, key, o->processes.n, &added);
    if (added && !vec_push(&o->processes,
                           (struct otlp_process){.m = res->m, .pid = res->pid, .resource = index, .upid = UPID_NONE}))
        o->im->failed = true;
    return at;
}

void otlp_find_services(struct otlp *o)
{
    struct strpool *strings = &o->im->st->strings;
    for (size_t i = 0; i < o->resources.n && !o->im->failed; i++) {
        struct otlp_resource *res = &o->resources.p[i];
        bool added;
        if (!res->used)
            continue;
        if (is_namespaced(o, res, res->m->id == 0 ? !o->only_otlp : res->m->id < o->machines_before)) {
            res->pid = 0;
            stats_add_idx(&o->im->st->stats, res->m->id, STAT_otlp_namespaced_pid,
                          (int32_t)o->files.p[res->file].trace_file, 1);
        }
        uint32_t process = process_of(o, res, (uint32_t)i);
        strid key = strpool_printf(strings, "otlp\x1fservice\x1f%u\x1f%s\x1f%s\x1f%s", process,
                                   text_of(o, res->facts[FACT_NAMESPACE]), text_of(o, res->facts[FACT_SERVICE]),
                                   text_of(o, res->facts[FACT_INSTANCE]));
        res->service = group(o, key, o->services.n, &added);
        if (added && !vec_push(&o->services,
                               (struct otlp_service){.process = process, .resource = (uint32_t)i, .root = OTLP_NONE}))
            o->im->failed = true;
    }
}

/* Whether thread.id of an SDK's language is the system's. It is for languages whose threads are the system's, and where
 * nobody says what wrote the span. */
static bool has_system_threads(const struct otlp *o, const struct otlp_resource *res)
{
    static const char *const languages[] = {"cpp", "rust", "go", "python", "c", "swift"};
    if (!res->facts[FACT_LANGUAGE])
        return true;
    struct slice language = strpool_view(&o->im->st->strings, res->facts[FACT_LANGUAGE]);
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++)
        if (slice_eq_str(language, languages[i]))
            return true;
    return false;
}

uint32_t otlp_thread_of(struct otlp *o, const struct otlp_span *s)
{
    const struct otlp_resource *res = &o->resources.p[o->scopes.p[s->scope].resource];
    uint32_t process = o->services.p[res->service].process;
    struct otlp_process *p = &o->processes.p[process];
    bool system = s->tid > 0 && s->tid <= INT32_MAX && p->pid && has_system_threads(o, res);
    strid name = s->thread_name;
    if (s->tid <= 0 && !name)
        return OTLP_NONE;
    if (!system && !name)
        name = strpool_printf(&o->im->st->strings, "Thread %lld", (long long)s->tid);
    bool added;
    uint64_t *at = system ? u64map_put(&p->tids, (uint64_t)s->tid, &added)
                          : u64map_put(&p->names, hash_combine(hash_u64(name ^ o->seed), (uint64_t)s->tid), &added);
    if (!at) {
        o->im->failed = true;
        return OTLP_NONE;
    }
    if (!added) {
        if (system && name && !o->threads.p[*at].name)
            o->threads.p[*at].name = name;
        return (uint32_t)*at;
    }
    *at = o->threads.n;
    struct otlp_thread thread = {
        .process = process, .tid = system ? s->tid : 0, .name = name, .utid = UTID_NONE, .track = OTLP_NONE};
    if (!vec_push(&o->threads, thread)) {
        o->im->failed = true;
        return OTLP_NONE;
    }
    return (uint32_t)(o->threads.n - 1);
}
