/* Switches and wakings with all their fields: the events of which most recordings have most. */
#include "base/hash.h"
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

enum { WORD = 8 }; /* bytes */

/* The same few threads are named again and again. */
static inline bool has_ends(struct slice name)
{
    return name.len - 1 < FTRACE_COMM_BYTES;
}

static inline strid name_of(const struct ftrace_event *e, struct slice name)
{
    uint64_t first, last;
    if (!has_ends(name))
        return import_slice(e->m->im, name);
    bytes_ends(name.p, name.len, &first, &last);
    struct ftrace_comm *c =
        &e->f->recent_comms[hash_fold(first ^ name.len, last * 2 + 1) >> 7 & ((1 << FTRACE_COMM_BITS) - 1)];
    if (c->first != first || c->last != last || c->len != name.len)
        *c = (struct ftrace_comm){first, last, (uint32_t)name.len, import_slice(e->m->im, name)};
    return c->id;
}

/* The bytes of the next field, when it has this number, and what is behind it; else NULL. Two bytes can be read. */
static inline const uint8_t *take_name(const uint8_t *p, const uint8_t *end, uint32_t id, struct slice *name)
{
    size_t len = p[1];
    *name = slice_of(p + 2, len);
    return *p == (id << 3 | PB_BYTES) && len < 0x80 && len + 2 <= (size_t)(end - p) ? p + 2 + len : NULL;
}

/* Two varints that follow each other: their bytes, 0 when other fields come or they take more than a word. */
static inline unsigned take_pair(uint64_t word, uint32_t first_id, uint64_t *first, uint32_t second_id,
                                 uint64_t *second)
{
    unsigned n = pb_word_varint(word, first_id, first);
    unsigned m = n ? pb_word_varint(word >> 8 * n, second_id, second) : 0;
    return m && n + m <= WORD ? n + m : 0;
}

/* --- switches ----------------------------------------------------------------------------------------------------- */

struct switch_fields {
    strid prev_name, next_name;
    int32_t prev_pid, next_pid, next_prio;
    uint64_t prev_state;
};

/* Who ran is nearly always whom the last switch of the cpu led to, in the same bytes. */
static inline bool is_runner(const struct ftrace_runner *r, struct slice name, uint64_t word)
{
    uint64_t first, last;
    if (!r || name.len != r->name_len || (word & r->mask) != r->prev_who)
        return false;
    bytes_ends(name.p, name.len, &first, &last);
    return first == r->first && last == r->last;
}

/* False when the fields are others. */
static __attribute__((noinline)) bool read_runner(const struct ftrace_event *e, struct slice name, uint64_t word,
                                                  uint32_t who_len, struct ftrace_runner *r)
{
    enum { TAGS_DIFFER = (FTRACE_SCHED_SWITCH_PREV_PID ^ FTRACE_SCHED_SWITCH_NEXT_PID) << 3 };
    _Static_assert(TAGS_DIFFER == (FTRACE_SCHED_SWITCH_PREV_PRIO ^ FTRACE_SCHED_SWITCH_NEXT_PRIO) << 3, "both alike");
    uint64_t pid = 0, prio = 0;
    unsigned pid_len = pb_word_varint(word, FTRACE_SCHED_SWITCH_NEXT_PID, &pid);
    unsigned prio_len = pid_len ? pb_word_varint(word >> 8 * pid_len, FTRACE_SCHED_SWITCH_NEXT_PRIO, &prio) : 0;
    if (!prio_len || pid_len + prio_len != who_len)
        return false;
    *r = (struct ftrace_runner){.next_who = word,
                                .prev_who = word ^ TAGS_DIFFER ^ (uint64_t)TAGS_DIFFER << 8 * pid_len,
                                .mask = UINT64_MAX >> 8 * (WORD - who_len),
                                .name_len = (uint32_t)name.len,
                                .who_len = who_len,
                                .pid = (int32_t)pid,
                                .prio = (int32_t)prio,
                                .name = name_of(e, name)};
    bytes_ends(name.p, name.len, &r->first, &r->last);
    return true;
}

/* Whom the last bytes of a switch name; NULL when they are not name, pid and priority. */
static inline const struct ftrace_runner *next_runner(const struct ftrace_event *e, const uint8_t *p,
                                                      const uint8_t *end)
{
    uint64_t first, last;
    struct slice name;
    p = take_name(p, end, FTRACE_SCHED_SWITCH_NEXT_COMM, &name);
    if (!p || !has_ends(name) || end - p > WORD || end == p)
        return NULL;
    uint64_t word = pb_word(p, end);
    uint32_t who_len = (uint32_t)(end - p);
    bytes_ends(name.p, name.len, &first, &last);
    struct ftrace_runner *r =
        &e->f->runners[hash_fold(first ^ word, last * 2 + 1) >> 7 & ((1 << FTRACE_RUNNER_BITS) - 1)];
    bool known =
        r->first == first && r->last == last && r->next_who == word && r->name_len == name.len && r->who_len == who_len;
    return known || read_runner(e, name, word, who_len, r) ? r : NULL;
}

