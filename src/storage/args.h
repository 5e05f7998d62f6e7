/* Argument sets: the key/value details of events, slices, tracks …, known by a small dense number.
 *
 * A set is either a list of ready values (`args_intern`) or the bytes of an event's payload together with the decoder
 * that will turn them into values when a query asks (`args_intern_bytes`). Equal sets share one number.
 *
 * In C a set is an `argset`, whose zeroed value is "none". In tables and in SQL it is a number from 0 on, or NULL.
 * Columns of type ARGS (tables.def) take an argset and store the number, ROW_ARGS() and ROW_SET_ARGS() read and change
 * it; whoever has a cell in hand asks argset_of_cell(), and after args_number() args_of_cell(). Nothing else converts,
 * and as an argset is not a number the compiler sees to that. When memory runs out the functions return none and latch
 * `failed`. */
#ifndef MERIDIAN_STORAGE_ARGS_H
#define MERIDIAN_STORAGE_ARGS_H

#include "base/arena.h"
#include "base/strpool.h"
#include "base/vec.h"
#include "storage/column.h"

/* X(type, the text of args.value_type, which column of `args` holds the value) */
#define ARG_TYPES(X)                                                                                                   \
    X(INT, "int", int_value)                                                                                           \
    X(UINT, "uint", int_value)                                                                                         \
    X(BOOL, "bool", int_value)                                                                                         \
    X(POINTER, "pointer", int_value)                                                                                   \
    X(STRING, "string", string_value)                                                                                  \
    X(REAL, "real", real_value)                                                                                        \
    X(JSON, "json", string_value)                                                                                      \
    X(NULL, "null", int_value)

enum arg_type {
#define X(name, text, column) ARG_##name,
    ARG_TYPES(X)
#undef X
        ARG_TYPE_COUNT
};

struct arg {
    strid flat_key; /* without array indices: "debug.a.b" */
    strid key;      /* with them: "debug.a[0].b"; often the same */
    int64_t word;   /* integer, strid, or column_f64_word() of a double */
    uint8_t type;   /* enum arg_type */
};

struct arg_list {
    struct arg *p;
    size_t n;
    size_t cap;
};

struct args;

typedef struct argset {
    uint32_t plus_one; /* 0: none */
} argset;

#define ARGSET_NONE ((argset){0})

static inline bool argset_is_none(argset set)
{
    return set.plus_one == 0;
}

static inline bool argset_eq(argset a, argset b)
{
    return a.plus_one == b.plus_one;
}

/* What a table and SQL have for a set: its number from 0 on, COL_NULL for none. */
static inline int64_t argset_cell(argset set)
{
    return set.plus_one ? (int64_t)set.plus_one - 1 : COL_NULL;
}

/* The set of a cell, or of any number that a query gives: none for what cannot be one. */
static inline argset argset_of_cell(int64_t cell)
{
    return (argset){cell >= 0 && cell < UINT32_MAX ? (uint32_t)cell + 1 : 0};
}

/* Turns payload bytes into values, appended to *out. `aux` is what was given at args_intern_bytes(). */
typedef void (*args_decode_fn)(void *ctx, uint32_t aux, struct slice bytes, struct arg_list *out);
/* The same where only values of that key, or of that flat key, are of use: others may be left out. */
typedef void (*args_decode_key_fn)(void *ctx, uint32_t aux, struct slice bytes, strid key, struct arg_list *out);

enum {
    ARGS_READY = 0,
    ARGS_HAVE_DEFAULTS = 12, /* the kind of sets that the next one gives more of */
    ARGS_WITH_DEFAULTS = 15, /* messages of Android's window system, with the fields that are not set */
    ARGS_MAX_DECODERS = 16,
    ARGS_AUX_BITS = 28,
};

/* The decoder of a payload, and what it is given: with the bytes, all that a set is. */
static inline uint32_t args_kind_aux(unsigned kind, uint32_t aux)
{
    return kind << ARGS_AUX_BITS | (aux & ((1u << ARGS_AUX_BITS) - 1));
}

struct arg_set {
    union {
        const uint8_t *bytes; /* payload, for a decoder */
        uint64_t first;       /* index into ready values */
    };
    uint32_t len;      /* bytes or values */
    uint32_t kind_aux; /* decoder number << 28 | aux; 0: ready values */
};

/* Sets that are somewhere else, in a mapped file for instance; none are added to those. */
struct args_base {
    /* Appends the values of set `index`; with_defaults: those that ARGS_WITH_DEFAULTS gives, nothing if it gives none.
     */
    void (*values)(void *ctx, uint32_t index, bool with_defaults, struct arg_list *out);
    void *ctx;
    uint32_t n;
};

struct completed_set {
    uint32_t set;    /* its place */
    uint32_t before; /* how many sets there were */
};

