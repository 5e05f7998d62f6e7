/* Owns the reading of typed bits. */
#include "importer/ctf/ctf_decode.h"

#include <endian.h>

uint64_t ctf_bits(const uint8_t *packet, uint64_t pos, unsigned bits, bool big_endian)
{
    const uint8_t *p = packet + pos / 8;
    unsigned shift = pos & 7;
    if (!shift && bits == 8)
        return *p;
    if (!shift && bits == 32) {
        uint32_t v;
        memcpy(&v, p, 4);
        return big_endian ? be32toh(v) : le32toh(v);
    }
    if (!shift && bits == 64) {
        uint64_t v;
        memcpy(&v, p, 8);
        return big_endian ? be64toh(v) : le64toh(v);
    }
    /* At most 9 bytes; gathered into 128 bits so that every width and shift is one case. */
    unsigned n = (shift + bits + 7) / 8;
    unsigned __int128 v = 0;
    if (big_endian) {
        for (unsigned i = 0; i < n; i++)
            v = v << 8 | p[i];
        v >>= 8 * n - shift - bits;
    } else {
        for (unsigned i = n; i-- > 0;)
            v = v << 8 | p[i];
        v >>= shift;
    }
    return bits == 64 ? (uint64_t)v : (uint64_t)v & ((1ull << bits) - 1);
}

static int64_t sign_extend(uint64_t v, unsigned bits)
{
    unsigned up = 64 - bits;
    return (int64_t)(v << up) >> up;
}

static bool align_to(struct ctf_reader *r, uint32_t align)
{
    r->pos = (r->pos + align - 1) & ~(uint64_t)(align - 1);
    if (r->pos > r->end)
        r->bad = true;
    return !r->bad;
}

static bool has_bits(struct ctf_reader *r, uint64_t bits)
{
    if (r->bad || r->end < r->pos || r->end - r->pos < bits)
        r->bad = true;
    return !r->bad;
}

static void put(struct ctf_reader *r, ctf_items *out, struct ctf_item item)
{
    if (out && !vec_push(out, item))
        r->bad = true;
}

static int64_t read_integer(struct ctf_reader *r, const struct ctf_type *t)
{
    if (!align_to(r, t->align) || !has_bits(r, t->integer.bits))
        return 0;
    uint64_t v = ctf_bits(r->packet, r->pos, t->integer.bits, t->integer.big_endian);
    r->pos += t->integer.bits;
    return t->integer.is_signed ? sign_extend(v, t->integer.bits) : (int64_t)v;
}

static double read_real(struct ctf_reader *r, const struct ctf_type *t)
{
    if (!align_to(r, t->align) || !has_bits(r, t->real.bits))
        return 0;
    uint64_t v = ctf_bits(r->packet, r->pos, t->real.bits, t->real.big_endian);
    r->pos += t->real.bits;
    double d;
    float f;
    uint32_t low = (uint32_t)v;
    if (t->real.bits == 64) {
        memcpy(&d, &v, 8);
        return d;
    }
    memcpy(&f, &low, 4);
    return f;
}

static struct slice read_string(struct ctf_reader *r)
{
    if (!align_to(r, 8))
        return slice_of("", 0);
    const uint8_t *p = r->packet + r->pos / 8;
    size_t left = (size_t)((r->end - r->pos) / 8);
    const uint8_t *nul = left ? memchr(p, 0, left) : NULL;
    if (!nul) {
        r->bad = true;
        return slice_of("", 0);
    }
    r->pos += (uint64_t)(nul - p + 1) * 8;
    return slice_of(p, (size_t)(nul - p));
}

static void read_value(struct ctf_reader *r, const struct ctf_type *t, const char *name, int slot, ctf_items *out);

static void read_struct(struct ctf_reader *r, const struct ctf_type *t, ctf_items *out)
{
    if (!align_to(r, t->align))
        return;
    for (uint32_t i = 0; i < t->compound.n && !r->bad; i++)
        read_value(r, t->compound.fields[i].type, t->compound.fields[i].name, t->compound.fields[i].slot, out);
}

