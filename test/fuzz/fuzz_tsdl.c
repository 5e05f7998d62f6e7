/* Fuzzes CTF metadata: packets joined to a text, TSDL parsed, references resolved. */
#include "importer/ctf/ctf_types.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct ctf_metadata m = {0};
    struct error err = {0};
    char *text;
    size_t len;
    int rc = ctf_metadata_text(slice_of(data, size), &arena, &text, &len, &err);
    if (rc == 0)
        rc = tsdl_parse(&m, text, len, &err);
    if (rc && !err.text[0])
        __builtin_trap(); /* an error says what is wrong */
    for (size_t i = 0; rc == 0 && i < m.events.n; i++)
        if (m.events.p[i]->index != i || !m.events.p[i]->stream)
            __builtin_trap();
    ctf_metadata_free(&m);
    arena_free(&arena);
    return 0;
}
