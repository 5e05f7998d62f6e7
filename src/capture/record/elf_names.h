/* Names of the functions of an ELF file, out of its symbol table. */
#ifndef MERIDIAN_CAPTURE_RECORD_ELF_NAMES_H
#define MERIDIAN_CAPTURE_RECORD_ELF_NAMES_H

#include "base/slice.h"
#include "base/vec.h"

struct elf_name {
    uint64_t start, size;
    uint32_t text; /* offset into the table of strings */
};

struct elf_names {
    VEC(struct elf_name)
    list;                 /* in order of their addresses */
    struct slice strings; /* of the file, which must stay */
};

/* Reads .symtab, or .dynsym when there is none, of a 64-bit file, of which nothing is believed. False: out of memory.
 */
bool elf_names_read(struct elf_names *n, struct slice file);

/* The function at an address of the file's own addresses; empty when there is none. */
struct slice elf_names_find(const struct elf_names *n, uint64_t address);
void elf_names_free(struct elf_names *n);

#endif
