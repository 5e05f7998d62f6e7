/* Writes profiles in pprof's format: stacks of the trace become locations and functions, equal stacks one sample. */
#include "sql/functions/stacks.h"

#include "base/hash.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

struct pprof_type {
    strid type, unit;
};

struct pprof_sample {
    size_t first_location, n_locations; /* in `stacks`, the innermost first */
    size_t first_value;                 /* in `values`, one of each type */
};

struct pprof {
    const struct storage *st;
    struct strpool strings; /* of the profile: the ids are its string numbers */
    struct u64map functions, locations, mappings, samples;
    uint64_t n_functions, n_locations;
    struct pb_writer out; /* locations, functions, mappings as they come; the rest at the end */
    VEC(struct pprof_type)
    types;
    VEC(uint64_t)
    stacks;
    VEC(int64_t)
    values;
    VEC(struct pprof_sample)
    list;
    bool failed;
};

struct pprof *pprof_open(const struct storage *st)
{
    struct pprof *p = mem_zalloc(sizeof *p);
    if (p)
        p->st = st;
    return p;
}

void pprof_close(struct pprof *p)
{
    if (!p)
        return;
    strpool_free(&p->strings);
    u64map_free(&p->functions);
    u64map_free(&p->locations);
    u64map_free(&p->mappings);
    u64map_free(&p->samples);
    pb_writer_free(&p->out);
    vec_free(&p->types);
    vec_free(&p->stacks);
    vec_free(&p->values);
    vec_free(&p->list);
    mem_free(p);
}

/* The profile's number of a string; 0 is the empty one. */
static uint64_t text_number(struct pprof *p, struct slice text)
{
    return text.len ? strpool_intern(&p->strings, text.p, text.len) : 0;
}

static struct slice trace_text(const struct pprof *p, int64_t id)
{
    return strpool_view(&p->st->strings, (strid)id);
}

void pprof_add_type(struct pprof *p, struct slice type, struct slice unit)
{
    if (!vec_push(&p->types, (struct pprof_type){(strid)text_number(p, type), (strid)text_number(p, unit)}))
        p->failed = true;
}

/* The number under `key`, `next` when it is new (*added). */
static uint64_t number(struct pprof *p, struct u64map *map, uint64_t key, uint64_t next, bool *added)
{
    uint64_t *n = u64map_put(map, key, added);
    if (!n) {
        p->failed = true;
        *added = false;
        return 0;
    }
    if (*added)
        *n = next;
    return *n;
}

static uint64_t function(struct pprof *p, uint64_t name, uint64_t file)
{
    bool added;
    uint64_t id = number(p, &p->functions, name << 32 | file, p->n_functions + 1, &added);
    if (added) {
        p->n_functions++;
        size_t f = pb_begin(&p->out, PPROF_PROFILE_FUNCTION);
        pb_put_varint(&p->out, PPROF_FUNCTION_ID, id);
        pb_put_varint(&p->out, PPROF_FUNCTION_NAME, name);
        pb_put_varint(&p->out, PPROF_FUNCTION_SYSTEM_NAME, name);
        pb_put_varint(&p->out, PPROF_FUNCTION_FILENAME, file);
        pb_end(&p->out, f);
    }
    return id;
}

/* Where the file of a row of stack_profile_mapping lay; returns its number. */
static uint64_t mapping(struct pprof *p, uint32_t row)
{
    const struct storage *st = p->st;
    bool added;
    uint64_t id = number(p, &p->mappings, row, (uint64_t)row + 1, &added);
    if (added) {
        size_t m = pb_begin(&p->out, PPROF_PROFILE_MAPPING);
        pb_put_varint(&p->out, PPROF_MAPPING_ID, id);
        pb_put_i64(&p->out, PPROF_MAPPING_MEMORY_START, ROW_GET(st, stack_profile_mapping, start, row));
        pb_put_i64(&p->out, PPROF_MAPPING_MEMORY_LIMIT, ROW_GET(st, stack_profile_mapping, end, row));
        pb_put_i64(&p->out, PPROF_MAPPING_FILE_OFFSET, ROW_GET(st, stack_profile_mapping, exact_offset, row));
        pb_put_varint(&p->out, PPROF_MAPPING_FILENAME,
                      text_number(p, trace_text(p, ROW_GET(st, stack_profile_mapping, name, row))));
        pb_put_varint(&p->out, PPROF_MAPPING_BUILD_ID,
                      text_number(p, trace_text(p, ROW_GET(st, stack_profile_mapping, build_id, row))));
        pb_put_varint(&p->out, PPROF_MAPPING_HAS_FUNCTIONS, 1); /* what has names has them in the profile */
        pb_end(&p->out, m);
    }
    return id;
}

