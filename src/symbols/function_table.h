/* The functions of a file by address: of an ELF file's table of symbols, of a list that the kernel gives, or of a
 * Breakpad file. */
#ifndef MERIDIAN_SYMBOLS_FUNCTION_TABLE_H
#define MERIDIAN_SYMBOLS_FUNCTION_TABLE_H

#include "symbols/elf_image.h"

struct function {
    uint64_t address;
    uint64_t size; /* 0: not known, it lasts to the next one */
    const char *name;
    uint8_t rank; /* of several names for one address the one with the highest is taken */
};

struct function_table {
    VEC(struct function)
    list;           /* by address, once each */
    uint64_t *ends; /* for each, the end of the longest up to it */
    char *names;    /* what they are views of */
    char *more;     /* likewise; NULL: nothing */
};

/* Reads .symtab, or where that is not there .dynsym and what .gnu_debugdata has beside it: functions that are defined
 * in the file. A .gnu_debugdata that is damaged or too large is passed over; *passed_over (NULL: not wanted) says so.
 */
int function_table_read_elf(struct function_table *t, const struct elf_image *e, bool *passed_over, struct error *err);

/* Reads the text of /proc/kallsyms, which it takes over: functions of the kernel and of its modules. -MRD_EFORMAT when
 * there is none, -MRD_EDENIED when all addresses are hidden. */
int function_table_read_kallsyms(struct function_table *t, char *text, size_t len, struct error *err);

/* The function that an address lies in; NULL when it lies in none. */
const struct function *function_table_find(const struct function_table *t, uint64_t address);

void function_table_free(struct function_table *t);

#endif
