/* The tables of a managed heap: classes, objects and references. */
#include "importer/profiling/heap_graph.h"

#include <stdlib.h>

static const char *const kinds[] = {
    "KIND_UNKNOWN",        "KIND_NORMAL",         "KIND_NOREFERENCES",        "KIND_STRING",
    "KIND_ARRAY",          "KIND_CLASS",          "KIND_CLASSLOADER",         "KIND_DEXCACHE",
    "KIND_SOFT_REFERENCE", "KIND_WEAK_REFERENCE", "KIND_FINALIZER_REFERENCE", "KIND_PHANTOM_REFERENCE",
};
static const char *const heap_types[] = {NULL, "HEAP_TYPE_APP", "HEAP_TYPE_ZYGOTE", "HEAP_TYPE_BOOT_IMAGE"};
enum {
    KIND_NOREFERENCES = 2,
    KIND_STRING = 3,
    KIND_ARRAY = 4,
    KIND_SOFT_REFERENCE = 8, /* the first of those that do not hold what they refer to */
    MAX_SUPERCLASSES = 256,  /* of one class; more is a loop */
};

static void count(const struct graph_build *b, enum stat_key stat)
{
    stats_add_idx(&b->st->stats, b->s->m->id, stat, (int32_t)b->g->upid, 1);
}

