/* Imports the code that V8 makes of JavaScript, WebAssembly and regular expressions, and for itself. */
#include "importer/core/text_forms.h"
#include "importer/profiling/jit.h"
#include "importer/profiling/v8.h"

#include "wire/fields.h"

static const char *const js_tiers[] = {"UNKNOWN", "IGNITION", "SPARKPLUG", "MAGLEV", "TURBOSHAFT", "TURBOFAN"};
static const char *const wasm_tiers[] = {"UNKNOWN", "LIFTOFF", "TURBOFAN"};
static const char *const internal_types[] = {
    "UNKNOWN",           "BYTECODE_HANDLER",      "FOR_TESTING",         "BUILTIN",
    "WASM_FUNCTION",     "WASM_TO_CAPI_FUNCTION", "WASM_TO_JS_FUNCTION", "JS_TO_WASM_FUNCTION",
    "JS_TO_JS_FUNCTION", "C_WASM_ENTRY",
};

enum { TIER_UNKNOWN, TIER_IGNITION };

#define COUNT(names)           (sizeof(names) / sizeof *(names))
#define NAME_OF(names, number) ((names)[(number) < COUNT(names) ? (number) : 0])

/* What the packets have in common, and the one thing that each has of its own. */
struct code {
    uint64_t isolate_iid, start, size, kind /* tier or type */, of /* iid of the function or script */;
    int64_t tid; /* -1: not given */
    int64_t offset;
    struct slice name, machine_code, bytecode;
};

/* Which field of a packet is what; 0: it has none. */
struct code_fields {
    uint32_t isolate, tid, of, kind, name, offset, start, size, machine_code, bytecode;
};

static struct code read_code(struct slice bytes, const struct code_fields *k)
{
    struct code x = {.tid = -1};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == k->isolate)
            x.isolate_iid = pb_u64(&f);
        else if (f.id == k->tid)
            x.tid = pb_u32(&f);
        else if (f.id == k->of)
            x.of = pb_u64(&f);
        else if (f.id == k->kind)
            x.kind = pb_u64(&f);
        else if (f.id == k->name)
            x.name = pb_bytes(&f);
        else if (f.id == k->offset)
            x.offset = pb_i32(&f);
        else if (f.id == k->start)
            x.start = pb_u64(&f);
        else if (f.id == k->size)
            x.size = pb_u64(&f);
        else if (f.id == k->machine_code)
            x.machine_code = pb_bytes(&f);
        else if (f.id == k->bytecode)
            x.bytecode = pb_bytes(&f);
    }
    return x;
}

static void count(const struct packet *p, enum stat_key stat)
{
    stats_add(&p->m->st->stats, p->m->id, stat, 1);
}

/* The thread that made the code: the packet's, else that of the sequence. */
static uint32_t thread_of(struct packet *p, const struct v8_isolate *isolate, int64_t tid)
{
    struct pb_field f, g;
    if (tid < 0 && pb_find(p->gen->defaults, TRACE_PACKET_DEFAULTS_V8_CODE_DEFAULTS, &f) &&
        pb_find(pb_bytes(&f), V8_CODE_DEFAULTS_TID, &g))
        tid = pb_u32(&g);
    if (tid < 0) {
        count(p, STAT_v8_no_defaults);
        return UTID_NONE;
    }
    return process_tracker_update_thread(p->m->processes, tid, isolate->pid);
}

/* Does the code lie wholly in one of the isolate's areas? */
static bool in_areas(const struct v8_isolate *isolate, const struct code *x)
{
    for (uint32_t i = 0; i < isolate->n_areas; i++) {
        const struct v8_area *a = &isolate->areas[i];
        if (x->start >= a->start && x->start < a->end && x->size <= a->end - x->start)
            return true;
    }
    return false;
}

