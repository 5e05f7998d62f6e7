/* What follows from the references of a managed heap: superclasses, what is reachable, native memory held. */
#include "importer/profiling/heap_graph.h"

static const char *const root_types[] = {
    "ROOT_UNKNOWN",      "ROOT_JNI_GLOBAL",   "ROOT_JNI_LOCAL",         "ROOT_JAVA_FRAME",    "ROOT_NATIVE_STACK",
    "ROOT_STICKY_CLASS", "ROOT_THREAD_BLOCK", "ROOT_MONITOR_USED",      "ROOT_THREAD_OBJECT", "ROOT_INTERNED_STRING",
    "ROOT_FINALIZING",   "ROOT_DEBUGGER",     "ROOT_REFERENCE_CLEANUP", "ROOT_VM_INTERNAL",   "ROOT_JNI_MONITOR",
};

enum {
    STICKY_CLASS = 5,
    JNI_GLOBAL = 1,
    JNI_LOCAL = 2,
    VM_INTERNAL = 13,
    HEAP_ZYGOTE = 2,
    HEAP_BOOT_IMAGE = 3,
    KIND_SOFT = 8, /* … */
    KIND_PHANTOM = 11,
    MAX_FIELDS = 1024, /* of an object, to find one by name; those looked for have a handful */
    NO_ROOT = 0xff,
};

/* The index in `refs` of what is in the field `name` of an object, SIZE_MAX when there is none. */
static size_t reference_named(const struct graph_build *b, const struct graph_object *o, strid name)
{
    struct field_walk fields = graph_fields_of(b, o);
    uint64_t id;
    size_t end = o->first_internal - o->first_ref > MAX_FIELDS ? o->first_ref + MAX_FIELDS : o->first_internal;
    for (size_t r = o->first_ref; name && r < end && graph_next_field(&fields, &id); r++) {
        const struct graph_field *f = graph_field_of(b, id);
        if (f && f->name == name)
            return r;
    }
    return SIZE_MAX;
}

/* The place of the object in that field, NO_PLACE when there is none. */
static uint32_t referred_by(const struct graph_build *b, const struct graph_object *o, strid name)
{
    size_t at = reference_named(b, o, name);
    return at == SIZE_MAX ? NO_PLACE : graph_place_meant(b->g, at);
}

static strid find_name(const struct graph_build *b, const char *name)
{
    return strpool_find(&b->st->strings, name, strlen(name));
}

/* --- superclasses ------------------------------------------------------------------------------------------------- */

/* "java.lang.Class<X>" is the class object of X, wherever it has been loaded: X and its place, 0 when it is another. */
static uint64_t meant_by(const struct graph_build *b, const struct graph_type *t)
{
    static const char before[] = "java.lang.Class<";
    struct slice name = strpool_view(&b->st->strings, t->name), of;
    if (name.len <= sizeof before || memcmp(name.p, before, sizeof before - 1) != 0 || name.p[name.len - 1] != '>')
        return 0;
    of = slice_of(name.p + sizeof before - 1, name.len - sizeof before);
    if (of.len >= 2 && memcmp(of.p + of.len - 2, "[]", 2) == 0)
        return 0;
    strid id = strpool_find(&b->st->strings, of.p, of.len);
    return id ? (uint64_t)id << 32 | (uint64_t)ROW_GET(b->st, heap_graph_class, location, t->class_row) : 0;
}

/* What the type of an object means. */
static uint64_t class_meant(const struct graph_build *b, const struct graph_object *o)
{
    const struct graph_type *t = o ? graph_type_of(b, o->type_id) : NULL;
    return t ? t->meant : 0;
}

/* As the types tell. */
static void set_superclasses(struct graph_build *b)
{
    for (size_t i = 0; i < b->g->types.n; i++) {
        const struct graph_type *t = &b->g->types.p[i], *super = graph_type_of(b, t->superclass_id);
        if (super)
            ROW_SET(b->st, heap_graph_class, superclass_id, t->class_row, (int64_t)super->class_row);
    }
}