struct graph_type *graph_type_of(const struct graph_build *b, uint64_t id)
{
    const uint64_t *at = u64map_get(&b->g->type_of, id);
    return at ? &b->g->types.p[*at - 1] : NULL;
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

/* The row of a class of packets, which each dump has its own of: made when the first object, or else the type, is told.
 */
static uint32_t class_row(struct storage *st, struct importer *im, struct heap_graph *g, uint64_t type_id)
{
    bool added = false;
    uint64_t *slot = u64map_put(&g->class_of, type_id, &added);
    if (!slot) {
        im->failed = true;
        return 0;
    }
    if (added)
        *slot = (uint64_t)heap_graph_class_insert(
                    st, &(struct heap_graph_class_row){.superclass_id = COL_NULL, .classloader_id = COL_NULL}) +
                1;
    return (uint32_t)*slot - 1;
}

/* A class of a file: of kinds it tells only references. */
static uint32_t class_row_of_file(const struct graph_build *b, const struct graph_type *t)
{
    const char *kind = t->kind >= KIND_SOFT_REFERENCE ? kinds[t->kind] : "[unknown class kind]";
    return heap_graph_class_insert(b->st, &(struct heap_graph_class_row){.name = t->name,
                                                                         .superclass_id = COL_NULL,
                                                                         .classloader_id = 0,
                                                                         .kind = import_str(b->s->m->im, kind)});
}

static void use_class(struct graph_build *b, uint32_t row)
{
    if (!vec_push(&b->all->class_uses, row))
        b->s->m->im->failed = true;
}

static void make_classes_of_file(struct graph_build *b)
{
    struct heap_graph *g = b->g;
    for (size_t i = 0; i < g->types.n; i++) {
        g->types.p[i].class_row = class_row_of_file(b, &g->types.p[i]);
        use_class(b, g->types.p[i].class_row);
    }
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = ((const struct graph_type *)a)->id, y = ((const struct graph_type *)b)->id;
    return x < y ? -1 : x > y;
}

/* Puts the types into the order of their numbers. */
static void sort_types(struct heap_graph *g)
{
    if (g->types.n)
        qsort(g->types.p, g->types.n, sizeof *g->types.p, by_id);
    for (size_t i = 0; i < g->types.n; i++)
        *u64map_get(&g->type_of, g->types.p[i].id) = i + 1;
}

static void make_classes(struct graph_build *b)
{
    struct heap_graph *g = b->g;
    sort_types(g);
    for (size_t i = 0; i < g->types.n; i++) {
        struct graph_type *t = &g->types.p[i];
        const uint64_t *location = t->has_location ? u64map_get(&g->location_of, t->location_id) : NULL;
        if (t->has_location && !location)
            count(b, STAT_heap_graph_invalid_string_id);
        t->class_row = class_row(b->st, b->s->m->im, g, t->id);
        ROW_SET(b->st, heap_graph_class, name, t->class_row, t->name);
        ROW_SET(b->st, heap_graph_class, location, t->class_row, location ? *location : 0);
        ROW_SET(b->st, heap_graph_class, kind, t->class_row, import_str(b->s->m->im, kinds[t->kind]));
    }
    size_t it = 0;
    for (const struct u64map_slot *class; (class = u64map_next(&g->class_of, &it));)
        use_class(b, (uint32_t) class->value - 1);
}

/* --- objects ------------------------------------------------------------------------------------------------------ */

/* Gives an object its place and row when it has none yet; `told` is its index in `objects` + 1, or 0. What `place_of`
 * knows of it; without memory 0. */
static uint64_t place(struct storage *st, struct importer *im, struct heap_graph *g, uint64_t id, uint32_t told)
{
    bool added = false;
    uint64_t *slot = u64map_put(&g->place_of, id, &added);
    if (slot && added) {
        struct heap_graph_object_row row = {.upid = g->upid,
                                            .graph_sample_ts = g->ts,
                                            .self_size = -1,
                                            .reference_set_id = COL_NULL,
                                            .root_distance = -1,
                                            .object_data_id = COL_NULL};
        struct graph_place made = {.row = heap_graph_object_insert(st, &row)};
        if (vec_push(&g->places, made)) {
            *slot = (uint64_t)made.row << 32 | g->places.n;
        } else {
            u64map_del(&g->place_of, id);
            slot = NULL;
        }
    }
    if (!slot) {
        im->failed = true;
        return 0;
    }
    if (told)
        g->places.p[(uint32_t)*slot - 1].told = told;
    return *slot;
}

static int64_t bitmap_data(struct graph_build *b, const struct graph_bitmap *bitmap)
{
    static const struct {
        const char *name;
        bool is_long;
    } fields[BITMAP_FIELDS] = {{"android.graphics.Bitmap.mId", true},
                               {"android.graphics.Bitmap.mSourceId", true},
                               {"android.graphics.Bitmap.mWidth", false},
                               {"android.graphics.Bitmap.mHeight", false}};
    struct importer *im = b->s->m->im;
    uint32_t set = b->st->t[T_heap_graph_primitive].n_rows;
    for (int i = 0; i < BITMAP_FIELDS; i++) {
        if (bitmap->field[i] == COL_NULL)
            continue;
        struct heap_graph_primitive_row row = heap_graph_primitive(set, import_str(im, fields[i].name),
                                                                   import_str(im, fields[i].is_long ? "long" : "int"));
        *(fields[i].is_long ? &row.long_value : &row.int_value) = bitmap->field[i];
        heap_graph_primitive_insert(b->st, &row);
    }
    return heap_graph_object_data_insert(b->st, &(struct heap_graph_object_data_row){.field_set_id = set,
                                                                                     .array_element_count = COL_NULL,
                                                                                     .array_data_id = COL_NULL,
                                                                                     .array_data_hash = COL_NULL});
}

static strid heap_name(const struct graph_build *b, uint8_t heap)
{
    if (b->g->of_file)
        return heap ? b->g->heap_names.p[heap - 1] : 0;
    return heap_types[heap] ? import_str(b->s->m->im, heap_types[heap]) : 0;
}

static void write_object(struct graph_build *b, const struct graph_place *place)
{
    const struct graph_object *o = &b->g->objects.p[place->told - 1];
    const struct graph_type *t = graph_type_of(b, o->type_id);
    uint64_t self_size = o->self_size || !t || b->g->of_file ? o->self_size : t->object_size;
    b->unexplained |= !t && (!o->self_size || (o->first_internal > o->first_ref && !o->n_fields));
    ROW_SET(b->st, heap_graph_object, type_id, place->row,
            t ? t->class_row : class_row(b->st, b->s->m->im, b->g, o->type_id));
    ROW_SET(b->st, heap_graph_object, self_size, place->row, (int64_t)self_size);
    ROW_SET(b->st, heap_graph_object, heap_type, place->row, heap_name(b, o->heap_type));
    if (o->data)
        ROW_SET(b->st, heap_graph_object, object_data_id, place->row, o->data - 1);
    else if (o->bitmap)
        ROW_SET(b->st, heap_graph_object, object_data_id, place->row, bitmap_data(b, &b->g->bitmaps.p[o->bitmap - 1]));
}

uint32_t graph_place_of(const struct heap_graph *g, uint64_t id)
{
    const uint64_t *place = id ? u64map_get(&g->place_of, id) : NULL;
    return place ? (uint32_t)*place - 1 : NO_PLACE;
}

uint32_t graph_place_meant(const struct heap_graph *g, size_t reference)
{
    return (uint32_t)g->refs.p[reference] - 1; /* 0, no place, is NO_PLACE then */
}

uint32_t graph_row_at(const struct heap_graph *g, uint32_t place)
{
    return place == NO_PLACE ? UINT32_MAX : g->places.p[place].row;
}

const struct graph_object *graph_object_at(const struct heap_graph *g, uint32_t place)
{
    uint32_t told = place == NO_PLACE ? 0 : g->places.p[place].told;
    return told ? &g->objects.p[told - 1] : NULL;
}

/* --- references --------------------------------------------------------------------------------------------------- */

struct field_walk graph_fields_of(const struct graph_build *b, const struct graph_object *o)
{
    struct field_walk w = {.b = b, .at = o->first_field, .end = o->first_field + o->n_fields};
    const struct graph_type *t = o->n_fields ? NULL : graph_type_of(b, o->type_id);
    if (t && t->kind != KIND_NOREFERENCES && t->kind != KIND_ARRAY && t->kind != KIND_STRING) {
        w.type = t;
        w.at = t->first_field;
        w.end = t->first_field + t->n_fields;
    }
    return w;
}

bool graph_next_field(struct field_walk *w, uint64_t *id)
{
    while (w->at == w->end && w->type && w->type->superclass_id && w->superclasses++ < MAX_SUPERCLASSES) {
        w->type = graph_type_of(w->b, w->type->superclass_id);
        if (!w->type) {
            w->lost = true;
            break;
        }
        w->at = w->type->first_field;
        w->end = w->at + w->type->n_fields;
    }
    if (w->at == w->end)
        return false;
    *id = w->b->g->field_ids.p[w->at++];
    return true;
}

const struct graph_field *graph_field_of(const struct graph_build *b, uint64_t id)
{
    const uint64_t *at = u64map_get(&b->g->field_of, id);
    return at ? &b->g->fields.p[*at - 1] : NULL;
}

/* The names of an object's references, one after another; those that cannot be told have none. It counts where its
 * class would have to tell them. */
static struct graph_field next_name(const struct graph_build *b, struct field_walk *fields, bool own, bool *known)
{
    uint64_t id;
    if (!*known)
        return (struct graph_field){0};
    *known = graph_next_field(fields, &id);
    const struct graph_field *field = *known ? graph_field_of(b, id) : NULL;
    if (!field && !own) /* a field or superclass that nothing was told of, or more references than fields */
        count(b, STAT_heap_graph_malformed_packet);
    return field ? *field : (struct graph_field){0};
}

/* In a file the type of a field is what it holds: the class of an object, of a class itself that class. */
static strid type_held(const struct graph_build *b, uint32_t place)
{
    const struct graph_object *o = graph_object_at(b->g, place);
    const struct graph_type *t = o ? graph_type_of(b, o->type_id) : NULL;
    const struct graph_type *means = t && t->means ? graph_type_of(b, t->means) : t;
    return means ? means->name : import_str(b->s->m->im, "unknown");
}

/* Gives the references of an object their rows, whose fields are not known yet; from now on `refs` are places. */
static void add_references(struct profiling_machine *s, struct heap_graph *g, struct graph_object *o, uint64_t owner)
{
    struct storage *st = s->m->st;
    struct heap_graph_reference_row row = {.reference_set_id = st->t[T_heap_graph_reference].n_rows,
                                           .owner_id = owner ? owner >> 32 : UINT32_MAX};
    o->reference_row = st->t[T_heap_graph_reference].n_rows;
    for (size_t r = o->first_ref; r < o->first_ref + o->n_refs; r++) {
        uint64_t id = g->refs.p[r], owned = 0;
        const uint64_t *known = id && g->of_file ? u64map_get(&g->place_of, id) : NULL;
        if (known)
            owned = *known;
        else if (id && !g->of_file)
            owned = place(st, s->m->im, g, id, 0);
        row.owned_id = owned ? (int64_t)(owned >> 32) : COL_NULL;
        heap_graph_reference_insert(st, &row);
        g->refs.p[r] = (uint32_t)owned;
    }
    if (o->n_refs && owner && !storage_failed(st))
        ROW_SET(st, heap_graph_object, reference_set_id, (uint32_t)row.owner_id, o->reference_row);
}

void graph_add_object(struct profiling_machine *s, struct heap_graph *g, struct graph_object new)
{
    struct storage *st = s->m->st;
    if (!vec_push(&g->objects, new)) {
        s->m->im->failed = true;
        return;
    }
    class_row(st, s->m->im, g, new.type_id);
    uint64_t owner = place(st, s->m->im, g, new.id, (uint32_t)g->objects.n);
    add_references(s, g, vec_last(&g->objects), owner);
}

static void note_references(struct graph_build *b, const struct graph_object *o)
{
    struct row_range *last = b->all->reference_ranges.n ? vec_last(&b->all->reference_ranges) : NULL;
    if (last && last->first + last->n == o->reference_row)
        last->n += (uint32_t)o->n_refs;
    else if (!vec_push(&b->all->reference_ranges, ((struct row_range){o->reference_row, (uint32_t)o->n_refs})))
        b->s->m->im->failed = true;
}

static void write_references(struct graph_build *b)
{
    struct heap_graph *g = b->g;
    const struct graph_field internal = {0, import_str(b->s->m->im, "runtimeInternalObjects")};
    for (size_t i = 0; i < g->objects.n; i++) {
        const struct graph_object *o = &g->objects.p[i];
        if (!o->n_refs)
            continue;
        struct field_walk fields = graph_fields_of(b, o);
        bool known = o->n_fields || fields.type;
        for (size_t r = o->first_ref; r < o->first_ref + o->n_refs; r++) {
            struct graph_field field = r >= o->first_internal ? internal : next_name(b, &fields, o->n_fields, &known);
            uint32_t row = o->reference_row + (uint32_t)(r - o->first_ref);
            strid type = g->of_file ? type_held(b, graph_place_meant(g, r)) : field.type;
            if (field.name)
                ROW_SET(b->st, heap_graph_reference, field_name, row, field.name);
            if (type)
                ROW_SET(b->st, heap_graph_reference, field_type_name, row, type);
        }
        note_references(b, o);
    }
}

/* What a file holds is whole: its objects stand in its own order, and what none of them is has no row. */
static void add_rows_of_file(struct graph_build *b)
{
    struct heap_graph *g = b->g;
    for (size_t i = 0; i < g->objects.n; i++)
        place(b->st, b->s->m->im, g, g->objects.p[i].id, (uint32_t)i + 1);
    for (size_t i = 0; i < g->objects.n; i++) {
        const uint64_t *owner = u64map_get(&g->place_of, g->objects.p[i].id);
        add_references(b->s, g, &g->objects.p[i], owner ? *owner : 0);
    }
}

/* A class's loader is an object, told or not. */
static void set_loaders(struct graph_build *b)
{
    struct heap_graph *g = b->g;
    for (size_t i = 0; i < g->types.n; i++) {
        const struct graph_type *t = &g->types.p[i];
        if (t->classloader_id)
            place(b->st, b->s->m->im, g, t->classloader_id, 0);
        uint32_t loader = graph_row_at(g, graph_place_of(g, t->classloader_id));
        if (loader != UINT32_MAX)
            ROW_SET(b->st, heap_graph_class, classloader_id, t->class_row, (int64_t)loader);
    }
}

void heap_graph_tables(struct profiling_machine *s, struct heap_graphs *all, struct heap_graph *g)
{
    struct storage *st = s->m->st;
    struct graph_build b = {.s = s, .all = all, .g = g, .st = st};
    struct graph_rows rows = {.upid = g->upid,
                              .first_class_use = (uint32_t)all->class_uses.n,
                              .first_reference_range = (uint32_t)all->reference_ranges.n};
    uint32_t row = heap_graph_row(s, g->ts, g->upid);
    if (row != UINT32_MAX) {
        ROW_SET(st, heap_graph, heap_size, row, g->heap_size);
        ROW_SET(st, heap_graph, truncated, row, g->truncated);
    }
    if (g->of_file)
        make_classes_of_file(&b);
    else
        make_classes(&b);
    rows.n_class_uses = (uint32_t)all->class_uses.n - rows.first_class_use;
    if (g->of_file)
        add_rows_of_file(&b);
    else
        set_loaders(&b);
    if (!storage_failed(st) && !s->m->im->failed) { /* each object and reference has its row only when none was lost */
        for (size_t i = 0; i < g->places.n; i++)
            if (g->places.p[i].told)
                write_object(&b, &g->places.p[i]);
        write_references(&b);
        if (b.unexplained)
            count(&b, STAT_heap_graph_malformed_packet);
        graph_superclasses(&b);
        graph_reachable(&b);
        graph_native_sizes(&b);
    }
    rows.n_reference_ranges = (uint32_t)all->reference_ranges.n - rows.first_reference_range;
    if (!vec_push(&all->done, rows))
        s->m->im->failed = true;
}
