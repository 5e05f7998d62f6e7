/* Imports what V8 interns: each isolate, script and function becomes one row, however often it is sent. */
#include "importer/core/text_forms.h"
#include "importer/profiling/jit.h"
#include "importer/profiling/v8.h"

#include "base/hash.h"
#include "wire/fields.h"

enum { V8_INTERNED = INTERNED_DATA_V8_ISOLATE - INTERNED_DATA_V8_JS_FUNCTION_NAME + 1 };

struct v8 {
    struct arena arena;
    struct u64map isolates;                         /* process and number -> struct v8_isolate * */
    struct u64map scripts, wasm_scripts, functions; /* hash of what tells them apart -> row */
    struct u64map mapping_ends;                     /* start -> the furthest end of the mappings that start there; */
    uint32_t n_mappings;                            /* of so many */
    struct u64map read[V8_INTERNED]; /* by field: interned table, iid -> row, or struct v8_isolate *; only for what is
                                        defined */
};

static const char *const script_types[] = {"UNKNOWN", "NORMAL", "EVAL", "MODULE", "NATIVE", "EXTENSION", "INSPECTOR"};

static const char *const function_kinds[] = {
    "UNKNOWN",
    "NORMAL_FUNCTION",
    "MODULE",
    "ASYNC_MODULE",
    "BASE_CONSTRUCTOR",
    "DEFAULT_BASE_CONSTRUCTOR",
    "DEFAULT_DERIVED_CONSTRUCTOR",
    "DERIVED_CONSTRUCTOR",
    "GETTER_FUNCTION",
    "STATIC_GETTER_FUNCTION",
    "SETTER_FUNCTION",
    "STATIC_SETTER_FUNCTION",
    "ARROW_FUNCTION",
    "ASYNC_ARROW_FUNCTION",
    "ASYNC_FUNCTION",
    "ASYNC_CONCISE_METHOD",
    "STATIC_ASYNC_CONCISE_METHOD",
    "ASYNC_CONCISE_GENERATOR_METHOD",
    "STATIC_ASYNC_CONCISE_GENERATOR_METHOD",
    "ASYNC_GENERATOR_FUNCTION",
    "GENERATOR_FUNCTION",
    "CONCISE_GENERATOR_METHOD",
    "STATIC_CONCISE_GENERATOR_METHOD",
    "CONCISE_METHOD",
    "STATIC_CONCISE_METHOD",
    "CLASS_MEMBERS_INITIALIZER_FUNCTION",
    "CLASS_STATIC_INITIALIZER_FUNCTION",
    "INVALID",
};

#define NAME_OF(names, number) ((names)[(number) < sizeof(names) / sizeof *(names) ? (number) : 0])

void v8_close(struct v8 *v)
{
    if (!v)
        return;
    u64map_free(&v->isolates);
    u64map_free(&v->scripts);
    u64map_free(&v->wasm_scripts);
    u64map_free(&v->functions);
    u64map_free(&v->mapping_ends);
    for (size_t i = 0; i < V8_INTERNED; i++)
        u64map_free(&v->read[i]);
    arena_free(&v->arena);
    mem_free(v);
}

static struct v8 *v8_of(struct machine_ctx *m)
{
    struct profiling_machine *s = m->profiling;
    if (!s->v8)
        s->v8 = mem_zalloc(sizeof *s->v8);
    m->im->failed |= !s->v8;
    return s->v8;
}

/* Each field has a map of its own: what stands in one for an isolate is a pointer. */
static struct u64map *read_of(struct v8 *v, uint32_t field)
{
    return &v->read[field - INTERNED_DATA_V8_JS_FUNCTION_NAME];
}

static uint64_t read_key(const struct packet *p, uint64_t iid)
{
    return hash_keyed(p->m->profiling->secret, p->gen->state, iid);
}

/* Where it is kept what an entry was read as: 0 when it is read for the first time. NULL when nothing has defined it
 * (counted) or memory is out. */
