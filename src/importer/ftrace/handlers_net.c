/* Events of the network: bytes of interfaces, TCP states, dropped packets. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

enum { PROTO_TCP = 6, FAMILY_INET = 2, FAMILY_INET6 = 10, ETH_IP = 0x800, ETH_IPV6 = 0x86dd };

/* The kernel's TCP states by number. */
static const char *const tcp_states[] = {
    "",
    "TCP_ESTABLISHED",
    "TCP_SYN_SENT",
    "TCP_SYN_RECV",
    "TCP_FIN_WAIT1",
    "TCP_FIN_WAIT2",
    "TCP_TIME_WAIT",
    "TCP_CLOSE",
    "TCP_CLOSE_WAIT",
    "TCP_LAST_ACK",
    "TCP_LISTEN",
    "TCP_CLOSING",
    "TCP_NEW_SYN_RECV",
};
enum { TCP_STATES = sizeof tcp_states / sizeof *tcp_states, TCP_ESTABLISHED = 1, TCP_SYN_SENT = 2 };

struct net {
    struct u64map received;    /* interface name (strid) -> bytes */
    struct u64map transmitted; /* the same */
    struct u64map streams;     /* skaddr -> number of the TCP stream, from 1 */
    uint64_t freed_ip_packets;
};

static void release(void *state)
{
    struct net *n = state;
    u64map_free(&n->received);
    u64map_free(&n->transmitted);
    u64map_free(&n->streams);
}

static struct net *net_state(const struct ftrace_event *e)
{
    return ftrace_family_state(e->f, FAMILY_NET, sizeof(struct net), release);
}

static void bytes_counter(const struct ftrace_event *e, struct u64map *totals, const char *type, const char *suffix,
                          struct slice interface, uint32_t len)
{
    strid key = import_slice(e->m->im, interface);
    uint64_t *total = u64map_put(totals, key, NULL);
    struct small_args args = {0};
    if (!total) {
        e->m->im->failed = true;
        return;
    }
    *total += len;
    strid name = ftrace_name(e, "%.*s %s", (int)interface.len, (const char *)interface.p, suffix);
    uint32_t track = FTRACE_TRACK(e, TRACK_COUNTER, type, name, DIM_S("network_interface", key));
    small_args_add(e, &args, "cpu", ARG_UINT, e->cpu);
    small_args_add(e, &args, "len", ARG_UINT, len);
    ftrace_counter_args(e, e->ts, track, (double)(*total / 1024), small_args_set(e, &args));
}

static void netif_receive_skb(const struct ftrace_event *e)
{
    struct net *n = net_state(e);
    struct fields f;
    fields_read(e->payload, &f);
    if (n)
        bytes_counter(e, &n->received, "net_receive", "Received KB", field_bytes(&f, FTRACE_NETIF_RECEIVE_SKB_NAME),
                      field_u32(&f, FTRACE_NETIF_RECEIVE_SKB_LEN));
}

static void net_dev_xmit(const struct ftrace_event *e)
{
    struct net *n = net_state(e);
    struct fields f;
    fields_read(e->payload, &f);
    if (n && field_i32(&f, FTRACE_NET_DEV_XMIT_RC) == 0) /* the driver took it */
        bytes_counter(e, &n->transmitted, "net_transmit", "Transmitted KB", field_bytes(&f, FTRACE_NET_DEV_XMIT_NAME),
                      field_u32(&f, FTRACE_NET_DEV_XMIT_LEN));
}

