/* Which utid and upid a tid and a pid mean at a time, and what is known of threads and processes. */
#include "importer/track/process_tracker.h"

#include "base/by_id.h"
#include "base/hash.h"
#include "base/u64map.h"
#include "importer/track/recent_threads.h"

/* Tids below this are looked up without a hash: every event of a kernel trace asks for one. */
enum {
    DIRECT_TIDS = 1 << 16,
    MAX_OLDER =
        64, /* threads of one tid that are looked through: recorders that make tids up count from 1 in each process */
};

struct thread_info {
    int64_t tid;
    uint32_t older; /* the utid that had this tid before, UTID_NONE at the end of the chain */
    uint32_t upid;  /* UPID_NONE until known */
    bool ended;
    uint8_t name_priority;
    int64_t exit_ts; /* when its exit was recorded, COL_NULL if not */
};

struct process_info {
    int64_t pid;
    bool ended;
    bool current; /* the pid still means this process */
    uint8_t name_priority;
    bool has_threads; /* for end_by_exits(), with: */
    int64_t last_end; /* of its threads; INT64_MAX: one is alive */
};

/* In place of what was never made: nothing is learned from it, and what is noted there is gone. */
struct nobody {
    struct thread_info thread;
    struct process_info process;
};

/* What waits for a thread's process to be known: another thread of it, or a process that it is the parent of. */
struct pending {
    bool is_child;
    uint32_t id;   /* utid of the thread, or upid of the child */
    uint32_t next; /* of those that wait for the same thread, index + 1; 0: last */
};

struct process_tracker {
    struct machine_ctx *m;
    uint64_t secret;                      /* of the hashes of `by_both` and `by_inner_tid` */
    BY_ID(struct thread_info) threads;    /* by utid, which count over all machines */
    BY_ID(struct process_info) processes; /* by upid */
    BY_ID(uint32_t) direct;               /* newest utid + 1 of low tids; 0: none */
    struct nobody *nobody;
    struct u64map by_tid;  /* the same for other tids */
    struct u64map by_pid;  /* upid */
    struct u64map by_both; /* hash of tid and upid -> latest utid; collisions hide what only a longer look would find */
    VEC(struct pending)
    pending;
    struct u64map pending_on;       /* utid -> first that waits for it, index + 1 into pending */
    struct u64map namespace_levels; /* pid -> levels of pid namespaces below the root */
    struct u64map by_inner_tid;     /* hash of (pid, level, tid inside) -> tid */
    struct u64map zero_threads;     /* tid -> utid, of the ordinary process 0 */
    struct recent_threads recent;
    uint32_t idle_utid;
    bool seen_end; /* the trace tells when threads are gone, not only when they exit */
};

static void out_of_memory(struct process_tracker *t)
{
    t->m->im->failed = true;
}

static struct nobody *nobody(const struct process_tracker *t)
{
    *t->nobody =
        (struct nobody){.thread = {.older = UTID_NONE, .upid = UPID_NONE, .ended = true}, .process = {.ended = true}};
    return t->nobody;
}

static struct thread_info *thread_of(const struct process_tracker *t, uint32_t utid)
{
    struct thread_info *i = by_id_find(&t->threads, utid);
    return __builtin_expect(i != NULL, 1) ? i : &nobody(t)->thread;
}

static struct process_info *process_of(const struct process_tracker *t, uint32_t upid)
{
    struct process_info *i = by_id_find(&t->processes, upid);
    return __builtin_expect(i != NULL, 1) ? i : &nobody(t)->process;
}

static uint32_t newest_utid(const struct process_tracker *t, int64_t tid)
{
    if (tid >= 0 && tid < DIRECT_TIDS) {
        const uint32_t *newest = by_id_find(&t->direct, (uint32_t)tid);
        return newest ? *newest - 1 : UTID_NONE;
    }
    const uint64_t *v = u64map_get(&t->by_tid, (uint64_t)tid);
    return v ? (uint32_t)*v : UTID_NONE;
}

