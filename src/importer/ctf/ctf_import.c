/* Imports CTF traces: collecting them, relating their clocks, pushing and parsing events. */
#include "importer/ctf/ctf_internal.h"

#include "importer/clock/recordings.h"
#include "importer/core/metadata.h"
#include "importer/ctf/ctf_order.h"
#include "importer/ctf/ctf_packets.h"
#include "importer/sort/sorter.h"
#include "importer/track/process_tracker.h"
#include "importer/track/sched_tracker.h"
#include "importer/track/track_tracker.h"

#include "base/by_id.h"
#include "base/hash.h"
#include "wire/pb_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Events per host: one queue a stream file. */
struct ctf_queue {
    struct ctf_import *c;
    struct machine_ctx *m;
    const struct ctf_trace *trace;
    struct slice file;    /* the stream */
    uint32_t first_class; /* of the trace, in ctf_import.classes */
    struct ctf_reader r;
    ctf_items context, fields;
    uint32_t cpu;
    int64_t ucpu; /* of `cpu`; -1: not looked up */
};

struct ctf_host {
    const struct ctf_trace *trace; /* the first one of the host */
    struct machine_ctx *m;
    uint32_t recording;    /* its number, when there are several */
    struct clock_id clock; /* that its events show */
    strid uids;            /* of its traces */
};

enum { KNOWN_TEXTS = 256, PUSHED_AT_ONCE = 256 };

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
    BY_ID(uint32_t)
    thread_tracks; /* utid -> track of its slices + 1 */
    BY_ID(struct ctf_call)
    calls; /* by utid */
    struct ctf_programs programs;
    struct ctf_known_text known_texts[KNOWN_TEXTS];
    struct kept_args kept;
    struct pb_writer message; /* for ftrace's handlers */
    int64_t *slots;           /* for parsing, as many as any trace needs */
    bool prepared;
    bool has_first_ts;
    int64_t first_ts; /* the earliest of the events with a time */
};

struct ctf_class_use *ctf_class_by_id(struct ctf_import *c, uint32_t id)
{
    return id < c->classes.n ? &c->classes.p[id] : NULL;
}

struct importer *ctf_importer(struct ctf_import *c)
{
    return c->im;
}

struct kept_args *ctf_kept_args(struct ctf_import *c)
{
    return &c->kept;
}

struct ctf_programs *ctf_programs(struct ctf_import *c)
{
    return &c->programs;
}

struct ctf_known_text *ctf_known_text(struct ctf_import *c, const uint64_t words[2])
{
    return &c->known_texts[hash_combine(words[0], words[1]) % KNOWN_TEXTS];
}

struct pb_writer *ctf_message(struct ctf_import *c)
{
    return &c->message;
}

struct ctf_call *ctf_call_of(struct ctf_import *c, uint32_t utid)
{
    struct ctf_call *call = by_id_make(&c->calls, utid);
    c->im->failed |= !call;
    return call;
}

static struct ctf_import *get_import(struct importer *im, struct error *err)
{
    if (im->ctf)
        return im->ctf;
    im->ctf = mem_zalloc(sizeof *im->ctf);
    if (!im->ctf) {
        error_set(err, -MRD_ENOMEM, "out of memory");
        return NULL;
    }
    im->ctf->im = im;
    im->ctf->kept = KEPT_ARGS(im);
    args_set_decoder(&im->st->args, CTF_ARGS_KIND, ctf_decode_args, im->ctf);
    args_set_decoder(&im->st->args, CTF_CALL_ARGS_KIND, lttng_decode_call, im->ctf);
    return im->ctf;
}

int ctf_import_add(struct importer *im, const char *path, struct error *err)
{
    struct ctf_import *c = get_import(im, err);
    return c ? ctf_open_all(path, &c->traces, err) : -MRD_ENOMEM;
}

int ctf_import_add_files(struct importer *im, const char *path, const struct ctf_file *files, size_t n,
                         struct error *err)
{
    struct ctf_import *c = get_import(im, err);
    return c ? ctf_open_files(path, files, n, &c->traces, err) : -MRD_ENOMEM;
}

uint64_t ctf_import_bytes(const struct importer *im)
{
    uint64_t sum = 0;
    for (size_t i = 0; im->ctf && i < im->ctf->traces.n; i++)
        sum += im->ctf->traces.p[i]->bytes;
    return sum;
}

