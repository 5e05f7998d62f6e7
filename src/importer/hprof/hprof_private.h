/* What the two parts of the reader of heap dumps share. */
#ifndef MERIDIAN_IMPORTER_HPROF_HPROF_PRIVATE_H
#define MERIDIAN_IMPORTER_HPROF_HPROF_PRIVATE_H

#include "importer/core/text_forms.h"
#include "importer/hprof/hprof.h"
#include "importer/profiling/heap_graph.h"

/* Types of values. */
enum hprof_type {
    HPROF_OBJECT = 2,
    HPROF_BOOLEAN = 4,
    HPROF_CHAR = 5,
    HPROF_FLOAT = 6,
    HPROF_DOUBLE = 7,
    HPROF_BYTE = 8,
    HPROF_SHORT = 9,
    HPROF_INT = 10,
    HPROF_LONG = 11,
    HPROF_TYPES
};

/* Bytes on the way; reading beyond the end latches `cut`. Numbers are big-endian. */
struct hprof_bytes {
    const uint8_t *p, *end;
    uint8_t id_size;
    bool cut;
};

uint64_t hprof_number(struct hprof_bytes *b, size_t n);
uint64_t hprof_id(struct hprof_bytes *b);
const uint8_t *hprof_skip(struct hprof_bytes *b, uint64_t n); /* what was there; NULL: cut */
/* Bytes of a value of that type, 0 for none. */
size_t hprof_size(const struct hprof_bytes *b, unsigned type);

struct hprof_field {
    strid name; /* Class.field */
    uint8_t type;
};

/* A field of a class itself: its value lies in the file. */
struct hprof_static {
    struct hprof_field field;
    uint64_t value;
};

struct hprof_class {
    uint64_t id, super;
    uint32_t instance_size, static_size;
    strid name;
    size_t first_field, n_fields;   /* in `fields`: of its own; those of its superclasses follow in an object */
    size_t first_static, n_statics; /* in `statics` */
    size_t more_fields;             /* the next superclass that has fields, in `classes`, + 1; 0: none */
    uint8_t kind, heap;             /* kind: as in packets; heap: as in graph_object */
    bool dumped;                    /* else it was only named */
};

enum hprof_what { HPROF_INSTANCE, HPROF_OBJECT_ARRAY, HPROF_PRIMITIVE_ARRAY };

/* Where an object begins: behind its tag. */
struct hprof_place {
    const uint8_t *p;
    uint8_t what, heap;
    bool no_data; /* of an array whose contents were left out */
};

struct hprof {
    struct importer *im;
    struct machine_ctx *m;
    const uint8_t *end;
    uint8_t id_size;
    int64_t ts;
    struct u64map strings;   /* id -> address of its record */
    struct u64map kept;      /* of import_kept(): long texts of the file */
    struct u64map class_of;  /* id -> index + 1 */
    struct u64map arrays;    /* id of a primitive array -> index in `places` + 1 */
    struct u64map texts;     /* place of an array << 1 | whether it holds units of 16 bits -> strid + 1 */
    struct heap_graph graph; /* what becomes of it */
    VEC(struct hprof_class)
    classes;
    VEC(struct hprof_field)
    fields;
    VEC(struct hprof_static)
    statics;
    VEC(struct hprof_place)
    places;
    VEC(strid)
    element_names; /* [0], [1], … */
};

struct hprof_class *hprof_class_of(const struct hprof *h, uint64_t id);
void hprof_count(struct hprof *h, enum stat_key stat, int64_t n);
struct hprof_bytes hprof_at(const struct hprof *h, const uint8_t *p);

/* arrays.c: n values of `size` bytes, which lie in the file. COL_NULL for both when there are none. */
struct hprof_array {
    int64_t data_id, hash; /* of heap_graph_object_data */
};
struct hprof_array hprof_keep_array(struct hprof *h, unsigned type, const uint8_t *p, uint64_t n, size_t size);

/* objects.c: everything into h->graph. */
void hprof_make_objects(struct hprof *h);

#endif
