/* What Android's framework tells of its processes in track events: that one was started, for what; that one died. */
#include "importer/track_event/track_event_internal.h"

/* The row of a process, made when there is none; UINT32_MAX when out of memory. */
static uint32_t row_of(struct track_event_machine *t, uint32_t upid)
{
    bool added = false;
    uint64_t *row = u64map_put(&t->android_processes, upid, &added);
    if (!row) {
        t->m->im->failed = true;
        return UINT32_MAX;
    }
    if (added)
        *row = android_track_event_process_insert(
            t->m->st, &(struct android_track_event_process_row){.upid = upid,
                                                                .start_seq_id = COL_NULL,
                                                                .package_uid = COL_NULL,
                                                                .caller_uid = COL_NULL,
                                                                .defining_uid = COL_NULL,
                                                                .fw_start_ts = COL_NULL,
                                                                .fw_end_ts = COL_NULL,
                                                                .bind_application_delay_ms = COL_NULL,
                                                                .process_start_delay_ms = COL_NULL});
    return (uint32_t)*row;
}

/* The name of an enum's value in AndroidProcessStartEvent; the number when it has none. */
static strid enum_text(struct track_event_machine *t, const struct pb_field *f)
{
    struct schema *s = track_event_schema(t->m->im);
    const struct schema_field *d =
        schema_field(s, import_str(t->m->im, "perfetto.protos.AndroidProcessStartEvent"), f->id);
    strid name = d ? schema_enum_name(s, d->type_name, pb_i32(f)) : 0;
    return name ? name : strpool_printf(&t->m->st->strings, "%d", pb_i32(f));
}

static void process_started(struct track_event_machine *t, int64_t ts, struct slice bytes)
{
    struct storage *st = t->m->st;
    struct pb_field f;
    if (!pb_find(bytes, ANDROID_PROCESS_START_EVENT_PID, &f))
        return;
    uint32_t upid = process_tracker_process(t->m->processes, pb_i32(&f)), row = row_of(t, upid);
    if (row == UINT32_MAX)
        return;
#define SET(column, value) ROW_SET(st, android_track_event_process, column, row, value)
    if (ROW_GET(st, android_track_event_process, fw_start_ts, row) == COL_NULL)
        SET(fw_start_ts, ts);
    struct pb_cursor c = pb_cursor(bytes);
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case ANDROID_PROCESS_START_EVENT_UID:
            process_tracker_set_uid(t->m->processes, upid, pb_u32(&f));
            break;
        case ANDROID_PROCESS_START_EVENT_PROCESS_NAME:
            process_tracker_process_name(t->m->processes, upid, import_slice(t->m->im, pb_bytes(&f)),
                                         PROCESS_NAME_OTHER);
            break;
        case ANDROID_PROCESS_START_EVENT_BIND_APPLICATION_DELAY_MS:
            SET(bind_application_delay_ms, pb_i64(&f));
            break;
        case ANDROID_PROCESS_START_EVENT_PROCESS_START_DELAY_MS:
            SET(process_start_delay_ms, pb_i64(&f));
            break;
        case ANDROID_PROCESS_START_EVENT_HOSTING_NAME:
            SET(hosting_name, import_slice(t->m->im, pb_bytes(&f)));
            break;
        case ANDROID_PROCESS_START_EVENT_HOSTING_TYPE:
            SET(hosting_type, enum_text(t, &f));
            break;
        case ANDROID_PROCESS_START_EVENT_TRIGGER_TYPE:
            SET(trigger_type, enum_text(t, &f));
            break;
        case ANDROID_PROCESS_START_EVENT_START_SEQ_ID:
            SET(start_seq_id, pb_i64(&f));
            break;
        case ANDROID_PROCESS_START_EVENT_PACKAGE_UID:
            SET(package_uid, pb_i32(&f));
            break;
        case ANDROID_PROCESS_START_EVENT_CALLER_UID:
            SET(caller_uid, pb_i32(&f));
            break;
        case ANDROID_PROCESS_START_EVENT_DEFINING_UID:
            SET(defining_uid, pb_i32(&f));
            break;
        }
    }
#undef SET
}

static void binder_died(struct track_event_machine *t, int64_t ts, struct slice bytes)
{
    struct process_tracker *processes = t->m->processes;
    struct pb_field f;
    if (!pb_find(bytes, ANDROID_BINDER_DIED_EVENT_PID, &f))
        return;
    uint32_t utid = process_tracker_find_thread(processes, pb_i32(&f));
    uint32_t upid = utid == UTID_NONE ? UPID_NONE : process_tracker_thread_process(processes, utid);
    uint32_t row = upid == UPID_NONE ? UINT32_MAX : row_of(t, upid);
    if (row == UINT32_MAX)
        return;
    ROW_SET(t->m->st, android_track_event_process, fw_end_ts, row, ts);
    process_tracker_end_thread(processes, ts, pb_i32(&f));
}

void track_event_android_process(struct track_event_machine *t, int64_t ts, struct slice event)
{
    struct pb_field f;
    if (pb_find(event, TRACK_EVENT_PROCESS_START_EVENT, &f))
        process_started(t, ts, pb_bytes(&f));
    if (pb_find(event, TRACK_EVENT_BINDER_DIED_EVENT, &f))
        binder_died(t, ts, pb_bytes(&f));
}
