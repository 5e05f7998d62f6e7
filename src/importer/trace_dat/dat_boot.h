/* How far the kernel has moved since the boot in which a buffer was written: option LAST_BOOT_INFO. */
#ifndef MERIDIAN_IMPORTER_TRACE_DAT_DAT_BOOT_H
#define MERIDIAN_IMPORTER_TRACE_DAT_DAT_BOOT_H

#include "importer/trace_dat/dat_file.h"

/* What makes an address in the events of a buffer one of the file's symbols, when added; 0: they are those already, or
 * the file does not tell. */
uint64_t dat_boot_shift(const struct dat_file *f, struct slice buffer);

#endif
