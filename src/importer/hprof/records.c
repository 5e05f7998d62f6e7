/* Records of a heap dump: strings, classes, roots, and the places of objects. */
#include "importer/hprof/hprof_private.h"

#include "base/saturate.h"
#include "importer/lines/line_reader.h"
#include "importer/text/text_file.h"
#include "importer/track/process_tracker.h"

enum record_tag {
    TAG_STRING = 0x01,
    TAG_LOAD_CLASS = 0x02,
    TAG_HEAP_DUMP = 0x0c,
    TAG_HEAP_DUMP_SEGMENT = 0x1c,
    TAG_HEAP_DUMP_END = 0x2c
};

/* Within a heap dump. */
enum heap_tag {
    HEAP_CLASS = 0x20,
    HEAP_INSTANCE = 0x21,
    HEAP_OBJECT_ARRAY = 0x22,
    HEAP_PRIMITIVE_ARRAY = 0x23,
    HEAP_PRIMITIVE_ARRAY_NO_DATA = 0xc3,
    HEAP_INFO = 0xfe
};

enum { KIND_NORMAL = 1, MAX_HEAPS = 64 }; /* KIND_NORMAL: as in packets */

/* What stands behind the object of a root: `ids` numbers of objects, and `numbers` of 4 bytes. */
static const struct {
    uint8_t tag, type, ids, numbers; /* type: as in packets */
} roots[] = {
    {0xff, 0, 0, 0},  {0x01, 1, 1, 0},  {0x02, 2, 0, 2},  {0x03, 3, 0, 2}, {0x04, 4, 0, 1},  {0x05, 5, 0, 0},
    {0x06, 6, 0, 1},  {0x07, 7, 0, 0},  {0x08, 8, 0, 2},  {0x89, 9, 0, 0}, {0x8a, 10, 0, 0}, {0x8b, 11, 0, 0},
    {0x8c, 12, 0, 0}, {0x8d, 13, 0, 0}, {0x8e, 14, 0, 2}, {0x90, 0, 0, 0},
};
enum { UNREACHABLE = 0x90 };

/* ---- bytes ---- */

uint64_t hprof_number(struct hprof_bytes *b, size_t n)
{
    const uint8_t *p = hprof_skip(b, n);
    uint64_t v = 0;
    for (size_t i = 0; p && i < n; i++)
        v = v << 8 | p[i];
    return v;
}

uint64_t hprof_id(struct hprof_bytes *b)
{
    return hprof_number(b, b->id_size);
}

const uint8_t *hprof_skip(struct hprof_bytes *b, uint64_t n)
{
    const uint8_t *p = b->p;
    if (b->cut || n > (uint64_t)(b->end - b->p)) {
        b->cut = true;
        b->p = b->end;
        return NULL;
    }
    b->p += n;
    return p;
}

size_t hprof_size(const struct hprof_bytes *b, unsigned type)
{
    static const uint8_t sizes[HPROF_TYPES] = {
        [HPROF_BOOLEAN] = 1, [HPROF_CHAR] = 2,  [HPROF_FLOAT] = 4, [HPROF_DOUBLE] = 8,
        [HPROF_BYTE] = 1,    [HPROF_SHORT] = 2, [HPROF_INT] = 4,   [HPROF_LONG] = 8};
    return type == HPROF_OBJECT ? b->id_size : type < HPROF_TYPES ? sizes[type] : 0;
}

struct hprof_bytes hprof_at(const struct hprof *h, const uint8_t *p)
{
    return (struct hprof_bytes){p, h->end, h->id_size, false};
}

void hprof_count(struct hprof *h, enum stat_key stat, int64_t n)
{
    stats_add(&h->im->st->stats, h->m->id, stat, n);
}

/* ---- strings and classes ---- */

static struct slice text_of(const struct hprof *h, uint64_t id)
{
    const uint64_t *at = u64map_get(&h->strings, id);
    struct hprof_bytes b = hprof_at(h, at ? (const uint8_t *)(uintptr_t)*at : h->end);
    uint64_t len = hprof_number(&b, 4);
    hprof_id(&b);
    const uint8_t *p = len >= h->id_size ? hprof_skip(&b, len - h->id_size) : NULL;
    return p ? slice_of(p, (size_t)len - h->id_size) : slice_of("", 0);
}

struct hprof_class *hprof_class_of(const struct hprof *h, uint64_t id)
{
    const uint64_t *at = u64map_get(&h->class_of, id);
    return at ? &h->classes.p[*at - 1] : NULL;
}

