/* Owns Android's frame timeline: when frames were expected, when they came and why they were late. Each frame is a
 * slice on a timeline of its process, named by its token; frames of layers lead to the frame of the display. */
#include "importer/system/system_internal.h"

#include "base/hash.h"
#include "importer/track/flow_tracker.h"
#include "importer/track/track_compressor.h"
#include "wire/fields.h"

#include <inttypes.h>
#include <stdio.h>

enum { SEC = 1000000000, FAR_END = 10 /* seconds before the end of time in which a timestamp is no time */ };
enum { N_FIELDS = FRAME_TIMELINE_EVENT_ACTUAL_SURFACE_FRAME_START_ANIMATION_TIME_MILLIS + 1 };

struct pending { /* a layer's frame that waits for the display's */
    uint32_t slice;
    uint32_t next; /* index + 1, 0: none */
};

struct frames {
    struct u64map open;     /* cookie -> track set */
    struct u64map expected; /* (upid, token) of layers -> 1, by hash of both */
    struct u64map waiting;  /* display token -> first << 32 | last, indices + 1 into pending */
    VEC(struct pending)
    pending;
};

enum kind { EXPECTED_DISPLAY, ACTUAL_DISPLAY, EXPECTED_SURFACE, ACTUAL_SURFACE, KINDS };

/* What a frame tells; both kinds of frames in one form, by numbers of ActualSurfaceFrameStart. */
struct frame {
    enum kind kind;
    uint32_t has; /* bits: fields that are there */
    int64_t value[N_FIELDS];
    double real[N_FIELDS];
    int64_t latched_unsignaled, addressable_unsignaled;
    bool has_latched, has_addressable;
    struct slice layer;
};

#define FIELD(name)       FRAME_TIMELINE_EVENT_ACTUAL_SURFACE_FRAME_START_##name
#define HAS(frame, name)  ((frame)->has >> FIELD(name) & 1)
#define IS(display, name) [FRAME_TIMELINE_EVENT_##display] = FIELD(name)

/* Number in the message of each kind -> number of ActualSurfaceFrameStart. */
static const uint8_t field_of[KINDS][N_FIELDS] = {
    [EXPECTED_DISPLAY] = {IS(EXPECTED_DISPLAY_FRAME_START_COOKIE, COOKIE),
                          IS(EXPECTED_DISPLAY_FRAME_START_TOKEN, TOKEN), IS(EXPECTED_DISPLAY_FRAME_START_PID, PID)},
    [EXPECTED_SURFACE] = {IS(EXPECTED_SURFACE_FRAME_START_COOKIE, COOKIE),
                          IS(EXPECTED_SURFACE_FRAME_START_TOKEN, TOKEN),
                          IS(EXPECTED_SURFACE_FRAME_START_DISPLAY_FRAME_TOKEN, DISPLAY_FRAME_TOKEN),
                          IS(EXPECTED_SURFACE_FRAME_START_PID, PID),
                          IS(EXPECTED_SURFACE_FRAME_START_LAYER_NAME, LAYER_NAME)},
    [ACTUAL_DISPLAY] = {IS(ACTUAL_DISPLAY_FRAME_START_COOKIE, COOKIE), IS(ACTUAL_DISPLAY_FRAME_START_TOKEN, TOKEN),
                        IS(ACTUAL_DISPLAY_FRAME_START_PID, PID),
                        IS(ACTUAL_DISPLAY_FRAME_START_PRESENT_TYPE, PRESENT_TYPE),
                        IS(ACTUAL_DISPLAY_FRAME_START_ON_TIME_FINISH, ON_TIME_FINISH),
                        IS(ACTUAL_DISPLAY_FRAME_START_GPU_COMPOSITION, GPU_COMPOSITION),
                        IS(ACTUAL_DISPLAY_FRAME_START_JANK_TYPE, JANK_TYPE),
                        IS(ACTUAL_DISPLAY_FRAME_START_PREDICTION_TYPE, PREDICTION_TYPE),
                        IS(ACTUAL_DISPLAY_FRAME_START_JANK_SEVERITY_TYPE, JANK_SEVERITY_TYPE),
                        IS(ACTUAL_DISPLAY_FRAME_START_PRESENT_DELAY_MILLIS, PRESENT_DELAY_MILLIS),
                        IS(ACTUAL_DISPLAY_FRAME_START_JANK_SEVERITY_SCORE, JANK_SEVERITY_SCORE),
                        IS(ACTUAL_DISPLAY_FRAME_START_JANK_TYPE_EXPERIMENTAL, JANK_TYPE_EXPERIMENTAL),
                        IS(ACTUAL_DISPLAY_FRAME_START_PRESENT_TYPE_EXPERIMENTAL, PRESENT_TYPE_EXPERIMENTAL),
                        IS(ACTUAL_DISPLAY_FRAME_START_JANK_DEBUG_METADATA, JANK_DEBUG_METADATA)},
};