static bool set_newest_utid(struct process_tracker *t, int64_t tid, uint32_t utid)
{
    recent_forget(&t->recent);
    if (tid < 0 || tid >= DIRECT_TIDS)
        return u64map_set(&t->by_tid, (uint64_t)tid, utid);
    uint32_t *newest = by_id_make(&t->direct, (uint32_t)tid);
    if (!newest)
        return false;
    *newest = utid + 1;
    return true;
}

static bool thread_alive(const struct process_tracker *t, const struct thread_info *i)
{
    if (i->ended)
        return false;
    if (i->upid == UPID_NONE)
        return true;
    const struct process_info *p = process_of(t, i->upid);
    return !p->ended && p->current;
}

static uint64_t by_both_key(const struct process_tracker *t, int64_t tid, uint64_t upid)
{
    return hash_combine((uint64_t)tid ^ t->secret, upid);
}

/* A thread of `pid` behind those that are looked through. */
static uint32_t find_far(const struct process_tracker *t, int64_t tid, int64_t pid)
{
    const uint64_t *upid = u64map_get(&t->by_pid, (uint64_t)pid);
    const uint64_t *utid = upid ? u64map_get(&t->by_both, by_both_key(t, tid, *upid)) : NULL;
    const struct thread_info *i = utid ? thread_of(t, *utid) : NULL;
    return i && i->tid == tid && i->upid == *upid && thread_alive(t, i) ? (uint32_t)*utid : UTID_NONE;
}

/* The latest alive thread of a tid that belongs to `pid` or to no known process; any process when pid is negative. */
static uint32_t find_alive(const struct process_tracker *t, int64_t tid, int64_t pid)
{
    uint32_t utid = newest_utid(t, tid);
    for (int n = 0; utid != UTID_NONE && n < MAX_OLDER; n++, utid = thread_of(t, utid)->older) {
        const struct thread_info *i = thread_of(t, utid);
        if (!thread_alive(t, i))
            continue;
        if (i->upid == UPID_NONE || pid < 0 || process_of(t, i->upid)->pid == pid)
            return utid;
    }
    return utid == UTID_NONE ? UTID_NONE : find_far(t, tid, pid);
}

uint32_t process_tracker_find_thread(const struct process_tracker *t, int64_t tid)
{
    return find_alive(t, tid, -1);
}

uint32_t process_tracker_start_thread(struct process_tracker *t, int64_t ts, int64_t tid)
{
    struct storage *st = t->m->st;
    uint32_t utid = thread_insert(st, &(struct thread_row){.tid = tid,
                                                           .start_ts = ts,
                                                           .end_ts = COL_NULL,
                                                           .upid = COL_NULL,
                                                           .is_main_thread = COL_NULL,
                                                           .is_idle = 0,
                                                           .machine_id = t->m->id});
    struct thread_info *info = utid == UINT32_MAX ? NULL : by_id_make(&t->threads, utid);
    if (!info) {
        out_of_memory(t);
        return t->idle_utid;
    }
    uint32_t older = newest_utid(t, tid);
    while (older != UTID_NONE && !thread_alive(t, thread_of(t, older))) /* the dead stay dead: look-ups stay short */
        older = thread_of(t, older)->older;
    *info = (struct thread_info){.tid = tid, .older = older, .upid = UPID_NONE, .exit_ts = COL_NULL};
    if (!set_newest_utid(t, tid, utid))
        out_of_memory(t);
    return utid;
}

/* What is rare is called: a function that does it itself saves registers each time. */
static __attribute__((noinline)) uint32_t find_or_start(struct process_tracker *t, int64_t tid)
{
    uint32_t utid = find_alive(t, tid, -1);
    if (utid == UTID_NONE)
        return process_tracker_start_thread(t, COL_NULL, tid);
    recent_note(&t->recent, tid, NO_PID, utid);
    return utid;
}

uint32_t process_tracker_thread(struct process_tracker *t, int64_t tid)
{
    const struct recent_thread *r = recent_find(&t->recent, tid);
    return __builtin_expect(r != NULL, 1) ? r->utid : find_or_start(t, tid);
}

static __attribute__((noinline)) uint32_t name_thread(struct process_tracker *t, int64_t tid, strid name)
{
    uint32_t utid = process_tracker_thread(t, tid);
    process_tracker_thread_name(t, utid, name, THREAD_NAME_FTRACE);
    struct recent_thread *r = recent_find(&t->recent, tid);
    if (r) {
        r->name = name;
        r->fixed = thread_of(t, utid)->name_priority > THREAD_NAME_FTRACE;
    }
    return utid;
}

