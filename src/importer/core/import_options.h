/* What a user chooses about an import. */
#ifndef MERIDIAN_IMPORTER_CORE_IMPORT_OPTIONS_H
#define MERIDIAN_IMPORTER_CORE_IMPORT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum import_clock_model {
    CLOCK_MODEL_AUTO,       /* linear for a machine whose clock rounds come in several packets, else compatible */
    CLOCK_MODEL_COMPATIBLE, /* a constant offset, bit for bit that of the public tool */
    CLOCK_MODEL_LINEAR,     /* offset and drift with proven bounds */
};

/* A file of code that a recording names. */
struct code_name {
    const char *path;
    const uint8_t *build_id;
    size_t build_id_len; /* 0: not known */
    uint64_t inode;      /* on the recorded machine, as `major` and `minor` of its device; 0: not known */
    uint32_t major, minor;
};

struct import_options {
    bool full_sort;                  /* --full-sort */
    bool no_ftrace_raw;              /* --no-ftrace-raw: ftrace_event stays empty */
    bool ignore_ftrace_parse_errors; /* dev flag: ftrace_parse_errors are counted, not fatal */
    bool all_text_events;            /* --all-text-events: kernel events as text fill what binary ones do */
    bool analyze_proto_content;      /* --analyze-trace-proto-content: fill experimental_proto_path and _content */
    bool crop_track_events;          /* drop track events before the range of interest */
    enum import_clock_model clock_model;
    int sync_method;                /* enum sync_method: how recordings without a relay are brought onto one clock */
    const char *const *file_clocks; /* --clock: "FORMAT=CLOCK" each; files of a format are on that clock */
    size_t n_file_clocks;
    const char *sync_reference; /* name of the host whose clock is kept; NULL: the one with the least total error */
    unsigned threads;           /* workers for decompression and tokenizing; 0: as many as useful */
    uint64_t sort_memory;       /* what waits to be sorted may take so many bytes of memory; 0: any number */
    /* Opens a file that unwind tables are read from, -1: it cannot be had. It must be the one that was recorded. NULL:
     * stacks are not unwound from their copies. */
    int (*open_code)(void *ctx, const struct code_name *name);
    void *open_code_ctx;
    void (*progress)(void *ctx, uint64_t bytes_done, uint64_t bytes_total); /* may be NULL; total 0 when unknown */
    void *progress_ctx;
    /* What is being done: "reading" (bytes), "sorting" (events), "indexing" (0 of 0). May be NULL. */
    void (*progress_step)(void *ctx, const char *step, uint64_t done, uint64_t total);
};

#endif
