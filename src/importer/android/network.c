/* Imports network packets of apps: one slice a packet, or one for several that were counted together. */
#include "importer/android/android_internal.h"

#include <inttypes.h>
#include <stdio.h>

enum { USER = 100000, TCP_FLAGS = 8, MAX_INTERFACE = 256 /* bytes of its name in that of a track */ };

struct context { /* what packets have in common */
    uint64_t value[NETWORK_PACKET_EVENT_ICMP_CODE + 1];
    uint32_t has;
    strid interface;
};
#define VALUE(context, name) ((context)->value[NETWORK_PACKET_EVENT_##name])
#define HAS(context, name)   ((context)->has >> NETWORK_PACKET_EVENT_##name & 1)

/* A bundle that was taken apart, until its packets' times come. */
struct network_bundles {
    struct machine_ctx *m;
    uint32_t queue;
    VEC(struct context)
    contexts;
    struct u64map read; /* where an interned context lies -> its index in `contexts` + 1 */
    VEC(struct network_bundle)
    list;
};

struct network_bundle {
    uint32_t context; /* in `contexts` */
    int64_t dur;
    uint64_t packets, length;
};

void network_bundles_close(struct network_bundles *b)
{
    if (!b)
        return;
    vec_free(&b->contexts);
    u64map_free(&b->read);
    vec_free(&b->list);
    mem_free(b);
}

static struct context read_context(struct machine_ctx *m, struct slice bytes)
{
    struct context k = {.interface = 0};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id > NETWORK_PACKET_EVENT_ICMP_CODE)
            continue;
        k.has |= 1u << f.id;
        if (f.id == NETWORK_PACKET_EVENT_NETWORK_INTERFACE)
            k.interface = import_slice(m->im, pb_bytes(&f));
        else
            k.value[f.id] = pb_u32(&f);
    }
    return k;
}

static strid transport_name(struct machine_ctx *m, uint64_t protocol)
{
    static const struct {
        uint8_t number;
        const char *name;
    } names[] = {{1, "IPPROTO_ICMP"}, {6, "IPPROTO_TCP"}, {17, "IPPROTO_UDP"}, {58, "IPPROTO_ICMPV6"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].number == protocol)
            return import_str(m->im, names[i].name);
    return strpool_printf(&m->st->strings, "IPPROTO (%" PRIu64 ")", protocol);
}

/* ".s..a...": a letter for each flag that is set. */
static strid tcp_flags_text(struct machine_ctx *m, uint64_t flags)
{
    static const char letters[TCP_FLAGS + 1] = "fsrpauec";
    char text[TCP_FLAGS];
    for (unsigned i = 0; i < TCP_FLAGS; i++)
        text[i] = flags >> i & 1 ? letters[i] : '.';
    return import_slice(m->im, slice_of(text, sizeof text));
}

/* The first package that is known to run under the user id by now, else "uid=N". */
static strid owner_name(struct machine_ctx *m, uint64_t uid)
{
    struct android_machine *a = m->android;
    for (; a->packages_known < m->st->t[T_package_list].n_rows; a->packages_known++) {
        bool added = false;
        uint64_t *row =
            u64map_put(&a->package_of_uid, (uint64_t)ROW_GET(m->st, package_list, uid, a->packages_known), &added);
        if (!row)
            m->im->failed = true;
        else if (added)
            *row = a->packages_known;
    }
    const uint64_t *row = uid ? u64map_get(&a->package_of_uid, uid % USER) : NULL;
    return row ? (strid)ROW_GET(m->st, package_list, package_name, (uint32_t)*row)
               : strpool_printf(&m->st->strings, "uid=%" PRIu64, uid);
}

static void put_optional(struct machine_ctx *m, struct arg_list *list, const struct context *k, uint32_t field,
                         const char *key)
{
    if (k->has >> field & 1)
        arg_list_int(&m->st->args, list, key, (int64_t)k->value[field]);
}

static int64_t or_null(const struct context *k, uint32_t field)
{
    return k->has >> field & 1 ? (int64_t)k->value[field] : COL_NULL;
}

