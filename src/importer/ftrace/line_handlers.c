/* What events as text do, in the way that the public tool does: its words are read as they are, where the binary form
 * has numbers. */
#include "importer/ftrace/line_internal.h"
#include "importer/lines/line_reader.h"

#include "importer/ftrace/binder.h"

static void counter(const struct ftrace_event *e, const char *type, const char *dim, int64_t dim_value, strid name,
                    double value)
{
    ftrace_counter(e, track_intern_int(e->m->im->tracks, e->m->id, type, TRACK_COUNTER, dim, dim_value, name), value);
}

static strid comm_of(const struct ftrace_event *e, const struct line_args *a, const char *key)
{
    const struct line_word *w = line_word(a, key);
    if (!w)
        return import_str(e->m->im, "");
    return import_slice(e->m->im, e->m->im->opt.all_text_events ? w->whole : w->value);
}

/* trace-cmd report's own form: COMM:PID [PRIO] …; false when the text does not begin so. What follows stays in *rest.
 */
static bool read_task(struct slice *rest, struct slice *comm, int32_t *pid, int32_t *prio)
{
    struct slice s = trim_space(*rest);
    int64_t id, p;
    const uint8_t *bracket = memchr(s.p, '[', s.len);
    while (bracket) { /* names may hold brackets */
        const uint8_t *close = memchr(bracket, ']', (size_t)(s.p + s.len - bracket));
        struct slice head = trim_space(slice_of(s.p, (size_t)(bracket - s.p)));
        const uint8_t *colon = head.len ? memrchr(head.p, ':', head.len) : NULL;
        if (close && colon && number_decimal(slice_of(colon + 1, (size_t)(head.p + head.len - colon - 1)), &id) &&
            number_decimal(slice_of(bracket + 1, (size_t)(close - bracket - 1)), &p)) {
            *comm = slice_of(head.p, (size_t)(colon - head.p));
            *pid = (int32_t)id;
            *prio = (int32_t)p;
            *rest = slice_of(close + 1, (size_t)(s.p + s.len - close - 1));
            return true;
        }
        size_t left = (size_t)(s.p + s.len - bracket - 1);
        bracket = memchr(bracket + 1, '[', left);
    }
    return false;
}

static void do_switch(const struct ftrace_event *e, int32_t prev_pid, strid prev_comm, strid state, int32_t next_pid,
                      strid next_comm, int32_t next_prio)
{
    uint32_t next = process_tracker_named_thread(e->m->processes, next_pid, next_comm),
             prev = process_tracker_named_thread(e->m->processes, prev_pid, prev_comm);
    sched_tracker_switch_threads(e->m->sched, e->cpu, e->ts, prev, state, next, next_prio);
}

static void sched_switch(const struct ftrace_event *e, const struct line_args *a)
{
    int32_t prev_pid, prev_prio, next_pid, next_prio;
    struct slice rest = a->text, prev_comm, next_comm;
    if (line_i32(a, "prev_pid", &prev_pid) && line_i32(a, "prev_prio", &prev_prio) &&
        line_i32(a, "next_pid", &next_pid) && line_i32(a, "next_prio", &next_prio)) {
        do_switch(e, prev_pid, comm_of(e, a, "prev_comm"), line_task_state(e, line_text(a, "prev_state")), next_pid,
                  comm_of(e, a, "next_comm"), next_prio);
        return;
    }
    if (!read_task(&rest, &prev_comm, &prev_pid, &prev_prio))
        return;
    const uint8_t *arrow = memmem(rest.p, rest.len, "==>", 3);
    if (!arrow)
        return;
    struct slice state = trim_space(slice_of(rest.p, (size_t)(arrow - rest.p)));
    rest = slice_of(arrow + 3, (size_t)(rest.p + rest.len - arrow - 3));
    if (read_task(&rest, &next_comm, &next_pid, &next_prio))
        do_switch(e, prev_pid, import_slice(e->m->im, prev_comm), line_task_state(e, state), next_pid,
                  import_slice(e->m->im, next_comm), next_prio);
}

static void sched_waking(const struct ftrace_event *e, const struct line_args *a)
{
    int32_t pid, prio;
    struct slice rest = a->text, comm;
    strid name;
    if (line_i32(a, "pid", &pid))
        name = comm_of(e, a, "comm");
    else if (read_task(&rest, &comm, &pid, &prio))
        name = import_slice(e->m->im, comm);
    else
        return;
    uint32_t wakee = process_tracker_named_thread(e->m->processes, pid, name);
    sched_tracker_waking(e->m->sched, e->ts, wakee, a->utid, SCHED_FLAGS_UNKNOWN);
}