size_t ctf_import_count(const struct importer *im)
{
    return im->ctf ? im->ctf->traces.n : 0;
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
        if (host == c->hosts.n && !vec_push(&c->hosts, (struct ctf_host){.trace = c->traces.p[i]}))
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

/* Was an event of this name recorded of the host of a trace? */
static bool host_has_event(const struct ctf_import *c, size_t trace, const char *name)
{
    for (size_t i = 0; i < c->traces.n; i++) {
        const struct ctf_metadata *meta = &c->traces.p[i]->metadata;
        for (size_t k = 0; c->host_of.p[i] == c->host_of.p[trace] && k < meta->events.n; k++)
            if (strcmp(meta->events.p[k]->name, name) == 0)
                return true;
    }
    return false;
}

/* What the events of a class mean to the kernel's tables and the thread's slices. */
static void choose_handler(struct ctf_import *c, size_t trace, struct ctf_class_use *use)
{
    const struct lttng_handler *h = lttng_handler_of(use->class->name);
    if (!h || (h->unless && host_has_event(c, trace, h->unless)))
        return;
    use->handler = h;
    use->thread_slices = h->of_thread;
    if (h->of_thread)
        use->slice_name = lttng_slice_name(c->im, h, use->class->name);
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
                                        .name = import_str(c->im, class->name),
                                        .id = (uint32_t)c->classes.n,
                                        .field_bits = ctf_fixed_bits(class->fields),
                                        .on_demand = ctf_fields_position_free(&c->traces.p[i]->metadata, class)};
            choose_handler(c, i, &use);
            ust_choose(c->im, &use);
            lttng_choose_ftrace(&use);
            ctf_place_fields(&use);
            use.reads_fields = !use.on_demand || use.packet || use.ust != UST_NONE || use.ftrace ||
                               (use.handler && (use.handler->items || !use.placed));
            if (!vec_push(&c->classes, use))
                return false;
        }
    }
    return true;
}

/* A machine's number of 32 bits that none of the hosts before has: another name may have the same hash. */
static uint32_t free_machine_id(const struct ctf_import *c, size_t host, uint32_t hash)
{
    uint32_t id = hash ? hash : 1;
    for (size_t k = 0; k < host; k++)
        if (c->hosts.p[k].m->raw_id == id) {
            id = id == UINT32_MAX ? 1 : id + 1;
            k = SIZE_MAX; /* once more from the first */
        }
    return id;
}

/* `alone`: the first host is the first machine of the load. */
static bool find_machines(struct ctf_import *c, bool alone)
{
    struct storage *st = c->im->st;
    for (size_t i = 0; i < c->hosts.n; i++) {
        struct ctf_host *h = &c->hosts.p[i];
        const struct ctf_metadata *meta = &h->trace->metadata;
        const char *name = ctf_env_get(meta, "hostname"), *clock = ctf_trace_clock_uuid(h->trace);
        uint64_t hash = hash_combine(hash_bytes(name, strlen(name)), hash_bytes(clock, strlen(clock)));
        bool first = alone && !c->im->host_seen;
        c->im->host_seen = true;
        h->m = importer_machine(c->im, first ? 0 : free_machine_id(c, i, (uint32_t)hash));
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
                    rc = recordings_packet(c->im, c->hosts.p[c->host_of.p[i]].recording, direction, e->ts_ns, key);
            }
            ctf_stream_close(&s);
            if (rc)
                return rc;
        }
    }
    return 0;
}

/* Clocks of hosts that have the same origin, which is not the epoch, show the same. */
static void relate_origins(struct ctf_import *c, size_t host)
{
    const struct ctf_clock *clock = ctf_trace_clock(c->hosts.p[host].trace);
    for (size_t i = 0; i < host && clock && clock->origin; i++) {
        const struct ctf_clock *other = ctf_trace_clock(c->hosts.p[i].trace);
        if (!other || !other->origin || strcmp(other->origin, clock->origin) != 0)
            continue;
        struct clock_reading same[] = {{.clock = c->hosts.p[i].clock}, {.clock = c->hosts.p[host].clock}};
        clock_graph_write_rows(c->im->clocks, same, 2, clock_graph_add_snapshot(c->im->clocks, same, 2));
        return;
    }
}

/* The uids of a host's traces, those of pieces once, with commas between. */
static void note_uids(struct ctf_import *c)
{
    struct strpool *strings = &c->im->st->strings;
    for (size_t i = 0; i < c->traces.n; i++) {
        const char *uid = ctf_trace_uid(c->traces.p[i]);
        struct ctf_host *h = &c->hosts.p[c->host_of.p[i]];
        bool told = !*uid;
        for (size_t k = 0; k < i && !told; k++)
            told = c->host_of.p[k] == c->host_of.p[i] && strcmp(ctf_trace_uid(c->traces.p[k]), uid) == 0;
        if (!told)
            h->uids = h->uids ? strpool_printf(strings, "%s,%s", strpool_cstr(strings, h->uids), uid)
                              : import_str(c->im, uid);
    }
    for (size_t i = 0; i < c->hosts.n; i++)
        if (c->hosts.p[i].uids)
            metadata_dynamic(c->im, c->hosts.p[i].m, import_str(c->im, "ctf_trace_uid"), COL_NULL, c->hosts.p[i].uids);
}

