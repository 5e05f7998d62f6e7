/* Sets up a tracefs instance for its sessions, and leaves it as it was. */
#include "capture/probes/ftrace/ftrace_instance.h"
#include "base/clock.h"

#include "capture/probes/ftrace/instance_setup.h"

#include <stdio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static int load_printk_formats(struct ftrace_instance *in, struct error *err)
{
    struct tracefs top = tracefs_top(&in->fs); /* instances do not have this file */
    char *text;
    size_t len;
    if (!tracefs_exists(&top, "printk_formats"))
        return 0;
    int rc = tracefs_read(&top, "printk_formats", &text, &len, err);
    if (rc)
        return rc;
    rc = printk_formats_parse(&in->printk, slice_of(text, len), err);
    mem_free(text);
    return rc;
}

static int load_page_format(struct ftrace_instance *in, struct error *err)
{
    uint64_t kb;
    char *text;
    size_t len;
    int rc = tracefs_read(&in->fs, "events/header_page", &text, &len, err);
    if (rc)
        return rc;
    rc = page_format_parse(&in->page_format, slice_of(text, len), err);
    mem_free(text);
    in->page_size = (size_t)sysconf(_SC_PAGESIZE);
    if (tracefs_read_u64(&in->fs, "buffer_subbuf_size_kb", &kb, NULL) == 0 && kb >= 1 && kb <= 1024)
        in->page_size = (size_t)kb << 10;
    return rc;
}

int ftrace_instance_open(struct ftrace_instance *in, const char *name, const struct ftrace_instance_options *options,
                         bool *recovered, struct error *err)
{
    memset(in, 0, sizeof *in);
    in->undo.fd = -1;
    in->mode = options->mode;
    snprintf(in->name, sizeof in->name, "%s", name);
    *recovered = false;
    int rc = tracefs_open(&in->fs, options->tracefs_root, name, err);
    if (!rc)
        rc = undo_log_open(&in->undo, options->run_directory, name, options->tracefs_root, err);
    if (rc)
        return rc;
    if (in->undo.stale) {
        *recovered = true;
        rc = undo_log_restore(&in->undo, err);
    }
    bool absent = !rc && in->fs.is_instance && access(in->fs.base, F_OK) != 0;
    if (absent && options->must_exist) {
        rc = error_set(err, -MRD_ENOTFOUND, "there is no tracefs instance %s", in->fs.base);
    } else if (absent) {
        rc = undo_log_note(&in->undo, UNDO_RMDIR, in->fs.base, "", err);
        if (!rc)
            rc = tracefs_make_instance(&in->fs, err);
    }
    event_set_init(&in->events, &in->fs, options->next_dynamic_id);
    if (!rc)
        rc = load_page_format(in, err);
    if (!rc)
        rc = load_printk_formats(in, err);
    in->n_cpus = tracefs_cpu_count(&in->fs);
    if (!rc && !in->n_cpus)
        rc = error_set(err, -MRD_ENOTFOUND, "%s has no per_cpu directories", in->fs.base);
    if (rc)
        ftrace_instance_close(in, NULL);
    return rc;
}

bool ftrace_instance_is_foreign(const struct ftrace_instance *in, char *who, size_t size)
{
    uint64_t on = 0;
    char *text;
    size_t len;
    if (in->n_sessions || tracefs_read_u64(&in->fs, "tracing_on", &on, NULL) != 0 || !on ||
        tracefs_read(&in->fs, "set_event", &text, &len, NULL) != 0)
        return false;
    size_t n = strcspn(text, "\n");
    snprintf(who, size, "%.*s", (int)n, text);
    mem_free(text);
    return n > 0;
}

int ftrace_instance_close(struct ftrace_instance *in, struct error *err)
{
    int rc = 0;
    in->n_started = 0;
    if (in->readers)
        ftrace_instance_stop(in);
    event_set_free(&in->events);
    printk_formats_free(&in->printk);
    vec_free(&in->started);
    vec_free(&in->selections);
    if (in->undo.fd >= 0) {
        rc = undo_log_restore(&in->undo, err);
        undo_log_close(&in->undo);
    }
    return rc;
}

bool ftrace_instance_can_poll(const struct ftrace_instance *in)
{
    struct utsname u;
    unsigned major, minor;
    /* before 6.9, poll() on trace_pipe_raw did not wait for buffer_percent */
    return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
           (major > 6 || (major == 6 && minor >= 9)) && tracefs_exists(&in->fs, "buffer_percent");
}

/* Whether the recorder's own reading would show up among these events. */
static bool is_syscall_event(const struct kernel_event *e)
{
    return strcmp(e->group, "raw_syscalls") == 0 || strcmp(e->group, "syscalls") == 0;
}

/* The calls that the sessions together want of `e`; false when one of them wants all. */
static bool wanted_calls(const struct ftrace_instance *in, const struct kernel_event *e, struct call_set *calls)
{
    memset(calls, 0, sizeof *calls);
    for (size_t i = 0; i < in->selections.n; i++) {
        const struct event_selection *sel = in->selections.p[i];
        bool uses = false;
        for (size_t k = 0; k < sel->events.n; k++)
            uses |= sel->events.p[k] == e;
        if (uses && !sel->some_calls)
            return false;
        for (size_t k = 0; uses && k < sizeof calls->bits / sizeof *calls->bits; k++)
            calls->bits[k] |= sel->calls.bits[k];
    }
    return true;
}

