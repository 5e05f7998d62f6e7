/* Lines of Android's log. */
#ifndef MERIDIAN_IMPORTER_TEXT_LOGCAT_H
#define MERIDIAN_IMPORTER_TEXT_LOGCAT_H

#include "importer/clock/file_clock.h"
#include "importer/core/context.h"

struct logcat;

/* NULL when out of memory. */
struct logcat *logcat_open(struct importer *im, struct file_clock *clock);
void logcat_close(struct logcat *l);

/* Reads one line; `year` is that of dates without one. */
void logcat_line(struct logcat *l, struct slice line, int year);

#endif
