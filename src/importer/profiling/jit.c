/* Keeps the code of each process by address, and gives frames the names of the code that they lie in. */
#include "importer/profiling/jit.h"

#include "base/hash.h"
#include "base/range_map.h"

#include <inttypes.h>

struct jit_code {
    uint32_t row; /* of jit_code */
    uint64_t start;
    strid function;
    int64_t symbol_set;
};

/* Where a process makes code, and what lies there. */
struct jit_process {
    struct range_map areas, codes; /* values: none; struct jit_code */
    uint32_t n_areas;              /* added so far */
};

struct jit {
    struct arena arena;
    struct u64map processes; /* upid -> struct jit_process * */
    struct u64map frames;    /* code's row and offset in it -> row of the frame */
};

void jit_close(struct jit *j)
{
    if (!j)
        return;
    u64map_free(&j->processes);
    u64map_free(&j->frames);
    arena_free(&j->arena);
    mem_free(j);
}

static struct jit_process *find_process(const struct jit *j, uint32_t upid)
{
    const uint64_t *known = j ? u64map_get(&j->processes, upid) : NULL;
    return known ? (struct jit_process *)(uintptr_t)*known : NULL; // NOLINT(performance-no-int-to-ptr)
}

static struct jit_process *process_of(struct profiling_machine *s, uint32_t upid)
{
    if (!s->jit)
        s->jit = mem_zalloc(sizeof *s->jit);
    struct jit *j = s->jit;
    struct jit_process *p = find_process(j, upid);
    if (p || !j)
        return p;
    p = arena_zalloc(&j->arena, sizeof *p);
    if (!p || !u64map_set(&j->processes, upid, (uintptr_t)p))
        return NULL;
    p->areas.arena = p->codes.arena = &j->arena;
    return p;
}

bool jit_add_area(struct profiling_machine *s, uint32_t upid, uint64_t start, uint64_t end)
{
    struct jit_process *p = process_of(s, upid);
    struct range r = {start, end, NULL}, other;
    while (p && range_map_take(&p->areas, r.start, r.end, &other)) {
        r.start = other.start < r.start ? other.start : r.start;
        r.end = other.end > r.end ? other.end : r.end;
    }
    bool ok = p && range_map_add(&p->areas, r);
    if (ok)
        p->n_areas++;
    s->m->im->failed |= !ok;
    return ok;
}

uint32_t jit_areas(const struct profiling_machine *s, uint32_t upid)
{
    const struct jit_process *p = find_process(s->jit, upid);
    return p ? p->n_areas : 0;
}

/* Puts code at its place; what lay there is gone. */
static bool place_code(struct profiling_machine *s, struct jit_process *p, int64_t ts, struct range range)
{
    struct range gone;
    while (range_map_take(&p->codes, range.start, range.end, &gone))
        ROW_SET(s->m->st, jit_code, estimated_delete_ts, ((struct jit_code *)gone.value)->row, ts);
    return range_map_add(&p->codes, range);
}

uint32_t jit_add_code(struct profiling_machine *s, const struct jit_new_code *code)
{
    struct jit_process *p = process_of(s, code->upid);
    struct jit_code *c = p ? arena_alloc(&s->jit->arena, sizeof *c) : NULL;
    uint32_t row = c ? jit_code_insert(s->m->st, &(struct jit_code_row){.create_ts = code->ts,
                                                                        .estimated_delete_ts = COL_NULL,
                                                                        .utid = code->utid,
                                                                        .start_address = (int64_t)code->start,
                                                                        .size = (int64_t)code->size,
                                                                        .function_name = code->function,
                                                                        .native_code_base64 = code->native_code_base64})
                     : UINT32_MAX;
    if (row != UINT32_MAX) {
        *c = (struct jit_code){row, code->start, code->function, code->symbol_set};
        if (place_code(s, p, code->ts, (struct range){code->start, code->start + code->size, c}))
            return row;
    }
    s->m->im->failed = true;
    return UINT32_MAX;
}

void jit_move_code(struct profiling_machine *s, uint32_t upid, int64_t ts, uint64_t from, uint64_t to)
{
    struct jit_process *p = find_process(s->jit, upid);
    struct range r;
    if (!p || !range_map_find(&p->codes, from, &r) || r.start != from)
        return;
    uint64_t size = r.end - r.start;
    if (to > UINT64_MAX - size || !range_map_take(&p->codes, r.start, r.end, &r))
        return;
    ((struct jit_code *)r.value)->start = to;
    s->m->im->failed |= !place_code(s, p, ts, (struct range){to, to + size, r.value});
}

bool jit_covers(const struct profiling_machine *s, uint32_t upid, uint32_t mapping)
{
    const struct jit_process *p = find_process(s->jit, upid);
    struct range area;
    if (!p)
        return false;
    uint64_t start = (uint64_t)ROW_GET(s->m->st, stack_profile_mapping, start, mapping);
    uint64_t end = (uint64_t)ROW_GET(s->m->st, stack_profile_mapping, end, mapping);
    return end > start && range_map_find(&p->areas, start, &area) && end <= area.end;
}

/* A frame in code that nothing told of. */
static uint32_t unknown_frame(struct profiling_machine *s, const struct stack_profile_frame_row *frame)
{
    struct stack_profile_frame_row row = *frame;
    struct machine_ctx *m = s->m;
    if (!row.name)
        row.name = strpool_printf(&m->st->strings, "[+0x%" PRIx64 "]", (uint64_t)row.rel_pc);
    uint32_t before = m->st->t[T_stack_profile_frame].n_rows, id = stack_profile_frame(m, &row, NULL);
    if (m->st->t[T_stack_profile_frame].n_rows > before)
        stats_add(&m->st->stats, m->id, STAT_jit_unknown_frame, 1);
    return id;
}

uint32_t jit_frame(struct profiling_machine *s, uint32_t upid, const struct stack_profile_frame_row *frame)
{
    struct machine_ctx *m = s->m;
    const struct jit_process *p = find_process(s->jit, upid);
    uint32_t mapping = (uint32_t)frame->mapping;
    uint64_t address = (uint64_t)frame->rel_pc + (uint64_t)ROW_GET(m->st, stack_profile_mapping, start, mapping) -
                       (uint64_t)ROW_GET(m->st, stack_profile_mapping, exact_offset, mapping) -
                       (uint64_t)ROW_GET(m->st, stack_profile_mapping, load_bias, mapping);
    struct range r;
    if (!p || !range_map_find(&p->codes, address, &r))
        return unknown_frame(s, frame);
    const struct jit_code *code = r.value;
    uint64_t key = hash_keyed(s->secret, code->row, address - code->start);
    const uint64_t *known = u64map_get(&s->jit->frames, key);
    if (known)
        return (uint32_t)*known;
    struct stack_profile_frame_row row = *frame;
    row.name = code->function;
    bool added;
    uint32_t id = stack_profile_frame_of_code(m, &row, code->row, code->symbol_set, &added);
    if (id == UINT32_MAX || !u64map_set(&s->jit->frames, key, id)) {
        m->im->failed = true;
        return UINT32_MAX;
    }
    if (added)
        jit_frame_insert(m->st, &(struct jit_frame_row){.jit_code_id = code->row, .frame_id = id});
    return id;
}