void graph_superclasses(struct graph_build *b)
{
    struct heap_graph *g = b->g;
    if (g->of_file) {
        set_superclasses(b);
        return;
    }
    struct u64map rows = {0}, supers = {0}; /* name << 32 | location -> the first class of it; -> its superclass */
    strid field = find_name(b, "java.lang.Class.superClass");
    for (size_t i = 0; field && i < g->types.n; i++) {
        uint32_t row = g->types.p[i].class_row;
        bool added = false;
        uint64_t *slot = u64map_put(&rows,
                                    (uint64_t)ROW_GET(b->st, heap_graph_class, name, row) << 32 |
                                        (uint64_t)ROW_GET(b->st, heap_graph_class, location, row),
                                    &added);
        if (!slot)
            b->s->m->im->failed = true;
        else if (added)
            *slot = row;
        g->types.p[i].meant = meant_by(b, &g->types.p[i]); /* names may be long, and have many objects */
    }
    for (size_t i = 0; field && i < g->objects.n; i++) {
        uint64_t class = class_meant(b, &g->objects.p[i]), super;
        if (class && (super = class_meant(b, graph_object_at(b->g, referred_by(b, &g->objects.p[i], field)))) &&
            !u64map_set(&supers, class, super))
            b->s->m->im->failed = true;
    }
    for (size_t i = 0; field && i < g->types.n; i++) {
        uint32_t row = g->types.p[i].class_row;
        const uint64_t *super = u64map_get(&supers, (uint64_t)ROW_GET(b->st, heap_graph_class, name, row) << 32 |
                                                        (uint64_t)ROW_GET(b->st, heap_graph_class, location, row));
        const uint64_t *super_row = super ? u64map_get(&rows, *super) : NULL;
        if (super_row)
            ROW_SET(b->st, heap_graph_class, superclass_id, row, (int64_t)*super_row);
    }
    u64map_free(&rows);
    u64map_free(&supers);
}

/* --- what is reachable -------------------------------------------------------------------------------------------- */

/* Of several reasons why an object is a root, the one of the lowest rank is told. */
static unsigned root_rank(uint8_t type)
{
    return type == STICKY_CLASS ? 0 : type == JNI_GLOBAL ? 1 : type == JNI_LOCAL ? 2 : 3;
}

/* What came with the system's image is a root, after those that the recorder told. */
static void add_image_roots(struct graph_build *b)
{
    struct heap_graph *g = b->g;
    for (size_t i = 0; i < g->objects.n; i++)
        if ((g->objects.p[i].heap_type == HEAP_ZYGOTE || g->objects.p[i].heap_type == HEAP_BOOT_IMAGE) &&
            !vec_push(&g->roots, ((struct graph_root){g->objects.p[i].id, VM_INTERNAL})))
            b->s->m->im->failed = true;
}

/* The reference that an object of that kind does not hold what it means by; SIZE_MAX: it holds all. Packets tell soft
 * ones as if they held, too. */
static size_t weak_reference(const struct graph_build *b, const struct graph_object *o)
{
    const struct graph_type *t = o ? graph_type_of(b, o->type_id) : NULL;
    bool weak = t && t->kind >= (b->g->of_file ? KIND_SOFT : KIND_SOFT + 1) && t->kind <= KIND_PHANTOM;
    return weak ? reference_named(b, o, find_name(b, "java.lang.ref.Reference.referent")) : SIZE_MAX;
}

static const char *root_name(const struct heap_graph *g, uint8_t type)
{
    return root_types[type] + (g->of_file ? sizeof "ROOT_" - 1 : 0);
}

/* Makes an object a root; false when it is reachable already. */
static bool set_root(struct graph_build *b, uint32_t place, uint8_t type, uint8_t *known)
{
    struct heap_graph *g = b->g;
    bool is_new = *known == NO_ROOT;
    uint32_t row = graph_row_at(g, place);
    if (!is_new && !g->of_file && root_rank(type) >= root_rank(*known))
        return false; /* of a file the last one is told */
    *known = type;
    ROW_SET(b->st, heap_graph_object, root_type, row, import_str(b->s->m->im, root_name(g, type)));
    ROW_SET(b->st, heap_graph_object, reachable, row, 1);
    if (g->of_file)
        ROW_SET(b->st, heap_graph_object, root_distance, row, 0);
    return is_new;
}

