/* Events of binder, Android's calls between processes. */
#include "importer/ftrace/binder.h"
#include "importer/track/flow_tracker.h"

#include "wire/fields.h"

#include <stdio.h>

enum { FLAG_ONE_WAY = 1, FLAG_ROOT_OBJECT = 4, FLAG_STATUS_CODE = 8, FLAG_ACCEPT_FDS = 16 };

/* Commands of linux/uapi/linux/android/binder.h: _IOW('c', n, size), _IO('r', n) and so on; the size differs between
 * kernels of 32 and 64 bits, the low half does not. */
enum {
    BC_TRANSACTION = 0x6300,
    BC_REPLY = 0x6301,
    BC_TRANSACTION_SG = 0x6311,
    BC_REPLY_SG = 0x6312,
    BR_DEAD_REPLY = 0x7205,
    BR_TRANSACTION_COMPLETE = 0x7206,
    BR_REPLY = 0x7203,
    BR_FAILED_REPLY = 0x7211,
    BR_FROZEN_REPLY = 0x7212,
    LOW_HALF = 0xffff,
};

/* How far a thread's call has come. */
enum call_state {
    CALL_COMMANDED,    /* BC_TRANSACTION: the driver has not seen it yet */
    CALL_SENT,         /* the driver sends it; a slice is open */
    CALL_SENT_ONE_WAY, /* no slice, no answer */
    CALL_RECEIVED,     /* by this thread; the slice of the answer is open */
    CALL_ANSWERING,    /* BC_REPLY */
    CALL_ANSWERED,
};

struct call {
    uint32_t below; /* the call that this one was made in, + 1 */
    enum call_state state;
};

struct outstanding {
    bool reply, one_way;
    uint32_t track, slice;
    argset args;
};

struct binder {
    struct u64map outstanding; /* id -> index in `all` */
    VEC(struct outstanding)
    all;
    struct u64map top; /* tid -> index in `calls` + 1 */
    VEC(struct call)
    calls;
    struct u64map locks; /* tid -> 1: waits, 2: holds */
};

static void release(void *state)
{
    struct binder *b = state;
    u64map_free(&b->outstanding);
    u64map_free(&b->top);
    u64map_free(&b->locks);
    vec_free(&b->all);
    vec_free(&b->calls);
}

static struct binder *state_of(const struct ftrace_event *e)
{
    return ftrace_family_state(e->f, FAMILY_BINDER, sizeof(struct binder), release);
}

static strid category(const struct ftrace_event *e)
{
    return ftrace_text(e, "binder");
}

/* --- calls of threads -------------------------------------------------------------------------------------------- */

static struct call *top_call(struct binder *b, uint32_t tid)
{
    const uint64_t *top = u64map_get(&b->top, tid);
    return top && *top ? &b->calls.p[*top - 1] : NULL;
}

static void push_call(const struct ftrace_event *e, struct binder *b, enum call_state state)
{
    uint64_t *top = u64map_put(&b->top, e->pid, NULL);
    if (!top || !vec_push(&b->calls, (struct call){(uint32_t)*top, state}))
        e->m->im->failed = true;
    else
        *top = b->calls.n;
}

static void pop_call(struct binder *b, uint32_t tid)
{
    uint64_t *top = u64map_get(&b->top, tid);
    if (top && *top)
        *top = b->calls.p[*top - 1].below;
}

void binder_command(const struct ftrace_event *e, uint32_t cmd)
{
    struct binder *b = state_of(e);
    if (!b)
        return;
    struct call *c = top_call(b, e->pid);
    switch (cmd & LOW_HALF) {
    case BC_TRANSACTION:
    case BC_TRANSACTION_SG:
        if (c && c->state == CALL_COMMANDED) /* it was never sent */
            pop_call(b, e->pid);
        push_call(e, b, CALL_COMMANDED);
        break;
    case BC_REPLY:
    case BC_REPLY_SG:
        if (c && c->state == CALL_RECEIVED)
            c->state = CALL_ANSWERING;
        break;
    }
}

void binder_return(const struct ftrace_event *e, uint32_t cmd)
{
    struct binder *b = state_of(e);
    struct call *c = b ? top_call(b, e->pid) : NULL;
    if (!c)
        return;
    switch (cmd & LOW_HALF) {
    case BR_DEAD_REPLY:
    case BR_FAILED_REPLY:
    case BR_FROZEN_REPLY:
        if (c->state == CALL_SENT || c->state == CALL_ANSWERING)
            ftrace_end(e, ftrace_thread_track(e, event_utid(e)), 0, 0, NULL);
        pop_call(b, e->pid);
        break;
    case BR_TRANSACTION_COMPLETE:
        if (c->state == CALL_SENT_ONE_WAY || c->state == CALL_ANSWERED)
            pop_call(b, e->pid);
        break;
    case BR_REPLY:
        pop_call(b, e->pid);
        break;
    }
}