/* The row in jit_code; UINT32_MAX when the code cannot be placed (counted). */
static uint32_t add_code(struct packet *p, const struct v8_isolate *isolate, uint32_t utid, const struct code *x,
                         strid name, int64_t symbol_set)
{
    if (!x->size || !in_areas(isolate, x)) {
        count(p, x->size ? STAT_v8_no_code_range : STAT_v8_code_load_missing_code_range);
        return UINT32_MAX;
    }
    return jit_add_code(p->m->profiling,
                        &(struct jit_new_code){.ts = p->ts,
                                               .upid = isolate->upid,
                                               .utid = utid,
                                               .start = x->start,
                                               .size = x->size,
                                               .function = name,
                                               .native_code_base64 = import_base64(p->m->im, x->machine_code),
                                               .symbol_set = symbol_set});
}

/* The isolate, when it is known and makes code at places that are known. */
static const struct v8_isolate *isolate_of(struct packet *p, const struct code *x)
{
    const struct v8_isolate *isolate = v8_isolate_of(p, x->isolate_iid);
    return isolate && isolate->has_code_range ? isolate : NULL;
}

void v8_js_code_parse(struct packet *p)
{
    static const struct code_fields fields = {.isolate = V8_JS_CODE_V8_ISOLATE_IID,
                                              .tid = V8_JS_CODE_TID,
                                              .of = V8_JS_CODE_V8_JS_FUNCTION_IID,
                                              .kind = V8_JS_CODE_TIER,
                                              .start = V8_JS_CODE_INSTRUCTION_START,
                                              .size = V8_JS_CODE_INSTRUCTION_SIZE_BYTES,
                                              .machine_code = V8_JS_CODE_MACHINE_CODE,
                                              .bytecode = V8_JS_CODE_BYTECODE};
    struct code x = read_code(p->field, &fields);
    struct machine_ctx *m = p->m;
    struct v8_function function;
    const struct v8_isolate *isolate = isolate_of(p, &x);
    uint32_t utid = isolate ? thread_of(p, isolate, x.tid) : UTID_NONE;
    if (utid == UTID_NONE || !v8_function_of(p, isolate, x.of, &function))
        return;
    if (x.kind == TIER_UNKNOWN || x.kind >= COUNT(js_tiers)) {
        count(p, STAT_v8_unknown_code_type);
        return;
    }
    struct v8_js_code_row row = {
        .jit_code_id = COL_NULL, .v8_js_function_id = function.row, .tier = import_str(m->im, js_tiers[x.kind])};
    if (x.kind == TIER_IGNITION && !in_areas(isolate, &x)) { /* bytecode lies among the data */
        row.bytecode_base64 = import_base64(m->im, x.bytecode);
        v8_js_code_insert(m->st, &row);
        return;
    }
    if (!x.size || !in_areas(isolate, &x)) {
        add_code(p, isolate, utid, &x, function.name, COL_NULL); /* counts */
        return;
    }
    struct source_line line = {function.name, function.file, function.line};
    row.jit_code_id = add_code(p, isolate, utid, &x, function.name, stack_profile_symbols(m, &line, 1));
    if (row.jit_code_id != UINT32_MAX)
        v8_js_code_insert(m->st, &row);
}

void v8_internal_code_parse(struct packet *p)
{
    static const struct code_fields fields = {.isolate = V8_INTERNAL_CODE_V8_ISOLATE_IID,
                                              .tid = V8_INTERNAL_CODE_TID,
                                              .kind = V8_INTERNAL_CODE_TYPE,
                                              .name = V8_INTERNAL_CODE_NAME,
                                              .start = V8_INTERNAL_CODE_INSTRUCTION_START,
                                              .size = V8_INTERNAL_CODE_INSTRUCTION_SIZE_BYTES,
                                              .machine_code = V8_INTERNAL_CODE_MACHINE_CODE};
    struct code x = read_code(p->field, &fields);
    const struct v8_isolate *isolate = isolate_of(p, &x);
    uint32_t utid = isolate ? thread_of(p, isolate, x.tid) : UTID_NONE;
    if (utid == UTID_NONE)
        return;
    strid name = import_slice(p->m->im, x.name);
    uint32_t code = add_code(p, isolate, utid, &x, name, COL_NULL);
    if (code != UINT32_MAX)
        v8_internal_code_insert(p->m->st, &(struct v8_internal_code_row){
                                              .jit_code_id = code,
                                              .v8_isolate_id = isolate->row,
                                              .function_name = name,
                                              .code_type = import_str(p->m->im, NAME_OF(internal_types, x.kind))});
}

