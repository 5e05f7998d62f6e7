/* Cuts bundles of kernel events: those in the window stay, and the columns of compact ones are written anew. */
#include "cut/cut_internal.h"

#include "importer/core/clock_id.h"
#include "wire/fields.h"

enum { SWITCH_COLUMNS = 5, WAKING_COLUMNS = 6, COLUMNS_MAX = 6, COMPACT_FIELDS = 16, MAX_COMMS = 1 << 16 };

struct bundle {
    uint32_t machine, cpu;
    uint32_t clock; /* of its timestamps; 0: they are read by the offset */
    int64_t offset;
    bool known;          /* its times can be told */
    bool content;        /* something that is not an event stays */
    struct cut_cpu *run; /* NULL: out of memory */
};

/* Which clock the events are given in, as the importer reads it. */
static struct bundle read_bundle(struct cut *c, uint32_t machine, struct slice bytes)
{
    struct bundle b = {.machine = machine, .clock = CLOCK_ID_BOOTTIME, .known = true};
    struct pb_cursor cursor = pb_cursor(bytes);
    struct pb_field f;
    uint32_t clock = FTRACE_CLOCK_UNSPECIFIED;
    int64_t ftrace_ts = 0, boot_ts = 0;
    bool has_ftrace_ts = false, has_boot_ts = false, added = false;
    while (pb_next(&cursor, &f)) {
        if (f.id == FTRACE_EVENT_BUNDLE_CPU) {
            b.cpu = pb_u32(&f);
        } else if (f.id == FTRACE_EVENT_BUNDLE_FTRACE_CLOCK) {
            clock = pb_u32(&f);
        } else if (f.id == FTRACE_EVENT_BUNDLE_FTRACE_TIMESTAMP) {
            has_ftrace_ts = true;
            ftrace_ts = pb_i64(&f);
        } else if (f.id == FTRACE_EVENT_BUNDLE_BOOT_TIMESTAMP) {
            has_boot_ts = true;
            boot_ts = pb_i64(&f);
        } else if (f.id == FTRACE_EVENT_BUNDLE_LOST_EVENTS) {
            b.content |= pb_bool(&f);
        } else if (f.id == FTRACE_EVENT_BUNDLE_ERROR || f.id == FTRACE_EVENT_BUNDLE_GENERIC_EVENT_DESCRIPTORS) {
            b.content = true;
        }
    }
    if (clock == FTRACE_CLOCK_MONO_RAW) {
        b.clock = CLOCK_ID_MONOTONIC_RAW;
    } else if (clock != FTRACE_CLOCK_UNSPECIFIED) {
        b.known = has_ftrace_ts && has_boot_ts && !__builtin_sub_overflow(boot_ts, ftrace_ts, &b.offset);
    }
    uint64_t *index = u64map_put(&c->cpus, (uint64_t)machine << 32 | b.cpu, &added);
    if (index && added)
        *index = vec_add(&c->runs) ? c->runs.n - 1 : c->runs.n;
    b.run = index && *index < c->runs.n ? &c->runs.p[*index] : NULL;
    c->out.failed |= !b.run;
    b.known &= b.run != NULL;
    b.content |= added || has_ftrace_ts || cursor.bad; /* the first of a cpu tells where its data begins */
    b.known &= !cursor.bad;
    return b;
}

static bool event_time(const struct cut *c, const struct bundle *b, uint64_t raw, int64_t *ts)
{
    int64_t ns;
    return !__builtin_add_overflow((int64_t)raw, b->offset, &ns) && cut_machine_time(c, b->machine, b->clock, ns, ts);
}

/* Writes an event when it stays. */
static bool cut_event(struct cut *c, const struct bundle *b, struct slice event)
{
    struct pb_cursor cursor = pb_cursor(event);
    struct pb_field f;
    struct slice own = {0};
    uint32_t id = 0;
    int32_t pid = 0;
    int64_t ts = 0;
    bool has_ts = false;
    while (pb_next(&cursor, &f)) {
        if (f.id == FTRACE_EVENT_TIMESTAMP)
            has_ts = event_time(c, b, pb_u64(&f), &ts);
        else if (f.id == FTRACE_EVENT_PID)
            pid = pb_i32(&f);
        else if (f.wire == PB_BYTES && !id) {
            id = f.id;
            own = pb_bytes(&f);
        }
    }
    const struct cut_event e = {b->machine, b->cpu, id, pid, own};
    bool kept = cut_keeps_event(c, &e); /* also notes names */
    kept |= (!has_ts || cut_wants(c->w, ts)) && cut_is_about(c, &e);
    c->counts->events_out += kept;
    if (id == FTRACE_EVENT_SCHED_SWITCH)
        return cut_plain_switch(c, b->run, &(struct cut_switch){event, own, b->cpu}, kept);
    if (kept)
        pb_put_bytes(&c->out, FTRACE_EVENT_BUNDLE_EVENT, event.p, event.len);
    return kept;
}