/* Every switch and wakeup names its threads, and nearly always as the one before did. */
uint32_t process_tracker_named_thread(struct process_tracker *t, int64_t tid, strid name)
{
    const struct recent_thread *r = recent_find(&t->recent, tid);
    bool named = r && ((r->name == name && name) || r->fixed);
    return __builtin_expect(named, 1) ? r->utid : name_thread(t, tid, name);
}

uint32_t process_tracker_find_process(const struct process_tracker *t, int64_t pid)
{
    const uint64_t *v = u64map_get(&t->by_pid, (uint64_t)pid);
    return v ? (uint32_t)*v : UPID_NONE;
}

static uint32_t add_process_row(struct process_tracker *t, int64_t pid)
{
    struct storage *st = t->m->st;
    uint32_t upid = process_insert(st, &(struct process_row){.pid = pid,
                                                             .start_ts = COL_NULL,
                                                             .end_ts = COL_NULL,
                                                             .parent_upid = COL_NULL,
                                                             .uid = COL_NULL,
                                                             .android_appid = COL_NULL,
                                                             .android_user_id = COL_NULL,
                                                             .machine_id = t->m->id});
    struct process_info *info = upid == UINT32_MAX ? NULL : by_id_make(&t->processes, upid);
    if (!info) {
        out_of_memory(t);
        return UPID_NONE;
    }
    *info = (struct process_info){.pid = pid, .current = true};
    return upid;
}

static uint32_t start_process_row(struct process_tracker *t, int64_t pid)
{
    uint32_t upid = add_process_row(t, pid);
    if (upid != UPID_NONE && !u64map_set(&t->by_pid, (uint64_t)pid, upid)) {
        out_of_memory(t);
        return UPID_NONE;
    }
    return upid;
}

uint32_t process_tracker_process_without_pid(struct process_tracker *t)
{
    return add_process_row(t, COL_NULL);
}

/* The process of a pid, made without a main thread when new. */
static uint32_t process_alone(struct process_tracker *t, int64_t pid)
{
    uint32_t upid = process_tracker_find_process(t, pid);
    return upid != UPID_NONE ? upid : start_process_row(t, pid);
}

static void put_in_process(struct process_tracker *t, uint32_t utid, uint32_t upid)
{
    if (upid == UPID_NONE)
        return;
    recent_forget(&t->recent);
    thread_of(t, utid)->upid = upid;
    if (!u64map_set(&t->by_both, by_both_key(t, thread_of(t, utid)->tid, upid), utid))
        out_of_memory(t);
    ROW_SET(t->m->st, thread, upid, utid, upid);
    ROW_SET(t->m->st, thread, is_main_thread, utid, thread_of(t, utid)->tid == process_of(t, upid)->pid);
}

static void wait_for(struct process_tracker *t, uint32_t utid, bool is_child, uint32_t id)
{
    uint64_t *first = u64map_put(&t->pending_on, utid, NULL);
    recent_forget(&t->recent); /* the next who asks for it with its process tells what waits */
    if (!first || !vec_push(&t->pending, (struct pending){is_child, id, (uint32_t)*first}))
        out_of_memory(t);
    else
        *first = t->pending.n;
}

/* Follows what was waiting for the process of `first`, now known to be `upid`. */
static void resolve_pending(struct process_tracker *t, uint32_t first, uint32_t upid)
{
    if (upid == UPID_NONE || !t->pending_on.n || !u64map_get(&t->pending_on, first))
        return;
    VEC(uint32_t)
    work = {0};
    if (!vec_push(&work, first))
        out_of_memory(t);
    while (work.n) {
        uint32_t utid = work.p[--work.n];
        const uint64_t *head = u64map_get(&t->pending_on, utid);
        uint32_t at = head ? (uint32_t)*head : 0;
        u64map_del(&t->pending_on, utid);
        for (; at; at = t->pending.p[at - 1].next) {
            const struct pending *p = &t->pending.p[at - 1];
            if (p->is_child) {
                ROW_SET(t->m->st, process, parent_upid, p->id, upid);
            } else if (thread_of(t, p->id)->upid == UPID_NONE) { /* else it is where this came from */
                put_in_process(t, p->id, upid);
                if (!vec_push(&work, p->id))
                    out_of_memory(t);
            }
        }
    }
    vec_free(&work);
    if (!t->pending_on.n)
        vec_clear(&t->pending);
}

