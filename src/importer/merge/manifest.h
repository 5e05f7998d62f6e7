/* The manifest of a set of traces: which machine a file belongs to, how clocks relate, which clock is the timeline. */
#ifndef MERIDIAN_IMPORTER_MERGE_MANIFEST_H
#define MERIDIAN_IMPORTER_MERGE_MANIFEST_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "importer/core/context.h"

struct manifest_file {
    const char *path;
    const char *machine; /* the whole file belongs to it; NULL when not given */
    struct declared_machine *machines;
    size_t n_machines;
    bool has_clocks;
    uint32_t clock;            /* of this file, to be related; 0: the file has none of its own */
    const char *clock_machine; /* NULL when not given */
    struct manifest_file *sync_file;
    const char *sync_machine; /* NULL when not given */
    uint32_t sync_clock;      /* 0: the private timeline of sync_file */
    int64_t offset_ns;        /* when this clock reads T, the other reads T + offset_ns */
};

struct manifest_attribute {
    const char *key;
    const char *text; /* NULL: a number */
    int64_t number;
};

struct manifest {
    struct arena arena;
    struct manifest_file *files;
    size_t n_files;
    uint32_t trace_clock; /* 0: not given */
    struct manifest_file *trace_file;
    const char *trace_machine;
    struct manifest_attribute *attributes;
    size_t n_attributes;
};

/* Reads and checks a document. Errors say "perfetto_manifest: …". */
int manifest_parse(struct manifest *m, struct slice text, struct error *err);

/* The entry of a member, NULL when it has none. */
struct manifest_file *manifest_find(const struct manifest *m, const char *path);

/* Whether `name` is a machine that the file declares. */
bool manifest_declares(const struct manifest_file *f, const char *name);

void manifest_free(struct manifest *m);

#endif
