/* Rows of ftrace_event and their args: kept as payload bytes, decoded when a query asks (design rule 4). */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

/* Fields that hold the interned id of a kernel function. Without the interned string they are plain numbers. */
static const struct symbol_field {
    uint16_t event;
    uint16_t field;
} symbol_fields[] = {
    {FTRACE_EVENT_SCHED_BLOCKED_REASON, FTRACE_SCHED_BLOCKED_REASON_CALLER},
    {FTRACE_EVENT_WORKQUEUE_ACTIVATE_WORK, FTRACE_WORKQUEUE_ACTIVATE_WORK_FUNCTION},
    {FTRACE_EVENT_WORKQUEUE_EXECUTE_END, FTRACE_WORKQUEUE_EXECUTE_END_FUNCTION},
    {FTRACE_EVENT_WORKQUEUE_EXECUTE_START, FTRACE_WORKQUEUE_EXECUTE_START_FUNCTION},
    {FTRACE_EVENT_WORKQUEUE_QUEUE_WORK, FTRACE_WORKQUEUE_QUEUE_WORK_FUNCTION},
    {FTRACE_EVENT_FUNCGRAPH_ENTRY, FTRACE_FUNCGRAPH_ENTRY_FUNC},
    {FTRACE_EVENT_FUNCGRAPH_EXIT, FTRACE_FUNCGRAPH_EXIT_FUNC},
    {FTRACE_EVENT_MM_SHRINK_SLAB_START, FTRACE_MM_SHRINK_SLAB_START_SHRINK},
    {FTRACE_EVENT_HRTIMER_EXPIRE_ENTRY, FTRACE_HRTIMER_EXPIRE_ENTRY_FUNCTION},
};

/* aux of ARGS_KIND_FTRACE: generation + 1 << 10 | event; generation 0: none needed. */
enum { AUX_EVENT_BITS = 10, AUX_GENERATIONS = 1 << (ARGS_AUX_BITS - AUX_EVENT_BITS) };
_Static_assert(1 << AUX_EVENT_BITS == FTRACE_MAX_EVENT, "an event fits its bits");

/* Payloads of ARGS_KIND_FTRACE_SWITCH and _WAKING: what a compact event holds, two numbers a word. They are compared by
 * words right after they were written, and a word that was written in halves keeps the processor waiting: 4 % of the
 * time of a trace of compact events. */
struct switch_payload {
    uint64_t prev_state;
    uint64_t comms;      /* of the thread before, and above it the next one's */
    uint64_t prev, next; /* pid, and above it the priority */
};
struct waking_payload {
    uint64_t thread; /* its name, and above it the pid */
    uint64_t how;    /* priority, and above it the target cpu */
};