uint32_t process_tracker_update_thread(struct process_tracker *t, int64_t tid, int64_t pid)
{
    const struct recent_thread *r = recent_find(&t->recent, tid);
    if (r && r->pid == pid && pid != NO_PID) /* what had waited for that to be known was told then */
        return r->utid;
    uint32_t utid = find_alive(t, tid, pid);
    if (utid == UTID_NONE)
        utid = process_tracker_start_thread(t, COL_NULL, tid);
    if (thread_of(t, utid)->upid == UPID_NONE)
        put_in_process(t, utid, process_alone(t, pid));
    resolve_pending(t, utid, thread_of(t, utid)->upid);
    if (utid == newest_utid(t, tid)) /* what another process is asked for may be an older one */
        recent_note(&t->recent, tid, pid, utid);
    return utid;
}

const uint32_t *process_tracker_epoch(const struct process_tracker *t)
{
    return &t->recent.epoch;
}

uint32_t process_tracker_process(struct process_tracker *t, int64_t pid)
{
    uint32_t upid = process_tracker_find_process(t, pid);
    if (upid != UPID_NONE)
        return upid;
    upid = start_process_row(t, pid);
    if (upid == UPID_NONE)
        return thread_of(t, t->idle_utid)->upid;
    process_tracker_update_thread(t, pid, pid);
    return upid;
}

/* A thread of the ordinary process 0. It is not what its tid means elsewhere. */
static uint32_t start_zero_thread(struct process_tracker *t, int64_t tid, uint32_t upid)
{
    uint32_t before = newest_utid(t, tid), utid = process_tracker_start_thread(t, COL_NULL, tid);
    put_in_process(t, utid, upid);
    if (!set_newest_utid(t, tid, before) || !u64map_set(&t->zero_threads, (uint64_t)tid, utid))
        out_of_memory(t);
    return utid;
}

uint32_t process_tracker_zero_thread(struct process_tracker *t, int64_t tid)
{
    const uint64_t *known = u64map_get(&t->zero_threads, (uint64_t)tid);
    if (known)
        return (uint32_t)*known;
    const uint64_t *main_thread = u64map_get(&t->zero_threads, 0);
    if (main_thread)
        return start_zero_thread(t, tid, thread_of(t, *main_thread)->upid);
    uint32_t idle = process_tracker_find_process(t, 0), upid = start_process_row(t, 0);
    if (upid == UPID_NONE)
        return t->idle_utid;
    if (idle != UPID_NONE && !u64map_set(&t->by_pid, 0, idle)) /* pid 0 stays the idle one's elsewhere */
        out_of_memory(t);
    uint32_t utid = start_zero_thread(t, 0, upid);
    return tid ? start_zero_thread(t, tid, upid) : utid;
}

uint32_t process_tracker_thread_process(const struct process_tracker *t, uint32_t utid)
{
    return thread_of(t, utid)->upid;
}

static void forget_pid(struct process_tracker *t, int64_t pid)
{
    uint32_t upid = process_tracker_find_process(t, pid);
    if (upid == UPID_NONE)
        return;
    recent_forget(&t->recent);
    process_of(t, upid)->current = false;
    u64map_del(&t->by_pid, (uint64_t)pid);
}

/* A new process under a pid that may have been used before, with its main thread. Returns the upid. */
static uint32_t restart_process(struct process_tracker *t, int64_t ts, int64_t pid, uint32_t *utid)
{
    forget_pid(t, pid);
    *utid = process_tracker_start_thread(t, ts, pid);
    uint32_t upid = process_tracker_process(t, pid);
    if (ts != COL_NULL)
        ROW_SET(t->m->st, process, start_ts, upid, ts);
    return upid;
}

