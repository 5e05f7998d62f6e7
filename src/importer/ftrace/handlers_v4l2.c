/* Events of Video4Linux buffers: instants of the thread, with a flow from queueing a buffer to getting it back. */
#include "base/hash.h"
#include "importer/ftrace/ftrace_internal.h"
#include "wire/fields.h"

struct v4l2 {
    struct u64map queued; /* hash of (minor, sequence, type, index) -> slice that queued the buffer */
};

static void release(void *state)
{
    u64map_free(&((struct v4l2 *)state)->queued);
}

/* Names of linux/videodev2.h without their prefixes, by number. */
static const char *const buffer_types[] = {
    NULL,
    "VIDEO_CAPTURE",
    "VIDEO_OUTPUT",
    "VIDEO_OVERLAY",
    "VBI_CAPTURE",
    "VBI_OUTPUT",
    "SLICED_VBI_CAPTURE",
    "SLICED_VBI_OUTPUT",
    "VIDEO_OUTPUT_OVERLAY",
    "VIDEO_CAPTURE_MPLANE",
    "VIDEO_OUTPUT_MPLANE",
    "SDR_CAPTURE",
    "SDR_OUTPUT",
    "META_CAPTURE",
    "META_OUTPUT",
};
static const char *const field_orders[] = {"ANY",    "NONE",   "TOP",       "BOTTOM",        "INTERLACED",
                                           "SEQ_TB", "SEQ_BT", "ALTERNATE", "INTERLACED_TB", "INTERLACED_BT"};
static const char *const timecode_types[] = {NULL, "24FPS", "25FPS", "30FPS", "50FPS", "60FPS"};

/* A name is there when any bit of the mask is set, or, with `exactly`, when the masked bits are `value`. */
struct flag {
    uint32_t mask;
    uint32_t value;
    bool exactly;
    const char *name;
};
static const struct flag buffer_flags[] = {
    {0x1, 0, false, "MAPPED"},
    {0x2, 0, false, "QUEUED"},
    {0x4, 0, false, "DONE"},
    {0x8, 0, false, "KEYFRAME"},
    {0x10, 0, false, "PFRAME"},
    {0x20, 0, false, "BFRAME"},
    {0x40, 0, false, "ERROR"},
    {0x80, 0, false, "IN_REQUEST"},
    {0x100, 0, false, "TIMECODE"},
    {0x200, 0, false, "M2M_HOLD_CAPTURE_BUF"},
    {0x400, 0, false, "PREPARED"},
    {0x800, 0, false, "NO_CACHE_INVALIDATE"},
    {0x1000, 0, false, "NO_CACHE_CLEAN"},
    {0xe000, 0, false, "TIMESTAMP_MASK"},
    {0x2000, 0, false, "TIMESTAMP_MONOTONIC"},
    {0x4000, 0, false, "TIMESTAMP_COPY"},
    {0x70000, 0, false, "TSTAMP_SRC_MASK"},
    {0x10000, 0, false, "TSTAMP_SRC_SOE"},
    {0x100000, 0, false, "LAST"},
    {0x800000, 0, false, "REQUEST_FD"},
};
static const struct flag timecode_flags[] = {
    {0x1, 0, false, "FLAG_DROPFRAME"},      {0x2, 0, false, "FLAG_COLORFRAME"},
    {0xc, 0x4, true, "USERBITS_field(01)"}, {0xc, 0x8, true, "USERBITS_field(10)"},
    {0xc, 0xc, true, "USERBITS_field(11)"}, {0x8, 0, false, "USERBITS_8BITCHARS"},
};

static strid flags_text(const struct ftrace_event *e, const struct flag *flags, size_t n, uint32_t value)
{
    char text[512];
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        bool set = flags[i].exactly ? (value & flags[i].mask) == flags[i].value : (value & flags[i].mask) != 0;
        size_t name = strlen(flags[i].name);
        if (!set || len + name + 1 >= sizeof text)
            continue;
        if (len)
            text[len++] = '|';
        memcpy(text + len, flags[i].name, name);
        len += name;
    }
    return import_slice(e->m->im, slice_of(text, len));
}

static strid number_name(const struct ftrace_event *e, const char *const *names, size_t n, uint32_t number)
{
    return number < n && names[number] ? ftrace_text(e, names[number]) : 0;
}
#define NUMBER_NAME(e, names, number) number_name((e), (names), sizeof(names) / sizeof *(names), (number))