/* The address that the frame's code had in the process, when the trace says where the file lay. */
static uint64_t address(const struct pprof *p, uint32_t frame, uint32_t map)
{
    const struct storage *st = p->st;
    uint64_t rel_pc = (uint64_t)ROW_GET(st, stack_profile_frame, rel_pc, frame);
    uint64_t start = (uint64_t)ROW_GET(st, stack_profile_mapping, start, map);
    uint64_t into_file = (uint64_t)ROW_GET(st, stack_profile_mapping, exact_offset, map) -
                         (uint64_t)ROW_GET(st, stack_profile_mapping, start_offset, map);
    uint64_t bias = (uint64_t)ROW_GET(st, stack_profile_mapping, load_bias, map);
    return start ? rel_pc + start - into_file - bias : rel_pc;
}

/* --- locations ---------------------------------------------------------------------------------------------------- */

enum { MAX_LINES = 64 /* functions inlined at one address */ };

struct pprof_line {
    uint64_t function;
    int64_t line; /* COL_NULL: not known */
};

/* "name", or "name [annotation]". */
static struct pprof_line make_line(struct pprof *p, struct slice name, struct slice file, int64_t line,
                                   struct slice annotation)
{
    enum { LONGEST = 4096 };
    int len = (int)(name.len < LONGEST ? name.len : LONGEST);
    uint64_t text = annotation.len ? strpool_printf(&p->strings, "%.*s [%.*s]", len, (const char *)name.p,
                                                    (int)annotation.len, (const char *)annotation.p)
                                   : text_number(p, name);
    return (struct pprof_line){function(p, text, text_number(p, file)), line};
}

/* The functions of a frame: its symbols, the innermost first, else its name. */
static size_t frame_lines(struct pprof *p, uint32_t frame, struct slice annotation, struct pprof_line *lines)
{
    const struct storage *st = p->st;
    int64_t set = ROW_GET(st, stack_profile_frame, symbol_set_id, frame);
    size_t n = 0;
    if (set != COL_NULL) {
        const struct table *symbols = &st->t[T_stack_profile_symbol];
        uint32_t row = table_lower_bound(symbols, stack_profile_symbol_c_symbol_set_id, set, false);
        for (; row < symbols->n_rows && n < MAX_LINES; row++) {
            if (ROW_GET(st, stack_profile_symbol, symbol_set_id, row) != set)
                break;
            lines[n++] = make_line(p, trace_text(p, ROW_GET(st, stack_profile_symbol, name, row)),
                                   trace_text(p, ROW_GET(st, stack_profile_symbol, source_file, row)),
                                   ROW_GET(st, stack_profile_symbol, line_number, row), annotation);
        }
    }
    int64_t name = ROW_GET(st, stack_profile_frame, deobfuscated_name, frame);
    struct slice text = trace_text(p, name ? name : ROW_GET(st, stack_profile_frame, name, frame));
    if (!n && text.len)
        lines[n++] = make_line(p, text, slice_of("", 0), COL_NULL, annotation);
    return n;
}

static void put_location(struct pprof *p, uint64_t id, uint64_t map, uint64_t addr, const struct pprof_line *lines,
                         size_t n)
{
    size_t location = pb_begin(&p->out, PPROF_PROFILE_LOCATION);
    pb_put_varint(&p->out, PPROF_LOCATION_ID, id);
    if (map)
        pb_put_varint(&p->out, PPROF_LOCATION_MAPPING_ID, map);
    if (addr)
        pb_put_varint(&p->out, PPROF_LOCATION_ADDRESS, addr);
    for (size_t i = 0; i < n; i++) {
        size_t line = pb_begin(&p->out, PPROF_LOCATION_LINE);
        pb_put_varint(&p->out, PPROF_LINE_FUNCTION_ID, lines[i].function);
        if (lines[i].line != COL_NULL)
            pb_put_i64(&p->out, PPROF_LINE_LINE, lines[i].line);
        pb_end(&p->out, line);
    }
    pb_end(&p->out, location);
}

