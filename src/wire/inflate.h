/* Streaming decompression of deflate (zlib or gzip framing) and zstd. */
#ifndef MERIDIAN_WIRE_INFLATE_H
#define MERIDIAN_WIRE_INFLATE_H

#include "base/error.h"
#include "base/slice.h"

struct inflater;

enum inflate_kind { INFLATE_DEFLATE /* zlib or gzip, told apart by the header */, INFLATE_ZSTD };

struct inflater *inflater_open(enum inflate_kind kind); /* NULL when out of memory */
void inflater_close(struct inflater *z);

/* Starts anew, for another independent piece of data. */
void inflater_reset(struct inflater *z);

/* Decompresses from *in (advanced) into out; *written bytes came out. Several members or frames in a row are one
 * stream. Call until *in is empty and less than `room` was written. -MRD_EFORMAT on damage: what was written is good.
 */
int inflater_run(struct inflater *z, struct slice *in, uint8_t *out, size_t room, size_t *written, struct error *err);

/* Whether the data ended where a member or frame ended (or nothing came at all). */
bool inflater_at_end(const struct inflater *z);

#endif
