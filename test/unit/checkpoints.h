/* Included before each file of the unit tests.
 *
 * Check notes the place of every assertion that holds, by a write to a file, to tell where a test died that says
 * nothing. Ours die with a sanitizer's report or a message, and assert millions of times: noting took most of the time
 * of some suites. */
#ifndef MERIDIAN_TEST_UNIT_CHECKPOINTS_H
#define MERIDIAN_TEST_UNIT_CHECKPOINTS_H

#include <check.h>

#define _mark_point(file, line) ((void)0)

#endif
