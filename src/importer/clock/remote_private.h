/* Shared by the two models of remote clocks; for remote_*.c only. */
#ifndef MERIDIAN_IMPORTER_CLOCK_REMOTE_PRIVATE_H
#define MERIDIAN_IMPORTER_CLOCK_REMOTE_PRIVATE_H

#include "importer/clock/remote_sync.h"

/* The reading of a clock in one side of a round, NULL when it is not there. */
const int64_t *round_value(const struct clock_reading *r, size_t n, uint32_t clock);

/* The constant offset: edges and rows of clock_snapshot for the rounds of one packet. `remote` and `host` say whose
 * clocks these are (their id is ignored). */
void remote_sync_compatible(struct importer *im, struct clock_id remote, struct clock_id host,
                            const struct clock_rounds *rounds);

#endif