static struct hprof_class *intern_class(struct hprof *h, uint64_t id)
{
    bool added = false;
    uint64_t *slot = u64map_put(&h->class_of, id, &added);
    if (slot && !added)
        return &h->classes.p[*slot - 1];
    if (!slot || !vec_push(&h->classes, ((struct hprof_class){.id = id, .kind = KIND_NORMAL}))) {
        if (slot)
            u64map_del(&h->class_of, id);
        h->im->failed = true;
        return NULL;
    }
    *slot = h->classes.n;
    return &h->classes.p[h->classes.n - 1];
}

/* A name of the virtual machine's, `[Ljava/lang/String;`, as people write it: java.lang.String[]. */
static strid class_name(struct hprof *h, struct slice name)
{
    static const char letters[] = "ZCFDBSIJ";
    static const char *const names[] = {"boolean", "char", "float", "double", "byte", "short", "int", "long"};
    enum { MAX_NAME = 1024, MAX_DIMENSIONS = 255 };
    char out[MAX_NAME + 2 * MAX_DIMENSIONS];
    size_t n = 0, dimensions = 0;
    if (name.len > MAX_NAME)
        return import_kept(h->im, &h->kept, name);
    while (dimensions < name.len && name.p[dimensions] == '[' && dimensions < MAX_DIMENSIONS)
        dimensions++;
    struct slice rest = slice_from(name, dimensions);
    const char *letter = dimensions && rest.len == 1 && rest.p[0] ? strchr(letters, rest.p[0]) : NULL;
    if (letter)
        rest = slice_str(names[letter - letters]);
    else if (dimensions && rest.len > 2 && rest.p[0] == 'L' && rest.p[rest.len - 1] == ';')
        rest = slice_of(rest.p + 1, rest.len - 2);
    for (; n < rest.len; n++)
        out[n] = rest.p[n] == '/' ? '.' : (char)rest.p[n];
    for (size_t i = 0; i < dimensions; i++) {
        out[n++] = '[';
        out[n++] = ']';
    }
    return import_slice(h->im, slice_of((const uint8_t *)out, n));
}

static void read_load_class(struct hprof *h, struct hprof_bytes b)
{
    hprof_number(&b, 4); /* serial number */
    uint64_t id = hprof_id(&b);
    hprof_number(&b, 4); /* stack */
    struct slice name = text_of(h, hprof_id(&b));
    struct hprof_class *c = b.cut ? NULL : intern_class(h, id);
    if (!c) {
        hprof_count(h, STAT_hprof_class_errors, 1);
        return;
    }
    c->name = class_name(h, name);
}

/* Class.field; names so long that each field of a few bytes would make a long text stand alone. */
static strid field_name(struct hprof *h, const struct hprof_class *c, uint64_t id)
{
    enum { MAX_NAME = 512 };
    struct strpool *strings = &h->im->st->strings;
    struct slice class = strpool_view(strings, c->name), name = text_of(h, id);
    if (class.len + name.len > MAX_NAME)
        return import_kept(h->im, &h->kept, name);
    return strpool_printf(strings, "%.*s.%.*s", (int)class.len, (const char *)class.p, (int)name.len,
                          (const char *)name.p);
}

static bool read_statics(struct hprof *h, struct hprof_class *c, struct hprof_bytes *b)
{
    c->first_static = h->statics.n;
    for (uint64_t n = hprof_number(b, 2); n && !b->cut; n--) {
        struct hprof_static s;
        uint64_t name = hprof_id(b);
        s.field.type = (uint8_t)hprof_number(b, 1);
        s.field.name =
            s.field.type == HPROF_OBJECT ? field_name(h, c, name) : import_kept(h->im, &h->kept, text_of(h, name));
        size_t size = hprof_size(b, s.field.type);
        if (!size)
            return false;
        s.value = hprof_number(b, size);
        c->static_size += (uint32_t)size;
        if (!b->cut && !vec_push(&h->statics, s))
            h->im->failed = true;
    }
    c->n_statics = h->statics.n - c->first_static;
    return true;
}

static bool read_fields(struct hprof *h, struct hprof_class *c, struct hprof_bytes *b)
{
    c->first_field = h->fields.n;
    for (uint64_t n = hprof_number(b, 2); n && !b->cut; n--) {
        struct hprof_field f = {.name = field_name(h, c, hprof_id(b))};
        f.type = (uint8_t)hprof_number(b, 1);
        if (!hprof_size(b, f.type))
            return false;
        if (!b->cut && !vec_push(&h->fields, f))
            h->im->failed = true;
    }
    c->n_fields = h->fields.n - c->first_field;
    return true;
}

static bool skip_constants(struct hprof_bytes *b)
{
    for (uint64_t n = hprof_number(b, 2); n && !b->cut; n--) {
        hprof_number(b, 2);
        size_t size = hprof_size(b, (unsigned)hprof_number(b, 1));
        if (!size)
            return false;
        hprof_skip(b, size);
    }
    return true;
}

