/* Sizes as people write them: 512M, 2G, 1048576. */
#ifndef MERIDIAN_SHELL_SIZE_TEXT_H
#define MERIDIAN_SHELL_SIZE_TEXT_H

#include "base/error.h"

#include <stdint.h>

/* `what` begins the text of an error. */
int size_parse(const char *what, const char *text, uint64_t *bytes, struct error *err);

#endif
