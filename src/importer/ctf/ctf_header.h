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

struct ctf_header {
    const struct ctf_type *type; /* what it was compiled from */
    bool usable;
    struct ctf_header_part first;
    const struct ctf_type *variant; /* behind them, NULL: nothing */
    struct ctf_header_part options[CTF_HEADER_OPTIONS];
};

/* Looks whether headers of this type have such a shape. */
void ctf_header_compile(struct ctf_header *h, const struct ctf_type *type);

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
