/* Where conversions write: standard output, or a file that is there whole or not at all (base/output_file.h), packed or
 * not, with progress told on a terminal. Ctrl-C ends the writing with -MRD_ECANCELLED. Failures are latched, so that a
 * caller may write all and look once, at out_file_finish(). */
#ifndef MERIDIAN_SHELL_CONVERT_OUT_FILE_H
#define MERIDIAN_SHELL_CONVERT_OUT_FILE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct tp;
struct out_file;

/* How bytes are packed on their way. */
enum out_packing { OUT_PLAIN, OUT_ZLIB, OUT_GZIP };

/* `path` NULL or "-": standard output. Ctrl-C from here on also interrupts `tp` (may be NULL). NULL with a text. */
struct out_file *out_file_open(const char *path, struct tp *tp, struct error *err);

/* Packs what is written from now on. */
int out_file_pack(struct out_file *o, enum out_packing packing);

/* 0, or the failure that was latched. */
int out_file_write(struct out_file *o, const void *bytes, size_t len);
int out_file_text(struct out_file *o, const char *text);
int out_file_printf(struct out_file *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same for callbacks: `ctx` is the struct out_file. */
int out_file_sink(void *ctx, const void *bytes, size_t len);

/* Ends the file, which gets its name when `rc` is 0 and everything was written; closes. The result is the first
 * failure: a latched one (its text is set), else `rc` as it is. NULL is fine. */
int out_file_finish(struct out_file *o, int rc, struct error *err);

#endif
