/* Headers of events that are plain integers, with or without a choice behind the first ones: read without making items.
 *
 * These are the headers that tracers write: an id and a time, or a short id and then either a short time or the whole
 * id and time. Others are read as any other struct. */
#ifndef MERIDIAN_IMPORTER_CTF_CTF_HEADER_H
#define MERIDIAN_IMPORTER_CTF_CTF_HEADER_H

#include "importer/ctf/ctf_decode.h"

enum { CTF_HEADER_STEPS = 4, CTF_HEADER_OPTIONS = 4 };

struct ctf_header_step {
    uint32_t align; /* bits */
    uint8_t bits;
    bool big_endian, is_signed;
    uint8_t role;  /* enum ctf_role */
    int16_t clock; /* that it maps, -1: none */
    int slot;
};

struct ctf_header_part {
    struct ctf_header_step steps[CTF_HEADER_STEPS];
    uint32_t n;
};

/* The header that nearly all events have, where it lies in the first 8 bytes, in the host's order: the one without a
 * choice, or that of the first choice. */
struct ctf_header_word {
    bool usable;
    uint32_t bits;  /* that it takes */
    uint32_t align; /* of its begin, in bits: whole bytes */
    struct ctf_word_part {
        uint64_t mask; /* 0: it has none */
        uint8_t at;
    } tag, id, time;
    uint64_t tag_from, tag_to;
    int tag_slot;
    const struct ctf_header_step *time_step;
};

struct ctf_header {
    const struct ctf_type *type; /* what it was compiled from */
    bool usable;
    struct ctf_header_word word;
    struct ctf_header_part first;
    const struct ctf_type *variant; /* behind them, NULL: nothing */
    struct ctf_header_part options[CTF_HEADER_OPTIONS];
};

/* Looks whether headers of this type have such a shape. */
void ctf_header_compile(struct ctf_header *h, const struct ctf_type *type);

static inline uint64_t ctf_part_of(uint64_t word, struct ctf_word_part part)
{
    return word >> part.at & part.mask;
}

/* Reads a header that is one word, at *at, which moves behind it: its id (0 without one), and the reading of
 * w->time_step. False when this one is another, or the packet ends within the word. */
static inline bool ctf_header_read_word(const struct ctf_header_word *w, const struct ctf_reader *r, uint64_t *at,
                                        uint64_t *id, uint64_t *time)
{
    uint64_t pos = (*at + w->align - 1) & ~(uint64_t)(w->align - 1), word;
    if (!w->usable || pos > r->end || r->end - pos < 8 * sizeof word)
        return false;
    memcpy(&word, r->packet + pos / 8, sizeof word);
    uint64_t tag = ctf_part_of(word, w->tag);
    if (tag < w->tag_from || tag > w->tag_to)
        return false;
    if (w->tag.mask)
        r->slots[w->tag_slot] = (int64_t)tag;
    *at = pos + w->bits;
    *id = ctf_part_of(word, w->id);
    *time = ctf_part_of(word, w->time);
    return true;
}

/* What a header says: the last id, and the readings of clocks in their order. */
struct ctf_header_said {
    uint64_t id; /* 0 without one */
    unsigned n_readings;
    struct {
        const struct ctf_header_step *step;
        uint64_t value;
    } readings[2 * CTF_HEADER_STEPS];
};

/* Reads a usable header; false when r->bad. */
bool ctf_header_read(const struct ctf_header *h, struct ctf_reader *r, struct ctf_header_said *said);

#endif