static void sched_blocked_reason(const struct ftrace_event *e, const struct line_args *a)
{
    int32_t pid, io_wait;
    const struct line_word *caller = line_word(a, "caller");
    if (!line_i32(a, "pid", &pid) || !line_i32(a, "iowait", &io_wait))
        return;
    sched_tracker_blocked_reason(e->m->sched, process_tracker_thread(e->m->processes, pid), io_wait != 0,
                                 caller ? import_slice(e->m->im, caller->value) : 0);
}

static void cpu_frequency(const struct ftrace_event *e, const struct line_args *a)
{
    int32_t cpu;
    double state;
    if (line_i32(a, "cpu_id", &cpu) && line_real(a, "state", &state))
        counter(e, "cpu_frequency", "cpu", (uint32_t)cpu, ftrace_text(e, "cpufreq"), state);
}

static void cpu_idle(const struct ftrace_event *e, const struct line_args *a)
{
    int32_t cpu;
    double state;
    if (line_i32(a, "cpu_id", &cpu) && line_real(a, "state", &state))
        counter(e, "cpu_idle", "cpu", (uint32_t)cpu, ftrace_text(e, "cpuidle"), state);
}

static void cpu_frequency_limits(const struct ftrace_event *e, const struct line_args *a)
{
    int32_t cpu;
    double value;
    if (!line_i32(a, "cpu_id", &cpu))
        return;
    if (line_real(a, "max", &value) || line_real(a, "max_freq", &value))
        counter(e, "cpu_max_frequency_limit", "cpu", (uint32_t)cpu,
                ftrace_name(e, "Cpu %u Max Freq Limit", (uint32_t)cpu), value);
    if (line_real(a, "min", &value) || line_real(a, "min_freq", &value))
        counter(e, "cpu_min_frequency_limit", "cpu", (uint32_t)cpu,
                ftrace_name(e, "Cpu %u Min Freq Limit", (uint32_t)cpu), value);
}

/* The counter of a thing with a name: "NAME SUFFIX". */
static void named_counter(const struct ftrace_event *e, const char *type, const char *dim, struct slice what,
                          const char *suffix, double value)
{
    strid name = ftrace_name(e, "%.*s %s", (int)(what.len < 512 ? what.len : 512), (const char *)what.p, suffix);
    ftrace_counter(e, FTRACE_TRACK(e, TRACK_COUNTER, type, name, DIM_S(dim, import_slice(e->m->im, what))), value);
}

/* A name that stands first, without a key or with "name=". */
static struct slice bare_name(const struct line_args *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (!a->words[i].key.len || slice_eq_str(a->words[i].key, "name"))
            return a->words[i].value;
    return slice_of("", 0);
}

static void clock_set_rate(const struct ftrace_event *e, const struct line_args *a)
{
    int64_t rate;
    struct slice name = bare_name(a);
    if (name.len && line_i64(a, "state", &rate))
        named_counter(e, "clock_frequency", "linux_device", name, "Frequency", (double)rate);
}

static void clock_state(const struct ftrace_event *e, const struct line_args *a)
{
    int64_t state;
    struct slice name = bare_name(a);
    if (name.len && line_i64(a, "state", &state))
        named_counter(e, "clock_state", "linux_device", name, "State", (double)state);
}

static void thermal_temperature(const struct ftrace_event *e, const struct line_args *a)
{
    int64_t value;
    const struct line_word *zone = line_word(a, "thermal_zone");
    if (zone && line_i64(a, "temp", &value))
        named_counter(e, "thermal_temperature", "thermal_zone", zone->value, "Temperature", (double)value);
}

static void cdev_update(const struct ftrace_event *e, const struct line_args *a)
{
    int64_t value;
    const struct line_word *type = line_word(a, "type");
    if (type && line_i64(a, "target", &value))
        named_counter(e, "cooling_device_counter", "linux_device", type->value, "Cooling Device", (double)value);
}