static void inet_sock_set_state(const struct ftrace_event *e)
{
    struct net *n = net_state(e);
    struct fields f;
    bool added;
    fields_read(e->payload, &f);
    uint32_t family = field_u32(&f, FTRACE_INET_SOCK_SET_STATE_FAMILY);
    int32_t to = field_i32(&f, FTRACE_INET_SOCK_SET_STATE_NEWSTATE),
            from = field_i32(&f, FTRACE_INET_SOCK_SET_STATE_OLDSTATE);
    if (!n || field_u32(&f, FTRACE_INET_SOCK_SET_STATE_PROTOCOL) != PROTO_TCP ||
        (family != FAMILY_INET && family != FAMILY_INET6) || to < 0 || to >= TCP_STATES || from < 0 ||
        from >= TCP_STATES)
        return;
    uint64_t *stream = u64map_put(&n->streams, field_u64(&f, FTRACE_INET_SOCK_SET_STATE_SKADDR), &added);
    if (!stream) {
        e->m->im->failed = true;
        return;
    }
    if (added)
        *stream = n->streams.n;
    strid name;
    if (to == TCP_SYN_SENT)
        name = ftrace_name(e, "%s(pid=%u)", tcp_states[to], e->pid);
    else if (to == TCP_ESTABLISHED)
        name = ftrace_name(e, "%s(sport=%u,dport=%u)", tcp_states[to], field_u32(&f, FTRACE_INET_SOCK_SET_STATE_SPORT),
                           field_u32(&f, FTRACE_INET_SOCK_SET_STATE_DPORT));
    else
        name = ftrace_text(e, tcp_states[to]);
    uint32_t track = track_intern_int(e->m->im->tracks, e->m->id, "net_socket_set_state", TRACK_SLICE, "tcp_stream_idx",
                                      (int64_t)*stream, ftrace_name(e, "TCP stream#%u", (uint32_t)*stream));
    ftrace_end(e, track, 0, 0, NULL);
    ftrace_begin(e, track, ftrace_text(e, "tcp_state"), name, ARGSET_NONE);
}

static void tcp_retransmit_skb(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t track =
        ftrace_track(e, TRACK_SLICE, "net_tcp_retransmit_skb", ftrace_text(e, "TCP Retransmit Skb"), NULL, 0);
    ftrace_instant(e, track, ftrace_text(e, "tcp_event"),
                   ftrace_name(e, "sport=%u,dport=%u", field_u32(&f, FTRACE_TCP_RETRANSMIT_SKB_SPORT),
                               field_u32(&f, FTRACE_TCP_RETRANSMIT_SKB_DPORT)),
                   ARGSET_NONE);
}

static uint32_t napi_track(const struct ftrace_event *e)
{
    return track_intern_int(e->m->im->tracks, e->m->id, "cpu_napi_gro", TRACK_SLICE, "cpu", e->cpu,
                            ftrace_name(e, "Napi Gro Cpu %u", e->cpu));
}

static void napi_gro_receive_entry(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_add(e, &args, "len", ARG_INT, field_u32(&f, FTRACE_NAPI_GRO_RECEIVE_ENTRY_LEN));
    ftrace_begin(e, napi_track(e), ftrace_text(e, "napi_gro"), field_str(e, &f, FTRACE_NAPI_GRO_RECEIVE_ENTRY_NAME),
                 small_args_set(e, &args));
}

static void napi_gro_receive_exit(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_add(e, &args, "ret", ARG_INT, field_i32(&f, FTRACE_NAPI_GRO_RECEIVE_EXIT_RET));
    struct arg_list list = small_args_list(&args);
    ftrace_end(e, napi_track(e), ftrace_text(e, "napi_gro"), 0, &list);
}

static void kfree_skb(const struct ftrace_event *e)
{
    struct net *n = net_state(e);
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    uint32_t protocol = field_u32(&f, FTRACE_KFREE_SKB_PROTOCOL);
    if (!n || (protocol != ETH_IP && protocol != ETH_IPV6))
        return;
    uint32_t track = ftrace_track(e, TRACK_COUNTER, "net_kfree_skb", ftrace_text(e, "Kfree Skb IP Prot"), NULL, 0);
    small_args_add(e, &args, "protocol", ARG_STRING, ftrace_text(e, protocol == ETH_IP ? "IP" : "IPV6"));
    ftrace_counter_args(e, e->ts, track, (double)++n->freed_ip_packets, small_args_set(e, &args));
}

const struct ftrace_handler ftrace_handlers_net[] = {
    {FTRACE_EVENT_NETIF_RECEIVE_SKB, "netif_receive_skb", netif_receive_skb},
    {FTRACE_EVENT_NET_DEV_XMIT, "net_dev_xmit", net_dev_xmit},
    {FTRACE_EVENT_INET_SOCK_SET_STATE, "inet_sock_set_state", inet_sock_set_state},
    {FTRACE_EVENT_TCP_RETRANSMIT_SKB, "tcp_retransmit_skb", tcp_retransmit_skb},
    {FTRACE_EVENT_NAPI_GRO_RECEIVE_ENTRY, "napi_gro_receive_entry", napi_gro_receive_entry},
    {FTRACE_EVENT_NAPI_GRO_RECEIVE_EXIT, "napi_gro_receive_exit", napi_gro_receive_exit},
    {FTRACE_EVENT_KFREE_SKB, "kfree_skb", kfree_skb},
    {0, NULL, NULL},
};
