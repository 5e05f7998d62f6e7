/* Owns the import of CTF traces: collecting them, relating their clocks, pushing and parsing events. */
#include "importer/ctf/ctf_internal.h"

#include "importer/ctf/ctf_packets.h"
#include "importer/sort/sorter.h"
#include "importer/track/process_tracker.h"
#include "importer/track/sched_tracker.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Events per host: one queue a stream file. */
struct ctf_queue {
    struct ctf_import *c;
    struct machine_ctx *m;
    const struct ctf_trace *trace;
    uint32_t first_class; /* of the trace, in ctf_import.classes */
    struct ctf_reader r;  /* slots of its own, for parsing */
    ctf_items context, fields;
};

struct ctf_host {
    const struct ctf_trace *trace; /* the first one of the host */
    struct machine_ctx *m;
};

struct ctf_import {
    struct importer *im;
    ctf_traces traces;
    VEC(uint32_t)
    host_of; /* per trace */
    VEC(struct ctf_host)
    hosts;
    VEC(struct ctf_class_use)
    classes;
    VEC(uint32_t)
    first_class; /* per trace */
    VEC(struct ctf_queue *)
    queues;
    struct sync_session session;
    bool synchronised;
};

struct ctf_class_use *ctf_class_by_id(struct ctf_import *c, uint32_t id)
{
    return id < c->classes.n ? &c->classes.p[id] : NULL;
}

struct importer *ctf_importer(struct ctf_import *c)
{
    return c->im;
}

const struct sync_session *ctf_import_session(const struct importer *im)
{
    return im->ctf && im->ctf->synchronised ? &im->ctf->session : NULL;
}

int ctf_import_add(struct importer *im, const char *path, struct error *err)
{
    if (!im->ctf) {
        im->ctf = mem_zalloc(sizeof *im->ctf);
        if (!im->ctf)
            return error_set(err, -MRD_ENOMEM, "out of memory");
        im->ctf->im = im;
        args_set_decoder(&im->st->args, CTF_ARGS_KIND, ctf_decode_args, im->ctf);
    }
    return ctf_open_all(path, &im->ctf->traces, err);
}

uint64_t ctf_import_bytes(const struct importer *im)
{
    uint64_t sum = 0;
    for (size_t i = 0; im->ctf && i < im->ctf->traces.n; i++)
        sum += im->ctf->traces.p[i]->bytes;
    return sum;
}

static bool same_host(const struct ctf_trace *a, const struct ctf_trace *b)
{
    return strcmp(ctf_trace_hostname(a), ctf_trace_hostname(b)) == 0 &&
           strcmp(ctf_trace_clock_uuid(a), ctf_trace_clock_uuid(b)) == 0 &&
           (*ctf_trace_hostname(a) || *ctf_trace_clock_uuid(a));
}

static bool find_hosts(struct ctf_import *c)
{
    for (size_t i = 0; i < c->traces.n; i++) {
        uint32_t host = 0;
        while (host < c->hosts.n && !same_host(c->hosts.p[host].trace, c->traces.p[i]))
            host++;
        if (host == c->hosts.n && !vec_push(&c->hosts, (struct ctf_host){c->traces.p[i], NULL}))
            return false;
        if (!vec_push(&c->host_of, host))
            return false;
    }
    return true;
}

/* Trace Compass takes the host with the smaller clock uuid as reference: hosts are put in that order. */
static int by_clock(const void *pa, const void *pb)
{
    const struct ctf_trace *a = *(struct ctf_trace *const *)pa, *b = *(struct ctf_trace *const *)pb;
    int order = strcmp(ctf_trace_clock_uuid(a), ctf_trace_clock_uuid(b));
    return order ? order : strcmp(a->path, b->path);
}

