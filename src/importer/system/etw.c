/* Imports events of Windows' kernel: which thread ran where, what woke it, and pages of memory by their lists. */
#include "importer/system/etw.h"
#include "importer/track/sched_tracker.h"

#include "wire/fields.h"

#include <stdio.h>

enum { NO_THREAD = -1 };

/* An event until its time comes. */
struct etw_event {
    struct slice bytes;
    uint32_t cpu;
};

static const char *const thread_states[] = {"Initialized", "Ready",   "Running",    "Standby",
                                            "Terminated",  "Waiting", "Transition", "DeferredReady"};
enum { STATE_WAITING = 5 };

/* Why a thread waits, in the numbers of KWAIT_REASON. */
static const char *const wait_reasons[] = {
    "Executive",        "FreePage",       "PageIn",       "PoolAllocation",   "DelayExecution",   "Suspended",
    "UserRequest",      "WrExecutive",    "WrFreePage",   "WrPageIn",         "WrPoolAllocation", "WrDelayExecution",
    "WrSuspended",      "WrUserRequest",  "WrEventPair",  "WrQueue",          "WrLpcReceive",     "WrLpcReply",
    "WrVirtualMemory",  "WrPageOut",      "WrRendezvous", "WrKeyedEvent",     "WrTerminated",     "WrProcessInSwap",
    "WrCpuRateControl", "WrCalloutStack", "WrKernel",     "WrResource",       "WrPushLock",       "WrMutex",
    "WrQuantumEnd",     "WrDispatchInt",  "WrPreempted",  "WrYieldExecution", "WrFastMutex",      "WrGuardedMutex",
    "WrRundown",
};
enum { REASON_PAGE_IN = 2, REASON_WR_FIRST = 7, REASON_WR_LAST = 36 };

void etw_close(struct etw *e)
{
    if (!e)
        return;
    vec_free(&e->events);
    vec_free(&e->operations);
    u64map_free(&e->by_irp);
    arena_free(&e->arena);
    mem_free(e);
}

uint32_t etw_thread(struct machine_ctx *m, int64_t tid)
{
    if (tid != NO_THREAD)
        return process_tracker_thread(m->processes, tid);
    uint32_t utid = process_tracker_thread(m->processes, UINT32_MAX);
    process_tracker_thread_name(m->processes, utid, import_str(m->im, "Anonymized Process"), THREAD_NAME_FTRACE);
    return utid;
}

/* --- scheduling --- */

struct c_switch {
    int64_t prev, next; /* thread ids */
    int32_t next_prio;
    uint64_t state, reason; /* reason: 0, Executive, when it is not told */
};

static struct c_switch read_switch(struct slice bytes)
{
    struct c_switch x = {.prev = NO_THREAD, .next = NO_THREAD};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case C_SWITCH_ETW_EVENT_NEW_THREAD_ID:
            x.next = pb_u32(&f);
            break;
        case C_SWITCH_ETW_EVENT_OLD_THREAD_ID:
            x.prev = pb_u32(&f);
            break;
        case C_SWITCH_ETW_EVENT_NEW_THREAD_PRIORITY:
            x.next_prio = (int32_t)pb_s64(&f);
            break;
        case C_SWITCH_ETW_EVENT_OLD_THREAD_STATE:
            x.state = pb_u64(&f);
            break;
        case C_SWITCH_ETW_EVENT_OLD_THREAD_STATE_INT:
            x.state = (uint64_t)pb_s64(&f);
            break;
        case C_SWITCH_ETW_EVENT_OLD_THREAD_WAIT_REASON:
        case C_SWITCH_ETW_EVENT_OLD_THREAD_WAIT_REASON_INT:
            x.reason = pb_u64(&f);
            break;
        }
    }
    return x;
}

