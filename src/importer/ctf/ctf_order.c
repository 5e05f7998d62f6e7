/* Puts stream files in order. */
#include "importer/ctf/ctf_order.h"

#include "base/hash.h"
#include "base/u64map.h"

#include <stdlib.h>

/* What tells streams apart, 0: nothing does. */
static uint64_t stream_key(const struct ctf_trace *t, const struct ctf_stream *s)
{
    const char *identity = ctf_trace_identity(t);
    if (!*identity || !s->has_instance || !s->class)
        return 0;
    return hash_combine(hash_combine(hash_bytes_seeded(identity, strlen(identity), hash_secret()), s->class->id),
                        s->instance);
}

/* Looks at the first event of a file. */
static int look(const struct ctf_trace *t, struct ctf_stream_file *f, uint64_t *key)
{
    struct ctf_stream s;
    int rc = ctf_stream_open(&s, &t->metadata, t->streams.p[f->stream].bytes);
    *key = 0;
    if (rc)
        return rc;
    const struct ctf_event *e = ctf_stream_next(&s);
    if (e) {
        f->timeless = e->stream->no_clock;
        f->first_ns = e->ts_ns;
        *key = stream_key(t, &s);
    }
    ctf_stream_close(&s);
    return 0;
}

static int by_order(const void *pa, const void *pb)
{
    const struct ctf_stream_file *a = pa, *b = pb;
    if (a->timeless != b->timeless)
        return a->timeless - b->timeless;
    if (a->same != b->same)
        return a->same < b->same ? -1 : 1;
    if (a->first_ns != b->first_ns)
        return a->first_ns < b->first_ns ? -1 : 1;
    return a->trace != b->trace ? (a->trace < b->trace ? -1 : 1) : a->stream < b->stream ? -1 : a->stream > b->stream;
}

static int add(struct ctf_order *o, const struct ctf_trace *t, struct ctf_stream_file f, struct u64map *by_key)
{
    uint64_t key;
    int rc = look(t, &f, &key);
    if (rc)
        return rc;
    f.same = (uint32_t)o->counters.n;
    bool added = true;
    uint64_t *first = key ? u64map_put(by_key, key, &added) : NULL;
    if (key && !first)
        return -MRD_ENOMEM;
    if (first && added)
        *first = f.same;
    else if (first)
        f.same = (uint32_t)*first;
    return vec_push(&o->counters, (struct ctf_counters){0}) && vec_push(&o->files, f) ? 0 : -MRD_ENOMEM;
}

int ctf_order_make(struct ctf_order *o, const ctf_traces *traces)
{
    struct u64map by_key = {0};
    int rc = 0;
    for (uint32_t i = 0; i < traces->n; i++)
        for (uint32_t k = 0; !rc && k < traces->p[i]->streams.n; k++)
            rc = add(o, traces->p[i], (struct ctf_stream_file){.trace = i, .stream = k}, &by_key);
    u64map_free(&by_key);
    if (!rc && o->files.n)
        qsort(o->files.p, o->files.n, sizeof *o->files.p, by_order);
    return rc;
}

void ctf_order_free(struct ctf_order *o)
{
    vec_free(&o->files);
    vec_free(&o->counters);
}
