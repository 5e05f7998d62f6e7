/* The clock source of this machine's kernel: the counter that all of its clocks are made from. When the kernel takes
 * another one (a TSC that was calibrated anew some seconds after the boot, or that turned out to be unstable) the rates
 * of all clocks step, MONOTONIC_RAW's too, and some time may be lost. */
#ifndef MERIDIAN_CAPTURE_COMMON_CLOCK_SOURCE_H
#define MERIDIAN_CAPTURE_COMMON_CLOCK_SOURCE_H

#include <stdbool.h>

enum { CLOCK_SOURCE_NAME_MAX = 32 };

struct clock_source {
    int fd;                           /* of the file in sysfs; -1: this machine has none */
    char name[CLOCK_SOURCE_NAME_MAX]; /* as last read; "" unknown */
};

void clock_source_open(struct clock_source *s);
void clock_source_close(struct clock_source *s);

/* Reads the name again; false when it is another one than before. */
bool clock_source_read(struct clock_source *s);

#endif
