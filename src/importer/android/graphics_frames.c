/* Imports what happens to the buffers of layers: each event is a slice on the track of its buffer, and the time between
 * two of them is a phase of the frame (app, GPU, SurfaceFlinger, display). */
#include "importer/android/android_internal.h"

#include "base/hash.h"
#include "base/saturate.h"

#include <inttypes.h>

enum event_type { UNSPECIFIED, DEQUEUE, QUEUE, POST, ACQUIRE_FENCE, LATCH, PRESENT_FENCE = 8, EVENT_TYPES = 14 };

static const char *const names[EVENT_TYPES + 1] = {"unspecified_event",
                                                   "Dequeue",
                                                   "Queue",
                                                   "Post",
                                                   "AcquireFenceSignaled",
                                                   "Latch",
                                                   "HWCCompositionQueued",
                                                   "FallbackComposition",
                                                   "PresentFenceSignaled",
                                                   "ReleaseFenceSignaled",
                                                   "Modify",
                                                   "Detach",
                                                   "Attach",
                                                   "Cancel",
                                                   "unknown_event"};

enum stage { NOTHING, DEQUEUED, QUEUED, LATCHED };

struct buffer {       /* of a layer */
    uint32_t dequeue; /* slice of the last event when that was a dequeue, else SLICE_NONE */
    int64_t acquired_ts, queued_ts, latched_ts;
    /* The phase it is in. */
    enum stage stage;
    uint32_t app; /* slice of the phase between dequeue and queue */
    int64_t app_ts;
    bool was_acquired;
};

struct graphics_buffers {
    struct u64map by_key; /* hash of (buffer, layer) -> index */
    VEC(struct buffer)
    list;
};

struct frame_event {
    struct packet *p;
    uint32_t type, frame_number, buffer_id;
    int64_t dur;
    strid layer;
    struct buffer *buffer;
};

void graphics_buffers_close(struct graphics_buffers *b)
{
    if (!b)
        return;
    u64map_free(&b->by_key);
    vec_free(&b->list);
    mem_free(b);
}

static struct buffer *buffer_of(struct machine_ctx *m, uint32_t id, strid layer)
{
    struct graphics_buffers *b = m->android->buffers;
    bool added = false;
    if (!b && !(b = m->android->buffers = mem_zalloc(sizeof *b)))
        return NULL;
    uint64_t *at = u64map_put(&b->by_key, (uint64_t)id << 32 | layer, &added);
    if (!at)
        return NULL;
    if (added) {
        *at = b->list.n;
        if (!vec_push(&b->list, (struct buffer){.dequeue = SLICE_NONE}))
            return NULL;
    }
    return *at < b->list.n ? &b->list.p[*at] : NULL;
}

static uint32_t track_named(struct machine_ctx *m, strid name)
{
    struct track_dim dim = {"name", DIM_STR, name};
    struct track_spec spec = {.type = "graphics_frame_event",
                              .event_type = TRACK_SLICE,
                              .name = name,
                              .parent = UINT32_MAX,
                              .dims = &dim,
                              .n_dims = 1};
    return track_intern(m->im->tracks, m->id, &spec);
}

/* The track of a phase: "APP_7 layer", and "Display_layer". */
static uint32_t phase_track(const struct frame_event *e, const char *phase)
{
    struct strpool *strings = &e->p->m->st->strings;
    struct slice layer = strpool_view(strings, e->layer);
    int len = (int)(layer.len < INT32_MAX ? layer.len : INT32_MAX);
    strid name = phase ? strpool_printf(strings, "%s_%u %.*s", phase, e->buffer_id, len, (const char *)layer.p)
                       : strpool_printf(strings, "Display_%.*s", len, (const char *)layer.p);
    return track_named(e->p->m, name);
}

static void put_frame(const struct frame_event *e, struct arg_list *list)
{
    struct args *args = &e->p->m->st->args;
    arg_list_int(args, list, "frame_number", e->frame_number);
    arg_list_str(args, list, "layer_name", e->layer);
}

static uint32_t begin_phase(const struct frame_event *e, const char *phase)
{
    struct machine_ctx *m = e->p->m;
    struct arg_list list = {0};
    put_frame(e, &list);
    strid name = e->frame_number ? strpool_printf(&m->st->strings, "%u", e->frame_number)
                                 : strpool_printf(&m->st->strings, "%" PRId64, e->p->ts);
    uint32_t slice = slice_begin(m->im->slices, m->id, e->p->ts, phase_track(e, phase), 0, name,
                                 args_intern(&m->st->args, list.p, list.n));
    arg_list_free(&list);
    return slice;
}

static void end_phase(const struct frame_event *e, const char *phase)
{
    slice_end(e->p->m->im->slices, e->p->m->id, e->p->ts, phase_track(e, phase), 0, 0, NULL);
}

/* Gives a slice the number of its frame, which only the queue event knows. */
static void set_frame_number(struct machine_ctx *m, uint32_t slice, uint32_t number)
{
    struct arg_list list = {0};
    if (slice == SLICE_NONE)
        return;
    arg_list_int(&m->st->args, &list, "frame_number", number);
    slice_add_args(m->im->slices, slice, &list);
    arg_list_free(&list);
}

static void name_app_slice(struct machine_ctx *m, uint32_t slice, uint32_t number)
{
    if (slice != SLICE_NONE)
        ROW_SET(m->st, slice, name, slice, strpool_printf(&m->st->strings, "%u", number));
}

