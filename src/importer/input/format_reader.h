/* What reads a format that is not Perfetto's packets: one row in importer.c's table a format.
 *
 * The reader lives until the import is closed, because its events wait in the sorter: queues are added in open() or
 * write(), and their parse functions run when the import ends. Times in such files need not rise: everything is sorted
 * as a whole. */
#ifndef MERIDIAN_IMPORTER_INPUT_FORMAT_READER_H
#define MERIDIAN_IMPORTER_INPUT_FORMAT_READER_H

#include "importer/core/context.h"
#include "importer/input/format.h"

struct format_reader {
    enum trace_format format;
    bool no_idle;     /* process and thread 0 are like others there */
    bool fixed_clock; /* --clock cannot say which: its files tell, or there are no times in them */
    bool whole;       /* write() gets the whole file at once; else it comes in pieces cut anywhere */
    /* `im->input` and `im->trace_file` are those of the file. NULL when out of memory. */
    void *(*open)(struct importer *im);
    /* The bytes are valid until write() returns, or as long as the importer when importer_bytes_stable() says so. An
     * error ends the file: what came before it is kept, and end() is not called. */
    int (*write)(void *self, struct slice bytes, struct error *err);
    /* No more bytes come. NULL: nothing is left to do then. */
    int (*end)(void *self, struct error *err);
    /* All events of the import have been parsed. NULL: nothing is left to do then. */
    void (*parsed)(void *self);
    void (*close)(void *self);
};

static inline int format_reader_end(const struct format_reader *format, void *self, struct error *err)
{
    return format->end ? format->end(self, err) : 0;
}

/* A table of readers, NULL at its end. */
const struct format_reader *format_reader_find(const struct format_reader *const *table, enum trace_format format);

/* Bytes of the file have been looked at: memory of a mapped one is given back, and the user sees how far it is. */
void format_reader_used(struct importer *im, struct slice bytes);

/* Opens a reader for a file that begins; it is closed with the importer. NULL when out of memory. */
void *format_reader_begin(struct importer *im, const struct format_reader *format);

/* Reads a file in memory that stays until the end of the import. */
int format_reader_run(struct importer *im, const struct format_reader *format, struct slice file, struct error *err);

/* Hands on a packet that was made of a file's bytes: `pieces` are the fields of a TracePacket of that sequence. */
void format_reader_packet(struct importer *im, uint32_t sequence, const struct slice *pieces, size_t n);

#endif
