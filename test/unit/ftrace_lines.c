/* Comparing decoded events with the kernel's text trace. */
#include "ftrace_lines.h"

#include "kernel/event_program.h"

#include <stdlib.h>

/* ---- decoding ---- */

struct descriptor {
    uint32_t id;
    struct slice message; /* DescriptorProto */
};

typedef VEC(struct descriptor) descriptor_list;

static void copy_text(char *out, size_t size, struct slice s)
{
    snprintf(out, size, "%.*s", (int)s.len, s.p ? (const char *)s.p : "");
}

static void add_field(struct decoded_event *e, const char *name, size_t name_len, bool is_text, uint64_t value,
                      struct slice text)
{
    if (e->n_fields == sizeof e->fields / sizeof *e->fields)
        return;
    struct decoded_field *f = &e->fields[e->n_fields++];
    copy_text(f->name, sizeof f->name, slice_of(name, name_len));
    f->is_text = is_text;
    f->value = value;
    f->text = text;
}

static void decode_typed(struct decoded_event *e, const struct ftrace_event_desc *d, struct slice payload)
{
    struct pb_cursor c = pb_cursor(payload);
    struct pb_field f;
    snprintf(e->name, sizeof e->name, "%s", d->tracefs_name ? d->tracefs_name : d->name);
    while (pb_next(&c, &f)) {
        const struct ftrace_field_desc *fd = ftrace_field_by_id(d, f.id);
        ck_assert_msg(fd != NULL, "%s has no field %u", d->name, f.id);
        add_field(e, fd->name, strlen(fd->name), f.wire == PB_BYTES, pb_u64(&f), pb_bytes(&f));
    }
    ck_assert(!c.bad);
}

static void decode_legacy(struct decoded_event *e, struct slice payload)
{
    struct pb_cursor c = pb_cursor(payload);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == 1) {
            copy_text(e->name, sizeof e->name, pb_bytes(&f));
            continue;
        }
        struct slice field = pb_bytes(&f), name = message_bytes(field, 1);
        bool is_text = message_has(field, 3);
        add_field(e, (const char *)name.p, name.len, is_text,
                  message_has(field, 4) ? message_u64(field, 4) : message_u64(field, 5), message_bytes(field, 3));
    }
}

static void decode_dynamic(struct decoded_event *e, struct slice descriptor, struct slice payload)
{
    struct pb_cursor c = pb_cursor(payload);
    struct pb_field f;
    copy_text(e->name, sizeof e->name, message_bytes(descriptor, 1));
    while (pb_next(&c, &f)) {
        struct pb_cursor d = pb_cursor(descriptor);
        struct pb_field g;
        while (pb_next(&d, &g)) {
            if (g.id != 2 || message_u64(pb_bytes(&g), 3) != f.id)
                continue;
            struct slice name = message_bytes(pb_bytes(&g), 1);
            add_field(e, (const char *)name.p, name.len, f.wire == PB_BYTES, pb_u64(&f), pb_bytes(&f));
        }
    }
}

static void decode_event(struct slice event, uint32_t cpu, const descriptor_list *descriptors, decoded_list *out)
{
    struct pb_cursor c = pb_cursor(event);
    struct pb_field f;
    struct decoded_event *e = vec_add(out);
    ck_assert_ptr_nonnull(e);
    e->cpu = cpu;
    while (pb_next(&c, &f)) {
        const struct ftrace_event_desc *d;
        if (f.id == FTRACE_EVENT_TIMESTAMP) {
            e->ts = f.u;
        } else if (f.id == FTRACE_EVENT_PID) {
            e->pid = pb_u32(&f);
        } else if (f.id == FTRACE_EVENT_GENERIC) {
            decode_legacy(e, pb_bytes(&f));
        } else if ((d = ftrace_event_by_id(f.id)) != NULL) {
            decode_typed(e, d, pb_bytes(&f));
        } else {
            for (size_t i = 0; i < descriptors->n; i++)
                if (descriptors->p[i].id == f.id)
                    decode_dynamic(e, descriptors->p[i].message, pb_bytes(&f));
        }
    }
    ck_assert_msg(!c.bad && e->name[0], "an event that cannot be decoded");
}

static bool next_of(struct pb_cursor *c, uint64_t *v)
{
    return pb_next_packed(c, v);
}

