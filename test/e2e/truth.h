/* What `truth` calls in its library. */
#ifndef MERIDIAN_TEST_TRUTH_H
#define MERIDIAN_TEST_TRUTH_H

#include <stdint.h>

void truth_in_library(unsigned rounds);
void truth_through_library(unsigned rounds, void (*run)(unsigned rounds));

#endif