int ctf_import_prepare(struct importer *im, bool alone)
{
    struct ctf_import *c = im->ctf;
    if (!c || !c->traces.n)
        return 0;
    qsort(c->traces.p, c->traces.n, sizeof *c->traces.p, by_clock);
    int rc = find_hosts(c) && find_classes(c) && find_machines(c, alone) ? 0 : -MRD_ENOMEM;
    bool several = !alone || c->hosts.n > 1;
    for (size_t i = 0; i < c->hosts.n && !rc; i++) {
        struct ctf_host *h = &c->hosts.p[i];
        h->clock = ctf_add_clocks(im, h->m->id, h->trace, alone && i == 0);
        if (several)
            rc = recordings_add(im, ctf_trace_hostname(h->trace), &h->recording);
        if (several && !rc)
            recordings_place(im, h->recording, h->m->id, h->clock);
    }
    for (size_t i = 0; i < c->hosts.n && !rc; i++)
        relate_origins(c, i);
    if (!rc)
        note_uids(c);
    if (several && !rc)
        rc = collect_packets(c);
    c->prepared = rc == 0;
    return rc;
}

static void parse_run(void *owner, const struct sort_event *events, size_t n);

static struct ctf_queue *open_queue(struct ctf_import *c, size_t trace, size_t stream)
{
    struct ctf_queue *q = mem_zalloc(sizeof *q);
    if (!q || !vec_push(&c->queues, q)) {
        mem_free(q);
        return NULL;
    }
    q->c = c;
    q->m = c->hosts.p[c->host_of.p[trace]].m;
    q->trace = c->traces.p[trace];
    q->file = q->trace->streams.p[stream].bytes;
    q->first_class = c->first_class.p[trace];
    q->r.slots = c->slots;
    q->ucpu = -1;
    return q;
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

/* Events on their way to the sorter. */
struct pushing {
    struct ctf_import *c;
    uint32_t queue, n;
    struct clock_id clock;
    bool same; /* the clock is trace time; known from the second event on */
    struct sort_event events[PUSHED_AT_ONCE];
};

static void push_all(struct pushing *p)
{
    sorter_push_run(p->c->im->sorter, p->queue, p->events, p->n);
    p->n = 0;
}

/* The time of an event on the timeline, where its clock may be another. */
static bool convert_time(struct pushing *p, int64_t ns, int64_t *ts)
{
    struct clock_graph *g = p->c->im->clocks;
    if (clock_graph_to_trace_time(g, p->clock, ns, ts) != 0) {
        clock_graph_record_failure(g, p->clock, ns, -1);
        return false;
    }
    struct clock_id trace = clock_graph_trace_clock(g);
    p->same = p->clock.id == trace.id && p->clock.machine == trace.machine && p->clock.file == trace.file;
    return true;
}

/* That of an event without a time does not change from the event before. */
static bool time_of(struct pushing *p, const struct ctf_event *e, int64_t *last)
{
    struct ctf_import *c = p->c;
    int64_t ts = e->ts_ns;
    if (e->stream->no_clock)
        return true;
    if (__builtin_expect(!p->same, 0) && !convert_time(p, e->ts_ns, &ts))
        return false;
    if (ts < c->first_ts || !c->has_first_ts)
        c->first_ts = ts;
    c->has_first_ts = true;
    *last = ts;
    return true;
}

/* Where an event's contents begin travels in 64 bits: an address and the cpu in a; the bit position from there, and the
 * class, in b. The address is in the packet, at a multiple of all alignments from its begin. */
enum { ADDRESS_BITS = 48, PIECE_BYTES = CTF_MAX_ALIGN };

static struct sort_event sort_event_of(const struct ctf_stream *s, const struct ctf_event *e, int64_t ts)
{
    uint64_t piece = s->contents_at / 8 / PIECE_BYTES * PIECE_BYTES;
    return (struct sort_event){ts, (uint64_t)(uintptr_t)(s->r.packet + piece) | (uint64_t)e->cpu << ADDRESS_BITS,
                               (s->contents_at - piece * 8) << 32 | (uint32_t)e->class->index};
}

static int push_stream(struct ctf_import *c, size_t trace, size_t stream, struct ctf_counters *counters)
{
    const struct ctf_trace *t = c->traces.p[trace];
    struct ctf_queue *q = open_queue(c, trace, stream);
    uint32_t queue = q ? sorter_add_queue(c->im->sorter, parse_run, q) : UINT32_MAX;
    struct ctf_stream s;
    if (queue == UINT32_MAX || ctf_stream_open(&s, &t->metadata, t->streams.p[stream].bytes) != 0)
        return -MRD_ENOMEM;
    const struct ctf_event *e;
    struct pushing p = {.c = c, .queue = queue, .clock = c->hosts.p[c->host_of.p[trace]].clock};
    s.counters = *counters;
    s.passes = true;
    int64_t ts = c->first_ts, n_timeless = 0;
    while ((e = ctf_stream_next(&s))) {
        if (!time_of(&p, e, &ts))
            continue;
        n_timeless += e->stream->no_clock;
        if (p.n == PUSHED_AT_ONCE)
            push_all(&p);
        p.events[p.n++] = sort_event_of(&s, e, ts);
    }
    push_all(&p);
    *counters = s.counters;
    count_losses(q, &s.losses, (int32_t)stream);
    if (n_timeless)
        stats_add_idx(&q->m->st->stats, q->m->id, STAT_ctf_no_clock_records, (int32_t)stream, n_timeless);
    ctf_stream_close(&s);
    return 0;
}

static int64_t ctf_queue_ucpu(struct ctf_queue *q, uint32_t cpu)
{
    if (__builtin_expect(q->ucpu < 0 || q->cpu != cpu, 0)) {
        q->cpu = cpu;
        q->ucpu = machine_ucpu(q->m, cpu);
    }
    return q->ucpu;
}

static argset insert_event(struct ctf_queue *q, const struct ctf_row *row)
{
    if (q->c->im->opt.no_ftrace_raw && !row->use->thread_slices)
        return ARGSET_NONE;
    argset args = ctf_args(q->c, row->use, row->payload, row->fields);
    if (!q->c->im->opt.no_ftrace_raw)
        ftrace_event_insert(q->m->st, &(struct ftrace_event_row){.ts = row->ts,
                                                                 .name = row->use->name,
                                                                 .utid = row->utid,
                                                                 .arg_set_id = args,
                                                                 .common_flags = 0,
                                                                 .ucpu = ctf_queue_ucpu(q, row->cpu)});
    return args;
}

static uint32_t thread_track(struct ctf_queue *q, uint32_t utid)
{
    uint32_t *known = by_id_find(&q->c->thread_tracks, utid);
    if (known && *known)
        return *known - 1;
    uint32_t track = track_intern_int(q->c->im->tracks, q->m->id, "thread_execution", TRACK_SLICE, "utid", utid, 0);
    if (track != UINT32_MAX && (known = by_id_make(&q->c->thread_tracks, utid)))
        *known = track + 1;
    return track;
}

static void parse_packet(const struct ctf_row *row, const struct ctf_class_use *use)
{
    struct packet_seen seen = {.m = row->m, .ts = row->ts, .utid = row->utid, .ucpu = machine_ucpu(row->m, row->cpu)};
    struct ctf_packet_room room;
    if (ctf_packet_tcp(use->packet, row->fields, &seen, &room))
        network_packet_seen(&seen);
}

static void read_context(struct ctf_queue *q, const struct ctf_class_use *use)
{
    ctf_read(&q->r, use->class->stream->event_context, &q->context);
    ctf_read(&q->r, use->class->context, &q->context);
}

/* The fields: as items where something looks among them, else only where they lie. */
static void read_fields(struct ctf_queue *q, struct ctf_row *row)
{
    const struct ctf_type *fields = row->use->class->fields;
    if (fields)
        q->r.pos = (q->r.pos + fields->align - 1) & ~(uint64_t)(fields->align - 1);
    row->fields_at = q->r.pos;
    if (row->use->reads_fields || row->fields_at % 8)
        ctf_read(&q->r, fields, &q->fields);
    else
        ctf_skip(&q->r, fields, row->use->field_bits);
    if (!q->r.bad)
        row->packet = q->r.packet;
    if (row->fields_at % 8 == 0)
        row->payload = slice_of(q->r.packet + row->fields_at / 8, (size_t)((q->r.pos + 7) / 8 - row->fields_at / 8));
}

/* The thread of an event: of its context, or who runs on the cpu. True when the context says. */
static bool find_thread(struct ctf_queue *q, struct ctf_row *row)
{
    int64_t tid = 0;
    bool has_tid = q->context.n && (ctf_item_int(&q->context, "tid", &tid) || ctf_item_int(&q->context, "vtid", &tid));
    row->utid = row->use->user_space ? ust_thread(row) : UTID_NONE;
    if (row->utid == UTID_NONE && has_tid)
        row->utid = process_tracker_thread(q->m->processes, tid);
    if (row->utid == UTID_NONE)
        row->utid = sched_tracker_running(q->m->sched, row->cpu);
    if (row->utid == UTID_NONE)
        row->utid = process_tracker_idle_utid(q->m->processes);
    return has_tid;
}

static void parse_one(struct ctf_queue *q, const struct sort_event *e)
{
    struct ctf_class_use *use = &q->c->classes.p[q->first_class + (uint32_t)e->b];
    const struct ctf_stream_class *stream = use->class->stream;
    const uint64_t address_mask = ((uint64_t)1 << ADDRESS_BITS) - 1;
    q->r.packet = (const uint8_t *)(uintptr_t)(e->a & address_mask);
    q->r.pos = e->b >> 32;
    q->r.end = (uint64_t)(q->file.p + q->file.len - q->r.packet) * 8; /* it ended before that when it was read first */
    q->r.bad = false;
    vec_clear(&q->context);
    vec_clear(&q->fields);
    bool readable = !use->class->needs_headers && !stream->needs_headers;
    if (!readable)
        stats_add_idx(&q->m->st->stats, q->m->id, STAT_ctf_events_without_args, (int32_t)use->class->index, 1);
    else if (stream->event_context || use->class->context)
        read_context(q, use);
    struct ctf_row row = {.import = q->c,
                          .m = q->m,
                          .use = use,
                          .ts = e->ts,
                          .cpu = (uint32_t)(e->a >> ADDRESS_BITS),
                          .fields = &q->fields,
                          .context = &q->context};
    if (readable)
        read_fields(q, &row);
    bool has_tid = find_thread(q, &row);
    row.args = insert_event(q, &row);
    row.slice = use->slice_name;
    row.track = use->thread_slices && readable ? thread_track(q, row.utid) : UINT32_MAX;
    if (use->ust != UST_NONE && readable && has_tid)
        ust_handle(&row, use);
    if (use->packet && readable)
        parse_packet(&row, use);
    if (use->handler && readable)
        use->handler->handle(&row);
    if (use->ftrace && readable)
        lttng_handle_as_ftrace(&row);
}

static void parse_run(void *owner, const struct sort_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++)
        parse_one(owner, &events[i]);
}

