/* What queries ask about clocks (clock_queries.h), as bytes that a snapshot keeps. */
#ifndef MERIDIAN_IMPORTER_CLOCK_CLOCK_STATE_H
#define MERIDIAN_IMPORTER_CLOCK_CLOCK_STATE_H

#include "base/error.h"
#include "base/vec.h"
#include "importer/core/context.h"

typedef VEC(uint8_t) clock_state_bytes;

/* Appends it to *out. -MRD_EUNSUPPORTED for recordings that packets relate: what is known about those is too much. */
int clock_state_save(struct importer *im, clock_state_bytes *out, struct error *err);

/* Takes it over, into an importer that has read nothing. The bytes are not trusted: -MRD_EFORMAT. */
int clock_state_load(struct importer *im, struct slice bytes, struct error *err);

#endif
