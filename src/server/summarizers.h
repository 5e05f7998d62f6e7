/* The summarizers that clients have made, by the ids they gave them.
 *
 * Those of a client with a stream (a WebSocket, a Unix socket, standard streams) are its own, other clients do not see
 * them, and go with it. Requests over POST have no such end: theirs are common, and when all places are taken, the one
 * that has not been used for longest gives way. */
#ifndef MERIDIAN_SERVER_SUMMARIZERS_H
#define MERIDIAN_SERVER_SUMMARIZERS_H

#include "base/slice.h"
#include "meridian/tp.h"

#include <stddef.h>
#include <stdint.h>

enum { MAX_SUMMARIZERS = 64, MAX_SUMMARIZER_ID = 256 };

struct summarizer_place {
    struct tp_summarizer *s; /* NULL: the place is free */
    const void *owner;       /* NULL: common */
    uint64_t last_use;
    char id[MAX_SUMMARIZER_ID + 1];
};

/* Zeroed is empty. */
struct summarizers {
    struct summarizer_place places[MAX_SUMMARIZERS];
    uint64_t uses;
    uint64_t named; /* ids given to those that came without one */
};

/* Makes one, with an id chosen here when `id` is empty. NULL: *why says why not. */
struct summarizer_place *summarizers_make(struct summarizers *l, struct tp *tp, const void *owner, struct slice id,
                                          const char **why);

/* The summarizer of that owner, or NULL. */
struct summarizer_place *summarizers_find(struct summarizers *l, const void *owner, struct slice id);

void summarizers_remove(struct summarizer_place *place);

/* The owner (not NULL) leaves. */
void summarizers_leave(struct summarizers *l, const void *owner);

/* All go: before the handle is closed. */
void summarizers_clear(struct summarizers *l);

#endif
