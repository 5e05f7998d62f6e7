/* Shared by the two models of remote clocks; for remote_*.c only. */
#ifndef MERIDIAN_IMPORTER_CLOCK_REMOTE_PRIVATE_H
#define MERIDIAN_IMPORTER_CLOCK_REMOTE_PRIVATE_H

#include "importer/clock/remote_sync.h"

/* The reading of a clock in one side of a round, NULL when it is not there. */
const int64_t *round_value(const struct clock_reading *r, size_t n, uint32_t clock);

/* The constant offset: edges and rows of clock_snapshot for the rounds of one packet. */
void remote_sync_compatible(struct importer *im, uint32_t machine, const struct clock_rounds *rounds);

#endif