static void add_slice(struct machine_ctx *m, int64_t ts, int64_t dur, const struct context *k, uint64_t packets,
                      uint64_t length)
{
    static const char *const directions[] = {"DIR_UNKNOWN", "Received", "Transmitted"};
    struct args *args = &m->st->args;
    struct strpool *strings = &m->st->strings;
    uint64_t direction = VALUE(k, DIRECTION);
    strid direction_text = import_str(m->im, directions[direction < 3 ? direction : 0]),
          transport = transport_name(m, VALUE(k, IP_PROTO)), tag = strpool_printf(strings, "0x%" PRIx64, VALUE(k, TAG)),
          flags = HAS(k, TCP_FLAGS) ? tcp_flags_text(m, VALUE(k, TCP_FLAGS)) : 0;
    struct arg_list list = {0};
    arg_list_str(args, &list, "packet_transport", transport);
    arg_list_int(args, &list, "socket_uid", (int64_t)VALUE(k, UID));
    arg_list_str(args, &list, "socket_tag", tag);
    if (flags)
        arg_list_str(args, &list, "packet_tcp_flags", flags);
    put_optional(m, &list, k, NETWORK_PACKET_EVENT_LOCAL_PORT, "local_port");
    put_optional(m, &list, k, NETWORK_PACKET_EVENT_REMOTE_PORT, "remote_port");
    put_optional(m, &list, k, NETWORK_PACKET_EVENT_ICMP_TYPE, "packet_icmp_type");
    put_optional(m, &list, k, NETWORK_PACKET_EVENT_ICMP_CODE, "packet_icmp_code");
    arg_list_int(args, &list, "packet_length", (int64_t)length);
    arg_list_int(args, &list, "packet_count", (int64_t)packets);
    struct slice interface = strpool_view(strings, k->interface);
    struct track_dim dims[] = {{"net_interface", DIM_STR, k->interface}, {"net_direction", DIM_STR, direction_text}};
    struct track_spec spec = {
        .type = "network_packets",
        .event_type = TRACK_SLICE,
        .name = strpool_printf(strings, "%.*s %s", (int)(interface.len < MAX_INTERFACE ? interface.len : MAX_INTERFACE),
                               (const char *)interface.p, directions[direction < 3 ? direction : 0]),
        .parent = UINT32_MAX,
        .dims = dims,
        .n_dims = 2};
    uint32_t slice = android_slice(m, ts, dur, &spec, owner_name(m, VALUE(k, UID)), &list);
    if (slice == SLICE_NONE)
        return;
    android_network_packets_insert(
        m->st, &(struct android_network_packets_row){.id = slice,
                                                     .iface = k->interface,
                                                     .direction = direction_text,
                                                     .packet_transport = transport,
                                                     .packet_length = (int64_t)length,
                                                     .packet_count = (int64_t)packets,
                                                     .socket_tag = (int64_t)VALUE(k, TAG),
                                                     .socket_tag_str = tag,
                                                     .socket_uid = (int64_t)VALUE(k, UID),
                                                     .local_port = or_null(k, NETWORK_PACKET_EVENT_LOCAL_PORT),
                                                     .remote_port = or_null(k, NETWORK_PACKET_EVENT_REMOTE_PORT),
                                                     .packet_icmp_type = or_null(k, NETWORK_PACKET_EVENT_ICMP_TYPE),
                                                     .packet_icmp_code = or_null(k, NETWORK_PACKET_EVENT_ICMP_CODE),
                                                     .packet_tcp_flags = or_null(k, NETWORK_PACKET_EVENT_TCP_FLAGS),
                                                     .packet_tcp_flags_str = flags});
}

void network_packet_parse(struct packet *p)
{
    struct context k = read_context(p->m, p->field);
    add_slice(p->m, p->ts, 0, &k, 1, VALUE(&k, LENGTH));
}

static void parse_bundles(void *owner, const struct sort_event *events, size_t n)
{
    struct network_bundles *b = owner;
    for (size_t i = 0; i < n; i++) {
        const struct network_bundle *one = &b->list.p[events[i].a];
        add_slice(b->m, events[i].ts, one->dur, &b->contexts.p[one->context], one->packets, one->length);
    }
}

