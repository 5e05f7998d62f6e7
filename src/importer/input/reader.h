/* Gets the bytes of traces to their tokenizers: files mapped or streamed, decompressed, taken out of archives.
 *
 * A mapped file is read in place. What comes out of a pipe or a decompressor goes into blocks; a block is freed when
 * the sorter has emitted everything that points into it. */
#ifndef MERIDIAN_IMPORTER_INPUT_READER_H
#define MERIDIAN_IMPORTER_INPUT_READER_H

#include "base/slice.h"
#include "importer/core/context.h"

struct reader;
struct format_reader;

/* What reads files that hold several traces, or speak of them. */
struct reader_merging {
    /* A zip or tar file as a whole; `row` of trace_file. */
    int (*archive)(struct reader *r, struct slice file, uint32_t row, struct error *err);
    /* A manifest that is in no archive. */
    int (*manifest)(struct reader *r, struct slice text, struct error *err);
};

/* NULL when out of memory. */
struct reader *reader_open(struct importer *im, const struct reader_merging *merging,
                           const struct format_reader *const *formats);
void reader_close(struct reader *r);

int reader_add_file(struct reader *r, const char *path, struct error *err);
int reader_feed(struct reader *r, const void *bytes, size_t len, struct error *err);
/* The bytes of all files and feeds so far, as they are. */
uint64_t reader_bytes(const struct reader *r);

/* Whether all that was read is a manifest, and no trace. */
bool reader_had_manifest_alone(const struct reader *r);
/* No more bytes come of what was fed. */
int reader_finish(struct reader *r, struct error *err);

/* All events of the files have been parsed. */
void reader_parsed(struct reader *r);
/* Counts the files that shrank while they were read. */
void reader_note_shrunk(struct reader *r);
/* Reads the traces that waited until separate recordings were related. */
void reader_read_pending(struct reader *r);

/* Sets trace_size_bytes, and trace_uuid when the trace has none of its own. */
void reader_metadata(struct reader *r);

#endif
