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