static uint64_t *read_before(struct packet *p, struct v8 *v, uint32_t field, uint64_t iid, struct slice *message)
{
    *message = interned_find(p->gen, field, iid);
    if (!message->p) {
        stats_add(&p->m->st->stats, p->m->id, STAT_v8_intern_errors, 1);
        return NULL;
    }
    uint64_t *slot = u64map_put(read_of(v, field), read_key(p, iid), NULL);
    p->m->im->failed |= !slot;
    return slot;
}

static void remember(struct packet *p, struct v8 *v, uint32_t field, uint64_t iid, uint64_t word)
{
    p->m->im->failed |= !u64map_set(read_of(v, field), read_key(p, iid), word);
}

/* The text of one of three fields: Latin-1, UTF-16 in either order. */
static strid string_of(struct importer *im, struct slice message, uint32_t latin1, uint32_t little, uint32_t big)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    strid text = 0;
    while (pb_next(&c, &f)) {
        if (f.id == latin1)
            text = import_latin1(im, pb_bytes(&f));
        else if (f.id == little || f.id == big)
            text = import_utf16(im, pb_bytes(&f), f.id == big);
    }
    return text ? text : import_str(im, "");
}

strid v8_string(struct importer *im, struct slice message)
{
    return string_of(im, message, V8_STRING_LATIN1, V8_STRING_UTF16_LE, V8_STRING_UTF16_BE);
}

/* --- isolates --- */

struct isolate_message {
    struct v8_isolate_row row;
    int64_t pid;
    bool has_code_range, process_wide;
};

static void read_code_range(struct slice message, struct isolate_message *x)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    x->has_code_range = true;
    x->row.code_range_base_address = 0;
    x->row.code_range_size = 0;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case INTERNED_V8_ISOLATE_CODE_RANGE_BASE_ADDRESS:
            x->row.code_range_base_address = pb_i64(&f);
            break;
        case INTERNED_V8_ISOLATE_CODE_RANGE_SIZE:
            x->row.code_range_size = pb_i64(&f);
            break;
        case INTERNED_V8_ISOLATE_CODE_RANGE_EMBEDDED_BLOB_CODE_COPY_START_ADDRESS:
            x->row.embedded_blob_code_copy_start_address = pb_i64(&f);
            break;
        case INTERNED_V8_ISOLATE_CODE_RANGE_IS_PROCESS_WIDE:
            x->process_wide = pb_bool(&f);
            break;
        }
    }
}

static struct isolate_message read_isolate(struct slice message)
{
    struct isolate_message x = {.row = {.code_range_base_address = COL_NULL,
                                        .code_range_size = COL_NULL,
                                        .shared_code_range = COL_NULL,
                                        .embedded_blob_code_copy_start_address = COL_NULL}};
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case INTERNED_V8_ISOLATE_PID:
            x.pid = pb_u32(&f);
            break;
        case INTERNED_V8_ISOLATE_ISOLATE_ID:
            x.row.internal_isolate_id = pb_i32(&f);
            break;
        case INTERNED_V8_ISOLATE_CODE_RANGE:
            read_code_range(pb_bytes(&f), &x);
            break;
        case INTERNED_V8_ISOLATE_EMBEDDED_BLOB_CODE_START_ADDRESS:
            x.row.embedded_blob_code_start_address = pb_i64(&f);
            break;
        case INTERNED_V8_ISOLATE_EMBEDDED_BLOB_CODE_SIZE:
            x.row.embedded_blob_code_size = pb_i64(&f);
            break;
        }
    }
    if (x.has_code_range)
        x.row.shared_code_range = x.process_wide;
    return x;
}

/* [start, start + size) without what passes the last address. */
static struct v8_area area_of(int64_t start, int64_t size)
{
    uint64_t from = (uint64_t)start, n = (uint64_t)size, room = UINT64_MAX - from;
    return (struct v8_area){from, from + (n < room ? n : room)};
}

