/* A dump of a managed heap on its way from packets (heap_graph.c) to tables (heap_graph_tables.c). */
#ifndef MERIDIAN_IMPORTER_PROFILING_HEAP_GRAPH_H
#define MERIDIAN_IMPORTER_PROFILING_HEAP_GRAPH_H

#include "importer/profiling/profiling_internal.h"

struct number_list { /* as VEC() makes it */
    uint64_t *p;
    size_t n, cap;
};

struct graph_object {
    uint64_t id, type_id, self_size;
    int64_t registry_size;    /* of a NativeAllocationRegistry; COL_NULL: it is none */
    uint32_t bitmap;          /* in `bitmaps` + 1; 0: it is none */
    uint32_t data;            /* row of heap_graph_object_data + 1; 0: it has none yet */
    size_t first_ref, n_refs; /* in `refs` */
    size_t first_internal;    /* in `refs`, from here on: held by the runtime, by no field */
    size_t first_field, n_fields;
    uint32_t reference_row; /* heap_graph_reference: the first of its `n_refs` rows */
    uint8_t heap_type;      /* of a file: in `heap_names` + 1 */
};

struct graph_type {
    uint64_t id, superclass_id, location_id, object_size;
    uint64_t means;               /* of the class object of a file: that class; 0: it is no class object */
    uint64_t meant;               /* the same of a packet's, by name: as class_meant() has it */
    uint64_t classloader_id;      /* an object; 0: not told */
    size_t first_field, n_fields; /* in `field_ids`: of its own; those of its superclasses follow */
    strid name;
    uint32_t class_row; /* heap_graph_class, once the tables are made */
    uint8_t kind;
    bool has_location;
};

/* The fields of an android.graphics.Bitmap. */
enum { BITMAP_ID, BITMAP_SOURCE_ID, BITMAP_WIDTH, BITMAP_HEIGHT, BITMAP_FIELDS };
struct graph_bitmap {
    int64_t field[BITMAP_FIELDS]; /* COL_NULL: not told */
};

struct graph_field {
    strid type, name;
};

struct graph_root {
    uint64_t object_id;
    uint8_t type;
};

/* An object that was spoken of, if only as what another one refers to. */
struct graph_place {
    uint32_t row;  /* heap_graph_object */
    uint32_t told; /* index in `objects` + 1; 0: nothing is known of it */
};

/* What the packets of one sequence have told since the last finished dump. Objects and references get their rows as
 * packets tell of them, so those of dumps that are recorded at one time stand among each other; what they hold is
 * written once the dump is whole. */
struct heap_graph {
    bool begun;   /* ts and upid are known */
    bool of_file; /* what it holds is whole: only objects it tells of have rows, and classes each their own */
    bool has_index, truncated; /* packets are missing */
    uint64_t last_index, last_object_id;
    uint8_t last_heap_type;
    int64_t ts, heap_size; /* heap_size COL_NULL: not told */
    uint32_t upid;
    VEC(struct graph_object)
    objects;
    VEC(struct graph_type)
    types;
    VEC(struct graph_field)
    fields;
    VEC(struct graph_root)
    roots;
    VEC(struct graph_bitmap)
    bitmaps;
    VEC(strid)
    heap_names; /* of a file */
    VEC(struct graph_place)
    places;                  /* in the order in which they were first spoken of */
    struct number_list refs; /* ids; of objects that have their rows indices in `places` + 1, 0 of none */
    struct number_list field_ids;
    struct u64map type_of, field_of, location_of; /* number -> index + 1, index + 1, strid */
    struct u64map place_of;                       /* id of an object -> its row << 32 | index in `places` + 1 */
    struct u64map class_of;                       /* number of a type -> row of heap_graph_class + 1 */
};

struct row_range {
    uint32_t first, n;
};

/* Rows that one dump has made. */
struct graph_rows {
    uint32_t upid;
    uint32_t first_class_use, n_class_uses;             /* in heap_graphs.class_uses */
    uint32_t first_reference_range, n_reference_ranges; /* in heap_graphs.reference_ranges */
};

struct heap_graphs {
    struct u64map by_sequence; /* struct sequence * -> one of `graphs` + 1 */
    VEC(struct heap_graph)
    graphs;
    struct u64map rows; /* hash of time and process -> row of heap_graph */
    VEC(struct graph_rows)
    done; /* for names that come later */
    VEC(uint32_t)
    class_uses;
    VEC(struct row_range)
    reference_ranges;
};

/* Makes the rows of a dump that a file holds as a whole; heap_graph_free() forgets what made them. */
void heap_graph_of_file(struct profiling_machine *s, struct heap_graph *g);
void heap_graph_free(struct heap_graph *g);

/* Adds an object; it, those it refers to and its references have their rows from now on. */
void graph_add_object(struct profiling_machine *s, struct heap_graph *g, struct graph_object new);

/* Writes what a whole dump tells to its rows. */
void heap_graph_tables(struct profiling_machine *s, struct heap_graphs *all, struct heap_graph *g);

enum { NO_PLACE = UINT32_MAX };

/* A dump whose rows are being written. */
struct graph_build {
    struct profiling_machine *s;
    struct heap_graphs *all;
    struct heap_graph *g;
    struct storage *st;
    bool unexplained; /* the type of an object that would have said more of it was not told */
};

/* Walks the numbers of an object's fields: its own list, or that of its class and, after it, of each superclass. */
struct field_walk {
    const struct graph_build *b;
    const struct graph_type *type; /* NULL: the object's own list */
    size_t at, end;                /* in field_ids */
    unsigned superclasses;
    bool lost; /* a superclass is not known */
};
struct field_walk graph_fields_of(const struct graph_build *b, const struct graph_object *o);
bool graph_next_field(struct field_walk *w, uint64_t *id);
const struct graph_field *graph_field_of(const struct graph_build *b, uint64_t id);
struct graph_type *graph_type_of(const struct graph_build *b, uint64_t id);
/* The place of an object, NO_PLACE when none has this id; what was told of a place, NULL when nothing was. */
uint32_t graph_place_of(const struct heap_graph *g, uint64_t id);
const struct graph_object *graph_object_at(const struct heap_graph *g, uint32_t place);
/* The place of what the reference at this index of `refs` means, once the object that holds it has its rows. */
uint32_t graph_place_meant(const struct heap_graph *g, size_t reference);
/* The row of a place, UINT32_MAX of none. */
uint32_t graph_row_at(const struct heap_graph *g, uint32_t place);

/* heap_graph_links.c: what follows from the references, once they have rows. */
void graph_superclasses(struct graph_build *b);
void graph_reachable(struct graph_build *b);
void graph_native_sizes(struct graph_build *b);

/* A row that has no value yet. */
static inline struct heap_graph_primitive_row heap_graph_primitive(uint32_t set, strid name, strid type)
{
    return (struct heap_graph_primitive_row){.field_set_id = set,
                                             .field_name = name,
                                             .field_type = type,
                                             .bool_value = COL_NULL,
                                             .byte_value = COL_NULL,
                                             .char_value = COL_NULL,
                                             .short_value = COL_NULL,
                                             .int_value = COL_NULL,
                                             .long_value = COL_NULL,
                                             .float_value = column_f64(COL_NULL_F64),
                                             .double_value = column_f64(COL_NULL_F64)};
}

#endif
