/* Rows of ftrace_event as lines of text, in two dialects:
 *
 *     to_ftrace(id)         what trace viewers and their scripts know: flags always `....`, plain numbers
 *     to_kernel_ftrace(id)  nearer to the kernel's own text trace: flags, states and letters as the kernel prints them
 */
#include "sql/functions/ftrace_formats.h"
#include "sql/functions/functions.h"

struct line {
    sqlite3_str *s;
    const struct storage *st;
    bool kernel; /* the dialect */
    struct arg_list args;
};

static const struct arg *find(const struct line *l, const char *key)
{
    for (size_t i = 0; i < l->args.n; i++)
        if (slice_eq_str(strpool_view(&l->st->strings, l->args.p[i].key), key))
            return &l->args.p[i];
    return NULL;
}

static void append_text(struct line *l, const struct arg *a)
{
    struct slice text = strpool_view(&l->st->strings, (strid)a->word);
    while (l->kernel && text.len && text.p[text.len - 1] == '\n') /* the line ends once */
        text.len--;
    sqlite3_str_append(l->s, (const char *)text.p, (int)text.len);
}

static void append_value(struct line *l, const struct arg *a)
{
    switch (a->type) {
    case ARG_STRING:
    case ARG_JSON:
        append_text(l, a);
        break;
    case ARG_REAL:
        sqlite3_str_appendf(l->s, "%!.17g", column_f64(a->word));
        break;
    case ARG_POINTER:
        sqlite3_str_appendf(l->s, l->kernel ? "0x%llx" : "%llu", (unsigned long long)a->word);
        break;
    case ARG_UINT:
        sqlite3_str_appendf(l->s, "%llu", (unsigned long long)a->word);
        break;
    case ARG_BOOL:
        if (!l->kernel) {
            sqlite3_str_appendall(l->s, a->word ? "true" : "false");
            break;
        }
        sqlite3_str_appendf(l->s, "%lld", (long long)a->word);
        break;
    case ARG_NULL:
        if (!l->kernel) {
            sqlite3_str_appendall(l->s, "[NULL]");
            break;
        }
        sqlite3_str_appendf(l->s, "%lld", (long long)a->word);
        break;
    default:
        sqlite3_str_appendf(l->s, "%lld", (long long)a->word);
    }
}

/* The letters of task states: bit 0 is S, bit 1 D, …; none is R; one bit tells of preemption. Viewers take those of
 * kernels before 4.8, whatever kernel has recorded; the kernel's own are those since 4.14. */
static void append_state(struct line *l, const struct arg *a)
{
    const char *letters = l->kernel ? "SDTtXZPI" : "SDTtXZxKWPN";
    int64_t preempted = l->kernel ? 0x100 : 0x800, sleeps_idle = 1 << 1 | 1 << 10; /* D and N */
    bool any = false;
    if (!l->kernel && (a->word & sleeps_idle) == sleeps_idle) {
        sqlite3_str_appendchar(l->s, 1, 'I');
        return;
    }
    for (int bit = 0; letters[bit]; bit++) {
        if (!(a->word >> bit & 1))
            continue;
        if (any)
            sqlite3_str_appendchar(l->s, 1, '|');
        sqlite3_str_appendchar(l->s, 1, letters[bit]);
        any = true;
    }
    if (!any)
        sqlite3_str_appendchar(l->s, 1, 'R');
    if (a->word & preempted)
        sqlite3_str_appendchar(l->s, 1, '+');
}

