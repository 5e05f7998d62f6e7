/* A trace file of the service, written by a thread of its own.
 *
 * Whatever the file is (a pipe that nobody reads, a disk that hangs, a file system of the consumer's own making), the
 * service's loop only ever puts blocks into a queue. A pipe whose reader takes nothing for FILE_STALL_MS is given up; a
 * regular file that cannot be written to its end is cut back to its last whole packet.
 *
 * Everything is called from the loop's thread. The writer is freed by file_writer_close(), as soon as its thread ends.
 */
#ifndef MERIDIAN_CAPTURE_SERVICE_FILE_WRITER_H
#define MERIDIAN_CAPTURE_SERVICE_FILE_WRITER_H

#include "base/error.h"
#include "wire/pb_writer.h"

#include <uv.h>

enum { FILE_STALL_MS = 10000 };

struct file_writer;

/* Takes `fd` over in every case. `progress` is called from the loop when something has been written, when all is done,
 * and when it failed. NULL and err when there is no memory or no thread. */
struct file_writer *file_writer_open(uv_loop_t *loop, int fd, void (*progress)(void *ctx), void *ctx,
                                     struct error *err);

/* Queues whole packets; takes the memory of `bytes`, which is empty after it. False: out of memory, nothing is queued.
 */
bool file_writer_push(struct file_writer *w, struct pb_writer *bytes);
/* Has what was queued so far on the disk before anything that comes later. */
void file_writer_sync(struct file_writer *w);
/* Nothing more will come: the file is closed when the queue is empty. */
void file_writer_finish(struct file_writer *w);

size_t file_writer_queued(struct file_writer *w); /* bytes */
bool file_writer_done(struct file_writer *w);     /* finished or failed, and closed */
struct error file_writer_error(struct file_writer *w);
uint64_t file_writer_written(struct file_writer *w); /* bytes that are in the file */

/* Lets go: what is still queued may be lost. NULL is fine. */
void file_writer_close(struct file_writer *w);

#endif
