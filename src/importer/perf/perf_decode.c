/* Reads samples and trailers by the layout that the attr decides. */
#include "importer/perf/perf_internal.h"

enum { HEADER = 8, WORD = 8 };

/* What is read of the parts that follow RAW. */
#define BEHIND_RAW ((uint64_t)(PERF_BRANCH_STACK | PERF_REGS_USER | PERF_STACK_USER | PERF_CGROUP))

void perf_layout_of(struct perf_attr *a)
{
    struct perf_layout *l = &a->layout;
    const struct {
        uint64_t bit;
        uint16_t *at;
    } sample[] = {{PERF_IDENTIFIER, &l->sample.id}, {PERF_IP, &l->sample.ip},   {PERF_TID, &l->sample.tid},
                  {PERF_TIME, &l->sample.time},     {PERF_ADDR, NULL},          {PERF_ID, &l->sample.id},
                  {PERF_STREAM_ID, NULL},           {PERF_CPU, &l->sample.cpu}, {PERF_PERIOD, &l->sample.period}},
      trailer[] = {{PERF_IDENTIFIER, &l->trailer.id}, {PERF_CPU, &l->trailer.cpu},   {PERF_STREAM_ID, NULL},
                   {PERF_ID, &l->trailer.id},         {PERF_TIME, &l->trailer.time}, {PERF_TID, &l->trailer.tid}};
    uint64_t more = a->sample_type & (PERF_READ | PERF_CALLCHAIN | PERF_RAW | BEHIND_RAW);
    *l = (struct perf_layout){.sample.size = HEADER,
                              .more = !more              ? PERF_NOTHING_MORE
                                      : more == PERF_RAW ? PERF_RAW_MORE
                                                         : PERF_ANY_MORE};
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        if (!(a->sample_type & sample[i].bit))
            continue;
        if (sample[i].at && !*sample[i].at) /* of IDENTIFIER and ID, which are equal, the first */
            *sample[i].at = l->sample.size;
        l->sample.size += WORD;
    }
    if (l->more != PERF_ANY_MORE)
        l->sample.fixed = (uint16_t)(l->sample.size + (l->more == PERF_RAW_MORE ? sizeof(uint32_t) : 0));
    for (size_t i = 0; i < sizeof trailer / sizeof *trailer && perf_flag(a, PERF_FLAG_SAMPLE_ID_ALL); i++) {
        if (!(a->sample_type & trailer[i].bit))
            continue;
        l->trailer.size += WORD;
        if (trailer[i].at && !*trailer[i].at)
            *trailer[i].at = l->trailer.size;
    }
}

static size_t read_size(uint64_t format, struct dat_cursor c)
{
    unsigned times = ((format & PERF_READ_ENABLED) != 0) + ((format & PERF_READ_RUNNING) != 0);
    unsigned each = 1 + ((format & PERF_READ_ID) != 0) + ((format & PERF_READ_LOST) != 0);
    if (!(format & PERF_READ_GROUP))
        return 8 * (times + each);
    uint64_t n = dat_u64(&c);
    return n > (uint64_t)(c.end - c.p) / 8 ? SIZE_MAX : 8 * (1 + times + (size_t)n * each);
}

/* So many things of `size` bytes; more than there can be are as many as there cannot be. */
static struct slice many(struct dat_cursor *c, uint64_t n, unsigned size)
{
    return dat_bytes(c, n <= UINT16_MAX ? n * size : UINT64_MAX);
}

/* The registers of a mask: their ABI, and a word for each, unless there are none. */
static struct slice registers(struct dat_cursor *c, uint64_t mask, uint64_t *abi)
{
    *abi = dat_u64(c);
    return *abi ? many(c, (uint64_t)__builtin_popcountll(mask), WORD) : slice_of(NULL, 0);
}

static void branch_stack(struct dat_cursor *c, uint64_t type)
{
    enum { HW_INDEX = 1 << 17, COUNTERS = 1 << 19, ENTRY = 24 };
    uint64_t n = dat_u64(c);
    if (type & HW_INDEX)
        (void)dat_u64(c);
    (void)many(c, n, ENTRY);
    if (type & COUNTERS)
        (void)many(c, n, WORD);
}

