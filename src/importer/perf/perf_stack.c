/* Call stacks of samples: frames in the files that are mapped, callsites, and parts of stacks that come later. */
#include "importer/perf/perf_unwind.h"

#include "base/hash.h"
#include "importer/profiling/samples.h"
#include "importer/profiling/stack_profile.h"

enum { MODE_KERNEL = 1, MODE_USER = 2, MODE_HYPERVISOR = 3, MODE_GUEST_KERNEL = 4, MODE_GUEST_USER = 5 };

/* Marks in a call chain: the mode of what follows. */
#define FIRST_MARK         ((uint64_t)-4095)
#define MARK_USER_DEFERRED ((uint64_t)-640)

static unsigned mode_of_mark(uint64_t mark, unsigned mode)
{
    static const struct {
        int16_t mark;
        uint8_t mode;
    } marks[] = {{-32, MODE_HYPERVISOR},   {-128, MODE_KERNEL},        {-512, MODE_USER},       {-640, MODE_USER},
                 {-2048, MODE_GUEST_USER}, {-2176, MODE_GUEST_KERNEL}, {-2560, MODE_GUEST_USER}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if ((uint64_t)(int64_t)marks[i].mark == mark)
            return marks[i].mode;
    return mode;
}

/* The mapping of addresses that lie in no known file, one a process. */
static uint32_t dummy_mapping(struct perf_import *p, uint32_t pid)
{
    struct perf_space *space = perf_space_of(&p->spaces, pid);
    if (!space) {
        p->im->failed = true;
        return 0;
    }
    if (space->dummy == UINT32_MAX)
        space->dummy = stack_profile_mapping_insert(
            p->im->st, &(struct stack_profile_mapping_row){.build_id = p->nothing, .end = -1, .name = p->nothing});
    return space->dummy;
}

/* How often a file was mapped where the stacks of a process lead: what was found before that may lie elsewhere now. 0
 * is of no frame. Other processes map files all the time, which says nothing about this one. */
static uint32_t version_of(struct perf_import *p, uint32_t pid)
{
    const struct perf_space *near = perf_space_near(&p->spaces, pid),
                            *space = near ? near : perf_space_of(&p->spaces, pid);
    return p->spaces.kernel.version + (space ? space->version : 0) + 1;
}

/* The mapping of code that the kernel made, whose name is that of its frames. */
static uint32_t symbol_mapping(struct perf_import *p, uint32_t symbol, struct stack_profile_frame_row *frame_row)
{
    struct perf_symbol *s = &p->symbols.p[symbol];
    if (s->mapping == UINT32_MAX)
        s->mapping = stack_profile_mapping_insert(
            p->im->st, &(struct stack_profile_mapping_row){.build_id = p->nothing,
                                                           .start = (int64_t)s->start,
                                                           .end = (int64_t)s->end,
                                                           .name = import_str(p->im, "[bpf]")});
    frame_row->name = s->name;
    return s->mapping;
}

/* A frame that is looked for. */
struct wanted_frame {
    uint64_t ip;
    uint32_t pid, version; /* what `known` has to hold for it to be this one's */
    uint8_t mode;
    bool shared, found, dummy;
    uint32_t frame; /* when it was found: others may take its place before it is taken */
    struct perf_known_frame *known;
    struct stack_profile_frame_row row; /* when it was not found */
    struct source_line source;          /* function 0: none */
};

/* Code of the kernel lies where it does for all processes: its frames are known to all of them, but for those in no
 * known file, which are in a mapping of the process. */
static inline void want_frame(struct perf_import *p, struct wanted_frame *w, uint32_t pid, uint32_t version,
                              unsigned mode, uint64_t ip)
{
    w->ip = ip;
    w->mode = (uint8_t)mode;
    w->shared = (mode == MODE_KERNEL || mode == MODE_GUEST_KERNEL) && p->spaces.kernel.maps.n;
    w->pid = w->shared ? 0 : pid;
    w->version = w->shared ? p->spaces.kernel.version + 1 : version;
    w->known = &p->known_frames[hash_combine(ip, w->pid) % PERF_KNOWN_FRAMES];
    __builtin_prefetch(w->known);
}

/* Finds a frame that was looked for lately; of others, what row they are to have. */
static inline void look_up_frame(struct perf_import *p, struct wanted_frame *w, uint32_t pid)
{
    const struct perf_known_frame *known = w->known;
    w->found = known->version == w->version && known->ip == w->ip && known->pid == w->pid && known->mode == w->mode;
    w->dummy = known->dummy;
    w->frame = known->frame;
    if (w->found)
        return;
    bool kernel = w->mode == MODE_KERNEL || w->mode == MODE_GUEST_KERNEL;
    const struct perf_space *space = kernel ? &p->spaces.kernel : perf_space_of(&p->spaces, pid);
    const struct perf_map *map = space ? perf_space_find(space, w->ip) : NULL;
    w->dummy = !map;
    w->row = (struct stack_profile_frame_row){.name = p->nothing, .symbol_set_id = COL_NULL};
    w->row.mapping = !map          ? dummy_mapping(p, pid)
                     : map->symbol ? symbol_mapping(p, map->symbol - 1, &w->row)
                                   : map->mapping;
    w->row.rel_pc = (int64_t)(w->ip + (uint64_t)(map ? map->pc_offset : 0));
    const char *function = kernel && map && !map->symbol ? perf_kernel_symbol(p, w->ip) : NULL;
    w->source = (struct source_line){.function = function ? import_str(p->im, function) : 0, .line = COL_NULL};
    stack_profile_frame_ahead(p->m, &w->row, function ? &w->source : NULL);
}

static inline uint32_t take_frame(struct perf_import *p, const struct wanted_frame *w, uint32_t *dummies)
{
    *dummies += w->dummy;
    if (w->found)
        return w->frame;
    uint32_t row = stack_profile_frame(p->m, &w->row, w->source.function ? &w->source : NULL);
    if (!w->dummy || !w->shared)
        *w->known = (struct perf_known_frame){
            .ip = w->ip, .pid = w->pid, .version = w->version, .frame = row, .mode = w->mode, .dummy = w->dummy};
    return row;
}

enum { MAX_FRAMES = UINT16_MAX / 8 /* as many as a record can hold */ };

struct chain {
    size_t n;
    struct {
        uint64_t ip;
        unsigned mode;
    } at[MAX_FRAMES]; /* the leaf first */
    bool called;      /* others come before it: the leaf called them, too */
    bool deferred;    /* its part in user space is told later, by the cookie */
    uint64_t cookie;
};

/* It is large: nothing else of it is cleared. */
static void clear_chain(struct chain *c)
{
    c->n = 0;
    c->called = false;
}

static void read_chain(const struct perf_import *p, struct slice bytes, unsigned mode, struct chain *out)
{
    struct dat_cursor c = perf_cursor(&p->file, bytes);
    out->deferred = false;
    while (c.end - c.p >= 8 && out->n < MAX_FRAMES) {
        uint64_t ip = dat_u64(&c);
        if (ip < FIRST_MARK) {
            out->at[out->n].ip = ip;
            out->at[out->n++].mode = mode;
            continue;
        }
        mode = mode_of_mark(ip, mode);
        if (ip == MARK_USER_DEFERRED) {
            out->cookie = dat_u64(&c);
            out->deferred = !c.bad;
        }
    }
}

/* The frames [first, first + n) of a chain, the last one first. Most of the time they take is waiting for memory: that
 * of all is asked for before the first is looked at. (Measured: 0.96 of the time of an import of call stacks.)
 *
 * Addresses of callers are where they go on: one less lies in the call. simpleperf has done that itself. */
enum { FRAMES_AT_ONCE = 32 };
static void find_frames(struct perf_import *p, const struct chain *chain, size_t first, size_t n, uint32_t pid,
                        uint32_t version, uint32_t *frames, uint32_t *dummies)
{
    struct wanted_frame wanted[FRAMES_AT_ONCE];
    uint64_t back = !p->file.has_feature[PERF_FEATURE_SIMPLEPERF_META];
    for (size_t i = n; i-- > 0;) {
        uint64_t ip = chain->at[first + i].ip;
        want_frame(p, &wanted[i], pid, version, chain->at[first + i].mode,
                   (first + i || chain->called) && ip ? ip - back : ip);
    }
    for (size_t i = n; i-- > 0;)
        look_up_frame(p, &wanted[i], pid);
    for (size_t i = n; i-- > 0;)
        frames[first + i] = take_frame(p, &wanted[i], dummies);
}

/* The callsite of a chain that `site` leads to. */
static uint32_t callsite_from(struct perf_import *p, uint32_t site, const struct chain *chain, uint32_t pid,
                              uint32_t *dummies)
{
    uint32_t version = version_of(p, pid), frames[MAX_FRAMES];
    for (size_t end = chain->n; end > 0;) {
        size_t n = end < FRAMES_AT_ONCE ? end : FRAMES_AT_ONCE;
        end -= n;
        find_frames(p, chain, end, n, pid, version, frames, dummies);
    }
    for (size_t i = chain->n; i-- > 0;)
        site = stack_profile_callsite(p->m, site, frames[i]);
    return site;
}

static uint32_t callsite_of(struct perf_import *p, const struct chain *chain, uint32_t pid, uint32_t *dummies)
{
    return callsite_from(p, CALLSITE_NONE, chain, pid, dummies);
}

/* The chain of a sample; the address where there is none, or one of marks only, which say its mode. */
static struct slice chain_of(const struct perf_import *p, const struct perf_attr *a, const struct perf_sample_record *s,
                             const uint8_t *record, unsigned *mode)
{
    enum { MAX_MARKS = 4 * 8 };
    unsigned of_marks = *mode;
    struct dat_cursor c = perf_cursor(&p->file, s->callchain);
    if (s->callchain.len > MAX_MARKS || !s->has_ip)
        return s->callchain;
    while (c.end - c.p >= 8) {
        uint64_t ip = dat_u64(&c);
        if (ip < FIRST_MARK)
            return s->callchain;
        of_marks = mode_of_mark(ip, of_marks);
    }
    *mode = of_marks;
    return slice_of(record + a->layout.sample.ip, 8);
}

/* The callsite of a stack whose part in user space was unwound: its frames go in the place of those of the chain. */
static uint32_t unwound_callsite(struct perf_import *p, struct slice chain, unsigned mode, uint32_t pid,
                                 const struct unwind_frame *frames, size_t n, uint32_t *dummies)
{
    struct chain all;
    size_t kept = 0;
    uint64_t back = !p->file.has_feature[PERF_FEATURE_SIMPLEPERF_META]; /* what callsite_of() takes away again */
    clear_chain(&all);
    read_chain(p, chain, mode, &all);
    for (size_t i = 0; i < all.n; i++)
        if (all.at[i].mode != MODE_USER)
            all.at[kept++] = all.at[i];
    for (size_t i = 0; i < n && kept < MAX_FRAMES; i++, kept++) {
        all.at[kept].ip = perf_unwind_code(p, &frames[i]) + (kept ? back : 0);
        all.at[kept].mode = MODE_USER;
    }
    all.n = kept;
    return callsite_of(p, &all, pid, dummies);
}

/* Samples of one place have the same chain, byte by byte, as long as no file was mapped since. */
struct perf_stack perf_stack_of(struct perf_import *p, const struct perf_attr *a, const struct perf_sample_record *s,
                                const uint8_t *record, unsigned mode)
{
    struct perf_stack out = {.callsite = CALLSITE_NONE};
    const struct unwind_frame *frames;
    uint32_t error;
    size_t n = perf_unwind(p, a, s, &frames, &error);
    if (!n && s->stack.len)
        stats_add(&p->im->st->stats, p->m->id, STAT_perf_aux_ignored, 1);
    if (n && error)
        out.unwind_error = sample_unwind_error(p->im, error);
    struct slice chain = chain_of(p, a, s, record, &mode);
    if (n)
        out.callsite = unwound_callsite(p, chain, mode, s->where.pid, frames, n, &out.dummies);
    if (n || !chain.len)
        return out;
    uint64_t hash = chain.len == 8 ? perf_load64(&p->file, chain.p) : hash_bytes(chain.p, chain.len);
    struct perf_known_stack *known =
        &p->known_stacks[hash_combine(hash, (uint64_t)s->where.pid << 8 | mode) % PERF_KNOWN_STACKS];
    uint32_t version = version_of(p, s->where.pid);
    bool same = known->version == version && known->pid == s->where.pid && known->mode == mode &&
                known->chain.len == chain.len && known->hash == hash &&
                (chain.len == 8 || memcmp(known->chain.p, chain.p, chain.len) == 0);
    if (!same) {
        *known = (struct perf_known_stack){
            .chain = chain, .hash = hash, .pid = s->where.pid, .version = version, .mode = (uint8_t)mode};
        struct chain all;
        clear_chain(&all);
        read_chain(p, chain, mode, &all);
        known->callsite = callsite_of(p, &all, s->where.pid, &known->dummies);
    }
    out.callsite = known->callsite;
    out.dummies = known->dummies;
    return out;
}

static uint64_t cookie_key(const struct perf_where *w, uint64_t cookie)
{
    return hash_combine(hash_u64((uint64_t)w->pid << 32 | w->tid), cookie);
}

void perf_defer(struct perf_import *p, const struct perf_sample_record *s, unsigned mode, uint32_t sample)
{
    enum { WORD = 8, COOKIE = 2 * WORD }; /* at the end: the mark, and the cookie */
    if (s->callchain.len < COOKIE)
        return;
    struct dat_cursor c = perf_cursor(&p->file, slice_of(s->callchain.p + s->callchain.len - COOKIE, COOKIE));
    if (dat_u64(&c) != MARK_USER_DEFERRED)
        return;
    uint64_t *first = u64map_put(&p->by_cookie, cookie_key(&s->where, dat_u64(&c)), NULL);
    struct perf_deferred d = {.sample = sample, .chain = s->callchain, .mode = (uint8_t)mode};
    d.next = first ? (uint32_t)*first : 0;
    if (first && vec_push(&p->deferred, d))
        *first = p->deferred.n;
    else
        p->im->failed = true;
}

void perf_deferred_chain(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts)
{
    struct dat_cursor c = perf_body(&p->file, r);
    uint64_t cookie = dat_u64(&c), n = dat_u64(&c);
    struct slice ips = dat_bytes(&c, n <= UINT16_MAX ? n * 8 : UINT64_MAX);
    struct perf_where w;
    (void)ts;
    perf_trailer_read(&p->file, a, r, &w);
    uint64_t key = cookie_key(&w, cookie), *first = c.bad || !w.has_tid ? NULL : u64map_get(&p->by_cookie, key);
    struct chain user, own;
    uint32_t bases[2]; /* callsites of `user`: of a whole stack, of the callers of what else there is */
    bool known[2] = {false, false};
    clear_chain(&user);
    sample_writer_flush(p->samples);
    if (first)
        read_chain(p, ips, MODE_USER, &user);
    for (uint32_t at = first ? (uint32_t)*first : 0; at; at = p->deferred.p[at - 1].next) {
        const struct perf_deferred *d = &p->deferred.p[at - 1];
        uint32_t dummies = 0;
        clear_chain(&own);
        read_chain(p, d->chain, d->mode, &own);
        user.called = own.n;
        if (!known[user.called]) /* once for many samples */
            bases[user.called] = callsite_of(p, &user, w.pid, &dummies);
        known[user.called] = true;
        uint32_t site = callsite_from(p, bases[user.called], &own, w.pid, &dummies);
        if (site != CALLSITE_NONE && d->sample < p->im->st->t[T_profiler_sample].n_rows)
            ROW_SET(p->im->st, profiler_sample, callsite_id, d->sample, site);
    }
    u64map_del(&p->by_cookie, key);
}
