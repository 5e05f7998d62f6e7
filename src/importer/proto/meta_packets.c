/* Packets that say something about the trace as a whole: its config, uuid, triggers and attributes. */
#include "importer/core/metadata.h"
#include "importer/core/sequence.h"
#include "importer/core/text_forms.h"
#include "importer/proto/diagnostics.h"
#include "importer/proto/special_packets.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_tracker.h"
#include "schema/config.pb-c.h"
#include "wire/fields.h"
#include "wire/recording_problem.h"
#include "wire/text_format.h"

strid trace_uuid_text(struct importer *im, uint64_t msb, uint64_t lsb)
{
    return strpool_printf(&im->st->strings, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(msb >> 32),
                          (unsigned)(msb >> 16 & 0xffff), (unsigned)(msb & 0xffff), (unsigned)(lsb >> 48),
                          (unsigned long long)(lsb & 0xffffffffffff));
}

/* The trace itself tells its uuid. */
static void uuid_told(struct importer *im, uint64_t msb, uint64_t lsb)
{
    metadata_str(im, NULL, METADATA_trace_uuid, trace_uuid_text(im, msb, lsb));
    im->has_uuid = true;
}

static enum tokenize_result uuid_packet(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    uint64_t msb = 0, lsb = 0;
    while (pb_next(&c, &f)) {
        if (f.id == TRACE_UUID_MSB)
            msb = pb_u64(&f);
        else if (f.id == TRACE_UUID_LSB)
            lsb = pb_u64(&f);
    }
    uuid_told(p->m->im, msb, lsb);
    return TOKENIZE_DONE;
}

static void attributes(struct packet *p, struct slice message)
{
    struct importer *im = p->m->im;
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id != TRACE_ATTRIBUTES_ATTRIBUTE)
            continue;
        struct pb_cursor attribute = pb_sub(&f);
        struct pb_field v;
        struct slice key = {0};
        int64_t number = COL_NULL;
        strid text = 0;
        while (pb_next(&attribute, &v)) {
            if (v.id == TRACE_ATTRIBUTES_ATTRIBUTE_KEY)
                key = pb_bytes(&v);
            else if (v.id == TRACE_ATTRIBUTES_ATTRIBUTE_LONG_VALUE)
                number = pb_i64(&v);
            else if (v.id == TRACE_ATTRIBUTES_ATTRIBUTE_STRING_VALUE)
                text = import_slice(im, pb_bytes(&v));
        }
        if (!key.len || key.len > 4096 || (!text && number == COL_NULL))
            continue;
        strid name = strpool_printf(&im->st->strings, "trace_attribute.%.*s", (int)key.len, (const char *)key.p);
        metadata_dynamic(im, NULL, name, number, text);
    }
}

void trace_attributes_packet(struct packet *p)
{
    attributes(p, p->field);
}

/* A file_write_period from here on is a way to say "keep a ring buffer and write it once". */
static const uint64_t ring_buffer_period_ms = 7 * 24 * 3600 * UINT64_C(1000);
enum { FILL_DISCARD = 2 };

/* The config as text, as the recording command takes it. */
static void config_text(struct packet *p)
{
    struct pb_writer w = {0};
    text_print(&mrd__trace_config__descriptor, p->field, 0, &w);
    if (w.failed)
        p->m->im->failed = true;
    struct slice text = pb_written(&w);
    if (text.len && text.p[text.len - 1] == '\n')
        text.len--;
    if (text.len && !w.failed)
        metadata_str(p->m->im, NULL, METADATA_trace_config_pbtxt, import_slice(p->m->im, text));
    pb_writer_free(&w);
}

