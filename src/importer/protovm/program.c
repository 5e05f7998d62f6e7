/* Runs programs: instructions are read where they lie, each time they are run. */
#include "importer/protovm/program.h"

#include "wire/fields.h"

enum {
    CURSOR_SRC = 1,
    CURSOR_DST = 2,
    CURSOR_BOTH = 3,
    SKIP_CURRENT = VM_INSTRUCTION_ABORT_LEVEL_SKIP_CURRENT_INSTRUCTION,
    BREAK_OUTER = VM_INSTRUCTION_ABORT_LEVEL_SKIP_CURRENT_INSTRUCTION_AND_BREAK_OUTER,
    PATH_MAX_PARTS = 32,
    MAX_DEPTH = 32, /* of instructions in instructions */
};

/* A place in the patch: a number, or bytes. */
struct source {
    uint8_t wire;
    uint64_t number;
    struct slice bytes;
};

/* A place in the state. Without a parent (the root, an element that is iterated over) deleting it leaves it empty. */
struct target {
    struct vm_node *node; /* NULL: deleted */
    struct vm_node *parent;
};

struct run {
    struct vm_program *program;
    struct vm_tree *state;
    struct source src;
    struct target dst;
    const struct vm_node *deleted; /* the node that was deleted last, while cursors further out may be at it */
    unsigned depth;
};

struct path_part {
    uint32_t field, index, key_field, key_register, index_register;
    bool has_field, has_index, has_key, has_key_register, has_index_register, repeated;
};

struct selection {
    uint32_t cursor;
    bool make;
    unsigned n_parts;
    struct path_part parts[PATH_MAX_PARTS];
    struct slice instruction; /* whose nested instructions run at the place */
};

static enum vm_status run_instructions(struct run *r, struct slice message, uint32_t field);

static bool spend(struct run *r, uint64_t bytes)
{
    return vm_spend(r->state, bytes);
}

static bool read_part(struct slice bytes, struct path_part *part)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    *part = (struct path_part){0};
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case VM_OP_SELECT_PATH_COMPONENT_FIELD_ID:
            part->field = pb_u32(&f);
            part->has_field = true;
            break;
        case VM_OP_SELECT_PATH_COMPONENT_ARRAY_INDEX:
            part->index = pb_u32(&f);
            part->has_index = true;
            break;
        case VM_OP_SELECT_PATH_COMPONENT_MAP_KEY_FIELD_ID:
            part->key_field = pb_u32(&f);
            part->has_key = true;
            break;
        case VM_OP_SELECT_PATH_COMPONENT_IS_REPEATED:
            part->repeated = pb_bool(&f);
            break;
        case VM_OP_SELECT_PATH_COMPONENT_REGISTER_TO_MATCH:
            part->key_register = pb_u32(&f);
            part->has_key_register = true;
            break;
        case VM_OP_SELECT_PATH_COMPONENT_STORE_FOREACH_INDEX_INTO_REGISTER:
            part->index_register = pb_u32(&f);
            part->has_index_register = true;
            break;
        }
    }
    return !c.bad && (!part->has_field || (part->field && part->field <= 0x1fffffff));
}

static bool read_selection(struct slice select, struct selection *s)
{
    struct pb_cursor c = pb_cursor(select);
    struct pb_field f;
    s->cursor = CURSOR_SRC;
    s->make = false;
    s->n_parts = 0;
    while (pb_next(&c, &f)) {
        if (f.id == VM_OP_SELECT_CURSOR)
            s->cursor = pb_u32(&f);
        else if (f.id == VM_OP_SELECT_CREATE_IF_NOT_EXIST)
            s->make = pb_bool(&f);
        else if (f.id == VM_OP_SELECT_RELATIVE_PATH &&
                 (s->n_parts == PATH_MAX_PARTS || !read_part(pb_bytes(&f), &s->parts[s->n_parts++])))
            return false;
    }
    return !c.bad && s->cursor >= CURSOR_SRC && s->cursor <= CURSOR_BOTH && !(s->make && s->cursor == CURSOR_SRC);
}

static struct source source_of(const struct pb_field *f)
{
    return (struct source){f->wire, f->u, pb_bytes(f)};
}

/* The value of a field of the patch that has `index` before it. */
static enum vm_status enter_source(struct run *r, uint32_t field, uint32_t index)
{
    struct pb_cursor c = pb_cursor(r->src.bytes);
    struct pb_field f;
    if (r->src.wire != PB_BYTES || !spend(r, r->src.bytes.len))
        return VM_ABORT;
    while (pb_next(&c, &f)) {
        if (f.id == field && !index--) {
            r->src = source_of(&f);
            return VM_OK;
        }
    }
    return c.bad ? VM_ABORT : VM_ERROR;
}