static inline uint64_t two_words(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

static inline uint32_t low_of(uint64_t two)
{
    return (uint32_t)two;
}

static inline uint32_t high_of(uint64_t two)
{
    return (uint32_t)(two >> 32);
}

_Static_assert(sizeof(struct switch_payload) <= KEPT_SET_BYTES, "a switch fits");

/* Whether args are shared is decided for each kind; of system calls for each thread, where its number came with the
 * event: one that writes ever other places of its memory, as perf itself does, is no word about the others. (In
 * recordings of our own it costs 1 % to ask, and the recorder makes few calls.) */
static inline struct kept_sharing *sharing_of(const struct ftrace_event *e, struct ftrace_kind *k)
{
    if (!e->line_thread || e->id != FTRACE_EVENT_SYS_ENTER)
        return &k->sharing;
    struct kept_sharing *own = syscalls_sharing(e->f->syscalls, e->line_thread - 1);
    return own ? own : &k->sharing;
}

/* The id of the args of a typed event, none when it has none. */
static argset event_args(const struct ftrace_event *e, struct ftrace_kind *k, struct kept_sharing *sharing)
{
    struct ftrace_machine *f = e->f;
    if (!e->payload.len && e->id != FTRACE_EVENT_SCHED_SWITCH)
        return ARGSET_NONE;
    uint32_t aux = e->id;
    if (k->has_symbols && e->gen + 1 < AUX_GENERATIONS)
        aux |= (e->gen + 1) << AUX_EVENT_BITS;
    return kept_args(&f->kept, sharing, ARGS_KIND_FTRACE, aux, e->payload, KEPT_IN_FILE);
}

/* The same of an event whose args may be known. */
static inline argset known_or_new_args(const struct ftrace_event *e, struct ftrace_kind *k)
{
    argset *known = e->known_args;
    struct kept_sharing *sharing = sharing_of(e, k);
    if (!known)
        return event_args(e, k, sharing);
    if (argset_is_none(*known) || !kept_args_again(sharing))
        *known = event_args(e, k, sharing);
    return *known;
}

void ftrace_add_row(const struct ftrace_event *e, struct ftrace_cpu *c, uint32_t utid, uint32_t common_flags)
{
    struct ftrace_kind *k = &e->f->kinds[e->id];
    if (__builtin_expect(!k->name, 0))
        k->name = import_str(e->m->im, k->desc->name);
    ftrace_event_insert(e->m->st, &(struct ftrace_event_row){.ts = e->ts,
                                                             .name = k->name,
                                                             .utid = utid,
                                                             .arg_set_id = known_or_new_args(e, k),
                                                             .common_flags = common_flags,
                                                             .ucpu = ftrace_ucpu(c)});
}

void ftrace_add_switch_row(struct ftrace_machine *f, struct ftrace_cpu *c, int64_t ts, const struct sched_prev *prev,
                           int64_t prev_state, int32_t next_pid, int32_t next_prio, strid next_comm)
{
    struct switch_payload s = {.prev_state = (uint64_t)prev_state,
                               .comms = two_words(prev->comm, next_comm),
                               .prev = two_words((uint32_t)prev->pid, (uint32_t)prev->prio),
                               .next = two_words((uint32_t)next_pid, (uint32_t)next_prio)};
    argset args = kept_args(&f->kept, &f->kinds[FTRACE_EVENT_SCHED_SWITCH].sharing, ARGS_KIND_FTRACE_SWITCH, 0,
                            slice_of(&s, sizeof s), KEPT_ANYWHERE);
    ftrace_event_insert(
        f->m->st,
        &(struct ftrace_event_row){
            .ts = ts, .name = f->name_switch, .utid = prev->utid, .arg_set_id = args, .ucpu = ftrace_ucpu(c)});
}

void ftrace_add_waking_row(struct ftrace_machine *f, struct ftrace_cpu *c, int64_t ts, uint32_t utid, uint32_t pid,
                           uint16_t prio, uint16_t target_cpu, strid comm, uint16_t common_flags)
{
    struct waking_payload w = {.thread = two_words(comm, pid), .how = two_words(prio, target_cpu)};
    argset args = kept_args(&f->kept, &f->kinds[FTRACE_EVENT_SCHED_WAKING].sharing, ARGS_KIND_FTRACE_WAKING, 0,
                            slice_of(&w, sizeof w), KEPT_ANYWHERE);
    ftrace_event_insert(f->m->st, &(struct ftrace_event_row){.ts = ts,
                                                             .name = f->name_waking,
                                                             .utid = utid,
                                                             .arg_set_id = args,
                                                             .common_flags = common_flags,
                                                             .ucpu = ftrace_ucpu(c)});
}

/* --- decoding ---------------------------------------------------------------------------------------------------- */

static bool is_symbol(uint32_t event, uint32_t field)
{
    for (size_t i = 0; i < sizeof symbol_fields / sizeof *symbol_fields; i++)
        if (symbol_fields[i].event == event && symbol_fields[i].field == field)
            return true;
    return false;
}

/* One arg of a type of the table; nothing when the wire type does not fit it. */
static void add_field(struct args *a, strid key, enum ftrace_field_type type, const struct pb_field *f,
                      struct arg_list *out)
{
    bool is_bytes = f->wire == PB_BYTES;
    switch (type) {
    case FTRACE_FIELD_INT32:
    case FTRACE_FIELD_INT64:
    case FTRACE_FIELD_ENUM:
        if (!is_bytes)
            arg_list_add(a, out, key, key, ARG_INT, pb_i64(f));
        break;
    case FTRACE_FIELD_UINT32:
    case FTRACE_FIELD_UINT64:
        if (!is_bytes)
            arg_list_add(a, out, key, key, ARG_UINT, pb_i64(f));
        break;
    case FTRACE_FIELD_STRING:
    case FTRACE_FIELD_BYTES:
        if (is_bytes)
            arg_list_add(a, out, key, key, ARG_STRING, strpool_intern(a->strings, f->p, (size_t)f->u));
        break;
    case FTRACE_FIELD_MESSAGE:
    case FTRACE_FIELD_NONE:
        break;
    }
}

/* A field that is there several times is one arg, of the last value. */
static void replace_same_key(struct arg_list *out, size_t first)
{
    struct arg *last = vec_last(out);
    for (size_t i = first; i + 1 < out->n; i++)
        if (out->p[i].key == last->key) {
            out->p[i] = *last;
            out->n--;
            return;
        }
}

/* sched_switch has all its args, whether the recorder wrote them or not. */
static void decode_switch(struct args *a, const struct ftrace_event_desc *d, struct slice payload, struct arg_list *out)
{
    struct fields f;
    fields_read(payload, &f);
    for (uint32_t n = 1; n < d->field_slots; n++) {
        strid key = strpool_intern_str(a->strings, d->fields[n].name);
        if (d->fields[n].type == FTRACE_FIELD_STRING) {
            struct slice s = field_bytes(&f, n);
            arg_list_add(a, out, key, key, ARG_STRING, strpool_intern(a->strings, s.p, s.len));
        } else {
            arg_list_add(a, out, key, key, ARG_INT, n == 4 ? field_i64(&f, n) : field_i32(&f, n));
        }
    }
}

static void decode_typed(void *ctx, uint32_t aux, struct slice payload, struct arg_list *out)
{
    struct importer *im = ctx;
    struct args *a = &im->st->args;
    uint32_t id = aux & (FTRACE_MAX_EVENT - 1), gen = aux >> AUX_EVENT_BITS;
    const struct ftrace_event_desc *d = ftrace_event_by_id(id);
    if (!d)
        return;
    if (id == FTRACE_EVENT_SCHED_SWITCH) {
        decode_switch(a, d, payload, out);
        return;
    }
    struct pb_cursor c = pb_cursor(payload);
    struct pb_field f;
    size_t first = out->n;
    uint64_t seen = 0;
    while (pb_next(&c, &f)) {
        size_t before = out->n;
        const struct ftrace_field_desc *field = ftrace_field_by_id(d, f.id);
        if (!field)
            continue;
        strid key = strpool_intern_str(a->strings, field->name), symbol;
        if (gen && f.wire == PB_VARINT && is_symbol(id, f.id) && (symbol = ftrace_symbol_of(im, gen - 1, f.u)))
            arg_list_add(a, out, key, key, ARG_STRING, symbol);
        else
            add_field(a, key, field->type, &f, out);
        if (out->n > before && f.id < 64) {
            if (seen >> f.id & 1)
                replace_same_key(out, first);
            seen |= 1ull << f.id;
        }
    }
}

static void decode_compact_switch(void *ctx, uint32_t aux, struct slice payload, struct arg_list *out)
{
    struct args *a = &((struct importer *)ctx)->st->args;
    struct switch_payload s;
    (void)aux;
    if (payload.len != sizeof s)
        return;
    memcpy(&s, payload.p, sizeof s);
    arg_list_str(a, out, "prev_comm", low_of(s.comms));
    arg_list_int(a, out, "prev_pid", (int32_t)low_of(s.prev));
    arg_list_int(a, out, "prev_prio", (int32_t)high_of(s.prev));
    arg_list_int(a, out, "prev_state", (int64_t)s.prev_state);
    arg_list_str(a, out, "next_comm", high_of(s.comms));
    arg_list_int(a, out, "next_pid", (int32_t)low_of(s.next));
    arg_list_int(a, out, "next_prio", (int32_t)high_of(s.next));
}

static void decode_compact_waking(void *ctx, uint32_t aux, struct slice payload, struct arg_list *out)
{
    struct args *a = &((struct importer *)ctx)->st->args;
    struct waking_payload w;
    (void)aux;
    if (payload.len != sizeof w)
        return;
    memcpy(&w, payload.p, sizeof w);
    arg_list_str(a, out, "comm", low_of(w.thread));
    arg_list_int(a, out, "pid", (int32_t)high_of(w.thread));
    arg_list_int(a, out, "prio", low_of(w.how));
    arg_list_int(a, out, "target_cpu", high_of(w.how));
}

void ftrace_args_init(struct ftrace_machine *f)
{
    struct args *a = &f->m->st->args;
    args_set_decoder(a, ARGS_KIND_FTRACE, decode_typed, f->im);
    args_set_decoder(a, ARGS_KIND_FTRACE_SWITCH, decode_compact_switch, f->im);
    args_set_decoder(a, ARGS_KIND_FTRACE_WAKING, decode_compact_waking, f->im);
    for (size_t i = 0; i < sizeof symbol_fields / sizeof *symbol_fields; i++)
        f->kinds[symbol_fields[i].event].has_symbols = true;
    f->kept = KEPT_ARGS(f->im);
}
