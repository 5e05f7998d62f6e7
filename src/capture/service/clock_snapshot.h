/* Clock snapshots as a session keeps and emits them. */
#ifndef MERIDIAN_CAPTURE_SERVICE_CLOCK_SNAPSHOT_H
#define MERIDIAN_CAPTURE_SERVICE_CLOCK_SNAPSHOT_H

#include "capture/common/clock_reading.h"

#include <stdbool.h>
#include <stdint.h>

enum { CLOCK_ID_BOOTTIME = 6 };

uint64_t clock_boot_ns(void);
uint64_t clock_real_ns(void);

/* True when some clock has moved at least 10 ms more or less than BOOTTIME since `before` (TSC: its ticks, as they
 * are). */
bool clock_snapshot_drifted(const struct clock_readings *before, const struct clock_readings *now);

/* Appends the fields of a ClockSnapshot message. */
void clock_snapshot_put(struct pb_writer *w, const struct clock_readings *r, uint32_t primary);

#endif
