/* ucpu: the number of a CPU that is unique over all machines, its machine's times 4096 plus its number there. In SQL of
 * the library: _ucpu!(machine_id, cpu) and _machine_of_ucpu!(ucpu) (stdlib/prelude/after_eof/cpu_scheduling.sql). */
#ifndef MERIDIAN_STORAGE_UCPU_H
#define MERIDIAN_STORAGE_UCPU_H

#include <stdint.h>

#define CPUS_PER_MACHINE_SQL "4096" /* for statements that are prepared without macros */
enum { CPUS_PER_MACHINE = 4096 };

/* cpu < CPUS_PER_MACHINE. */
static inline uint32_t ucpu_of(uint32_t machine, uint32_t cpu)
{
    return machine * CPUS_PER_MACHINE + (cpu & (CPUS_PER_MACHINE - 1));
}

#endif