static void rss_stat(const struct ftrace_event *e, const struct line_args *a)
{
    static const char *const keys[] = {"rss.file", "rss.anon", "swap", "rss.shmem", "unreclaimable"};
    int64_t size, member;
    if (!line_i64(a, "size", &size) || !line_i64(a, "member", &member))
        return;
    if (size < 0) {
        stats_add(&e->m->st->stats, e->m->id, STAT_rss_stat_negative_size, 1);
        return;
    }
    bool known = member >= 0 && member < (int64_t)(sizeof keys / sizeof *keys);
    pending_counter(e, a->utid, PENDING_MEMORY, known ? keys[member] : "unknown", NULL, (double)size);
}

static void workqueue_execute_start(const struct ftrace_event *e, const struct line_args *a)
{
    static const char mark[] = "function ";
    const uint8_t *at = memmem(a->text.p, a->text.len, mark, sizeof mark - 1);
    if (!at)
        return;
    struct slice name = slice_from(a->text, (size_t)(at - a->text.p) + sizeof mark - 1);
    ftrace_begin(e, ftrace_thread_track(e, a->utid), ftrace_text(e, "workqueue"), import_slice(e->m->im, name),
                 ARGSET_NONE);
}

static void workqueue_execute_end(const struct ftrace_event *e, const struct line_args *a)
{
    ftrace_end(e, ftrace_thread_track(e, a->utid), ftrace_text(e, "workqueue"), 0, NULL);
}

static void marker(const struct ftrace_event *e, const struct line_args *a)
{
    atrace_parse_line(e, a->text);
}

static void binder_transaction(const struct ftrace_event *e, const struct line_args *a)
{
    struct binder_transaction t = {.code = line_text(a, "code")};
    int32_t reply;
    if (line_i32(a, "transaction", &t.id) && line_i32(a, "dest_node", &t.node) && line_i32(a, "dest_proc", &t.pid) &&
        line_i32(a, "dest_thread", &t.tid) && line_i32(a, "reply", &reply) && line_hex(a, "flags", &t.flags)) {
        t.reply = reply == 1;
        binder_begin(e, &t);
    }
}

static void binder_transaction_received(const struct ftrace_event *e, const struct line_args *a)
{
    int32_t id;
    if (line_i32(a, "transaction", &id))
        binder_received(e, id);
}

static void binder_transaction_alloc_buf(const struct ftrace_event *e, const struct line_args *a)
{
    int64_t data, offsets;
    if (line_i64(a, "data_size", &data) && line_i64(a, "offsets_size", &offsets))
        binder_alloc(e, (uint64_t)data, (uint64_t)offsets);
}

static void on_lock(const struct ftrace_event *e, const struct line_args *a)
{
    (void)a;
    binder_lock(e, BINDER_LOCK);
}

static void on_locked(const struct ftrace_event *e, const struct line_args *a)
{
    (void)a;
    binder_lock(e, BINDER_LOCKED);
}

static void on_unlock(const struct ftrace_event *e, const struct line_args *a)
{
    (void)a;
    binder_lock(e, BINDER_UNLOCK);
}

static void on_command(const struct ftrace_event *e, const struct line_args *a)
{
    uint32_t cmd;
    if (line_hex(a, "cmd", &cmd))
        binder_command(e, cmd);
}

static void on_return(const struct ftrace_event *e, const struct line_args *a)
{
    uint32_t cmd;
    if (line_hex(a, "cmd", &cmd))
        binder_return(e, cmd);
}

const struct line_handler ftrace_line_handlers[] = {
    {"sched_switch", sched_switch},
    {"sched_waking", sched_waking},
    {"sched_blocked_reason", sched_blocked_reason},
    {"cpu_frequency", cpu_frequency},
    {"cpu_idle", cpu_idle},
    {"cpu_frequency_limits", cpu_frequency_limits},
    {"clock_set_rate", clock_set_rate},
    {"clock_enable", clock_state},
    {"clock_disable", clock_state},
    {"thermal_temperature", thermal_temperature},
    {"cdev_update", cdev_update},
    {"rss_stat", rss_stat},
    {"workqueue_execute_start", workqueue_execute_start},
    {"workqueue_execute_end", workqueue_execute_end},
    {"binder_transaction", binder_transaction},
    {"binder_transaction_received", binder_transaction_received},
    {"binder_transaction_alloc_buf", binder_transaction_alloc_buf},
    {"binder_lock", on_lock},
    {"binder_locked", on_locked},
    {"binder_unlock", on_unlock},
    {"binder_command", on_command},
    {"binder_return", on_return},
    {"tracing_mark_write", marker},
    {"print", marker},
    {"0", marker},
    {NULL, NULL},
};
