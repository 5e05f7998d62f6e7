/* What the files of this folder share: the state of a machine, and the handlers named in the table of android.c. */
#ifndef MERIDIAN_IMPORTER_ANDROID_ANDROID_INTERNAL_H
#define MERIDIAN_IMPORTER_ANDROID_ANDROID_INTERNAL_H

#include "importer/android/android.h"
#include "importer/core/metadata.h"
#include "importer/sort/sorter.h"
#include "importer/track/process_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_compressor.h"
#include "importer/track/track_tracker.h"

#include "base/u64map.h"
#include "wire/fields.h"

struct android_machine { /* what is behind a pointer is NULL until needed */
    struct machine_ctx *m;
    struct u64map users;          /* uid -> 1: those that have their row */
    struct u64map package_of_uid; /* uid -> its first row of package_list, of the first `packages_known` */
    uint32_t packages_known;
    struct wakelocks *wakelocks;
    struct app_wakelocks *app_wakelocks;
    struct cpu_uid_times *cpu_times;
    struct graphics_buffers *buffers;
    struct network_bundles *bundles;
    struct statsd_atoms *atoms;
    struct modem *modem;
    struct videos *videos;
};

/* A track without dimensions. */
uint32_t android_track(struct machine_ctx *m, const char *type, enum track_kind kind, const char *name);
/* A slice of `dur` on the first free track of a set. Takes the list. Returns its row or SLICE_NONE. */
uint32_t android_slice(struct machine_ctx *m, int64_t ts, int64_t dur, const struct track_spec *spec, strid name,
                       struct arg_list *list);

static inline strid android_text(struct machine_ctx *m, struct slice message, uint32_t field)
{
    struct pb_field f;
    return pb_find(message, field, &f) ? import_slice(m->im, pb_bytes(&f)) : 0;
}

static inline uint64_t android_number(struct slice message, uint32_t field)
{
    struct pb_field f;
    return pb_find(message, field, &f) ? pb_u64(&f) : 0;
}

void aflags_parse(struct packet *p);
void game_interventions_parse(struct packet *p);
void user_list_parse(struct packet *p);
void system_properties_parse(struct packet *p);
void kernel_wakelocks_parse(struct packet *p);
void wakelocks_close(struct wakelocks *w);
enum tokenize_result app_wakelock_tokenize(struct packet *p);
void app_wakelocks_close(struct app_wakelocks *w);
void cpu_per_uid_parse(struct packet *p);
/* Writes the table of the tracks, once all times have come. */
void cpu_per_uid_finish(struct machine_ctx *m, struct cpu_uid_times *t);
void cpu_per_uid_close(struct cpu_uid_times *t);
void graphics_frame_parse(struct packet *p);
void graphics_buffers_close(struct graphics_buffers *b);
void network_packet_parse(struct packet *p);
enum tokenize_result network_bundle_tokenize(struct packet *p);
void network_bundles_close(struct network_bundles *b);
void bluetooth_parse(struct packet *p);
enum tokenize_result statsd_tokenize(struct packet *p);
void statsd_close(struct statsd_atoms *s);
enum tokenize_result modem_events_tokenize(struct packet *p);
enum tokenize_result modem_database_tokenize(struct packet *p);
void modem_close(struct modem *s);
enum tokenize_result video_frame_tokenize(struct packet *p);
void video_frame_error_parse(struct packet *p);
void videos_close(struct videos *v);

#endif
