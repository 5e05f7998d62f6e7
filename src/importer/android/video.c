/* Imports frames of videos of the display, with their pictures, and why recording one failed. */
#include "importer/android/android_internal.h"

#include "importer/clock/clock_graph.h"

enum {
    NS_IN_US = 1000,
    MAX_STREAM_BYTES = 1 << 28, /* of the pictures of one display */
};

struct video_stream { /* of a display: what its last packets said */
    strid name, codec;
    uint64_t bytes;
};

struct video_frame {
    struct video_frames_row row;
    strid data;
};

struct videos {
    struct machine_ctx *m;
    uint32_t queue;
    struct u64map displays; /* display -> index of streams */
    VEC(struct video_stream)
    streams;
    VEC(struct video_frame)
    frames;
};

void videos_close(struct videos *v)
{
    if (!v)
        return;
    u64map_free(&v->displays);
    vec_free(&v->streams);
    vec_free(&v->frames);
    mem_free(v);
}

static void parse_frames(void *owner, const struct sort_event *events, size_t n)
{
    struct videos *v = owner;
    for (size_t i = 0; i < n; i++) {
        struct video_frame *frame = &v->frames.p[events[i].a];
        frame->row.ts = events[i].ts;
        if (video_frames_insert(v->m->st, &frame->row) != UINT32_MAX && !vec_push(&v->m->st->video_data, frame->data))
            v->m->im->failed = true;
    }
}

static struct videos *videos_of(struct machine_ctx *m)
{
    struct videos *v = m->android->videos;
    if (v)
        return v;
    v = mem_zalloc(sizeof *v);
    if (!v)
        return NULL;
    v->m = m;
    v->queue = sorter_add_queue(m->im->sorter, parse_frames, v);
    if (v->queue == UINT32_MAX) {
        mem_free(v);
        return NULL;
    }
    return m->android->videos = v;
}

static struct video_stream *stream_of(struct videos *v, uint32_t display)
{
    bool added = false;
    uint64_t *at = u64map_put(&v->displays, display, &added);
    if (!at)
        return NULL;
    if (added) {
        *at = v->streams.n;
        if (!vec_push(&v->streams, (struct video_stream){0}))
            return NULL;
    }
    return *at < v->streams.n ? &v->streams.p[*at] : NULL;
}

/* The bytes of a frame; none for those of a stream that has more than the limit. */
static strid keep_data(struct packet *p, struct video_stream *s, struct slice data)
{
    if (data.len > MAX_STREAM_BYTES - s->bytes) {
        import_log(p->m, STAT_android_video_parse_size_cap_hit, p->ts, p->byte_offset, ARGSET_NONE);
        return 0;
    }
    s->bytes += data.len;
    return import_slice(p->m->im, data);
}

/* Long: one case a field. */
enum tokenize_result video_frame_tokenize(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct videos *v = videos_of(m);
    uint32_t display = (uint32_t)android_number(p->field, VIDEO_FRAME_DISPLAY_ID);
    struct video_stream *s = v ? stream_of(v, display) : NULL;
    if (!s) {
        m->im->failed = true;
        return TOKENIZE_DONE;
    }
    struct video_frames_row row = {.display_id = (int32_t)display,
                                   .codec = 0,
                                   .is_key_frame = COL_NULL,
                                   .pts_us = COL_NULL,
                                   .is_config = COL_NULL};
    bool has_data = false;
    struct slice data = {0};
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case VIDEO_FRAME_FRAME_NUMBER:
            row.frame_number = pb_i64(&f);
            break;
        case VIDEO_FRAME_CODEC:
            row.codec = pb_i32(&f);
            break;
        case VIDEO_FRAME_CODEC_CONFIG:
            row.is_config = 1;
            if (!has_data)
                data = pb_bytes(&f);
            has_data = true;
            break;
        case VIDEO_FRAME_AU_DATA:
            data = pb_bytes(&f);
            has_data = true;
            break;
        case VIDEO_FRAME_IS_KEY_FRAME:
            row.is_key_frame = pb_bool(&f);
            break;
        case VIDEO_FRAME_PTS_US:
            row.pts_us = pb_i64(&f);
            break;
        case VIDEO_FRAME_DISPLAY_NAME:
            s->name = import_slice(m->im, pb_bytes(&f));
            break;
        case VIDEO_FRAME_CODEC_STRING:
            s->codec = import_slice(m->im, pb_bytes(&f));
            break;
        }
    }
    row.display_name = s->name;
    row.codec_string = s->codec;
    int64_t ts = p->ts, ns;
    if (row.pts_us != COL_NULL &&
        (__builtin_mul_overflow(row.pts_us, NS_IN_US, &ns) ||
         clock_graph_to_trace_time(m->im->clocks, packet_clock(p, CLOCK_ID_MONOTONIC), ns, &ts) != 0))
        ts = p->ts;
    if (!has_data)
        return TOKENIZE_DONE;
    struct video_frame frame = {.row = row, .data = keep_data(p, s, data)};
    if (!vec_push(&v->frames, frame))
        m->im->failed = true;
    else
        sorter_push(m->im->sorter, v->queue, (struct sort_event){.ts = ts, .a = v->frames.n - 1});
    return TOKENIZE_DONE;
}

void video_frame_error_parse(struct packet *p)
{
    static const enum stat_key stats[] = {
        STAT_android_video_size_cap_hit,          STAT_android_video_codec_error,
        STAT_android_video_display_gone,          STAT_android_video_no_encoder,
        STAT_android_video_display_not_found,     STAT_android_video_encoder_setup_failed,
        STAT_android_video_virtual_display_failed};
    uint64_t reason = android_number(p->field, VIDEO_FRAME_ERROR_REASON);
    if (reason == 0 || reason > sizeof stats / sizeof *stats)
        return;
    struct arg_list list = {0};
    struct args *args = &p->m->st->args;
    arg_list_uint(args, &list, "display_id", android_number(p->field, VIDEO_FRAME_ERROR_DISPLAY_ID));
    import_log(p->m, stats[reason - 1], p->ts, p->byte_offset, args_intern(args, list.p, list.n));
    arg_list_free(&list);
}
