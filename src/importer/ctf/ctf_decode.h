/* Reads values out of the bits of a CTF packet, by their type. */
#ifndef MERIDIAN_IMPORTER_CTF_CTF_DECODE_H
#define MERIDIAN_IMPORTER_CTF_CTF_DECODE_H

#include "importer/ctf/ctf_types.h"

/* Positions are bits from the start of the packet. */
struct ctf_reader {
    const uint8_t *packet;
    uint64_t pos;
    uint64_t end;          /* bits that hold content */
    int64_t *slots;        /* metadata.n_slots values that later tags and lengths refer to */
    uint64_t from, values; /* where the outermost value begins, and how many were read in it */
    bool bad;              /* read past the end, or a tag without an option; latched */
};

enum ctf_item_kind {
    CTF_ITEM_INT,
    CTF_ITEM_UINT,
    CTF_ITEM_REAL,
    CTF_ITEM_TEXT,
    CTF_ITEM_BLOB,
    CTF_ITEM_OPEN,  /* a struct, array or sequence begins */
    CTF_ITEM_CLOSE, /* … and ends */
};

/* One value, or the border of a compound one. Elements of lists have the name NULL. */
struct ctf_item {
    const char *name;
    const struct ctf_type *type;
    enum ctf_item_kind kind;
    uint8_t role; /* enum ctf_role */
    uint8_t bits; /* of an integer, as it was stored */
    union {
        int64_t i;
        uint64_t u;
        double d;
        struct slice text; /* bytes in the packet, without the NUL; of a blob all */
    };
};

typedef VEC(struct ctf_item) ctf_items;

/* Appends the items of one value of `type` (NULL: nothing) to *out, which may be NULL to pass over it. On damage r->bad
 * is set; out of memory is damage too. The outermost struct gives no OPEN and CLOSE. */
void ctf_read(struct ctf_reader *r, const struct ctf_type *type, ctf_items *out);

/* How many bits every value of a type takes from where it is aligned; 0: none, or not always as many. */
uint64_t ctf_fixed_bits(const struct ctf_type *type);
/* Passes over a value: `fixed` is what ctf_fixed_bits() says. */
static inline void ctf_skip(struct ctf_reader *r, const struct ctf_type *type, uint64_t fixed)
{
    if (!fixed) {
        ctf_read(r, type, NULL);
        return;
    }
    uint64_t begin = (r->pos + type->align - 1) & ~(uint64_t)(type->align - 1);
    if (begin > r->end || r->end - begin < fixed)
        r->bad = true;
    else
        r->pos = begin + fixed;
}

/* The type of the first field of a name in a struct, and its first bit, counted from where the struct is aligned; NULL
 * when there is none, or it does not always lie there. */
const struct ctf_type *ctf_fixed_place(const struct ctf_type *type, const char *name, uint64_t *bit);

/* The choice that the value of a tag makes; NULL: none. */
const struct ctf_choice *ctf_choice_of(const struct ctf_reader *r, const struct ctf_type *variant);

/* The first integer item of a name; false when there is none. */
bool ctf_item_int(const ctf_items *items, const char *name, int64_t *value);

/* The first item of a name, NULL when there is none. */
const struct ctf_item *ctf_item_find(const ctf_items *items, const char *name);

/* The last integer item of a role; NULL when there is none. */
const struct ctf_item *ctf_item_of_role(const ctf_items *items, enum ctf_role role);

/* A text that is not in UTF-8 as UTF-8, to be given to mem_free(); what cannot be is U+FFFD. NULL: it is in UTF-8. */
char *ctf_text_utf8(const struct ctf_item *item);

/* The ranges of a class that may hold a value. Of more than CTF_MAX_CHOICES they are so many as begin last at or before
 * the value: where more overlap, what begins far below is not found. Of so many flags it is the first ones. */
struct ctf_ranges {
    const struct ctf_range *p;
    uint32_t n;
};
struct ctf_ranges ctf_ranges_near(const struct ctf_type *t, int64_t value);

/* The label of an enum's value, NULL when no range has it. */
const char *ctf_enum_label(const struct ctf_type *type, int64_t value);

/* Is a value of the type within [lo, hi], as its signedness reads them? */
bool ctf_in_range(const struct ctf_type *type, int64_t value, int64_t lo, int64_t hi);

/* `bits` (1..64) of an unsigned integer at a bit position that is known to be inside. */
uint64_t ctf_bits(const uint8_t *packet, uint64_t pos, unsigned bits, bool big_endian);

#endif
