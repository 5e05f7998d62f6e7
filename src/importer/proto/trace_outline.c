/* Looks through a file of packets before it is read. */
#include "importer/proto/trace_outline.h"

#include "importer/clock/remote_sync.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

struct trace_outline proto_outline(struct slice file)
{
    struct trace_outline outline = {0};
    struct pb_cursor c = pb_cursor(file);
    struct pb_field f, g;
    while (pb_next(&c, &f)) {
        if (f.id != TRACE_PACKET)
            continue;
        struct pb_cursor packet = pb_sub(&f);
        uint32_t machine_id = 0;
        bool sealed = false;
        while (pb_next(&packet, &g)) {
            if (g.id == TRACE_PACKET_MACHINE_ID)
                machine_id = pb_u32(&g);
            else if (g.id == TRACE_PACKET_CLOCK_SNAPSHOT)
                outline.has_snapshots = true;
            else if (g.id == TRACE_PACKET_COMPRESSED_PACKETS || g.id == TRACE_PACKET_ZSTD_COMPRESSED_PACKETS)
                sealed = true;
        }
        outline.has_snapshots |= sealed; /* as likely as not */
        if (machine_id && outline.first_machine && outline.first_machine != machine_id)
            outline.several_machines = true;
        outline.first_machine = machine_id ? machine_id : outline.first_machine;
        outline.has_host |= !machine_id && !sealed;
    }
    outline.several_machines |= outline.has_host && outline.first_machine;
    return outline;
}

void clock_rounds_note(struct importer *im, struct slice file)
{
    struct pb_cursor c = pb_cursor(file);
    struct pb_field f, g;
    bool whole = true;
    while (whole && pb_next(&c, &f)) {
        if (f.id != TRACE_PACKET)
            continue;
        struct pb_cursor packet = pb_sub(&f);
        struct slice rounds = {0};
        uint32_t machine_id = 0;
        while (pb_next(&packet, &g)) {
            if (g.id == TRACE_PACKET_MACHINE_ID)
                machine_id = pb_u32(&g);
            else if (g.id == TRACE_PACKET_REMOTE_CLOCK_SYNC)
                rounds = pb_bytes(&g);
            else if (g.id == TRACE_PACKET_COMPRESSED_PACKETS || g.id == TRACE_PACKET_ZSTD_COMPRESSED_PACKETS)
                whole = false; /* there may be more inside */
        }
        uint64_t raw_id = machine_id;
        if (rounds.p && machine_id && im->input.declared.given) { /* perhaps it has another name there */
            const struct machine_ctx *m = importer_machine(im, machine_id);
            raw_id = m ? m->raw_id : 0;
        }
        if (rounds.p && raw_id)
            remote_sync_note(im->remote, raw_id, rounds);
    }
    remote_sync_known(im->remote, whole);
}
