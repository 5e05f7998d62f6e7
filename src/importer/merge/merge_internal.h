/* What the files of this folder share of an archive that is being merged. */
#ifndef MERIDIAN_IMPORTER_MERGE_MERGE_INTERNAL_H
#define MERIDIAN_IMPORTER_MERGE_MERGE_INTERNAL_H

#include "importer/clock/clock_graph.h"
#include "importer/input/reader_private.h"
#include "importer/merge/manifest.h"
#include "importer/proto/trace_outline.h"

#define NOT_A_TRACE UINT32_MAX

/* One member on its way. */
struct entry {
    const char *name;
    struct slice bytes;
    enum trace_format format; /* of what is inside when it was compressed */
    enum trace_format outer;  /* as it stands in the archive */
    int priority;
    size_t index;
    struct manifest_file *manifest;
    struct trace_outline outline;
    uint32_t serial; /* NOT_A_TRACE when it is not imported */
    uint32_t clock_file;
    uint32_t machine; /* row of its base machine */
    bool private_clock;
    bool is_ctf;        /* part of a CTF trace: read with it */
    const char *damage; /* why it may not be all there; NULL: it is */
};

struct merge {
    struct reader *r;
    struct importer *im;
    uint64_t room; /* bytes that may still be unpacked */
    struct arena arena;
    VEC(struct entry)
    entries;
    struct manifest manifest;
    bool has_manifest;
    bool is_bugreport;
    bool any_packets; /* one of the traces is made of packets */
    VEC(struct clock_reading)
    edges; /* pairs, written to clock_snapshot at the end */
    VEC(uint32_t)
    edge_ids;
};

/* An error that begins with "perfetto_manifest"; its code. */
int merge_fail(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- place.c: what the manifest says of the members --- */
int merge_find_manifest(struct merge *m, struct error *err);
/* Numbers the traces, gives them their machines, and decides whose clocks stand apart. */
int merge_place(struct merge *m, struct error *err);
/* Relates their clocks, and adds what else the manifest says. */
int merge_apply_manifest(struct merge *m, struct error *err);

#endif
