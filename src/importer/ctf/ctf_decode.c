/* Reads typed bits. */
#include "importer/ctf/ctf_decode.h"

#include <endian.h>
#include <math.h>

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

/* The item to be filled in, in its place: one that is built apart and copied costs as much as reading it. NULL: there
 * is none. */
static struct ctf_item *add(struct ctf_reader *r, ctf_items *out, const char *name, const struct ctf_type *t,
                            enum ctf_item_kind kind, uint8_t role)
{
    if (!out)
        return NULL;
    if (!vec_reserve(out, out->n + 1)) {
        r->bad = true;
        return NULL;
    }
    struct ctf_item *item = &out->p[out->n++];
    item->name = name;
    item->type = t;
    item->kind = kind;
    item->role = role;
    item->bits = 0;
    return item;
}

static void put_text(struct ctf_reader *r, ctf_items *out, const char *name, const struct ctf_type *t, uint8_t role,
                     struct slice text)
{
    struct ctf_item *item = add(r, out, name, t, t->kind == CTF_BLOB ? CTF_ITEM_BLOB : CTF_ITEM_TEXT, role);
    if (item)
        item->text = text;
}

static uint64_t reverse(uint64_t v, unsigned bits)
{
    uint64_t out = 0;
    for (unsigned i = 0; i < bits; i++)
        out |= (v >> i & 1) << (bits - 1 - i);
    return out;
}

static int64_t read_integer(struct ctf_reader *r, const struct ctf_type *t)
{
    if (!align_to(r, t->align) || !has_bits(r, t->integer.bits))
        return 0;
    uint64_t v = ctf_bits(r->packet, r->pos, t->integer.bits, t->integer.big_endian);
    r->pos += t->integer.bits;
    if (t->integer.reversed)
        v = reverse(v, t->integer.bits);
    if (t->integer.is_bool)
        return v != 0;
    return t->integer.is_signed ? sign_extend(v, t->integer.bits) : (int64_t)v;
}

/* LEB128: seven bits a byte, the low ones first. Bits beyond the 64th are let go. */
static int64_t read_variable(struct ctf_reader *r, const struct ctf_type *t, uint8_t *bits)
{
    uint64_t v = 0;
    unsigned n = 0;
    uint8_t byte = 0x80;
    if (!align_to(r, 8))
        return 0;
    for (; (byte & 0x80) && has_bits(r, 8); n += n < 70 ? 7 : 0, r->pos += 8) {
        byte = r->packet[r->pos / 8];
        v |= n < 64 ? (uint64_t)(byte & 0x7f) << n : 0;
    }
    *bits = n < 64 ? (uint8_t)n : 64;
    return t->integer.is_signed && n > 0 && n < 64 ? sign_extend(v, n) : (int64_t)v;
}

/* IEEE 754 binary16. */
static double half(uint32_t v)
{
    int exponent = v >> 10 & 31;
    double sign = v & 0x8000 ? -1 : 1, fraction = v & 1023;
    if (exponent == 31)
        return fraction != 0 ? NAN : sign * INFINITY;
    return exponent ? sign * ldexp(1 + fraction / 1024, exponent - 15) : sign * ldexp(fraction / 1024, -14);
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
    if (t->real.bits == 16)
        return half(low);
    memcpy(&f, &low, 4);
    return f;
}

/* Where the first zero code unit begins; SIZE_MAX: nowhere. */
static size_t find_zero(const uint8_t *p, size_t len, size_t unit)
{
    static const uint8_t zero[4];
    if (unit == 1) {
        const uint8_t *nul = len ? memchr(p, 0, len) : NULL;
        return nul ? (size_t)(nul - p) : SIZE_MAX;
    }
    for (size_t i = 0; i + unit <= len; i += unit)
        if (memcmp(p + i, zero, unit) == 0)
            return i;
    return SIZE_MAX;
}

static struct slice read_string(struct ctf_reader *r, const struct ctf_type *t)
{
    size_t unit = t->text.unit ? t->text.unit : 1;
    if (!align_to(r, 8))
        return slice_of("", 0);
    const uint8_t *p = r->packet + r->pos / 8;
    size_t n = find_zero(p, (size_t)((r->end - r->pos) / 8), unit);
    if (n == SIZE_MAX) {
        r->bad = true;
        return slice_of("", 0);
    }
    r->pos += (uint64_t)(n + unit) * 8;
    return slice_of(p, n);
}