struct args {
    struct strpool *strings;
    struct args_base base; /* values NULL: there is none */
    struct arena bytes;    /* copies of payloads that do not outlive the import */
    VEC(struct arg_set)
    sets; /* [cell] */
    VEC(struct arg)
    ready; /* values of ready sets */
    VEC(struct completed_set)
    completed;               /* in the order of args_complete() */
    struct args_slot *slots; /* hash index over sets, a power of two */
    uint32_t *numbers;       /* by set, once args_number() was called: its cell; that of one more set */
    uint32_t n_numbers;      /* sets that have one */
    uint64_t seed;           /* of the index's hashes; 0 until sets crowd */
    uint64_t costly_bytes;   /* of payloads that take long to decode, and args that follow each */
    uint32_t slot_cap;
    uint32_t n_slots; /* used; sets that nobody looks for have none */
    struct {
        args_decode_fn decode;
        args_decode_key_fn decode_key; /* NULL: all is decoded */
        void *ctx;
    } decoders[ARGS_MAX_DECODERS];
    bool failed;
};

/* Announces decoder `kind` (1 .. ARGS_MAX_DECODERS - 1). ctx must outlive the storage's queries. */
void args_set_decoder(struct args *a, unsigned kind, args_decode_fn decode, void *ctx);
/* After that: the decoder has a shorter way to the values of one key. */
void args_set_key_decoder(struct args *a, unsigned kind, args_decode_key_fn decode_key);

/* The set of a list of values; none for an empty list. */
argset args_intern(struct args *a, const struct arg *list, size_t n);

/* The set of a payload. `stable`: the bytes stay where they are as long as the storage (a mapped file), else they are
 * copied. `share` = false skips the search for an equal set, for payloads that hardly repeat. *was_new (may be NULL)
 * tells. */
argset args_intern_bytes(struct args *a, unsigned kind, uint32_t aux, struct slice payload, bool stable, bool share,
                         bool *was_new);

/* Appends the values of a set to *out (decoding if need be); nothing for none or an unknown one. */
void args_values(const struct args *a, argset set, struct arg_list *out);

/* As args_values() where only those are of use whose key or flat key is `key`: others may be missing. */
void args_values_of(const struct args *a, argset set, strid key, struct arg_list *out);

/* As above by another decoder than that of the set; nothing for sets of ready values. */
void args_values_by(const struct args *a, unsigned decoder, argset set, struct arg_list *out);

/* How many sets there are; their cells are 0 .. count - 1. */
static inline uint32_t args_count(const struct args *a)
{
    return a->base.values ? a->base.n : (uint32_t)a->sets.n;
}

/* Bytes of a key that is made of names and indices; what is longer is cut: a name of megabytes over an array of as many
 * values would be as many names. */
enum { ARG_KEY_MAX = 1024 };

static inline size_t arg_key_cut(size_t len)
{
    return len < ARG_KEY_MAX ? len : ARG_KEY_MAX;
}

enum { ARGS_MAX_NUMBERED = 1 << 16, ARGS_MAX_COMPLETED = 1 << 18, ARGS_MAX_COSTLY = 1 << 20 };

/* The owner of a set has come to its end (a slice was closed): it is numbered among those that are made now. Only the
 * first of a set's owners counts. */
void args_note_complete(struct args *a, argset set);
static inline void args_complete(struct args *a, argset set)
{
    if (a->sets.n <= ARGS_MAX_NUMBERED && !argset_is_none(set))
        args_note_complete(a, set);
}

/* The set is numbered behind all others. */
void args_number_last(struct args *a, argset set);

/* Gives each set the number of its first value in the list of all of them, as other importers do, so that numbers that
 * a client has kept mean the same here. They stand in the order in which they were made, or completed; those that are
 * not in `used` (a byte for each set) are gone. Returns what each set is now, by its old place, for the caller to free;
 * NULL, for want of memory or of numbers: nothing has changed. Only where args_may_number(): values must be counted,
 * and so decoded, for this. */
argset *args_number(struct args *a, const uint8_t *used);
static inline bool args_may_number(const struct args *a)
{
    return a->sets.n && a->sets.n <= ARGS_MAX_NUMBERED && !a->numbers && !a->base.values &&
           a->costly_bytes <= ARGS_MAX_COSTLY;
}

/* The cell of a set (COL_NULL for none or one without values), and the set of a cell: none for what is not a cell. */
int64_t args_cell(const struct args *a, argset set);
argset args_of_cell(const struct args *a, int64_t cell);

/* The same for cells that come one after the other, many of them in order: *last is the set of the one before, none to
 * begin with. */
argset args_of_next_cell(const struct args *a, int64_t cell, argset *last);

/* Appending to a list. Names are interned. */
void arg_list_add(struct args *a, struct arg_list *l, strid flat_key, strid key, enum arg_type type, int64_t word);
void arg_list_int(struct args *a, struct arg_list *l, const char *key, int64_t v);
void arg_list_uint(struct args *a, struct arg_list *l, const char *key, uint64_t v);
void arg_list_bool(struct args *a, struct arg_list *l, const char *key, bool v);
void arg_list_str(struct args *a, struct arg_list *l, const char *key, strid v);
void arg_list_real(struct args *a, struct arg_list *l, const char *key, double v);
void arg_list_free(struct arg_list *l);

void args_free(struct args *a);

#endif