static bool find_classes(struct ctf_import *c)
{
    for (size_t i = 0; i < c->traces.n; i++) {
        const struct ctf_trace *t = c->traces.p[i];
        if (!vec_push(&c->first_class, (uint32_t)c->classes.n))
            return false;
        for (size_t k = 0; k < t->metadata.events.n; k++) {
            const struct ctf_event_class *class = t->metadata.events.p[k];
            struct ctf_class_use use = {.class = class,
                                        .trace = t,
                                        .packet = ctf_packet_layout_of(class),
                                        .handler = lttng_handler_of(class->name),
                                        .name = import_str(c->im, class->name),
                                        .id = (uint32_t)c->classes.n,
                                        .on_demand = ctf_fields_position_free(class),
                                        .share = true};
            if (!vec_push(&c->classes, use))
                return false;
        }
    }
    return true;
}

static bool find_machines(struct ctf_import *c)
{
    struct storage *st = c->im->st;
    for (size_t i = 0; i < c->hosts.n; i++) {
        struct ctf_host *h = &c->hosts.p[i];
        const struct ctf_metadata *meta = &h->trace->metadata;
        const char *name = ctf_env_get(meta, "hostname"), *clock = ctf_trace_clock_uuid(h->trace);
        uint64_t hash = hash_combine(hash_bytes(name, strlen(name)), hash_bytes(clock, strlen(clock)));
        bool first = !c->im->host_seen;
        c->im->host_seen = true;
        h->m = importer_machine(c->im, first ? 0 : (uint32_t)hash ? (uint32_t)hash : 1);
        if (!h->m)
            return false;
        const struct {
            uint32_t column;
            const char *env;
        } columns[] = {{machine_c_name, "hostname"},
                       {machine_c_sysname, "sysname"},
                       {machine_c_release, "kernel_release"},
                       {machine_c_version, "kernel_version"}};
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
            const char *text = ctf_env_get(meta, columns[k].env);
            if (*text)
                table_set(&st->t[T_machine], columns[k].column, h->m->id, import_str(c->im, text));
        }
        sscanf(ctf_env_get(meta, "kernel_release"), "%" SCNu32 ".%" SCNu32, &h->m->kernel_major, &h->m->kernel_minor);
    }
    return true;
}

/* First walk: only the packets that hosts exchanged. */
static int collect_packets(struct ctf_import *c)
{
    for (size_t i = 0; i < c->traces.n; i++) {
        const struct ctf_trace *t = c->traces.p[i];
        for (size_t k = 0; k < t->streams.n; k++) {
            struct ctf_stream s;
            int rc = ctf_stream_open(&s, &t->metadata, t->streams.p[k].bytes);
            const struct ctf_event *e;
            while (!rc && (e = ctf_stream_next(&s))) {
                const struct ctf_class_use *use = &c->classes.p[c->first_class.p[i] + e->class->index];
                enum packet_direction direction;
                struct packet_key key;
                if (use->packet && ctf_packet_of(use->packet, e, &direction, &key))
                    rc = sync_session_packet(&c->session, c->host_of.p[i], direction, e->ts_ns, key);
            }
            ctf_stream_close(&s);
            if (rc)
                return rc;
        }
    }
    return 0;
}

/* What LTTng recordings keep: a clock good to a thousandth (NTP slews by half of that at most). */
static const struct sync_limits default_limits = {.slope_ppb = 1000000};

/* The host that the user named, by number; an unknown name falls back to the choice by least error. */
static int reference_host(const struct ctf_import *c)
{
    for (size_t i = 0; c->im->opt.sync_reference && i < c->hosts.n; i++)
        if (strcmp(ctf_trace_hostname(c->hosts.p[i].trace), c->im->opt.sync_reference) == 0)
            return (int)i;
    return SYNC_NO_HOST;
}