/* --- transactions ------------------------------------------------------------------------------------------------ */

static strid flags_text(const struct ftrace_event *e, uint32_t flags)
{
    return ftrace_name(
        e, "0x%02x %s%s%s%s%s", flags, flags & FLAG_ONE_WAY ? "this is a one-way call: async, no return; " : "",
        flags & FLAG_ROOT_OBJECT ? "contents are the components root object; " : "",
        flags & FLAG_STATUS_CODE ? "contents are a 32-bit status code; " : "",
        flags & FLAG_ACCEPT_FDS ? "allow replies with file descriptors; " : "",
        flags & (FLAG_ONE_WAY | FLAG_ROOT_OBJECT | FLAG_STATUS_CODE | FLAG_ACCEPT_FDS) ? "" : "No Flags Set");
}

static void add_destination(const struct ftrace_event *e, struct small_args *a, enum arg_type type, int32_t tid,
                            uint32_t utid)
{
    strid name = (strid)ROW_GET(e->m->st, thread, name, utid);
    small_args_add(e, a, "destination thread", type, tid);
    if (name)
        small_args_add(e, a, "destination name", ARG_STRING, name);
}

static void add_transaction(const struct ftrace_event *e, struct small_args *a, const struct binder_transaction *t)
{
    small_args_add(e, a, "transaction id", ARG_INT, t->id);
    small_args_add(e, a, "destination node", ARG_INT, t->node);
    small_args_add(e, a, "destination process", ARG_INT, t->pid);
    if (t->tid > 0)
        add_destination(e, a, ARG_INT, t->tid, process_tracker_thread(e->m->processes, t->tid));
    small_args_add(e, a, "reply transaction?", ARG_BOOL, t->reply);
    small_args_add(e, a, "flags", ARG_STRING, flags_text(e, t->flags));
    small_args_add(e, a, "code", ARG_STRING,
                   ftrace_name(e, "%.*s Java Layer Dependent", (int)(t->code.len < 64 ? t->code.len : 64),
                               (const char *)t->code.p));
    small_args_add(e, a, "calling tid", ARG_UINT, e->pid);
}

void binder_begin(const struct ftrace_event *e, const struct binder_transaction *t)
{
    struct binder *b = state_of(e);
    if (!b)
        return;
    uint32_t track = ftrace_thread_track(e, event_utid(e));
    struct outstanding o = {.reply = t->reply, .one_way = t->flags & FLAG_ONE_WAY, .track = track};
    struct small_args args = {0};
    add_transaction(e, &args, t);
    o.args = small_args_set(e, &args);
    if (t->reply) {
        struct arg_list list = small_args_list(&args);
        o.slice = ftrace_end(e, track, 0, 0, &list);
    } else if (o.one_way) {
        o.slice = ftrace_instant(e, track, category(e), ftrace_text(e, "binder transaction async"), o.args);
    } else {
        o.slice = ftrace_begin(e, track, category(e), ftrace_text(e, "binder transaction"), o.args);
    }
    uint64_t *at = u64map_put(&b->outstanding, (uint32_t)t->id, NULL);
    if (!at || !vec_push(&b->all, o))
        e->m->im->failed = true;
    else
        *at = b->all.n - 1;
    struct call *c = top_call(b, e->pid);
    if (c && c->state == CALL_COMMANDED)
        c->state = o.one_way ? CALL_SENT_ONE_WAY : CALL_SENT;
    else if (c && c->state == CALL_ANSWERING)
        c->state = CALL_ANSWERED;
}

/* The open call of a track, which is where what is learnt later belongs. */
static void add_to_call(const struct ftrace_event *e, uint32_t track, struct small_args *args)
{
    uint32_t slice = slice_top(e->m->im->slices, track);
    if (slice == SLICE_NONE || (strid)ROW_GET(e->m->st, slice, name, slice) != ftrace_text(e, "binder transaction"))
        return;
    struct arg_list list = small_args_list(args);
    slice_add_args(e->m->im->slices, slice, &list);
}

void binder_received(const struct ftrace_event *e, int32_t id)
{
    struct binder *b = state_of(e);
    const uint64_t *at = b ? u64map_get(&b->outstanding, (uint32_t)id) : NULL;
    if (!at)
        return;
    struct outstanding o = b->all.p[*at];
    u64map_del(&b->outstanding, (uint32_t)id);
    uint32_t utid = event_utid(e), track = ftrace_thread_track(e, utid), slice;
    if (o.reply) {
        ftrace_end(e, track, 0, 0, NULL);
        return;
    }
    if (o.one_way) {
        slice = ftrace_instant(e, track, category(e), ftrace_text(e, "binder async rcv"), o.args);
    } else {
        struct small_args args = {0};
        add_destination(e, &args, ARG_UINT, (int32_t)e->pid, utid);
        add_to_call(e, o.track, &args);
        slice = ftrace_begin(e, track, category(e), ftrace_text(e, "binder reply"), ARGSET_NONE);
        push_call(e, b, CALL_RECEIVED);
    }
    if (o.slice != SLICE_NONE && slice != SLICE_NONE)
        flow_insert(e->m->st, &(struct flow_row){.slice_out = o.slice, .slice_in = slice, .trace_id = COL_NULL});
}