static bool register_value(const struct run *r, uint32_t number, uint64_t *value)
{
    const struct vm_program *p = r->program;
    bool known = number < VM_REGISTERS && p->known >> number & 1;
    *value = known ? p->registers[number] : 0;
    return known;
}

static bool set_register(const struct run *r, uint32_t number, uint64_t value)
{
    if (number >= VM_REGISTERS)
        return false;
    r->program->registers[number] = value;
    r->program->known |= UINT32_C(1) << number;
    return true;
}

/* Parts of a path: a field; a field and an index in it; a field and a key in it. */
static enum vm_status enter_target(struct run *r, const struct selection *s, const struct path_part *part,
                                   const struct path_part *next)
{
    struct vm_node *at = r->dst.node;
    uint64_t key;
    if (!at || !spend(r, at->kind == VM_BYTES ? at->len : 0))
        return VM_ABORT;
    if (next && next->has_index)
        return vm_enter_at(r->state, at, part->field, next->index, &r->dst.parent, &r->dst.node);
    if (next && next->has_key)
        return next->has_key_register && register_value(r, next->key_register, &key)
                   ? vm_enter_by_key(r->state, at, part->field, next->key_field, key, s->make, &r->dst.parent,
                                     &r->dst.node)
                   : VM_ABORT;
    r->dst.parent = at;
    return vm_enter_field(r->state, at, part->field, s->make, &r->dst.node);
}

static enum vm_status select_from(struct run *r, const struct selection *s, unsigned at);

static enum vm_status for_each_source(struct run *r, const struct selection *s, unsigned at)
{
    const struct path_part *part = &s->parts[at];
    struct pb_cursor c = pb_cursor(r->src.bytes);
    struct pb_field f;
    uint64_t index = 0;
    if (r->src.wire != PB_BYTES || !spend(r, r->src.bytes.len))
        return VM_ABORT;
    while (pb_next(&c, &f)) {
        if (f.id != part->field)
            continue;
        if (part->has_index_register && !set_register(r, part->index_register, index))
            return VM_ABORT;
        index++;
        r->src = source_of(&f);
        enum vm_status status = select_from(r, s, at + 1);
        if (status != VM_OK)
            return status;
    }
    return c.bad ? VM_ABORT : VM_OK;
}

static enum vm_status for_each_target(struct run *r, const struct selection *s, unsigned at)
{
    const struct path_part *part = &s->parts[at];
    struct vm_node *list;
    if (!r->dst.node || !spend(r, r->dst.node->kind == VM_BYTES ? r->dst.node->len : 0) ||
        vm_enter_list(r->state, r->dst.node, part->field, &list) != VM_OK)
        return VM_ABORT;
    for (uint32_t i = 0; list && i < list->n; i++) {
        if (part->has_index_register && !set_register(r, part->index_register, i))
            return VM_ABORT;
        r->dst = (struct target){list->children[i], NULL};
        enum vm_status status = select_from(r, s, at + 1);
        if (status != VM_OK)
            return status;
    }
    return VM_OK;
}

/* Goes on with the path from part `at`; at its end the nested instructions run. */
static enum vm_status select_from(struct run *r, const struct selection *s, unsigned at)
{
    if (!spend(r, 0))
        return VM_ABORT;
    if (at == s->n_parts)
        return run_instructions(r, s->instruction, VM_INSTRUCTION_NESTED_INSTRUCTIONS);
    const struct path_part *part = &s->parts[at], *next = at + 1 < s->n_parts ? part + 1 : NULL;
    if (!part->has_field)
        return VM_ABORT;
    if (part->repeated && s->cursor == CURSOR_SRC)
        return for_each_source(r, s, at);
    if (part->repeated)
        return s->cursor == CURSOR_DST ? for_each_target(r, s, at) : VM_ABORT;
    enum vm_status status = VM_OK;
    if (s->cursor != CURSOR_DST)
        status =
            next && next->has_key ? VM_ABORT : enter_source(r, part->field, next && next->has_index ? next->index : 0);
    if (status == VM_OK && s->cursor != CURSOR_SRC)
        status = enter_target(r, s, part, next);
    return status == VM_OK ? select_from(r, s, at + (next && !next->has_field ? 2 : 1)) : status;
}

static enum vm_status run_select(struct run *r, struct slice select, struct slice instruction)
{
    struct source src = r->src;
    struct target dst = r->dst;
    struct selection s = {.instruction = instruction};
    enum vm_status status = read_selection(select, &s) ? select_from(r, &s, 0) : VM_ABORT;
    r->src = src;
    r->dst = dst;
    if (dst.node && dst.node == r->deleted)
        r->dst = (struct target){0};
    else if (dst.node)
        r->deleted = NULL;
    return status;
}

