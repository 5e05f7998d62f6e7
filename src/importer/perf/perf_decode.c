/* The layout of samples and trailers, which the attr decides. */
#include "importer/perf/perf_internal.h"

enum { HEADER = 8 };

static size_t read_size(const struct perf_file *f, uint64_t format, struct dat_cursor c)
{
    unsigned times = ((format & PERF_READ_ENABLED) != 0) + ((format & PERF_READ_RUNNING) != 0);
    unsigned each = 1 + ((format & PERF_READ_ID) != 0) + ((format & PERF_READ_LOST) != 0);
    (void)f;
    if (!(format & PERF_READ_GROUP))
        return 8 * (times + each);
    uint64_t n = dat_u64(&c);
    return n > (uint64_t)(c.end - c.p) / 8 ? SIZE_MAX : 8 * (1 + times + (size_t)n * each);
}

bool perf_sample_read(const struct perf_file *f, const struct perf_attr *a, const struct perf_record *r,
                      struct perf_sample_record *s)
{
    struct dat_cursor c = perf_body(f, r);
    uint64_t t = a->sample_type;
    *s = (struct perf_sample_record){0};
    struct perf_where *w = &s->where;
    if (t & PERF_IDENTIFIER)
        w->id = dat_u64(&c);
    if ((s->has_ip = t & PERF_IP))
        s->ip = dat_u64(&c);
    if ((w->has_tid = t & PERF_TID)) {
        w->pid = dat_u32(&c);
        w->tid = dat_u32(&c);
    }
    if ((w->has_time = t & PERF_TIME))
        w->time = dat_u64(&c);
    if (t & PERF_ADDR)
        (void)dat_u64(&c);
    if (t & PERF_ID)
        w->id = dat_u64(&c);
    w->has_id = t & (PERF_ID | PERF_IDENTIFIER);
    if (t & PERF_STREAM_ID)
        (void)dat_u64(&c);
    if ((w->has_cpu = t & PERF_CPU)) {
        w->cpu = dat_u32(&c);
        (void)dat_u32(&c);
    }
    if ((s->has_period = t & PERF_PERIOD))
        s->period = dat_u64(&c);
    if (t & PERF_READ)
        s->read = dat_bytes(&c, read_size(f, a->read_format, c));
    if (t & PERF_CALLCHAIN) {
        uint64_t n = dat_u64(&c);
        s->callchain = dat_bytes(&c, n <= UINT16_MAX ? n * 8 : UINT64_MAX);
    }
    if (t & PERF_RAW)
        s->raw = dat_bytes(&c, dat_u32(&c));
    return !c.bad;
}

void perf_trailer_read(const struct perf_file *f, const struct perf_attr *a, const struct perf_record *r,
                       struct perf_where *w)
{
    static const uint64_t parts[] = {PERF_TID, PERF_TIME, PERF_ID, PERF_STREAM_ID, PERF_CPU, PERF_IDENTIFIER};
    *w = (struct perf_where){0};
    size_t size = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        size += a->sample_type & parts[i] ? 8 : 0;
    if (!perf_flag(a, PERF_FLAG_SAMPLE_ID_ALL) || r->type > PERF_RECORD_LAST_KERNEL || size > r->bytes.len - HEADER)
        return;
    struct dat_cursor c = perf_cursor(f, slice_of(r->bytes.p + r->bytes.len - size, size));
    if ((w->has_tid = a->sample_type & PERF_TID)) {
        w->pid = dat_u32(&c);
        w->tid = dat_u32(&c);
    }
    if ((w->has_time = a->sample_type & PERF_TIME))
        w->time = dat_u64(&c);
    if ((w->has_id = a->sample_type & (PERF_ID | PERF_IDENTIFIER)) && (a->sample_type & PERF_ID))
        w->id = dat_u64(&c);
    if (a->sample_type & PERF_STREAM_ID)
        (void)dat_u64(&c);
    if ((w->has_cpu = a->sample_type & PERF_CPU)) {
        w->cpu = dat_u32(&c);
        (void)dat_u32(&c);
    }
    if (a->sample_type & PERF_IDENTIFIER)
        w->id = dat_u64(&c);
}

/* Where a record keeps the id of its event: all attrs agree on it. */
static bool id_of(const struct perf_file *f, const struct perf_record *r, uint64_t *id)
{
    const struct perf_attr *a = f->attrs.p;
    size_t at = HEADER, n = r->bytes.len;
    bool sample = r->type == PERF_RECORD_SAMPLE;
    if (a->sample_type & PERF_IDENTIFIER) {
        at = sample ? at : n - 8;
    } else if (a->sample_type & PERF_ID) {
        static const uint64_t before[] = {PERF_IP, PERF_TID, PERF_TIME, PERF_ADDR},
                              behind[] = {PERF_STREAM_ID, PERF_CPU};
        for (size_t i = 0; sample && i < sizeof before / sizeof *before; i++)
            at += a->sample_type & before[i] ? 8 : 0;
        if (!sample)
            at = n - 8;
        for (size_t i = 0; !sample && i < sizeof behind / sizeof *behind; i++)
            at -= a->sample_type & behind[i] ? 8 : 0;
    } else {
        return false;
    }
    if (at < HEADER || at > n || n - at < 8)
        return false;
    struct dat_cursor c = perf_cursor(f, slice_of(r->bytes.p + at, 8));
    *id = dat_u64(&c);
    return true;
}

const struct perf_attr *perf_attr_of(const struct perf_file *f, const struct perf_record *r)
{
    uint64_t id;
    if (!f->attrs.n)
        return NULL;
    if (f->attrs.n == 1)
        return f->attrs.p;
    if (r->type != PERF_RECORD_SAMPLE && !perf_flag(f->attrs.p, PERF_FLAG_SAMPLE_ID_ALL))
        return f->attrs.p;
    if (!id_of(f, r, &id))
        return NULL;
    const uint64_t *attr = u64map_get(&f->ids, id);
    if (attr)
        return &f->attrs.p[*attr];
    return id == 0 ? f->attrs.p : NULL; /* perf made the record before recording began */
}
