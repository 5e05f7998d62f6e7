/* Splits bundles of a mapped trace in a thread of its own, ahead of the reader: about every second one, so that the two
 * meet at the end. What is done with a bundle, and when, does not depend on who has split it. */
#ifndef MERIDIAN_IMPORTER_FTRACE_BUNDLES_AHEAD_H
#define MERIDIAN_IMPORTER_FTRACE_BUNDLES_AHEAD_H

#include "importer/core/packet.h"
#include "importer/ftrace/bundle_split.h"

/* The bundle of a packet, split, until bundles_ahead_drop(); NULL when out of memory. The first one of a mapped file
 * may start the thread. */
struct bundle_split *bundles_ahead_take(const struct packet *p);

/* The blocks that are not handed on are freed. */
void bundles_ahead_drop(struct importer *im, struct bundle_split *s);

#endif
