/* Imports the call stacks of track events: where a slice began, and where it ended. */
#include "importer/profiling/stack_profile.h"
#include "importer/track_event/event.h"

enum { FIELD_INLINE = 55, FIELD_INTERNED = 56, FIELD_WEIGHT = 57 /* of TrackEvent */ };

/* The row of a slice in track_event_callstacks, made when it has none. */
static uint32_t row_of_slice(struct event *e, uint32_t slice)
{
    bool added = false;
    uint64_t *row = u64map_put(&e->t->callstack_rows, slice, &added);
    if (!row) {
        e->m->im->failed = true;
        return UINT32_MAX;
    }
    if (added)
        *row = track_event_callstacks_insert(
            e->m->st, &(struct track_event_callstacks_row){.slice_id = slice,
                                                           .track_id = ROW_GET(e->m->st, slice, track_id, slice),
                                                           .callsite_id = COL_NULL,
                                                           .end_callsite_id = COL_NULL,
                                                           .weight = column_f64(COL_NULL_F64)});
    return (uint32_t)*row;
}

void event_callstack(struct event *e, uint32_t slice, enum track_event_moment moment)
{
    uint32_t callsite = CALLSITE_NONE;
    double weight = column_f64(COL_NULL_F64);
    struct pb_cursor c = pb_cursor(e->bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == FIELD_INLINE)
            callsite = stack_profile_inline(e->m, pb_bytes(&f), "");
        else if (f.id == FIELD_INTERNED)
            callsite = stack_profile_interned(e->m, e->g, pb_u64(&f));
        else if (f.id == FIELD_WEIGHT)
            weight = pb_double(&f);
    }
    uint32_t row = callsite == CALLSITE_NONE ? UINT32_MAX : row_of_slice(e, slice);
    if (row == UINT32_MAX)
        return;
    if (moment == AT_END) {
        ROW_SET(e->m->st, track_event_callstacks, end_callsite_id, row, callsite);
    } else {
        ROW_SET(e->m->st, track_event_callstacks, callsite_id, row, callsite);
        ROW_SET(e->m->st, track_event_callstacks, weight, row, column_f64_word(weight));
    }
    if (moment != AT_BEGIN) /* nothing more comes for this slice */
        u64map_del(&e->t->callstack_rows, slice);
}
