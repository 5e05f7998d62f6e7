/* Gives meaning to the names that CTF 1.8 has for fields of headers. */
#include "importer/ctf/tsdl_internal.h"

#include <string.h>

struct named_role {
    const char *name;
    enum ctf_role role;
};

static const struct named_role of_packet_header[] = {{"magic", CTF_ROLE_MAGIC},
                                                     {"stream_id", CTF_ROLE_STREAM_ID},
                                                     {"stream_instance_id", CTF_ROLE_STREAM_INSTANCE},
                                                     {NULL, CTF_ROLE_NONE}};
static const struct named_role of_packet_context[] = {
    {"packet_size", CTF_ROLE_PACKET_BITS},    {"content_size", CTF_ROLE_CONTENT_BITS},
    {"timestamp_begin", CTF_ROLE_CLOCK},      {"packet_seq_num", CTF_ROLE_SEQUENCE},
    {"events_discarded", CTF_ROLE_DISCARDED}, {NULL, CTF_ROLE_NONE}};
static const struct named_role of_event_header[] = {
    {"timestamp", CTF_ROLE_CLOCK}, {"id", CTF_ROLE_EVENT_ID}, {NULL, CTF_ROLE_NONE}};

/* Types are shared: the depth of their nesting is bounded when they are made, and so is the work here. */
static void give(struct ctf_type *t, const struct named_role *roles, bool by_clock)
{
    if (!t || (t->kind != CTF_STRUCT && t->kind != CTF_VARIANT))
        return;
    for (uint32_t i = 0; i < t->compound.n; i++) {
        struct ctf_field *f = &t->compound.fields[i];
        bool number = f->type->kind == CTF_INTEGER || f->type->kind == CTF_ENUM;
        for (const struct named_role *r = roles; number && r->name; r++)
            if (strcmp(r->name, f->name) == 0)
                f->role = (uint8_t)r->role;
        if (number && by_clock && f->type->integer.clock >= 0)
            f->role = CTF_ROLE_CLOCK;
        give(f->type, roles, by_clock);
    }
}

void ctf_roles_by_name(struct ctf_metadata *m)
{
    give(m->packet_header, of_packet_header, false);
    for (size_t i = 0; i < m->streams.n; i++) {
        give(m->streams.p[i]->packet_context, of_packet_context, false);
        give(m->streams.p[i]->event_header, of_event_header, true);
    }
}
