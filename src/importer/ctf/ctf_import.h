/* CTF traces into the same tables as ftrace: machines, events with args, sched slices, thread states, irqs, syscalls.
 *
 * The traces of a load are collected first; when all are known, the packets that the hosts exchanged relate their
 * clocks, and every event goes to the sorter with its time on the reference host's clock. One host (name and clock) is
 * one machine. */
#ifndef MERIDIAN_IMPORTER_CTF_CTF_IMPORT_H
#define MERIDIAN_IMPORTER_CTF_CTF_IMPORT_H

#include "importer/context.h"
#include "importer/ctf/ctf_trace.h"
#include "importer/sync/session.h"

enum { CTF_ARGS_KIND = 7 /* number of our args decoder; ftrace has those from 1 on */ };

/* Adds every trace at or below a directory. */
int ctf_import_add(struct importer *im, const char *path, struct error *err);

/* Bytes of all streams added. */
uint64_t ctf_import_bytes(const struct importer *im);

/* Once no more input comes: synchronises the hosts and pushes all events to the sorter. Nothing when there are no
 * traces. */
int ctf_import_finish(struct importer *im, struct error *err);

/* The synchronisation of this load, NULL when there was none. */
const struct sync_session *ctf_import_session(const struct importer *im);

void ctf_import_close(struct importer *im);

#endif
