/* Where a recorded trace goes: a file or standard output, packet by packet as its slices come from the service. */
#ifndef MERIDIAN_CAPTURE_CLIENT_TRACE_OUTPUT_H
#define MERIDIAN_CAPTURE_CLIENT_TRACE_OUTPUT_H

#include "base/error.h"
#include "wire/pb_writer.h"

#include <stdbool.h>
#include <stdint.h>

struct trace_output {
    int fd;          /* -1: none */
    char path[4096]; /* empty: standard output */
    uint64_t written;
    struct pb_writer packet; /* slices of a packet that is not whole */
    struct pb_writer out;
};

/* `path` "-": standard output. A file is made anew, or not at all when it exists and `no_clobber`. */
int trace_output_open(struct trace_output *o, const char *path, bool no_clobber, struct error *err);

/* Writes the whole packets of a ReadBuffersResponse. */
int trace_output_add(struct trace_output *o, struct slice response, struct error *err);

/* Says how many bytes went where; a file that nothing came for is removed. `service_wrote`: the service had the
 * descriptor and wrote itself. Frees what the output holds. */
void trace_output_close(struct trace_output *o, bool service_wrote, bool whole);

#endif