/* ---- compact events ---- */

struct compact {
    struct pb_cursor columns[COMPACT_FIELDS];
    VEC(struct slice) comms;
    VEC(uint32_t) new_index; /* of comms; UINT32_MAX: not used yet */
    uint32_t n_used;
    struct pb_writer table;
};

/* The fields of the columns; the first is the time, the one at `comm` an index into the table. */
struct columns {
    uint32_t field[COLUMNS_MAX];
    uint32_t n, optional; /* the last `optional` may be missing */
    uint32_t pid, comm;
};

static const struct columns switches = {
    .field = {FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_TIMESTAMP, FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_PREV_STATE,
              FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_NEXT_PID, FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_NEXT_PRIO,
              FTRACE_EVENT_BUNDLE_COMPACT_SCHED_SWITCH_NEXT_COMM_INDEX},
    .n = SWITCH_COLUMNS,
    .pid = 2,
    .comm = 4,
};
static const struct columns wakings = {
    .field = {FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_TIMESTAMP, FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_PID,
              FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_TARGET_CPU, FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_PRIO,
              FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_COMM_INDEX,
              FTRACE_EVENT_BUNDLE_COMPACT_SCHED_WAKING_COMMON_FLAGS},
    .n = WAKING_COLUMNS,
    .optional = 1,
    .pid = 1,
    .comm = 4,
};

/* The index of a name in the table that is written. */
static uint32_t use_comm(struct compact *k, uint64_t index)
{
    if (k->new_index.p[index] == UINT32_MAX) {
        struct slice s = k->comms.p[index];
        pb_put_bytes(&k->table, FTRACE_EVENT_BUNDLE_COMPACT_SCHED_INTERN_TABLE, s.p, s.len);
        k->new_index.p[index] = k->n_used++;
    }
    return k->new_index.p[index];
}

/* The rows of one kind that are written: one writer a column. */
struct rows {
    const struct columns *cols;
    struct pb_writer out[COLUMNS_MAX];
    uint64_t last; /* time of the row before */
    uint64_t n, bridges;
    uint32_t width;
};

static void put_row(struct rows *r, uint64_t raw, const uint64_t *v, uint32_t comm)
{
    for (uint32_t i = 0; i < r->width; i++)
        pb_put_raw_varint(&r->out[i], i == 0 ? raw - r->last : i == r->cols->comm ? comm : v[i]);
    r->last = raw;
    r->n++;
}

enum { SWITCH_STATE = 1, SWITCH_PID, SWITCH_PRIO };

static void put_bridge(struct compact *k, struct rows *r, uint64_t raw, uint64_t state, int32_t pid, int32_t prio,
                       struct slice comm)
{
    uint64_t v[COLUMNS_MAX] = {
        [SWITCH_STATE] = state, [SWITCH_PID] = (uint64_t)(int64_t)pid, [SWITCH_PRIO] = (uint64_t)(int64_t)prio};
    pb_put_bytes(&k->table, FTRACE_EVENT_BUNDLE_COMPACT_SCHED_INTERN_TABLE, comm.p, comm.len);
    put_row(r, raw, v, k->n_used++);
    r->bridges++;
}

/* A compact switch tells whom it went to only. */
static void chain(const struct bundle *b, struct compact *k, struct rows *r, uint64_t raw, const uint64_t *v,
                  bool stays)
{
    enum { IDLE_PRIORITY = 120 };
    struct cut_cpu *run = b->run;
    struct slice comm = k->comms.p[v[r->cols->comm]];
    char buf[24];
    if (stays) {
        if (run->gap)
            put_bridge(k, r, raw, 0, run->pid, run->prio, slice_of(run->comm, run->comm_len));
        run->gap = false;
        run->written = true;
        return;
    }
    if (run->written && !run->gap)
        put_bridge(k, r, raw, v[SWITCH_STATE], 0, IDLE_PRIORITY, cut_idle_name(b->cpu, buf));
    run->gap = true;
    run->pid = (int32_t)v[SWITCH_PID];
    run->prio = (int32_t)v[SWITCH_PRIO];
    run->comm_len = (uint8_t)(comm.len < sizeof run->comm ? comm.len : sizeof run->comm);
    memcpy(run->comm, comm.p, run->comm_len);
}

