/* Reads what a packet says about clocks. */
#include "importer/core/packet.h"

struct clock_id packet_clock(const struct packet *p, uint32_t clock)
{
    struct clock_id c = {.id = clock, .machine = p->m->id, .file = p->gen->clock_file};
    if (clock >= CLOCK_ID_FIRST_SEQUENCE && clock <= CLOCK_ID_LAST_SEQUENCE) {
        c.sequence = p->gen->seq->id;
        c.file = p->gen->input;
    } else if (clock == CLOCK_ID_TRACE_FILE) {
        c.machine = p->m->im->input.base_machine;
        c.file = p->gen->input;
    }
    return c;
}
