/* CTF traces into the same tables as ftrace: machines, events with args, sched slices, thread states, irqs, syscalls.
 *
 * The traces of a load are collected first; when all are known, the packets that the hosts exchanged relate their
 * clocks (importer/clock/recordings.h), and every event goes to the sorter with its trace time. One host (name and
 * clock) is one machine; the clock of its traces is that machine's REALTIME, as the metadata's offset makes it. */
#ifndef MERIDIAN_IMPORTER_CTF_CTF_IMPORT_H
#define MERIDIAN_IMPORTER_CTF_CTF_IMPORT_H

#include "importer/core/context.h"
#include "importer/ctf/ctf_trace.h"

enum { /* numbers of our args decoders; ftrace has those from 1 on */
       CTF_ARGS_KIND = 10,
       CTF_CALL_ARGS_KIND = 11, /* of the slice of a system call: lttng_calls.c */
};

/* Adds every trace at or below a directory. */
int ctf_import_add(struct importer *im, const char *path, struct error *err);

/* Adds a trace whose files are in memory, where they stay as long as the importer. */
int ctf_import_add_files(struct importer *im, const char *path, const struct ctf_file *files, size_t n,
                         struct error *err);

/* Bytes of all streams in directories, and how many traces there are, also out of archives. */
uint64_t ctf_import_bytes(const struct importer *im);
size_t ctf_import_count(const struct importer *im);

/* Once no more input comes, before anything is read: makes a machine for each host, and when there are other recordings
 * (not `alone`, or several hosts) adds the packets of each to them. */
int ctf_import_prepare(struct importer *im, bool alone);

/* Pushes all events to the sorter. Nothing when there are no traces. */
int ctf_import_finish(struct importer *im, struct error *err);

/* Counts the files that shrank while they were read. */
void ctf_import_note_shrunk(struct importer *im);
void ctf_import_close(struct importer *im);

#endif
