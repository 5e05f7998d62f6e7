/* Prints the events of a CTF trace as babeltrace does, one a line, in file order: what the CTF reader is compared by.
 *
 *     ctf_dump 1 DIR      as `babeltrace --clock-seconds --no-delta`
 *     ctf_dump 2 DIR      as `babeltrace2 --clock-seconds --no-delta`
 *     ctf_dump count DIR  decodes every field and prints only how many events there are
 */
#include "importer/ctf/ctf_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Where the printing stands in the items of an event. */
struct walk {
    const struct ctf_item *at;
    bool variant_names; /* babeltrace 1 names the option of a variant */
};

static void print_text(struct slice s)
{
    printf("\"%.*s\"", (int)s.len, (const char *)s.p);
}

static void print_number(const struct ctf_type *t, const struct ctf_item *item)
{
    uint64_t mask = t->integer.bits == 64 ? UINT64_MAX : (1ull << t->integer.bits) - 1;
    switch (t->integer.base) {
    case 16:
        printf("0x%" PRIX64, item->u & mask);
        break;
    case 8:
        printf("0%" PRIo64, item->u & mask);
        break;
    default:
        if (t->integer.is_signed)
            printf("%" PRId64, item->i);
        else
            printf("%" PRIu64, item->u);
    }
}

static void print_enum(const struct ctf_type *t, const struct ctf_item *item)
{
    const char *label = ctf_enum_label(t, item->i);
    if (label)
        printf("( \"%s\" : container = ", label);
    else
        printf("( <unknown> : container = ");
    print_number(t, item);
    printf(" )");
}

static void print_value(struct walk *w, const struct ctf_type *t);

static void print_struct(struct walk *w, const struct ctf_type *t)
{
    printf("{ ");
    for (uint32_t i = 0; i < t->compound.n; i++) {
        printf("%s%s = ", i ? ", " : "", t->compound.fields[i].name);
        print_value(w, t->compound.fields[i].type);
    }
    printf("%s}", t->compound.n ? " " : "");
}

static void print_variant(struct walk *w, const struct ctf_type *t)
{
    for (uint32_t i = 0; i < t->compound.n; i++) {
        const struct ctf_field *option = &t->compound.fields[i];
        if (option->type != w->at->type)
            continue;
        printf("{ ");
        if (w->variant_names)
            printf("%s = ", option->name);
        print_value(w, option->type);
        printf(" }");
        return;
    }
}

static void print_list(struct walk *w, const struct ctf_type *t)
{
    if (w->at->kind == CTF_ITEM_TEXT) {
        print_text(w->at++->text);
        return;
    }
    printf("[ ");
    uint32_t i = 0;
    for (w->at++; w->at->kind != CTF_ITEM_CLOSE; i++) {
        printf("%s[%u] = ", i ? ", " : "", i);
        print_value(w, t->list.element);
    }
    w->at++;
    printf("%s]", i ? " " : "");
}

static void print_value(struct walk *w, const struct ctf_type *t)
{
    switch (t->kind) {
    case CTF_INTEGER:
    case CTF_VARIABLE:
        print_number(t, w->at++);
        break;
    case CTF_ENUM:
        print_enum(t, w->at++);
        break;
    case CTF_FLOAT:
        printf("%g", w->at++->d);
        break;
    case CTF_STRING:
    case CTF_TEXT:
    case CTF_BLOB:
        print_text(w->at++->text);
        break;
    case CTF_STRUCT:
        w->at++;
        print_struct(w, t);
        w->at++;
        break;
    case CTF_VARIANT:
        print_variant(w, t);
        break;
    case CTF_ARRAY:
    case CTF_SEQUENCE:
        print_list(w, t);
        break;
    case CTF_OPTIONAL:
        if (w->at->type == t->list.element)
            print_value(w, t->list.element);
        break;
    }
}

/* A struct whose items stand without its own borders, as events have them. */
static void print_part(struct walk *w, const struct ctf_type *t)
{
    if (!t)
        return;
    printf(", ");
    print_struct(w, t);
}

static void print_event(const struct ctf_trace *trace, const struct ctf_event *e, bool variant_names)
{
    printf("[%" PRId64 ".%09" PRId64 "] %s %s: { cpu_id = %u }", e->ts_ns / 1000000000, e->ts_ns % 1000000000,
           ctf_trace_hostname(trace), e->class->name, e->cpu);
    struct walk w = {e->context.p, variant_names};
    print_part(&w, e->stream->event_context);
    print_part(&w, e->class->context);
    w.at = e->fields.p;
    print_part(&w, e->class->fields);
    printf("\n");
}

static uint64_t dump(const struct ctf_trace *trace, const char *mode)
{
    uint64_t n = 0;
    for (size_t i = 0; i < trace->streams.n; i++) {
        struct ctf_stream s;
        const struct ctf_event *e;
        if (ctf_stream_open(&s, &trace->metadata, trace->streams.p[i].bytes) != 0)
            continue;
        for (; (e = ctf_stream_next(&s)); n++)
            if (*mode != 'c')
                print_event(trace, e, *mode == '1');
        fprintf(stderr, "%s stream %zu: %" PRIu64 " discarded, %" PRIu64 " packets lost, %" PRIu64 " damaged\n",
                trace->path, i, s.losses.events_discarded, s.losses.packets_lost, s.losses.packets_damaged);
        ctf_stream_close(&s);
    }
    return n;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    ctf_traces traces = {0};
    if (argc != 3) {
        fprintf(stderr, "usage: ctf_dump 1|2|count DIR\n");
        return 2;
    }
    int rc = ctf_open_all(argv[2], &traces, &err);
    uint64_t n = 0;
    for (size_t i = 0; i < traces.n; i++) {
        n += dump(traces.p[i], argv[1]);
        ctf_trace_close(traces.p[i]);
    }
    vec_free(&traces);
    if (*argv[1] == 'c')
        printf("%" PRIu64 "\n", n);
    if (rc)
        fprintf(stderr, "ctf_dump: %s\n", err.text);
    return rc ? 1 : 0;
}
