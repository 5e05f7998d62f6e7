/* The packets of a trace file as they are, without importing them: for tools that write traces in other forms. */
#ifndef MERIDIAN_WIRE_PACKET_FILE_H
#define MERIDIAN_WIRE_PACKET_FILE_H

#include "base/file.h"

/* A file, whole: mapped, read (a pipe), or unpacked (gzip, zstd). */
struct packet_file {
    struct slice bytes;
    struct mapped_file map;
    char *owned;
};

/* `path` "-" is standard input. What unpacks to more than 200 times its size is refused. */
int packet_file_open(struct packet_file *f, const char *path, struct error *err);
void packet_file_close(struct packet_file *f);

/* -MRD_EFORMAT with a text when the file is not a trace of packets. */
int packet_file_check(const struct packet_file *f, const char *path, struct error *err);

struct packet_counts {
    uint64_t packets;
    uint64_t unpacked; /* packets of packets that were opened */
    uint64_t damaged;  /* those that could not be: given out as they are */
    size_t tail;       /* bytes at the end that are no whole field */
};

/* Calls `each` for every field of the trace, in order: `field` is its bytes with its tag. Packets that hold packed ones
 * are replaced by what they hold. What `each` returns other than 0 ends the walk and is returned. */
int packet_file_walk(const struct packet_file *f, int (*each)(void *ctx, struct slice field), void *ctx,
                     struct packet_counts *counts, struct error *err);

#endif
