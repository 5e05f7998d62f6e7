/* The text of a CTF metadata file: plain, or joined from its packets. */
#include "importer/ctf/ctf_types.h"

#include <endian.h>

enum { METADATA_MAGIC = 0x75D11D57, PACKET_HEADER_BYTES = 37, CTF2_HEADER_BYTES = 44 };

static uint32_t load32(const uint8_t *p, bool big_endian)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return big_endian ? be32toh(v) : le32toh(v);
}

int ctf_metadata_text(struct slice file, struct arena *arena, char **text, size_t *len, struct error *err)
{
    *text = NULL;
    *len = 0;
    bool packets = file.len >= 4 && (load32(file.p, false) == METADATA_MAGIC || load32(file.p, true) == METADATA_MAGIC);
    if (!packets) {
        *text = arena_strndup(arena, file.p, file.len);
        *len = file.len;
        return *text ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
    }
    bool big_endian = load32(file.p, true) == METADATA_MAGIC;
    char *out = arena_alloc_bytes(arena, file.len + 1);
    if (!out)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    for (size_t at = 0; at < file.len;) {
        const uint8_t *p = file.p + at;
        if (file.len - at < PACKET_HEADER_BYTES || load32(p, big_endian) != METADATA_MAGIC)
            return error_set(err, -MRD_EFORMAT, "metadata packet at byte %zu: no packet header", at);
        uint32_t content = load32(p + 24, big_endian) / 8, size = load32(p + 28, big_endian) / 8;
        if (p[32] || p[33])
            return error_set(err, -MRD_EUNSUPPORTED, "metadata packet at byte %zu: compressed or encrypted", at);
        uint32_t header = PACKET_HEADER_BYTES; /* one of CTF 2 may say its own size, in bits, at its end */
        if (file.len - at >= CTF2_HEADER_BYTES && p[35] == 2 && load32(p + 40, big_endian) == CTF2_HEADER_BYTES * 8)
            header = CTF2_HEADER_BYTES;
        if (content < header || size < content || size > file.len - at)
            return error_set(err, -MRD_EFORMAT, "metadata packet at byte %zu: invalid size", at);
        memcpy(out + *len, p + header, content - header);
        *len += content - header;
        at += size;
    }
    out[*len] = 0;
    *text = out;
    return 0;
}