static void set_parent_thread(struct process_tracker *t, uint32_t upid, uint32_t parent_utid)
{
    uint32_t parent = thread_of(t, parent_utid)->upid;
    if (parent != UPID_NONE)
        ROW_SET(t->m->st, process, parent_upid, upid, parent);
    else
        wait_for(t, parent_utid, true, upid);
}

uint32_t process_tracker_start_process(struct process_tracker *t, int64_t ts, int64_t parent_tid, int64_t pid,
                                       strid main_name, enum thread_name_priority priority)
{
    uint32_t utid;
    uint32_t upid = restart_process(t, ts, pid, &utid);
    process_tracker_thread_name(t, utid, main_name, priority);
    process_tracker_process_name(t, upid, main_name, PROCESS_NAME_OTHER);
    if (parent_tid >= 0)
        set_parent_thread(t, upid, process_tracker_thread(t, parent_tid));
    return utid;
}

uint32_t process_tracker_restart_process(struct process_tracker *t, int64_t ts, int64_t pid)
{
    uint32_t utid;
    return restart_process(t, ts, pid, &utid);
}

void process_tracker_end_thread(struct process_tracker *t, int64_t ts, int64_t tid)
{
    uint32_t utid = find_alive(t, tid, -1);
    if (tid == 0 || utid == UTID_NONE) /* not worth making a thread only to end it */
        return;
    struct thread_info *i = thread_of(t, utid);
    ROW_SET(t->m->st, thread, end_ts, utid, ts);
    recent_forget(&t->recent);
    i->ended = true;
    if (i->upid == UPID_NONE || process_of(t, i->upid)->pid != tid)
        return;
    ROW_SET(t->m->st, process, end_ts, i->upid, ts);
    process_of(t, i->upid)->ended = true;
    u64map_del(&t->by_pid, (uint64_t)tid);
}

void process_tracker_free_thread(struct process_tracker *t, int64_t ts, int64_t tid)
{
    t->seen_end = true;
    process_tracker_end_thread(t, ts, tid);
}

void process_tracker_exit_thread(struct process_tracker *t, int64_t ts, int64_t tid)
{
    uint32_t utid = find_alive(t, tid, -1);
    if (tid != 0 && utid != UTID_NONE)
        thread_of(t, utid)->exit_ts = ts;
}

/* Takes the exits for the ends. A process has ended when all its threads have. */
static void end_by_exits(struct process_tracker *t)
{
    struct storage *st = t->m->st;
    by_id_each(&t->threads, utid)
    {
        const struct thread_info *i = thread_of(t, utid);
        if (!i->tid) /* nobody's, or the idle thread */
            continue;
        if (!i->ended && i->exit_ts != COL_NULL)
            ROW_SET(st, thread, end_ts, utid, i->exit_ts);
        if (i->upid == UPID_NONE)
            continue;
        struct process_info *process = process_of(t, i->upid);
        int64_t end = ROW_GET(st, thread, end_ts, utid);
        if (end == COL_NULL)
            end = INT64_MAX;
        if (!process->has_threads || end > process->last_end)
            process->last_end = end;
        process->has_threads = true;
    }
    by_id_each(&t->processes, upid)
    {
        const struct process_info *i = process_of(t, upid);
        if (i->pid && !i->ended && i->has_threads && i->last_end != INT64_MAX)
            ROW_SET(st, process, end_ts, upid, i->last_end);
    }
}

void process_tracker_associate_threads(struct process_tracker *t, uint32_t utid, uint32_t other_utid)
{
    uint32_t a = thread_of(t, utid)->upid, b = thread_of(t, other_utid)->upid;
    if (a != UPID_NONE && b == UPID_NONE) {
        put_in_process(t, other_utid, a);
        resolve_pending(t, other_utid, a);
    } else if (b != UPID_NONE && a == UPID_NONE) {
        put_in_process(t, utid, b);
        resolve_pending(t, utid, b);
    } else if (a != b) {
        stats_add(&t->m->st->stats, t->m->id, STAT_process_tracker_errors, 1);
    } else if (a == UPID_NONE) {
        wait_for(t, utid, false, other_utid);
        wait_for(t, other_utid, false, utid);
    }
}

