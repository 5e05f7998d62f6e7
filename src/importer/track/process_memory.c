/* What the memory counters of processes are said to count. */
#include "importer/track/process_memory.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *key, *description;
} counters[] = {
#define MEMORY(field, key, description) {key, description},
#define SMAPS(field, key, description)  /* events tell none of them */
#include "importer/track/process_memory.def"
#undef MEMORY
#undef SMAPS
};

const char *process_memory_description(const char *key)
{
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        if (strcmp(counters[i].key, key) == 0)
            return counters[i].description;
    return NULL;
}
