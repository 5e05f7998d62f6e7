/* elfutils' libdw, loaded when it is first needed: most runs of a program need no symbols, and it would take a fifth of
 * the time that each one starts in. */
#ifndef MERIDIAN_SYMBOLS_LIBDW_H
#define MERIDIAN_SYMBOLS_LIBDW_H

#include "base/error.h"

#include <elfutils/libdw.h>

/* What is used of it. */
#define LIBDW_FUNCTIONS(X)                                                                                             \
    X(elf_version)                                                                                                     \
    X(elf_begin)                                                                                                       \
    X(elf_end)                                                                                                         \
    X(dwarf_begin_elf)                                                                                                 \
    X(dwarf_end)                                                                                                       \
    X(dwarf_setalt)                                                                                                    \
    X(dwarf_get_units)                                                                                                 \
    X(dwarf_ranges)                                                                                                    \
    X(dwarf_child)                                                                                                     \
    X(dwarf_siblingof)                                                                                                 \
    X(dwarf_tag)                                                                                                       \
    X(dwarf_attr)                                                                                                      \
    X(dwarf_attr_integrate)                                                                                            \
    X(dwarf_formstring)                                                                                                \
    X(dwarf_formudata)                                                                                                 \
    X(dwarf_getsrc_die)                                                                                                \
    X(dwarf_getsrcfiles)                                                                                               \
    X(dwarf_filesrc)                                                                                                   \
    X(dwarf_linesrc)                                                                                                   \
    X(dwarf_lineno)

struct libdw {
#define X(name) __typeof__(name) *name;
    LIBDW_FUNCTIONS(X)
#undef X
};

/* -MRD_ENOTFOUND when this machine does not have it. */
int libdw_open(struct libdw *l, struct error *err);

#endif
