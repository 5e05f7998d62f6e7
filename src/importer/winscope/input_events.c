/* Imports input: motions, keys, and to which windows they went. */
#include "importer/winscope/winscope_internal.h"

#include "importer/clock/clock_graph.h"

/* Adds a time of the kernel's monotonic clock as trace time. */
static void put_time(struct packet *p, struct arg_list *list, const char *key, struct slice bytes, uint32_t field)
{
    struct pb_field f;
    int64_t ts;
    if (pb_find(bytes, field, &f) &&
        clock_graph_to_trace_time(p->m->im->clocks, packet_clock(p, CLOCK_ID_MONOTONIC), pb_i64(&f), &ts) == 0)
        arg_list_int(&p->m->st->args, list, key, ts);
}

static argset event_args(struct packet *p, enum winscope_message type, struct slice bytes, uint32_t event_time,
                         uint32_t down_time)
{
    struct arg_list list = {0};
    put_time(p, &list, "kernel_time", bytes, event_time);
    put_time(p, &list, "down_time", bytes, down_time);
    struct winscope_extra extra = winscope_keep_args(p, &list);
    arg_list_free(&list);
    return winscope_args(p, type, bytes, &extra);
}

static int64_t display_of(struct slice bytes, uint32_t field)
{
    struct pb_field f;
    return pb_find(bytes, field, &f) ? pb_s64(&f) : 0;
}

static void motion(struct packet *p, struct slice bytes)
{
    argset set = event_args(p, WINSCOPE_MOTION_EVENT, bytes, ANDROID_MOTION_EVENT_EVENT_TIME_NANOS,
                            ANDROID_MOTION_EVENT_DOWN_TIME_NANOS);
    android_motion_events_insert(p->m->st,
                                 &(struct android_motion_events_row){
                                     .event_id = (uint32_t)winscope_number(bytes, ANDROID_MOTION_EVENT_EVENT_ID, 0),
                                     .ts = p->ts,
                                     .arg_set_id = set,
                                     .base64_proto_id = winscope_proto_id(set),
                                     .source = (uint32_t)winscope_number(bytes, ANDROID_MOTION_EVENT_SOURCE, 0),
                                     .action = (int32_t)winscope_number(bytes, ANDROID_MOTION_EVENT_ACTION, 0),
                                     .device_id = (int32_t)winscope_number(bytes, ANDROID_MOTION_EVENT_DEVICE_ID, 0),
                                     .display_id = display_of(bytes, ANDROID_MOTION_EVENT_DISPLAY_ID)});
}

static void key(struct packet *p, struct slice bytes)
{
    argset set =
        event_args(p, WINSCOPE_KEY_EVENT, bytes, ANDROID_KEY_EVENT_EVENT_TIME_NANOS, ANDROID_KEY_EVENT_DOWN_TIME_NANOS);
    android_key_events_insert(
        p->m->st,
        &(struct android_key_events_row){.event_id = (uint32_t)winscope_number(bytes, ANDROID_KEY_EVENT_EVENT_ID, 0),
                                         .ts = p->ts,
                                         .arg_set_id = set,
                                         .base64_proto_id = winscope_proto_id(set),
                                         .source = (uint32_t)winscope_number(bytes, ANDROID_KEY_EVENT_SOURCE, 0),
                                         .action = (int32_t)winscope_number(bytes, ANDROID_KEY_EVENT_ACTION, 0),
                                         .device_id = (int32_t)winscope_number(bytes, ANDROID_KEY_EVENT_DEVICE_ID, 0),
                                         .display_id = display_of(bytes, ANDROID_KEY_EVENT_DISPLAY_ID),
                                         .key_code = (int32_t)winscope_number(bytes, ANDROID_KEY_EVENT_KEY_CODE, 0)});
}

static void dispatch(struct packet *p, struct slice bytes)
{
    argset set = winscope_args(p, WINSCOPE_WINDOW_DISPATCH, bytes, NULL);
    android_input_event_dispatch_insert(
        p->m->st, &(struct android_input_event_dispatch_row){
                      .event_id = (uint32_t)winscope_number(bytes, ANDROID_WINDOW_INPUT_DISPATCH_EVENT_EVENT_ID, 0),
                      .arg_set_id = set,
                      .vsync_id = winscope_number(bytes, ANDROID_WINDOW_INPUT_DISPATCH_EVENT_VSYNC_ID, 0),
                      .window_id = (int32_t)winscope_number(bytes, ANDROID_WINDOW_INPUT_DISPATCH_EVENT_WINDOW_ID, 0),
                      .base64_proto_id = winscope_proto_id(set)});
}

void input_event_parse(struct packet *p, struct slice bytes)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.wire == PB_BYTES)
            winscope_count_damage(p, pb_bytes(&f), STAT_android_input_event_parse_errors);
        switch (f.id) {
        case ANDROID_INPUT_EVENT_DISPATCHER_MOTION_EVENT:
        case ANDROID_INPUT_EVENT_DISPATCHER_MOTION_EVENT_REDACTED:
            motion(p, pb_bytes(&f));
            break;
        case ANDROID_INPUT_EVENT_DISPATCHER_KEY_EVENT:
        case ANDROID_INPUT_EVENT_DISPATCHER_KEY_EVENT_REDACTED:
            key(p, pb_bytes(&f));
            break;
        case ANDROID_INPUT_EVENT_DISPATCHER_WINDOW_DISPATCH_EVENT:
        case ANDROID_INPUT_EVENT_DISPATCHER_WINDOW_DISPATCH_EVENT_REDACTED:
            dispatch(p, pb_bytes(&f));
            break;
        }
    }
}