/* The keys of locations: a frame with what is said of it, or a name alone. */
static uint64_t frame_location(struct pprof *p, uint32_t frame, bool annotated)
{
    bool added;
    uint64_t id = number(p, &p->locations, (uint64_t)frame << 2 | annotated, p->n_locations + 1, &added);
    if (added) {
        struct pprof_line lines[MAX_LINES];
        uint32_t map = (uint32_t)ROW_GET(p->st, stack_profile_frame, mapping, frame);
        int64_t kind = annotated ? ROW_GET(p->st, stack_profile_frame, type, frame) : 0;
        size_t n = frame_lines(p, frame, kind ? trace_text(p, kind) : slice_of("", 0), lines);
        p->n_locations++;
        uint64_t map_number = mapping(p, map);
        put_location(p, id, map_number, address(p, frame, map), lines, n);
    }
    return id;
}

static uint64_t name_location(struct pprof *p, struct slice name)
{
    bool added;
    uint64_t id = number(p, &p->locations, text_number(p, name) << 2 | 2, p->n_locations + 1, &added);
    if (added) {
        struct pprof_line line = make_line(p, name, slice_of("", 0), COL_NULL, slice_of("", 0));
        p->n_locations++;
        put_location(p, id, 0, 0, &line, 1);
    }
    return id;
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

static bool add_location(struct pprof *p, uint64_t id)
{
    if (!vec_push(&p->stacks, id))
        p->failed = true;
    return true;
}

/* Appends the frames of a callsite from the outermost on. */
static bool add_callsite(struct pprof *p, uint64_t row, bool annotated)
{
    const struct table *t = &p->st->t[T_stack_profile_callsite];
    if (row >= t->n_rows)
        return false;
    size_t first = p->stacks.n;
    for (int64_t r = (int64_t)row, parent; r != COL_NULL; r = parent < r ? parent : COL_NULL) {
        parent = ROW_GET(p->st, stack_profile_callsite, parent_id, (uint32_t)r);
        add_location(
            p, frame_location(p, (uint32_t)ROW_GET(p->st, stack_profile_callsite, frame_id, (uint32_t)r), annotated));
    }
    for (size_t i = first, k = p->stacks.n; i + 1 < k; i++, k--) { /* they were found from the innermost on */
        uint64_t id = p->stacks.p[i];
        p->stacks.p[i] = p->stacks.p[k - 1];
        p->stacks.p[k - 1] = id;
    }
    return true;
}

static bool add_entry(struct pprof *p, struct slice entry)
{
    struct pb_cursor c = pb_cursor(entry);
    struct pb_field f;
    if (!pb_next(&c, &f))
        return false;
    switch (f.id) {
    case STACK_NAME:
        return add_location(p, name_location(p, pb_bytes(&f)));
    case STACK_FRAME:
        return pb_u64(&f) < p->st->t[T_stack_profile_frame].n_rows &&
               add_location(p, frame_location(p, (uint32_t)pb_u64(&f), false));
    case STACK_CALLSITE:
    case STACK_ANNOTATED_CALLSITE:
        return add_callsite(p, pb_u64(&f), f.id == STACK_ANNOTATED_CALLSITE);
    }
    return false;
}

/* The sample whose locations are stacks[first, end), made when new: then they stay, else they are taken back. */
static struct pprof_sample *sample_of(struct pprof *p, size_t first)
{
    size_t n = p->stacks.n - first;
    uint64_t key = hash_u64(n ^ hash_secret());
    for (size_t i = first; i < p->stacks.n; i++)
        key = hash_combine(key, p->stacks.p[i]);
    for (;; key = hash_u64(key)) {
        bool added;
        uint64_t at = number(p, &p->samples, key, p->list.n, &added);
        if (p->failed)
            return NULL;
        if (added) {
            struct pprof_sample s = {first, n, p->values.n};
            for (size_t i = 0; i < p->types.n; i++)
                if (!vec_push(&p->values, 0))
                    p->failed = true;
            if (!vec_push(&p->list, s))
                p->failed = true;
            return p->failed ? NULL : vec_last(&p->list);
        }
        struct pprof_sample *s = &p->list.p[at];
        if (s->n_locations == n &&
            (!n || !memcmp(&p->stacks.p[s->first_location], &p->stacks.p[first], n * sizeof *p->stacks.p))) {
            p->stacks.n = first;
            return s;
        }
    }
}

bool pprof_add(struct pprof *p, struct slice stack, const int64_t *values, size_t n)
{
    size_t first = p->stacks.n;
    struct pb_cursor c = pb_cursor(stack);
    struct pb_field f;
    bool ok = true;
    while (ok && pb_next(&c, &f))
        ok = f.id == STACK_ENTRIES && add_entry(p, pb_bytes(&f));
    if (!ok || c.bad) {
        p->stacks.n = first;
        return false;
    }
    struct pprof_sample *s = sample_of(p, first);
    for (size_t i = 0; s && i < n && i < p->types.n; i++)
        p->values.p[s->first_value + i] = (int64_t)((uint64_t)p->values.p[s->first_value + i] + (uint64_t)values[i]);
    return true;
}

struct slice pprof_write(struct pprof *p)
{
    struct pb_writer *w = &p->out;
    for (size_t i = 0; i < p->types.n; i++) {
        size_t type = pb_begin(w, PPROF_PROFILE_SAMPLE_TYPE);
        pb_put_varint(w, PPROF_VALUE_TYPE_TYPE, p->types.p[i].type);
        pb_put_varint(w, PPROF_VALUE_TYPE_UNIT, p->types.p[i].unit);
        pb_end(w, type);
    }
    for (size_t i = 0; i < p->list.n; i++) {
        const struct pprof_sample *s = &p->list.p[i];
        size_t sample = pb_begin(w, PPROF_PROFILE_SAMPLE), packed = pb_begin(w, PPROF_SAMPLE_LOCATION_ID);
        for (size_t k = s->n_locations; k-- > 0;) /* pprof wants the innermost first */
            pb_put_raw_varint(w, p->stacks.p[s->first_location + k]);
        pb_end(w, packed);
        packed = pb_begin(w, PPROF_SAMPLE_VALUE);
        for (size_t k = 0; k < p->types.n; k++)
            pb_put_raw_varint(w, (uint64_t)p->values.p[s->first_value + k]);
        pb_end(w, packed);
        pb_end(w, sample);
    }
    for (strid id = 0; id <= p->strings.n; id++) {
        struct slice text = strpool_view(&p->strings, id);
        pb_put_bytes(w, PPROF_PROFILE_STRING_TABLE, text.p, text.len);
    }
    return p->failed || w->failed || p->strings.failed ? slice_of(NULL, 0) : pb_written(w);
}

/* --- experimental_profile(stack, [type, unit, value] ...) --------------------------------------------------------- */

enum { MAX_TYPES = 42 /* as many as SQLite passes arguments for */ };

static void profile_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct pprof **p = sqlite3_aggregate_context(ctx, sizeof *p);
    int64_t values[MAX_TYPES] = {1};
    size_t n = argc > 1 ? (size_t)(argc - 1) / 3 : 1;
    if (argc < 1 || (argc - 1) % 3 || n > MAX_TYPES) {
        function_error(ctx, "EXPERIMENTAL_PROFILE: expected a stack, then a type, a unit and a value for each kind");
        return;
    }
    if (!p)
        return;
    if (!*p && (*p = pprof_open(engine_storage(function_engine(ctx))))) {
        if (argc == 1)
            pprof_add_type(*p, slice_str("samples"), slice_str("count"));
        for (int i = 1; i + 2 < argc; i += 3)
            pprof_add_type(*p, function_text(argv[i]), function_text(argv[i + 1]));
    }
    if (!*p) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    for (size_t i = 0; argc > 1 && i < n; i++)
        values[i] = sqlite3_value_int64(argv[3 * i + 3]);
    if (!function_is_null(argv[0]) && !pprof_add(*p, function_bytes(argv[0]), values, n))
        function_error(ctx, "EXPERIMENTAL_PROFILE: the first argument is not a stack");
}

static void profile_final(sqlite3_context *ctx)
{
    struct pprof **p = sqlite3_aggregate_context(ctx, 0);
    if (!p || !*p)
        return;
    struct slice bytes = pprof_write(*p);
    if (bytes.len)
        sqlite3_result_blob64(ctx, bytes.p, bytes.len, SQLITE_TRANSIENT);
    else
        sqlite3_result_error_nomem(ctx);
    pprof_close(*p);
    *p = NULL;
}

static const struct engine_function rows[] = {
    {.name = "experimental_profile", .n_args = -1, .takes = "*v", .step = profile_step, .final = profile_final},
};

FUNCTION_ROWS(pprof, rows);
