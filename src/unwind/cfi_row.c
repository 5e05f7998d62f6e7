/* Runs the instructions of a function's call frame information up to an address: how its caller is found there. */
#include "unwind/cfi.h"

enum { REMEMBERED_MAX = 8 };

/* DW_CFA_…; the first three have an operand in their low six bits. */
enum {
    ADVANCE = 0x40,
    OFFSET = 0x80,
    RESTORE = 0xc0,
    HIGH = 0xc0,
    NOP = 0x00,
    SET_LOC = 0x01,
    ADVANCE1 = 0x02,
    ADVANCE2 = 0x03,
    ADVANCE4 = 0x04,
    OFFSET_EXTENDED = 0x05,
    RESTORE_EXTENDED = 0x06,
    UNDEFINED = 0x07,
    SAME_VALUE = 0x08,
    REGISTER = 0x09,
    REMEMBER = 0x0a,
    RESTORE_STATE = 0x0b,
    DEF_CFA = 0x0c,
    DEF_CFA_REGISTER = 0x0d,
    DEF_CFA_OFFSET = 0x0e,
    DEF_CFA_EXPRESSION = 0x0f,
    EXPRESSION = 0x10,
    OFFSET_EXTENDED_SF = 0x11,
    DEF_CFA_SF = 0x12,
    DEF_CFA_OFFSET_SF = 0x13,
    VAL_OFFSET = 0x14,
    VAL_OFFSET_SF = 0x15,
    VAL_EXPRESSION = 0x16,
    NEGATE_RA_STATE = 0x2d, /* of aarch64 */
    ARGS_SIZE = 0x2e,
    NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

struct run {
    const struct cfi_function *f;
    struct cfi_row *row;
    struct cfi_row initial; /* behind the common instructions */
    struct cfi_row remembered[REMEMBERED_MAX];
    unsigned n_remembered;
    uint64_t location, address;
    bool has_initial;
};

/* Registers that we do not follow (vectors) may have any rule. */
static bool set(struct run *u, uint64_t column, uint8_t rule, int64_t value)
{
    if (column >= UNWIND_REGISTERS)
        return true;
    if (value != (int32_t)value)
        return false;
    u->row->columns[column] = (struct cfi_column){(int32_t)value, rule};
    if (column >= u->row->used)
        u->row->used = (uint8_t)(column + 1);
    return true;
}

static bool restore(struct run *u, uint64_t column)
{
    if (column >= UNWIND_REGISTERS)
        return true;
    return u->has_initial && set(u, column, u->initial.columns[column].rule, u->initial.columns[column].value);
}

static bool set_cfa_register(struct run *u, uint64_t column)
{
    if (column >= UNWIND_REGISTERS)
        return false;
    u->row->cfa_rule = CFI_REGISTER;
    u->row->cfa_register = (uint8_t)column;
    return true;
}

/* Of a register: where the CFA is an expression the number is the expression's place. */
static bool set_cfa_offset(struct run *u, int64_t offset)
{
    if (u->row->cfa_rule != CFI_REGISTER)
        return false;
    u->row->cfa_offset = (int32_t)offset;
    return offset == (int32_t)offset;
}

/* Passes over an expression; its place in the section. */
static int64_t expression(struct run *u, struct cfi_reader *r)
{
    int64_t at = r->p - u->f->section->bytes;
    cfi_skip(r, cfi_uleb(r));
    return at;
}

static bool set_cfa_expression(struct run *u, int64_t at)
{
    u->row->cfa_rule = CFI_VALUE;
    u->row->cfa_offset = (int32_t)at;
    return at == (int32_t)at;
}

static int64_t scaled(const struct run *u, int64_t n)
{
    int64_t v;
    return __builtin_mul_overflow(n, u->f->data_align, &v) ? INT64_MAX : v; /* which no rule takes */
}

static void advance(struct run *u, uint64_t n)
{
    uint64_t by;
    if (__builtin_mul_overflow(n, u->f->code_align, &by) || __builtin_add_overflow(u->location, by, &u->location))
        u->location = UINT64_MAX;
}

/* Long: one row for each instruction. False: it makes no sense. */
static bool step(struct run *u, struct cfi_reader *r, uint8_t op)
{
    uint64_t column;
    switch (op) {
    case NOP:
        return true;
    case ARGS_SIZE:
        cfi_uleb(r);
        return true;
    case ADVANCE1:
    case ADVANCE2:
    case ADVANCE4:
        advance(u, cfi_uint(r, 1u << (op - ADVANCE1)));
        return true;
    case OFFSET_EXTENDED:
        column = cfi_uleb(r);
        return set(u, column, CFI_AT_CFA, scaled(u, (int64_t)cfi_uleb(r)));
    case OFFSET_EXTENDED_SF:
        column = cfi_uleb(r);
        return set(u, column, CFI_AT_CFA, scaled(u, cfi_sleb(r)));
    case NEGATIVE_OFFSET_EXTENDED:
        column = cfi_uleb(r);
        return set(u, column, CFI_AT_CFA, scaled(u, -(int64_t)(cfi_uleb(r) & INT32_MAX)));
    case VAL_OFFSET:
        column = cfi_uleb(r);
        return set(u, column, CFI_CFA_PLUS, scaled(u, (int64_t)cfi_uleb(r)));
    case VAL_OFFSET_SF:
        column = cfi_uleb(r);
        return set(u, column, CFI_CFA_PLUS, scaled(u, cfi_sleb(r)));
    case RESTORE_EXTENDED:
        return restore(u, cfi_uleb(r));
    case UNDEFINED:
        return set(u, cfi_uleb(r), CFI_UNDEFINED, 0);
    case SAME_VALUE:
        return set(u, cfi_uleb(r), CFI_UNCHANGED, 0);
    case REGISTER: {
        column = cfi_uleb(r);
        uint64_t from = cfi_uleb(r);
        return from < UNWIND_REGISTERS && set(u, column, CFI_REGISTER, (int64_t)from);
    }
    case REMEMBER:
        if (u->n_remembered == REMEMBERED_MAX)
            return false;
        u->remembered[u->n_remembered++] = *u->row;
        return true;
    case RESTORE_STATE:
        if (!u->n_remembered)
            return false;
        *u->row = u->remembered[--u->n_remembered];
        return true;
    case DEF_CFA:
        column = cfi_uleb(r);
        return set_cfa_register(u, column) && set_cfa_offset(u, (int64_t)cfi_uleb(r));
    case DEF_CFA_SF:
        column = cfi_uleb(r);
        return set_cfa_register(u, column) && set_cfa_offset(u, scaled(u, cfi_sleb(r)));
    case DEF_CFA_REGISTER:
        return u->row->cfa_rule == CFI_REGISTER && set_cfa_register(u, cfi_uleb(r));
    case DEF_CFA_OFFSET:
        return set_cfa_offset(u, (int64_t)cfi_uleb(r));
    case DEF_CFA_OFFSET_SF:
        return set_cfa_offset(u, scaled(u, cfi_sleb(r)));
    case DEF_CFA_EXPRESSION:
        return set_cfa_expression(u, expression(u, r));
    case EXPRESSION:
        column = cfi_uleb(r);
        return set(u, column, CFI_EXPRESSION, expression(u, r));
    case VAL_EXPRESSION:
        column = cfi_uleb(r);
        return set(u, column, CFI_VALUE, expression(u, r));
    case NEGATE_RA_STATE:
        u->row->signs = !u->row->signs;
        return true;
    default:
        return false; /* SET_LOC as well: no compiler writes it */
    }
}

/* Runs instructions until they speak of what is behind the address. */
static bool run(struct run *u, struct cfi_reader r, int64_t *work)
{
    while (r.p < r.end && u->location <= u->address) {
        const uint8_t *at = r.p;
        uint8_t byte = (uint8_t)cfi_uint(&r, 1), low = byte & (uint8_t)~HIGH;
        bool good = true;
        switch (byte & HIGH) {
        case ADVANCE:
            advance(u, low);
            break;
        case OFFSET:
            good = set(u, low, CFI_AT_CFA, scaled(u, (int64_t)cfi_uleb(&r)));
            break;
        case RESTORE:
            good = restore(u, low);
            break;
        default:
            good = step(u, &r, byte);
        }
        *work -= r.p - at;
        if (!good || r.bad || *work <= 0)
            return false;
    }
    return true;
}

void cfi_row_find(struct cfi_row *row, const struct unwind_file *file, uint64_t address, int64_t *work)
{
    struct cfi_function f;
    struct run u = {.f = &f, .row = row, .address = address};
    *row = (struct cfi_row){0};
    if (!cfi_function_find(&f, file, address))
        return;
    row->return_column = f.return_column;
    row->signal = f.signal;
    row->section = f.section;
    u.location = 0; /* the common instructions hold everywhere: none of them moves on */
    row->damaged = !run(&u, f.common, work);
    u.initial = *row;
    u.has_initial = true;
    u.location = f.start;
    if (!row->damaged)
        row->damaged = !run(&u, f.own, work);
    row->good = !row->damaged && row->cfa_rule != CFI_UNCHANGED;
}
