/* Counters of a thread's process. The process may become known only later, so that samples wait for their track until
 * the end. */
#include "importer/ftrace/ftrace_internal.h"
#include "importer/track/process_memory.h"

struct pending_sample {
    uint32_t row; /* of counter */
    uint32_t utid;
    uint32_t key; /* index in keys */
};

struct pending_key {
    enum pending_kind kind;
    const char *key, *metric; /* literals */
};

struct pending_counters {
    struct ftrace_machine *f;
    VEC(struct pending_key)
    keys;
    VEC(struct pending_sample)
    samples;
};

/* By kind: the types of the tracks of a process, and of the thread when its process stays unknown. */
static const struct {
    const char *of_process, *of_thread;

} kinds[] = {
    [PENDING_OOM_SCORE_ADJ] = {"oom_score_adj", "oom_score_adj_thread_fallback"},
    [PENDING_MEMORY] = {"process_memory", "process_memory_thread_fallback"},
    [PENDING_MM_EVENT] = {"mm_event", "mm_event_thread_fallback"},
};

struct pending_counters *pending_counters_open(struct ftrace_machine *f)
{
    struct pending_counters *p = mem_zalloc(sizeof *p);
    if (p)
        p->f = f;
    return p;
}

void pending_counters_close(struct pending_counters *p)
{
    if (!p)
        return;
    vec_free(&p->keys);
    vec_free(&p->samples);
    mem_free(p);
}

static uint32_t key_index(struct pending_counters *p, enum pending_kind kind, const char *key, const char *metric)
{
    for (size_t i = 0; i < p->keys.n; i++)
        if (p->keys.p[i].kind == kind && p->keys.p[i].key == key && p->keys.p[i].metric == metric)
            return (uint32_t)i;
    return vec_push(&p->keys, ((struct pending_key){kind, key, metric})) ? (uint32_t)p->keys.n - 1 : UINT32_MAX;
}

void pending_counter(const struct ftrace_event *e, uint32_t utid, enum pending_kind kind, const char *key,
                     const char *metric, double value)
{
    struct pending_counters *p = e->f->pending;
    uint32_t k = key_index(p, kind, key, metric);
    struct small_args args = {0};
    small_args_put(&args, e->f->text[TEXT_UTID], ARG_UINT, utid);
    uint32_t row = counter_insert(
        e->m->st,
        &(struct counter_row){.ts = e->ts, .track_id = 0, .value = value, .arg_set_id = small_args_set(e, &args)});
    if (k == UINT32_MAX || row == UINT32_MAX || !vec_push(&p->samples, ((struct pending_sample){row, utid, k})))
        e->m->im->failed = true;
}

static uint32_t track_of(struct pending_counters *p, const struct pending_sample *s)
{
    struct importer *im = p->f->im;
    const struct pending_key *k = &p->keys.p[s->key];
    uint32_t upid = process_tracker_thread_process(p->f->m->processes, s->utid);
    bool known = upid != UPID_NONE;
    struct track_dim dims[3] = {{.key = known ? "upid" : "utid", .value = known ? upid : s->utid}};
    struct track_spec spec = {.type = known ? kinds[k->kind].of_process : kinds[k->kind].of_thread,
                              .event_type = TRACK_COUNTER,
                              .parent = UINT32_MAX,
                              .dims = dims,
                              .n_dims = 1};
    switch (k->kind) {
    case PENDING_OOM_SCORE_ADJ:
        spec.name = import_str(im, "oom_score_adj");
        break;
    case PENDING_MEMORY:
        dims[1] = (struct track_dim){"process_memory_key", DIM_STR, import_str(im, k->key)};
        spec.n_dims = 2;
        spec.name = strpool_printf(&im->st->strings, "mem.%s", k->key);
        spec.description = process_memory_description(k->key);
        break;
    case PENDING_MM_EVENT:
        dims[1] = (struct track_dim){"mm_event_type", DIM_STR, import_str(im, k->key)};
        dims[2] = (struct track_dim){"mm_event_metric", DIM_STR, import_str(im, k->metric)};
        spec.n_dims = 3;
        spec.name = strpool_printf(&im->st->strings, "mem.mm.%s.%s", k->key, k->metric);
        break;
    }
    return track_intern(im->tracks, p->f->m->id, &spec);
}

void pending_counters_resolve(struct pending_counters *p)
{
    struct u64map tracks = {0}; /* utid << 32 | key -> track */
    for (size_t i = 0; i < p->samples.n; i++) {
        const struct pending_sample *s = &p->samples.p[i];
        bool added;
        uint64_t *track = u64map_put(&tracks, (uint64_t)s->utid << 32 | s->key, &added);
        if (!track) {
            p->f->im->failed = true;
            break;
        }
        if (added)
            *track = track_of(p, s);
        ROW_SET(p->f->m->st, counter, track_id, s->row, (int64_t)*track);
    }
    u64map_free(&tracks);
    vec_clear(&p->samples);
}
