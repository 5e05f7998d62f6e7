/* Fuzzes the reader of the kernel's type descriptions, and the event probes made of them. */
#include "capture/probes/ftrace/packet_events.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char command[PACKET_HEADERS_COMMAND_BYTES];
    struct error err = {0};
    if (packet_headers_command(slice_of(data, size), 0, command, &err) != 0 && !err.text[0])
        __builtin_trap();
    return 0;
}
