/* Symbols that some distributions leave in stripped files ("MiniDebugInfo"): an ELF file, packed by xz, in
 * .gnu_debugdata. */
#ifndef MERIDIAN_SYMBOLS_MINI_DEBUG_H
#define MERIDIAN_SYMBOLS_MINI_DEBUG_H

#include "symbols/elf_image.h"

enum { MINI_DEBUG_MAX_BYTES = 256 << 20 };

/* Unpacks it into mem_alloc()ed memory. -MRD_EFORMAT when it is damaged, -MRD_ELIMIT when it has more than
 * MINI_DEBUG_MAX_BYTES or unpacking takes more memory than that. */
int mini_debug_unpack(const struct elf_image *e, uint8_t **bytes, size_t *len, struct error *err);

#endif