int ctf_import_finish(struct importer *im, struct error *err)
{
    struct ctf_import *c = im->ctf;
    int rc = 0;
    if (!c || !c->prepared)
        return 0;
    sorter_force_full_sort(im->sorter);
    int n_slots = 0;
    for (size_t i = 0; i < c->traces.n; i++)
        n_slots = c->traces.p[i]->metadata.n_slots > n_slots ? c->traces.p[i]->metadata.n_slots : n_slots;
    mem_free(c->slots);
    c->slots = mem_zalloc((size_t)(n_slots + 1) * sizeof *c->slots);
    if (!c->slots)
        rc = -MRD_ENOMEM;
    struct ctf_order order = {0};
    rc = rc ? rc : ctf_order_make(&order, &c->traces);
    for (size_t i = 0; !rc && i < order.files.n; i++) {
        const struct ctf_stream_file *f = &order.files.p[i];
        rc = push_stream(c, f->trace, f->stream, &order.counters.p[f->same]);
    }
    ctf_order_free(&order);
    return rc ? error_set(err, rc, "%s", error_code_text(rc)) : 0;
}

void ctf_import_note_shrunk(struct importer *im)
{
    int64_t n = 0;
    for (size_t i = 0; im->ctf && i < im->ctf->traces.n; i++)
        n += ctf_trace_shrank(im->ctf->traces.p[i]);
    if (n)
        stats_add_idx(&im->st->stats, 0, STAT_file_shrank, 0, n);
}

void ctf_import_close(struct importer *im)
{
    struct ctf_import *c = im->ctf;
    if (!c)
        return;
    for (size_t i = 0; i < c->queues.n; i++) {
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
    by_id_free(&c->thread_tracks);
    by_id_free(&c->calls);
    ctf_programs_free(&c->programs);
    kept_args_free(&c->kept);
    pb_writer_free(&c->message);
    mem_free(c->slots);
    mem_free(c);
    im->ctf = NULL;
}
