/* Imports simulated traces and compares every event's time with the truth. */
#ifndef MERIDIAN_TEST_UNIT_CLOCK_MEASURE_H
#define MERIDIAN_TEST_UNIT_CLOCK_MEASURE_H

#include "clock_simulator.h"
#include "importer/importer.h"

struct figures {
    VEC(int64_t)
    errors; /* |trace time - true host time| of events on remote machines */
    VEC(int64_t)
    bounds;          /* what was claimed of them */
    int64_t worst;   /* error */
    int64_t bound;   /* largest bound given */
    size_t outside;  /* errors larger than their bound */
    size_t unbound;  /* events without a bound */
    size_t inverted; /* effects before their cause, with comparisons after both */
    size_t missing;  /* events that did not arrive */
};

/* Adds the simulation's errors under a clock model to *f. Aborts when the import fails. */
void measure(const struct simulation *s, enum import_clock_model model, bool by_pipe, struct figures *f);

/* The error, the bound that `percent` of the events do not exceed; sorts f->errors, f->bounds. */
int64_t error_percentile(struct figures *f, unsigned percent);
int64_t bound_percentile(struct figures *f, unsigned percent);

void figures_free(struct figures *f);

#endif