/* The end of the longest mapping that starts with V8's own code: the file holds more than that code. */
static uint64_t mapping_end(struct packet *p, struct v8 *v, uint64_t start, uint64_t end)
{
    const struct storage *st = p->m->st;
    for (; v->n_mappings < st->t[T_stack_profile_mapping].n_rows; v->n_mappings++) {
        int64_t to = ROW_GET(st, stack_profile_mapping, end, v->n_mappings);
        uint64_t from = (uint64_t)ROW_GET(st, stack_profile_mapping, start, v->n_mappings);
        uint64_t *known = u64map_put(&v->mapping_ends, from, NULL);
        if (!known)
            p->m->im->failed = true;
        else if (to > (int64_t)*known)
            *known = (uint64_t)to;
    }
    const uint64_t *known = u64map_get(&v->mapping_ends, start);
    return known && *known > end ? *known : end;
}

static void add_area(struct packet *p, struct v8_isolate *isolate, uint64_t start, uint64_t end)
{
    if (start < end && jit_add_area(p->m->profiling, isolate->upid, start, end))
        isolate->areas[isolate->n_areas++] = (struct v8_area){start, end};
}

/* The range for code without V8's own code, and that code with its mapping. */
static void add_areas(struct packet *p, struct v8 *v, struct v8_isolate *isolate, const struct v8_isolate_row *row)
{
    struct v8_area own = area_of(row->embedded_blob_code_start_address, row->embedded_blob_code_size);
    struct v8_area code = area_of(row->code_range_base_address, row->code_range_size);
    if (own.start >= own.end || own.start >= code.end || own.end <= code.start) {
        add_area(p, isolate, code.start, code.end);
    } else {
        add_area(p, isolate, code.start, own.start);
        add_area(p, isolate, own.end, code.end);
    }
    if (own.start < own.end)
        add_area(p, isolate, own.start, mapping_end(p, v, own.start, own.end));
}

const struct v8_isolate *v8_isolate_of(struct packet *p, uint64_t iid)
{
    struct machine_ctx *m = p->m;
    struct v8 *v = v8_of(m);
    struct slice message;
    const uint64_t *read = v ? read_before(p, v, INTERNED_DATA_V8_ISOLATE, iid, &message) : NULL;
    if (!read)
        return NULL;
    if (*read)
        return (const struct v8_isolate *)(uintptr_t)*read; // NOLINT(performance-no-int-to-ptr)
    struct isolate_message x = read_isolate(message);
    uint32_t upid = process_tracker_process(m->processes, x.pid);
    uint64_t *known = u64map_put(&v->isolates, (uint64_t)upid << 32 | (uint32_t)x.row.internal_isolate_id, NULL);
    struct v8_isolate *isolate = NULL;
    if (known && *known) {
        isolate = (struct v8_isolate *)(uintptr_t)*known; // NOLINT(performance-no-int-to-ptr)
    } else if (known && (isolate = arena_zalloc(&v->arena, sizeof *isolate))) {
        *known = (uintptr_t)isolate;
        isolate->pid = x.pid;
        isolate->upid = upid;
        isolate->row = UINT32_MAX;
        isolate->has_code_range = x.has_code_range;
        x.row.upid = upid;
        if (x.has_code_range) {
            isolate->row = v8_isolate_insert(m->st, &x.row);
            add_areas(p, v, isolate, &x.row);
        } else {
            stats_add(&m->st->stats, m->id, STAT_v8_isolate_has_no_code_range, 1);
        }
    }
    if (!isolate) {
        m->im->failed = true;
        return NULL;
    }
    remember(p, v, INTERNED_DATA_V8_ISOLATE, iid, (uintptr_t)isolate);
    return isolate;
}

/* --- scripts --- */

static uint64_t script_key(const struct v8_isolate *isolate, int64_t script_id)
{
    return (uint64_t)isolate->row << 32 | (uint32_t)script_id;
}