/* Where the events keep what they say; 0: they do not say it. */
static const struct layout {
    uint32_t id;
    const char *name;
    uint8_t index, type, bytesused; /* of the two ioctls only */

} layouts[] = {
    {422, "VIDIOC_QBUF", 4, 18, 1},      {423, "VIDIOC_DQBUF", 4, 18, 1}, {424, "vb2_v4l2_buf_queue", 0, 0, 0},
    {425, "vb2_v4l2_buf_done", 0, 0, 0}, {426, "vb2_v4l2_qbuf", 0, 0, 0}, {427, "vb2_v4l2_qbuf", 0, 0, 0},
};
static void v4l2_event(const struct ftrace_event *e)
{
    struct v4l2 *s = ftrace_family_state(e->f, FAMILY_V4L2, sizeof *s, release);
    const struct layout *l = layouts;
    struct small_args args = {0};
    struct fields f;
    while (l->id != e->id)
        l++;
    fields_read(e->payload, &f);
    bool ioctl = l->index != 0;
    /* The numbers of the fields that all have: the ioctls put index and bytesused between them. */
    unsigned order = ioctl ? 2 : 1, flags = ioctl ? 3 : 2, minor = ioctl ? 5 : 3, sequence = ioctl ? 6 : 4;
    unsigned timecode = ioctl ? 7 : 5; /* flags, frames, hours, minutes, seconds, type, four user bits, timestamp */
    uint32_t type = field_u32(&f, l->type), index = field_u32(&f, l->index);
    strid name = ftrace_name(e, "%s minor=%u seq=%u type=%u index=%u", l->name, field_u32(&f, minor),
                             field_u32(&f, sequence), type, index);
    small_args_add(e, &args, "minor", ARG_INT, field_u32(&f, minor));
    if (ioctl) {
        small_args_add(e, &args, "index", ARG_INT, index);
        small_args_add(e, &args, "type", ARG_STRING,
                       type == 0x80 ? ftrace_text(e, "PRIVATE") : NUMBER_NAME(e, buffer_types, type));
        small_args_add(e, &args, "bytesused", ARG_INT, field_u32(&f, l->bytesused));
    }
    small_args_add(e, &args, "flags", ARG_STRING,
                   flags_text(e, buffer_flags, sizeof buffer_flags / sizeof *buffer_flags, field_u32(&f, flags)));
    small_args_add(e, &args, "field", ARG_STRING, NUMBER_NAME(e, field_orders, field_u32(&f, order)));
    small_args_add(e, &args, "timestamp", ARG_INT, field_i64(&f, timecode + 10));
    small_args_add(e, &args, "timecode_type", ARG_STRING, NUMBER_NAME(e, timecode_types, field_u32(&f, timecode + 5)));
    uint32_t tc_flags = field_u32(&f, timecode);
    small_args_add(e, &args, "timecode_flags", ARG_STRING,
                   tc_flags ? flags_text(e, timecode_flags, sizeof timecode_flags / sizeof *timecode_flags, tc_flags)
                            : 0);
    small_args_add(e, &args, "timecode_frames", ARG_INT, field_u32(&f, timecode + 1));
    small_args_add(e, &args, "timecode_seconds", ARG_INT, field_u32(&f, timecode + 4));
    small_args_add(e, &args, "timecode_minutes", ARG_INT, field_u32(&f, timecode + 3));
    small_args_add(e, &args, "timecode_hours", ARG_INT, field_u32(&f, timecode + 2));
    for (unsigned i = 0; i < 4; i++) {
        static const char *const keys[] = {"timecode_userbits0", "timecode_userbits1", "timecode_userbits2",
                                           "timecode_userbits3"};
        small_args_add(e, &args, keys[i], ARG_INT, field_u32(&f, timecode + 6 + i));
    }
    small_args_add(e, &args, "sequence", ARG_INT, field_u32(&f, sequence));
    uint32_t slice = ftrace_instant(e, ftrace_thread_track(e, event_utid(e)), ftrace_text(e, "Video 4 Linux 2"), name,
                                    small_args_set(e, &args));
    if (!s || !ioctl || slice == SLICE_NONE)
        return;
    uint64_t key = hash_keyed(e->m->im->secret, (uint64_t)field_u32(&f, minor) << 32 | field_u32(&f, sequence),
                              (uint64_t)type << 32 | index);
    if (e->id == FTRACE_EVENT_V4L2_QBUF) {
        if (!u64map_set(&s->queued, key, slice))
            e->m->im->failed = true;
        return;
    }
    const uint64_t *from = u64map_get(&s->queued, key);
    if (from) {
        flow_insert(e->m->st, &(struct flow_row){.slice_out = (int64_t)*from, .slice_in = slice, .trace_id = COL_NULL});
        u64map_del(&s->queued, key);
    }
}

const struct ftrace_handler ftrace_handlers_v4l2[] = {
    {FTRACE_EVENT_V4L2_QBUF, "v4l2_qbuf", v4l2_event},
    {FTRACE_EVENT_V4L2_DQBUF, "v4l2_dqbuf", v4l2_event},
    {FTRACE_EVENT_VB2_V4L2_BUF_QUEUE, "vb2_v4l2_buf_queue", v4l2_event},
    {FTRACE_EVENT_VB2_V4L2_BUF_DONE, "vb2_v4l2_buf_done", v4l2_event},
    {FTRACE_EVENT_VB2_V4L2_QBUF, "vb2_v4l2_qbuf", v4l2_event},
    {FTRACE_EVENT_VB2_V4L2_DQBUF, "vb2_v4l2_dqbuf", v4l2_event},
    {0, NULL, NULL},
};
