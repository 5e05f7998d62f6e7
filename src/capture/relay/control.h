/* The relay's own connection to the host: tells what machine this is, and compares the clocks again and again.
 *
 * A round is a PING and an UPDATE: two trips to the host and one back, each a one-way message between the
 * two clocks. Rounds come in bursts, because only the quickest of several says much about the offset; bursts are
 * frequent at first, so that a short recording is synchronised, and then every few seconds, so that drift can be
 * followed. */
#ifndef MERIDIAN_CAPTURE_RELAY_CONTROL_H
#define MERIDIAN_CAPTURE_RELAY_CONTROL_H

#include "capture/relay/uplink.h"

#include <stdint.h>
#include <uv.h>

struct relay_control;

struct relay_control_options {
    struct relay_uplink host;
    const char *machine_id_hint;
    const char *machine_name;
};

/* Connects, and connects again with growing delay (1 s to 30 s) when the host is away. The options' texts must outlive
 * it. */
int relay_control_open(struct relay_control **out, uv_loop_t *loop, const struct relay_control_options *options,
                       struct error *err);
/* Bytes of producers that were lost with a link: the host is told with the next request. */
void relay_control_add_lost(struct relay_control *c, uint64_t bytes);

void relay_control_close(struct relay_control *c); /* run the loop afterwards to free it; NULL is fine */

#endif