void process_tracker_thread_name(struct process_tracker *t, uint32_t utid, strid name,
                                 enum thread_name_priority priority)
{
    struct thread_info *i = thread_of(t, utid);
    if (!name || priority < i->name_priority)
        return;
    i->name_priority = (uint8_t)priority;
    if (ROW_GET(t->m->st, thread, name, utid) == (int64_t)name)
        return;
    ROW_SET(t->m->st, thread, name, utid, name);
    struct recent_thread *r = recent_find(&t->recent, i->tid);
    if (r)
        r->name = 0;
}

void process_tracker_process_name(struct process_tracker *t, uint32_t upid, strid name,
                                  enum process_name_priority priority)
{
    struct process_info *i = process_of(t, upid);
    if (!name || priority < i->name_priority)
        return;
    i->name_priority = (uint8_t)priority;
    ROW_SET(t->m->st, process, name, upid, name);
}

void process_tracker_main_thread_name(struct process_tracker *t, uint32_t utid, strid name)
{
    const struct thread_info *i = thread_of(t, utid);
    if (name && i->upid != UPID_NONE && process_of(t, i->upid)->pid == i->tid)
        process_tracker_process_name(t, i->upid, name, PROCESS_NAME_SYSTEM);
}

static uint32_t set_metadata(struct process_tracker *t, uint32_t upid, uint32_t parent, strid name, strid cmdline)
{
    struct storage *st = t->m->st;
    if (upid == UPID_NONE || parent == UPID_NONE)
        return thread_of(t, t->idle_utid)->upid;
    int64_t before = ROW_GET(st, process, parent_upid, upid);
    if (before == COL_NULL)
        ROW_SET(st, process, parent_upid, upid, parent);
    else if (before != parent) /* a process whose parent has ended is given another: who began it stays */
        import_log(t->m, STAT_process_tracker_parent_pid_changed, COL_NULL, -1, ARGSET_NONE);
    process_tracker_process_name(t, upid, name, PROCESS_NAME_SYSTEM);
    ROW_SET(st, process, cmdline, upid, cmdline);
    return upid;
}

uint32_t process_tracker_set_metadata(struct process_tracker *t, int64_t pid, int64_t ppid, strid name, strid cmdline)
{
    uint32_t parent = process_tracker_process(t, ppid);
    return set_metadata(t, process_tracker_process(t, pid), parent, name, cmdline);
}

uint32_t process_tracker_set_metadata_alone(struct process_tracker *t, int64_t pid, int64_t ppid, strid name,
                                            strid cmdline)
{
    uint32_t parent = process_alone(t, ppid);
    return set_metadata(t, process_alone(t, pid), parent, name, cmdline);
}

void process_tracker_set_uid(struct process_tracker *t, uint32_t upid, uint32_t uid)
{
    struct storage *st = t->m->st;
    ROW_SET(st, process, uid, upid, uid);
    ROW_SET(st, process, android_appid, upid, uid % 100000);
    ROW_SET(st, process, android_user_id, upid, uid / 100000);
}

void process_tracker_set_start_ts(struct process_tracker *t, uint32_t upid, int64_t ts)
{
    if (ROW_GET(t->m->st, process, start_ts, upid) == COL_NULL)
        ROW_SET(t->m->st, process, start_ts, upid, ts);
}

void process_tracker_without_idle(struct process_tracker *t)
{
    if (newest_utid(t, 0) == t->idle_utid && !set_newest_utid(t, 0, UTID_NONE))
        out_of_memory(t);
}

void process_tracker_move(struct process_tracker *t, struct machine_ctx *to)
{
    t->m = to;
    to->processes = t;
    ROW_SET(to->st, thread, machine_id, t->idle_utid, to->id);
    ROW_SET(to->st, process, machine_id, thread_of(t, t->idle_utid)->upid, to->id);
}

uint32_t process_tracker_idle_utid(const struct process_tracker *t)
{
    return t->idle_utid;
}

void process_tracker_set_namespaced_process(struct process_tracker *t, int64_t pid, int64_t inner_pid, uint32_t level)
{
    (void)inner_pid; /* the process's own number is that of its main thread, told as a thread */
    if (!u64map_set(&t->namespace_levels, (uint64_t)pid, level))
        out_of_memory(t);
}