static enum tokenize_result config_packet(struct packet *p)
{
    struct importer *im = p->m->im;
    struct sequences *seqs = p->m->sequences;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f, sub;
    uint64_t msb = 0, lsb = 0, write_period_ms = 0, flush_period_ms = 0, discard_buffers = 0;
    bool write_into_file = false;
    unsigned buffer = 0;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case TRACE_CONFIG_BUFFERS:
            if (buffer < 64 && pb_find(pb_bytes(&f), TRACE_CONFIG_BUFFER_CONFIG_FILL_POLICY, &sub) &&
                pb_u64(&sub) == FILL_DISCARD)
                discard_buffers |= (uint64_t)1 << buffer;
            buffer++;
            break;
        case TRACE_CONFIG_STATSD_METADATA:
            if (pb_find(pb_bytes(&f), TRACE_CONFIG_STATSD_METADATA_TRIGGERING_SUBSCRIPTION_ID, &sub))
                metadata_int(im, p->m, METADATA_statsd_triggering_subscription_id, pb_i64(&sub));
            break;
        case TRACE_CONFIG_WRITE_INTO_FILE:
            write_into_file = pb_bool(&f);
            break;
        case TRACE_CONFIG_FILE_WRITE_PERIOD_MS:
            write_period_ms = pb_u64(&f);
            break;
        case TRACE_CONFIG_FLUSH_PERIOD_MS:
            flush_period_ms = pb_u64(&f);
            break;
        case TRACE_CONFIG_UNIQUE_SESSION_NAME:
            metadata_str(im, p->m, METADATA_unique_session_name, import_slice(im, pb_bytes(&f)));
            break;
        case TRACE_CONFIG_TRACE_UUID_MSB:
            msb = pb_u64(&f);
            break;
        case TRACE_CONFIG_TRACE_UUID_LSB:
            lsb = pb_u64(&f);
            break;
        case TRACE_CONFIG_TRACE_ATTRIBUTES:
            attributes(p, pb_bytes(&f));
            break;
        }
    }
    config_text(p);
    diagnostics_keep(p);
    seqs->streams_into_file = write_into_file && write_period_ms < ring_buffer_period_ms;
    for (int i = 0; i < 64; i++)
        if (write_into_file && discard_buffers >> i & 1)
            stats_set_idx(&p->m->st->stats, p->m->id, STAT_config_write_into_file_discard, i, 1);
    if (write_into_file && !flush_period_ms)
        stats_set(&p->m->st->stats, p->m->id, STAT_config_write_into_file_no_flush, 1);
    if ((msb || lsb) && !im->has_uuid)
        uuid_told(im, msb, lsb);
    return TOKENIZE_DONE;
}

static void trigger(struct packet *p, bool clone)
{
    struct importer *im = p->m->im;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    struct args *a = &im->st->args;
    struct arg_list list = {0};
    strid name = 0;
    while (pb_next(&c, &f)) {
        if (f.id == TRIGGER_TRIGGER_NAME)
            name = import_slice(im, pb_bytes(&f));
        else if (f.id == TRIGGER_PRODUCER_NAME)
            arg_list_str(a, &list, "producer_name", import_slice(im, pb_bytes(&f)));
        else if (f.id == TRIGGER_TRUSTED_PRODUCER_UID)
            arg_list_int(a, &list, "trusted_producer_uid", pb_i32(&f));
    }
    uint32_t track = track_intern(im->tracks, p->m->id,
                                  &(struct track_spec){.type = "triggers",
                                                       .event_type = TRACK_SLICE,
                                                       .name = import_str(im, "Trace Triggers"),
                                                       .parent = UINT32_MAX});
    if (track != UINT32_MAX)
        slice_scoped(im->slices, p->m->id, p->ts, track, 0, name, 0, args_intern(a, list.p, list.n));
    arg_list_free(&list);
    if (clone ? im->has_clone_trigger : im->has_trigger || im->has_clone_trigger)
        return; /* the first one counts, that of a clone before others */
    metadata_str(im, p->m, METADATA_trace_trigger, name);
    im->has_trigger = true;
    im->has_clone_trigger = clone;
    if (clone)
        stats_set(&p->m->st->stats, p->m->id, STAT_traced_clone_trigger_timestamp_ns, p->ts);
}

static void trigger_packet(struct packet *p)
{
    trigger(p, false);
}

static void clone_trigger_packet(struct packet *p)
{
    trigger(p, true);
}

static enum tokenize_result ui_state_packet(struct packet *p)
{
    if (p->field.len < (1 << 20))
        metadata_str(p->m->im, p->m, METADATA_ui_state, import_base64(p->m->im, p->field));
    return TOKENIZE_DONE;
}

const struct packet_handler proto_packet_handlers[] = {
    {TRACE_PACKET_TRACE_CONFIG, "trace_config", config_packet, NULL},
    {TRACE_PACKET_TRIGGER, "trigger", NULL, trigger_packet},
    {TRACE_PACKET_UI_STATE, "ui_state", ui_state_packet, NULL},
    {TRACE_PACKET_TRACE_UUID, "trace_uuid", uuid_packet, NULL},
    {TRACE_PACKET_CLONE_SNAPSHOT_TRIGGER, "clone_snapshot_trigger", NULL, clone_trigger_packet},
    {TRACE_PACKET_MACHINE_LOSSES, "machine_losses", machine_losses_packet,
     NULL}, /* ours: capture/service/relay_losses.c */
    {TRACE_PACKET_RECORDING_PROBLEM, "recording_problem", recording_problem_packet, NULL}, /* ours */
    {0, NULL, NULL, NULL},
};
