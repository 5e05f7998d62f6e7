/* Objects of a heap dump: what they refer to, and what they hold. */
#include "importer/hprof/hprof_private.h"

#include "base/hash.h"
#include "base/utf8.h"

/* Kinds of classes by their numbers in packets. */
enum {
    KIND_NORMAL = 1,
    KIND_STRING = 3,
    KIND_ARRAY = 4,
    KIND_CLASS = 5,
    KIND_CLASSLOADER = 6,
    KIND_SOFT = 8,
    KIND_WEAK = 9,
    KIND_FINALIZER = 10,
    KIND_PHANTOM = 11
};

enum {
    MAX_SUPERCLASSES = 256, /* of one class; more is a loop */
    MAX_TEXT = 1 << 20,     /* bytes of a string that are kept */
    MAX_NAMED = 1 << 20     /* elements of an array that have names */
};

static const char *const type_names[HPROF_TYPES] = {
    [HPROF_BOOLEAN] = "boolean", [HPROF_CHAR] = "char",   [HPROF_FLOAT] = "float", [HPROF_DOUBLE] = "double",
    [HPROF_BYTE] = "byte",       [HPROF_SHORT] = "short", [HPROF_INT] = "int",     [HPROF_LONG] = "long"};

/* ---- classes ---- */

static bool is_named(const struct hprof *h, const struct hprof_class *c, const char *name)
{
    return slice_eq_str(strpool_view(&h->im->st->strings, c->name), name);
}

/* What its superclasses make of a class. */
static uint8_t kind_of(const struct hprof *h, const struct hprof_class *c)
{
    static const struct {
        const char *name;
        uint8_t kind;
    } kinds[] = {{"java.lang.String", KIND_STRING},
                 {"java.lang.Class", KIND_CLASS},
                 {"java.lang.ClassLoader", KIND_CLASSLOADER},
                 {"java.lang.ref.SoftReference", KIND_SOFT},
                 {"java.lang.ref.WeakReference", KIND_WEAK},
                 {"java.lang.ref.PhantomReference", KIND_PHANTOM},
                 {"java.lang.ref.FinalizerReference", KIND_FINALIZER}};
    struct slice name = strpool_view(&h->im->st->strings, c->name);
    if (name.len > 2 && name.p[name.len - 1] == ']')
        return KIND_ARRAY;
    for (int depth = 0; c && depth < MAX_SUPERCLASSES; depth++, c = hprof_class_of(h, c->super))
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (is_named(h, c, kinds[i].name))
                return kinds[i].kind;
    return KIND_NORMAL;
}

/* Numbers of types: classes from 1 on, then, for each, that of its class object. */
static uint64_t type_of_class(const struct hprof *h, const struct hprof_class *c)
{
    return (uint64_t)(c - h->classes.p) + 1;
}

/* Objects of a class without fields, below hundreds that have none either, are read as fast as others. */
static size_t next_with_fields(const struct hprof *h, const struct hprof_class *c)
{
    const struct hprof_class *super = hprof_class_of(h, c->super);
    for (int depth = 0; super && depth < MAX_SUPERCLASSES; depth++, super = hprof_class_of(h, super->super))
        if (super->n_fields)
            return (size_t)(super - h->classes.p) + 1;
    return 0;
}

static void add_type(struct hprof *h, const struct graph_type *t)
{
    if (!vec_push(&h->graph.types, *t) || !u64map_set(&h->graph.type_of, t->id, h->graph.types.n))
        h->im->failed = true;
}

static void make_types(struct hprof *h)
{
    struct strpool *strings = &h->im->st->strings;
    for (size_t i = 0; i < h->classes.n; i++) {
        struct hprof_class *c = &h->classes.p[i];
        const struct hprof_class *super = c->super ? hprof_class_of(h, c->super) : NULL;
        c->kind = kind_of(h, c);
        c->more_fields = next_with_fields(h, c);
        add_type(h, &(struct graph_type){.id = i + 1,
                                         .superclass_id = super ? type_of_class(h, super) : 0,
                                         .object_size = c->instance_size,
                                         .classloader_id = COL_NULL,
                                         .name = c->name,
                                         .kind = c->kind});
    }
    for (size_t i = 0; i < h->classes.n; i++) {
        struct slice name = strpool_view(strings, h->classes.p[i].name);
        strid of = name.len > UINT16_MAX
                       ? h->classes.p[i].name
                       : strpool_printf(strings, "java.lang.Class<%.*s>", (int)name.len, (const char *)name.p);
        add_type(h, &(struct graph_type){.id = h->classes.n + i + 1,
                                         .means = i + 1,
                                         .classloader_id = COL_NULL,
                                         .name = of,
                                         .kind = KIND_CLASS});
    }
}

