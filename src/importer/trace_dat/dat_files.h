/* The files of trace-cmd in one load: who is whose guest, and which clock a recording's id stands for. */
#ifndef MERIDIAN_IMPORTER_TRACE_DAT_DAT_FILES_H
#define MERIDIAN_IMPORTER_TRACE_DAT_DAT_FILES_H

#include "importer/core/clock_id.h"
#include "importer/core/context.h"
#include "importer/trace_dat/dat_file.h"

/* A virtual CPU, and the host's thread that runs it. */
struct dat_vcpu {
    uint32_t cpu, tid;
};

/* A guest as its host's file names it. */
struct dat_guest {
    uint64_t trace_id; /* of the guest's file */
    strid name;
    uint32_t host; /* machine row */
    VEC(struct dat_vcpu)
    vcpus;
    bool linked; /* the rows of guest_vcpu are there */
};

/* The clock of a recording; guests name it by the host's trace id, perhaps before the host's file is read. */
struct dat_named_clock {
    uint64_t trace_id;
    struct clock_id clock;
    int64_t offset_ns; /* what the recording's own file adds to its raw times; 0: it was not read yet */
};

/* A recording that was read, and its machine. */
struct dat_recording {
    uint64_t trace_id;
    uint32_t machine;
};

struct trace_dat_files {
    uint32_t next_dynamic_id;
    uint32_t n; /* files read */
    VEC(struct dat_guest)
    guests;
    VEC(struct dat_named_clock)
    clocks;
    VEC(struct dat_recording)
    recordings;
    struct clock_id wall; /* the wall clock of the first file that has one */
    bool has_wall;
};

/* The machine of a file, made when it is not the first trace of the load. NULL when out of memory. */
struct machine_ctx *dat_files_machine(struct trace_dat_files *files, struct importer *im, const struct dat_file *f);

/* Notes a file's id and its guests (one that breaks off is a bad section); fills guest_vcpu for those whose files are
 * known by now. */
int dat_files_add(struct trace_dat_files *files, struct importer *im, struct dat_file *f, const struct machine_ctx *m);

/* The clock of the recording `trace_id`: `if_new` when it was not named before. */
struct dat_named_clock dat_files_clock(struct trace_dat_files *files, struct dat_named_clock if_new);

#endif
