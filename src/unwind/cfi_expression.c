/* Computes DWARF expressions of call frame information: those of PLTs, signal frames and aligned stacks. */
#include "unwind/cfi.h"

enum { STACK_MAX = 64, STEPS_MAX = 1000 }; /* of one expression; jumps may go back */

/* DW_OP_… */
enum {
    OP_ADDR = 0x03,
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08, /* 1u 1s 2u 2s 4u 4s 8u 8s */
    OP_CONST8S = 0x0f,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_DUP = 0x12,
    OP_DROP = 0x13,
    OP_OVER = 0x14,
    OP_PICK = 0x15,
    OP_SWAP = 0x16,
    OP_ROT = 0x17,
    OP_ABS = 0x19,
    OP_AND = 0x1a,
    OP_DIV = 0x1b,
    OP_MINUS = 0x1c,
    OP_MOD = 0x1d,
    OP_MUL = 0x1e,
    OP_NEG = 0x1f,
    OP_NOT = 0x20,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_SHR = 0x25,
    OP_SHRA = 0x26,
    OP_XOR = 0x27,
    OP_BRA = 0x28,
    OP_EQ = 0x29, /* eq ge gt le lt ne */
    OP_NE = 0x2e,
    OP_SKIP = 0x2f,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_DEREF_SIZE = 0x94,
    OP_NOP = 0x96,
};

struct machine {
    const struct unwind_task *t;
    uint64_t stack_at;
    struct cfi_reader r;
    const uint8_t *begin;
    uint64_t stack[STACK_MAX];
    unsigned n;
};

static bool push(struct machine *m, uint64_t v)
{
    if (m->n == STACK_MAX)
        return false;
    m->stack[m->n++] = v;
    return true;
}

static bool push_register(struct machine *m, uint64_t number, int64_t offset)
{
    return number < UNWIND_REGISTERS && m->t->known >> number & 1 && push(m, m->t->regs[number] + (uint64_t)offset);
}

static bool jump(struct machine *m, int64_t by)
{
    if (by < m->begin - m->r.p || by > m->r.end - m->r.p)
        return false;
    m->r.p += by;
    return true;
}

/* Operators of two values, the one on top second. False: there is no result. */
static bool binary(uint8_t op, uint64_t a, uint64_t b, uint64_t *v)
{
    int64_t x = (int64_t)a, y = (int64_t)b;
    switch (op) {
    case OP_AND:
        *v = a & b;
        return true;
    case OP_OR:
        *v = a | b;
        return true;
    case OP_XOR:
        *v = a ^ b;
        return true;
    case OP_PLUS:
        *v = a + b;
        return true;
    case OP_MINUS:
        *v = a - b;
        return true;
    case OP_MUL:
        *v = a * b;
        return true;
    case OP_DIV:
        *v = y == -1 ? 0 - a : y ? (uint64_t)(x / y) : 0;
        return y != 0;
    case OP_MOD:
        *v = b ? a % b : 0;
        return b != 0;
    case OP_SHL:
        *v = b < 64 ? a << b : 0;
        return true;
    case OP_SHR:
        *v = b < 64 ? a >> b : 0;
        return true;
    case OP_SHRA:
        *v = (uint64_t)(x >> (b < 63 ? b : 63));
        return true;
    default: {
        const bool results[] = {x == y, x >= y, x > y, x <= y, x < y, x != y};
        *v = op >= OP_EQ && op <= OP_NE && results[op - OP_EQ];
        return op >= OP_EQ && op <= OP_NE;
    }
    }
}

static bool is_binary(uint8_t op)
{
    return (op >= OP_AND && op <= OP_MUL && op != OP_NEG) || (op >= OP_OR && op <= OP_XOR && op != OP_PLUS_UCONST) ||
           (op >= OP_EQ && op <= OP_NE);
}

