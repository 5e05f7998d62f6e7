/* The events of an instance: formats, programs, and who uses them. */
#include "capture/probes/ftrace/event_set.h"

#include <stdio.h>

enum { MAX_EVENT_ID = 65536 };

void event_set_init(struct event_set *s, const struct tracefs *fs, uint32_t *next_dynamic_id)
{
    memset(s, 0, sizeof *s);
    s->fs = fs;
    s->next_dynamic_id = next_dynamic_id;
}

void event_set_free(struct event_set *s)
{
    vec_free(&s->events);
    mem_free(s->by_id);
    arena_free(&s->memory);
    s->by_id = NULL;
}

static struct kernel_event *find(const struct event_set *s, const char *group, const char *name)
{
    for (size_t i = 0; i < s->events.n; i++)
        if (strcmp(s->events.p[i]->name, name) == 0 && strcmp(s->events.p[i]->group, group) == 0)
            return s->events.p[i];
    return NULL;
}

static int read_format(const struct event_set *s, const char *group, const char *name, struct format_file *f,
                       char **text, struct error *err)
{
    char path[512];
    size_t len;
    if (snprintf(path, sizeof path, "events/%s/%s/format", group, name) >= (int)sizeof path)
        return error_set(err, -MRD_ENOTFOUND, "no such event");
    if (!tracefs_exists(s->fs, path))
        return error_set(err, -MRD_ENOTFOUND, "the kernel has no event %s/%s", group, name);
    int rc = tracefs_read(s->fs, path, text, &len, err);
    if (rc)
        return rc;
    rc = format_file_parse(f, slice_of(*text, len), err);
    if (!rc && !slice_eq_str(f->name, name))
        rc = error_set(err, -MRD_EFORMAT, "the format file is of another event");
    return rc;
}

/* The compact forms of the two scheduler events. */
static void set_compact(struct event_set *s, struct kernel_event *e, const struct format_file *f)
{
    bool is_switch = e->program.proto_id == FTRACE_EVENT_SCHED_SWITCH;
    if (!is_switch && e->program.proto_id != FTRACE_EVENT_SCHED_WAKING)
        return;
    e->can_compact = is_switch ? compact_switch_offsets(f, &s->compact) : compact_waking_offsets(f, &s->compact);
    e->compact = e->program;
    e->compact.kind = is_switch ? PROGRAM_COMPACT_SWITCH : PROGRAM_COMPACT_WAKING;
}

static int add(struct event_set *s, struct kernel_event *e, const struct format_file *f, struct error *err)
{
    e->id = (uint16_t)f->id;
    if (!s->by_id && !(s->by_id = mem_zalloc(MAX_EVENT_ID * sizeof *s->by_id)))
        return error_set(err, -MRD_ENOMEM, "out of memory for events");
    if (s->by_id[e->id])
        return error_set(err, -MRD_EFORMAT, "ID %u is that of %s/%s already", e->id, s->by_id[e->id]->group,
                         s->by_id[e->id]->name);
    if (!vec_push(&s->events, e))
        return error_set(err, -MRD_ENOMEM, "out of memory for events");
    s->by_id[e->id] = e;
    return 0;
}

static int compile(struct event_set *s, struct kernel_event *e, const struct format_file *f, struct error *err)
{
    uint32_t dynamic_id = *s->next_dynamic_id;
    int rc = event_program_compile(&e->program, f, e->group, PROGRAM_TYPED_OR_GENERIC, dynamic_id, &s->memory, err);
    if (rc)
        return rc;
    e->typed = e->program.descriptor.len == 0;
    if (!e->typed) {
        rc = event_program_compile(&e->legacy, f, e->group, PROGRAM_LEGACY, dynamic_id, &s->memory, err);
        if (rc)
            return rc;
        ++*s->next_dynamic_id;
    }
    set_compact(s, e, f);
    e->throttled = e->program;
    if (strcmp(e->group, "kmem") == 0 && strcmp(e->name, "rss_stat") == 0)
        (void)event_program_throttle_rss(&e->throttled, f);
    return 0;
}

static int make(struct event_set *s, const char *group, const char *name, const char *probe, unsigned type,
                struct kernel_event **event, struct error *err)
{
    struct format_file f;
    char *text = NULL;
    struct kernel_event *e = find(s, group, name);
    *event = e;
    if (e)
        return 0;
    int rc = read_format(s, group, name, &f, &text, err);
    if (!rc) {
        e = arena_zalloc(&s->memory, sizeof *e);
        if (e) {
            e->group = arena_strndup(&s->memory, group, strlen(group));
            e->name = arena_strndup(&s->memory, name, strlen(name));
        }
        if (!e || !e->group || !e->name)
            rc = error_set(err, -MRD_ENOMEM, "out of memory for events");
    }
    if (!rc)
        rc =
            probe ? event_program_kprobe(&e->program, &f, group, probe, type, &s->memory, err) : compile(s, e, &f, err);
    if (!rc && probe)
        e->typed = true;
    if (!rc)
        rc = add(s, e, &f, err);
    if (!rc)
        *event = e;
    mem_free(text);
    return rc;
}

int event_set_get(struct event_set *s, const char *group, const char *name, struct kernel_event **event,
                  struct error *err)
{
    return make(s, group, name, NULL, 0, event, err);
}

int event_set_get_kprobe(struct event_set *s, const char *group, const char *name, const char *probe, unsigned type,
                         struct kernel_event **event, struct error *err)
{
    return make(s, group, name, probe, type, event, err);
}

static int write_enable(struct event_set *s, const struct kernel_event *e, const char *value, struct error *err)
{
    char path[512];
    if (strcmp(e->group, "ftrace") == 0) /* print and its like are always on and have no such file */
        return 0;
    snprintf(path, sizeof path, "events/%s/%s/enable", e->group, e->name);
    return tracefs_write(s->fs, path, TRACEFS_WRITE, value, err);
}

int event_set_enable(struct event_set *s, struct kernel_event *event, struct error *err)
{
    int rc = event->users ? 0 : write_enable(s, event, "1", err);
    if (!rc)
        event->users++;
    return rc;
}

void event_set_disable(struct event_set *s, struct kernel_event *event)
{
    if (event->users && --event->users == 0)
        (void)write_enable(s, event, "0", NULL); /* fails only when the event has gone away with its module */
}
