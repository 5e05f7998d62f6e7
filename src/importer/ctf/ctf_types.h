/* What the metadata of a CTF 1.8 trace declares: types, streams, events, clocks. Read from TSDL by tsdl_parse().
 * Everything lives in one arena and is immutable once parsed. */
#ifndef MERIDIAN_IMPORTER_CTF_CTF_TYPES_H
#define MERIDIAN_IMPORTER_CTF_CTF_TYPES_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/vec.h"

enum ctf_kind {
    CTF_INTEGER,
    CTF_FLOAT,
    CTF_STRING,
    CTF_ENUM,
    CTF_STRUCT, /* from here on: types with others inside */
    CTF_VARIANT,
    CTF_ARRAY,    /* fixed length */
    CTF_SEQUENCE, /* length in an earlier field */
};

enum {
    CTF_NO_SLOT = -1,
    CTF_MAX_DEPTH = 32,    /* of nested types */
    CTF_MAX_WEIGHT = 8192, /* of a type: see ctf_type.weight */
    CTF_MAX_CHOICES = 512, /* of a variant and its tag, which each value goes through */
    CTF_SUMMARY_SLOTS = 256,
};

struct ctf_type;

struct ctf_field {
    const char *name; /* without the leading underscore of LTTng */
    struct ctf_type *type;
    int slot; /* where its value is remembered for later tags and lengths, or CTF_NO_SLOT */
};

struct ctf_range {
    const char *label; /* without leading underscore */
    int64_t lo, hi;    /* as the container's signedness reads them */
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
    bool native_order; /* of numbers: big_endian is the trace's, filled in when the type is placed */
    union {
        struct { /* CTF_INTEGER; for CTF_ENUM: the container */
            uint8_t bits;
            bool is_signed;
            bool big_endian;
            bool is_text; /* encoding = UTF8 or ASCII: an array of these is a string */
            uint8_t base;
            int16_t clock;            /* index of the clock it maps, -1 for none */
            struct ctf_range *ranges; /* CTF_ENUM */
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
        } list;
    };
    uint32_t depth;    /* of types inside */
    uint32_t weight;   /* steps that reading one value can take without using up any bit; bounds hostile metadata */
    uint64_t min_bits; /* the fewest bits a value takes, saturated at 2^32 */
    /* CTF_VARIANT: the tag; CTF_SEQUENCE: the length field. Resolved when the type is placed. */
    const char *path;
    int path_slot;
    const struct ctf_type *tag_type; /* CTF_VARIANT: the enum */
    bool resolved;                   /* its references are */
    bool outward;                    /* it refers to fields outside of it: each use is a type of its own */
    struct ctf_summary *summary;     /* NULL until asked for */
};

struct ctf_clock {
    const char *name;
    const char *uuid; /* as written, "" when absent */
    uint64_t freq;
    int64_t offset_s;
    int64_t offset; /* cycles */
};

struct ctf_event_class {
    const char *name;
    uint64_t id;
    struct ctf_type *context; /* may be NULL */
    struct ctf_type *fields;  /* may be NULL */
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
    VEC(struct ctf_event_class *)
    events; /* sorted by id once parsed */
};

struct ctf_env {
    const char *name;
    const char *text; /* numbers as decimal text */
};

struct ctf_metadata {
    struct arena arena;
    char uuid[64]; /* of the trace, as written */
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

/* Parses TSDL. Errors name line and column. On failure *m is to be freed all the same. */
int tsdl_parse(struct ctf_metadata *m, const char *text, size_t len, struct error *err);

const char *ctf_env_get(const struct ctf_metadata *m, const char *name); /* "" when absent */
const struct ctf_stream_class *ctf_stream_class(const struct ctf_metadata *m, uint64_t id);
const struct ctf_event_class *ctf_event_class(const struct ctf_stream_class *s, uint64_t id);

void ctf_metadata_free(struct ctf_metadata *m);

#endif
