/* Lines of Android's log. */
#ifndef MERIDIAN_IMPORTER_TEXT_LOGCAT_H
#define MERIDIAN_IMPORTER_TEXT_LOGCAT_H

#include "importer/clock/file_clock.h"
#include "importer/core/context.h"

enum { LOGCAT_FIRST_YEAR = 1970 /* of dates without a year, when nothing says which */ };

struct logcat;

/* NULL when out of memory. */
struct logcat *logcat_open(struct importer *im, struct file_clock *clock);
void logcat_close(struct logcat *l);

/* How far the local time of the lines that follow is ahead of UTC. */
void logcat_zone(struct logcat *l, int64_t ns);

/* The time that a text begins with: [YYYY-]MM-DD HH:MM:SS.fraction. False when it is none. */
bool logcat_time(struct slice text, int year, int64_t *ns);

/* Reads one line; `year` is that of dates without one. */
void logcat_line(struct logcat *l, struct slice line, int year);

#endif
