/* Imports the call stacks of track events: where a slice began, and where it ended. */
#include "importer/profiling/stack_profile.h"
#include "importer/track_event/event.h"
#include "wire/fields.h"

void event_callstack(struct event *e, uint32_t slice, enum track_event_moment moment)
{
    struct storage *st = e->m->st;
    uint32_t callsite = CALLSITE_NONE;
    uint32_t upid = e->upid == UPID_NONE && e->utid != UTID_NONE
                        ? process_tracker_thread_process(e->m->processes, e->utid)
                        : e->upid;
    double weight = column_f64(COL_NULL_F64);
    struct pb_cursor c = pb_cursor(e->bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == TRACK_EVENT_CALLSTACK)
            callsite = stack_profile_inline(e->m, pb_bytes(&f), "track_event_inline");
        else if (f.id == TRACK_EVENT_CALLSTACK_IID)
            callsite = stack_profile_interned(e->m, e->g, upid, pb_u64(&f));
        else if (f.id == TRACK_EVENT_CALLSTACK_WEIGHT)
            weight = pb_double(&f);
    }
    if (callsite == CALLSITE_NONE)
        return;
    bool ends = moment == AT_END;
    track_event_callstacks_insert(
        st, &(struct track_event_callstacks_row){.slice_id = slice,
                                                 .track_id = ROW_GET(st, slice, track_id, slice),
                                                 .callsite_id = ends ? COL_NULL : (int64_t)callsite,
                                                 .end_callsite_id = ends ? (int64_t)callsite : COL_NULL,
                                                 .weight = weight});
}