/* Appends the rows that stay. False when the columns are damaged. */
static bool cut_rows(struct cut *c, const struct bundle *b, struct compact *k, struct rows *r)
{
    const struct columns *cols = r->cols;
    struct pb_cursor in[COLUMNS_MAX];
    uint64_t raw = 0, v[COLUMNS_MAX] = {0};
    for (uint32_t i = 0; i < cols->n; i++)
        in[i] = k->columns[cols->field[i]];
    r->width = cols->n - (in[cols->n - 1].p == in[cols->n - 1].end ? cols->optional : 0);
    while (in[0].p < in[0].end) {
        int64_t ts = 0;
        for (uint32_t i = 0; i < r->width; i++)
            if (!pb_next_packed(&in[i], &v[i]))
                return false;
        raw += v[0];
        if (v[cols->comm] >= k->comms.n)
            return false;
        c->counts->events_in++;
        const int32_t pid = (int32_t)v[cols->pid];
        bool about = cut_wants_thread(c->w, b->machine, pid) ||
                     (cols == &switches && b->run->known && cut_wants_thread(c->w, b->machine, b->run->runs));
        bool stays = cut_comm_changed(c, b->machine, b->cpu, pid, k->comms.p[v[cols->comm]]) ||
                     (about && (!event_time(c, b, raw, &ts) || cut_wants(c->w, ts)));
        if (cols == &switches) {
            chain(b, k, r, raw, v, stays);
            b->run->known = true;
            b->run->runs = pid;
        }
        if (stays)
            put_row(r, raw, v, use_comm(k, v[cols->comm]));
    }
    for (uint32_t i = 1; i < r->width; i++)
        if (in[i].p < in[i].end)
            return false;
    return true;
}

static bool read_compact(struct compact *k, struct slice bytes)
{
    struct pb_cursor cursor = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&cursor, &f)) {
        if (f.wire != PB_BYTES || f.id >= COMPACT_FIELDS)
            return false;
        if (f.id != FTRACE_EVENT_BUNDLE_COMPACT_SCHED_INTERN_TABLE) {
            if (k->columns[f.id].p)
                return false;
            k->columns[f.id] = pb_sub(&f);
        } else if (k->comms.n == MAX_COMMS || !vec_push(&k->comms, pb_bytes(&f)) ||
                   !vec_push(&k->new_index, UINT32_MAX)) {
            return false;
        }
    }
    return !cursor.bad;
}

static void put_rows(struct pb_writer *out, const struct rows *r)
{
    for (uint32_t i = 0; i < r->cols->n; i++)
        if (r->out[i].n)
            pb_put_bytes(out, r->cols->field[i], r->out[i].p, r->out[i].n);
}

static void free_rows(struct cut *c, struct rows *r)
{
    for (uint32_t i = 0; i < COLUMNS_MAX; i++) {
        c->out.failed |= r->out[i].failed;
        pb_writer_free(&r->out[i]);
    }
}

/* Appends what stays of compact events; damaged ones stay whole. */
static bool cut_compact(struct cut *c, const struct bundle *b, struct slice bytes)
{
    struct compact k = {0};
    struct rows s = {.cols = &switches}, w = {.cols = &wakings};
    const uint64_t events_in = c->counts->events_in;
    const struct cut_cpu run = *b->run;
    bool ok = read_compact(&k, bytes) && cut_rows(c, b, &k, &s) && cut_rows(c, b, &k, &w);
    uint64_t rows = s.n + w.n;
    if (!ok) {
        c->counts->events_in = events_in;
        c->counts->damaged++;
        *b->run = run;
        pb_put_bytes(&c->out, FTRACE_EVENT_BUNDLE_COMPACT_SCHED, bytes.p, bytes.len);
    } else if (rows) {
        size_t mark = pb_begin(&c->out, FTRACE_EVENT_BUNDLE_COMPACT_SCHED);
        pb_put_raw(&c->out, k.table.p, k.table.n);
        put_rows(&c->out, &s);
        put_rows(&c->out, &w);
        pb_end(&c->out, mark);
        c->counts->events_out += rows - s.bridges;
    }
    free_rows(c, &s);
    free_rows(c, &w);
    c->out.failed |= k.table.failed;
    pb_writer_free(&k.table);
    vec_free(&k.comms);
    vec_free(&k.new_index);
    return !ok || rows;
}

bool cut_bundle(struct cut *c, uint32_t machine, bool selected, struct slice bundle)
{
    struct bundle b = read_bundle(c, machine, bundle);
    if (!selected)
        return false;
    size_t mark = pb_begin(&c->out, TRACE_PACKET_FTRACE_EVENTS);
    bool any = b.content || !b.known;
    struct pb_cursor cursor = pb_cursor(bundle);
    struct pb_field f;
    for (const uint8_t *from = cursor.p; pb_next(&cursor, &f); from = cursor.p) {
        bool event = f.id == FTRACE_EVENT_BUNDLE_EVENT && f.wire == PB_BYTES;
        c->counts->events_in += event;
        if (b.known && event) {
            any |= cut_event(c, &b, pb_bytes(&f));
            continue;
        }
        if (b.known && f.id == FTRACE_EVENT_BUNDLE_COMPACT_SCHED && f.wire == PB_BYTES) {
            any |= cut_compact(c, &b, pb_bytes(&f));
            continue;
        }
        c->counts->events_out += event;
        any |= event;
        pb_put_raw(&c->out, from, (size_t)(cursor.p - from));
    }
    if (cursor.bad) /* the importer counts it */
        pb_put_raw(&c->out, cursor.p, (size_t)(cursor.end - cursor.p));
    pb_end(&c->out, mark);
    return any;
}