/* The type of arrays of plain values, which need not have a class in the dump. */
static uint64_t type_of_array(struct hprof *h, unsigned type, uint64_t *known)
{
    if (known[type])
        return known[type];
    strid name = strpool_printf(&h->im->st->strings, "%s[]", type_names[type]);
    for (size_t i = 0; i < h->classes.n && !known[type]; i++)
        if (h->classes.p[i].name == name)
            known[type] = i + 1;
    if (!known[type]) {
        known[type] = 2 * h->classes.n + type;
        add_type(h,
                 &(struct graph_type){.id = known[type], .classloader_id = COL_NULL, .name = name, .kind = KIND_ARRAY});
    }
    return known[type];
}

/* ---- references ---- */

/* A reference of the object that was begun last. */
static void add_reference(struct hprof *h, struct graph_object *o, strid name, uint64_t to)
{
    struct heap_graph *g = &h->graph;
    bool added = false;
    if (!to)
        return;
    uint64_t *field = u64map_put(&g->field_of, name, &added);
    if (added && field) {
        if (!vec_push(&g->fields, ((struct graph_field){.name = name})))
            h->im->failed = true;
        *field = g->fields.n;
    }
    if (!field || !vec_push(&g->refs, to) || !vec_push(&g->field_ids, name))
        h->im->failed = true;
    o->n_refs = g->refs.n - o->first_ref;
    o->n_fields = g->field_ids.n - o->first_field;
    o->first_internal = g->refs.n;
}

static struct graph_object begin(const struct hprof *h, uint64_t id, uint64_t type, uint8_t heap)
{
    return (struct graph_object){.id = id,
                                 .type_id = type,
                                 .registry_size = COL_NULL,
                                 .first_ref = h->graph.refs.n,
                                 .first_internal = h->graph.refs.n,
                                 .first_field = h->graph.field_ids.n,
                                 .heap_type = heap};
}

static void end(struct hprof *h, const struct graph_object *o)
{
    hprof_count(h, STAT_hprof_reference_counter, (int64_t)o->n_refs);
    if (!vec_push(&h->graph.objects, *o))
        h->im->failed = true;
}

static strid element_name(struct hprof *h, uint64_t i)
{
    if (i >= MAX_NAMED)
        return 0;
    while (h->element_names.n <= i) {
        strid name = strpool_printf(&h->im->st->strings, "[%zu]", h->element_names.n);
        if (!vec_push(&h->element_names, name)) {
            h->im->failed = true;
            return 0;
        }
    }
    return h->element_names.p[i];
}

/* ---- contents ---- */

struct contents {
    uint32_t set;  /* first row of heap_graph_primitive */
    bool any;      /* there are such rows */
    strid text;    /* of a string */
    strid element; /* of an array: the type of its elements */
    int64_t count;
    struct hprof_array array;
};

static struct contents no_contents(const struct hprof *h)
{
    return (struct contents){
        .set = h->im->st->t[T_heap_graph_primitive].n_rows, .count = COL_NULL, .array = {COL_NULL, COL_NULL}};
}

static void add_primitive(struct hprof *h, struct contents *c, const struct hprof_field *f, uint64_t word)
{
    struct heap_graph_primitive_row row = heap_graph_primitive(c->set, f->name, import_str(h->im, type_names[f->type]));
    union {
        uint32_t u;
        float f;
    } single = {.u = (uint32_t)word};
    switch (f->type) {
    case HPROF_BOOLEAN:
        row.bool_value = word != 0;
        break;
    case HPROF_BYTE:
        row.byte_value = (uint8_t)word; /* as others give it: 0..255 */
        break;
    case HPROF_CHAR:
        row.char_value = (int64_t)word;
        break;
    case HPROF_SHORT:
        row.short_value = (int16_t)word;
        break;
    case HPROF_INT:
        row.int_value = (int32_t)word;
        break;
    case HPROF_LONG:
        row.long_value = (int64_t)word;
        break;
    case HPROF_FLOAT:
        row.float_value = (double)single.f;
        break;
    default:
        row.double_value = column_f64((int64_t)word);
        break;
    }
    heap_graph_primitive_insert(h->im->st, &row);
    c->any = true;
}