void v8_wasm_code_parse(struct packet *p)
{
    static const struct code_fields fields = {.isolate = V8_WASM_CODE_V8_ISOLATE_IID,
                                              .tid = V8_WASM_CODE_TID,
                                              .of = V8_WASM_CODE_V8_WASM_SCRIPT_IID,
                                              .kind = V8_WASM_CODE_TIER,
                                              .name = V8_WASM_CODE_FUNCTION_NAME,
                                              .offset = V8_WASM_CODE_CODE_OFFSET_IN_MODULE,
                                              .start = V8_WASM_CODE_INSTRUCTION_START,
                                              .size = V8_WASM_CODE_INSTRUCTION_SIZE_BYTES,
                                              .machine_code = V8_WASM_CODE_MACHINE_CODE};
    struct code x = read_code(p->field, &fields);
    const struct v8_isolate *isolate = isolate_of(p, &x);
    uint32_t script = isolate ? v8_wasm_script_of(p, isolate, x.of) : UINT32_MAX;
    uint32_t utid = script != UINT32_MAX ? thread_of(p, isolate, x.tid) : UTID_NONE;
    if (utid == UTID_NONE)
        return;
    strid name = import_slice(p->m->im, x.name);
    uint32_t code = add_code(p, isolate, utid, &x, name, COL_NULL);
    if (code != UINT32_MAX)
        v8_wasm_code_insert(p->m->st,
                            &(struct v8_wasm_code_row){.jit_code_id = code,
                                                       .v8_isolate_id = isolate->row,
                                                       .v8_wasm_script_id = script,
                                                       .function_name = name,
                                                       .tier = import_str(p->m->im, NAME_OF(wasm_tiers, x.kind)),
                                                       .code_offset_in_module = x.offset});
}

void v8_reg_exp_code_parse(struct packet *p)
{
    static const struct code_fields fields = {.isolate = V8_REG_EXP_CODE_V8_ISOLATE_IID,
                                              .tid = V8_REG_EXP_CODE_TID,
                                              .name = V8_REG_EXP_CODE_PATTERN,
                                              .start = V8_REG_EXP_CODE_INSTRUCTION_START,
                                              .size = V8_REG_EXP_CODE_INSTRUCTION_SIZE_BYTES,
                                              .machine_code = V8_REG_EXP_CODE_MACHINE_CODE};
    struct code x = read_code(p->field, &fields);
    struct importer *im = p->m->im;
    const struct v8_isolate *isolate = isolate_of(p, &x);
    uint32_t utid = isolate ? thread_of(p, isolate, x.tid) : UTID_NONE;
    if (utid == UTID_NONE)
        return;
    uint32_t code = add_code(p, isolate, utid, &x, import_str(im, "[RegExp]"), COL_NULL);
    if (code != UINT32_MAX)
        v8_regexp_code_insert(p->m->st, &(struct v8_regexp_code_row){.jit_code_id = code,
                                                                     .v8_isolate_id = isolate->row,
                                                                     .pattern = v8_string(im, x.name)});
}

void v8_code_move_parse(struct packet *p)
{
    struct code x = {.tid = -1};
    uint64_t from = 0, to = 0;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == V8_CODE_MOVE_ISOLATE_IID)
            x.isolate_iid = pb_u64(&f);
        else if (f.id == V8_CODE_MOVE_TID)
            x.tid = pb_u32(&f);
        else if (f.id == V8_CODE_MOVE_FROM_INSTRUCTION_START_ADDRESS)
            from = pb_u64(&f);
        else if (f.id == V8_CODE_MOVE_TO_INSTRUCTION_START_ADDRESS)
            to = pb_u64(&f);
    }
    const struct v8_isolate *isolate = isolate_of(p, &x);
    if (isolate && thread_of(p, isolate, x.tid) != UTID_NONE)
        jit_move_code(p->m->profiling, isolate->upid, p->ts, from, to);
}
