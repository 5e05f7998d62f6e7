/* Profiles of pprof: values by call stack. */
#include "importer/text/text_formats.h"

#include "importer/core/text_forms.h"
#include "importer/profiling/profile_file.h"
#include "importer/text/text_file.h"
#include "wire/fields.h"

typedef VEC(struct source_line) source_lines;

/* What a message says that many others may refer to: it is read once. */
struct pprof_mapping {
    uint32_t row;
    uint64_t start;
};
struct pprof_function {
    strid name, file;
    int64_t line;
};

struct pprof {
    struct importer *im;
    struct machine_ctx *m;
    VEC(struct slice)
    strings;
    VEC(uint32_t)
    profiles;                                     /* row of aggregate_profile, by type of value */
    struct u64map mappings, functions, locations; /* id -> index of `messages` + 1 */
    struct u64map frames;                         /* id of a location -> row + 1 */
    struct u64map kept;                           /* of import_kept(): long texts of the file */
    struct u64map mappings_read, functions_read;  /* id -> index of those read + 1 */
    VEC(struct pprof_mapping)
    read_mappings;
    VEC(struct pprof_function)
    read_functions;
    VEC(struct slice)
    messages;
    VEC(uint64_t)
    stack;
};

static struct slice text_at(const struct pprof *p, uint64_t index)
{
    return index < p->strings.n ? p->strings.p[index] : slice_of("", 0);
}

static strid string_at(struct pprof *p, uint64_t index, const char *other)
{
    struct slice s = text_at(p, index);
    return s.len ? import_kept(p->im, &p->kept, s) : import_str(p->im, other);
}

static uint64_t number_in(struct slice message, uint32_t field)
{
    struct pb_field f;
    return pb_find(message, field, &f) ? pb_u64(&f) : 0;
}

static bool keep(struct pprof *p, struct u64map *by_id, struct slice message)
{
    uint64_t id = number_in(message, PPROF_MAPPING_ID); /* the same field in all of them */
    uint64_t *slot = id ? u64map_put(by_id, id, NULL) : NULL;
    return !id || (slot && vec_push(&p->messages, message) && (*slot = p->messages.n, true));
}