static const uint32_t needed[KINDS] = {
    [EXPECTED_DISPLAY] = 1u << FIELD(COOKIE) | 1u << FIELD(TOKEN) | 1u << FIELD(PID),
    [ACTUAL_DISPLAY] = 1u << FIELD(COOKIE) | 1u << FIELD(TOKEN) | 1u << FIELD(PID),
    [EXPECTED_SURFACE] = 1u << FIELD(COOKIE) | 1u << FIELD(TOKEN) | 1u << FIELD(PID) | 1u << FIELD(DISPLAY_FRAME_TOKEN),
    [ACTUAL_SURFACE] = 1u << FIELD(COOKIE) | 1u << FIELD(TOKEN) | 1u << FIELD(PID) | 1u << FIELD(DISPLAY_FRAME_TOKEN),
};

void frames_close(struct frames *s)
{
    if (!s)
        return;
    u64map_free(&s->open);
    u64map_free(&s->expected);
    u64map_free(&s->waiting);
    vec_free(&s->pending);
    mem_free(s);
}

static void count_error(struct machine_ctx *m)
{
    stats_add(&m->st->stats, m->id, STAT_frame_timeline_event_parser_errors, 1);
}

static void read_frame(struct frame *frame, struct slice bytes)
{
    struct pb_field f;
    struct pb_cursor c = pb_cursor(bytes);
    while (pb_next(&c, &f)) {
        if (frame->kind == ACTUAL_DISPLAY &&
            f.id == FRAME_TIMELINE_EVENT_ACTUAL_DISPLAY_FRAME_START_LATCHED_UNSIGNALED_COUNT) {
            frame->has_latched = true;
            frame->latched_unsignaled = pb_i64(&f);
            continue;
        }
        if (frame->kind == ACTUAL_DISPLAY &&
            f.id == FRAME_TIMELINE_EVENT_ACTUAL_DISPLAY_FRAME_START_ADDRESSABLE_UNSIGNALED_LATCH_COUNT) {
            frame->has_addressable = true;
            frame->addressable_unsignaled = pb_i64(&f);
            continue;
        }
        if (f.id >= N_FIELDS)
            continue;
        uint32_t field = frame->kind == ACTUAL_SURFACE ? f.id : field_of[frame->kind][f.id];
        if (!field)
            continue;
        frame->has |= 1u << field;
        if (field == FIELD(LAYER_NAME))
            frame->layer = pb_bytes(&f);
        else if (f.wire == PB_FIXED32)
            frame->real[field] = (double)pb_float(&f);
        else
            frame->value[field] = pb_i64(&f);
    }
}

/* A text by number; numbers out of the list have that of 0. */
static const char *text_of(const char *const *texts, size_t n, int64_t value)
{
    return texts[value > 0 && (uint64_t)value < n ? value : 0];
}
#define TEXT_OF(texts, value) text_of(texts, sizeof(texts) / sizeof *(texts), value)

static const char *const present_types[] = {"Unspecified Present", "On-time Present", "Late Present",
                                            "Early Present",       "Dropped Frame",   "Unknown Present"};
static const char *const prediction_types[] = {"Unspecified Prediction", "Valid Prediction", "Expired Prediction",
                                               "Unknown Prediction"};
static const char *const severities[] = {"Unknown", "None", "Partial", "Full"};
static const char *const fence_states[] = {"Unknown", "Latched Signaled", "Latched Unsignaled",
                                           "Delayed Latch Fence Unsignaled"};

enum {
    JANK_UNSPECIFIED = 0,
    JANK_NONE = 1,
    JANK_OF_OTHERS = 2 | 4 | 8 | 16 | 32, /* of the display's side */
    JANK_OF_APP = 64 | 4096 | 256,
    JANK_BUFFER_STUFFING = 128,
    JANK_SF_STUFFING = 512,
    JANK_DROPPED = 1024,
    JANK_NON_ANIMATING = 2048,
    JANK_DISPLAY_NOT_ON = 8192,
    JANK_POWER_MODE_CHANGE = 32768,
    PRESENT_DROPPED = 4,
};