static void parse_switch(struct etw *e, int64_t ts, uint32_t cpu, struct slice bytes)
{
    struct machine_ctx *m = e->m;
    struct c_switch x = read_switch(bytes);
    if (!machine_has_cpu(m, cpu))
        return;
    uint32_t next = etw_thread(m, x.next), prev = etw_thread(m, x.prev);
    bool known = x.state < sizeof thread_states / sizeof *thread_states;
    if (!known)
        stats_add(&m->st->stats, m->id, STAT_task_state_invalid, 1);
    sched_tracker_switch_threads(m->sched, cpu, ts, prev, known ? import_str(m->im, thread_states[x.state]) : 0, next,
                                 x.next_prio);
    if (x.state != STATE_WAITING)
        return;
    bool io = x.reason == REASON_PAGE_IN || (x.reason >= REASON_WR_FIRST && x.reason <= REASON_WR_LAST),
         has_name = x.reason < sizeof wait_reasons / sizeof *wait_reasons;
    sched_tracker_blocked_reason(m->sched, prev, io, has_name ? import_str(m->im, wait_reasons[x.reason]) : 0);
}

static void parse_ready(struct etw *e, int64_t ts, int64_t tid, struct slice bytes)
{
    struct machine_ctx *m = e->m;
    struct pb_field f;
    int64_t woken = pb_find(bytes, READY_THREAD_ETW_EVENT_T_THREAD_ID, &f) ? (int64_t)pb_u32(&f) : NO_THREAD;
    uint32_t waker = etw_thread(m, tid);
    sched_tracker_waking(m->sched, ts, etw_thread(m, woken), waker, SCHED_FLAGS_UNKNOWN);
}

/* --- memory --- */

static const struct {
    uint32_t field;
    const char *name;
} page_lists[] = {
    {MEM_INFO_ETW_EVENT_ZERO_PAGE_COUNT, "Zero"},
    {MEM_INFO_ETW_EVENT_FREE_PAGE_COUNT, "Free"},
    {MEM_INFO_ETW_EVENT_MODIFIED_PAGE_COUNT, "Modified"},
    {MEM_INFO_ETW_EVENT_MODIFIED_NO_WRITE_PAGE_COUNT, "ModifiedNoWrite"},
    {MEM_INFO_ETW_EVENT_BAD_PAGE_COUNT, "Bad"},
    {MEM_INFO_ETW_EVENT_MODIFIED_PAGE_COUNT_PAGE_FILE, "ModifiedPageFile"},
    {MEM_INFO_ETW_EVENT_PAGED_POOL_PAGE_COUNT, "PagedPool"},
    {MEM_INFO_ETW_EVENT_NON_PAGED_POOL_PAGE_COUNT, "NonPagedPool"},
    {MEM_INFO_ETW_EVENT_MDL_PAGE_COUNT, "Mdl"},
    {MEM_INFO_ETW_EVENT_COMMIT_PAGE_COUNT, "Commit"},
};

static void push_pages(struct etw *e, int64_t ts, const char *list, uint64_t pages)
{
    struct machine_ctx *m = e->m;
    strid name = strpool_printf(&m->st->strings, "%s Page Count", list);
    struct track_dim dim = {"counter_type", DIM_STR, import_str(m->im, list)};
    counter_push(m->im, ts, system_counter_track(m, "etw_meminfo", name, "pages", &dim, 1), (double)pages);
}

/* One list for each priority of memory. */
static void push_by_priority(struct etw *e, int64_t ts, const char *list, struct slice bytes, uint32_t field)
{
    enum { MAX_PRIORITIES = 64 }; /* Windows has 8 */
    struct pb_numbers counts = pb_numbers(bytes, field);
    uint64_t pages;
    char name[64];
    for (int i = 0; i < MAX_PRIORITIES && pb_next_number(&counts, &pages); i++) {
        snprintf(name, sizeof name, "%s Pri-%d", list, i);
        push_pages(e, ts, name, pages);
    }
}

static void parse_memory(struct etw *e, int64_t ts, struct slice bytes)
{
    struct pb_field f;
    for (size_t i = 0; i < sizeof page_lists / sizeof *page_lists; i++)
        push_pages(e, ts, page_lists[i].name, pb_find(bytes, page_lists[i].field, &f) ? pb_u64(&f) : 0);
    push_by_priority(e, ts, "Standby", bytes, MEM_INFO_ETW_EVENT_STANDBY_PAGE_COUNTS);
    push_by_priority(e, ts, "Repurposed", bytes, MEM_INFO_ETW_EVENT_REPURPOSED_PAGE_COUNTS);
}

/* --- events --- */

