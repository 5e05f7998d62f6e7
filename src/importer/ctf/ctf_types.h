/* What the metadata of a CTF trace declares: types, streams, events, clocks. Read by tsdl_parse() from TSDL (CTF 1.8)
 * or by ctf2_parse() from JSON (CTF 2). Everything lives in one arena and is immutable once parsed. */
#ifndef MERIDIAN_IMPORTER_CTF_CTF_TYPES_H
#define MERIDIAN_IMPORTER_CTF_CTF_TYPES_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/vec.h"

enum ctf_kind {
    CTF_INTEGER,
    CTF_FLOAT,
    CTF_STRING, /* up to a zero unit */
    CTF_ENUM,
    CTF_VARIABLE, /* an integer or enum in LEB128 */
    CTF_TEXT,     /* a string of a length in bytes: fixed, or of an earlier field when `path_slot` is one */
    CTF_BLOB,     /* likewise */
    CTF_STRUCT,   /* from here on: types with others inside */
    CTF_VARIANT,
    CTF_ARRAY,    /* fixed length */
    CTF_SEQUENCE, /* length in an earlier field */
    CTF_OPTIONAL, /* there when an earlier field is in one of `choices` */
};

/* What a field of a packet's or event's header is for. CTF 2 says so; in CTF 1.8 names do. */
enum ctf_role {
    CTF_ROLE_NONE,
    CTF_ROLE_MAGIC,
    CTF_ROLE_UUID,
    CTF_ROLE_STREAM_ID,
    CTF_ROLE_STREAM_INSTANCE,
    CTF_ROLE_PACKET_BITS,
    CTF_ROLE_CONTENT_BITS,
    CTF_ROLE_CLOCK, /* the low bits of the clock */
    CTF_ROLE_SEQUENCE,
    CTF_ROLE_DISCARDED,
    CTF_ROLE_EVENT_ID,
};

enum {
    CTF_NO_SLOT = -1,
    CTF_MAX_DEPTH = 32,    /* of nested types */
    CTF_MAX_ALIGN = 4096,  /* bits */
    CTF_MAX_WEIGHT = 8192, /* of a type: see ctf_type.weight */
    CTF_MAX_CHOICES = 512, /* of a variant and its tag, and ranges of labels, which each value goes through */
    CTF_SUMMARY_SLOTS = 256,
    CTF_MAX_EMPTY = 1024, /* values that may take no space where one is read, and as many as it has bits */
};

struct ctf_type;

struct ctf_field {
    const char *name; /* without the leading underscore of LTTng */
    struct ctf_type *type;
    int slot;     /* where its value is remembered for later tags and lengths, or CTF_NO_SLOT */
    uint8_t role; /* enum ctf_role */
};

struct ctf_range {
    const char *label; /* without leading underscore */
    int64_t lo, hi;    /* as the container's signedness reads them */
    uint32_t place;    /* among those of the class, as they were written */
};

/* Which option of a variant a range of the tag's values selects, in order; read as the tag's signedness has it. */
struct ctf_choice {
    int64_t lo, hi;
    uint32_t option; /* UINT32_MAX: none */
};

/* Where CTF 2 says that a tag or length is. */
struct ctf_location {
    int root;       /* of the scopes, outermost first; -1: from the struct that holds the field */
    uint32_t climb; /* so many structs up from there */
    const char *const *names;
    uint32_t n;
};

/* What a type needs to be read apart from its packet, see ctf_type_summary(). */
struct ctf_summary {
    uint32_t align; /* the largest anywhere inside */
    uint64_t set[CTF_SUMMARY_SLOTS / 64], used[CTF_SUMMARY_SLOTS / 64];
    bool overflow; /* a slot that these do not hold */
};