/* A text or blob of a length in bytes. */
static struct slice read_bytes(struct ctf_reader *r, const struct ctf_type *t)
{
    uint64_t len = t->location ? (uint64_t)r->slots[t->path_slot] : t->text.length;
    if (!align_to(r, 8) || len > (r->end - r->pos) / 8) {
        r->bad = true;
        return slice_of("", 0);
    }
    const uint8_t *p = r->packet + r->pos / 8;
    r->pos += len * 8;
    size_t zero = t->kind == CTF_TEXT ? find_zero(p, (size_t)len, t->text.unit) : SIZE_MAX;
    return slice_of(p, zero < len ? zero : (size_t)len);
}

/* `f` says what the value is for and where it is remembered; NULL: neither. */
static void read_value(struct ctf_reader *r, const struct ctf_type *t, const char *name, const struct ctf_field *f,
                       ctf_items *out);

static void read_struct(struct ctf_reader *r, const struct ctf_type *t, ctf_items *out)
{
    if (!align_to(r, t->align))
        return;
    for (uint32_t i = 0; i < t->compound.n && !r->bad; i++)
        read_value(r, t->compound.fields[i].type, t->compound.fields[i].name, &t->compound.fields[i], out);
}

/* An array or sequence: text when its elements are characters that stand byte by byte. */
static void read_list(struct ctf_reader *r, const struct ctf_type *t, const char *name, ctf_items *out)
{
    const struct ctf_type *e = t->list.element;
    uint64_t n = t->list.length;
    if (t->kind == CTF_SEQUENCE)
        n = (uint64_t)r->slots[t->path_slot];
    if (!align_to(r, t->align > e->align ? t->align : e->align))
        return;
    if (e->min_bits && n > (r->end - r->pos) / e->min_bits) {
        r->bad = true;
        return;
    }
    if (e->kind == CTF_INTEGER && e->integer.is_text && e->integer.bits == 8 && r->pos % 8 == 0) {
        const uint8_t *p = r->packet + r->pos / 8;
        r->pos += n * 8;
        size_t len = n ? strnlen((const char *)p, (size_t)n) : 0;
        put_text(r, out, name, t, CTF_ROLE_NONE, slice_of(p, len));
        return;
    }
    add(r, out, name, t, CTF_ITEM_OPEN, CTF_ROLE_NONE);
    for (uint64_t i = 0; i < n && !r->bad; i++)
        read_value(r, e, NULL, NULL, out);
    add(r, out, name, t, CTF_ITEM_CLOSE, CTF_ROLE_NONE);
}

const struct ctf_choice *ctf_choice_of(const struct ctf_reader *r, const struct ctf_type *t)
{
    int64_t v = r->slots[t->path_slot];
    for (uint32_t i = 0; i < t->n_choices; i++)
        if (ctf_in_range(t->tag_type, v, t->choices[i].lo, t->choices[i].hi))
            return &t->choices[i];
    return NULL;
}

static void read_variant(struct ctf_reader *r, const struct ctf_type *t, const char *name, ctf_items *out)
{
    const struct ctf_choice *c = ctf_choice_of(r, t);
    if (c && c->option < t->compound.n)
        read_value(r, t->compound.fields[c->option].type, name, &t->compound.fields[c->option], out);
    else
        r->bad = true;
}

static void read_number(struct ctf_reader *r, const struct ctf_type *t, const char *name, const struct ctf_field *f,
                        ctf_items *out)
{
    uint8_t bits = t->integer.bits;
    int64_t v = t->kind == CTF_VARIABLE ? read_variable(r, t, &bits) : read_integer(r, t);
    if (f && f->slot != CTF_NO_SLOT)
        r->slots[f->slot] = v;
    struct ctf_item *item =
        add(r, out, name, t, t->integer.is_signed ? CTF_ITEM_INT : CTF_ITEM_UINT, f ? f->role : (uint8_t)CTF_ROLE_NONE);
    if (item) {
        item->bits = bits;
        item->i = v;
    }
}

static void read_real_item(struct ctf_reader *r, const struct ctf_type *t, const char *name, uint8_t role,
                           ctf_items *out)
{
    double d = read_real(r, t);
    struct ctf_item *item = add(r, out, name, t, CTF_ITEM_REAL, role);
    if (item)
        item->d = d;
}

