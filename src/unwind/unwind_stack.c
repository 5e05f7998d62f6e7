/* Walks from frame to frame: by the rows of unwind tables, and by frame pointers where there are none. */
#include "unwind/cfi.h"

#include "wire/fields.h"

enum { CACHE_ROWS = 8192 };
enum {
    WORK_MAX = 1 << 20
}; /* bytes of instructions and steps of expressions for one stack; a function has some dozen */

/* DWARF's numbers. */
struct arch {
    uint8_t fp, sp, pc, link; /* link: NO_LINK where calls put the return address on the stack */
    uint8_t step;             /* back from a return address into the call */
    uint8_t fp_align;
};
enum { NO_LINK = 0xff };
static const struct arch archs[] = {
    [UNWIND_X86_64] = {.fp = 6, .sp = 7, .pc = 16, .link = NO_LINK, .step = 1, .fp_align = 8},
    [UNWIND_AARCH64] = {.fp = 29, .sp = 31, .pc = 32, .link = 30, .step = 4, .fp_align = 8},
};

/* perf's registers of x86_64 (AX BX CX DX SI DI BP SP IP FLAGS CS SS DS ES FS GS R8 …) by DWARF number. */
enum { NOT_GENERAL = 0xff };
static const uint8_t x86_columns[] = {
    0,           3,           2,           1,           4, 5, 6,  7,  16, NOT_GENERAL, NOT_GENERAL, NOT_GENERAL,
    NOT_GENERAL, NOT_GENERAL, NOT_GENERAL, NOT_GENERAL, 8, 9, 10, 11, 12, 13,          14,          15};

/* Addresses of user space have so many bits on aarch64; those above are the signature of a return address. */
enum { AARCH64_ADDRESS_BITS = 48 };

struct unwind_cache {
    struct cached {
        const struct unwind_file *file;
        uint64_t address;
        struct cfi_row row;
    } rows[CACHE_ROWS];
};

struct walk {
    struct unwind_cache *cache;
    struct unwind_task *t;
    const struct arch *arch;
    uint64_t stack_at;
    int64_t work;
};

void unwind_set_registers(struct unwind_task *t, uint64_t mask, const uint8_t *values)
{
    t->known = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
        if (!(mask >> bit & 1))
            continue;
        uint64_t v;
        memcpy(&v, values, sizeof v);
        values += sizeof v;
        unsigned column = t->arch != UNWIND_X86_64 ? bit : bit < sizeof x86_columns ? x86_columns[bit] : NOT_GENERAL;
        if (column >= UNWIND_REGISTERS)
            continue;
        t->regs[column] = v;
        t->known |= UINT64_C(1) << column;
    }
}

uint64_t unwind_frame_code(const struct unwind_task *t, const struct unwind_frame *f)
{
    uint8_t step = archs[t->arch].step;
    return f->exact || f->pc < step ? f->pc : f->pc - step;
}

uint32_t unwind_end_error(enum unwind_end end)
{
    static const uint8_t errors[UNWIND_ENDS] = {
        [UNWIND_NO_MAP] = PROFILING_STACK_UNWIND_ERROR_INVALID_MAP,
        [UNWIND_NO_TABLES] = PROFILING_STACK_UNWIND_ERROR_UNWIND_INFO,
        [UNWIND_BAD_TABLES] = PROFILING_STACK_UNWIND_ERROR_UNWIND_INFO,
        [UNWIND_OUTSIDE] = PROFILING_STACK_UNWIND_ERROR_MEMORY_INVALID,
        [UNWIND_REPEATS] = PROFILING_STACK_UNWIND_ERROR_REPEATED_FRAME,
        [UNWIND_TOO_DEEP] = PROFILING_STACK_UNWIND_ERROR_MAX_FRAMES_EXCEEDED,
        [UNWIND_UNSUPPORTED] = PROFILING_STACK_UNWIND_ERROR_UNSUPPORTED,
    };
    return errors[end];
}

/* ---- cache ---- */

struct unwind_cache *unwind_cache_new(void)
{
    return mem_zalloc(sizeof(struct unwind_cache));
}

void unwind_cache_clear(struct unwind_cache *c)
{
    for (size_t i = 0; i < CACHE_ROWS; i++)
        c->rows[i].file = NULL;
}

void unwind_cache_free(struct unwind_cache *c)
{
    mem_free(c);
}

