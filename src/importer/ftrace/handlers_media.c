/* Events of virtual media devices: virtio-gpu and virtio-video commands. */
#include "base/hash.h"
#include "importer/ftrace/ftrace_internal.h"
#include "wire/fields.h"

struct media {
    struct u64map started; /* queue << 32 | seqno of commands without a fence -> ts */
};

static void release(void *state)
{
    u64map_free(&((struct media *)state)->started);
}

/* --- virtio-gpu -------------------------------------------------------------------------------------------------- */

/* Numbers of the virtio specification; a run of names from a first number on. */
static const char *const gpu_2d[] = {"GET_DISPLAY_INFO",
                                     "RESOURCE_CREATE_2D",
                                     "RESOURCE_UNREF",
                                     "SET_SCANOUT",
                                     "RESOURCE_FLUSH",
                                     "TRANSFER_TO_HOST_2D",
                                     "RESOURCE_ATTACH_BACKING",
                                     "RESOURCE_DETACH_BACKING",
                                     "GET_CAPSET_INFO",
                                     "GET_CAPSET",
                                     "GET_EDID",
                                     "RESOURCE_ASSIGN_UUID",
                                     "RESOURCE_CREATE_BLOB",
                                     "SET_SCANOUT_BLOB"};
static const char *const gpu_3d[] = {
    "CTX_CREATE",         "CTX_DESTROY",         "CTX_ATTACH_RESOURCE",   "CTX_DETACH_RESOURCE",
    "RESOURCE_CREATE_3D", "TRANSFER_TO_HOST_3D", "TRANSFER_FROM_HOST_3D", "SUBMIT_3D",
    "RESOURCE_MAP_BLOB",  "RESOURCE_UNMAP_BLOB"};
static const char *const gpu_cursor[] = {"UPDATE_CURSOR", "MOVE_CURSOR"};
static const char *const video_commands[] = {
    "QUERY_CAPABILITY", "STREAM_CREATE",        "STREAM_DESTROY", "STREAM_DRAIN",   "RESOURCE_CREATE",
    "RESOURCE_QUEUE",   "RESOURCE_DESTROY_ALL", "QUEUE_CLEAR",    "GET_PARAMS",     "SET_PARAMS",
    "QUERY_CONTROL",    "GET_CONTROL",          "SET_CONTROL",    "GET_PARAMS_EXT", "SET_PARAMS_EXT"};

struct names {
    uint32_t first, n;
    const char *const *names;
};
#define NAMES(first, table)                                                                                            \
    {                                                                                                                  \
        first, sizeof table / sizeof *table, table                                                                     \
    }
static const struct names gpu_names[] = {NAMES(0x100, gpu_2d), NAMES(0x200, gpu_3d), NAMES(0x300, gpu_cursor)};
static const struct names video_names[] = {NAMES(0x100, video_commands)};

static const char *find_name(const struct names *runs, size_t n, uint32_t number, const char *otherwise)
{
    for (size_t i = 0; i < n; i++)
        if (number >= runs[i].first && number - runs[i].first < runs[i].n)
            return runs[i].names[number - runs[i].first];
    return otherwise;
}

static void gpu_command(const struct ftrace_event *e, bool response)
{
    static const char *const queues[] = {"Control", "Cursor"};
    struct media *s = ftrace_family_state(e->f, FAMILY_MEDIA, sizeof *s, release);
    struct fields f;
    fields_read(e->payload, &f);
    struct slice queue_name = field_bytes(&f, FTRACE_VIRTIO_GPU_CMD_QUEUE_NAME);
    int queue = slice_eq_str(queue_name, "control") ? 0 : slice_eq_str(queue_name, "cursor") ? 1 : -1;
    if (!s || queue < 0)
        return;
    uint32_t seqno = field_u32(&f, FTRACE_VIRTIO_GPU_CMD_QUEUE_SEQNO);
    uint64_t key = (uint64_t)queue << 32 | seqno;
    strid free_name = ftrace_name(e, "Virtgpu %s Free", queues[queue]);
    strid which = ftrace_text(e, queues[queue]);
    ftrace_counter(e, FTRACE_TRACK(e, TRACK_COUNTER, "virtgpu_num_free", free_name, DIM_S("virtgpu_name", which)),
                   field_u32(&f, FTRACE_VIRTIO_GPU_CMD_QUEUE_NUM_FREE));
    struct track_dim dim = DIM_S("virtgpu_name", which);
    uint32_t set =
        ftrace_track_set(e, "virtgpu_queue_event", ftrace_name(e, "Virtgpu %s Queue", queues[queue]), &dim, 1);
    if (!response) {
        const char *name = find_name(gpu_names, sizeof gpu_names / sizeof *gpu_names,
                                     field_u32(&f, FTRACE_VIRTIO_GPU_CMD_QUEUE_TYPE), "");
        ftrace_begin(e, track_set_begin(e->m->im->tracks, set, seqno), 0, ftrace_text(e, name), ARGSET_NONE);
        /* The host answers a command with a fence when it likes: that is not a latency. */
        if (!field_u64(&f, FTRACE_VIRTIO_GPU_CMD_QUEUE_FENCE_ID) && !u64map_set(&s->started, key, (uint64_t)e->ts))
            e->m->im->failed = true;
        return;
    }
    ftrace_end(e, track_set_end(e->m->im->tracks, set, seqno), 0, 0, NULL);
    const uint64_t *started = u64map_get(&s->started, key);
    if (!started)
        return;
    strid latency = ftrace_name(e, "Virtgpu %s Latency", queues[queue]);
    ftrace_counter(e, FTRACE_TRACK(e, TRACK_COUNTER, "virtgpu_latency", latency, DIM_S("virtgpu_name", which)),
                   (double)(e->ts - (int64_t)*started));
    u64map_del(&s->started, key);
}

