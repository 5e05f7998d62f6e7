/* What `util merge` is to make: its traces, and what the user says about their machines and clocks. */
#ifndef MERIDIAN_SHELL_COMMANDS_MERGE_PLAN_H
#define MERIDIAN_SHELL_COMMANDS_MERGE_PLAN_H

#include "shell/options.h"

#include "base/arena.h"

/* The member that says how the others belong together. */
#define MERGE_MANIFEST "perfetto_manifest.json"

struct merge_machine {
    int64_t id; /* as in the trace's packets; 0: the machine that recorded it */
    const char *name;
};

/* A machine that a trace has packets of. */
struct merge_seen {
    int64_t id, events;
};

struct merge_file {
    const char *path;    /* as given */
    const char *member;  /* its name in the archive: that of the file, made unique */
    const char *machine; /* of the whole file; NULL: not given */
    VEC(struct merge_machine)
    machines;                  /* of a file of several */
    const char *clock;         /* to be related; NULL: not given */
    const char *clock_machine; /* whose clock it is; NULL: not given */
    bool has_offset;
    int64_t offset_ns; /* when its clock reads T, that of `to` reads T + offset_ns */
    size_t to;         /* another of the plan's files */

    /* Found by looking at the trace alone. */
    int64_t bytes, events;
    VEC(struct merge_seen)
    seen;
    bool has_clocks;
};

struct merge_attribute {
    const char *key, *value;
};

struct merge_plan {
    struct arena arena;
    VEC(struct merge_file)
    files;
    bool has_timeline;
    size_t timeline; /* the file whose clock becomes the timeline */
    const char *timeline_clock;
    VEC(struct merge_attribute)
    attributes;
};

/* Reads the flags of `util merge`; positionals from `first` on are the traces. -MRD_EINVALID with a text that says what
 * to write instead. */
int merge_plan_read(struct merge_plan *p, const struct options *o, size_t first, struct error *err);
void merge_plan_free(struct merge_plan *p);

/* The clock that a file is related by; NULL: its private one, as it has none. */
const char *merge_file_clock(const struct merge_file *f);

/* Writes the traces and the manifest that says what the plan says, as a tar file. */
int merge_archive_write(const struct merge_plan *p, const char *path, struct error *err);

#endif
