/* What the first session of a tracefs instance decides for all. */
#include "capture/probes/ftrace/instance_setup.h"

#include <stdio.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum {
    SMALL_MACHINE_KB = 2048, /* default size of a cpu's buffer with less than 7 GiB of memory */
    BIG_MACHINE_KB = 8192,   /* and with more */
    ALARM_PERCENT = 40,      /* without drain_buffer_percent: so full a buffer does not wait for the next tick */
};

int instance_change(struct ftrace_instance *in, const char *name, const char *text, struct error *err)
{
    return undo_log_change(&in->undo, &in->fs, name, UNDO_WRITE, text, err);
}

/* Files that hold a list, or (`trace`) more than anyone wants to keep: `old` NULL reads the present content. */
static int change_list(struct ftrace_instance *in, const char *name, const char *old, const char *text,
                       struct error *err)
{
    char path[PATH_MAX];
    if (!old)
        return undo_log_change(&in->undo, &in->fs, name, UNDO_TRUNCATE, text, err);
    if (!tracefs_path(&in->fs, path, name))
        return error_set(err, -MRD_ELIMIT, "path too long");
    int rc = undo_log_note(&in->undo, UNDO_TRUNCATE, path, old, err);
    return rc ? rc : tracefs_write_path(path, TRACEFS_TRUNCATE, text, err);
}

/* A list file: emptied, then one write a line. */
static int change_lines(struct ftrace_instance *in, const char *name, const char *const *lines, size_t n,
                        struct error *err)
{
    int rc = change_list(in, name, NULL, "", err);
    for (size_t i = 0; i < n && !rc; i++) {
        char line[300];
        /* without its newline the kernel looks at a line only when the file is closed, where it can refuse no more */
        if (snprintf(line, sizeof line, "%s\n", lines[i]) >= (int)sizeof line)
            return error_set(err, -MRD_ELIMIT, "'%.60s…' is not a function name", lines[i]);
        rc = tracefs_write(&in->fs, name, TRACEFS_APPEND, line, err);
    }
    return rc;
}

static int change_tids(struct ftrace_instance *in, const char *name, const struct ftrace_config *config,
                       struct error *err)
{
    int rc = change_list(in, name, NULL, "", err);
    for (size_t i = 0; i < config->tids.n && !rc; i++) {
        char tid[16];
        snprintf(tid, sizeof tid, "%u", config->tids.p[i]);
        rc = tracefs_write(&in->fs, name, TRACEFS_APPEND, tid, err);
    }
    return rc;
}

static bool word_in(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = text; (p = strstr(p, word)); p += n) {
        bool starts = p == text || p[-1] == ' ' || p[-1] == '[';
        if (starts && (p[n] == ' ' || p[n] == ']' || p[n] == '\0' || p[n] == '\n'))
            return true;
    }
    return false;
}

static const struct {
    const char *name;
    enum ftrace_clock clock;
} clocks[] = {
    {"boot", FTRACE_CLOCK_BOOT},
    {"global", FTRACE_CLOCK_GLOBAL},
    {"local", FTRACE_CLOCK_LOCAL},
    {"mono_raw", FTRACE_CLOCK_MONO_RAW},
};

static int choose_clock(struct ftrace_instance *in, bool mono_raw, bool keep, struct error *err)
{
    char line[256], chosen[64];
    int rc = tracefs_read_line(&in->fs, "trace_clock", line, sizeof line, err);
    if (rc)
        return rc;
    for (size_t i = mono_raw ? 3 : 0; !keep && i < sizeof clocks / sizeof *clocks; i++) {
        if (!word_in(line, clocks[i].name))
            continue;
        in->clock = clocks[i].clock;
        snprintf(chosen, sizeof chosen, "[%s]", clocks[i].name);
        return strstr(line, chosen) ? 0 : instance_change(in, "trace_clock", clocks[i].name, err);
    }
    in->clock = FTRACE_CLOCK_UNKNOWN;
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        snprintf(chosen, sizeof chosen, "[%s]", clocks[i].name);
        if (strstr(line, chosen))
            in->clock = clocks[i].clock;
    }
    return 0;
}

static uint32_t buffer_kb(const struct ftrace_config *config)
{
    struct sysinfo info = {0};
    sysinfo(&info);
    uint64_t memory = (uint64_t)info.totalram * info.mem_unit;
    uint32_t usual = memory < 7ull << 30 ? SMALL_MACHINE_KB : BIG_MACHINE_KB;
    uint32_t kb = config->buffer_size_kb;
    if (kb == 0 || (config->buffer_size_lower_bound && usual > kb))
        kb = usual;
    uint32_t page_kb = (uint32_t)(sysconf(_SC_PAGESIZE) >> 10);
    return kb < page_kb ? page_kb : kb;
}

static int set_buffer_size(struct ftrace_instance *in, const struct ftrace_config *config, struct error *err)
{
    char text[32];
    uint64_t kb;
    uint32_t want = buffer_kb(config);
    snprintf(text, sizeof text, "%u", want);
    int rc = instance_change(in, "buffer_size_kb", text, err);
    uint32_t page_kb = (uint32_t)(in->page_size >> 10);
    in->request_pages = want / (page_kb ? page_kb : 1);
    in->buffer_pages = in->request_pages;
    if (tracefs_read_u64(&in->fs, "per_cpu/cpu0/buffer_size_kb", &kb, NULL) == 0 && page_kb)
        in->buffer_pages = (uint32_t)(kb / page_kb);
    return rc;
}

