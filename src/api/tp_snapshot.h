/* Snapshots of a handle's trace, for the files of libmeridian. */
#ifndef MERIDIAN_API_TP_SNAPSHOT_H
#define MERIDIAN_API_TP_SNAPSHOT_H

#include "base/checksum.h"
#include "storage/snapshot.h"
#include "tp_internal.h"

/* The sum of what an import's options are: imports with equal sums make equal tables of equal files. */
uint64_t tp_options_sum(const struct tp_config *config);

/* The sum of a regular file's bytes; `seed` as for checksum_of(). -MRD_EUNSUPPORTED when it is none. */
int tp_file_sum(const char *path, uint64_t seed, struct checksum *sum, uint64_t *bytes, struct error *err);

/* Writes the trace to `sink`; `text` says what it was made of. */
int tp_snapshot_to(struct tp *tp, struct snapshot_info info, const struct snapshot_sink *sink, struct error *err);

/* After the load of a snapshot: refuses options that its import was not done with. */
int tp_snapshot_check_options(struct tp *tp);

/* Refuses what needs the packets of a trace when only a snapshot of it was loaded; 0 when there is none. `what` begins
 * the text. */
int tp_need_packets(struct tp *tp, const char *what);

#endif
