/* Ids of traces and spans for slices that have none: which slices belong to one trace, and who caused whom. */
#ifndef MERIDIAN_SHELL_CONVERT_OTLP_IDS_H
#define MERIDIAN_SHELL_CONVERT_OTLP_IDS_H

#include "shell/convert/convert.h"

enum { OTLP_NO_SLICE = UINT32_MAX };

struct otlp_ids {
    uint32_t *parents; /* by slice: the one around it, else the one that a flow leads from; OTLP_NO_SLICE */
    uint32_t *roots;   /* by slice: the first of its trace */
    uint8_t *instants; /* by slice: it is an event of the slice around it */
    size_t n;
    uint64_t trace; /* hash of the trace's uuid */
};

int otlp_ids_open(struct shell *sh, struct otlp_ids *ids, struct error *err);
void otlp_ids_close(struct otlp_ids *ids);

/* 32 and 16 hexadecimal digits with a NUL behind: the same in every run. */
void otlp_trace_id(const struct otlp_ids *ids, uint32_t slice, char text[33]);
void otlp_span_id(const struct otlp_ids *ids, uint32_t slice, char text[17]);

#endif
