/* Owns the tables of a managed heap: classes, objects, references, what is reachable, and native memory held. */
#include "importer/profiling/heap_graph.h"

#include "base/hash.h"

static const char *const kinds[] = {
    "KIND_UNKNOWN",        "KIND_NORMAL",         "KIND_NOREFERENCES",        "KIND_STRING",
    "KIND_ARRAY",          "KIND_CLASS",          "KIND_CLASSLOADER",         "KIND_DEXCACHE",
    "KIND_SOFT_REFERENCE", "KIND_WEAK_REFERENCE", "KIND_FINALIZER_REFERENCE", "KIND_PHANTOM_REFERENCE",
};
static const char *const heap_types[] = {NULL, "HEAP_TYPE_APP", "HEAP_TYPE_ZYGOTE", "HEAP_TYPE_BOOT_IMAGE"};
static const char *const root_types[] = {
    "ROOT_UNKNOWN",      "ROOT_JNI_GLOBAL",   "ROOT_JNI_LOCAL",         "ROOT_JAVA_FRAME",    "ROOT_NATIVE_STACK",
    "ROOT_STICKY_CLASS", "ROOT_THREAD_BLOCK", "ROOT_MONITOR_USED",      "ROOT_THREAD_OBJECT", "ROOT_INTERNED_STRING",
    "ROOT_FINALIZING",   "ROOT_DEBUGGER",     "ROOT_REFERENCE_CLEANUP", "ROOT_VM_INTERNAL",   "ROOT_JNI_MONITOR",
};

enum {
    KIND_NOREFERENCES = 2,
    KIND_STRING = 3,
    KIND_ARRAY = 4,
    MAX_SUPERCLASSES = 256, /* of one class; more is a loop */
    MAX_FIELDS = 1024,      /* of an object, to find one by name; those looked for have a handful */
};

struct build {
    struct profiling_machine *s;
    struct heap_graphs *all;
    struct heap_graph *g;
    struct storage *st;
    struct u64map object_of; /* id -> index + 1 in g->objects */
    uint32_t first_object;   /* row of objects[0] */
    strid empty;
};

static void count(const struct build *b, enum stat_key stat)
{
    stats_add_idx(&b->st->stats, b->s->m->id, stat, (int32_t)b->g->upid, 1);
}

