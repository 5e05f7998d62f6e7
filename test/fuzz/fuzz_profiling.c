/* Stacks, samples, heaps, and the names that come later. */
#include "fuzz_records.h"

static const uint32_t fields[] = {
    12,  /* interned_data */
    37,  /* profile_packet */
    56,  /* heap_graph */
    66,  /* perf_sample */
    135, /* stack_sample */
    54,  /* streaming_profile_packet */
    44,  /* thread_descriptor */
    59,  /* trace_packet_defaults */
    61,  /* module_symbols */
    64,  /* deobfuscation_mapping */
    68,  /* smaps_packet */
    131, /* art_process_metadata */
    47,  /* packages_list */
    11,  /* track_event */
    60,  /* track_descriptor */
    6,   /* clock_snapshot */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_records(data, size, fields, sizeof fields / sizeof *fields);
}
