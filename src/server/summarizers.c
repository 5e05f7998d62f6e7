/* Places for summarizers: a short array, walked. */
#include "server/summarizers.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct summarizer_place *summarizers_find(struct summarizers *l, const void *owner, struct slice id)
{
    for (size_t i = 0; i < MAX_SUMMARIZERS; i++) {
        struct summarizer_place *p = &l->places[i];
        if (p->s && p->owner == owner && slice_eq_str(id, p->id)) {
            p->last_use = ++l->uses;
            return p;
        }
    }
    return NULL;
}

void summarizers_remove(struct summarizer_place *place)
{
    tp_summarizer_close(place->s);
    place->s = NULL;
}

/* A free place, or that of the common one used longest ago; NULL when every place is somebody's. */
static struct summarizer_place *take_place(struct summarizers *l)
{
    struct summarizer_place *oldest = NULL;
    for (size_t i = 0; i < MAX_SUMMARIZERS; i++) {
        struct summarizer_place *p = &l->places[i];
        if (!p->s)
            return p;
        if (!p->owner && (!oldest || p->last_use < oldest->last_use))
            oldest = p;
    }
    if (oldest)
        summarizers_remove(oldest);
    return oldest;
}

struct summarizer_place *summarizers_make(struct summarizers *l, struct tp *tp, const void *owner, struct slice id,
                                          const char **why)
{
    struct tp_summarizer *s;
    char chosen[32];
    *why = !tp                                                 ? "no trace is loaded"
           : id.len > MAX_SUMMARIZER_ID                        ? "the id is too long"
           : id.len && memchr(id.p, 0, id.len)                 ? "the id has a NUL byte"
           : utf8_prefix((const char *)id.p, id.len) != id.len ? "the id is not UTF-8"
                                                               : NULL;
    while (!*why && !id.len) {
        snprintf(chosen, sizeof chosen, "summarizer-%" PRIu64, ++l->named);
        if (!summarizers_find(l, owner, slice_str(chosen)))
            id = slice_str(chosen);
    }
    if (!*why && summarizers_find(l, owner, id))
        *why = "a summarizer with this id exists";
    struct summarizer_place *p = *why ? NULL : take_place(l);
    if (!*why && !p)
        *why = "too many summarizers; destroy some first";
    if (!*why && tp_summarizer_open(tp, &s) < 0)
        *why = tp_error(tp);
    if (*why)
        return NULL;
    *p = (struct summarizer_place){.s = s, .owner = owner, .last_use = ++l->uses};
    memcpy(p->id, id.p, id.len);
    return p;
}

void summarizers_leave(struct summarizers *l, const void *owner)
{
    for (size_t i = 0; i < MAX_SUMMARIZERS; i++)
        if (l->places[i].s && l->places[i].owner == owner)
            summarizers_remove(&l->places[i]);
}

void summarizers_clear(struct summarizers *l)
{
    for (size_t i = 0; i < MAX_SUMMARIZERS; i++)
        if (l->places[i].s)
            summarizers_remove(&l->places[i]);
}