static bool read_class(struct hprof *h, struct hprof_bytes *b, uint8_t heap)
{
    struct hprof_class *c = intern_class(h, hprof_id(b));
    if (!c)
        return false;
    bool again = c->dumped;
    struct hprof_class is = *c; /* arrays of fields may move */
    hprof_number(b, 4);         /* stack */
    is.super = hprof_id(b);
    hprof_skip(b, 5ull * b->id_size); /* loader, signers, protection domain, two that are reserved */
    is.instance_size = (uint32_t)hprof_number(b, 4);
    is.heap = heap;
    is.dumped = true;
    is.static_size = 0;
    if (!skip_constants(b) || !read_statics(h, &is, b) || !read_fields(h, &is, b) || b->cut)
        return false;
    if (!again)
        *hprof_class_of(h, is.id) = is;
    hprof_count(h, STAT_hprof_class_counter, 1);
    return true;
}

/* ---- objects ---- */

static bool skip_object(struct hprof *h, struct hprof_bytes *b, uint8_t tag, uint8_t heap)
{
    struct hprof_place place = {.p = b->p, .heap = heap};
    uint64_t id = hprof_id(b), n;
    hprof_number(b, 4); /* stack */
    if (tag == HEAP_INSTANCE) {
        place.what = HPROF_INSTANCE;
        hprof_id(b);
        hprof_skip(b, hprof_number(b, 4));
        hprof_count(h, STAT_hprof_instance_counter, 1);
    } else if (tag == HEAP_OBJECT_ARRAY) {
        place.what = HPROF_OBJECT_ARRAY;
        n = hprof_number(b, 4);
        hprof_id(b);
        hprof_skip(b, n * b->id_size);
        hprof_count(h, STAT_hprof_object_array_counter, 1);
    } else {
        place.what = HPROF_PRIMITIVE_ARRAY;
        place.no_data = tag == HEAP_PRIMITIVE_ARRAY_NO_DATA;
        n = hprof_number(b, 4);
        unsigned type = (unsigned)hprof_number(b, 1);
        size_t size = type == HPROF_OBJECT ? 0 : hprof_size(b, type);
        if (!size) {
            hprof_count(h, STAT_hprof_primitive_array_parsing_errors, 1);
            return false;
        }
        hprof_skip(b, place.no_data ? 0 : n * size);
        hprof_count(h, STAT_hprof_primitive_array_counter, 1);
    }
    if (b->cut)
        return false;
    if (!vec_push(&h->places, place) ||
        (place.what == HPROF_PRIMITIVE_ARRAY && !u64map_set(&h->arrays, id, h->places.n)))
        h->im->failed = true;
    return true;
}

static bool read_root(struct hprof *h, struct hprof_bytes *b, uint8_t tag)
{
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        if (roots[i].tag != tag)
            continue;
        uint64_t id = hprof_id(b);
        hprof_skip(b, (uint64_t)roots[i].ids * b->id_size + 4ull * roots[i].numbers);
        hprof_count(h, STAT_hprof_root_counter, 1);
        if (!b->cut && tag != UNREACHABLE && !vec_push(&h->graph.roots, ((struct graph_root){id, roots[i].type})))
            h->im->failed = true;
        return !b->cut;
    }
    return false;
}

/* The heap of that name, from 1 on; 0: there are more than anybody has. */
static uint8_t heap_named(struct hprof *h, struct slice name)
{
    strid is = import_kept(h->im, &h->kept, name);
    size_t i = 0;
    while (i < h->graph.heap_names.n && h->graph.heap_names.p[i] != is)
        i++;
    if (i == MAX_HEAPS)
        return 0;
    if (i == h->graph.heap_names.n && !vec_push(&h->graph.heap_names, is)) {
        h->im->failed = true;
        return 0;
    }
    return (uint8_t)(i + 1);
}

/* Objects of a dump, one after another; what cannot be read ends its part. */
static void read_heap(struct hprof *h, struct hprof_bytes b)
{
    uint8_t heap = 0;
    bool ok = true;
    while (ok && b.p < b.end && !h->im->failed) {
        uint8_t tag = (uint8_t)hprof_number(&b, 1);
        switch (tag) {
        case HEAP_CLASS:
            ok = read_class(h, &b, heap);
            if (!ok)
                hprof_count(h, STAT_hprof_class_errors, 1);
            break;
        case HEAP_INSTANCE:
        case HEAP_OBJECT_ARRAY:
        case HEAP_PRIMITIVE_ARRAY:
        case HEAP_PRIMITIVE_ARRAY_NO_DATA:
            ok = skip_object(h, &b, tag, heap);
            break;
        case HEAP_INFO:
            hprof_number(&b, 4);
            heap = heap_named(h, text_of(h, hprof_id(&b)));
            break;
        default:
            ok = read_root(h, &b, tag);
            break;
        }
    }
    if (b.cut || !ok)
        hprof_count(h, STAT_hprof_heap_dump_errors, 1);
}