static void append_vector(struct line *l, const struct arg *a)
{
    static const char *const names[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
                                        "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};
    enum { BLOCK_IOPOLL = 5 }; /* as kernels before 4.5 called IRQ_POLL */
    append_value(l, a);
    if (a->word >= 0 && a->word < (int64_t)(sizeof names / sizeof *names))
        sqlite3_str_appendf(l->s, " [action=%s]",
                            !l->kernel && a->word == BLOCK_IOPOLL ? "BLOCK_IOPOLL" : names[a->word]);
}

static void append_cpu(struct line *l, const struct arg *a)
{
    sqlite3_str_appendf(l->s, "%03lld", (long long)a->word);
}

static void append_hex(struct line *l, const struct arg *a)
{
    if (a->type == ARG_STRING) /* newer kernels have a name there */
        append_value(l, a);
    else
        sqlite3_str_appendf(l->s, "%llx", (unsigned long long)a->word);
}

/* "6f-00-1a" */
static void append_bytes(struct line *l, const struct arg *a)
{
    struct slice bytes = a->type == ARG_STRING ? strpool_view(&l->st->strings, (strid)a->word) : slice_of(NULL, 0);
    for (size_t i = 0; i < bytes.len; i++)
        sqlite3_str_appendf(l->s, "%s%02x", i ? "-" : "", bytes.p[i]);
}

static void append_handled(struct line *l, const struct arg *a)
{
    sqlite3_str_appendall(l->s, a->word ? "handled" : "unhandled");
}

/* Less one line feed at the end. */
static void append_line(struct line *l, const struct arg *a)
{
    struct slice text = strpool_view(&l->st->strings, (strid)a->word);
    if (text.len && text.p[text.len - 1] == '\n')
        text.len--;
    sqlite3_str_append(l->s, (const char *)text.p, (int)text.len);
}

/* A caller is a number or, where the trace knows it, the name of a function. */
static void append_caller(struct line *l, const struct arg *a)
{
    if (a->type == ARG_STRING)
        append_value(l, a);
    else
        append_hex(l, a);
}

/* " key=value", of an arg that is left out where there is none. */
static void append_pair(struct line *l, const struct arg *a)
{
    sqlite3_str_appendf(l->s, " %s=", strpool_cstr(&l->st->strings, a->key));
    append_value(l, a);
}

static void append_cgroup(struct line *l, const struct arg *a)
{
    sqlite3_str_appendall(l->s, " cgroup=");
    append_value(l, a);
}

/* The letter of a mark, which begins a slice unless the arg says that it does not. */
static void append_begin(struct line *l, const struct arg *a)
{
    sqlite3_str_appendchar(l->s, 1, a->word ? 'B' : 'E');
}

static void append_char(struct line *l, const struct arg *a)
{
    sqlite3_str_appendchar(l->s, 1, (char)a->word);
}

/* A device number of the kernel: major above 20 bits of minor. */
static void append_device(struct line *l, const struct arg *a)
{
    uint64_t dev = (uint64_t)a->word;
    sqlite3_str_appendf(l->s, "%llu:%llu", (unsigned long long)(dev >> 20), (unsigned long long)(dev & 0xfffff));
}

static void append_page_offset(struct line *l, const struct arg *a)
{
    sqlite3_str_appendf(l->s, "%llu", (unsigned long long)a->word << 12);
}

static void append_hex3(struct line *l, const struct arg *a)
{
    sqlite3_str_appendf(l->s, "%03llx", (unsigned long long)a->word);
}

static void append_hex4(struct line *l, const struct arg *a)
{
    sqlite3_str_appendf(l->s, "%04llx", (unsigned long long)a->word);
}

/* The names of the bits, as <linux/gfp.h> has them: each entry whose bits are all still there is taken, the rest is a
 * number. */
static void append_gfp_flags(struct line *l, const struct arg *a)
{
    uint64_t left = (uint64_t)a->word;
    bool any = false;
    if (!left) {
        sqlite3_str_appendall(l->s, "GFP_NOWAIT");
        return;
    }
    for (size_t i = 0; i < n_gfp_names && left; i++)
        if ((left & gfp_names[i].bits) == gfp_names[i].bits) {
            sqlite3_str_appendf(l->s, "%sGFP_%s", any ? "|" : "", gfp_names[i].name);
            left &= ~gfp_names[i].bits;
            any = true;
        }
    if (left)
        sqlite3_str_appendf(l->s, "%s0x%llX", any ? "|" : "", (unsigned long long)left);
}

static const struct {
    const char *name;
    void (*append)(struct line *l, const struct arg *a);
} hows[] = {
    {"state", append_state}, {"vector", append_vector}, {"cpu", append_cpu},       {"handled", append_handled},
    {"hex", append_hex},     {"bytes", append_bytes},   {"line", append_line},     {"caller", append_caller},
    {"begin", append_begin}, {"char", append_char},     {"device", append_device}, {"offset", append_page_offset},
    {"arg", append_pair},    {"cgroup", append_cgroup}, {"hex3", append_hex3},     {"hex4", append_hex4}};

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
    const struct ftrace_format *f = ftrace_format_find(event, l->kernel);
    if (f) {
        sqlite3_str_appendf(l->s, "%s:", f->shown_as ? f->shown_as : event);
        append_format(l, f->format);
        return;
    }
    sqlite3_str_appendf(l->s, "%s:", event);
    for (size_t i = 0; i < l->args.n; i++) {
        const char *key = strpool_cstr(&l->st->strings, l->args.p[i].key);
        sqlite3_str_appendf(l->s, " %s=", key);
        if (!l->kernel && strcmp(key, "gfp_flags") == 0)
            append_gfp_flags(l, &l->args.p[i]);
        else
            append_value(l, &l->args.p[i]);
    }
}