static int synchronise(struct ctf_import *c)
{
    if (c->hosts.n < 2)
        return 0;
    int rc = collect_packets(c);
    if (!rc)
        rc = sync_session_solve(&c->session, (uint32_t)c->hosts.n, (enum sync_method)c->im->opt.sync_method,
                                c->im->opt.sync_method == SYNC_METHOD_EXACT ? default_limits : (struct sync_limits){0},
                                reference_host(c));
    if (rc)
        return rc;
    uint32_t *machines = mem_alloc(c->hosts.n * sizeof *machines);
    if (!machines)
        return -MRD_ENOMEM;
    for (size_t i = 0; i < c->hosts.n; i++)
        machines[i] = c->hosts.p[i].m->id;
    c->synchronised = true;
    sync_session_write(&c->session, c->im->st, machines);
    for (size_t i = 0; i < c->hosts.n; i++)
        if (c->session.network.hosts.p[i].island == 0)
            c->hosts.p[i].m->clock_related = true;
        else
            import_log(c->hosts.p[i].m, STAT_clock_sync_unrelatable_clock_domains, COL_NULL, -1, 0);
    mem_free(machines);
    return 0;
}

static void parse_run(void *owner, const struct sort_event *events, size_t n);

static struct ctf_queue *open_queue(struct ctf_import *c, size_t trace)
{
    struct ctf_queue *q = mem_zalloc(sizeof *q);
    if (!q || !vec_push(&c->queues, q)) {
        mem_free(q);
        return NULL;
    }
    q->c = c;
    q->m = c->hosts.p[c->host_of.p[trace]].m;
    q->trace = c->traces.p[trace];
    q->first_class = c->first_class.p[trace];
    q->r.slots = mem_zalloc((size_t)(q->trace->metadata.n_slots + 1) * sizeof *q->r.slots);
    return q->r.slots ? q : NULL;
}

static void count_losses(const struct ctf_queue *q, const struct ctf_losses *l, int32_t stream)
{
    const struct {
        enum stat_key key;
        uint64_t value;
    } counts[] = {{STAT_ctf_events_discarded, l->events_discarded},
                  {STAT_ctf_packets_lost, l->packets_lost},
                  {STAT_ctf_packets_damaged, l->packets_damaged},
                  {STAT_ctf_bytes_damaged, l->bytes_damaged}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].value)
            stats_add_idx(&q->m->st->stats, q->m->id, counts[i].key, stream, (int64_t)counts[i].value);
}

/* Where an event's contents begin travels in 64 bits: the packet's address and cpu in a, bit position and class in b.
 */
enum { ADDRESS_BITS = 48 };

static int push_stream(struct ctf_import *c, size_t trace, size_t stream)
{
    const struct ctf_trace *t = c->traces.p[trace];
    struct ctf_queue *q = open_queue(c, trace);
    uint32_t queue = q ? sorter_add_queue(c->im->sorter, parse_run, q) : UINT32_MAX;
    struct ctf_stream s;
    if (queue == UINT32_MAX || ctf_stream_open(&s, &t->metadata, t->streams.p[stream].bytes) != 0)
        return -MRD_ENOMEM;
    const struct ctf_event *e;
    while ((e = ctf_stream_next(&s))) {
        int64_t ts = e->ts_ns;
        if (c->synchronised)
            ts = sync_network_to_reference(&c->session.network, c->host_of.p[trace], ts, NULL);
        sorter_push(c->im->sorter, queue,
                    (struct sort_event){ts, (uint64_t)(uintptr_t)s.r.packet | (uint64_t)e->cpu << ADDRESS_BITS,
                                        s.contents_at << 32 | (uint32_t)e->class->index});
    }
    count_losses(q, &s.losses, (int32_t)stream);
    ctf_stream_close(&s);
    return 0;
}