/* ---- the file ---- */

static int read_header(struct hprof *h, struct hprof_bytes *b, struct error *err)
{
    const uint8_t *zero = memchr(b->p, 0, (size_t)(b->end - b->p));
    hprof_skip(b, zero ? (uint64_t)(zero - b->p) + 1 : UINT64_MAX);
    uint64_t id_size = hprof_number(b, 4), ms = hprof_number(b, 8);
    if (b->cut || (id_size != 4 && id_size != 8)) {
        hprof_count(h, STAT_hprof_header_errors, 1);
        return error_set(err, -MRD_EFORMAT, "heap dump: its header cannot be read (ERR:tp-corrupt)");
    }
    h->id_size = b->id_size = (uint8_t)id_size;
    h->ts = ms > INT64_MAX ? INT64_MAX : (int64_t)ms; /* as it stands, though it is in milliseconds */
    return 0;
}

/* Strings first: a class may be named before its string is told. */
static bool read_records(struct hprof *h, struct hprof_bytes b, bool strings)
{
    while (b.p < b.end && !h->im->failed) {
        uint8_t tag = (uint8_t)hprof_number(&b, 1);
        hprof_number(&b, 4); /* time */
        const uint8_t *record = b.p;
        uint64_t len = hprof_number(&b, 4);
        if (b.cut)
            return false;
        bool whole = len <= (uint64_t)(b.end - b.p);
        struct hprof_bytes body = {b.p, whole ? b.p + len : b.end, h->id_size, false};
        b.p = body.end;
        if (strings && tag == TAG_STRING && whole) {
            uint64_t id = hprof_id(&body);
            if (!body.cut && !u64map_set(&h->strings, id, (uint64_t)(uintptr_t)record))
                h->im->failed = true;
            hprof_count(h, STAT_hprof_string_counter, 1);
        } else if (!strings && tag == TAG_LOAD_CLASS && whole) {
            read_load_class(h, body);
        } else if (!strings && (tag == TAG_HEAP_DUMP || tag == TAG_HEAP_DUMP_SEGMENT)) {
            read_heap(h, body);
            hprof_count(h, STAT_hprof_heap_dump_counter, 1);
        }
        if (!strings)
            hprof_count(h, STAT_hprof_record_counter, 1);
        if (!whole)
            return false;
    }
    return true;
}

static void *open_file(struct importer *im)
{
    struct hprof *h = mem_zalloc(sizeof *h);
    if (h)
        *h = (struct hprof){.im = im, .m = text_machine(im)};
    return h;
}

static int write_file(void *self, struct slice file, struct error *err)
{
    struct hprof *h = self;
    h->end = file.p + file.len;
    struct hprof_bytes b = {file.p, h->end, 0, false};
    int rc = read_header(h, &b, err);
    if (rc)
        return rc;
    bool whole = read_records(h, b, true);
    format_reader_used(h->im, slice_to(file, 0));
    read_records(h, b, false);
    h->graph.truncated = !whole;
    h->graph.ts = h->ts;
    h->graph.heap_size = COL_NULL;
    /* A dump does not say whose it is: the process has pid 0, as the idle one, which it is not. */
    h->graph.upid = process_tracker_thread_process(h->m->processes, process_tracker_zero_thread(h->m->processes, 0));
    hprof_make_objects(h);
    if (!h->im->failed)
        heap_graph_of_file(h->m->profiling, &h->graph);
    if (!whole) /* what came before is there */
        import_log(h->m, STAT_hprof_heap_dump_errors, COL_NULL, (int64_t)file.len, ARGSET_NONE);
    return h->im->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

static void close_file(void *self)
{
    struct hprof *h = self;
    heap_graph_free(&h->graph);
    u64map_free(&h->strings);
    u64map_free(&h->kept);
    u64map_free(&h->class_of);
    u64map_free(&h->arrays);
    u64map_free(&h->texts);
    vec_free(&h->classes);
    vec_free(&h->fields);
    vec_free(&h->statics);
    vec_free(&h->places);
    vec_free(&h->element_names);
    mem_free(h);
}

const struct format_reader hprof_format_reader = {.format = FORMAT_HPROF,
                                                  .no_idle = true,
                                                  .fixed_clock = true,
                                                  .whole = true,
                                                  .open = open_file,
                                                  .write = write_file,
                                                  .close = close_file};