static const struct cfi_row *row_of(struct walk *w, const struct unwind_file *file, uint64_t address)
{
    uint64_t hash = (address ^ (uint64_t)(uintptr_t)file >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    struct cached *c = &w->cache->rows[hash >> 51];
    _Static_assert(CACHE_ROWS == 1 << 13, "bits of the hash");
    if (c->file == file && c->address == address)
        return &c->row;
    int64_t before = w->work;
    cfi_row_find(&c->row, file, address, &w->work);
    c->address = address;
    c->file =
        before == WORK_MAX || w->work > 0 ? file : NULL; /* else the damage may be ours: too much work before it */
    return &c->row;
}

/* ---- steps ---- */

bool unwind_word(const struct unwind_task *t, uint64_t stack_at, uint64_t at, uint64_t *value)
{
    uint64_t offset = at - stack_at;
    if (offset > t->stack.len || t->stack.len - offset < sizeof *value)
        return false;
    memcpy(value, t->stack.p + offset, sizeof *value);
    return true;
}

static bool is_known(const struct unwind_task *t, unsigned column)
{
    return t->known >> column & 1;
}

/* A value of the caller; false: nobody knows it. */
static bool column_value(struct walk *w, const struct cfi_row *row, const struct cfi_section *s, uint64_t cfa,
                         unsigned i, uint64_t *v)
{
    const struct unwind_task *t = w->t;
    const struct cfi_column *c = &row->columns[i];
    switch (c->rule) {
    case CFI_UNCHANGED:
        *v = t->regs[i];
        return is_known(t, i);
    case CFI_AT_CFA:
        return unwind_word(t, w->stack_at, cfa + (uint64_t)(int64_t)c->value, v);
    case CFI_CFA_PLUS:
        *v = cfa + (uint64_t)(int64_t)c->value;
        return true;
    case CFI_REGISTER:
        *v = t->regs[c->value];
        return is_known(t, (unsigned)c->value);
    case CFI_EXPRESSION: {
        uint64_t at;
        return cfi_expression(t, w->stack_at, s, c->value, &cfa, &w->work, &at) && unwind_word(t, w->stack_at, at, v);
    }
    case CFI_VALUE:
        return cfi_expression(t, w->stack_at, s, c->value, &cfa, &w->work, v);
    default:
        return false;
    }
}

/* Makes the registers those of the caller. UNWIND_ENDS: there is one. */
static enum unwind_end by_row(struct walk *w, const struct cfi_row *row)
{
    struct unwind_task *t = w->t;
    const struct cfi_section *s = row->section;
    uint64_t cfa, pc, values[UNWIND_REGISTERS], known = t->known;
    unsigned link = row->return_column;
    if (row->cfa_rule == CFI_REGISTER) {
        cfa = t->regs[row->cfa_register] + (uint64_t)(int64_t)row->cfa_offset;
        if (!is_known(t, row->cfa_register))
            return UNWIND_OUTSIDE;
    } else if (!cfi_expression(t, w->stack_at, s, row->cfa_offset, NULL, &w->work, &cfa)) {
        return UNWIND_BAD_TABLES;
    }
    if (row->columns[link].rule == CFI_UNDEFINED)
        return UNWIND_WHOLE;
    if (!column_value(w, row, s, cfa, link, &pc))
        return UNWIND_OUTSIDE;
    for (unsigned i = 0; i < row->used; i++) {
        values[i] = t->regs[i];
        if (row->columns[i].rule == CFI_UNCHANGED)
            continue;
        known &= ~(UINT64_C(1) << i);
        if (column_value(w, row, s, cfa, i, &values[i]))
            known |= UINT64_C(1) << i;
    }
    bool has_sp = row->columns[w->arch->sp].rule != CFI_UNCHANGED;
    memcpy(t->regs, values, row->used * sizeof *values);
    t->known = known;
    if (!has_sp) { /* a signal's frame says where the stack was */
        t->regs[w->arch->sp] = cfa;
        t->known |= UINT64_C(1) << w->arch->sp;
    }
    if (w->t->arch == UNWIND_AARCH64)
        pc &= (UINT64_C(1) << AARCH64_ADDRESS_BITS) - 1;
    t->regs[w->arch->pc] = pc;
    return pc ? UNWIND_ENDS : UNWIND_WHOLE;
}

static bool is_code(const struct walk *w, uint64_t pc)
{
    struct unwind_place place;
    return pc && w->t->find(w->t->ctx, pc, &place);
}

static void go_to(struct walk *w, uint64_t pc, uint64_t sp, uint64_t fp)
{
    w->t->regs[w->arch->pc] = pc;
    w->t->regs[w->arch->sp] = sp;
    w->t->regs[w->arch->fp] = fp;
}

/* The stack is as the kernel gives it to a new program: a count of arguments, pointers to them, zero. What runs there
 * was called by nobody; the code at the entry of a program has no tables in many. */
static bool is_first_stack(const struct walk *w)
{
    uint64_t sp = w->t->regs[w->arch->sp], count, argument, end;
    return sp % 16 == 0 && unwind_word(w->t, w->stack_at, sp, &count) && count > 0 && count < w->t->stack.len / 8 &&
           unwind_word(w->t, w->stack_at, sp + 8, &argument) && argument > sp &&
           unwind_word(w->t, w->stack_at, sp + 8 * (count + 1), &end) && end == 0;
}

/* Code without tables: of a JIT compiler, of an assembler. A frame pointer is believed when what it points to looks
 * like one and a return address; at the very top also the return address alone. */
static enum unwind_end by_pointer(struct walk *w, bool innermost)
{
    struct unwind_task *t = w->t;
    uint64_t fp = t->regs[w->arch->fp], sp = t->regs[w->arch->sp], next, pc;
    if (is_known(t, w->arch->fp) && fp >= sp && fp % w->arch->fp_align == 0 && unwind_word(t, w->stack_at, fp, &next) &&
        unwind_word(t, w->stack_at, fp + 8, &pc) && (next > fp || !next) && is_code(w, pc)) {
        go_to(w, pc, fp + 16, next);
        return UNWIND_ENDS;
    }
    if (is_first_stack(w))
        return UNWIND_WHOLE;
    if (!innermost)
        return UNWIND_NO_TABLES;
    if (w->arch->link != NO_LINK && is_known(t, w->arch->link) && is_code(w, t->regs[w->arch->link])) {
        go_to(w, t->regs[w->arch->link], sp, fp);
        return UNWIND_ENDS;
    }
    if (w->arch->link == NO_LINK && unwind_word(t, w->stack_at, sp, &pc) && is_code(w, pc)) {
        go_to(w, pc, sp + 8, fp);
        return UNWIND_ENDS;
    }
    return UNWIND_NO_TABLES;
}

/* From the frame to its caller; *signal: the frame is one that the kernel made. */
static enum unwind_end step(struct walk *w, const struct unwind_frame *f, bool innermost, bool *signal)
{
    struct unwind_task *t = w->t;
    struct unwind_place place;
    uint64_t code = unwind_frame_code(t, f);
    *signal = false;
    if (!t->find(t->ctx, code, &place)) {
        /* a call of an address where nothing is: who called it is on top of the stack */
        return innermost && by_pointer(w, true) == UNWIND_ENDS ? UNWIND_ENDS : UNWIND_NO_MAP;
    }
    if (!place.file || place.file->arch != t->arch)
        return by_pointer(w, innermost);
    const struct cfi_row *row = row_of(w, place.file, code - place.bias);
    if (!row->good && !row->damaged && !f->exact) /* a signal's trampoline is returned to at its first byte */
        row = row_of(w, place.file, f->pc - place.bias);
    if (row->damaged)
        return UNWIND_BAD_TABLES;
    if (!row->good)
        return by_pointer(w, innermost);
    *signal = row->signal;
    return by_row(w, row);
}

size_t unwind_stack(struct unwind_cache *cache, struct unwind_task *t, struct unwind_frame *frames, size_t max,
                    enum unwind_end *end)
{
    struct walk w = {cache, t, &archs[t->arch], 0, WORK_MAX};
    size_t n = 0;
    *end = UNWIND_UNSUPPORTED;
    if (t->arch == UNWIND_NO_ARCH || !is_known(t, w.arch->pc) || !is_known(t, w.arch->sp))
        return 0;
    w.stack_at = t->regs[w.arch->sp];
    for (bool exact = true; n < max;) {
        frames[n] = (struct unwind_frame){t->regs[w.arch->pc], exact};
        uint64_t sp = t->regs[w.arch->sp], pc = frames[n].pc;
        *end = step(&w, &frames[n], n == 0, &exact);
        n++;
        if (*end != UNWIND_ENDS)
            return n;
        if (t->regs[w.arch->sp] == sp && t->regs[w.arch->pc] == pc) {
            *end = UNWIND_REPEATS;
            return n;
        }
    }
    *end = UNWIND_TOO_DEEP;
    return n;
}
