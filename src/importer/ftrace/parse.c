/* Turns queued ftrace events into rows and calls their handlers, in time order. */
#include "importer/core/metadata.h"
#include "importer/ftrace/ftrace_internal.h"

static void on_first_event(struct ftrace_machine *f)
{
    int64_t started = metadata_earliest(f->im, f->m, METADATA_tracing_started_ns);
    int64_t covered = metadata_earliest(f->im, f->m, METADATA_ftrace_latest_data_start_ns);
    f->seen_event = true;
    f->drop_before = f->preserve_buffer || started == COL_NULL ? 0 : started;
    f->soft_drop_before = covered == COL_NULL ? 0 : covered;
    if (f->soft_drop_before < f->drop_before)
        f->soft_drop_before = f->drop_before;
}

/* True (and counted) when an event is older than the recording. */
static inline bool dropped(struct ftrace_machine *f, int64_t ts)
{
    if (__builtin_expect(!f->seen_event, 0))
        on_first_event(f);
    if (__builtin_expect(ts >= f->drop_before, 1))
        return false;
    stats_add(&f->m->st->stats, f->m->id, STAT_ftrace_packet_before_tracing_start, 1);
    return true;
}

/* One event field of a FtraceEvent. False when the rest of the FtraceEvent is not to be looked at. */
static inline bool parse_one(struct ftrace_event *e, struct ftrace_cpu *c, uint32_t flags, int64_t raw_ts,
                             uint32_t common_flags)
{
    struct ftrace_machine *f = e->f;
    bool row = !(flags & EVENT_RETIMED);
    bool parse = !(flags & EVENT_ROW_ONLY) && raw_ts >= f->soft_drop_before;
    bool raw_table = row && !f->im->opt.no_ftrace_raw;
    const struct ftrace_kind *k = e->id < FTRACE_MAX_EVENT ? &f->kinds[e->id] : NULL;
    if (e->id == FTRACE_EVENT_SCHED_SWITCH) { /* adds its row itself */
        if (parse)
            ftrace_sched_switch(e, c);
        else if (raw_table && (flags & EVENT_ROW_ONLY))
            ftrace_add_row(e, c, event_utid(e), common_flags);
        return parse;
    }
    if (e->id == FTRACE_EVENT_GENERIC) {
        if (row)
            generic_events_parse_legacy(e, c, common_flags);
    } else if (e->id >= FTRACE_EVENT_FIRST_DYNAMIC) {
        generic_events_parse(f->generic, e, c, raw_table, parse, common_flags);
    } else if (raw_table && k && k->desc) {
        ftrace_add_row(e, c, event_utid(e), common_flags);
    }
    if (parse && k && k->handler)
        k->handler(e);
    return parse;
}

/* The rare forms: fields in another order, several events in one message, no pid. */
static void parse_slow(struct ftrace_event *e, struct ftrace_cpu *c, uint32_t flags, int64_t raw_ts, struct slice bytes)
{
    struct pb_field field;
    uint32_t common_flags = 0;
    bool has_pid = pb_find(bytes, FTRACE_EVENT_PID, &field);
    e->pid = has_pid ? pb_u32(&field) : 0;
    if (pb_find(bytes, FTRACE_EVENT_COMMON_FLAGS, &field))
        common_flags = pb_u32(&field);
    struct pb_cursor cursor = pb_cursor(bytes);
    while (pb_next(&cursor, &field)) {
        if (field.wire != PB_BYTES)
            continue;
        e->id = field.id;
        e->payload = pb_bytes(&field);
        /* Events of the hypervisor have no thread; all others do. */
        if (!has_pid && !(e->id < FTRACE_MAX_EVENT && e->f->kinds[e->id].no_pid)) {
            stats_add(&e->m->st->stats, e->m->id, STAT_ftrace_bundle_tokenizer_errors, 1);
            return;
        }
        if (!parse_one(e, c, flags, raw_ts, common_flags))
            return;
    }
}

/* The usual form, behind the timestamp: pid, then one event, and nothing else. */
static inline bool read_fast(struct ftrace_event *e, const uint8_t *p, const uint8_t *end)
{
    uint64_t word, pid, tag, len;
    unsigned n = 0;
    if (__builtin_expect(end - p >= 8, 1)) {
        memcpy(&word, p, 8);
        n = pb_word_varint(word, FTRACE_EVENT_PID, &pid); /* at most 5 */
        word >>= 8 * n;
    }
    if (n && !(word & 0x8080)) { /* tag and length of a byte each */
        tag = word & 0x7f;
        len = word >> 8 & 0x7f;
        p += n + 2;
    } else if (n && !(word & 0x808000)) { /* two bytes, one byte */
        tag = (word & 0x7f) | (word >> 1 & 0x7f << 7);
        len = word >> 16 & 0x7f;
        p += n + 3;
    } else {
        p++; /* the pid's tag, seen when the event was queued */
        if (!pb_varint(&p, end, &pid) || !pb_varint(&p, end, &tag) || !pb_varint(&p, end, &len))
            return false;
    }
    if (len != (uint64_t)(end - p))
        return false;
    e->pid = (uint32_t)pid;
    e->id = (uint32_t)(tag >> 3);
    e->payload = slice_of(p, (size_t)len);
    return true;
}

