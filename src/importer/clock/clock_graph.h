/* Converts timestamps between clocks: a graph of clock domains joined by snapshots. */
#ifndef MERIDIAN_IMPORTER_CLOCK_CLOCK_GRAPH_H
#define MERIDIAN_IMPORTER_CLOCK_CLOCK_GRAPH_H

#include "importer/core/clock_id.h"
#include "storage/storage.h"

struct clock_reading {
    struct clock_id clock;
    int64_t value;      /* in the clock's units */
    int64_t multiplier; /* ns per unit, 0 means 1 */
    bool incremental;
};

struct clock_graph;

struct clock_graph *clock_graph_open(struct storage *st);

/* Adds a snapshot of clocks read together. Problems are counted in stats (invalid_clock_snapshots). Returns the
 * snapshot id. */
uint32_t clock_graph_add_snapshot(struct clock_graph *g, const struct clock_reading *readings, size_t n);

/* The id of a snapshot that is to be shown and relates nothing. */
uint32_t clock_graph_new_snapshot(struct clock_graph *g);

/* Converts to trace time. 0 on success; -MRD_ENOTFOUND when there is no path (nothing is counted: the caller decides
 * whether to retry at the end of the file or to record the failure with clock_graph_record_failure()). A cached hit
 * costs a few ns. */
int clock_graph_to_trace_time(struct clock_graph *g, struct clock_id from, int64_t value, int64_t *trace_ns);
int clock_graph_convert(struct clock_graph *g, struct clock_id from, int64_t value, struct clock_id to, int64_t *out);
void clock_graph_record_failure(struct clock_graph *g, struct clock_id from, int64_t value, int64_t byte_offset);
/* Where the row of `trace_file` stands that is being read, which failures are logged for; it outlives the graph. */
void clock_graph_set_trace_file(struct clock_graph *g, const uint32_t *trace_file);

/* Joins a remote clock to the host's by a map that never decreases. It must outlive the graph, and replaces another
 * between the same clocks. False when out of memory. */
struct sync_transform;
struct clock_map_ops {
    int64_t (*to_host)(const void *map, int64_t remote);
    int64_t (*to_remote)(const void *map, int64_t host);
    /* The straight piece that holds at `remote`, and [*first, *end) where it does. NULL: the map has no such pieces. */
    const struct sync_transform *(*piece)(const void *map, int64_t remote, int64_t *first, int64_t *end);
};
struct clock_map {
    const struct clock_map_ops *ops;
    const void *map;
};
bool clock_graph_add_map(struct clock_graph *g, struct clock_id remote, struct clock_id host, struct clock_map map);

/* The caller relates the clocks of this one's file and machine: the rules for those that nothing relates do not apply.
 */
void clock_graph_own_domain(struct clock_graph *g, struct clock_id clock);

/* primary_trace_clock: the first file to set it wins (later ones are ignored: 0); -MRD_EINVALID once conversions to
 * trace time have happened. */
int clock_graph_set_trace_clock(struct clock_graph *g, struct clock_id clock);
/* The manifest's word comes before all others; call it before anything is converted. */
void clock_graph_fix_trace_clock(struct clock_graph *g, struct clock_id clock);
struct clock_id clock_graph_trace_clock(const struct clock_graph *g);
/* Whether a trace or a manifest has said which clock it is. */
bool clock_graph_trace_clock_given(const struct clock_graph *g);

/* What a clock shows at a trace time: the way back. -MRD_ENOTFOUND when there is no path. */
int clock_graph_from_trace_time(struct clock_graph *g, int64_t trace_ns, struct clock_id to, int64_t *value);

/* Rows of clock_snapshot for the readings of the snapshot added last; those without a trace time get none. */
void clock_graph_write_rows(struct clock_graph *g, const struct clock_reading *readings, size_t n, uint32_t snapshot);

/* Memory ran out: something is missing. */
bool clock_graph_failed(const struct clock_graph *g);

void clock_graph_close(struct clock_graph *g);

#endif
