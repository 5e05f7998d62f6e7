/* `profile --heap`: what a command allocates and does not free. */
#ifndef MERIDIAN_CAPTURE_RECORD_PROFILE_HEAP_H
#define MERIDIAN_CAPTURE_RECORD_PROFILE_HEAP_H

#include "capture/record/profile_flags.h"
#include "capture/record/record_run.h"

/* What is wrong with the command line, NULL: nothing. */
const char *profile_heap_check(const struct profile_flags *f, bool command);

/* As record_run() wants it: the data source as text. */
int profile_heap_choose(struct record *r, const void *flags, struct error *err);

/* The table, and what is missing. False: there is no table. */
bool profile_heap_show(const struct record *r, const struct profile_flags *f);

#endif
