/* Fuzzes ProGuard maps: text of any kind is read or refused with a line number, what was read is sorted, and its packet
 * holds every class once. */
#include "fuzz.h"
#include "symbols/proguard.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <stdlib.h>

static void check(const struct proguard_map *m)
{
    size_t classes = 0;
    struct pb_writer w = {0};
    struct error err = {0};
    struct pb_field packet, mapping, f;
    for (size_t i = 0; i < m->classes.n; i++) {
        const struct proguard_class *c = &m->classes.p[i];
        if (c->first_field + c->n_fields > m->fields.n || c->first_method + c->n_methods > m->methods.n)
            abort();
        if (i && slice_cmp(c[-1].obfuscated, c->obfuscated) >= 0)
            abort();
    }
    int rc = proguard_write(m, slice_str("p"), &w, &err);
    if (rc == 0) {
        if (!pb_find(pb_written(&w), TRACE_PACKET, &packet) ||
            !pb_find(pb_bytes(&packet), TRACE_PACKET_DEOBFUSCATION_MAPPING, &mapping))
            abort();
        struct pb_cursor c = pb_sub(&mapping);
        while (pb_next(&c, &f))
            classes += f.id == DEOBFUSCATION_MAPPING_OBFUSCATED_CLASSES;
        if (classes != m->classes.n)
            abort();
    } else if (!err.text[0]) {
        abort();
    }
    pb_writer_free(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proguard_map m;
    struct error err = {0};
    uint8_t *copy = malloc(size ? size : 1); /* of just that size */
    if (!copy)
        return 0;
    if (size)
        memcpy(copy, data, size);
    int rc = proguard_parse(&m, slice_of(copy, size), &err);
    if (rc == 0)
        check(&m);
    else if (!err.text[0])
        abort();
    proguard_free(&m);
    free(copy);
    return 0;
}
