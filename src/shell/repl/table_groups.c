/* .tables: the tables that have rows, by what they are about, Linux first. */
#include "shell/names.h"
#include "shell/repl/repl.h"
#include "shell/text_width.h"
#include "shell/ticker.h"

#include <string.h>

/* Names, or patterns with a star at their end; the first group that takes a table has it. */
static const struct {
    const char *title, *names;
} groups[] = {
    {"Processes and threads", "process thread package_list filedescriptor"},
    {"CPUs and scheduling", "cpu cpu_available_frequencies sched sched_slice thread_state spurious_sched_wakeup"},
    {"Slices and flows", "slice slices flow instant frame_slice gpu_slice state"},
    {"Counters", "counter counters"},
    {"Tracks", "track *_track"},
    {"Events of the kernel, logs, arguments", "ftrace_event raw logs android_logs args inode_file"},
    {"Samples and heaps",
     "perf_* cpu_profile_* stack_* heap_* profiler_* instruments_* vulkan_* memory_* process_memory_*"},
    {"Machines and their clocks", "machine machine_* clock_* guest_vcpu"},
    {"The recording", "trace_bounds metadata stats"},
    {"Others", "*"},
};
enum { GROUPS = sizeof groups / sizeof *groups, CELL = 36 /* a name and its rows */ };
#define MOST_NS INT64_C(2000000000)

static bool matches(const char *name, const char *pattern, size_t len)
{
    const size_t n = strlen(name);
    if (len && pattern[0] == '*')
        return n >= len - 1 && strncmp(name + n - (len - 1), pattern + 1, len - 1) == 0;
    if (len && pattern[len - 1] == '*')
        return strncmp(name, pattern, len - 1) == 0;
    return n == len && strncmp(name, pattern, len) == 0;
}

static int group_of(const char *name)
{
    for (int g = 0; g < GROUPS; g++)
        for (const char *p = groups[g].names; *p; p += strspn(p, " ")) {
            size_t len = strcspn(p, " ");
            if (matches(name, p, len))
                return g;
            p += len;
        }
    return GROUPS - 1;
}

struct row {
    char name[64], rows[24];
    int group;
};
struct rows {
    struct row *p;
    size_t n, cap;
};

/* False: it has none, or wants arguments. */
static bool count_rows(struct repl *r, struct row *row)
{
    char sql[160];
    struct tp_result *result = NULL;
    snprintf(sql, sizeof sql, "SELECT count(*) FROM \"%s\"", row->name);
    if (tp_query(r->sh->tp, sql, &result) < 0)
        return false;
    bool some = tp_step(result) == 1 && tp_int64(result, 0) > 0;
    if (some)
        snprintf(row->rows, sizeof row->rows, "%lld", (long long)tp_int64(result, 0));
    tp_result_close(result);
    return some;
}

/* 0, or a negative tp_code. What has not been counted when the time is over is shown without a number. */
static int read_names(struct repl *r, struct rows *out, unsigned *empty)
{
    struct tp_result *result = NULL;
    const int64_t until = shell_now_ns() + MOST_NS;
    int rc = tp_query(r->sh->tp,
                      "SELECT DISTINCT name FROM (" SHELL_TABLE_NAMES ") WHERE name NOT GLOB '_*' AND "
                      "name NOT GLOB 'json_*' AND length(name) < 60 ORDER BY name",
                      &result);
    while (rc == 0 && (rc = tp_step(result)) == 1) {
        struct row row = {0};
        snprintf(row.name, sizeof row.name, "%s", tp_text(result, 0, NULL));
        row.group = group_of(row.name);
        if (shell_now_ns() < until && !count_rows(r, &row))
            ++*empty;
        else if (!vec_push(out, row))
            rc = TP_NOMEM;
        rc = rc < 0 ? rc : 0;
    }
    tp_result_close(result);
    return rc;
}

static void print_group(struct repl *r, const struct rows *rows, int group, unsigned columns)
{
    const unsigned per_line = columns / (CELL + 4) ? columns / (CELL + 4) : 1;
    unsigned n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        if (rows->p[i].group != group)
            continue;
        if (n == 0)
            out_printf(r->out, "%s\n", groups[group].title);
        const int len = 2 + (int)strlen(rows->p[i].name), number = (int)strlen(rows->p[i].rows);
        out_printf(r->out, "  %s%*s%s", rows->p[i].name, len + number < CELL ? CELL - len - number : 1, "",
                   rows->p[i].rows);
        out_text(r->out, ++n % per_line ? "    " : "\n");
    }
    if (n % per_line)
        out_char(r->out, '\n');
}

int repl_table_groups(struct repl *r)
{
    struct rows rows = {0};
    unsigned empty = 0, columns = text_screen(r->out->fd);
    struct ticker ticker;
    interrupt_target(r->sh->tp);
    ticker_start(&ticker, "Counting rows", false);
    int rc = read_names(r, &rows, &empty);
    ticker_stop(&ticker);
    interrupt_target(NULL);
    interrupt_taken();
    for (int g = 0; g < GROUPS && rc == 0; g++)
        print_group(r, &rows, g, columns ? columns : 80);
    if (rc == 0)
        out_printf(r->out, "%u more tables have no rows: .tables '*' names all, .docs NAME says what one is for.\n",
                   empty);
    out_flush(r->out, NULL);
    vec_free(&rows);
    return rc;
}
