/* A CTF trace on disk: a directory with a `metadata` file and stream files beside it. */
#ifndef MERIDIAN_IMPORTER_CTF_CTF_TRACE_H
#define MERIDIAN_IMPORTER_CTF_CTF_TRACE_H

#include "base/file.h"
#include "importer/ctf/ctf_stream.h"

struct ctf_trace {
    char *path;
    struct mapped_file metadata_file;
    struct ctf_metadata metadata;
    VEC(struct mapped_file)
    streams;
    uint64_t bytes; /* of all streams that are files */
};

typedef VEC(struct ctf_trace *) ctf_traces;

/* True when `path` is a directory that holds a CTF trace, itself or further down. */
bool ctf_is_trace(const char *path);

/* Opens every trace at or below the directory `path` (eight levels and 1024 directories at most, links to others
 * are not followed) and appends them to *out, sorted by path. A
 * trace that cannot be read makes the call fail with its reason after the others were opened; the caller may go on with
 * those. */
int ctf_open_all(const char *path, ctf_traces *out, struct error *err);

/* A file of a trace that is in memory already (out of an archive); the bytes must outlive the trace. */
struct ctf_file {
    const char *name; /* without directory */
    struct slice bytes;
};

/* True when these bytes begin like a CTF metadata file. */
bool ctf_is_metadata(struct slice bytes);

/* Opens a trace whose files are in memory; one of them is called "metadata". `path` is what errors call it. */
int ctf_open_files(const char *path, const struct ctf_file *files, size_t n, ctf_traces *out, struct error *err);

/* Who recorded it: the host's name and its clock. Two traces of one host (kernel and user space) share both. */
const char *ctf_trace_hostname(const struct ctf_trace *t);
const char *ctf_trace_clock_uuid(const struct ctf_trace *t);
/* The clock of its first stream that has one; NULL when there is none. */
const struct ctf_clock *ctf_trace_clock(const struct ctf_trace *t);

/* Directories of one identity are pieces of one trace; "": nothing says. The uid is what of it is shown. */
const char *ctf_trace_identity(const struct ctf_trace *t);
const char *ctf_trace_uid(const struct ctf_trace *t);

void ctf_trace_close(struct ctf_trace *t);

/* How many of its files shrank while they were read. */
int64_t ctf_trace_shrank(const struct ctf_trace *t);

#endif