/* Marks what the objects in the queue refer to, and what those refer to. */
static void reach(struct graph_build *b, uint32_t *queue, size_t n_queue)
{
    struct heap_graph *g = b->g;
    for (size_t at = 0; at < n_queue; at++) {
        const struct graph_object *o = graph_object_at(g, queue[at]);
        size_t weak = weak_reference(b, o);
        for (size_t r = o ? o->first_ref : 0; o && r < o->first_ref + o->n_refs; r++) {
            uint32_t owned = graph_place_meant(g, r), row = graph_row_at(g, owned);
            if (owned == NO_PLACE || ROW_GET(b->st, heap_graph_object, reachable, row) || r == weak)
                continue;
            ROW_SET(b->st, heap_graph_object, reachable, row, 1);
            if (g->of_file)
                ROW_SET(b->st, heap_graph_object, root_distance, row,
                        ROW_GET(b->st, heap_graph_object, root_distance, graph_row_at(g, queue[at])) + 1);
            queue[n_queue++] = owned;
        }
    }
}

void graph_reachable(struct graph_build *b)
{
    struct heap_graph *g = b->g;
    uint8_t *root = mem_alloc(g->places.n + 1);
    uint32_t *queue = mem_alloc((g->places.n + 1) * sizeof *queue); /* each place is in it once */
    size_t n_queue = 0;
    if (!g->of_file)
        add_image_roots(b);
    if (!root || !queue)
        b->s->m->im->failed = true;
    else
        memset(root, NO_ROOT, g->places.n + 1);
    for (size_t i = 0; root && queue && i < g->roots.n; i++) {
        uint32_t place = graph_place_of(g, g->roots.p[i].object_id);
        if (place != NO_PLACE && set_root(b, place, g->roots.p[i].type, &root[place]))
            queue[n_queue++] = place;
    }
    if (root && queue)
        reach(b, queue, n_queue);
    mem_free(root);
    mem_free(queue);
}

/* --- native memory ------------------------------------------------------------------------------------------------ */

/* An object whose native memory is freed with it has a Cleaner, which knows it as its referent and keeps, through its
 * thunk, the registry with the size. A Cleaner that has run is out of its list: its `next` is itself. */
void graph_native_sizes(struct graph_build *b)
{
    struct heap_graph *g = b->g;
    strid cleaner = find_name(b, "sun.misc.Cleaner"), referent_field = find_name(b, "java.lang.ref.Reference.referent"),
          thunk_field = find_name(b, "sun.misc.Cleaner.thunk"), next_field = find_name(b, "sun.misc.Cleaner.next"),
          this_field = find_name(b, "libcore.util.NativeAllocationRegistry$CleanerThunk.this$0");
    for (size_t i = 0; cleaner && i < g->objects.n; i++) {
        const struct graph_object *o = &g->objects.p[i];
        const struct graph_type *t = graph_type_of(b, o->type_id);
        if (!t || t->name != cleaner)
            continue;
        uint32_t referent = referred_by(b, o, referent_field);
        const struct graph_object *thunk = graph_object_at(b->g, referred_by(b, o, thunk_field));
        bool has_run = !g->of_file && referred_by(b, o, next_field) == graph_place_of(g, o->id);
        if (referent == NO_PLACE || !thunk || has_run)
            continue;
        const struct graph_object *registry = graph_object_at(b->g, referred_by(b, thunk, this_field));
        if (!registry || registry->registry_size == COL_NULL)
            continue;
        /* The lowest bit of the size says how it was allocated; a file tells it as it is. */
        int64_t mask = g->of_file ? -1 : ~(int64_t)1, size,
                held = ROW_GET(b->st, heap_graph_object, native_size, graph_row_at(g, referent));
        if (!__builtin_add_overflow(held, registry->registry_size & mask, &size))
            ROW_SET(b->st, heap_graph_object, native_size, graph_row_at(g, referent), size);
    }
}
