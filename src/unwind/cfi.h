/* Inside of the unwinder: tables of call frame information (DWARF 5, 6.4; .eh_frame as the LSB describes it). */
#ifndef MERIDIAN_UNWIND_CFI_H
#define MERIDIAN_UNWIND_CFI_H

#include "base/vec.h"
#include "unwind/unwind.h"

/* ---- reading ---- */

/* A place in the bytes of a table; reading beyond the end gives zeros and sets `bad`. */
struct cfi_reader {
    const uint8_t *p, *end;
    bool bad;
};
uint64_t cfi_uint(struct cfi_reader *r, unsigned bytes); /* 1, 2, 4 or 8 */
int64_t cfi_sint(struct cfi_reader *r, unsigned bytes);
uint64_t cfi_uleb(struct cfi_reader *r);
int64_t cfi_sleb(struct cfi_reader *r);
void cfi_skip(struct cfi_reader *r, uint64_t bytes);

/* ---- tables ---- */

/* The bytes of .eh_frame or .debug_frame, and the address of the first one. */
struct cfi_section {
    uint8_t *bytes; /* owned */
    size_t len;
    uint64_t address;
    bool eh;
};

/* Where a function's description begins in its section. */
struct cfi_entry {
    uint64_t start, end;
    uint32_t offset;
};

/* The binary search table of .eh_frame_hdr: rows of two i32, relative to its address. */
struct cfi_search {
    uint8_t *rows; /* owned */
    size_t n;
    uint64_t address;
};

struct cfi_segment {
    uint64_t offset, address, size;
};

struct unwind_file {
    enum unwind_arch arch;
    struct cfi_section eh, debug;
    struct cfi_search search; /* of eh; else `entries` has its functions as well */
    VEC(struct cfi_entry) eh_entries;
    VEC(struct cfi_entry) debug_entries;
    VEC(struct cfi_segment) segments; /* of code */
    struct unwind_file *packed; /* the one in .gnu_debugdata, for functions that have no other tables; NULL: none */
    size_t memory;
};

/* ---- what a function's tables say ---- */

enum cfi_rule {
    CFI_UNCHANGED, /* the caller's value is still in the register */
    CFI_UNDEFINED,
    CFI_AT_CFA,     /* in memory, `value` bytes from the canonical frame address */
    CFI_CFA_PLUS,   /* is that address itself */
    CFI_REGISTER,   /* in register `value` */
    CFI_EXPRESSION, /* in memory, where the expression says: `value` is its place in the section */
    CFI_VALUE,      /* what the expression says */
};

struct cfi_column {
    int32_t value;
    uint8_t rule;
};

/* How the caller of an address is found. */
struct cfi_row {
    const struct cfi_section *section; /* of the file: expressions are in it */
    uint8_t cfa_rule; /* CFI_REGISTER: cfa_register + cfa_offset; CFI_VALUE: the expression at cfa_offset */
    uint8_t cfa_register;
    uint8_t return_column;
    bool signal; /* a frame that the kernel made for a signal handler: its caller was stopped anywhere */
    bool good;   /* false: there are no tables for the address, or they are damaged */
    bool damaged;
    bool signs;   /* aarch64: the return address is signed here */
    uint8_t used; /* columns from 0 on that may have a rule */
    int32_t cfa_offset;
    struct cfi_column columns[UNWIND_REGISTERS];
};

/* A function's description: the instructions that all of its kind share, and its own. */
struct cfi_function {
    uint64_t start, end;
    struct cfi_reader common, own;
    const struct cfi_section *section;
    uint64_t code_align;
    int64_t data_align;
    uint8_t return_column, pointers; /* encoding of addresses: DW_EH_PE_… */
    bool signal, augmented;
};

/* cfi_index.c: reads the description at `offset`; false: it is damaged, or what is there is none. */
bool cfi_function_read(struct cfi_function *f, const struct cfi_section *s, uint64_t offset);

/* Finds the description of the function that `address` of the file is in. */
bool cfi_function_find(struct cfi_function *f, const struct unwind_file *file, uint64_t address);

/* Makes the sorted list of the functions of a section, of at most `max` bytes. */
int cfi_list_functions(struct unwind_file *file, bool debug, size_t max, struct error *err);

/* cfi_row.c: the row of an address. `work` is lowered by the bytes that it took, at 0 the row is damaged. */
void cfi_row_find(struct cfi_row *row, const struct unwind_file *file, uint64_t address, int64_t *work);

/* cfi_expression.c: the value of the expression at `at` of the section, whose stack begins with `first`. `work` is
 * lowered by its steps, at 0 it has no value. */
bool cfi_expression(const struct unwind_task *t, uint64_t stack_at, const struct cfi_section *s, int32_t at,
                    const uint64_t *first, int64_t *work, uint64_t *value);

/* unwind_stack.c: a word of the copy of the stack, which begins at `stack_at`. */
bool unwind_word(const struct unwind_task *t, uint64_t stack_at, uint64_t at, uint64_t *value);

#endif
