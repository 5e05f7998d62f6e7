/* The stream files of a load in the order in which they are read.
 *
 * A stream may be in several files: LTTng begins new ones when a session is rotated, and when they get large. Its
 * packets are numbered through all of them, and what it has discarded is counted through all of them: they are read one
 * after the other, by their times, and each goes on where the one before has ended. They are of one stream when the
 * traces have the same identity, and the packets' headers name the same class and instance. */
#ifndef MERIDIAN_IMPORTER_CTF_CTF_ORDER_H
#define MERIDIAN_IMPORTER_CTF_CTF_ORDER_H

#include "importer/ctf/ctf_trace.h"

struct ctf_stream_file {
    uint32_t trace, stream; /* indices */
    uint32_t same;          /* all files of one stream have the same: the index of the first in `counters` */
    bool timeless;          /* its first event has no time */
    int64_t first_ns;       /* of its first event */
};

struct ctf_order {
    VEC(struct ctf_stream_file)
    files;
    VEC(struct ctf_counters)
    counters;
};

/* Those without a time are last: the others say where the timeline begins. -MRD_ENOMEM. To be freed in any case. */
int ctf_order_make(struct ctf_order *o, const ctf_traces *traces);
void ctf_order_free(struct ctf_order *o);

#endif