struct ctf_type {
    enum ctf_kind kind;
    uint32_t align;    /* bits, a power of two, at least 1; of a compound: the largest inside */
    uint8_t role;      /* that CTF 2 gives to fields of this class; enum ctf_role */
    bool native_order; /* of numbers: big_endian is the trace's, filled in when the type is placed */
    union {
        struct { /* CTF_INTEGER; for CTF_ENUM: the container */
            uint8_t bits;
            bool is_signed;
            bool big_endian;
            bool is_flags;    /* each range is of bits that have the label's meaning */
            bool is_bool;     /* any bit set is 1 */
            bool reversed;    /* the bits come in the other order than the byte order's */
            bool names_apart; /* the value is a number, its labels stand beside it (CTF 2) */
            bool is_text;     /* encoding = UTF8 or ASCII: an array of these is a string */
            uint8_t base;
            int16_t clock;            /* index of the clock it maps, -1 for none */
            struct ctf_range *ranges; /* CTF_ENUM; see ctf_ranges_near() */
            uint32_t n_ranges;
        } integer;
        struct {
            uint8_t bits; /* 32 or 64 */
            bool big_endian;
        } real;
        struct {
            struct ctf_field *fields;
            uint32_t n;
        } compound; /* CTF_STRUCT and the options of CTF_VARIANT */
        struct {
            struct ctf_type *element;
            uint32_t length; /* CTF_ARRAY */
        } list;              /* CTF_OPTIONAL, too */
        struct {
            uint32_t length; /* in bytes, when it is fixed */
            uint8_t unit;    /* bytes of a code unit: 1, 2 or 4 */
            bool big_endian;
            const char *media_type; /* CTF_BLOB */
        } text;                     /* CTF_STRING, CTF_TEXT, CTF_BLOB */
    };
    uint32_t depth;    /* of types inside */
    uint32_t weight;   /* steps that reading one value can take without using up any bit; bounds hostile metadata */
    uint64_t min_bits; /* the fewest bits a value takes, saturated at 2^32 */
    /* CTF_VARIANT: the tag; CTF_SEQUENCE: the length field. Resolved when the type is placed. */
    const char *path;                    /* as TSDL has it */
    const struct ctf_location *location; /* as CTF 2 has it */
    int path_slot;
    const struct ctf_type *tag_type; /* CTF_VARIANT, CTF_OPTIONAL: the tag */
    struct ctf_choice *choices;      /* likewise */
    uint32_t n_choices;
    bool resolved;               /* its references are */
    bool outward;                /* it refers to fields outside of it: each use is a type of its own */
    struct ctf_summary *summary; /* NULL until asked for */
};

struct ctf_clock {
    const char *name;
    const char *uuid; /* as written, "" when absent */
    uint64_t freq;
    int64_t offset_s;
    int64_t offset;     /* cycles */
    bool no_epoch;      /* its origin is not that of the wall clock */
    const char *origin; /* what clocks of the same origin have in common, when that is not the epoch; NULL: not known */
    const char *id;     /* what CTF 2's stream classes call it; NULL in 1.8 */
};

struct ctf_event_class {
    const char *name;
    uint64_t id;
    struct ctf_type *context; /* may be NULL */
    struct ctf_type *fields;  /* may be NULL */
    const char *log_level;    /* NULL: none is said */
    const char *emf_uri;      /* likewise */
    uint32_t index;           /* in the metadata */
    bool needs_headers;       /* context or fields refer to what stands before them in the packet */
    const struct ctf_stream_class *stream;
};

struct ctf_stream_class {
    uint64_t id;
    struct ctf_type *packet_context;
    struct ctf_type *event_header;
    struct ctf_type *event_context;
    bool needs_headers; /* the event context does */
    int clock;          /* of its packets, index; -1: the one that the headers map */
    bool no_clock;      /* its events have no time */
    VEC(struct ctf_event_class *)
    events; /* sorted by id once parsed */
};

struct ctf_env {
    const char *name;
    const char *text; /* numbers as decimal text */
};

struct ctf_metadata {
    struct arena arena;
    char uuid[64];        /* of the trace, as written */
    const char *identity; /* CTF 2: what traces have in common that are one; NULL: the uuid is it */
    const char *uid;      /* the part of it that is shown */
    uint8_t uuid_bytes[16];
    bool has_uuid_bytes;
    bool big_endian;
    struct ctf_type *packet_header; /* may be NULL */
    VEC(struct ctf_clock)
    clocks;
    VEC(struct ctf_stream_class *)
    streams;
    VEC(struct ctf_event_class *)
    events; /* all, by index */
    VEC(struct ctf_env)
    env;
    int n_slots;
};

/* Joins a metadata file's text: as it is when it begins with a comment or word, else out of its packets. The text is in
 * `arena`, NUL-terminated. */
int ctf_metadata_text(struct slice file, struct arena *arena, char **text, size_t *len, struct error *err);

/* True for the text of CTF 2 metadata: fragments of JSON. */
bool ctf2_is_metadata(const char *text, size_t len);

/* Parses them; a fragment that the text ends within is not there yet, and no error. Otherwise as tsdl_parse(). */
int ctf2_parse(struct ctf_metadata *m, const char *text, size_t len, struct error *err);

/* Parses TSDL. Errors name line and column. On failure *m is to be freed all the same. */
int tsdl_parse(struct ctf_metadata *m, const char *text, size_t len, struct error *err);

const char *ctf_env_get(const struct ctf_metadata *m, const char *name); /* "" when absent */
const struct ctf_stream_class *ctf_stream_class(const struct ctf_metadata *m, uint64_t id);
const struct ctf_event_class *ctf_event_class(const struct ctf_stream_class *s, uint64_t id);

void ctf_metadata_free(struct ctf_metadata *m);

#endif