static void virtio_gpu_cmd_queue(const struct ftrace_event *e)
{
    gpu_command(e, false);
}

static void virtio_gpu_cmd_response(const struct ftrace_event *e)
{
    gpu_command(e, true);
}

/* --- virtio-video ------------------------------------------------------------------------------------------------ */

enum { COMMAND_NS = 100000 }; /* how long a command is shown */

static void video_command(const struct ftrace_event *e, bool response)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t stream = field_u32(&f, FTRACE_VIRTIO_VIDEO_CMD_STREAM_ID);
    const char *what = response ? "Responses" : "Requests";
    struct track_dim dims[] = {DIM_I("virtio_stream_id", stream), DIM_I("is_response", response)};
    uint32_t set = ftrace_track_set(e, "virtio_video_command",
                                    ftrace_name(e, "virtio_video stream #%u %s", stream, what), dims, 2);
    const char *name = find_name(video_names, 1, field_u32(&f, FTRACE_VIRTIO_VIDEO_CMD_TYPE), "Unknown");
    slice_scoped(e->m->im->slices, e->m->id, e->ts, track_set_scoped(e->m->im->tracks, set, e->ts, COMMAND_NS), 0,
                 ftrace_text(e, name), COMMAND_NS, ARGSET_NONE);
}

static void virtio_video_cmd(const struct ftrace_event *e)
{
    video_command(e, false);
}

static void virtio_video_cmd_done(const struct ftrace_event *e)
{
    video_command(e, true);
}

static const char *video_queue_name(uint32_t type)
{
    return type == 0x100 ? "INPUT" : type == 0x101 ? "OUTPUT" : "Unknown";
}

static void video_resource(const struct ftrace_event *e, bool done)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    int32_t stream = field_i32(&f, FTRACE_VIRTIO_VIDEO_RESOURCE_QUEUE_STREAM_ID),
            resource = field_i32(&f, FTRACE_VIRTIO_VIDEO_RESOURCE_QUEUE_RESOURCE_ID);
    uint32_t type = field_u32(&f, FTRACE_VIRTIO_VIDEO_RESOURCE_QUEUE_QUEUE_TYPE);
    strid queue = ftrace_text(e, video_queue_name(type));
    struct track_dim dims[] = {DIM_I("virtio_stream_id", (uint32_t)stream), DIM_I("virtio_queue_type", type)};
    uint32_t set = ftrace_track_set(
        e, "virtio_video_queue_event",
        ftrace_name(e, "virtio_video stream #%u %s", (uint32_t)stream, video_queue_name(type)), dims, 2);
    int64_t cookie = (int64_t)hash_keyed(e->m->im->secret, (uint32_t)stream, (uint64_t)(uint32_t)resource << 32 | type);
    if (!done) {
        ftrace_begin(e, track_set_begin(e->m->im->tracks, set, cookie), 0,
                     ftrace_name(e, "Resource #%u", (uint32_t)resource), ARGSET_NONE);
        return;
    }
    small_args_add(e, &args, "stream_id", ARG_INT, stream);
    small_args_add(e, &args, "resource_id", ARG_INT, resource);
    small_args_add(e, &args, "queue_type", ARG_STRING, queue);
    small_args_add(e, &args, "data_size0", ARG_INT, field_u32(&f, FTRACE_VIRTIO_VIDEO_RESOURCE_QUEUE_DATA_SIZE0));
    small_args_add(e, &args, "data_size1", ARG_INT, field_u32(&f, FTRACE_VIRTIO_VIDEO_RESOURCE_QUEUE_DATA_SIZE1));
    small_args_add(e, &args, "data_size2", ARG_INT, field_u32(&f, FTRACE_VIRTIO_VIDEO_RESOURCE_QUEUE_DATA_SIZE2));
    small_args_add(e, &args, "data_size3", ARG_INT, field_u32(&f, FTRACE_VIRTIO_VIDEO_RESOURCE_QUEUE_DATA_SIZE3));
    small_args_add(e, &args, "timestamp", ARG_UINT, field_i64(&f, FTRACE_VIRTIO_VIDEO_RESOURCE_QUEUE_TIMESTAMP));
    struct arg_list list = small_args_list(&args);
    ftrace_end(e, track_set_end(e->m->im->tracks, set, cookie), 0, 0, &list);
}

static void virtio_video_resource_queue(const struct ftrace_event *e)
{
    video_resource(e, false);
}

static void virtio_video_resource_queue_done(const struct ftrace_event *e)
{
    video_resource(e, true);
}

const struct ftrace_handler ftrace_handlers_media[] = {
    {FTRACE_EVENT_VIRTIO_VIDEO_CMD, "virtio_video_cmd", virtio_video_cmd},
    {FTRACE_EVENT_VIRTIO_VIDEO_CMD_DONE, "virtio_video_cmd_done", virtio_video_cmd_done},
    {FTRACE_EVENT_VIRTIO_VIDEO_RESOURCE_QUEUE, "virtio_video_resource_queue", virtio_video_resource_queue},
    {FTRACE_EVENT_VIRTIO_VIDEO_RESOURCE_QUEUE_DONE, "virtio_video_resource_queue_done",
     virtio_video_resource_queue_done},
    {FTRACE_EVENT_VIRTIO_GPU_CMD_QUEUE, "virtio_gpu_cmd_queue", virtio_gpu_cmd_queue},
    {FTRACE_EVENT_VIRTIO_GPU_CMD_RESPONSE, "virtio_gpu_cmd_response", virtio_gpu_cmd_response},
    {0, NULL, NULL},
};