static strid jank_text(struct machine_ctx *m, int32_t jank)
{
    static const struct {
        uint32_t bit;
        const char *text;
    } names[] = {
        {2, "SurfaceFlinger Scheduling"},
        {4, "Prediction Error"},
        {8, "Display HAL"},
        {16, "SurfaceFlinger CPU Deadline Missed"},
        {32, "SurfaceFlinger GPU Deadline Missed"},
        {64, "App Deadline Missed"},
        {4096, "App Resynced Jitter"},
        {JANK_BUFFER_STUFFING, "Buffer Stuffing"},
        {256, "Unknown Jank"},
        {JANK_SF_STUFFING, "SurfaceFlinger Stuffing"},
        {JANK_DROPPED, "Dropped Frame"},
        {JANK_NON_ANIMATING, "Non Animating"},
        {JANK_DISPLAY_NOT_ON, "Display not ON"},
        {16384, "ModeChange in progress"},
        {JANK_POWER_MODE_CHANGE, "PowerModeChange in progress"},
    };
    if (jank == JANK_UNSPECIFIED)
        return import_str(m->im, "Unspecified");
    if (jank == JANK_NONE)
        return import_str(m->im, "None");
    char text[400] = ""; /* all of them take 331 bytes */
    size_t n = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((uint32_t)jank & names[i].bit)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? ", " : "", names[i].text);
    return import_str(m->im, text);
}

static const char *jank_tag(const struct frame *frame, int32_t jank, int64_t present_type)
{
    bool surface = frame->kind == ACTUAL_SURFACE;
    if (jank == JANK_UNSPECIFIED)
        return "Unspecified";
    if (surface && jank & JANK_OF_APP)
        return "Self Jank";
    if (jank & JANK_OF_OTHERS)
        return surface ? "Other Jank" : "Self Jank";
    if (surface && jank == JANK_BUFFER_STUFFING)
        return "Buffer Stuffing";
    if (jank == JANK_SF_STUFFING)
        return "SurfaceFlinger Stuffing";
    if (surface ? present_type == PRESENT_DROPPED : jank == JANK_DROPPED)
        return "Dropped Frame";
    if (jank == JANK_NON_ANIMATING || jank == JANK_DISPLAY_NOT_ON || jank == JANK_POWER_MODE_CHANGE)
        return "Non-perceivable Jank";
    return "No Jank";
}

struct writer { /* of the args of one frame */
    struct machine_ctx *m;
    struct arg_list list;
};

static void put_int(struct writer *w, const char *key, int64_t value)
{
    arg_list_int(&w->m->st->args, &w->list, key, value);
}

static void put_real(struct writer *w, const char *key, double value)
{
    arg_list_real(&w->m->st->args, &w->list, key, value);
}

static void put_text(struct writer *w, const char *key, const char *text)
{
    arg_list_str(&w->m->st->args, &w->list, key, import_str(w->m->im, text));
}

static void put_layer(struct writer *w, const struct frame *frame)
{
    arg_list_str(&w->m->st->args, &w->list, "Layer name",
                 HAS(frame, LAYER_NAME) ? import_slice(w->m->im, frame->layer) : 0);
}

/* What comes between the tokens of an actual frame and what only one kind has. */
static void put_actual(struct writer *w, const struct frame *frame)
{
    const int64_t *v = frame->value;
    bool surface = frame->kind == ACTUAL_SURFACE;
    int32_t jank = (int32_t)v[FIELD(JANK_TYPE)], experimental = (int32_t)v[FIELD(JANK_TYPE_EXPERIMENTAL)];
    int64_t present = v[FIELD(PRESENT_TYPE)], present_experimental = v[FIELD(PRESENT_TYPE_EXPERIMENTAL)];
    struct args *args = &w->m->st->args;
    put_real(w, "Present Delay (ms)", frame->real[FIELD(PRESENT_DELAY_MILLIS)]);
    if (surface) {
        put_real(w, "Vsync Resynced Jitter (ms)", frame->real[FIELD(VSYNC_RESYNCED_JITTER_MILLIS)]);
        put_layer(w, frame);
    }
    put_text(w, "Present type", TEXT_OF(present_types, present));
    put_text(w, "Present type (experimental)", TEXT_OF(present_types, present_experimental));
    put_int(w, "On time finish", v[FIELD(ON_TIME_FINISH)] != 0);
    put_int(w, "GPU composition", v[FIELD(GPU_COMPOSITION)] != 0);
    arg_list_str(args, &w->list, "Jank type", jank_text(w->m, jank));
    arg_list_str(args, &w->list, "Jank type (experimental)", jank_text(w->m, experimental));
    put_text(w, "Jank severity type",
             HAS(frame, JANK_SEVERITY_TYPE) ? TEXT_OF(severities, v[FIELD(JANK_SEVERITY_TYPE)])
                                            : severities[jank == JANK_NONE]);
    put_real(w, "Jank Severity Score", frame->real[FIELD(JANK_SEVERITY_SCORE)]);
    put_text(w, "Prediction type", TEXT_OF(prediction_types, v[FIELD(PREDICTION_TYPE)]));
    put_text(w, "Jank tag", jank_tag(frame, jank, present));
    put_text(w, "Jank tag (experimental)", jank_tag(frame, experimental, present_experimental));
    if (surface)
        put_text(w, "Is Buffer?", !HAS(frame, IS_BUFFER) ? "Unspecified" : v[FIELD(IS_BUFFER)] ? "Yes" : "No");
    put_real(w, "Jank Metadata (debugging only)", frame->real[FIELD(JANK_DEBUG_METADATA)]);
}

