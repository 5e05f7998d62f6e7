/* How much of a chunk its writer has filled. Chunks have the size that the memory was divided into; a quiet writer that
 * is flushed leaves most of its chunk untouched, and that part is neither sent nor stored. */
#ifndef MERIDIAN_CAPTURE_SHM_CHUNK_H
#define MERIDIAN_CAPTURE_SHM_CHUNK_H

#include "capture/shm/abi.h"

/* Bytes of the chunk up to the end of its last fragment, with its header, at most `size`. `fragments`: as its header
 * says. `size` when a length is damaged: who reads the chunk counts that. The bytes may change meanwhile. */
size_t shm_chunk_filled(const uint8_t *chunk, size_t size, unsigned fragments);

#endif