static void decode_compact(struct slice compact, uint32_t cpu, decoded_list *out)
{
    static const struct {
        uint32_t timestamps, comms;
        const char *name, *comm_name;
        struct {
            uint32_t list;
            const char *name;
        } fields[4];
    } kinds[] = {
        {1, 6, "sched_switch", "next_comm", {{2, "prev_state"}, {3, "next_pid"}, {4, "next_prio"}, {0, NULL}}},
        {7, 11, "sched_waking", "comm", {{8, "pid"}, {9, "target_cpu"}, {10, "prio"}, {0, NULL}}},
    };
    VEC(struct slice)
    comms = {0};
    struct pb_cursor c = pb_cursor(compact);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == 5)
            vec_push(&comms, pb_bytes(&f));
    for (int k = 0; k < 2; k++) {
        struct pb_cursor ts = pb_cursor(message_bytes(compact, kinds[k].timestamps));
        struct pb_cursor comm = pb_cursor(message_bytes(compact, kinds[k].comms));
        struct pb_cursor lists[3];
        uint64_t now = 0, delta, v;
        for (int i = 0; i < 3; i++)
            lists[i] = pb_cursor(message_bytes(compact, kinds[k].fields[i].list));
        while (next_of(&ts, &delta)) {
            struct decoded_event *e = vec_add(out);
            e->cpu = cpu;
            e->ts = now += delta;
            e->pid = UINT32_MAX; /* not stored */
            snprintf(e->name, sizeof e->name, "%s", kinds[k].name);
            for (int i = 0; i < 3; i++) {
                ck_assert(next_of(&lists[i], &v));
                add_field(e, kinds[k].fields[i].name, strlen(kinds[k].fields[i].name), false, v, slice_of(NULL, 0));
            }
            ck_assert(next_of(&comm, &v));
            ck_assert_uint_lt(v, comms.n);
            add_field(e, kinds[k].comm_name, strlen(kinds[k].comm_name), true, 0, comms.p[v]);
        }
    }
    vec_free(&comms);
}

void decode_packets(const struct memory_sink *m, decoded_list *out)
{
    for (size_t i = 0; i < memory_sink_count(m); i++) {
        struct slice bundle = memory_sink_field(m, i, 1);
        descriptor_list descriptors = {0};
        struct pb_cursor c = pb_cursor(bundle);
        struct pb_field f;
        uint32_t cpu = (uint32_t)message_u64(bundle, 1);
        ck_assert(!message_has(bundle, 8)); /* no parse errors */
        while (pb_next(&c, &f))
            if (f.id == 11)
                vec_push(&descriptors,
                         (struct descriptor){(uint32_t)message_u64(pb_bytes(&f), 1), message_bytes(pb_bytes(&f), 2)});
        for (c = pb_cursor(bundle); pb_next(&c, &f);) {
            if (f.id == 2)
                decode_event(pb_bytes(&f), cpu, &descriptors, out);
            else if (f.id == 4)
                decode_compact(pb_bytes(&f), cpu, out);
        }
        vec_free(&descriptors);
    }
}

/* ---- comparing ---- */

enum { MAX_CPUS = 64 };

struct text_event {
    uint64_t us;
    uint32_t cpu, pid;
    const char *name, *fields; /* NUL-terminated, in the text */
};

/* "            bash-27312   [000] .....  3873.421189: sys_enter: id=0xd (13)" */
static bool parse_line(char *line, struct text_event *e)
{
    char *bracket = line;
    unsigned cpu;
    unsigned long long s, us;
    int used = 0;
    if (line[0] == '#')
        return false;
    while ((bracket = strstr(bracket, " [")) && sscanf(bracket, " [%3u]%n", &cpu, &used) != 1)
        bracket++;
    if (!bracket)
        return false;
    *bracket = 0;
    char *dash = strrchr(line, '-');
    if (!dash)
        return false;
    e->pid = (uint32_t)strtoul(dash + 1, NULL, 10);
    e->cpu = cpu;
    char *p = bracket + used;
    p += strspn(p, " ");
    p += strcspn(p, " "); /* flags */
    if (sscanf(p, " %llu.%6llu:%n", &s, &us, &used) != 2)
        return false;
    e->us = s * 1000000 + us;
    p += used;
    p += strspn(p, " ");
    e->name = p;
    p += strcspn(p, ":");
    if (*p)
        *p++ = 0;
    e->fields = p;
    return true;
}

/* The text behind " NAME=", NULL when the line has no such field. */
static const char *text_field(const char *fields, const char *name)
{
    char key[80];
    int n = snprintf(key, sizeof key, " %s=", name);
    const char *p = strstr(fields, key);
    return p ? p + n : NULL;
}

/* "0x1b7d (7037)", "(1)", or a kernel address with or without its symbol. */
static bool numbers_agree(const char *text, uint64_t value)
{
    char *end;
    uint64_t hex;
    if (text[0] == '(') {
        hex = (uint64_t)strtoll(text + 1, NULL, 10);
    } else {
        if (strncmp(text, "0x", 2) != 0)
            return true; /* a symbol or a name: our value is a number that stands for it */
        hex = strtoull(text, &end, 16);
        if (hex >> 47) /* a kernel address; ours is the number of that address. Or a negative 64-bit value: */
            return value < 1 << 24 || value == hex;
    }
    if (value == hex || (uint32_t)value == hex || (uint16_t)value == hex || (uint8_t)value == hex)
        return true;
    return event_program_device((uint32_t)hex) == value;
}