static struct graph_type *type_of(const struct build *b, uint64_t id)
{
    const uint64_t *at = u64map_get(&b->g->type_of, id);
    return at ? &b->g->types.p[*at - 1] : NULL;
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

/* The row of a class; classes of the same name, file, loader and kind are one, whichever dump has them. */
static uint32_t class_row(const struct build *b, strid name, strid location, int64_t loader, uint8_t kind)
{
    int64_t words[heap_graph_class_n_columns] = {name,     0,      location,
                                                 COL_NULL, loader, import_str(b->s->m->im, kinds[kind])};
    uint64_t salt = hash_combine(hash_combine(location, (uint64_t)loader), kind);
    return row_intern(b->s, &b->all->classes, &b->st->t[T_heap_graph_class], words, heap_graph_class_c_name + 1, salt,
                      NULL);
}

static void make_classes(struct build *b)
{
    struct heap_graph *g = b->g;
    for (size_t i = 0; i < g->types.n; i++) {
        struct graph_type *t = &g->types.p[i];
        const uint64_t *location = t->has_location ? u64map_get(&g->location_of, t->location_id) : NULL;
        if (t->has_location && !location)
            count(b, STAT_heap_graph_invalid_string_id);
        t->class_row = class_row(b, t->name, location ? (strid)*location : 0, t->classloader_id, t->kind);
        if (!vec_push(&b->all->class_uses, t->class_row))
            b->s->m->im->failed = true;
    }
    for (size_t i = 0; i < g->types.n; i++) {
        const struct graph_type *t = &g->types.p[i], *super = t->superclass_id ? type_of(b, t->superclass_id) : NULL;
        if (super && t->class_row != UINT32_MAX && super->class_row != UINT32_MAX)
            ROW_SET(b->st, heap_graph_class, superclass_id, t->class_row, super->class_row);
    }
}

/* --- objects ------------------------------------------------------------------------------------------------------ */

static void make_objects(struct build *b)
{
    struct heap_graph *g = b->g;
    struct importer *im = b->s->m->im;
    for (size_t i = 0; i < g->objects.n; i++) {
        const struct graph_object *o = &g->objects.p[i];
        const struct graph_type *t = type_of(b, o->type_id);
        if (!t)
            count(b, STAT_heap_graph_invalid_string_id);
        uint32_t class = t ? t->class_row : class_row(b, b->empty, 0, COL_NULL, 0);
        uint64_t size = o->self_size || !t ? o->self_size : t->object_size;
        heap_graph_object_insert(
            b->st, &(struct heap_graph_object_row){
                       .upid = g->upid,
                       .graph_sample_ts = g->ts,
                       .self_size = (int64_t)size,
                       .reference_set_id = COL_NULL,
                       .heap_type = heap_types[o->heap_type] ? import_str(im, heap_types[o->heap_type]) : 0,
                       .type_id = class,
                       .root_distance = -1,
                       .object_data_id = COL_NULL});
        bool added = false;
        uint64_t *slot = u64map_put(&b->object_of, o->id, &added);
        if (!slot)
            im->failed = true;
        else if (added)
            *slot = i + 1;
    }
}

static const struct graph_object *object_of(const struct build *b, uint64_t id)
{
    const uint64_t *at = id ? u64map_get(&b->object_of, id) : NULL;
    return at ? &b->g->objects.p[*at - 1] : NULL;
}

static uint32_t object_row(const struct build *b, const struct graph_object *o)
{
    return b->first_object + (uint32_t)(o - b->g->objects.p);
}

/* --- references --------------------------------------------------------------------------------------------------- */

/* Walks the numbers of an object's fields: its own list, or that of its class and, after it, of each superclass. */
struct field_walk {
    const struct build *b;
    const struct graph_type *type; /* NULL: the object's own list */
    size_t at, end;                /* in field_ids */
    unsigned superclasses;
};

static struct field_walk fields_of(const struct build *b, const struct graph_object *o)
{
    struct field_walk w = {.b = b, .at = o->first_field, .end = o->first_field + o->n_fields};
    const struct graph_type *t = o->n_fields ? NULL : type_of(b, o->type_id);
    if (t && t->kind != KIND_NOREFERENCES && t->kind != KIND_ARRAY && t->kind != KIND_STRING) {
        w.type = t;
        w.at = t->first_field;
        w.end = t->first_field + t->n_fields;
    }
    return w;
}

static bool next_field(struct field_walk *w, uint64_t *id)
{
    while (w->at == w->end && w->type && w->type->superclass_id && w->superclasses++ < MAX_SUPERCLASSES) {
        w->type = type_of(w->b, w->type->superclass_id);
        if (!w->type)
            break;
        w->at = w->type->first_field;
        w->end = w->at + w->type->n_fields;
    }
    if (w->at == w->end)
        return false;
    *id = w->b->g->field_ids.p[w->at++];
    return true;
}

static const struct graph_field *field_of(const struct build *b, uint64_t id)
{
    const uint64_t *at = u64map_get(&b->g->field_of, id);
    return at ? &b->g->fields.p[*at - 1] : NULL;
}

static void make_references(struct build *b)
{
    struct heap_graph *g = b->g;
    struct table *references = &b->st->t[T_heap_graph_reference];
    const struct graph_field array = {b->empty, b->empty};
    const struct graph_field internal = {b->empty, import_str(b->s->m->im, "runtimeInternalObjects")};
    for (size_t i = 0; i < g->objects.n; i++) {
        const struct graph_object *o = &g->objects.p[i];
        if (!o->n_refs)
            continue;
        struct field_walk fields = fields_of(b, o);
        bool named = o->n_fields || fields.type;
        uint32_t set = references->n_rows, owner = object_row(b, o);
        for (size_t r = o->first_ref; r < o->first_ref + o->n_refs; r++) {
            const struct graph_field *field = r >= o->first_internal ? &internal : &array;
            uint64_t id;
            if (field == &array && named) {
                if (!next_field(&fields, &id)) { /* more references than the class has fields */
                    count(b, STAT_heap_graph_malformed_packet);
                    r = o->first_internal - 1;
                    continue;
                }
                field = field_of(b, id);
                if (!field) {
                    count(b, STAT_heap_graph_invalid_string_id);
                    field = &array;
                }
            }
            const struct graph_object *owned = object_of(b, g->refs.p[r]);
            heap_graph_reference_insert(
                b->st, &(struct heap_graph_reference_row){.reference_set_id = set,
                                                          .owner_id = owner,
                                                          .owned_id = owned ? (int64_t)object_row(b, owned) : COL_NULL,
                                                          .field_name = field->name,
                                                          .field_type_name = field->type});
        }
        if (references->n_rows > set)
            ROW_SET(b->st, heap_graph_object, reference_set_id, owner, set);
    }
}

/* --- what is reachable -------------------------------------------------------------------------------------------- */

/* Breadth first from the roots: the distance of an object is the least number of references to it. */
static void mark_reachable(struct build *b)
{
    struct heap_graph *g = b->g;
    uint32_t *distance = mem_alloc((2 * g->objects.n + 1) * sizeof *distance);
    if (!distance) {
        b->s->m->im->failed = true;
        return;
    }
    uint32_t *queue = distance + g->objects.n; /* indices of objects: each is in it once */
    size_t n_queue = 0;
    memset(distance, 0xff, g->objects.n * sizeof *distance);
    for (size_t i = 0; i < g->roots.n; i++) {
        const struct graph_object *o = object_of(b, g->roots.p[i].object_id);
        if (!o || distance[o - g->objects.p] == 0)
            continue;
        distance[o - g->objects.p] = 0;
        queue[n_queue++] = (uint32_t)(o - g->objects.p);
        ROW_SET(b->st, heap_graph_object, root_type, object_row(b, o),
                import_str(b->s->m->im, root_types[g->roots.p[i].type]));
    }
    for (size_t at = 0; at < n_queue; at++) {
        const struct graph_object *o = &g->objects.p[queue[at]];
        uint32_t row = object_row(b, o);
        ROW_SET(b->st, heap_graph_object, reachable, row, 1);
        ROW_SET(b->st, heap_graph_object, root_distance, row, distance[queue[at]]);
        for (size_t r = o->first_ref; r < o->first_ref + o->n_refs; r++) {
            const struct graph_object *owned = object_of(b, g->refs.p[r]);
            if (owned && distance[owned - g->objects.p] == UINT32_MAX) {
                distance[owned - g->objects.p] = distance[queue[at]] + 1;
                queue[n_queue++] = (uint32_t)(owned - g->objects.p);
            }
        }
    }
    mem_free(distance);
}

/* --- native memory ------------------------------------------------------------------------------------------------ */

/* The object in the field `name` of an object, NULL when there is none. */
static const struct graph_object *referred_by(const struct build *b, const struct graph_object *o, const char *name)
{
    struct field_walk fields = fields_of(b, o);
    uint64_t id;
    size_t end = o->first_internal - o->first_ref > MAX_FIELDS ? o->first_ref + MAX_FIELDS : o->first_internal;
    for (size_t r = o->first_ref; r < end && next_field(&fields, &id); r++) {
        const struct graph_field *f = field_of(b, id);
        if (f && slice_eq_str(strpool_view(&b->st->strings, f->name), name))
            return object_of(b, b->g->refs.p[r]);
    }
    return NULL;
}

/* An object whose native memory is freed with it has a Cleaner, which knows it as its referent and keeps, through its
 * thunk, the registry with the size. A Cleaner that has run is out of its list: its `next` is itself. */
static void add_native_sizes(struct build *b)
{
    struct heap_graph *g = b->g;
    strid cleaner = strpool_find(&b->st->strings, "sun.misc.Cleaner", 16);
    for (size_t i = 0; cleaner && i < g->objects.n; i++) {
        const struct graph_object *o = &g->objects.p[i];
        const struct graph_type *t = type_of(b, o->type_id);
        if (!t || t->name != cleaner)
            continue;
        const struct graph_object *referent = referred_by(b, o, "java.lang.ref.Reference.referent");
        const struct graph_object *thunk = referred_by(b, o, "sun.misc.Cleaner.thunk");
        if (!referent || !thunk || referred_by(b, o, "sun.misc.Cleaner.next") == o)
            continue;
        const struct graph_object *registry =
            referred_by(b, thunk, "libcore.util.NativeAllocationRegistry$CleanerThunk.this$0");
        if (!registry || registry->registry_size == COL_NULL)
            continue;
        uint32_t row = object_row(b, referent);
        int64_t size, held = ROW_GET(b->st, heap_graph_object, native_size, row);
        /* The lowest bit of the size says how it was allocated. */
        if (!__builtin_add_overflow(held, registry->registry_size & ~(int64_t)1, &size))
            ROW_SET(b->st, heap_graph_object, native_size, row, size);
    }
}

void heap_graph_tables(struct profiling_machine *s, struct heap_graphs *all, struct heap_graph *g, bool truncated)
{
    struct storage *st = s->m->st;
    struct build b = {.s = s, .all = all, .g = g, .st = st, .empty = import_str(s->m->im, "")};
    struct graph_rows rows = {.upid = g->upid, .first_class_use = (uint32_t)all->class_uses.n};
    uint32_t row = heap_graph_row(s, g->ts, g->upid);
    if (row != UINT32_MAX) {
        ROW_SET(st, heap_graph, heap_size, row, g->heap_size);
        ROW_SET(st, heap_graph, truncated, row, truncated);
    }
    make_classes(&b);
    b.first_object = st->t[T_heap_graph_object].n_rows;
    make_objects(&b);
    rows.n_class_uses = (uint32_t)all->class_uses.n - rows.first_class_use;
    if (!storage_failed(st) && !s->m->im->failed) { /* rows and objects have the same order only when all are there */
        rows.first_reference = st->t[T_heap_graph_reference].n_rows;
        make_references(&b);
        rows.n_references = st->t[T_heap_graph_reference].n_rows - rows.first_reference;
        mark_reachable(&b);
        add_native_sizes(&b);
    }
    if (!vec_push(&all->done, rows))
        s->m->im->failed = true;
    u64map_free(&b.object_of);
}
