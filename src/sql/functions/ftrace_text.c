/* TO_FTRACE(id): a row of ftrace_event as the line that the kernel's own text trace would have. */
#include "sql/functions/functions.h"

struct line {
    sqlite3_str *s;
    const struct storage *st;
    struct arg_list args;
};

static const struct arg *find(const struct line *l, const char *key)
{
    for (size_t i = 0; i < l->args.n; i++)
        if (slice_eq_str(strpool_view(&l->st->strings, l->args.p[i].key), key))
            return &l->args.p[i];
    return NULL;
}

static void append_value(struct line *l, const struct arg *a)
{
    struct slice text = slice_of("", 0);
    switch (a->type) {
    case ARG_STRING:
    case ARG_JSON:
        text = strpool_view(&l->st->strings, (strid)a->word);
        while (text.len && text.p[text.len - 1] == '\n') /* the line ends once */
            text.len--;
        sqlite3_str_append(l->s, (const char *)text.p, (int)text.len);
        break;
    case ARG_REAL:
        sqlite3_str_appendf(l->s, "%!.17g", column_f64(a->word));
        break;
    case ARG_POINTER:
        sqlite3_str_appendf(l->s, "0x%llx", (unsigned long long)a->word);
        break;
    case ARG_UINT:
        sqlite3_str_appendf(l->s, "%llu", (unsigned long long)a->word);
        break;
    default:
        sqlite3_str_appendf(l->s, "%lld", (long long)a->word);
    }
}

/* The kernel's letters of task states: bit 0 is S, bit 1 D, …; 0 is R. Bit 8 tells of preemption. */
static void append_state(struct line *l, const struct arg *a)
{
    static const char letters[] = "SDTtXZPI";
    int64_t state = a->word;
    bool any = false;
    for (int bit = 0; bit < 8; bit++) {
        if (!(state >> bit & 1))
            continue;
        if (any)
            sqlite3_str_appendchar(l->s, 1, '|');
        sqlite3_str_appendchar(l->s, 1, letters[bit]);
        any = true;
    }
    if (!any)
        sqlite3_str_appendchar(l->s, 1, 'R');
    if (state & 0x100)
        sqlite3_str_appendchar(l->s, 1, '+');
}

static void append_vector(struct line *l, const struct arg *a)
{
    static const char *const names[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
                                        "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};
    append_value(l, a);
    if (a->word >= 0 && a->word < (int64_t)(sizeof names / sizeof *names))
        sqlite3_str_appendf(l->s, " [action=%s]", names[a->word]);
}

static void append_cpu(struct line *l, const struct arg *a)
{
    sqlite3_str_appendf(l->s, "%03lld", (long long)a->word);
}

static void append_hex(struct line *l, const struct arg *a)
{
    sqlite3_str_appendf(l->s, "%llx", (unsigned long long)a->word);
}

static void append_handled(struct line *l, const struct arg *a)
{
    sqlite3_str_appendall(l->s, a->word ? "handled" : "unhandled");
}

/* Events that the kernel prints in a way of their own: text with {key}, or {key:how}. Others are "key=value …". */
static const struct {
    const char *event, *shown_as, *format;
} formats[] = {
    {"print", "tracing_mark_write", "{buf}"},
    {"sched_switch", "sched_switch",
     "prev_comm={prev_comm} prev_pid={prev_pid} prev_prio={prev_prio} prev_state={prev_state:state} ==> "
     "next_comm={next_comm} next_pid={next_pid} next_prio={next_prio}"},
    {"sched_waking", "sched_waking", "comm={comm} pid={pid} prio={prio} target_cpu={target_cpu:cpu}"},
    {"sched_wakeup", "sched_wakeup", "comm={comm} pid={pid} prio={prio} target_cpu={target_cpu:cpu}"},
    {"sched_wakeup_new", "sched_wakeup_new", "comm={comm} pid={pid} prio={prio} target_cpu={target_cpu:cpu}"},
    {"irq_handler_exit", "irq_handler_exit", "irq={irq} ret={ret:handled}"},
    {"softirq_entry", "softirq_entry", "vec={vec:vector}"},
    {"softirq_exit", "softirq_exit", "vec={vec:vector}"},
    {"softirq_raise", "softirq_raise", "vec={vec:vector}"},
    {"sched_process_fork", "sched_process_fork",
     "comm={parent_comm} pid={parent_pid} child_comm={child_comm} child_pid={child_pid}"},
    {"sched_stat_runtime", "sched_stat_runtime", "comm={comm} pid={pid} runtime={runtime} [ns]"},
    {"sched_blocked_reason", "sched_blocked_reason", "pid={pid} iowait={io_wait} caller={caller}"},
    {"sched_pi_setprio", "sched_pi_setprio", "comm={comm} pid={pid} oldprio={oldprio} newprio={newprio}"},
    {"sys_enter", "sys_enter", "NR {id} ({args:hex})"},
    {"sys_exit", "sys_exit", "NR {id} = {ret}"},
    {"task_newtask", "task_newtask",
     "pid={pid} comm={comm} clone_flags={clone_flags:hex} oom_score_adj={oom_score_adj}"},
    {"task_rename", "task_rename", "pid={pid} oldcomm={oldcomm} newcomm={newcomm} oom_score_adj={oom_score_adj}"},
};

static const struct {
    const char *name;
    void (*append)(struct line *l, const struct arg *a);
} hows[] = {{"state", append_state},
            {"vector", append_vector},
            {"cpu", append_cpu},
            {"handled", append_handled},
            {"hex", append_hex}};

static void append_format(struct line *l, const char *f)
{
    while (*f) {
        size_t plain = strcspn(f, "{");
        sqlite3_str_append(l->s, f, (int)plain);
        f += plain;
        if (!*f)
            return;
        size_t len = strcspn(++f, "}"), name = strcspn(f, ":}");
        char key[64], how[16] = "";
        sqlite3_snprintf((int)(name + 1 < sizeof key ? name + 1 : sizeof key), key, "%s", f);
        if (name < len)
            sqlite3_snprintf((int)(len - name < sizeof how ? len - name : sizeof how), how, "%s", f + name + 1);
        const struct arg *a = find(l, key);
        void (*append)(struct line *, const struct arg *) = append_value;
        for (size_t i = 0; i < sizeof hows / sizeof *hows; i++)
            if (strcmp(hows[i].name, how) == 0)
                append = hows[i].append;
        if (a)
            append(l, a);
        f += len + (f[len] == '}');
    }
}

static void append_args(struct line *l, const char *event)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].event, event) == 0) {
            sqlite3_str_appendf(l->s, "%s: ", formats[i].shown_as);
            append_format(l, formats[i].format);
            return;
        }
    sqlite3_str_appendf(l->s, "%s:", event);
    for (size_t i = 0; i < l->args.n; i++) {
        sqlite3_str_appendf(l->s, " %s=", strpool_cstr(&l->st->strings, l->args.p[i].key));
        append_value(l, &l->args.p[i]);
    }
}