static enum vm_status run_register(struct run *r, struct slice load)
{
    struct pb_field f;
    uint32_t cursor = pb_find(load, VM_OP_REG_LOAD_CURSOR, &f) ? pb_u32(&f) : CURSOR_SRC;
    uint32_t number = pb_find(load, VM_OP_REG_LOAD_DST_REGISTER, &f) ? pb_u32(&f) : 0;
    const struct vm_node *n = r->dst.node;
    if (cursor == CURSOR_SRC)
        return r->src.wire != PB_BYTES && set_register(r, number, r->src.number) ? VM_OK : VM_ABORT;
    return n && n->kind == VM_SCALAR && set_register(r, number, n->scalar) ? VM_OK : VM_ABORT;
}

static enum vm_status run_merge(struct run *r, struct slice merge)
{
    struct pb_field f;
    if (r->src.wire != PB_BYTES || !r->dst.node || !spend(r, r->src.bytes.len))
        return VM_ABORT;
    return vm_merge(r->state, r->dst.node, r->src.bytes,
                    pb_find(merge, VM_OP_MERGE_SKIP_SUBMESSAGES, &f) && pb_bool(&f),
                    pb_find(merge, VM_OP_MERGE_DEL_IF_SRC_EMPTY, &f) && pb_bool(&f));
}

static enum vm_status run_set(struct run *r)
{
    if (!r->dst.node || !spend(r, r->src.bytes.len))
        return VM_ABORT;
    return r->src.wire == PB_BYTES ? vm_set_bytes(r->state, r->dst.node, r->src.bytes)
                                   : vm_set_scalar(r->dst.node, r->src.wire, r->src.number);
}

static enum vm_status run_delete(struct run *r)
{
    if (!r->dst.node)
        return VM_ABORT;
    if (r->dst.parent) {
        struct vm_node *deleted = r->dst.node;
        if (vm_remove(r->state, r->dst.parent, deleted) != VM_OK)
            return VM_ABORT;
        r->deleted = deleted;
        r->dst = (struct target){0};
    } else {
        vm_empty(r->state, r->dst.node);
    }
    return VM_OK;
}

static enum vm_status run_operation(struct run *r, const struct pb_field *operation, struct slice instruction)
{
    enum vm_status status;
    switch (operation->id) {
    case VM_INSTRUCTION_SELECT:
        return run_select(r, pb_bytes(operation), instruction);
    case VM_INSTRUCTION_REG_LOAD:
        status = run_register(r, pb_bytes(operation));
        break;
    case VM_INSTRUCTION_MERGE:
        status = run_merge(r, pb_bytes(operation));
        break;
    case VM_INSTRUCTION_SET:
        status = run_set(r);
        break;
    case VM_INSTRUCTION_DEL:
        status = run_delete(r);
        break;
    default:
        return VM_ABORT;
    }
    return status == VM_OK ? run_instructions(r, instruction, VM_INSTRUCTION_NESTED_INSTRUCTIONS) : status;
}

static enum vm_status run_instruction(struct run *r, struct slice instruction, uint32_t *abort_level)
{
    struct pb_cursor c = pb_cursor(instruction);
    struct pb_field f, operation = {0};
    *abort_level = BREAK_OUTER;
    while (pb_next(&c, &f)) {
        if (f.id >= VM_INSTRUCTION_SELECT && f.id <= VM_INSTRUCTION_DEL)
            operation = f;
        else if (f.id == VM_INSTRUCTION_ABORT_LEVEL)
            *abort_level = pb_u32(&f);
    }
    return c.bad || !spend(r, instruction.len) ? VM_ABORT : run_operation(r, &operation, instruction);
}

static enum vm_status run_instructions(struct run *r, struct slice message, uint32_t field)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    enum vm_status status = VM_OK;
    if (r->depth == MAX_DEPTH)
        return VM_ABORT;
    r->depth++;
    while (status == VM_OK && pb_next(&c, &f)) {
        uint32_t abort_level;
        if (f.id != field)
            continue;
        status = run_instruction(r, pb_bytes(&f), &abort_level);
        if (status == VM_ERROR && abort_level == SKIP_CURRENT)
            status = VM_OK;
        else if (status == VM_ERROR && abort_level != BREAK_OUTER)
            status = VM_ABORT;
    }
    r->depth--;
    return c.bad ? VM_ABORT : status;
}

enum vm_status vm_program_run(struct vm_program *p, struct vm_tree *state, struct slice patch, uint64_t *work)
{
    struct run r = {.program = p, .state = state, .src = {PB_BYTES, 0, patch}, .dst = {&state->root, NULL}};
    state->work = work;
    return run_instructions(&r, p->bytes, VM_PROGRAM_INSTRUCTIONS);
}