static argset args_of_frame(struct machine_ctx *m, const struct frame *frame)
{
    struct writer w = {.m = m};
    const int64_t *v = frame->value;
    bool surface = frame->kind == EXPECTED_SURFACE || frame->kind == ACTUAL_SURFACE;
    if (surface)
        put_int(&w, "Surface frame token", v[FIELD(TOKEN)]);
    put_int(&w, "Display frame token", v[surface ? FIELD(DISPLAY_FRAME_TOKEN) : FIELD(TOKEN)]);
    if (frame->kind == EXPECTED_SURFACE)
        put_layer(&w, frame);
    if (HAS(frame, ANIMATION_TIME_MILLIS))
        put_real(&w, "Animation Time (ms)", frame->real[FIELD(ANIMATION_TIME_MILLIS)]);
    if (frame->kind == ACTUAL_SURFACE || frame->kind == ACTUAL_DISPLAY)
        put_actual(&w, frame);
    if (HAS(frame, LATCHED_FENCE_STATE))
        put_text(&w, "Latched fence state", TEXT_OF(fence_states, v[FIELD(LATCHED_FENCE_STATE)]));
    if (frame->has_latched)
        put_int(&w, "Latched unsignaled count", frame->latched_unsignaled);
    if (frame->has_addressable)
        put_int(&w, "Addressable unsignaled latch count", frame->addressable_unsignaled);
    argset set = args_intern(&m->st->args, w.list.p, w.list.n);
    arg_list_free(&w.list);
    return set;
}

/* Remembers a layer's frame until the display's comes. */
static bool wait_for_display(struct frames *s, uint64_t token, uint32_t slice)
{
    uint64_t *v = u64map_put(&s->waiting, token, NULL);
    if (!v || !vec_push(&s->pending, (struct pending){slice, 0}))
        return false;
    uint32_t first = (uint32_t)(*v >> 32), last = (uint32_t)*v, own = (uint32_t)s->pending.n;
    if (last)
        s->pending.p[last - 1].next = own;
    *v = (uint64_t)(first ? first : own) << 32 | own;
    return true;
}

static void link_layers(struct machine_ctx *m, struct frames *s, uint64_t token, uint32_t display)
{
    const uint64_t *v = u64map_get(&s->waiting, token);
    if (!v)
        return;
    for (uint32_t i = (uint32_t)(*v >> 32); i; i = s->pending.p[i - 1].next)
        flow_between(m->im->flows, s->pending.p[i - 1].slice, display);
    u64map_del(&s->waiting, token);
    if (!s->waiting.n)
        vec_clear(&s->pending);
}

static bool is_actual(enum kind kind)
{
    return kind == ACTUAL_DISPLAY || kind == ACTUAL_SURFACE;
}

