/* The fields that a handler asks for: found once for a class, read where they lie or among the items of an event. */
#include "importer/ctf/ctf_internal.h"

static bool has_field(const struct ctf_type *t, const char *name)
{
    for (uint32_t i = 0; t && t->kind == CTF_STRUCT && i < t->compound.n; i++)
        if (strcmp(t->compound.fields[i].name, name) == 0)
            return true;
    return false;
}

static bool is_text(const struct ctf_type *t)
{
    if (t->kind == CTF_TEXT)
        return !t->location && t->text.unit == 1;
    const struct ctf_type *e = t->kind == CTF_ARRAY ? t->list.element : NULL;
    return e && e->kind == CTF_INTEGER && e->integer.is_text && e->integer.bits == 8;
}

static bool is_number(const struct ctf_type *t)
{
    return (t->kind == CTF_INTEGER || t->kind == CTF_ENUM) && !t->integer.reversed && !t->integer.is_bool;
}

static uint8_t plain_bits(const struct ctf_type *t, uint64_t bit)
{
    bool plain = is_number(t) && bit % 8 == 0 && !t->integer.big_endian;
    return plain && (t->integer.bits == 32 || t->integer.bits == 64) ? t->integer.bits : 0;
}

void ctf_place_fields(struct ctf_class_use *use)
{
    use->placed = use->handler != NULL;
    for (unsigned i = 0; use->handler && i < CTF_HANDLER_FIELDS && use->handler->fields[i]; i++) {
        const char *name = use->handler->fields[i];
        uint64_t bit = 0;
        const struct ctf_type *t = ctf_fixed_place(use->class->fields, name, &bit);
        if (t && bit <= UINT32_MAX && (is_number(t) || (is_text(t) && bit % 8 == 0)))
            use->places[i] = (struct ctf_place){t, (uint32_t)bit, plain_bits(t, bit)};
        else if (has_field(use->class->fields, name))
            use->placed = false;
    }
}

/* Of a field that is not plain, or does not lie in whole bytes here. */
static __attribute__((noinline)) bool other_int(const struct ctf_row *e, unsigned field, int64_t *value)
{
    const struct ctf_class_use *use = e->use;
    if (!use->placed)
        return ctf_item_int(e->fields, use->handler->fields[field], value);
    const struct ctf_type *t = use->places[field].type;
    if (!t || !e->packet || !is_number(t))
        return false;
    unsigned bits = t->integer.bits;
    uint64_t v = ctf_bits(e->packet, e->fields_at + use->places[field].bit, bits, t->integer.big_endian);
    *value = t->integer.is_signed ? (int64_t)(v << (64 - bits)) >> (64 - bits) : (int64_t)v;
    return true;
}

bool ctf_row_int(const struct ctf_row *e, unsigned field, int64_t *value)
{
    const struct ctf_place *place = &e->use->places[field];
    if (!e->use->placed || !place->plain || !e->packet || e->fields_at % 8)
        return other_int(e, field, value);
    const uint8_t *p = e->packet + (e->fields_at + place->bit) / 8;
    uint32_t low;
    memcpy(&low, p, sizeof low);
    *value = place->type->integer.is_signed ? (int64_t)(int32_t)low : (int64_t)low;
    if (place->plain > 32)
        memcpy(value, p, sizeof *value);
    return true;
}

/* Names of tasks come again and again: most were seen a moment ago, in the same 16 bytes. */
static strid short_text(struct ctf_import *c, const uint8_t *p)
{
    uint64_t words[2];
    memcpy(words, p, sizeof words);
    struct ctf_known_text *known = ctf_known_text(c, words);
    if (!known->id || known->words[0] != words[0] || known->words[1] != words[1])
        *known = (struct ctf_known_text){
            {words[0], words[1]}, import_slice(ctf_importer(c), slice_of(p, strnlen((const char *)p, sizeof words)))};
    return known->id;
}

strid ctf_row_text(const struct ctf_row *e, unsigned field)
{
    const struct ctf_class_use *use = e->use;
    if (!use->placed) {
        const struct ctf_item *item = ctf_item_find(e->fields, use->handler->fields[field]);
        return item && item->kind == CTF_ITEM_TEXT ? import_slice(e->m->im, item->text) : 0;
    }
    const struct ctf_type *t = use->places[field].type;
    if (!t || !e->packet || !is_text(t))
        return 0;
    const uint8_t *p = e->packet + (e->fields_at + use->places[field].bit) / 8;
    uint32_t len = t->kind == CTF_TEXT ? t->text.length : t->list.length;
    return len == CTF_SHORT_TEXT ? short_text(e->import, p)
                                 : import_slice(e->m->im, slice_of(p, strnlen((const char *)p, len)));
}