static void append_flags(struct line *l, int64_t flags)
{
    sqlite3_str_appendf(l->s, "%c%c%c.", flags & 1 ? 'd' : '.', flags & 4 ? 'N' : '.',
                        flags & 8 ? (flags & 16 ? 'H' : 'h') : (flags & 16 ? 's' : '.'));
}

/* The name of a thread; '-' stands between it and the number, so viewers want none in it. */
static void append_comm(struct line *l, int64_t tid, const char *name)
{
    const char *shown = tid == 0 ? "<idle>" : name ? name : l->kernel ? "<...>" : "<unknown>";
    size_t len = strlen(shown);
    for (size_t i = len; i < 16; i++)
        sqlite3_str_appendchar(l->s, 1, ' ');
    for (size_t i = 0; i < len; i++)
        sqlite3_str_appendchar(l->s, 1, shown[i] == '-' && !l->kernel ? '_' : shown[i]);
}

/* Who, where, when: "comm-pid (tgid) [cpu] flags seconds:" */
static void append_head(struct line *l, uint32_t row)
{
    const struct storage *st = l->st;
    const struct table *t = &st->t[T_ftrace_event], *threads = &st->t[T_thread], *processes = &st->t[T_process];
    int64_t utid = table_get(t, ftrace_event_c_utid, row), ts = table_get(t, ftrace_event_c_ts, row);
    int64_t upid = COL_NULL, tid = 0, tgid = 0;
    const char *name = NULL;
    if (utid >= 0 && utid < threads->n_rows) {
        tid = table_get(threads, thread_c_tid, (uint32_t)utid);
        strid id = (strid)table_get(threads, thread_c_name, (uint32_t)utid);
        name = id ? strpool_cstr(&st->strings, id) : NULL;
        upid = table_get(threads, thread_c_upid, (uint32_t)utid);
    }
    if (tid != 0 && upid >= 0 && upid < processes->n_rows)
        tgid = table_get(processes, process_c_pid, (uint32_t)upid);
    append_comm(l, tid, name);
    sqlite3_str_appendf(l->s, "-%-5lld ", (long long)tid);
    if (tgid)
        sqlite3_str_appendf(l->s, "(%5lld) ", (long long)tgid);
    else
        sqlite3_str_appendall(l->s, "(-----) ");
    sqlite3_str_appendf(l->s, "[%03lld] ", (long long)(table_get(t, ftrace_event_c_ucpu, row) & 4095));
    append_flags(l, l->kernel ? table_get(t, ftrace_event_c_common_flags, row) : 0);
    sqlite3_str_appendf(l->s, " %lld.%06lld: ", (long long)(ts / 1000000000), (long long)(ts / 1000 % 1000000));
}

static void line_of_row(sqlite3_context *ctx, sqlite3_value *arg, bool kernel)
{
    struct line l = {.st = engine_storage(function_engine(ctx)), .kernel = kernel};
    const struct table *t = &l.st->t[T_ftrace_event];
    const char *function = kernel ? "TO_KERNEL_FTRACE" : "TO_FTRACE";
    if (function_is_null(arg))
        return;
    int64_t id = sqlite3_value_int64(arg);
    if (sqlite3_value_type(arg) != SQLITE_INTEGER || id < 0 || id >= t->n_rows) {
        function_error(ctx, "%s: the argument must be the id of a row of ftrace_event", function);
        return;
    }
    uint32_t row = (uint32_t)id;
    l.s = sqlite3_str_new(sqlite3_context_db_handle(ctx));
    args_values(&l.st->args, args_of_cell(&l.st->args, ROW_GET(l.st, ftrace_event, arg_set_id, row)), &l.args);
    append_head(&l, row);
    append_args(&l, strpool_cstr(&l.st->strings, (strid)table_get(t, ftrace_event_c_name, row)));
    function_result_built(ctx, l.s);
    arg_list_free(&l.args);
}

static void to_ftrace(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    line_of_row(ctx, argv[0], false);
}

static void to_kernel_ftrace(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    line_of_row(ctx, argv[0], true);
}

static const struct engine_function rows[] = {
    {.name = "to_ftrace", .n_args = 1, .scalar = to_ftrace},
    {.name = "to_kernel_ftrace", .n_args = 1, .scalar = to_kernel_ftrace},
};

FUNCTION_ROWS(ftrace_text, rows);
