/* Owns setting up a tracefs instance for its sessions and leaving it as it was. */
#include "capture/probes/ftrace/ftrace_instance.h"

#include "base/file.h"
#include "capture/probes/ftrace/packet_headers.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum {
    SMALL_MACHINE_KB = 2048, /* default size of a cpu's buffer with less than 7 GiB of memory */
    BIG_MACHINE_KB = 8192,   /* and with more */
    ALARM_PERCENT = 40,      /* without drain_buffer_percent: so full a buffer does not wait for the next tick */
};

/* Probes belong to the whole kernel, and some files are at the top only. */
static struct tracefs whole_kernel(const struct ftrace_instance *in)
{
    struct tracefs top = in->fs;
    strcpy(top.base, top.root);
    return top;
}

static int load_printk_formats(struct ftrace_instance *in, struct error *err)
{
    struct tracefs top = whole_kernel(in); /* instances do not have this file */
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
        rc = undo_log_open(&in->undo, options->run_directory, name, err);
    if (rc)
        return rc;
    if (in->undo.stale) {
        *recovered = true;
        rc = undo_log_restore(&in->undo, err);
    }
    if (!rc && in->fs.is_instance && access(in->fs.base, F_OK) != 0) {
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

int ftrace_instance_close(struct ftrace_instance *in, struct error *err)
{
    int rc = 0;
    in->n_started = 0;
    if (in->readers)
        ftrace_instance_stop(in);
    event_set_free(&in->events);
    printk_formats_free(&in->printk);
    vec_free(&in->started);
    if (in->undo.fd >= 0) {
        rc = undo_log_restore(&in->undo, err);
        undo_log_close(&in->undo);
    }
    return rc;
}

static int change(struct ftrace_instance *in, const char *name, const char *text, struct error *err)
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
        return strstr(line, chosen) ? 0 : change(in, "trace_clock", clocks[i].name, err);
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
    int rc = change(in, "buffer_size_kb", text, err);
    uint32_t page_kb = (uint32_t)(in->page_size >> 10);
    in->request_pages = want / (page_kb ? page_kb : 1);
    in->buffer_pages = in->request_pages;
    if (tracefs_read_u64(&in->fs, "per_cpu/cpu0/buffer_size_kb", &kb, NULL) == 0 && page_kb)
        in->buffer_pages = (uint32_t)(kb / page_kb);
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

static int set_options(struct ftrace_instance *in, const struct ftrace_config *config, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < config->options.n && !rc; i++) {
        char name[300];
        const struct tracefs_option *o = &config->options.p[i];
        if (!*o->name || strchr(o->name, '/') || (o->state != 1 && o->state != 2))
            return error_set(err, -MRD_EINVALID, "\"%.100s\" is not a tracefs option", o->name);
        snprintf(name, sizeof name, "options/%s", o->name);
        rc = change(in, name, o->state == 1 ? "1" : "0", err);
    }
    if (!rc && *config->tracing_cpumask)
        rc = change(in, "tracing_cpumask", config->tracing_cpumask, err);
    if (!rc && config->tids.n) {
        char list[4096] = "";
        size_t n = 0;
        for (size_t i = 0; i < config->tids.n && n + 16 < sizeof list; i++)
            n += (size_t)snprintf(list + n, sizeof list - n, "%u ", config->tids.p[i]);
        rc = change_list(in, "set_event_pid", NULL, list, err);
    }
    if (!rc && ftrace_instance_can_poll(in)) {
        char text[16];
        snprintf(text, sizeof text, "%u", config->drain_buffer_percent ? config->drain_buffer_percent : ALARM_PERCENT);
        rc = change(in, "buffer_percent", text, err);
    }
    return rc;
}

/* Everything that the first session of an instance decides. */
static int set_up(struct ftrace_instance *in, const struct ftrace_config *config, struct error *err)
{
    char tracer[64];
    int rc = tracefs_read_line(&in->fs, "current_tracer", tracer, sizeof tracer, err);
    if (rc)
        return rc;
    if (strcmp(tracer, "nop") != 0)
        return error_set(err, -MRD_EEXISTS, "the tracer \"%s\" is running in %s", tracer, in->fs.base);
    in->preserved = config->preserve_ftrace_buffer;
    if (in->preserved) {
        uint64_t kb = 0;
        tracefs_read_u64(&in->fs, "per_cpu/cpu0/buffer_size_kb", &kb, NULL);
        in->buffer_pages = in->request_pages = (uint32_t)((kb << 10) / in->page_size);
        rc = change(in, "tracing_on", "1", err);
        return rc ? rc : choose_clock(in, false, true, err);
    }
    rc = change(in, "tracing_on", "0", err);
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

/* Whether the recorder's own reading would show up among the chosen events. */
static bool is_syscall_event(const struct kernel_event *e)
{
    return strcmp(e->group, "raw_syscalls") == 0 || strcmp(e->group, "syscalls") == 0;
}

/* The recorder does not trace its own system calls: else each read makes more to read. A filter on these events rather
 * than set_event_notrace_pid, which would also hide the interrupts that come while we run. A kernel without filters
 * records them, no harm done. */
static void hide_self(struct ftrace_instance *in, const struct event_selection *sel)
{
    char name[512], filter[64];
    snprintf(filter, sizeof filter, "common_pid != %d", (int)getpid());
    for (size_t i = 0; i < sel->events.n; i++) {
        const struct kernel_event *e = sel->events.p[i];
        if (!is_syscall_event(e) || e->users)
            continue;
        snprintf(name, sizeof name, "events/%s/%s/filter", e->group, e->name);
        (void)change(in, name, filter, NULL);
        in->hidden = true;
    }
}

static int add_kprobe(struct ftrace_instance *in, const char *probe, bool is_return, unsigned type,
                      struct event_selection *sel, struct error *err)
{
    const char *group = is_return ? "perfetto_kretprobes" : "perfetto_kprobes";
    char name[200], text[512], path[PATH_MAX];
    struct tracefs top = whole_kernel(in);
    struct kernel_event *e;
    snprintf(name, sizeof name, "%s", probe);
    for (char *p = name; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *p))
            *p = '_';
    if (!tracefs_exists(&top, "kprobe_events") || !tracefs_path(&top, path, "kprobe_events"))
        return error_set(err, -MRD_EUNSUPPORTED, "this kernel has no kprobes");
    snprintf(text, sizeof text, "-:%s/%s", group, name);
    int rc = undo_log_note(&in->undo, UNDO_APPEND, path, text, err);
    if (rc)
        return rc;
    snprintf(text, sizeof text, "%s:%s/%s %s", is_return ? "r1024" : "p", group, name, probe);
    rc = tracefs_write_path(path, TRACEFS_APPEND, text, err);
    if (rc)
        return rc;
    rc = event_set_get_kprobe(&in->events, group, name, probe, type, &e, err);
    if (!rc && !event_selection_add(sel, e))
        rc = error_set(err, -MRD_ENOMEM, "out of memory for kprobes");
    return rc;
}

static int add_kprobe_pair(struct ftrace_instance *in, const char *probe, struct event_selection *sel,
                           struct error *err)
{
    int rc = add_kprobe(in, probe, false, 1, sel, err);
    return rc ? rc : add_kprobe(in, probe, true, 2, sel, err);
}

/* KprobeEvent.KprobeType of the trace: 1 begin, 2 end, 3 instant. */
static void add_kprobes(struct ftrace_instance *in, const struct ftrace_config *config, struct event_selection *sel)
{
    for (size_t i = 0; i < config->kprobes.n; i++) {
        const struct kprobe_request *k = &config->kprobes.p[i];
        struct error err = {0};
        int rc;
        if (k->kind == KPROBE_ENTRY)
            rc = add_kprobe(in, k->probe, false, 3, sel, &err);
        else if (k->kind == KPROBE_RETURN)
            rc = add_kprobe(in, k->probe, true, 3, sel, &err);
        else if (k->kind == KPROBE_BOTH)
            rc = add_kprobe_pair(in, k->probe, sel, &err);
        else
            rc = error_set(&err, -MRD_EINVALID, "a kprobe needs a type");
        if (rc)
            event_selection_failed(sel, "kprobe", k->probe, err.text);
    }
}

static int define_packet_event(struct ftrace_instance *in, struct slice btf, unsigned event, struct error *err)
{
    struct tracefs top = whole_kernel(in);
    char command[PACKET_HEADERS_COMMAND_BYTES], undo[128], path[PATH_MAX];
    snprintf(path, sizeof path, "events/" PACKET_HEADERS_GROUP "/%s/format", packet_headers_events[event]);
    if (tracefs_exists(&top, path))
        return 0; /* another session's, or left over */
    if (!tracefs_exists(&top, "dynamic_events") || !tracefs_path(&top, path, "dynamic_events"))
        return error_set(err, -MRD_EUNSUPPORTED, "this kernel has no event probes (they came with Linux 5.15)");
    int rc = packet_headers_command(btf, event, command, err);
    snprintf(undo, sizeof undo, "-:" PACKET_HEADERS_GROUP "/%s", packet_headers_events[event]);
    if (!rc)
        rc = undo_log_note(&in->undo, UNDO_APPEND, path, undo, err);
    if (!rc && (rc = tracefs_write_path(path, TRACEFS_APPEND, command, err)))
        error_prefix(err, "this kernel refuses an event probe (CONFIG_EPROBE_EVENTS is needed)");
    return rc;
}

static void add_packet_headers(struct ftrace_instance *in, struct event_selection *sel)
{
    struct error err = {0};
    size_t len;
    char *btf = NULL;
    int rc = file_read_all("/sys/kernel/btf/vmlinux", 256 << 20, &btf, &len, &err);
    for (unsigned i = 0; i < PACKET_HEADERS_EVENTS; i++) {
        struct kernel_event *e;
        if (!rc)
            rc = define_packet_event(in, slice_of(btf, len), i, &err);
        if (!rc)
            rc = event_set_get(&in->events, PACKET_HEADERS_GROUP, packet_headers_events[i], &e, &err);
        if (!rc && !event_selection_add(sel, e))
            rc = error_set(&err, -MRD_ENOMEM, "out of memory for events");
        if (rc)
            event_selection_failed(sel, PACKET_HEADERS_GROUP, packet_headers_events[i], err.text);
    }
    mem_free(btf);
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
    memset(sel, 0, sizeof *sel);
    int rc = in->n_sessions ? 0 : set_up(in, config, err);
    if (!rc)
        rc = event_selection_resolve(sel, &in->events, config, err);
    if (!rc) {
        add_kprobes(in, config, sel);
        if (config->packet_headers)
            add_packet_headers(in, sel);
        hide_self(in, sel);
        enable(in, sel);
        rc = event_selection_build(sel, config, err);
    }
    in->n_sessions++;
    if (rc)
        ftrace_instance_remove(in, sel);
    return rc;
}

void ftrace_instance_remove(struct ftrace_instance *in, struct event_selection *sel)
{
    for (size_t i = 0; i < sel->events.n; i++)
        event_set_disable(&in->events, sel->events.p[i]);
    event_selection_free(sel);
    in->n_sessions--;
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
    if (!rc)
        rc = change(in, "tracing_on", "1", err);
    if (rc)
        ftrace_instance_stop(in);
    return rc;
}

void ftrace_instance_stop(struct ftrace_instance *in)
{
    if (in->n_started && --in->n_started)
        return;
    (void)tracefs_write(&in->fs, "tracing_on", TRACEFS_WRITE, "0", NULL);
    for (uint32_t cpu = 0; in->readers && cpu < in->n_cpus; cpu++)
        ring_reader_close(&in->readers[cpu]);
    mem_free(in->readers);
    in->readers = NULL;
}

void ftrace_instance_clock_pair(struct ftrace_instance *in, int64_t *ftrace_now, int64_t *boot_now)
{
    struct tracefs_cpu_stats stats = {0};
    struct timespec t;
    tracefs_cpu_stats(&in->fs, 0, &stats, NULL);
    clock_gettime(CLOCK_BOOTTIME, &t);
    *boot_now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    *ftrace_now = (int64_t)(stats.now_ts * 1e9);
}

int ftrace_recover_all(const char *run_directory, struct error *err)
{
    int n = 0;
    DIR *dir = opendir(run_directory);
    if (!dir)
        return 0;
    for (struct dirent *d; (d = readdir(dir));) {
        char file[PATH_MAX];
        struct undo_log log;
        size_t len = strlen(d->d_name);
        if (strncmp(d->d_name, "ftrace-", 7) != 0 || len < 5 || strcmp(d->d_name + len - 5, ".undo") != 0)
            continue;
        if (snprintf(file, sizeof file, "%s/%s", run_directory, d->d_name) >= (int)sizeof file)
            continue;
        if (undo_log_open_file(&log, file, NULL)) /* its recorder lives */
            continue;
        if (log.stale) {
            n++;
            undo_log_restore(&log, err);
        }
        undo_log_close(&log);
    }
    closedir(dir);
    return n;
}

int ftrace_reset(const char *tracefs_root, const char *run_directory, struct error *err)
{
    struct tracefs fs;
    struct undo_log log;
    static const struct {
        const char *name, *text;
        enum tracefs_mode mode;
    } writes[] = {
        {"tracing_on", "0", TRACEFS_WRITE},      {"set_event", "", TRACEFS_TRUNCATE},
        {"trace", "", TRACEFS_TRUNCATE},         {"buffer_size_kb", "4", TRACEFS_WRITE},
        {"buffer_percent", "50", TRACEFS_WRITE},
    };
    int rc = tracefs_open(&fs, tracefs_root, NULL, err);
    if (rc)
        return rc;
    struct error first = {0};
    ftrace_recover_all(run_directory, &first);
    rc = undo_log_open(&log, run_directory, NULL, err); /* not while a recorder works in it */
    for (size_t i = 0; !rc && i < sizeof writes / sizeof *writes; i++)
        if (tracefs_exists(&fs, writes[i].name))
            rc = tracefs_write(&fs, writes[i].name, writes[i].mode, writes[i].text, err);
    undo_log_close(&log);
    if (!rc && first.code)
        rc = error_set(err, first.code, "%s", first.text);
    return rc;
}
