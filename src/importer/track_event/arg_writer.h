/* Builds args with dotted keys: "debug.a.b[2].c", whose flat key leaves the indices out. */
#ifndef MERIDIAN_IMPORTER_TRACK_EVENT_ARG_WRITER_H
#define MERIDIAN_IMPORTER_TRACK_EVENT_ARG_WRITER_H

#include "base/u64map.h"
#include "storage/args.h"

enum { ARG_MAX_DEPTH = 64 };

struct arg_writer {
    struct args *args;
    struct arg_list *out;
    size_t had;       /* values that were in the list before: arrays go on behind theirs */
    uint32_t key_len; /* of the key so far; keys past ARG_KEY_MAX are cut */
    uint32_t flat_len;
    uint32_t depth;
    struct u64map places; /* key -> index of its value, of the first n_placed values of a long list */
    size_t n_placed;
    struct u64map next_index; /* key strid of an array -> index of its next entry */
    char key[ARG_KEY_MAX];
    char flat[ARG_KEY_MAX];
};

struct arg_mark { /* where a key stood before something was appended */
    uint32_t key_len, flat_len;
};

/* `out` may hold values already (from the begin of a slice whose end adds more). */
void arg_writer_init(struct arg_writer *w, struct args *args, struct arg_list *out);
void arg_writer_free(struct arg_writer *w);

/* Appends ".name" (or "name" at the start) to both keys; undone by arg_writer_pop(). */
struct arg_mark arg_writer_push(struct arg_writer *w, const void *name, size_t len);
/* Appends "[index]" to the key alone. */
struct arg_mark arg_writer_push_index(struct arg_writer *w, uint64_t index);
static inline void arg_writer_pop(struct arg_writer *w, struct arg_mark m)
{
    w->key_len = m.key_len;
    w->flat_len = m.flat_len;
}

/* The next index of the array at the current key, and setting it after an entry was added. */
uint64_t arg_writer_array_index(struct arg_writer *w);
void arg_writer_array_set(struct arg_writer *w, uint64_t next);

/* A value at the current key. */
void arg_writer_add(struct arg_writer *w, enum arg_type type, int64_t word);
void arg_writer_add_bytes(struct arg_writer *w, enum arg_type type, struct slice text);

#endif