static void insert_event(struct ctf_queue *q, const struct ctf_row *row, struct ctf_class_use *use, uint64_t fields_at)
{
    if (q->c->im->opt.no_ftrace_raw)
        return;
    struct slice payload = {0};
    if (fields_at % 8 == 0)
        payload = slice_of(q->r.packet + fields_at / 8, (size_t)((q->r.pos + 7) / 8 - fields_at / 8));
    uint32_t args = ctf_args(q->c->im, use, payload, row->fields);
    ftrace_event_insert(q->m->st, &(struct ftrace_event_row){.ts = row->ts,
                                                             .name = use->name,
                                                             .utid = row->utid,
                                                             .arg_set_id = args,
                                                             .common_flags = 0,
                                                             .ucpu = machine_ucpu(q->m, row->cpu)});
}

static void parse_one(struct ctf_queue *q, const struct sort_event *e)
{
    struct ctf_class_use *use = &q->c->classes.p[q->first_class + (uint32_t)e->b];
    const struct ctf_stream_class *stream = use->class->stream;
    const uint64_t address_mask = ((uint64_t)1 << ADDRESS_BITS) - 1;
    q->r.packet = (const uint8_t *)(uintptr_t)(e->a & address_mask);
    q->r.pos = e->b >> 32;
    q->r.end = UINT64_MAX / 2; /* it was read once, within its bounds */
    q->r.bad = false;
    vec_clear(&q->context);
    vec_clear(&q->fields);
    ctf_read(&q->r, stream->event_context, &q->context);
    ctf_read(&q->r, use->class->context, &q->context);
    if (use->class->fields)
        q->r.pos = (q->r.pos + use->class->fields->align - 1) & ~(uint64_t)(use->class->fields->align - 1);
    uint64_t fields_at = q->r.pos;
    ctf_read(&q->r, use->class->fields, &q->fields);
    struct ctf_row row = {
        .m = q->m, .ts = e->ts, .cpu = (uint32_t)(e->a >> ADDRESS_BITS), .fields = &q->fields, .context = &q->context};
    int64_t tid;
    bool has_tid = ctf_item_int(&q->context, "tid", &tid) || ctf_item_int(&q->context, "vtid", &tid);
    uint32_t running = sched_tracker_running(q->m->sched, row.cpu);
    row.utid = has_tid                ? process_tracker_thread(q->m->processes, tid)
               : running != UTID_NONE ? running
                                      : process_tracker_idle_utid(q->m->processes);
    insert_event(q, &row, use, fields_at);
    if (use->handler)
        lttng_handle(use->handler, &row, use->class->name);
}

static void parse_run(void *owner, const struct sort_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++)
        parse_one(owner, &events[i]);
}

int ctf_import_finish(struct importer *im, struct error *err)
{
    struct ctf_import *c = im->ctf;
    if (!c || !c->traces.n)
        return 0;
    qsort(c->traces.p, c->traces.n, sizeof *c->traces.p, by_clock);
    int rc = find_hosts(c) && find_classes(c) && find_machines(c) ? synchronise(c) : -MRD_ENOMEM;
    sorter_force_full_sort(im->sorter);
    for (size_t i = 0; !rc && i < c->traces.n; i++)
        for (size_t k = 0; !rc && k < c->traces.p[i]->streams.n; k++)
            rc = push_stream(c, i, k);
    return rc ? error_set(err, rc, "%s", error_code_text(rc)) : 0;
}

void ctf_import_close(struct importer *im)
{
    struct ctf_import *c = im->ctf;
    if (!c)
        return;
    for (size_t i = 0; i < c->queues.n; i++) {
        mem_free(c->queues.p[i]->r.slots);
        vec_free(&c->queues.p[i]->context);
        vec_free(&c->queues.p[i]->fields);
        mem_free(c->queues.p[i]);
    }
    for (size_t i = 0; i < c->traces.n; i++)
        ctf_trace_close(c->traces.p[i]);
    vec_free(&c->queues);
    vec_free(&c->traces);
    vec_free(&c->host_of);
    vec_free(&c->hosts);
    vec_free(&c->classes);
    vec_free(&c->first_class);
    sync_session_free(&c->session);
    mem_free(c);
    im->ctf = NULL;
}