static void parse_event(struct etw *e, int64_t ts, const struct etw_event *event)
{
    struct pb_field f;
    int64_t tid = pb_find(event->bytes, ETW_TRACE_EVENT_THREAD_ID, &f) ? (int64_t)pb_u32(&f) : NO_THREAD;
    struct pb_cursor c = pb_cursor(event->bytes);
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case ETW_TRACE_EVENT_C_SWITCH:
            parse_switch(e, ts, event->cpu, pb_bytes(&f));
            break;
        case ETW_TRACE_EVENT_READY_THREAD:
            parse_ready(e, ts, tid, pb_bytes(&f));
            break;
        case ETW_TRACE_EVENT_MEM_INFO:
            parse_memory(e, ts, pb_bytes(&f));
            break;
        case ETW_TRACE_EVENT_FILE_IO_CREATE:
        case ETW_TRACE_EVENT_FILE_IO_DIR_ENUM:
        case ETW_TRACE_EVENT_FILE_IO_INFO:
        case ETW_TRACE_EVENT_FILE_IO_READ_WRITE:
        case ETW_TRACE_EVENT_FILE_IO_SIMPLE_OP:
        case ETW_TRACE_EVENT_FILE_IO_OP_END:
        case ETW_TRACE_EVENT_FILE_IO_PATH_OPERATION:
            etw_file_event(e, ts, etw_thread(e->m, tid), f.id, pb_bytes(&f));
            break;
        }
    }
}

static void parse_events(void *owner, const struct sort_event *events, size_t n)
{
    struct etw *e = owner;
    for (size_t i = 0; i < n; i++)
        parse_event(e, events[i].ts, &e->events.p[events[i].a]);
}

static struct etw *etw_of(struct machine_ctx *m)
{
    struct etw *e = m->system->etw;
    if (e)
        return e;
    e = mem_zalloc(sizeof *e);
    if (!e)
        return NULL;
    e->m = m;
    e->queue = sorter_add_queue(m->im->sorter, parse_events, e);
    if (e->queue == UINT32_MAX) {
        mem_free(e);
        return NULL;
    }
    return m->system->etw = e;
}

/* `cpu`: of the bundle; NULL when it tells none. */
static void add_event(struct etw *e, struct slice bytes, const struct pb_field *cpu)
{
    struct machine_ctx *m = e->m;
    struct pb_field time, own;
    if (pb_find(bytes, ETW_TRACE_EVENT_CPU, &own))
        cpu = &own;
    if (!cpu || !pb_find(bytes, ETW_TRACE_EVENT_TIMESTAMP, &time)) {
        import_log(m, STAT_etw_parse_errors, COL_NULL, -1, ARGSET_NONE);
        return;
    }
    if (!importer_bytes_stable(m->im, bytes.p)) {
        void *copy = arena_alloc_bytes(&e->arena, bytes.len);
        if (!copy) {
            m->im->failed = true;
            return;
        }
        memcpy(copy, bytes.p, bytes.len);
        bytes.p = copy;
    }
    if (!vec_push(&e->events, (struct etw_event){bytes, pb_u32(cpu)}))
        m->im->failed = true;
    else
        sorter_push(m->im->sorter, e->queue, (struct sort_event){.ts = pb_i64(&time), .a = e->events.n - 1});
}

enum tokenize_result etw_tokenize(struct packet *p)
{
    struct etw *e = etw_of(p->m);
    if (!e) {
        p->m->im->failed = true;
        return TOKENIZE_DONE;
    }
    struct pb_field f, cpu;
    bool has_cpu = pb_find(p->field, ETW_TRACE_EVENT_BUNDLE_CPU, &cpu);
    struct pb_cursor c = pb_cursor(p->field);
    while (pb_next(&c, &f))
        if (f.id == ETW_TRACE_EVENT_BUNDLE_EVENT)
            add_event(e, pb_bytes(&f), has_cpu ? &cpu : NULL);
    if (c.bad)
        import_log(p->m, STAT_etw_parse_errors, COL_NULL, p->byte_offset, ARGSET_NONE);
    return TOKENIZE_DONE;
}

void etw_finish(struct etw *e)
{
    if (e)
        etw_files_finish(e);
}