static uint32_t keep_contents(struct hprof *h, const struct contents *c)
{
    uint32_t row = heap_graph_object_data_insert(
        h->im->st, &(struct heap_graph_object_data_row){.field_set_id = c->any ? (int64_t)c->set : COL_NULL,
                                                        .value_string = c->text,
                                                        .array_element_type = c->element,
                                                        .array_element_count = c->count,
                                                        .array_data_id = c->array.data_id,
                                                        .array_data_hash = c->array.hash});
    return row == UINT32_MAX ? 0 : row + 1;
}

/* Characters of a string: of 16 bits, big-endian (char[]) or little-endian (byte[]), or of 8 bits. */
static strid text_of_array(struct hprof *h, const struct hprof_place *place, bool wide)
{
    struct hprof_bytes b = hprof_at(h, place->p);
    hprof_id(&b);
    hprof_number(&b, 4);
    uint64_t n = hprof_number(&b, 4);
    unsigned type = (unsigned)hprof_number(&b, 1);
    bool chars = type == HPROF_CHAR;
    if (place->no_data || (!chars && type != HPROF_BYTE))
        return 0;
    n = chars ? n * 2 : n;
    n = n > MAX_TEXT ? MAX_TEXT : n;
    const uint8_t *p = hprof_skip(&b, n);
    char *out = p ? mem_alloc((size_t)n * 2 + 8) : NULL;
    size_t len = 0;
    uint32_t high = 0;
    for (size_t i = 0; out && i + (chars || wide) < n; i += 1 + (chars || wide)) {
        uint32_t unit = chars ? (uint32_t)p[i] << 8 | p[i + 1] : wide ? (uint32_t)p[i + 1] << 8 | p[i] : p[i];
        if (unit >> 10 == 0xd800 >> 10) { /* the first half of a character */
            high = unit;
            continue;
        }
        if (unit >> 10 == 0xdc00 >> 10)
            unit = high ? 0x10000 + ((high & 0x3ff) << 10 | (unit & 0x3ff)) : 0xfffd;
        high = 0;
        len += utf8_put(out + len, unit);
    }
    strid text = out ? import_slice(h->im, slice_of((const uint8_t *)out, len)) : 0;
    if (p && !out)
        h->im->failed = true;
    mem_free(out);
    return text;
}

/* Strings may share an array, whose text is made once. */
static strid text_of_string(struct hprof *h, uint64_t array, bool wide)
{
    const uint64_t *at = u64map_get(&h->arrays, array);
    bool added = false;
    uint64_t *known = at ? u64map_put(&h->texts, *at << 1 | wide, &added) : NULL;
    if (!known) {
        h->im->failed |= at != NULL;
        return 0;
    }
    if (added)
        *known = text_of_array(h, &h->places.p[*at - 1], wide);
    return (strid)*known;
}

/* ---- objects ---- */

struct string_parts {
    uint64_t value;
    bool wide;
};

/* A field of an object, from its bytes. */
static void read_field(struct hprof *h, struct graph_object *o, struct contents *c, struct string_parts *s,
                       const struct hprof_field *f, struct hprof_bytes *b)
{
    struct slice name = strpool_view(&h->im->st->strings, f->name);
    uint64_t word = hprof_number(b, hprof_size(b, f->type));
    if (b->cut)
        return;
    if (f->type == HPROF_OBJECT)
        add_reference(h, o, f->name, word);
    else
        add_primitive(h, c, f, word);
    if (f->type == HPROF_LONG && slice_eq_str(name, "libcore.util.NativeAllocationRegistry.size"))
        o->registry_size = (int64_t)word > 0 ? (int64_t)word : COL_NULL;
    if (!s)
        return;
    if (slice_eq_str(name, "java.lang.String.value"))
        s->value = word;
    else if (slice_eq_str(name, "java.lang.String.coder"))
        s->wide = word == 1;
}

static void make_instance(struct hprof *h, struct hprof_bytes b, uint8_t heap)
{
    uint64_t id = hprof_id(&b);
    hprof_number(&b, 4);
    const struct hprof_class *class = hprof_class_of(h, hprof_id(&b));
    uint64_t len = hprof_number(&b, 4);
    const uint8_t *p = hprof_skip(&b, len);
    if (!class || !p) {
        hprof_count(h, STAT_hprof_class_errors, 1);
        return;
    }
    struct graph_object o = begin(h, id, type_of_class(h, class), heap);
    struct contents c = no_contents(h);
    struct string_parts s = {0};
    struct hprof_bytes fields = {p, p + len, h->id_size, false};
    const struct hprof_class *of = class;
    o.self_size = class->instance_size ? class->instance_size : len;
    for (int depth = 0; of && depth < MAX_SUPERCLASSES && !fields.cut;
         depth++, of = of->more_fields ? &h->classes.p[of->more_fields - 1] : NULL)
        for (size_t i = 0; i < of->n_fields && !fields.cut; i++)
            read_field(h, &o, &c, class->kind == KIND_STRING ? &s : NULL, &h->fields.p[of->first_field + i], &fields);
    if (fields.cut)
        hprof_count(h, STAT_hprof_field_value_errors, 1);
    if (s.value)
        c.text = text_of_string(h, s.value, s.wide);
    if (c.any || c.text)
        o.data = keep_contents(h, &c);
    end(h, &o);
}