/* An array or sequence: text when its elements are characters that stand byte by byte. */
static void read_list(struct ctf_reader *r, const struct ctf_type *t, const char *name, ctf_items *out)
{
    const struct ctf_type *e = t->list.element;
    uint64_t n = t->list.length;
    if (t->kind == CTF_SEQUENCE)
        n = (uint64_t)r->slots[t->path_slot];
    if (!align_to(r, e->align))
        return;
    if (e->min_bits && n > (r->end - r->pos) / e->min_bits) {
        r->bad = true;
        return;
    }
    if (e->kind == CTF_INTEGER && e->integer.is_text && e->integer.bits == 8 && r->pos % 8 == 0) {
        const uint8_t *p = r->packet + r->pos / 8;
        r->pos += n * 8;
        size_t len = n ? strnlen((const char *)p, (size_t)n) : 0;
        put(r, out, (struct ctf_item){.name = name, .type = t, .kind = CTF_ITEM_TEXT, .text = slice_of(p, len)});
        return;
    }
    put(r, out, (struct ctf_item){.name = name, .type = t, .kind = CTF_ITEM_OPEN});
    for (uint64_t i = 0; i < n && !r->bad; i++)
        read_value(r, e, NULL, CTF_NO_SLOT, out);
    put(r, out, (struct ctf_item){.name = name, .type = t, .kind = CTF_ITEM_CLOSE});
}

static void read_variant(struct ctf_reader *r, const struct ctf_type *t, const char *name, ctf_items *out)
{
    const char *label = ctf_enum_label(t->tag_type, r->slots[t->path_slot]);
    for (uint32_t i = 0; label && i < t->compound.n; i++) {
        if (strcmp(t->compound.fields[i].name, label) == 0) {
            read_value(r, t->compound.fields[i].type, name, CTF_NO_SLOT, out);
            return;
        }
    }
    r->bad = true;
}

static void read_value(struct ctf_reader *r, const struct ctf_type *t, const char *name, int slot, ctf_items *out)
{
    switch (t->kind) {
    case CTF_INTEGER:
    case CTF_ENUM: {
        int64_t v = read_integer(r, t);
        if (slot != CTF_NO_SLOT)
            r->slots[slot] = v;
        put(r, out,
            (struct ctf_item){
                .name = name, .type = t, .kind = t->integer.is_signed ? CTF_ITEM_INT : CTF_ITEM_UINT, .i = v});
        break;
    }
    case CTF_FLOAT: {
        double d = read_real(r, t);
        put(r, out, (struct ctf_item){.name = name, .type = t, .kind = CTF_ITEM_REAL, .d = d});
        break;
    }
    case CTF_STRING: {
        struct slice s = read_string(r);
        put(r, out, (struct ctf_item){.name = name, .type = t, .kind = CTF_ITEM_TEXT, .text = s});
        break;
    }
    case CTF_STRUCT:
        put(r, out, (struct ctf_item){.name = name, .type = t, .kind = CTF_ITEM_OPEN});
        read_struct(r, t, out);
        put(r, out, (struct ctf_item){.name = name, .type = t, .kind = CTF_ITEM_CLOSE});
        break;
    case CTF_VARIANT:
        read_variant(r, t, name, out);
        break;
    case CTF_ARRAY:
    case CTF_SEQUENCE:
        read_list(r, t, name, out);
        break;
    }
}

void ctf_read(struct ctf_reader *r, const struct ctf_type *type, ctf_items *out)
{
    if (!type)
        return;
    if (type->kind == CTF_STRUCT)
        read_struct(r, type, out);
    else
        read_value(r, type, NULL, CTF_NO_SLOT, out);
}

const struct ctf_item *ctf_item_find(const ctf_items *items, const char *name)
{
    for (size_t i = 0; i < items->n; i++)
        if (items->p[i].name && items->p[i].kind != CTF_ITEM_CLOSE && strcmp(items->p[i].name, name) == 0)
            return &items->p[i];
    return NULL;
}

bool ctf_item_int(const ctf_items *items, const char *name, int64_t *value)
{
    const struct ctf_item *item = ctf_item_find(items, name);
    if (!item || (item->kind != CTF_ITEM_INT && item->kind != CTF_ITEM_UINT))
        return false;
    *value = item->i;
    return true;
}

const char *ctf_enum_label(const struct ctf_type *type, int64_t value)
{
    for (uint32_t i = 0; i < type->integer.n_ranges; i++) {
        const struct ctf_range *g = &type->integer.ranges[i];
        bool inside = type->integer.is_signed
                          ? value >= g->lo && value <= g->hi
                          : (uint64_t)value >= (uint64_t)g->lo && (uint64_t)value <= (uint64_t)g->hi;
        if (inside)
            return g->label;
    }
    return NULL;
}
