/* Fuzzes CTF streams by metadata that may lie about them: two bytes with the metadata's length, the metadata, a stream.
 * Damage is counted; every event is made of bytes of its own. */
#include "importer/ctf/ctf_internal.h"
#include "importer/ctf/ctf_packets.h"

#include "fuzz.h"

enum { HEAD = 2 };

static void read_stream(struct ctf_metadata *m, struct slice file)
{
    struct ctf_stream s;
    const struct ctf_event *e;
    size_t n = 0;
    if (ctf_stream_open(&s, m, file) != 0)
        return;
    while ((e = ctf_stream_next(&s))) {
        enum packet_direction direction;
        struct packet_key key;
        const struct ctf_packet_layout *layout = ctf_packet_layout_of(e->class);
        if (layout)
            (void)ctf_packet_of(layout, e, &direction, &key);
        (void)ctf_fields_position_free(m, e->class);
        for (size_t i = 0; i < e->fields.n; i++)
            mem_free(ctf_text_utf8(&e->fields.p[i]));
        for (size_t i = 0; i < e->fields.n; i++) /* texts lie in the file */
            if ((e->fields.p[i].kind == CTF_ITEM_TEXT || e->fields.p[i].kind == CTF_ITEM_BLOB) &&
                e->fields.p[i].text.len &&
                (e->fields.p[i].text.p < file.p || e->fields.p[i].text.p + e->fields.p[i].text.len > file.p + file.len))
                __builtin_trap();
        if (++n > file.len * 8)
            __builtin_trap();
    }
    if (s.losses.bytes_damaged > file.len)
        __builtin_trap();
    ctf_stream_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ctf_metadata m = {0};
    size_t len = size >= HEAD ? (size_t)(data[0] | data[1] << 8) : 0;
    if (size < HEAD || len > size - HEAD)
        return 0;
    const char *text = (const char *)data + HEAD;
    if ((ctf2_is_metadata(text, len) ? ctf2_parse : tsdl_parse)(&m, text, len, NULL) == 0)
        read_stream(&m, slice_of(data + HEAD + len, size - HEAD - len));
    ctf_metadata_free(&m);
    return 0;
}