static void read_value(struct ctf_reader *r, const struct ctf_type *t, const char *name, const struct ctf_field *f,
                       ctf_items *out)
{
    /* lists of lists of nothing: a few bytes can say that there are millions */
    if (__builtin_expect(++r->values > CTF_MAX_EMPTY + 2 * (r->pos - r->from), 0)) {
        r->bad = true;
        return;
    }
    uint8_t role = f ? f->role : (uint8_t)CTF_ROLE_NONE;
    switch (t->kind) {
    case CTF_INTEGER:
    case CTF_ENUM:
    case CTF_VARIABLE:
        read_number(r, t, name, f, out);
        break;
    case CTF_FLOAT:
        read_real_item(r, t, name, role, out);
        break;
    case CTF_STRING:
        put_text(r, out, name, t, role, read_string(r, t));
        break;
    case CTF_TEXT:
    case CTF_BLOB:
        put_text(r, out, name, t, role, read_bytes(r, t));
        break;
    case CTF_STRUCT:
        add(r, out, name, t, CTF_ITEM_OPEN, role);
        read_struct(r, t, out);
        add(r, out, name, t, CTF_ITEM_CLOSE, role);
        break;
    case CTF_VARIANT:
        read_variant(r, t, name, out);
        break;
    case CTF_ARRAY:
    case CTF_SEQUENCE:
        read_list(r, t, name, out);
        break;
    case CTF_OPTIONAL:
        if (ctf_choice_of(r, t))
            read_value(r, t->list.element, name, f, out);
        break;
    }
}

void ctf_read(struct ctf_reader *r, const struct ctf_type *type, ctf_items *out)
{
    if (!type)
        return;
    r->from = r->pos;
    r->values = 0;
    if (type->kind == CTF_STRUCT)
        read_struct(r, type, out);
    else
        read_value(r, type, NULL, NULL, out);
}

static inline uint64_t aligned(uint64_t pos, uint32_t align)
{
    return (pos + align - 1) & ~(uint64_t)(align - 1);
}

/* Moves *pos, counted from where the outermost type is aligned, over a value. False when values differ in size. */
static bool fixed_size(const struct ctf_type *t, uint64_t *pos)
{
    uint64_t element = 0;
    switch (t->kind) {
    case CTF_INTEGER:
    case CTF_ENUM:
        *pos = aligned(*pos, t->align) + t->integer.bits;
        return true;
    case CTF_FLOAT:
        *pos = aligned(*pos, t->align) + t->real.bits;
        return true;
    case CTF_STRUCT:
        *pos = aligned(*pos, t->align);
        for (uint32_t i = 0; i < t->compound.n; i++)
            if (!fixed_size(t->compound.fields[i].type, pos))
                return false;
        return true;
    case CTF_ARRAY:
        if (!fixed_size(t->list.element, &element) || !element || element % t->list.element->align)
            return false;
        *pos = aligned(*pos, t->align > t->list.element->align ? t->align : t->list.element->align);
        *pos += element * t->list.length;
        return true;
    case CTF_TEXT:
    case CTF_BLOB:
        *pos = aligned(*pos, 8) + (uint64_t)t->text.length * 8;
        return !t->location;
    default:
        return false;
    }
}

enum { MAX_BITS = 1 << 16 }; /* types share parts: one of many bits may have more of them than can be walked */

uint64_t ctf_fixed_bits(const struct ctf_type *type)
{
    uint64_t bits = 0;
    return type && type->min_bits <= MAX_BITS && fixed_size(type, &bits) ? bits : 0;
}

const struct ctf_type *ctf_fixed_place(const struct ctf_type *type, const char *name, uint64_t *bit)
{
    uint64_t pos = 0;
    if (!type || type->kind != CTF_STRUCT || type->min_bits > MAX_BITS)
        return NULL;
    for (uint32_t i = 0; i < type->compound.n; i++) {
        const struct ctf_field *f = &type->compound.fields[i];
        if (strcmp(f->name, name) == 0) {
            *bit = aligned(pos, f->type->align);
            return f->type;
        }
        if (!fixed_size(f->type, &pos))
            return NULL;
    }
    return NULL;
}

const struct ctf_item *ctf_item_find(const ctf_items *items, const char *name)
{
    for (size_t i = 0; i < items->n; i++)
        if (items->p[i].name && items->p[i].kind != CTF_ITEM_CLOSE && strcmp(items->p[i].name, name) == 0)
            return &items->p[i];
    return NULL;
}

const struct ctf_item *ctf_item_of_role(const ctf_items *items, enum ctf_role role)
{
    for (size_t i = items->n; i-- > 0;)
        if (items->p[i].role == role && (items->p[i].kind == CTF_ITEM_INT || items->p[i].kind == CTF_ITEM_UINT))
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

bool ctf_in_range(const struct ctf_type *type, int64_t value, int64_t lo, int64_t hi)
{
    return type->integer.is_signed ? value >= lo && value <= hi
                                   : (uint64_t)value >= (uint64_t)lo && (uint64_t)value <= (uint64_t)hi;
}