/* What follows RAW: mostly nothing. */
static void read_rest(const struct perf_attr *a, struct dat_cursor *c, struct perf_sample_record *s)
{
    uint64_t t = a->sample_type, abi;
    if (t & PERF_BRANCH_STACK)
        branch_stack(c, a->branch_type);
    if (t & PERF_REGS_USER)
        s->regs = registers(c, a->regs_user, &s->regs_abi);
    if (t & PERF_STACK_USER) {
        s->stack = dat_bytes(c, dat_u64(c));
        uint64_t filled = s->stack.len ? dat_u64(c) : 0;
        s->stack.len = filled < s->stack.len ? (size_t)filled : s->stack.len;
    }
    if (t & (PERF_WEIGHT | PERF_WEIGHT_STRUCT))
        (void)dat_u64(c);
    if (t & PERF_DATA_SRC)
        (void)dat_u64(c);
    if (t & PERF_TRANSACTION)
        (void)dat_u64(c);
    if (t & PERF_REGS_INTR)
        (void)registers(c, a->regs_intr, &abi);
    if (t & PERF_PHYS_ADDR)
        (void)dat_u64(c);
    if ((s->has_cgroup = t & PERF_CGROUP))
        s->cgroup = dat_u64(c);
}

bool perf_sample_read_more(const struct perf_file *f, const struct perf_attr *a, const struct perf_record *r,
                           struct perf_sample_record *s)
{
    uint64_t t = a->sample_type;
    struct dat_cursor c =
        perf_cursor(f, slice_of(r->bytes.p + a->layout.sample.size, r->bytes.len - a->layout.sample.size));
    if (t & PERF_READ)
        s->read = dat_bytes(&c, read_size(a->read_format, c));
    if (t & PERF_CALLCHAIN)
        s->callchain = many(&c, dat_u64(&c), WORD);
    if (t & PERF_RAW) {
        uint32_t size = dat_u32(&c);
        c.bad |= size > (size_t)(c.end - c.p);
        s->raw = slice_of(c.p, c.bad ? 0 : size);
        c.p += s->raw.len;
    }
    if (__builtin_expect((t & BEHIND_RAW) != 0, 0))
        read_rest(a, &c, s);
    return !c.bad;
}

/* The time that stands in a record's body, 0 when none does. */
static uint64_t own_time(const struct perf_file *f, const struct perf_record *r)
{
    static const struct {
        uint8_t type, at;
    } times[] = {
        {PERF_RECORD_EXIT, 16}, {PERF_RECORD_FORK, 16}, {PERF_RECORD_THROTTLE, 0}, {PERF_RECORD_UNTHROTTLE, 0}};
    struct dat_cursor c = perf_body(f, r);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i].type == r->type) {
            (void)dat_bytes(&c, times[i].at);
            uint64_t time = dat_u64(&c);
            return c.bad ? 0 : time;
        }
    return 0;
}

void perf_trailer_read(const struct perf_file *f, const struct perf_attr *a, const struct perf_record *r,
                       struct perf_where *w)
{
    const struct perf_layout *l = &a->layout;
    const uint8_t *end = r->bytes.p + r->bytes.len;
    *w = (struct perf_where){0};
    if (!l->trailer.time)
        w->time = own_time(f, r);
    if (!l->trailer.size || r->type > PERF_RECORD_LAST_KERNEL || l->trailer.size > r->bytes.len - HEADER)
        return;
    if ((w->has_tid = l->trailer.tid)) {
        w->pid = perf_load32(f, end - l->trailer.tid);
        w->tid = perf_load32(f, end - l->trailer.tid + 4);
    }
    if ((w->has_time = l->trailer.time))
        w->time = perf_load64(f, end - l->trailer.time);
    if ((w->has_cpu = l->trailer.cpu))
        w->cpu = perf_load32(f, end - l->trailer.cpu);
}

const struct perf_attr *perf_attr_by_id(struct perf_file *f, uint64_t id)
{
    const uint64_t *attr = u64map_get(&f->ids, id);
    if (!attr)
        return id == 0 ? f->attrs.p : NULL; /* perf made the record before recording began */
    f->known_ids[id % PERF_KNOWN_IDS].id = id;
    return f->known_ids[id % PERF_KNOWN_IDS].attr = &f->attrs.p[*attr];
}
