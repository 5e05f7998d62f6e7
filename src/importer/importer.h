/* File to storage: the importer's public face.
 *
 *     struct importer *im;
 *     importer_open(&im, storage, &options, &err);
 *     importer_add_file(im, "trace.pftrace", &err);      // or importer_feed() for bytes from a pipe
 *     importer_finish(im, &err);                         // drains the sorter, flushes trackers, trace bounds
 *     ... query storage (args are decoded through the importer: keep it open as long) ...
 *     importer_close(im);
 *
 * Bad data in a trace never fails the import: it is counted in storage.stats and noted in trace_import_logs. What
 * fails: an unknown format, a file that cannot be read, memory that runs out, and the errors that importer_fail()
 * reports; even then everything imported so far stays queryable after importer_finish(). */
#ifndef MERIDIAN_IMPORTER_IMPORTER_H
#define MERIDIAN_IMPORTER_IMPORTER_H

#include "importer/core/import_options.h"
#include "storage/storage.h"

struct importer;

int importer_open(struct importer **out, struct storage *st, const struct import_options *options, struct error *err);

/* Imports one file or directory; "-" is standard input. Several calls merge several traces on one timeline. */
int importer_add_file(struct importer *im, const char *path, struct error *err);

/* Imports bytes as they come (from a pipe, an RPC). The bytes are copied where they are still needed later. */
int importer_feed(struct importer *im, const void *bytes, size_t len, struct error *err);

/* The bytes of all files and pipes so far, as they are (compressed or not); directories do not count. */
uint64_t importer_bytes(const struct importer *im);

/* No more input: retries what waited for a clock, drains the sorter, closes trackers, computes bounds, finalizes
 * storage. */
int importer_finish(struct importer *im, struct error *err);

/* Bytes of the directories that were imported. */
uint64_t importer_directory_bytes(const struct importer *im);

/* After importer_finish(): what queries ask about clocks, as bytes for a snapshot (mem_free them, also after a
 * failure). -MRD_EUNSUPPORTED: it cannot be kept in one. */
int importer_clock_state(struct importer *im, uint8_t **bytes, size_t *len, struct error *err);

/* After importer_finish(): writes separate recordings, which packets have related, as one proto trace at `path`: each
 * a machine, with comparisons of their clocks that say what is known of them. Proto traces in files only:
 * -MRD_EUNSUPPORTED otherwise; -MRD_ENOTFOUND when nothing relates one of them. */
int importer_write_merged(struct importer *im, const char *path, struct error *err);

/* After importer_finish(): names frames of call stacks by ModuleSymbols packets that were made for what is there;
 * *named (may be NULL): how many frames. */
int importer_add_symbols(struct importer *im, struct slice packets, uint64_t *named, struct error *err);

void importer_close(struct importer *im);

#endif