void ftrace_parse_events(void *owner, const struct sort_event *events, size_t n)
{
    struct ftrace_cpu *c = owner;
    struct ftrace_machine *f = c->f;
    struct ftrace_event e = {.f = f, .m = f->m, .cpu = c->cpu};
    for (size_t i = 0; i < n; i++) {
        uint32_t flags = (uint32_t)events[i].b & 0xff;
        int64_t raw_ts = events[i].ts;
        struct slice bytes = slice_of((const void *)(uintptr_t)events[i].a, events[i].b >> 32);
        e.ts = events[i].ts;
        e.gen = (uint32_t)events[i].b >> 8;
        if (__builtin_expect(flags & EVENT_RETIMED, 0)) {
            const struct ftrace_retimed *r = &f->retimed.p[events[i].a];
            bytes = slice_of(r->bytes, r->len);
            raw_ts = r->raw_ts;
            e.gen = r->gen;
        }
        if (dropped(f, raw_ts))
            continue;
        if (!flags && read_fast(&e, bytes.p, bytes.p + bytes.len))
            parse_one(&e, c, flags, raw_ts, 0);
        else
            parse_slow(&e, c, flags, raw_ts, bytes);
    }
}

void ftrace_event_now(struct machine_ctx *m, const struct ftrace_now *now)
{
    struct ftrace_machine *f = m->ftrace;
    struct ftrace_cpu *c = ftrace_cpu(f, now->cpu);
    struct ftrace_event e = {.f = f,
                             .m = m,
                             .ts = now->ts,
                             .cpu = now->cpu,
                             .pid = (uint32_t)now->pid,
                             .id = now->id,
                             .payload = slice_of(now->payload, now->len),
                             .gen = UINT32_MAX,
                             .line_thread = now->utid + 1,
                             .call_args = now->call_args,
                             .known_args = now->args};
    if (c && !dropped(f, now->ts))
        parse_one(&e, c, 0, now->ts, 0);
}

void ftrace_parse_switches(void *owner, const struct sort_event *events, size_t n)
{
    struct ftrace_cpu *c = owner;
    struct ftrace_machine *f = c->f;
    for (size_t i = 0; i < n; i++) {
        const struct sort_event *s = &events[i];
        int32_t next_pid = (int32_t)(uint32_t)s->a, next_prio = (int16_t)s->b;
        int64_t prev_state = (int64_t)s->b >> 16;
        strid next_comm = f->comms.p[s->a >> 32];
        struct sched_prev prev;
        if (dropped(f, s->ts))
            continue;
        if (sched_tracker_switch_compact(f->m->sched, ftrace_sched_cpu(c), s->ts, prev_state, next_pid, next_prio,
                                         next_comm, s->ts < f->soft_drop_before, &prev) &&
            !f->im->opt.no_ftrace_raw)
            ftrace_add_switch_row(f, c, s->ts, &prev, prev_state, next_pid, next_prio, next_comm);
    }
}

void ftrace_parse_wakings(void *owner, const struct sort_event *events, size_t n)
{
    struct ftrace_cpu *c = owner;
    struct ftrace_machine *f = c->f;
    for (size_t i = 0; i < n; i++) {
        const struct sort_event *s = &events[i];
        uint32_t pid = (uint32_t)s->a;
        uint16_t flags = (uint16_t)s->b;
        if (dropped(f, s->ts))
            continue;
        uint32_t waker = c->sched ? c->sched->utid : sched_tracker_running(f->m->sched, c->cpu);
        if (waker == UTID_NONE) { /* who runs here is not known yet */
            stats_add(&f->m->st->stats, f->m->id, STAT_compact_sched_waking_skipped, 1);
            continue;
        }
        if (!f->im->opt.no_ftrace_raw)
            ftrace_add_waking_row(f, c, s->ts, waker, pid, (uint16_t)(s->b >> 16), (uint16_t)(s->b >> 32),
                                  f->comms.p[s->a >> 32], flags);
        if (s->ts >= f->soft_drop_before)
            sched_tracker_waking(f->m->sched, s->ts, process_tracker_thread(f->m->processes, (int32_t)pid), waker,
                                 flags);
    }
}
