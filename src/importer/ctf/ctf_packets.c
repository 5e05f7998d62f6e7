/* The event layouts that packets are recognised by. */
#include "importer/ctf/ctf_packets.h"

struct ctf_packet_layout {
    const char *event;
    enum packet_direction direction;
    enum packet_family family;
};

static const struct ctf_packet_layout layouts[] = {
    {"net_dev_queue", PACKET_SENT, PACKET_TCP},
    {"net_if_receive_skb", PACKET_RECEIVED, PACKET_TCP},
    {"netif_receive_skb", PACKET_RECEIVED, PACKET_TCP},
    {"inet_sock_local_out", PACKET_SENT, PACKET_TCP_ADDON},
    {"inet_sock_local_in", PACKET_RECEIVED, PACKET_TCP_ADDON},
};

const struct ctf_packet_layout *ctf_packet_layout_of(const struct ctf_event_class *class)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (strcmp(layouts[i].event, class->name) == 0)
            return &layouts[i];
    return NULL;
}

/* The bytes of a list of small numbers (an address): 1 or 2 bytes each, in network order. */
static size_t list_bytes(const ctf_items *items, const char *name, uint8_t *out, size_t size)
{
    const struct ctf_item *item = ctf_item_find(items, name);
    size_t n = 0;
    if (!item || item->kind != CTF_ITEM_OPEN)
        return 0;
    for (item++; item < items->p + items->n && item->kind == CTF_ITEM_UINT; item++) {
        if (item->type->integer.bits == 16 && n + 1 < size)
            out[n++] = (uint8_t)(item->u >> 8);
        if (n < size)
            out[n++] = (uint8_t)item->u;
    }
    return n;
}

bool ctf_packet_of(const struct ctf_packet_layout *layout, const struct ctf_event *e, enum packet_direction *direction,
                   struct packet_key *key)
{
    int64_t seq, ack, flags, source = 0, destination = 0, id = 0;
    if (!ctf_item_int(&e->fields, "seq", &seq) || !ctf_item_int(&e->fields, "ack_seq", &ack) ||
        !ctf_item_int(&e->fields, "flags", &flags))
        return false;
    *direction = layout->direction;
    *key = (struct packet_key){
        .seq = (uint32_t)seq, .ack = (uint32_t)ack, .flags = (uint32_t)flags, .family = (uint16_t)layout->family};
    uint8_t from[16], to[16];
    size_t n_from = list_bytes(&e->fields, "saddr", from, sizeof from),
           n_to = list_bytes(&e->fields, "daddr", to, sizeof to);
    ctf_item_int(&e->fields, "source_port", &source);
    ctf_item_int(&e->fields, "dest_port", &destination);
    if (n_from && n_to)
        key->flow = packet_flow(slice_of(from, n_from), (uint16_t)source, slice_of(to, n_to), (uint16_t)destination);
    if (n_from == 4 && ctf_item_int(&e->fields, "id", &id))
        key->ip_id = (uint16_t)id;
    return true;
}

/* Bytes behind the headers: what the network header counts, less the headers. */
static uint32_t payload_bytes(const ctf_items *fields)
{
    int64_t total, words = 0, offset;
    if (!ctf_item_int(fields, "data_offset", &offset))
        return 0;
    if (ctf_item_int(fields, "tot_len", &total)) /* IPv4 counts its own header, too */
        ctf_item_int(fields, "ihl", &words);
    else if (!ctf_item_int(fields, "payload_len", &total))
        return 0;
    int64_t n = (uint16_t)total - ((words & 15) + (offset & 15)) * 4;
    return n > 0 ? (uint32_t)n : 0;
}

bool ctf_packet_tcp(const struct ctf_packet_layout *layout, const ctf_items *fields, struct packet_seen *out,
                    struct ctf_packet_room *room)
{
    int64_t seq, ack, flags, source = 0, destination = 0, frame = 0;
    if (layout->family != PACKET_TCP || !ctf_item_int(fields, "seq", &seq) || !ctf_item_int(fields, "ack_seq", &ack) ||
        !ctf_item_int(fields, "flags", &flags))
        return false;
    size_t n_source = list_bytes(fields, "saddr", room->source, sizeof room->source),
           n_destination = list_bytes(fields, "daddr", room->destination, sizeof room->destination);
    if (!n_source || !n_destination)
        return false;
    ctf_item_int(fields, "source_port", &source);
    ctf_item_int(fields, "dest_port", &destination);
    out->direction = layout->direction;
    ctf_item_int(fields, "len", &frame);
    out->tcp = (struct tcp_packet){.source = slice_of(room->source, n_source),
                                   .destination = slice_of(room->destination, n_destination),
                                   .source_port = (uint16_t)source,
                                   .destination_port = (uint16_t)destination,
                                   .seq = (uint32_t)seq,
                                   .ack = (uint32_t)ack,
                                   .flags = (uint16_t)packet_tcp_flags((uint32_t)flags),
                                   .length = payload_bytes(fields),
                                   .frame = (uint32_t)frame};
    return true;
}