static void begin_frame(struct packet *p, struct frames *s, const struct frame *frame)
{
    struct machine_ctx *m = p->m;
    const int64_t *v = frame->value;
    uint32_t upid = process_tracker_process(m->processes, (int32_t)v[FIELD(PID)]);
    uint64_t cookie = (uint64_t)v[FIELD(COOKIE)], token = (uint64_t)v[FIELD(TOKEN)];
    if (frame->kind == EXPECTED_SURFACE) { /* an app expects a frame once, however many layers it has */
        bool added;
        uint64_t *known = u64map_put(&s->expected, hash_keyed(m->im->secret, token, upid), &added);
        if (!known || !added) {
            m->im->failed |= !known;
            return;
        }
        *known = 1;
    }
    bool actual = is_actual(frame->kind);
    /* Each value that says nothing is an error; yet the frame is shown. */
    if (actual && TEXT_OF(present_types, v[FIELD(PRESENT_TYPE)]) == present_types[0])
        count_error(m);
    if (actual && TEXT_OF(prediction_types, v[FIELD(PREDICTION_TYPE)]) == prediction_types[0])
        count_error(m);
    struct track_dim upid_dim = {"upid", DIM_INT, upid};
    struct track_spec spec = {.type = actual ? "android_actual_frame_timeline" : "android_expected_frame_timeline",
                              .event_type = TRACK_SLICE,
                              .name = import_str(m->im, actual ? "Actual Timeline" : "Expected Timeline"),
                              .parent = UINT32_MAX,
                              .dims = &upid_dim,
                              .n_dims = 1};
    uint32_t set = track_set_intern(m->im->tracks, m->id, &spec);
    uint32_t track = set == TRACK_SET_NONE ? UINT32_MAX : track_set_begin(m->im->tracks, set, (int64_t)cookie);
    if (track == UINT32_MAX || !u64map_set(&s->open, cookie, set)) {
        m->im->failed = true;
        return;
    }
    strid name = strpool_printf(&m->st->strings, "%" PRId64, (int64_t)token);
    uint32_t slice = slice_begin(m->im->slices, m->id, p->ts, track, 0, name, args_of_frame(m, frame));
    if (slice == SLICE_NONE)
        return;
    if (frame->kind == ACTUAL_SURFACE)
        m->im->failed |= !wait_for_display(s, (uint64_t)v[FIELD(DISPLAY_FRAME_TOKEN)], slice);
    else if (frame->kind == ACTUAL_DISPLAY)
        link_layers(m, s, token, slice);
}

static void end_frame(struct packet *p, struct frames *s, struct slice bytes)
{
    struct machine_ctx *m = p->m;
    struct pb_field f;
    if (!pb_find(bytes, FRAME_TIMELINE_EVENT_FRAME_END_COOKIE, &f)) {
        count_error(m);
        return;
    }
    const uint64_t *set = u64map_get(&s->open, pb_u64(&f));
    if (!set) {
        stats_add(&m->st->stats, m->id, STAT_frame_timeline_unpaired_end_event, 1);
        return;
    }
    uint32_t track = track_set_end(m->im->tracks, (uint32_t)*set, pb_i64(&f));
    u64map_del(&s->open, pb_u64(&f));
    if (track != UINT32_MAX)
        slice_end(m->im->slices, m->id, p->ts, track, 0, 0, NULL);
}

void frame_timeline_parse(struct packet *p)
{
    static const uint8_t kinds[] = {
        [FRAME_TIMELINE_EVENT_EXPECTED_DISPLAY_FRAME_START] = EXPECTED_DISPLAY,
        [FRAME_TIMELINE_EVENT_ACTUAL_DISPLAY_FRAME_START] = ACTUAL_DISPLAY,
        [FRAME_TIMELINE_EVENT_EXPECTED_SURFACE_FRAME_START] = EXPECTED_SURFACE,
        [FRAME_TIMELINE_EVENT_ACTUAL_SURFACE_FRAME_START] = ACTUAL_SURFACE,
    };
    struct system_machine *system = p->m->system;
    if (!system->frames && !(system->frames = mem_zalloc(sizeof *system->frames))) {
        p->m->im->failed = true;
        return;
    }
    if (p->ts < 0 || p->ts > INT64_MAX - FAR_END * (int64_t)SEC) {
        count_error(p->m);
        return;
    }
    struct pb_field f;
    struct pb_cursor c = pb_cursor(p->field);
    while (pb_next(&c, &f)) {
        if (f.wire != PB_BYTES)
            continue;
        if (f.id == FRAME_TIMELINE_EVENT_FRAME_END) {
            end_frame(p, system->frames, pb_bytes(&f));
            return;
        }
        if (f.id == 0 || f.id >= sizeof kinds)
            continue;
        struct frame frame = {.kind = kinds[f.id]};
        read_frame(&frame, pb_bytes(&f));
        if ((frame.has & needed[frame.kind]) == needed[frame.kind])
            begin_frame(p, system->frames, &frame);
        else
            count_error(p->m);
        return;
    }
    count_error(p->m); /* nothing that is known */
}