/* What tells a thread seen from inside its namespace: the process, and the number there. */
static uint64_t inner_key(const struct process_tracker *t, int64_t pid, uint32_t level, int64_t inner_tid)
{
    return hash_combine(hash_keyed(t->secret, (uint64_t)pid, level), (uint64_t)inner_tid);
}

bool process_tracker_set_namespaced_thread(struct process_tracker *t, int64_t pid, int64_t tid, int64_t inner_tid,
                                           uint32_t level)
{
    if (!u64map_get(&t->namespace_levels, (uint64_t)pid))
        return false;
    if (!u64map_set(&t->by_inner_tid, inner_key(t, pid, level, inner_tid), (uint64_t)tid))
        out_of_memory(t);
    return true;
}

int64_t process_tracker_resolve_namespaced(const struct process_tracker *t, int64_t root_pid, int64_t tid)
{
    const uint64_t *level = root_pid > 0 ? u64map_get(&t->namespace_levels, (uint64_t)root_pid) : NULL;
    const uint64_t *root_tid =
        level ? u64map_get(&t->by_inner_tid, inner_key(t, root_pid, (uint32_t)*level, tid)) : NULL;
    return root_tid ? (int64_t)*root_tid : -1;
}

struct process_tracker *process_tracker_open(struct machine_ctx *m)
{
    struct process_tracker *t = mem_zalloc(sizeof *t);
    if (!t)
        return NULL;
    t->m = m;
    t->secret = hash_secret();
    t->idle_utid = UTID_NONE;
    t->nobody = mem_zalloc(sizeof *t->nobody);
    uint32_t upid = !t->nobody ? UPID_NONE : start_process_row(t, 0);
    uint32_t utid = upid == UPID_NONE ? UTID_NONE : process_tracker_start_thread(t, COL_NULL, 0);
    strid swapper = strpool_intern_str(&m->st->strings, "swapper");
    if (utid == UTID_NONE || !by_id_find(&t->threads, utid) || !swapper) {
        process_tracker_close(t);
        return NULL;
    }
    t->idle_utid = utid;
    put_in_process(t, utid, upid);
    ROW_SET(m->st, thread, is_idle, utid, 1);
    process_tracker_thread_name(t, utid, swapper, THREAD_NAME_CONSTANT);
    return t;
}

void process_tracker_finish(struct process_tracker *t)
{
    if (t->m->im->has_plain_zero && !t->m->im->has_idle) /* nothing idles in such traces */
        ROW_SET(t->m->st, thread, name, t->idle_utid, 0);
    vec_clear(&t->pending);
    u64map_clear(&t->pending_on);
    if (t->m->im->other_files && !t->m->im->idle_files) /* nothing in the trace is idle */
        ROW_SET(t->m->st, thread, name, t->idle_utid, 0);
    if (!t->seen_end)
        end_by_exits(t);
}

void process_tracker_close(struct process_tracker *t)
{
    if (!t)
        return;
    by_id_free(&t->threads);
    by_id_free(&t->processes);
    by_id_free(&t->direct);
    mem_free(t->nobody);
    mem_free(t->recent.p);
    u64map_free(&t->by_tid);
    u64map_free(&t->by_pid);
    u64map_free(&t->by_both);
    vec_free(&t->pending);
    u64map_free(&t->pending_on);
    u64map_free(&t->namespace_levels);
    u64map_free(&t->by_inner_tid);
    u64map_free(&t->zero_threads);
    mem_free(t);
}

uint32_t process_tracker_update_thread_and_main(struct process_tracker *t, int64_t tid, int64_t pid)
{
    bool has_main = tid == pid || process_tracker_find_thread(t, pid) != UTID_NONE;
    uint32_t now = has_main ? UTID_NONE : process_tracker_find_thread(t, tid);
    if (now != UTID_NONE && process_tracker_thread_process(t, now) != UPID_NONE &&
        process_tracker_thread_process(t, now) != process_tracker_find_process(t, pid)) { /* it will be a new thread */
        process_tracker_update_thread(t, pid, pid);
        has_main = true;
    }
    uint32_t utid = process_tracker_update_thread(t, tid, pid);
    if (!has_main)
        process_tracker_update_thread(t, pid, pid);
    return utid;
}
