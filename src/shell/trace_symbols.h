/* Names for the functions of a loaded trace: which of its addresses lack one, and what came of looking for it. */
#ifndef MERIDIAN_SHELL_TRACE_SYMBOLS_H
#define MERIDIAN_SHELL_TRACE_SYMBOLS_H

#include "meridian/tp.h"
#include "symbols/symbolize.h"

/* A program or library and what was found for it. */
struct symbol_report_row {
    char *path, *build_id;
    size_t n_addresses;
    uint64_t n_frames, n_mappings;
    struct symbol_outcome outcome;
};

struct symbol_report {
    VEC(struct symbol_report_row)
    rows;
    uint64_t n_anonymous_frames, n_anonymous_mappings; /* of files whose build id the trace does not know */
    uint64_t n_asked, n_named;                         /* addresses */
};

/* Looks for all of them, and appends ModuleSymbols packets to `packets`. The report is to be freed in any case. What is
 * not found is no error. */
int trace_symbols_find(struct tp *tp, const struct symbol_sources *sources, struct pb_writer *packets,
                       struct symbol_report *report, struct error *err);

/* Prints on standard error what could not be named, and with `verbose` each file and the places looked at. */
void symbol_report_print(const struct symbol_report *report, bool verbose);

void symbol_report_free(struct symbol_report *report);

/* --- what a command line says about where to look --- */

struct symbol_places {
    struct symbol_sources sources;
    char *text; /* cut into `paths` */
    VEC(const char *)
    paths;
};

/* Adds the parts of a list. */
int symbol_places_add(struct symbol_places *p, const char *list, char separator, struct error *err);

/* PERFETTO_BINARY_PATH and PERFETTO_SYMBOLIZER_MODE. */
int symbol_places_of_environment(struct symbol_places *p, struct error *err);

void symbol_places_free(struct symbol_places *p);

#endif