static uint32_t read_js_script(struct packet *p, struct v8 *v, const struct v8_isolate *isolate, struct slice message)
{
    struct importer *im = p->m->im;
    struct v8_js_script_row row = {.v8_isolate_id = isolate->row, .name = import_str(im, "")};
    struct slice source = {0};
    uint64_t type = 0;
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case INTERNED_V8_JS_SCRIPT_SCRIPT_ID:
            row.internal_script_id = pb_i32(&f);
            break;
        case INTERNED_V8_JS_SCRIPT_TYPE:
            type = pb_u64(&f);
            break;
        case INTERNED_V8_JS_SCRIPT_NAME:
            row.name = v8_string(im, pb_bytes(&f));
            break;
        case INTERNED_V8_JS_SCRIPT_SOURCE:
            source = pb_bytes(&f);
            break;
        }
    }
    uint64_t *known = u64map_put(&v->scripts, script_key(isolate, row.internal_script_id), NULL);
    if (!known) {
        im->failed = true;
        return UINT32_MAX;
    }
    if (!*known) {
        row.script_type = import_str(im, NAME_OF(script_types, type));
        row.source = source.p ? v8_string(im, source) : 0;
        *known = (uint64_t)v8_js_script_insert(p->m->st, &row) + 1;
    }
    return (uint32_t)(*known - 1);
}

/* A script may be long, and every function may be of it. Of an isolate: the same number may be used with others. */
static uint32_t js_script_row(struct packet *p, struct v8 *v, const struct v8_isolate *isolate, uint64_t iid,
                              struct slice message)
{
    uint64_t key = hash_combine(iid ^ p->m->profiling->secret, isolate->row);
    uint64_t *known = u64map_get(read_of(v, INTERNED_DATA_V8_JS_SCRIPT), read_key(p, key));
    if (known)
        return (uint32_t)(*known - 1);
    uint32_t row = read_js_script(p, v, isolate, message);
    if (row != UINT32_MAX)
        remember(p, v, INTERNED_DATA_V8_JS_SCRIPT, key, (uint64_t)row + 1);
    return row;
}

uint32_t v8_wasm_script_of(struct packet *p, const struct v8_isolate *isolate, uint64_t iid)
{
    struct importer *im = p->m->im;
    struct v8 *v = v8_of(p->m);
    struct slice message, bytes = {0};
    const uint64_t *read = v ? read_before(p, v, INTERNED_DATA_V8_WASM_SCRIPT, iid, &message) : NULL;
    if (!read || *read)
        return read ? (uint32_t)(*read - 1) : UINT32_MAX;
    struct v8_wasm_script_row row = {.v8_isolate_id = isolate->row, .url = import_str(im, "")};
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == INTERNED_V8_WASM_SCRIPT_SCRIPT_ID)
            row.internal_script_id = pb_i32(&f);
        else if (f.id == INTERNED_V8_WASM_SCRIPT_URL)
            row.url = import_slice(im, pb_bytes(&f));
        else if (f.id == INTERNED_V8_WASM_SCRIPT_WIRE_BYTES)
            bytes = pb_bytes(&f);
    }
    uint64_t *known = u64map_put(&v->wasm_scripts, script_key(isolate, row.internal_script_id), NULL);
    if (!known) {
        im->failed = true;
        return UINT32_MAX;
    }
    if (!*known) {
        row.wire_bytes_base64 = import_base64(im, bytes);
        *known = (uint64_t)v8_wasm_script_insert(p->m->st, &row) + 1;
    }
    uint64_t word = *known;
    remember(p, v, INTERNED_DATA_V8_WASM_SCRIPT, iid, word);
    return (uint32_t)(word - 1);
}

/* --- functions --- */

struct function_message {
    struct v8_js_function_row row;
    uint64_t name_iid, script_iid, kind;
    int64_t line, column, offset;
};

