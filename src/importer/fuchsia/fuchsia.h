/* Traces of Fuchsia (FXT): records of 64-bit words, each with a header that tells its type and its length in words.
 *
 * Strings and threads are told once, each provider with numbers of its own; records.c reads them and hands the events
 * on, with names in place of numbers. events.c gives each event its rows once it is its turn. */
#ifndef MERIDIAN_IMPORTER_FUCHSIA_FUCHSIA_H
#define MERIDIAN_IMPORTER_FUCHSIA_FUCHSIA_H

#include "importer/input/format_reader.h"

extern const struct format_reader fuchsia_format_reader;

#endif