enum { ARRAY_HEADER = 12, ARRAY_HEADER_64 = 16 };

/* The class of an array tells how long its header is; where it does not, it is as virtual machines have it. */
static uint64_t array_size(const struct hprof *h, uint64_t type, uint64_t n, size_t size)
{
    uint64_t header = type <= h->classes.n ? h->classes.p[type - 1].instance_size : 0;
    return (header ? header : h->id_size == 4 ? ARRAY_HEADER : ARRAY_HEADER_64) + n * size;
}

static void make_object_array(struct hprof *h, struct hprof_bytes b, uint8_t heap)
{
    uint64_t id = hprof_id(&b);
    hprof_number(&b, 4);
    uint64_t n = hprof_number(&b, 4);
    const struct hprof_class *class = hprof_class_of(h, hprof_id(&b));
    if (!class) {
        hprof_count(h, STAT_hprof_class_errors, 1);
        return;
    }
    struct graph_object o = begin(h, id, type_of_class(h, class), heap);
    o.self_size = array_size(h, o.type_id, n, h->id_size);
    for (uint64_t i = 0; i < n && !b.cut && !h->im->failed; i++) {
        uint64_t to = hprof_id(&b);
        if (to)
            add_reference(h, &o, element_name(h, i), to);
    }
    end(h, &o);
}

static void make_primitive_array(struct hprof *h, struct hprof_bytes b, const struct hprof_place *place,
                                 uint64_t *types)
{
    uint64_t id = hprof_id(&b);
    hprof_number(&b, 4);
    uint64_t n = hprof_number(&b, 4);
    unsigned type = (unsigned)hprof_number(&b, 1);
    size_t size = hprof_size(&b, type);
    const uint8_t *p = place->no_data ? NULL : hprof_skip(&b, n * size);
    struct graph_object o = begin(h, id, type_of_array(h, type, types), place->heap);
    struct contents c = no_contents(h);
    o.self_size = array_size(h, o.type_id, n, size);
    if (p && n) {
        c.element = import_str(h->im, type_names[type]);
        c.count = (int64_t)n;
        c.array = hprof_keep_array(h, type, p, n, size);
        o.data = keep_contents(h, &c);
    }
    end(h, &o);
}

/* A class is an object, too: its fields are the static ones, and those that its own class has. */
static void make_class_object(struct hprof *h, size_t i, uint32_t class_size)
{
    const struct hprof_class *c = &h->classes.p[i];
    struct graph_object o = begin(h, c->id, h->classes.n + i + 1, c->heap);
    struct contents contents = no_contents(h);
    o.self_size = class_size + c->static_size;
    for (size_t k = 0; k < c->n_statics; k++) {
        const struct hprof_static *s = &h->statics.p[c->first_static + k];
        if (s->field.type == HPROF_OBJECT)
            add_reference(h, &o, s->field.name, s->value);
        else
            add_primitive(h, &contents, &s->field, s->value);
    }
    if (contents.any)
        o.data = keep_contents(h, &contents);
    end(h, &o);
}

void hprof_make_objects(struct hprof *h)
{
    uint64_t types[HPROF_TYPES] = {0};
    uint32_t class_size = 0;
    make_types(h);
    for (size_t i = 0; i < h->classes.n; i++)
        if (is_named(h, &h->classes.p[i], "java.lang.Class"))
            class_size = h->classes.p[i].instance_size;
    for (size_t i = 0; i < h->classes.n && !h->im->failed; i++)
        if (h->classes.p[i].dumped)
            make_class_object(h, i, class_size);
    for (size_t i = 0; i < h->places.n && !h->im->failed; i++) {
        const struct hprof_place *place = &h->places.p[i];
        struct hprof_bytes b = hprof_at(h, place->p);
        if (place->what == HPROF_INSTANCE)
            make_instance(h, b, place->heap);
        else if (place->what == HPROF_OBJECT_ARRAY)
            make_object_array(h, b, place->heap);
        else
            make_primitive_array(h, b, place, types);
    }
}