/* Operators that need nothing on the stack, but for the conditional jump. */
static bool produce(struct machine *m, uint8_t op, bool *known)
{
    uint64_t v;
    *known = true;
    if (op >= OP_LIT0 && op <= OP_LIT31)
        return push(m, (uint64_t)(op - OP_LIT0));
    if (op >= OP_BREG0 && op <= OP_BREG31)
        return push_register(m, (uint64_t)(op - OP_BREG0), cfi_sleb(&m->r));
    if (op >= OP_CONST1U && op <= OP_CONST8S) {
        unsigned bytes = 1u << ((op - OP_CONST1U) / 2);
        return push(m, op & 1 ? (uint64_t)cfi_sint(&m->r, bytes) : cfi_uint(&m->r, bytes));
    }
    switch (op) {
    case OP_ADDR:
        return push(m, cfi_uint(&m->r, 8));
    case OP_CONSTU:
        return push(m, cfi_uleb(&m->r));
    case OP_CONSTS:
        return push(m, (uint64_t)cfi_sleb(&m->r));
    case OP_BREGX:
        v = cfi_uleb(&m->r);
        return push_register(m, v, cfi_sleb(&m->r));
    case OP_SKIP:
        return jump(m, cfi_sint(&m->r, 2));
    case OP_NOP:
        return true;
    }
    *known = false;
    return false;
}

static bool deref(struct machine *m, uint64_t *top, unsigned bytes)
{
    uint64_t v;
    if (bytes == 0 || bytes > 8 || !unwind_word(m->t, m->stack_at, *top, &v))
        return false;
    *top = bytes == 8 ? v : v & ((UINT64_C(1) << 8 * bytes) - 1);
    return true;
}

/* Operators of the values on the stack, of which there is one at least. */
static bool consume(struct machine *m, uint8_t op)
{
    uint64_t *top = &m->stack[m->n - 1], v;
    switch (op) {
    case OP_DEREF:
        return deref(m, top, 8);
    case OP_DEREF_SIZE:
        return deref(m, top, (unsigned)cfi_uint(&m->r, 1));
    case OP_DUP:
        return push(m, *top);
    case OP_DROP:
        m->n--;
        return true;
    case OP_OVER:
        return m->n >= 2 && push(m, top[-1]);
    case OP_PICK:
        v = cfi_uint(&m->r, 1);
        return v < m->n && push(m, m->stack[m->n - 1 - v]);
    case OP_SWAP:
        if (m->n < 2)
            return false;
        v = top[0], top[0] = top[-1], top[-1] = v;
        return true;
    case OP_ROT:
        if (m->n < 3)
            return false;
        v = top[0], top[0] = top[-1], top[-1] = top[-2], top[-2] = v;
        return true;
    case OP_ABS:
        *top = (int64_t)*top < 0 ? 0 - *top : *top;
        return true;
    case OP_NEG:
        *top = 0 - *top;
        return true;
    case OP_NOT:
        *top = ~*top;
        return true;
    case OP_PLUS_UCONST:
        *top += cfi_uleb(&m->r);
        return true;
    case OP_BRA: {
        int64_t by = cfi_sint(&m->r, 2);
        m->n--;
        return *top == 0 || jump(m, by);
    }
    }
    if (!is_binary(op) || m->n < 2)
        return false;
    m->n--;
    return binary(op, top[-1], top[0], &top[-1]);
}

bool cfi_expression(const struct unwind_task *t, uint64_t stack_at, const struct cfi_section *s, int32_t at,
                    const uint64_t *first, int64_t *work, uint64_t *value)
{
    struct machine m = {.t = t, .stack_at = stack_at, .r = {s->bytes + at, s->bytes + s->len, false}};
    uint64_t len = cfi_uleb(&m.r);
    if (m.r.bad || len > (uint64_t)(m.r.end - m.r.p))
        return false;
    m.begin = m.r.p;
    m.r.end = m.r.p + len;
    if (first)
        push(&m, *first);
    for (int steps = 0; m.r.p < m.r.end; steps++) {
        uint8_t op = (uint8_t)cfi_uint(&m.r, 1);
        bool known, good = produce(&m, op, &known);
        if (!known)
            good = m.n > 0 && consume(&m, op);
        if (!good || m.r.bad || steps == STEPS_MAX || --*work <= 0)
            return false;
    }
    *value = m.n ? m.stack[m.n - 1] : 0;
    return m.n > 0;
}