/* As recorders write a switch: every field, in the order of the numbers. */
static inline bool switch_in_order(const struct ftrace_event *e, struct ftrace_cpu *c, struct switch_fields *s)
{
    const uint8_t *p = e->payload.p, *end = p + e->payload.len;
    struct slice name;
    uint64_t word;
    if (e->payload.len < WORD)
        return false;
    p = take_name(p, end, FTRACE_SCHED_SWITCH_PREV_COMM, &name);
    if (!p || end - p < WORD)
        return false;
    memcpy(&word, p, sizeof word);
    if (is_runner(c->runner, name, word)) {
        p += c->runner->who_len;
        s->prev_name = c->runner->name;
        s->prev_pid = c->runner->pid;
    } else {
        uint64_t pid, prio;
        unsigned n = take_pair(word, FTRACE_SCHED_SWITCH_PREV_PID, &pid, FTRACE_SCHED_SWITCH_PREV_PRIO, &prio);
        if (!n)
            return false;
        p += n;
        s->prev_name = name_of(e, name);
        s->prev_pid = (int32_t)pid;
    }
    if (end - p < WORD)
        return false;
    memcpy(&word, p, sizeof word);
    unsigned n = pb_word_varint(word, FTRACE_SCHED_SWITCH_PREV_STATE, &s->prev_state);
    const struct ftrace_runner *next = n ? next_runner(e, p + n, end) : NULL;
    if (!next)
        return false;
    c->runner = next;
    s->next_name = next->name;
    s->next_pid = next->pid;
    s->next_prio = next->prio;
    return true;
}

static __attribute__((noinline)) void switch_in_disorder(const struct ftrace_event *e, struct switch_fields *s)
{
    struct pb_cursor cursor = pb_cursor(e->payload);
    struct slice prev_name = {0}, next_name = {0}; /* names that are not told change nothing */
    struct pb_field f;
    *s = (struct switch_fields){0};
    while (pb_next(&cursor, &f)) {
        switch (f.id) {
        case FTRACE_SCHED_SWITCH_PREV_COMM:
            prev_name = pb_bytes(&f);
            break;
        case FTRACE_SCHED_SWITCH_PREV_PID:
            s->prev_pid = pb_i32(&f);
            break;
        case FTRACE_SCHED_SWITCH_PREV_STATE:
            s->prev_state = pb_u64(&f);
            break;
        case FTRACE_SCHED_SWITCH_NEXT_COMM:
            next_name = pb_bytes(&f);
            break;
        case FTRACE_SCHED_SWITCH_NEXT_PID:
            s->next_pid = pb_i32(&f);
            break;
        case FTRACE_SCHED_SWITCH_NEXT_PRIO:
            s->next_prio = pb_i32(&f);
            break;
        }
    }
    s->prev_name = name_of(e, prev_name);
    s->next_name = name_of(e, next_name);
}

void ftrace_sched_switch(const struct ftrace_event *e, struct ftrace_cpu *c)
{
    struct switch_fields s;
    if (!switch_in_order(e, c, &s))
        switch_in_disorder(e, &s);
    uint32_t prev = sched_tracker_switch_on(e->m->sched, ftrace_sched_cpu(c), e->ts, s.prev_pid, s.prev_name,
                                            (int64_t)s.prev_state, s.next_pid, s.next_name, s.next_prio);
    if (!e->m->im->opt.no_ftrace_raw)
        ftrace_add_row(e, c, prev, 0);
}

/* --- wakings ------------------------------------------------------------------------------------------------------ */

/* The same for a waking; younger kernels have no field "success". */
static inline bool waking_in_order(struct slice payload, struct slice *name, int32_t *tid)
{
    const uint8_t *p = payload.p, *end = p + payload.len;
    uint64_t pid, other;
    if (payload.len < WORD || !(p = take_name(p, end, FTRACE_SCHED_WAKING_COMM, name)))
        return false;
    unsigned n = take_pair(pb_word(p, end), FTRACE_SCHED_WAKING_PID, &pid, FTRACE_SCHED_WAKING_PRIO, &other);
    if (!n || n > end - p)
        return false;
    p += n;
    uint64_t word = pb_word(p, end);
    if ((word & 0x80ff) == FTRACE_SCHED_WAKING_SUCCESS << 3) {
        word >>= 16;
        p += 2;
    }
    *tid = (int32_t)pid;
    n = pb_word_varint(word, FTRACE_SCHED_WAKING_TARGET_CPU, &other);
    return n && n == end - p;
}

static __attribute__((noinline)) void waking_in_disorder(struct slice payload, struct slice *name, int32_t *tid)
{
    struct pb_cursor cursor = pb_cursor(payload);
    struct pb_field f;
    *name = (struct slice){0};
    *tid = 0;
    while (pb_next(&cursor, &f)) {
        if (f.id == FTRACE_SCHED_WAKING_COMM)
            *name = pb_bytes(&f);
        else if (f.id == FTRACE_SCHED_WAKING_PID)
            *tid = pb_i32(&f);
    }
}

void ftrace_sched_waking(const struct ftrace_event *e)
{
    struct slice name;
    int32_t tid;
    if (!waking_in_order(e->payload, &name, &tid))
        waking_in_disorder(e->payload, &name, &tid);
    uint32_t wakee = process_tracker_named_thread(e->m->processes, tid, name_of(e, name));
    sched_tracker_waking(e->m->sched, e->ts, wakee, event_utid(e), SCHED_FLAGS_UNKNOWN);
}
