/* What the trace says of an ELF file that code ran in: its build id, and how its addresses lie. */
#ifndef MERIDIAN_CAPTURE_COMMON_PERF_ELF_H
#define MERIDIAN_CAPTURE_COMMON_PERF_ELF_H

#include <stdbool.h>
#include <stdint.h>

enum { PERF_BUILD_ID_BYTES = 64 };

struct perf_elf {
    uint8_t build_id[PERF_BUILD_ID_BYTES];
    uint32_t build_id_len; /* 0: none */
    uint64_t load_bias;    /* p_vaddr - p_offset of the first executable segment */
};

/* Reads the headers of an open file, which may be anybody's: 32 or 64 bits, of this machine's byte order. False: it is
 * no ELF file; what can be told is told. */
bool perf_elf_read(struct perf_elf *e, int fd);

#endif