static bool compare_fields(const struct decoded_event *e, const struct text_event *t, struct comparison *c)
{
    for (size_t i = 0; i < e->n_fields; i++) {
        const struct decoded_field *f = &e->fields[i];
        const char *text = text_field(t->fields, f->name);
        if (!text || strncmp(text, "<INVALID", 8) == 0 || strncmp(text, "<TRUNCATED", 10) == 0)
            continue;                                   /* the kernel's text leaves arrays out */
        if (f->is_text && strncmp(text, "(0x", 3) == 0) /* by address: "(0xffff…:text)" */
            text += strcspn(text, ":") + 1;
        if (f->is_text ? strncmp(text, (const char *)f->text.p, f->text.len) != 0 : !numbers_agree(text, f->value)) {
            snprintf(c->difference, sizeof c->difference, "%s.%s: %llu \"%.*s\" against %.200s", e->name, f->name,
                     (unsigned long long)f->value, (int)f->text.len, (const char *)f->text.p, text);
            return false;
        }
        c->fields++;
    }
    return true;
}

static int by_cpu_and_time(const void *a, const void *b)
{
    const struct decoded_event *x = a, *y = b;
    if (x->cpu != y->cpu)
        return x->cpu < y->cpu ? -1 : 1;
    return x->ts < y->ts ? -1 : x->ts > y->ts;
}

static unsigned count_name(const char **names, unsigned n, const char *name)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return n;
    if (n < 2000)
        names[n++] = name;
    return n;
}

/* Finds the event of a text line among those of its cpu at that microsecond: compact lists and other events have equal
 * times only when they were written in the same nanosecond, and then their order is open. */
static struct decoded_event *match(decoded_list *events, bool *taken, size_t from, const struct text_event *t)
{
    for (size_t i = from; i < events->n && i < from + 64; i++) {
        struct decoded_event *e = &events->p[i];
        if (!taken[i] && e->cpu == t->cpu && (e->ts + 500) / 1000 == t->us && strcmp(e->name, t->name) == 0 &&
            (e->pid == t->pid || e->pid == UINT32_MAX)) {
            taken[i] = true;
            return e;
        }
    }
    return NULL;
}

/* Sorts the events; first[cpu] is where those of a cpu begin. */
static void sort_by_cpu(decoded_list *events, size_t first[MAX_CPUS])
{
    size_t at = 0;
    if (events->n)
        qsort(events->p, events->n, sizeof *events->p, by_cpu_and_time);
    for (uint32_t cpu = 0; cpu < MAX_CPUS; cpu++) {
        while (at < events->n && events->p[at].cpu < cpu)
            at++;
        first[cpu] = at;
    }
}

bool compare_with_text(decoded_list *events, char *text, struct comparison *c)
{
    static const char *names[2000];
    size_t next[MAX_CPUS];
    char *save = NULL;
    bool *taken = calloc(events->n + 1, 1);
    *c = (struct comparison){0};
    sort_by_cpu(events, next);
    for (char *line = strtok_r(text, "\n", &save); line && !*c->difference; line = strtok_r(NULL, "\n", &save)) {
        struct text_event t;
        if (!parse_line(line, &t))
            continue;
        ck_assert_uint_lt(t.cpu, MAX_CPUS);
        if (strcmp(t.name, "tracing_mark_write") == 0 || strncmp(t.name, "UNKNOWN TYPE", 12) == 0)
            t.name = "print"; /* the one event that the "fields" format has no name for */
        size_t *from = &next[t.cpu];
        struct decoded_event *e = match(events, taken, *from, &t);
        if (!e) {
            snprintf(c->difference, sizeof c->difference,
                     "cpu %u at %llu us: the text has %.80s of %u (%.200s), we have %.80s at %llu", t.cpu,
                     (unsigned long long)t.us, t.name, t.pid, t.fields,
                     *from < events->n ? events->p[*from].name : "nothing",
                     *from < events->n ? (unsigned long long)events->p[*from].ts : 0);
            break;
        }
        while (*from < events->n && taken[*from])
            ++*from;
        if (compare_fields(e, &t, c))
            c->types = count_name(names, c->types, t.name);
        c->lines++;
    }
    if (!*c->difference && c->lines != events->n)
        snprintf(c->difference, sizeof c->difference, "the text has %zu events, we have %zu", c->lines, events->n);
    free(taken);
    return !*c->difference;
}
