/* Headers of events that are plain integers. */
#include "importer/ctf/ctf_header.h"

/* A struct of integers as steps. */
static bool compile_part(struct ctf_header_part *p, const struct ctf_type *t, uint32_t n)
{
    uint32_t align = t->align; /* of the struct, in front of its first field */
    if (n > CTF_HEADER_STEPS || n == 0)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct ctf_field *f = &t->compound.fields[i];
        const struct ctf_type *v = f->type;
        if ((v->kind != CTF_INTEGER && v->kind != CTF_ENUM) || v->integer.reversed || v->integer.is_bool)
            return false;
        p->steps[i] = (struct ctf_header_step){.align = v->align > align ? v->align : align,
                                               .bits = v->integer.bits,
                                               .big_endian = v->integer.big_endian,
                                               .is_signed = v->integer.is_signed,
                                               .role = f->role,
                                               .clock = v->integer.clock,
                                               .slot = f->slot};
        align = 1;
    }
    p->n = n;
    return true;
}

/* Places the steps of a part behind *end. False when it does not lie in the word, or has what the word does not. */
static bool place_part(struct ctf_header_word *w, const struct ctf_header_part *p, uint32_t *end)
{
    enum { WORD = 64 };
    for (const struct ctf_header_step *s = p->steps; s < p->steps + p->n; s++) {
        uint32_t at = (*end + s->align - 1) & ~(s->align - 1);
        bool is_tag = s->slot != CTF_NO_SLOT, is_time = s->role == CTF_ROLE_CLOCK;
        *end = at + s->bits;
        if (*end > WORD || s->align > w->align || s->big_endian || s->is_signed || (is_tag && s->slot != w->tag_slot) ||
            (is_time && w->time_step))
            return false;
        struct ctf_word_part part = {UINT64_MAX >> (WORD - s->bits), (uint8_t)at};
        if (is_tag)
            w->tag = part;
        if (s->role == CTF_ROLE_EVENT_ID)
            w->id = part;
        if (is_time) {
            w->time = part;
            w->time_step = s;
        }
    }
    return true;
}

static void compile_word(struct ctf_header *h)
{
    struct ctf_header_word *w = &h->word;
    const struct ctf_type *v = h->variant;
    uint32_t end = 0;
    *w = (struct ctf_header_word){.align = h->first.steps[0].align, .tag_slot = v ? v->path_slot : CTF_NO_SLOT};
    if (w->align % 8 || !place_part(w, &h->first, &end))
        return;
    if (v) {
        if (!w->tag.mask || !v->n_choices || v->choices[0].option >= v->compound.n || v->tag_type->integer.is_signed)
            return;
        w->tag_from = (uint64_t)v->choices[0].lo;
        w->tag_to = (uint64_t)v->choices[0].hi;
        if (!place_part(w, &h->options[v->choices[0].option], &end))
            return;
    }
    w->bits = end;
    w->usable = w->time_step != NULL;
}

void ctf_header_compile(struct ctf_header *h, const struct ctf_type *type)
{
    *h = (struct ctf_header){.type = type};
    if (!type || type->kind != CTF_STRUCT || !type->compound.n)
        return;
    uint32_t n = type->compound.n;
    const struct ctf_type *last = type->compound.fields[n - 1].type;
    if (last->kind == CTF_VARIANT) {
        h->variant = last;
        n--;
        if (last->compound.n > CTF_HEADER_OPTIONS || last->align != 1)
            return;
        for (uint32_t i = 0; i < last->compound.n; i++) {
            const struct ctf_type *option = last->compound.fields[i].type;
            if (option->kind != CTF_STRUCT || !compile_part(&h->options[i], option, option->compound.n))
                return;
        }
    }
    h->usable = compile_part(&h->first, type, n);
    if (h->usable)
        compile_word(h);
}

/* Eight bytes at once where that many are there; numbers in the host's order, which nearly all are. */
static inline uint64_t bits_at(const struct ctf_reader *r, const struct ctf_header_step *s)
{
    unsigned shift = r->pos & 7;
    if (__builtin_expect(!s->big_endian && shift + s->bits <= 64 && (r->pos | 7) + 57 <= r->end, 1)) {
        uint64_t v;
        memcpy(&v, r->packet + r->pos / 8, sizeof v);
        return v >> shift & (UINT64_MAX >> (64 - s->bits));
    }
    return ctf_bits(r->packet, r->pos, s->bits, s->big_endian);
}

static inline bool read_part(const struct ctf_header_part *p, struct ctf_reader *r, struct ctf_header_said *said)
{
    for (const struct ctf_header_step *s = p->steps, *end = s + p->n; s < end; s++) {
        uint64_t pos = (r->pos + s->align - 1) & ~(uint64_t)(s->align - 1);
        r->bad = pos > r->end || r->end - pos < s->bits;
        if (__builtin_expect(r->bad, 0))
            return false;
        r->pos = pos;
        uint64_t v = bits_at(r, s);
        if (s->is_signed)
            v = (uint64_t)((int64_t)(v << (64 - s->bits)) >> (64 - s->bits));
        r->pos += s->bits;
        if (s->slot != CTF_NO_SLOT)
            r->slots[s->slot] = (int64_t)v;
        if (s->role == CTF_ROLE_EVENT_ID) {
            said->id = v;
        } else if (s->role == CTF_ROLE_CLOCK) {
            said->readings[said->n_readings].step = s;
            said->readings[said->n_readings++].value = v;
        }
    }
    return true;
}

bool ctf_header_read(const struct ctf_header *h, struct ctf_reader *r, struct ctf_header_said *said)
{
    said->id = 0;
    said->n_readings = 0;
    if (!read_part(&h->first, r, said))
        return false;
    if (!h->variant)
        return true;
    const struct ctf_choice *c = ctf_choice_of(r, h->variant);
    r->bad = !c || c->option >= h->variant->compound.n;
    return !r->bad && read_part(&h->options[c->option], r, said);
}
