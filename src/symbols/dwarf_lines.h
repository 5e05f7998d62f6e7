/* Lines of source code and inlined functions at the addresses of a file, by its DWARF.
 *
 * libdw reads the format. It is no library for files of strangers: only the worker (symbol_worker.h) calls this, with bounds
 * on its time and memory and without the system calls that could do harm. */
#ifndef MERIDIAN_SYMBOLS_DWARF_LINES_H
#define MERIDIAN_SYMBOLS_DWARF_LINES_H

#include "symbols/elf_image.h"
#include "symbols/libdw.h"

enum { DWARF_MAX_INLINED = 63 }; /* what the importer takes, less the function itself */

struct dwarf_lines;

/* A function at an address. The texts are the file's. */
struct code_line {
    const char *function; /* as the linker knows it, or as it stands in the source; NULL: not known */
    const char *file;     /* NULL: not known */
    const char *dir;      /* that a relative `file` is below; NULL: not known */
    uint32_t line;        /* 0: not known */
};

/* `alt_fd`: the file of the image's altlink, or -1. `lowest`: addresses of ranges below it are of code that the linker
 * has left out. */
int dwarf_lines_open(struct dwarf_lines **out, const struct libdw *l, int fd, int alt_fd, uint64_t lowest,
                     struct error *err);

/* What is at an address, the innermost inlined function first, the one that has code of its own last; their number, 0
 * when no DWARF is about it. Addresses in rising order are fastest. */
size_t dwarf_lines_at(struct dwarf_lines *d, uint64_t address, struct code_line out[DWARF_MAX_INLINED + 1]);

void dwarf_lines_close(struct dwarf_lines *d);

#endif