/* " && (id == 0 || id == 1)" behind `n` bytes of the filter; nothing when that does not fit. */
static void add_calls(char *filter, size_t n, size_t size, const struct call_set *calls)
{
    size_t at = n;
    for (unsigned call = 0; call < SYSCALL_LIMIT && at < size; call++)
        if (call_set_has(calls, call))
            at += (size_t)snprintf(filter + at, size - at, "%sid == %u", at == n ? " && (" : " || ", call);
    if (at > n && at + 1 < size)
        memcpy(filter + at, ")", 2);
    else
        filter[n] = 0;
}

/* What the kernel need not write: system calls that no session wants, and the recorder's own, as each read would make
 * more to read. (A filter on these events rather than set_event_notrace_pid, which would also hide the interrupts that
 * come while we run.) A kernel without filters records them, no harm done. */
static void set_call_filters(struct ftrace_instance *in)
{
    for (size_t i = 0; i < in->events.events.n; i++) {
        const struct kernel_event *e = in->events.events.p[i];
        char name[512], filter[4000]; /* the kernel takes one page */
        struct call_set calls;
        if (!is_syscall_event(e) || !e->users)
            continue;
        size_t n = (size_t)snprintf(filter, sizeof filter, "common_pid != %d", (int)getpid());
        if (strcmp(e->group, "raw_syscalls") == 0 && wanted_calls(in, e, &calls))
            add_calls(filter, n, sizeof filter, &calls);
        snprintf(name, sizeof name, "events/%s/%s/filter", e->group, e->name);
        (void)instance_change(in, name, filter, NULL);
    }
}

static void enable(struct ftrace_instance *in, struct event_selection *sel)
{
    size_t kept = 0;
    for (size_t i = 0; i < sel->events.n; i++) {
        struct error err = {0};
        struct kernel_event *e = sel->events.p[i];
        if (event_set_enable(&in->events, e, &err))
            event_selection_failed(sel, e->group, e->name, err.text);
        else
            sel->events.p[kept++] = e;
    }
    sel->events.n = kept;
}

int ftrace_instance_add(struct ftrace_instance *in, const struct ftrace_config *config, struct event_selection *sel,
                        struct error *err)
{
    bool first = !in->n_sessions;
    memset(sel, 0, sizeof *sel);
    int rc = first ? instance_set_up(in, config, err) : instance_join(in, config, err);
    if (!rc)
        rc = event_selection_resolve(sel, &in->events, config, err);
    if (!rc && !vec_push(&in->selections, sel))
        rc = error_set(err, -MRD_ENOMEM, "out of memory for ftrace");
    in->n_sessions++;
    if (!rc) {
        instance_add_function_graph(in, config, sel, first);
        probe_events_add(in, config, sel);
        if (!in->frozen)
            enable(in, sel);
        set_call_filters(in);
        rc = event_selection_build(sel, config, err);
    }
    if (rc)
        ftrace_instance_remove(in, sel);
    return rc;
}

void ftrace_instance_remove(struct ftrace_instance *in, struct event_selection *sel)
{
    for (size_t i = 0; i < sel->events.n; i++)
        event_set_disable(&in->events, sel->events.p[i]);
    for (size_t i = 0; i < in->selections.n; i++)
        if (in->selections.p[i] == sel)
            in->selections.p[i] = in->selections.p[--in->selections.n];
    event_selection_free(sel);
    in->n_sessions--;
    if (in->n_sessions)
        set_call_filters(in);
}

int ftrace_instance_start(struct ftrace_instance *in, struct error *err)
{
    int rc = 0;
    if (in->n_started++)
        return 0;
    in->readers = mem_zalloc(in->n_cpus * sizeof *in->readers);
    if (!in->readers)
        rc = error_set(err, -MRD_ENOMEM, "out of memory for readers");
    for (uint32_t cpu = 0; !rc && cpu < in->n_cpus; cpu++)
        in->readers[cpu].fd = -1;
    for (uint32_t cpu = 0; !rc && cpu < in->n_cpus; cpu++) {
        char name[64];
        snprintf(name, sizeof name, "per_cpu/cpu%u", cpu);
        if (tracefs_exists(&in->fs, name))
            rc = ring_reader_open(&in->readers[cpu], &in->fs, cpu, &in->page_format, in->page_size, in->mode, err);
    }
    if (!rc && !in->frozen)
        rc = instance_change(in, "tracing_on", "1", err);
    if (rc)
        ftrace_instance_stop(in);
    return rc;
}

void ftrace_instance_pause(struct ftrace_instance *in)
{
    if (!in->frozen)
        (void)tracefs_write(&in->fs, "tracing_on", TRACEFS_WRITE, "0", NULL);
}

void ftrace_instance_stop(struct ftrace_instance *in)
{
    if (in->n_started && --in->n_started)
        return;
    ftrace_instance_pause(in);
    for (uint32_t cpu = 0; in->readers && cpu < in->n_cpus; cpu++)
        ring_reader_close(&in->readers[cpu]);
    mem_free(in->readers);
    in->readers = NULL;
}

void ftrace_instance_clock_pair(struct ftrace_instance *in, int64_t *ftrace_now, int64_t *boot_now)
{
    struct tracefs_cpu_stats stats = {0};
    tracefs_cpu_stats(&in->fs, 0, &stats, NULL);
    *boot_now = clock_now_ns(CLOCK_BOOTTIME);
    *ftrace_now = (int64_t)(stats.now_ts * 1e9);
}
