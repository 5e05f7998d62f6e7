/* The probes that a config asks for: made in the kernel, which has them as a whole and not an instance, and taken
 * back through the undo log. */
#include "base/file.h"
#include "capture/probes/ftrace/instance_setup.h"
#include "capture/probes/ftrace/packet_events.h"

#include <stdio.h>

static int add_kprobe(struct ftrace_instance *in, const char *probe, bool is_return, unsigned type,
                      struct event_selection *sel, struct error *err)
{
    const char *group = is_return ? "perfetto_kretprobes" : "perfetto_kprobes";
    char name[200], text[512], path[PATH_MAX];
    struct tracefs top = tracefs_top(&in->fs);
    struct kernel_event *e;
    snprintf(name, sizeof name, "%s", probe);
    for (char *p = name; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *p))
            *p = '_';
    if (!*probe || probe[strcspn(probe, " \t\r\n#")]) /* the kernel would take what follows for a command of its own */
        return error_set(err, -MRD_EINVALID, "\"%.100s\" is not a valid kprobe location: use SYMBOL or SYMBOL+OFFSET",
                         probe);
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
    struct tracefs top = tracefs_top(&in->fs);
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

void probe_events_add(struct ftrace_instance *in, const struct ftrace_config *config, struct event_selection *sel)
{
    add_kprobes(in, config, sel);
    if (config->packet_headers)
        add_packet_headers(in, sel);
}