/* Who, where, when: "comm-pid (tgid) [cpu] flags seconds:" */
static void append_head(struct line *l, uint32_t row)
{
    const struct storage *st = l->st;
    const struct table *t = &st->t[T_ftrace_event], *threads = &st->t[T_thread], *processes = &st->t[T_process];
    int64_t utid = table_get(t, ftrace_event_c_utid, row), ts = table_get(t, ftrace_event_c_ts, row);
    int64_t flags = table_get(t, ftrace_event_c_common_flags, row), upid = COL_NULL, tid = 0;
    const char *name = NULL;
    if (utid >= 0 && utid < threads->n_rows) {
        tid = table_get(threads, thread_c_tid, (uint32_t)utid);
        name = strpool_cstr(&st->strings, (strid)table_get(threads, thread_c_name, (uint32_t)utid));
        upid = table_get(threads, thread_c_upid, (uint32_t)utid);
    }
    sqlite3_str_appendf(l->s, "%16s-%-5lld ", tid == 0 ? "<idle>" : name ? name : "<...>", (long long)tid);
    if (tid != 0 && upid >= 0 && upid < processes->n_rows)
        sqlite3_str_appendf(l->s, "(%5lld) ", (long long)table_get(processes, process_c_pid, (uint32_t)upid));
    else
        sqlite3_str_appendall(l->s, "(-----) ");
    sqlite3_str_appendf(
        l->s, "[%03lld] %c%c%c%c %lld.%06lld: ", (long long)(table_get(t, ftrace_event_c_ucpu, row) & 4095),
        flags & 1 ? 'd' : '.', flags & 4 ? 'N' : '.', flags & 8 ? (flags & 16 ? 'H' : 'h') : (flags & 16 ? 's' : '.'),
        '.', (long long)(ts / 1000000000), (long long)(ts / 1000 % 1000000));
}

static void to_ftrace(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct line l = {.st = engine_storage(sqlite3_user_data(ctx))};
    const struct table *t = &l.st->t[T_ftrace_event];
    (void)argc;
    if (function_is_null(argv[0]))
        return;
    int64_t id = sqlite3_value_int64(argv[0]);
    if (sqlite3_value_type(argv[0]) != SQLITE_INTEGER || id < 0 || id >= t->n_rows) {
        function_error(ctx, "TO_FTRACE: the argument must be the id of a row of ftrace_event");
        return;
    }
    uint32_t row = (uint32_t)id;
    l.s = sqlite3_str_new(sqlite3_context_db_handle(ctx));
    args_values(&l.st->args, ROW_ARGS(l.st, ftrace_event, arg_set_id, row), &l.args);
    append_head(&l, row);
    append_args(&l, strpool_cstr(&l.st->strings, (strid)table_get(t, ftrace_event_c_name, row)));
    int len = sqlite3_str_length(l.s);
    sqlite3_result_text(ctx, sqlite3_str_finish(l.s), len, sqlite3_free);
    arg_list_free(&l.args);
}

static const struct engine_function rows[] = {
    {.name = "to_ftrace", .n_args = 1, .scalar = to_ftrace},
};

FUNCTION_ROWS(ftrace_text, rows);
