/* Flows: arrows from a slice to others that its event names by a number. */
#include "importer/track_event/event.h"

#include "importer/track/gpu_flows.h"
#include "wire/fields.h"

static void one_flow(struct event *e, uint32_t slice, uint64_t id, bool terminating)
{
    struct flow_tracker *flows = e->m->im->flows;
    if (terminating && flow_active(flows, id))
        flow_end_at(flows, e->m->id, slice, id, true);
    else if (terminating) /* nothing that began is ended */
        return;
    else if (flow_active(flows, id))
        flow_step_at(flows, e->m->id, slice, id);
    else
        flow_begin_at(flows, e->m->id, slice, id);
}

/* The flows of one field. False: the event has none, and its older field counts. */
static bool flows_of(struct event *e, uint32_t slice, uint32_t field, bool terminating, bool fixed64)
{
    struct pb_cursor c = pb_cursor(e->bytes);
    struct pb_field f;
    bool any = false;
    while (pb_next(&c, &f)) {
        if (f.id != field)
            continue;
        any = true;
        struct pb_cursor packed = pb_sub(&f);
        uint64_t id = f.u;
        if (f.wire != PB_BYTES) {
            one_flow(e, slice, id, terminating);
        } else if (fixed64) {
            for (; packed.end - packed.p >= 8; packed.p += 8) {
                memcpy(&id, packed.p, 8);
                one_flow(e, slice, id, terminating);
            }
        } else {
            while (pb_next_packed(&packed, &id))
                one_flow(e, slice, id, terminating);
        }
    }
    return any;
}

void event_flows(struct event *e, uint32_t slice)
{
    struct flow_tracker *flows = e->m->im->flows;
    if (LEGACY_HAS(e, TRACK_EVENT_LEGACY_EVENT_BIND_ID)) {
        switch (e->legacy.flow_direction) {
        case TRACK_EVENT_LEGACY_EVENT_FLOW_DIRECTION_FLOW_IN:
            flow_end_at(flows, e->m->id, slice, e->legacy.bind_id, false);
            break;
        case TRACK_EVENT_LEGACY_EVENT_FLOW_DIRECTION_FLOW_OUT:
            flow_begin_at(flows, e->m->id, slice, e->legacy.bind_id);
            break;
        case TRACK_EVENT_LEGACY_EVENT_FLOW_DIRECTION_FLOW_INOUT:
            flow_step_at(flows, e->m->id, slice, e->legacy.bind_id);
            break;
        default:
            stats_add(&e->m->st->stats, e->m->id, STAT_flow_without_direction, 1);
        }
    }
    if (!e->has_flows)
        return;
    if (!flows_of(e, slice, TRACK_EVENT_FLOW_IDS, false, true))
        flows_of(e, slice, TRACK_EVENT_FLOW_IDS_OLD, false, false);
    if (!flows_of(e, slice, TRACK_EVENT_TERMINATING_FLOW_IDS, true, true))
        flows_of(e, slice, TRACK_EVENT_TERMINATING_FLOW_IDS_OLD, true, false);
}

void event_gpu_flows(struct event *e, uint32_t slice)
{
    struct pb_field f;
    if (!pb_find(e->bytes, TRACK_EVENT_GPU_CORRELATION, &f))
        return;
    static const struct {
        uint32_t field;
        enum gpu_flow_side side;
    } sides[] = {{GPU_CORRELATION_RENDER_STAGE_SUBMISSION_EVENT_IDS, GPU_FLOW_TO_STAGE},
                 {GPU_CORRELATION_RENDER_STAGE_WAIT_EVENT_IDS, GPU_FLOW_FROM_STAGE}};
    uint64_t stage;
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
        for (struct pb_numbers n = pb_numbers(pb_bytes(&f), sides[i].field); pb_next_number(&n, &stage);)
            gpu_flows_connect(e->m->im, stage, slice, sides[i].side);
}
