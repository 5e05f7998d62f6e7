/* Track events, the interned data and descriptors that they need. */
#include "fuzz_records.h"

static const uint32_t fields[] = {
    11, /* track_event */
    12, /* interned_data */
    60, /* track_descriptor */
    59, /* trace_packet_defaults */
    72, /* extension_descriptor */
    44, /* thread_descriptor */
    82, /* translation_table */
    2,  /* process_tree */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_records(data, size, fields, sizeof fields / sizeof *fields);
}