static struct network_bundles *bundles_of(struct machine_ctx *m)
{
    struct network_bundles *b = m->android->bundles;
    if (b)
        return b;
    b = mem_zalloc(sizeof *b);
    if (!b)
        return NULL;
    b->m = m;
    b->queue = sorter_add_queue(m->im->sorter, parse_bundles, b);
    if (b->queue == UINT32_MAX) {
        mem_free(b);
        return NULL;
    }
    return m->android->bundles = b;
}

static void push(struct machine_ctx *m, struct network_bundles *b, int64_t ts, struct network_bundle one)
{
    if (!vec_push(&b->list, one))
        m->im->failed = true;
    else
        sorter_push(m->im->sorter, b->queue, (struct sort_event){.ts = ts, .a = b->list.n - 1});
}

static uint32_t add_context(struct network_bundles *b, struct context k)
{
    if (!vec_push(&b->contexts, k))
        b->m->im->failed = true;
    return (uint32_t)b->contexts.n - 1;
}

#define NO_CONTEXT UINT32_MAX

/* The context of an interned entry, read once: it may be long, and that of many bundles. NO_CONTEXT (counted) when
 * nothing has defined it. */
static uint32_t interned_context(struct packet *p, struct network_bundles *b, struct slice entry)
{
    struct pb_field context;
    uint64_t *known = entry.p ? u64map_put(&b->read, (uint64_t)(uintptr_t)entry.p, NULL) : NULL;
    if (entry.p && !known)
        p->m->im->failed = true;
    if (known && !*known)
        *known = pb_find(entry, NETWORK_PACKET_CONTEXT_CTX, &context)
                     ? (uint64_t)add_context(b, read_context(p->m, pb_bytes(&context))) + 1
                     : NO_CONTEXT;
    if (known && *known != NO_CONTEXT)
        return (uint32_t)(*known - 1);
    stats_add(&p->m->st->stats, p->m->id, STAT_network_trace_intern_errors, 1);
    return NO_CONTEXT;
}

/* An interned one, else its own, or an empty one. */
static uint32_t bundle_context(struct packet *p, struct network_bundles *b)
{
    struct pb_field f, own;
    bool has_own = pb_find(p->field, NETWORK_PACKET_BUNDLE_CTX, &own);
    if (pb_find(p->field, NETWORK_PACKET_BUNDLE_IID, &f)) {
        struct slice entry = interned_find(p->gen, INTERNED_DATA_PACKET_CONTEXT, pb_u64(&f));
        uint32_t context = interned_context(p, b, entry);
        if (context != NO_CONTEXT)
            return context;
    }
    return add_context(b, has_own ? read_context(p->m, pb_bytes(&own)) : (struct context){.interface = 0});
}

enum tokenize_result network_bundle_tokenize(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct network_bundles *b = bundles_of(m);
    if (!b) {
        m->im->failed = true;
        return TOKENIZE_DONE;
    }
    struct network_bundle one = {.context = bundle_context(p, b)};
    if (m->im->failed)
        return TOKENIZE_DONE;
    struct pb_field f;
    if (pb_find(p->field, NETWORK_PACKET_BUNDLE_TOTAL_LENGTH, &f)) {
        uint64_t dur = android_number(p->field, NETWORK_PACKET_BUNDLE_TOTAL_DURATION);
        one.length = pb_u64(&f);
        one.dur = (int64_t)(dur < INT64_MAX / 2 ? dur : INT64_MAX / 2);
        one.packets = android_number(p->field, NETWORK_PACKET_BUNDLE_TOTAL_PACKETS);
        push(m, b, p->ts, one);
        return TOKENIZE_DONE;
    }
    struct pb_numbers times = pb_numbers(p->field, NETWORK_PACKET_BUNDLE_PACKET_TIMESTAMPS),
                      lengths = pb_numbers(p->field, NETWORK_PACKET_BUNDLE_PACKET_LENGTHS);
    uint64_t delta, length;
    one.packets = 1;
    while (pb_next_number(&times, &delta) && pb_next_number(&lengths, &length)) {
        int64_t ts;
        if (__builtin_add_overflow(p->ts, delta, &ts)) {
            stats_add(&m->st->stats, m->id, STAT_network_trace_parse_errors, 1);
            continue;
        }
        one.length = length;
        push(m, b, ts, one);
    }
    return TOKENIZE_DONE;
}