static bool find_message(const struct pprof *p, const struct u64map *by_id, uint64_t id, struct slice *message)
{
    const uint64_t *at = id ? u64map_get(by_id, id) : NULL;
    if (at)
        *message = p->messages.p[*at - 1];
    return at != NULL;
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

static uint32_t mapping_of(struct pprof *p, uint64_t id, uint64_t *start)
{
    struct slice message;
    *start = 0;
    if (!find_message(p, &p->mappings, id, &message))
        return profile_file_own_mapping(p->m, import_str(p->im, "[unknown]"));
    const uint64_t *known = u64map_get(&p->mappings_read, id);
    if (known) {
        *start = p->read_mappings.p[*known - 1].start;
        return p->read_mappings.p[*known - 1].row;
    }
    *start = number_in(message, PPROF_MAPPING_MEMORY_START);
    uint32_t row = stack_profile_mapping(
        p->m, &(struct stack_profile_mapping_row){
                  .build_id = build_id_text(p->m, text_at(p, number_in(message, PPROF_MAPPING_BUILD_ID))),
                  .name = string_at(p, number_in(message, PPROF_MAPPING_FILENAME), "[unknown]"),
                  .exact_offset = (int64_t)number_in(message, PPROF_MAPPING_FILE_OFFSET),
                  .start = (int64_t)*start,
                  .end = (int64_t)number_in(message, PPROF_MAPPING_MEMORY_LIMIT)});
    if (!vec_push(&p->read_mappings, ((struct pprof_mapping){row, *start})) ||
        !u64map_set(&p->mappings_read, id, p->read_mappings.n))
        p->im->failed = true;
    return row;
}

static struct pprof_function function_of(struct pprof *p, uint64_t id)
{
    struct slice message = slice_of("", 0);
    const uint64_t *known = u64map_get(&p->functions_read, id);
    if (known)
        return p->read_functions.p[*known - 1];
    bool there = find_message(p, &p->functions, id, &message);
    struct slice file = text_at(p, number_in(message, PPROF_FUNCTION_FILENAME));
    struct pprof_function f = {.name = string_at(p, number_in(message, PPROF_FUNCTION_NAME), "[unknown]"),
                               .file = file.len ? import_kept(p->im, &p->kept, file) : 0,
                               .line = (int64_t)number_in(message, PPROF_FUNCTION_START_LINE)};
    if (there && (!vec_push(&p->read_functions, f) || !u64map_set(&p->functions_read, id, p->read_functions.n)))
        p->im->failed = true;
    return f;
}

/* The functions of a location: the innermost inlined one first. Returns the name of the first. */
static strid read_lines(struct pprof *p, struct slice location, source_lines *lines)
{
    struct pb_cursor c = pb_cursor(location);
    struct pb_field f;
    strid first = 0;
    while (pb_next(&c, &f)) {
        if (f.id != PPROF_LOCATION_LINE || f.wire != PB_BYTES)
            continue;
        struct slice line = pb_bytes(&f);
        struct pprof_function function = function_of(p, number_in(line, PPROF_LINE_FUNCTION_ID));
        int64_t number = (int64_t)number_in(line, PPROF_LINE_LINE);
        if (!number)
            number = function.line;
        struct source_line s = {function.name, function.file, number > 0 ? number : COL_NULL};
        if (!first)
            first = s.function;
        if (!vec_push(lines, s))
            p->im->failed = true;
    }
    return first;
}

static uint32_t make_frame(struct pprof *p, struct slice location)
{
    source_lines lines = {0};
    uint64_t start, address = number_in(location, PPROF_LOCATION_ADDRESS);
    uint32_t mapping = mapping_of(p, number_in(location, PPROF_LOCATION_MAPPING_ID), &start);
    strid name = read_lines(p, location, &lines);
    uint32_t frame = stack_profile_frame(
        p->m,
        &(struct stack_profile_frame_row){.name = name ? name : import_str(p->im, "[unknown]"),
                                          .mapping = mapping,
                                          .rel_pc = (int64_t)(address > start ? address - start : address),
                                          .symbol_set_id = COL_NULL},
        NULL);
    if (lines.n && frame != UINT32_MAX && ROW_GET(p->m->st, stack_profile_frame, symbol_set_id, frame) == COL_NULL) {
        uint32_t set = stack_profile_symbols(p->m, lines.p, lines.n);
        ROW_SET(p->m->st, stack_profile_frame, symbol_set_id, frame, set);
        for (size_t i = 0; i < lines.n && !p->im->failed; i++)
            ROW_SET(p->m->st, stack_profile_symbol, inlined, set + (uint32_t)i, i + 1 < lines.n);
    }
    vec_free(&lines);
    return frame;
}

/* The row of a location, UINT32_MAX for one that is not there. */
static uint32_t frame_of(struct pprof *p, uint64_t id)
{
    struct slice location;
    bool added;
    if (!find_message(p, &p->locations, id, &location))
        return UINT32_MAX;
    uint64_t *row = u64map_put(&p->frames, id, &added);
    if (!row)
        return UINT32_MAX;
    if (added) {
        uint32_t frame = make_frame(p, location);
        row = u64map_get(&p->frames, id);
        *row = (uint64_t)frame + 1;
    }
    return (uint32_t)(*row - 1);
}

static void read_sample(struct pprof *p, struct slice sample)
{
    struct pb_numbers ids = pb_numbers(sample, PPROF_SAMPLE_LOCATION_ID), values;
    uint64_t v;
    uint32_t callsite = CALLSITE_NONE;
    vec_clear(&p->stack);
    while (pb_next_number(&ids, &v))
        if (!vec_push(&p->stack, v))
            p->im->failed = true;
    for (size_t i = p->stack.n; i-- > 0;) { /* the leaf comes first */
        uint32_t frame = frame_of(p, p->stack.p[i]);
        if (frame != UINT32_MAX)
            callsite = stack_profile_callsite(p->m, callsite, frame);
    }
    if (callsite == CALLSITE_NONE)
        return;
    values = pb_numbers(sample, PPROF_SAMPLE_VALUE);
    for (size_t i = 0; i < p->profiles.n && pb_next_number(&values, &v); i++)
        aggregate_sample_insert(p->im->st, &(struct aggregate_sample_row){.aggregate_profile_id = p->profiles.p[i],
                                                                          .callsite_id = callsite,
                                                                          .value = (double)(int64_t)v});
}

static void read_type(struct pprof *p, struct slice type)
{
    strid name = string_at(p, number_in(type, PPROF_VALUE_TYPE_TYPE), "unknown");
    strid unit = string_at(p, number_in(type, PPROF_VALUE_TYPE_UNIT), "count");
    struct strpool *strings = &p->im->st->strings;
    uint32_t row = aggregate_profile_insert(
        p->im->st,
        &(struct aggregate_profile_row){.scope = import_str(p->im, "pprof_file"),
                                        .name = strpool_printf(strings, "pprof %s", strpool_cstr(strings, name)),
                                        .sample_type_type = name,
                                        .sample_type_unit = unit});
    if (row == UINT32_MAX || !vec_push(&p->profiles, row))
        p->im->failed = true;
}

/* --- the file ---------------------------------------------------------------------------------------------------- */

static void *open_file(struct importer *im)
{
    struct pprof *p = mem_zalloc(sizeof *p);
    if (p)
        *p = (struct pprof){.im = im, .m = text_machine(im)};
    return p;
}

/* What others refer to by number. */
static bool collect(struct pprof *p, struct slice file)
{
    struct pb_cursor c = pb_cursor(file);
    struct pb_field f;
    bool ok = true;
    while (ok && pb_next(&c, &f)) {
        if (f.wire != PB_BYTES)
            continue;
        if (f.id == PPROF_PROFILE_STRING_TABLE)
            ok = vec_push(&p->strings, pb_bytes(&f));
        else if (f.id == PPROF_PROFILE_MAPPING)
            ok = keep(p, &p->mappings, pb_bytes(&f));
        else if (f.id == PPROF_PROFILE_LOCATION)
            ok = keep(p, &p->locations, pb_bytes(&f));
        else if (f.id == PPROF_PROFILE_FUNCTION)
            ok = keep(p, &p->functions, pb_bytes(&f));
    }
    return ok;
}

static int write_file(void *self, struct slice file, struct error *err)
{
    struct pprof *p = self;
    struct pb_field f;
    if (!collect(p, file))
        return error_set(err, -MRD_ENOMEM, "out of memory");
    if (!p->strings.n)
        return error_set(err, -MRD_EFORMAT, "pprof: the profile has no table of strings");
    struct pb_cursor c = pb_cursor(file);
    while (pb_next(&c, &f))
        if (f.id == PPROF_PROFILE_SAMPLE_TYPE && f.wire == PB_BYTES)
            read_type(p, pb_bytes(&f));
    c = pb_cursor(file);
    while (pb_next(&c, &f)) /* those that no sample names, too */
        if (f.id == PPROF_PROFILE_LOCATION && f.wire == PB_BYTES)
            frame_of(p, number_in(pb_bytes(&f), PPROF_LOCATION_ID));
    c = pb_cursor(file);
    while (pb_next(&c, &f))
        if (f.id == PPROF_PROFILE_SAMPLE && f.wire == PB_BYTES)
            read_sample(p, pb_bytes(&f));
    if (c.bad)
        stats_add_idx(&p->im->st->stats, p->m->id, STAT_pprof_truncated, (int32_t)p->im->trace_file, 1);
    return p->im->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

static void close_file(void *self)
{
    struct pprof *p = self;
    vec_free(&p->strings);
    vec_free(&p->profiles);
    vec_free(&p->messages);
    vec_free(&p->stack);
    u64map_free(&p->mappings);
    u64map_free(&p->functions);
    u64map_free(&p->locations);
    u64map_free(&p->frames);
    u64map_free(&p->kept);
    u64map_free(&p->mappings_read);
    u64map_free(&p->functions_read);
    vec_free(&p->read_mappings);
    vec_free(&p->read_functions);
    mem_free(p);
}

const struct format_reader pprof_format_reader = {.format = FORMAT_PPROF,
                                                  .fixed_clock = true,
                                                  .whole = true,
                                                  .open = open_file,
                                                  .write = write_file,
                                                  .close = close_file};