static int set_options(struct ftrace_instance *in, const struct ftrace_config *config, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < config->options.n && !rc; i++) {
        char name[300];
        const struct tracefs_option *o = &config->options.p[i];
        if (!*o->name || strchr(o->name, '/') || (o->state != 1 && o->state != 2))
            return error_set(err, -MRD_EINVALID, "\"%.100s\" is not a tracefs option", o->name);
        snprintf(name, sizeof name, "options/%s", o->name);
        rc = instance_change(in, name, o->state == 1 ? "1" : "0", err);
    }
    if (!rc && *config->tracing_cpumask)
        rc = instance_change(in, "tracing_cpumask", config->tracing_cpumask, err);
    if (!rc && config->tids.n)
        rc = change_tids(in, "set_event_pid", config, err);
    if (!rc && ftrace_instance_can_poll(in)) {
        char text[16];
        snprintf(text, sizeof text, "%u", config->drain_buffer_percent ? config->drain_buffer_percent : ALARM_PERCENT);
        rc = instance_change(in, "buffer_percent", text, err);
    }
    return rc;
}

/* ---- settings for one session alone ---- */

static const char *exclusive_setting(const struct ftrace_config *c)
{
    return c->tids.n             ? "tids_to_trace"
           : c->options.n        ? "tracefs_options"
           : *c->tracing_cpumask ? "tracing_cpumask"
                                 : NULL;
}

int instance_join(struct ftrace_instance *in, const struct ftrace_config *config, struct error *err)
{
    const char *mine = exclusive_setting(config);
    if (in->frozen || config->frozen)
        return error_set(err, -MRD_EEXISTS, "linux.frozen_ftrace needs a tracefs instance that no session records in");
    if (in->exclusive)
        return error_set(err, -MRD_EEXISTS,
                         "another session has set %s for the whole tracefs instance: give one of them an instance_name",
                         in->exclusive);
    if (mine)
        return error_set(
            err, -MRD_EEXISTS,
            "%s needs a tracefs instance of its own, and another session records in this one: give one of them an "
            "instance_name",
            mine);
    return 0;
}

/* Everything that the first session of an instance decides. */
int instance_set_up(struct ftrace_instance *in, const struct ftrace_config *config, struct error *err)
{
    char tracer[64];
    uint64_t kb = 0;
    in->exclusive = exclusive_setting(config);
    in->preserved = config->preserve_ftrace_buffer;
    in->frozen = config->frozen;
    if (in->preserved) {
        tracefs_read_u64(&in->fs, "per_cpu/cpu0/buffer_size_kb", &kb, NULL);
        in->buffer_pages = in->request_pages = (uint32_t)((kb << 10) / in->page_size);
    }
    if (in->frozen)
        return choose_clock(in, false, true, err);
    int rc = tracefs_read_line(&in->fs, "current_tracer", tracer, sizeof tracer, err);
    if (rc)
        return rc;
    if (strcmp(tracer, "nop") != 0)
        return error_set(err, -MRD_EEXISTS, "the tracer \"%s\" is running in %s", tracer, in->fs.base);
    if (in->preserved) {
        rc = instance_change(in, "tracing_on", "1", err);
        return rc ? rc : choose_clock(in, false, true, err);
    }
    rc = instance_change(in, "tracing_on", "0", err);
    if (!rc)
        rc = change_list(in, "trace", "", "", err);
    if (!rc)
        rc = change_list(in, "set_event", NULL, "", err);
    if (!rc)
        rc = choose_clock(in, config->use_monotonic_raw_clock, false, err);
    if (!rc)
        rc = set_buffer_size(in, config, err);
    return rc ? rc : set_options(in, config, err);
}

/* ---- the function graph ---- */

static int set_function_graph(struct ftrace_instance *in, const struct ftrace_config *config, struct error *err)
{
    char depth[16];
    int rc = 0;
    if (config->function_filters.n)
        rc = change_lines(in, "set_ftrace_filter", config->function_filters.p, config->function_filters.n, err);
    if (!rc && config->function_graph_roots.n)
        rc =
            change_lines(in, "set_graph_function", config->function_graph_roots.p, config->function_graph_roots.n, err);
    if (!rc && config->function_graph_max_depth) {
        snprintf(depth, sizeof depth, "%u", config->function_graph_max_depth);
        rc = instance_change(in, "max_graph_depth", depth, err);
    }
    if (!rc && config->tids.n)
        rc = change_tids(in, "set_ftrace_pid", config, err);
    return rc ? rc : instance_change(in, "current_tracer", "function_graph", err);
}

void instance_add_function_graph(struct ftrace_instance *in, const struct ftrace_config *config,
                                 struct event_selection *sel, bool first)
{
    static const char *const names[] = {"funcgraph_entry", "funcgraph_exit"};
    struct error err = {0};
    if (!config->function_graph)
        return;
    int rc = first ? set_function_graph(in, config, &err)
                   : error_set(&err, -MRD_EEXISTS, "only the first session of a tracefs instance can start the tracer");
    for (int i = 0; i < 2 && !rc; i++) {
        struct kernel_event *e;
        rc = event_set_get(&in->events, "ftrace", names[i], &e, &err);
        if (!rc && !event_selection_add(sel, e))
            rc = error_set(&err, -MRD_ENOMEM, "out of memory");
    }
    if (rc)
        event_selection_failed(sel, "ftrace_config", "enable_function_graph", err.text);
}
