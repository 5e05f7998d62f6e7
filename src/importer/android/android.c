/* Android's own packets: the table of handlers, the state of a machine, tracks and slices for all of them. */
#include "importer/android/android_internal.h"

const struct packet_handler android_packet_handlers[] = {
    {TRACE_PACKET_ANDROID_AFLAGS, "android_aflags", NULL, aflags_parse},
    {TRACE_PACKET_ANDROID_GAME_INTERVENTION_LIST, "android_game_intervention_list", NULL, game_interventions_parse},
    {TRACE_PACKET_USER_LIST, "user_list", NULL, user_list_parse},
    {TRACE_PACKET_ANDROID_SYSTEM_PROPERTY, "android_system_property", NULL, system_properties_parse},
    {TRACE_PACKET_KERNEL_WAKELOCK_DATA, "kernel_wakelock_data", NULL, kernel_wakelocks_parse},
    {TRACE_PACKET_APP_WAKELOCK_BUNDLE, "app_wakelock_bundle", app_wakelock_tokenize, NULL},
    {TRACE_PACKET_CPU_PER_UID_DATA, "cpu_per_uid_data", NULL, cpu_per_uid_parse},
    {TRACE_PACKET_GRAPHICS_FRAME_EVENT, "graphics_frame_event", NULL, graphics_frame_parse},
    {TRACE_PACKET_NETWORK_PACKET, "network_packet", NULL, network_packet_parse},
    {TRACE_PACKET_NETWORK_PACKET_BUNDLE, "network_packet_bundle", network_bundle_tokenize, NULL},
    {TRACE_PACKET_BLUETOOTH_TRACE_EVENT, "bluetooth_trace_event", NULL, bluetooth_parse},
    {TRACE_PACKET_STATSD_ATOM, "statsd_atom", statsd_tokenize, NULL},
    {TRACE_PACKET_PIXEL_MODEM_EVENTS, "pixel_modem_events", modem_events_tokenize, NULL},
    {TRACE_PACKET_PIXEL_MODEM_TOKEN_DATABASE, "pixel_modem_token_database", modem_database_tokenize, NULL},
    {TRACE_PACKET_VIDEO_FRAME, "video_frame", video_frame_tokenize, NULL},
    {TRACE_PACKET_VIDEO_FRAME_ERROR, "video_frame_error", NULL, video_frame_error_parse},
    {0, NULL, NULL, NULL},
};

struct android_machine *android_machine_open(struct machine_ctx *m)
{
    struct android_machine *a = mem_zalloc(sizeof *a);
    if (a)
        a->m = m;
    return a;
}

void android_machine_finish(struct android_machine *a)
{
    cpu_per_uid_finish(a->m, a->cpu_times);
}

void android_machine_close(struct android_machine *a)
{
    if (!a)
        return;
    u64map_free(&a->users);
    u64map_free(&a->package_of_uid);
    wakelocks_close(a->wakelocks);
    app_wakelocks_close(a->app_wakelocks);
    cpu_per_uid_close(a->cpu_times);
    graphics_buffers_close(a->buffers);
    network_bundles_close(a->bundles);
    statsd_close(a->atoms);
    modem_close(a->modem);
    videos_close(a->videos);
    mem_free(a);
}

uint32_t android_track(struct machine_ctx *m, const char *type, enum track_kind kind, const char *name)
{
    struct track_spec spec = {.type = type, .event_type = kind, .name = import_str(m->im, name), .parent = UINT32_MAX};
    return track_intern(m->im->tracks, m->id, &spec);
}

uint32_t android_slice(struct machine_ctx *m, int64_t ts, int64_t dur, const struct track_spec *spec, strid name,
                       struct arg_list *list)
{
    uint32_t set = track_set_intern(m->im->tracks, m->id, spec), slice = SLICE_NONE;
    uint32_t track = set == TRACK_SET_NONE ? UINT32_MAX : track_set_scoped(m->im->tracks, set, ts, dur);
    if (track == UINT32_MAX)
        m->im->failed = true;
    else
        slice =
            slice_scoped(m->im->slices, m->id, ts, track, 0, name, dur, args_intern(&m->st->args, list->p, list->n));
    arg_list_free(list);
    return slice;
}
