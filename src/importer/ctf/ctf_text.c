/* Converts texts of CTF 2 from UTF-16 and UTF-32. */
#include "importer/ctf/ctf_decode.h"

#include "base/alloc.h"
#include "base/utf8.h"

enum { REPLACEMENT = 0xfffd };

static uint32_t unit_at(const uint8_t *p, unsigned bytes, bool big_endian)
{
    uint32_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | p[big_endian ? i : bytes - 1 - i];
    return v;
}

static bool is_character(uint32_t c)
{
    return c < 0xd800 || (c >= 0xe000 && c <= 0x10ffff);
}

char *ctf_text_utf8(const struct ctf_item *item)
{
    bool text = item->type && (item->type->kind == CTF_STRING || item->type->kind == CTF_TEXT);
    unsigned unit = text ? item->type->text.unit : 1;
    if (unit < 2)
        return NULL;
    char *out = mem_alloc(item->text.len / unit * 4 + 4);
    size_t n = 0;
    for (size_t i = 0; out && i + unit <= item->text.len; i += unit) {
        bool big = item->type->text.big_endian;
        uint32_t c = unit_at(item->text.p + i, unit, big), low = 0;
        if (unit == 2 && c >= 0xd800 && c < 0xdc00 && i + 4 <= item->text.len)
            low = unit_at(item->text.p + i + 2, unit, big);
        if (low >= 0xdc00 && low < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            i += 2;
        }
        n += utf8_put(out + n, is_character(c) ? c : REPLACEMENT);
    }
    if (out)
        out[n] = '\0';
    return out;
}
