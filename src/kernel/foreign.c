/* Converts events of the other byte order. */
#include "kernel/foreign.h"

int swap_program_compile(struct swap_program *s, const struct format_file *f, struct arena *a, struct error *err)
{
    *s = (struct swap_program){.runs = arena_alloc(a, (f->n_fields + 1) * sizeof *s->runs)};
    if (!s->runs)
        return error_set(err, -MRD_ENOMEM, "out of memory for events");
    for (size_t i = 0; i < f->n_fields; i++) {
        const struct format_field *field = &f->fields[i];
        uint32_t count = field->count ? field->count : 1, size = field->size / count;
        if ((field->is_array && !field->count) || size * count != field->size || (size != 2 && size != 4 && size != 8))
            continue; /* bytes, characters, structures, as many as a name says */
        s->runs[s->n++] = (struct swap_run){(uint16_t)field->offset, (uint16_t)count, (uint8_t)size};
    }
    return 0;
}

void swap_program_run(const struct swap_program *s, uint8_t *event, uint32_t size)
{
    for (const struct swap_run *r = s->runs; r < s->runs + s->n; r++) {
        if ((uint32_t)r->offset + (uint32_t)r->count * r->size > size)
            continue;
        for (uint8_t *p = event + r->offset, *end = p + (size_t)r->count * r->size; p < end; p += r->size) {
            for (unsigned i = 0; i < r->size / 2u; i++) {
                uint8_t t = p[i];
                p[i] = p[r->size - 1 - i];
                p[r->size - 1 - i] = t;
            }
        }
    }
}
