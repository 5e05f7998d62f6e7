/* Converts time stamps. */
#include "importer/trace_dat/dat_clock.h"

#include "base/bisect.h"

#include <stdlib.h>

enum { FLAG_INTERPOLATE = 1 };

static int by_time(const void *a, const void *b)
{
    const struct dat_shift *x = a, *y = b;
    return x->time < y->time ? -1 : x->time > y->time;
}

/* The samples of one CPU: all times, all offsets, all scalings. */
static int read_cpu(struct dat_shifts *s, struct dat_cursor *c)
{
    enum { SAMPLE_BYTES = 24 };
    uint32_t n = dat_u32(c);
    if ((uint64_t)n * SAMPLE_BYTES > (uint64_t)(c->end - c->p)) {
        c->bad = true;
        return 0;
    }
    if (!vec_reserve(&s->list, n))
        return -MRD_ENOMEM;
    if (n)
        memset(s->list.p, 0, n * sizeof *s->list.p);
    s->list.n = n;
    for (uint32_t i = 0; i < n; i++)
        s->list.p[i].time = dat_u64(c);
    for (uint32_t i = 0; i < n; i++)
        s->list.p[i].offset = (int64_t)dat_u64(c);
    for (uint32_t i = 0; i < n; i++)
        s->list.p[i].scaling = (int64_t)dat_u64(c);
    return 0;
}

static void order(struct dat_shifts *s)
{
    size_t kept = 0;
    if (s->list.n)
        qsort(s->list.p, s->list.n, sizeof *s->list.p, by_time);
    for (size_t i = 0; i < s->list.n; i++)
        if (!kept || s->list.p[kept - 1].time != s->list.p[i].time)
            s->list.p[kept++] = s->list.p[i];
    s->list.n = kept;
}

int dat_clock_open(struct dat_clock *clock, const struct dat_file *f, bool *bad)
{
    *clock = (struct dat_clock){.file = f};
    if (!f->time_shift.len)
        return 0;
    struct dat_cursor c = {f->time_shift.p, f->time_shift.p + f->time_shift.len, f->big, false};
    clock->peer = dat_u64(&c);
    clock->interpolate = dat_u32(&c) & FLAG_INTERPOLATE;
    uint32_t n = dat_u32(&c);
    for (uint32_t i = 0; i < n && !c.bad; i++) {
        struct dat_shifts *s = vec_add(&clock->cpus);
        if (!s || read_cpu(s, &c))
            return -MRD_ENOMEM;
    }
    for (size_t i = 0; i < clock->cpus.n && c.p < c.end && !c.bad; i++)
        for (size_t k = 0; k < clock->cpus.p[i].list.n; k++)
            clock->cpus.p[i].list.p[k].fraction = dat_u64(&c);
    *bad |= c.bad;
    for (size_t i = 0; i < clock->cpus.n; i++) {
        order(&clock->cpus.p[i]);
        for (size_t k = 0; k < clock->cpus.p[i].list.n; k++) {
            const struct dat_shift *s = &clock->cpus.p[i].list.p[k];
            clock->scales |= s->fraction < 64 ? s->scaling != (int64_t)(1ull << s->fraction) : true;
        }
    }
    return 0;
}

void dat_clock_close(struct dat_clock *c)
{
    for (size_t i = 0; i < c->cpus.n; i++)
        vec_free(&c->cpus.p[i].list);
    vec_free(&c->cpus);
}

void dat_clock_cpu(struct dat_clock *c, uint32_t cpu)
{
    c->now = cpu < c->cpus.n && c->cpus.p[cpu].list.n ? &c->cpus.p[cpu] : NULL;
}

/* The sample whose piece holds `t`; beyond the ends, that of the first and the last piece. */
static const struct dat_shift *piece_of(const struct dat_shifts *s, uint64_t t)
{
    size_t n = s->list.n > 1 ? s->list.n - 1 : 1; /* pieces are one fewer than samples */
    BISECT(n, i, s->list.p[i].time <= t);
    return &s->list.p[n ? n - 1 : 0];
}

static uint64_t shifted(const struct dat_clock *c, uint64_t t)
{
    const struct dat_shifts *s = c->now;
    if (s->list.n == 1)
        return t + (uint64_t)s->list.p[0].offset;
    const struct dat_shift *a = piece_of(s, t), *b = a + 1;
    __int128 offset = a->offset;
    if (c->interpolate) {
        __int128 width = (__int128)b->time - a->time, run = (__int128)t - a->time,
                 rise = (__int128)b->offset - a->offset;
        unsigned __int128 product = (unsigned __int128)run * (unsigned __int128)rise; /* absurd samples wrap round */
        offset += (__int128)(product + (unsigned __int128)(width / 2)) / width;
    }
    __int128 scaled = a->fraction < 127 ? ((__int128)t * a->scaling) >> a->fraction : 0;
    return (uint64_t)(scaled + offset);
}

uint64_t dat_clock_time(void *clock, uint64_t raw)
{
    const struct dat_clock *c = clock;
    uint64_t t = c->now ? shifted(c, raw) : raw;
    if (c->file->has_tsc)
        t = (uint64_t)(((unsigned __int128)t * c->file->tsc_mult) >> c->file->tsc_shift);
    return t + (uint64_t)c->file->offset_ns + (uint64_t)c->host_offset_ns;
}
