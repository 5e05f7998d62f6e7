/* What in the config of a recording loses data, costs much or misses what was asked for. */
#ifndef MERIDIAN_IMPORTER_PROTO_DIAGNOSTICS_H
#define MERIDIAN_IMPORTER_PROTO_DIAGNOSTICS_H

#include "importer/core/packet.h"

/* Keeps a TraceConfig until the end: a trace's last one counts. */
void diagnostics_keep(struct packet *p);

/* At the end of the import, when losses are known: adds the rows of trace_diagnostics. */
void diagnostics_finish(struct importer *im);
void diagnostics_close(struct importer *im);

#endif