/* The slice on the buffer's own track. */
static void buffer_event(struct frame_event *e)
{
    struct machine_ctx *m = e->p->m;
    struct buffer *b = e->buffer;
    int64_t ts = e->p->ts;
    uint32_t dequeue = b->dequeue;
    b->dequeue = SLICE_NONE;
    if (e->type == ACQUIRE_FENCE)
        b->acquired_ts = ts;
    else if (e->type == QUEUE)
        b->queued_ts = ts;
    else if (e->type == LATCH)
        b->latched_ts = ts;
    else if (e->type != DEQUEUE)
        stats_add(&m->st->stats, m->id, STAT_graphics_frame_event_parser_errors, 1);
    struct slice layer = strpool_view(&m->st->strings, e->layer);
    int len = (int)(layer.len < INT32_MAX ? layer.len : INT32_MAX);
    strid track = strpool_printf(&m->st->strings, "Buffer: %u %.*s", e->buffer_id, len, (const char *)layer.p);
    struct arg_list list = {0};
    struct args *args = &m->st->args;
    int64_t waited = saturating_sub(b->acquired_ts, b->queued_ts);
    put_frame(e, &list);
    arg_list_int(args, &list, "queue_to_acquire_time", waited > 0 ? waited : 0);
    arg_list_int(args, &list, "acquire_to_latch_time", saturating_sub(b->latched_ts, b->acquired_ts));
    arg_list_int(args, &list, "latch_to_present_time", saturating_sub(ts, b->latched_ts));
    uint32_t slice = slice_scoped(m->im->slices, m->id, ts, track_named(m, track), 0, import_str(m->im, names[e->type]),
                                  e->dur, args_intern(args, list.p, list.n));
    arg_list_free(&list);
    if (e->type == DEQUEUE)
        b->dequeue = slice;
    else if (e->type == QUEUE)
        set_frame_number(m, dequeue, e->frame_number);
}

/* Where the buffer is on its way from the app to the display. */
static void phase_event(struct frame_event *e)
{
    struct machine_ctx *m = e->p->m;
    struct buffer *b = e->buffer;
    bool lost_queue = b->stage == DEQUEUED && (e->type == DEQUEUE || e->type == LATCH);
    if (lost_queue)
        name_app_slice(m, b->app, 0);
    switch (e->type) {
    case DEQUEUE:
        b->app = begin_phase(e, "APP");
        b->app_ts = e->p->ts;
        b->stage = DEQUEUED;
        break;
    case QUEUE:
        if (b->stage != DEQUEUED)
            break;
        end_phase(e, "APP");
        name_app_slice(m, b->app, e->frame_number);
        set_frame_number(m, b->app, e->frame_number);
        b->stage = QUEUED;
        /* The fence may be signalled before the buffer is queued: then the GPU is done. */
        if (b->was_acquired && b->acquired_ts > b->app_ts)
            b->stage = NOTHING;
        else
            begin_phase(e, "GPU");
        break;
    case ACQUIRE_FENCE:
        if (b->stage == QUEUED)
            end_phase(e, "GPU");
        if (b->stage == QUEUED)
            b->stage = NOTHING;
        b->was_acquired = true;
        break;
    case LATCH:
        begin_phase(e, "SF");
        b->stage = LATCHED;
        break;
    case PRESENT_FENCE:
        if (b->stage == LATCHED)
            end_phase(e, "SF");
        b->stage = NOTHING;
        end_phase(e, NULL);
        begin_phase(e, NULL);
        break;
    }
}

void graphics_frame_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct frame_event e = {.p = p, .type = EVENT_TYPES};
    struct pb_field f;
    if (!pb_find(p->field, GRAPHICS_FRAME_EVENT_BUFFER_EVENT, &f))
        return;
    bool has_buffer = false;
    struct pb_cursor c = pb_sub(&f);
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case GRAPHICS_FRAME_EVENT_BUFFER_EVENT_FRAME_NUMBER:
            e.frame_number = pb_u32(&f);
            break;
        case GRAPHICS_FRAME_EVENT_BUFFER_EVENT_TYPE:
            e.type = pb_u32(&f) < EVENT_TYPES ? pb_u32(&f) : EVENT_TYPES;
            break;
        case GRAPHICS_FRAME_EVENT_BUFFER_EVENT_LAYER_NAME:
            e.layer = import_slice(m->im, pb_bytes(&f));
            break;
        case GRAPHICS_FRAME_EVENT_BUFFER_EVENT_DURATION_NS:
            e.dur = (int64_t)(pb_u64(&f) < INT64_MAX / 2 ? pb_u64(&f) : INT64_MAX / 2);
            break;
        case GRAPHICS_FRAME_EVENT_BUFFER_EVENT_BUFFER_ID:
            e.buffer_id = pb_u32(&f);
            has_buffer = true;
            break;
        }
    }
    if (!has_buffer) {
        stats_add(&m->st->stats, m->id, STAT_graphics_frame_event_parser_errors, 1);
        return;
    }
    if (!e.layer)
        e.layer = import_str(m->im, "no_layer_name");
    e.buffer = buffer_of(m, e.buffer_id, e.layer);
    if (!e.buffer) {
        m->im->failed = true;
        return;
    }
    buffer_event(&e);
    phase_event(&e);
}
