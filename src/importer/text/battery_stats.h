/* Lines of Android's battery statistics in the form for check-in: the history of states and events. */
#ifndef MERIDIAN_IMPORTER_TEXT_BATTERY_STATS_H
#define MERIDIAN_IMPORTER_TEXT_BATTERY_STATS_H

#include "importer/clock/file_clock.h"
#include "importer/core/context.h"

struct battery_stats;

/* NULL when out of memory. */
struct battery_stats *battery_stats_open(struct importer *im, struct file_clock *clock);
void battery_stats_close(struct battery_stats *b);

/* Whether a line is the first one: "9,0,i,vers,…". */
bool battery_stats_begins(struct slice line);
/* Reads one line; those that are no history are passed over. */
void battery_stats_line(struct battery_stats *b, struct slice line);

#endif
