/* Imports InterruptInfo packets: what interrupts are called. */
#include "importer/system/system_internal.h"

#include "wire/fields.h"

void interrupt_info_parse(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f, g;
    while (pb_next(&c, &f)) {
        if (f.id != INTERRUPT_INFO_IRQ_MAPPING)
            continue;
        struct linux_interrupt_mapping_row row = {.machine_id = p->m->id};
        struct pb_cursor entry = pb_sub(&f);
        while (pb_next(&entry, &g)) {
            if (g.id == INTERRUPT_INFO_INTERRUPT_MAPPING_IRQ_ID)
                row.irq_id = pb_u32(&g);
            else if (g.id == INTERRUPT_INFO_INTERRUPT_MAPPING_NAME)
                row.name = import_slice(p->m->im, pb_bytes(&g));
        }
        linux_interrupt_mapping_insert(p->m->st, &row);
    }
}