void binder_alloc(const struct ftrace_event *e, uint64_t data_size, uint64_t offsets_size)
{
    struct small_args args = {0};
    small_args_add(e, &args, "data size", ARG_UINT, (int64_t)data_size);
    small_args_add(e, &args, "offsets size", ARG_UINT, (int64_t)offsets_size);
    add_to_call(e, ftrace_thread_track(e, event_utid(e)), &args);
}

void binder_lock(const struct ftrace_event *e, enum binder_lock_step step)
{
    enum { WAITS = 1, HOLDS = 2 };
    struct binder *b = state_of(e);
    uint64_t *lock = b ? u64map_put(&b->locks, e->pid, NULL) : NULL;
    if (!lock)
        return;
    uint32_t track = ftrace_thread_track(e, event_utid(e));
    if (step == BINDER_LOCK) {
        ftrace_begin(e, track, category(e), ftrace_text(e, "binder lock waiting"), ARGSET_NONE);
        *lock = WAITS;
    } else if (step == BINDER_LOCKED && *lock == WAITS) {
        ftrace_end(e, track, 0, 0, NULL);
        ftrace_begin(e, track, category(e), ftrace_text(e, "binder lock held"), ARGSET_NONE);
        *lock = HOLDS;
    } else if (step == BINDER_UNLOCK && *lock == HOLDS) {
        ftrace_end(e, track, 0, 0, NULL);
        *lock = 0;
    }
}

/* --- events as packets have them --------------------------------------------------------------------------------- */

static void transaction(const struct ftrace_event *e)
{
    struct fields f;
    char code[16];
    fields_read(e->payload, &f);
    int n = snprintf(code, sizeof code, "0x%x", field_u32(&f, FTRACE_BINDER_TRANSACTION_CODE));
    binder_begin(e, &(struct binder_transaction){.id = field_i32(&f, FTRACE_BINDER_TRANSACTION_DEBUG_ID),
                                                 .node = field_i32(&f, FTRACE_BINDER_TRANSACTION_TARGET_NODE),
                                                 .pid = field_i32(&f, FTRACE_BINDER_TRANSACTION_TO_PROC),
                                                 .tid = field_i32(&f, FTRACE_BINDER_TRANSACTION_TO_THREAD),
                                                 .flags = field_u32(&f, FTRACE_BINDER_TRANSACTION_FLAGS),
                                                 .reply = field_i32(&f, FTRACE_BINDER_TRANSACTION_REPLY) == 1,
                                                 .code = slice_of(code, (size_t)n)});
}

static void received(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    binder_received(e, field_i32(&f, FTRACE_BINDER_TRANSACTION_RECEIVED_DEBUG_ID));
}

static void alloc_buf(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    binder_alloc(e, field_u64(&f, FTRACE_BINDER_TRANSACTION_ALLOC_BUF_DATA_SIZE),
                 field_u64(&f, FTRACE_BINDER_TRANSACTION_ALLOC_BUF_OFFSETS_SIZE));
}

static void lock(const struct ftrace_event *e)
{
    binder_lock(e, e->id == FTRACE_EVENT_BINDER_LOCK     ? BINDER_LOCK
                   : e->id == FTRACE_EVENT_BINDER_LOCKED ? BINDER_LOCKED
                                                         : BINDER_UNLOCK);
}

static void command(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    binder_command(e, field_u32(&f, FTRACE_BINDER_COMMAND_CMD));
}

static void returned(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    binder_return(e, field_u32(&f, FTRACE_BINDER_RETURN_CMD));
}

const struct ftrace_handler ftrace_handlers_binder[] = {
    {FTRACE_EVENT_BINDER_TRANSACTION, "binder_transaction", transaction},
    {FTRACE_EVENT_BINDER_TRANSACTION_RECEIVED, "binder_transaction_received", received},
    {FTRACE_EVENT_BINDER_TRANSACTION_ALLOC_BUF, "binder_transaction_alloc_buf", alloc_buf},
    {FTRACE_EVENT_BINDER_LOCK, "binder_lock", lock},
    {FTRACE_EVENT_BINDER_LOCKED, "binder_locked", lock},
    {FTRACE_EVENT_BINDER_UNLOCK, "binder_unlock", lock},
    {FTRACE_EVENT_BINDER_COMMAND, "binder_command", command},
    {FTRACE_EVENT_BINDER_RETURN, "binder_return", returned},
    {0, NULL, NULL},
};