static struct function_message read_function(struct slice message)
{
    struct function_message x = {.line = COL_NULL, .column = COL_NULL, .offset = COL_NULL};
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case INTERNED_V8_JS_FUNCTION_V8_JS_FUNCTION_NAME_IID:
            x.name_iid = pb_u64(&f);
            break;
        case INTERNED_V8_JS_FUNCTION_V8_JS_SCRIPT_IID:
            x.script_iid = pb_u64(&f);
            break;
        case INTERNED_V8_JS_FUNCTION_IS_TOPLEVEL:
            x.row.is_toplevel = pb_bool(&f);
            break;
        case INTERNED_V8_JS_FUNCTION_KIND:
            x.kind = pb_u64(&f);
            break;
        case INTERNED_V8_JS_FUNCTION_BYTE_OFFSET:
            x.offset = pb_u32(&f);
            break;
        case INTERNED_V8_JS_FUNCTION_LINE:
            x.line = pb_u32(&f);
            break;
        case INTERNED_V8_JS_FUNCTION_COLUMN:
            x.column = pb_u32(&f);
            break;
        }
    }
    bool placed = x.line != COL_NULL && x.column != COL_NULL;
    bool has_offset = x.offset != COL_NULL;
    x.row.line = placed ? x.line : has_offset ? 1 : COL_NULL;
    x.row.col = placed ? x.column : x.offset;
    return x;
}

static strid function_name(struct packet *p, struct v8 *v, uint64_t iid, struct slice message)
{
    const uint64_t *known = u64map_get(read_of(v, INTERNED_DATA_V8_JS_FUNCTION_NAME), read_key(p, iid));
    if (known)
        return (strid)*known;
    strid name = string_of(p->m->im, message, INTERNED_V8_STRING_LATIN1, INTERNED_V8_STRING_UTF16_LE,
                           INTERNED_V8_STRING_UTF16_BE);
    remember(p, v, INTERNED_DATA_V8_JS_FUNCTION_NAME, iid, name);
    return name;
}

/* Row + 1 of a function; 0 when something that it refers to is not there (counted), or memory is out. */
static uint64_t function_row(struct packet *p, struct v8 *v, const struct v8_isolate *isolate, struct slice message)
{
    struct machine_ctx *m = p->m;
    struct function_message x = read_function(message);
    struct slice name = interned_find(p->gen, INTERNED_DATA_V8_JS_FUNCTION_NAME, x.name_iid);
    struct slice script = interned_find(p->gen, INTERNED_DATA_V8_JS_SCRIPT, x.script_iid);
    if (!name.p || !script.p) {
        stats_add(&m->st->stats, m->id, STAT_v8_intern_errors, 1);
        return 0;
    }
    uint32_t in = js_script_row(p, v, isolate, x.script_iid, script);
    if (in == UINT32_MAX)
        return 0;
    int64_t words[v8_js_function_n_columns] = {function_name(p, v, x.name_iid, name),
                                               in,
                                               x.row.is_toplevel,
                                               import_str(m->im, NAME_OF(function_kinds, x.kind)),
                                               x.row.line,
                                               x.row.col};
    uint32_t row =
        row_intern(m->profiling, &v->functions, &m->st->t[T_v8_js_function], words, v8_js_function_n_columns, 0, NULL);
    return row == UINT32_MAX ? 0 : (uint64_t)row + 1;
}

bool v8_function_of(struct packet *p, const struct v8_isolate *isolate, uint64_t iid, struct v8_function *function)
{
    const struct storage *st = p->m->st;
    struct v8 *v = v8_of(p->m);
    struct slice message;
    const uint64_t *read = v ? read_before(p, v, INTERNED_DATA_V8_JS_FUNCTION, iid, &message) : NULL;
    if (!read)
        return false;
    uint64_t word = *read;
    if (!word) {
        if (!(word = function_row(p, v, isolate, message)))
            return false;
        remember(p, v, INTERNED_DATA_V8_JS_FUNCTION, iid, word);
    }
    uint32_t row = (uint32_t)(word - 1);
    int64_t line = ROW_GET(st, v8_js_function, line, row);
    *function = (struct v8_function){
        .row = row,
        .name = (strid)ROW_GET(st, v8_js_function, name, row),
        .file = (strid)ROW_GET(st, v8_js_script, name, (uint32_t)ROW_GET(st, v8_js_function, v8_js_script_id, row)),
        .line = line == COL_NULL ? 0 : line};
    return true;
}
