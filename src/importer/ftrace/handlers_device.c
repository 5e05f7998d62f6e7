/* Events of other devices and firmware: displays, i2c, sensors, interconnects, secure calls, the hypervisor. */
#include "importer/ftrace/ftrace_internal.h"

/* --- displays: an instant with some fields as args on a track of the display ------------------------------------- */

struct instant_arg {
    uint8_t field;
    uint8_t type; /* enum arg_type */
    const char *key;
};

static const struct instant_kind {
    uint32_t id, key_field; /* the event, the field that tells its tracks apart */
    const char *track_type, *dimension, *track_name, *slice;
    struct instant_arg args[9];
} instants[] = {
    {549,
     1,
     "disp_dpu_underrun",
     "display_id",
     "underrun",
     "disp_dpu_underrun",
     {{3, ARG_INT, "vsync_count"}, {2, ARG_INT, "pending_frame"}}},
    {602, 1, "ddic_underrun", "panel_index", "ddic_underrun", "ddic_underrun", {{2, ARG_INT, "collision_cnt"}}},
    {605,
     2,
     "disp_frame_done_timeout",
     "panel_index",
     "frame_done_timeout",
     "frame_done_timeout",
     {{1, ARG_INT, "display_id"},
      {2, ARG_INT, "output_id"},
      {3, ARG_INT, "frames_pending"},
      {4, ARG_INT, "te_count"},
      {5, ARG_INT, "during_disable"}}},
    {606,
     2,
     "disp_frame_start_timeout",
     "panel_index",
     "frame_start_timeout",
     "frame_start_timeout",
     {{1, ARG_INT, "display_id"}, {2, ARG_INT, "output_id"}, {3, ARG_INT, "frames_pending"}, {4, ARG_INT, "te_count"}}},
    {609,
     2,
     "disp_frame_done_missing",
     "panel_index",
     "frame_done_missing",
     "frame_done_missing",
     {{1, ARG_INT, "display_id"}, {2, ARG_INT, "output_id"}, {3, ARG_INT, "frames_pending"}, {4, ARG_INT, "te_count"}}},
    {610,
     2,
     "disp_frame_start_missing",
     "panel_index",
     "frame_start_missing",
     "frame_start_missing",
     {{1, ARG_INT, "display_id"}, {2, ARG_INT, "output_id"}, {3, ARG_INT, "frames_pending"}, {4, ARG_INT, "te_count"}}},
    {611,
     1,
     "panel_settings_full",
     "panel_index",
     "panel_settings_full",
     "panel_settings_full",
     {{2, ARG_BOOL, "hbm"},
      {3, ARG_INT, "irc"},
      {4, ARG_BOOL, "h_pwm"},
      {5, ARG_BOOL, "fi_auto"},
      {6, ARG_BOOL, "fi_manual"},
      {7, ARG_BOOL, "early_exit"},
      {8, ARG_INT, "min_rr"},
      {9, ARG_INT, "max_rr"},
      {10, ARG_INT, "te_freq"}}},
    {612,
     1,
     "panel_settings_lite",
     "panel_index",
     "panel_settings_lite",
     "panel_settings_lite",
     {{2, ARG_BOOL, "vrr"}, {3, ARG_INT, "min_rr"}, {4, ARG_INT, "max_rr"}, {5, ARG_INT, "te_freq"}}},
    {613,
     1,
     "disp_dpu_line_underrun",
     "display_id",
     "line_underrun",
     "disp_dpu_line_underrun",
     {{3, ARG_INT, "vsync_count"}, {2, ARG_INT, "pending_frame"}}},
};

static void display_instant(const struct ftrace_event *e)
{
    const struct instant_kind *k = instants;
    struct small_args args = {0};
    struct fields f;
    while (k->id != e->id)
        k++;
    fields_read(e->payload, &f);
    uint32_t key = field_u32(&f, k->key_field);
    uint32_t track = track_intern_int(e->m->im->tracks, e->m->id, k->track_type, TRACK_SLICE, k->dimension, key,
                                      ftrace_name(e, "%s[%u]", k->track_name, key));
    for (size_t i = 0; i < sizeof k->args / sizeof *k->args && k->args[i].key; i++) {
        int64_t v = field_i32(&f, k->args[i].field);
        small_args_add(e, &args, k->args[i].key, k->args[i].type, k->args[i].type == ARG_BOOL ? v != 0 : v);
    }
    ftrace_instant(e, track, 0, ftrace_text(e, k->slice), small_args_set(e, &args));
}

static void vblank_irq_enable(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t output = field_u32(&f, 2);
    uint32_t track = track_intern_int(e->m->im->tracks, e->m->id, "disp_vblank_irq_enable", TRACK_SLICE, "display_id",
                                      output, ftrace_name(e, "vblank_irq_en[%u]", output));
    if (!field_i32(&f, 3)) {
        ftrace_end(e, track, 0, 0, NULL);
        return;
    }
    struct small_args args = {0};
    small_args_add(e, &args, "display_id", ARG_INT, field_i32(&f, 1));
    small_args_add(e, &args, "output_id", ARG_INT, field_i32(&f, 2));
    ftrace_begin(e, track, 0, ftrace_text(e, "disp_vblank_irq_enable"), small_args_set(e, &args));
}

/* --- interconnects, sensors, firmware counters ------------------------------------------------------------------- */

static void interconnect(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t track =
        ftrace_track(e, TRACK_SLICE, "interconnect_events", ftrace_text(e, "Interconnect Events"), NULL, 0);
    ftrace_instant(e, track, ftrace_text(e, e->f->kinds[e->id].desc->name), field_str(e, &f, 1), ARGSET_NONE);
}

static void cros_ec_sensorhub_data(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    uint32_t sensor = field_u32(&f, 5);
    uint64_t stamp = field_u64(&f, 2);
    uint32_t track =
        track_intern_int(e->m->im->tracks, e->m->id, "cros_ec_sensorhub_data", TRACK_COUNTER, "ec_sensor_num", sensor,
                         ftrace_name(e, "cros_ec.cros_ec_sensorhub_data.%u", sensor));
    small_args_add(e, &args, "ec_num", ARG_INT, sensor);
    small_args_add(e, &args, "ec_delta", ARG_INT, (int64_t)(field_u64(&f, 6) - stamp));
    small_args_add(e, &args, "sample_ts", ARG_INT, (int64_t)stamp);
    ftrace_counter_args(e, e->ts, track, (double)(int64_t)(field_u64(&f, 1) - stamp), small_args_set(e, &args));
}

static void firmware_counter(const struct ftrace_event *e, const char *type, strid name, int64_t ts, double value)
{
    ftrace_counter_args(e, ts, FTRACE_TRACK(e, TRACK_COUNTER, type, name, DIM_S("name", name)), value, ARGSET_NONE);
}

static void param_set_value_cpm(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    firmware_counter(e, "pixel_cpm_counters", field_str(e, &f, 1), field_i64(&f, 3), field_u32(&f, 2));
}

static void fwtp_counter(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    firmware_counter(e, "pixel_fwtp_counters", field_str(e, &f, 4), field_i64(&f, 1), field_u32(&f, 5));
}

static void fwtp_slice(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    strid name = field_str(e, &f, 4);
    uint32_t track =
        track_intern(e->m->im->tracks, e->m->id,
                     &(struct track_spec){
                         .type = "pixel_fwtp_slices", .event_type = TRACK_SLICE, .name = name, .parent = UINT32_MAX});
    ftrace_end(e, track, 0, 0, NULL); /* a begin also ends what was left open */
    if (field_u32(&f, 5))
        ftrace_begin(e, track, field_str(e, &f, 3), name, ARGSET_NONE);
}

/* --- slices of threads ------------------------------------------------------------------------------------------- */

static void scm_call_start(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    ftrace_begin(e, ftrace_thread_track(e, event_utid(e)), 0,
                 ftrace_name(e, "scm id=%#llx", (unsigned long long)field_u64(&f, 2)), ARGSET_NONE);
}

static void scm_call_end(const struct ftrace_event *e)
{
    ftrace_end(e, ftrace_thread_track(e, event_utid(e)), 0, 0, NULL);
}

static void kswapd_wake(const struct ftrace_event *e)
{
    ftrace_begin(e, ftrace_thread_track(e, event_utid(e)), 0, ftrace_text(e, "kswapd_efficiency"), ARGSET_NONE);
}

static void kswapd_done(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    uint64_t scanned = field_u64(&f, 1), reclaimed = field_u64(&f, 2);
    if (field_has(&f, 1))
        small_args_add(e, &args, "pages scanned", ARG_UINT, (int64_t)scanned);
    if (field_has(&f, 2))
        small_args_add(e, &args, "pages reclaimed", ARG_UINT, (int64_t)reclaimed);
    if (field_has(&f, 1) && field_has(&f, 2) && scanned)
        small_args_add(e, &args, "efficiency %", ARG_UINT, (int64_t)((double)reclaimed * 100 / (double)scanned + 0.5));
    struct arg_list list = small_args_list(&args);
    ftrace_end(e, ftrace_thread_track(e, event_utid(e)), 0, ftrace_text(e, "kswapd_efficiency"), &list);
}

/* --- i2c: a transaction of a thread is one or more messages to an adapter and a result that counts them -------------
 */

enum { MAX_I2C_ADAPTERS = 256 };

struct i2c {
    struct u64map open; /* utid -> adapter << 32 | messages seen, by the largest number of one */
};

static void release_i2c(void *state)
{
    u64map_free(&((struct i2c *)state)->open);
}

static void i2c_message(const struct ftrace_event *e)
{
    struct i2c *s = ftrace_family_state(e->f, FAMILY_DEVICE, sizeof *s, release_i2c);
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t adapter = field_u32(&f, 1), messages = field_u32(&f, 2) + 1, utid = event_utid(e);
    bool added;
    uint64_t *open = s && adapter < MAX_I2C_ADAPTERS ? u64map_put(&s->open, utid, &added) : NULL;
    if (!open)
        return;
    if (added) {
        *open = (uint64_t)adapter << 32 | messages;
        ftrace_begin(e, ftrace_thread_track(e, utid), 0, ftrace_name(e, "i2c-%u", adapter), ARGSET_NONE);
    } else if ((uint32_t)*open < messages) {
        *open = (*open >> 32 << 32) | messages;
    }
}

static void i2c_result(const struct ftrace_event *e)
{
    struct i2c *s = ftrace_family_state(e->f, FAMILY_DEVICE, sizeof *s, release_i2c);
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t adapter = field_u32(&f, 1), utid = event_utid(e);
    const uint64_t *open = s ? u64map_get(&s->open, utid) : NULL;
    if (!open || *open != ((uint64_t)adapter << 32 | field_u32(&f, 2)))
        return;
    u64map_del(&s->open, utid);
    ftrace_end(e, ftrace_thread_track(e, utid), 0, ftrace_name(e, "i2c-%u", adapter), NULL);
}

/* --- pKVM: time spent in the hypervisor, with why it was entered -------------------------------------------------- */

static uint32_t hyp_track(const struct ftrace_event *e)
{
    return track_intern_int(e->m->im->tracks, e->m->id, "pkvm_hypervisor", TRACK_SLICE, "cpu", e->cpu,
                            ftrace_name(e, "pkVM Hypervisor CPU %u", e->cpu));
}

static void hyp_enter(const struct ftrace_event *e)
{
    ftrace_begin(e, hyp_track(e), ftrace_text(e, "pkvm_hyp"), ftrace_text(e, "hyp"), ARGSET_NONE);
}

static void hyp_exit(const struct ftrace_event *e)
{
    ftrace_end(e, hyp_track(e), 0, 0, NULL);
}

static void hyp_reason(const struct ftrace_event *e)
{
    static const struct {
        uint32_t id;
        struct instant_arg args[3];
    } kinds[] = {
        {478, {{1, ARG_UINT, "id"}, {2, ARG_UINT, "invalid"}}},
        {479, {{1, ARG_UINT, "id"}, {2, ARG_UINT, "forwarded"}}},
        {480, {{1, ARG_UINT, "esr"}, {2, ARG_UINT, "addr"}}},
        {578, {{1, ARG_UINT, "func_id"}, {6, ARG_INT, "handled"}, {7, ARG_INT, "err"}}},
        {580, {{1, ARG_UINT, "from"}, {2, ARG_UINT, "to"}, {3, ARG_INT, "prot"}}},
    };
    struct small_args args = {0};
    struct fields f;
    uint32_t slice = slice_top(e->m->im->slices, hyp_track(e));
    if (slice == SLICE_NONE)
        return;
    fields_read(e->payload, &f);
    small_args_add(e, &args, "hyp_enter_reason", ARG_STRING, ftrace_text(e, e->f->kinds[e->id].desc->name));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t j = 0; kinds[i].id == e->id && j < 3 && kinds[i].args[j].key; j++)
            small_args_add(e, &args, kinds[i].args[j].key, kinds[i].args[j].type,
                           field_i64(&f, kinds[i].args[j].field));
    struct arg_list list = small_args_list(&args);
    slice_add_args(e->m->im->slices, slice, &list);
}

const struct ftrace_handler ftrace_handlers_device[] = {
    {27, "i2c_read", i2c_message},
    {28, "i2c_write", i2c_message},
    {29, "i2c_result", i2c_result},
    {338, "scm_call_start", scm_call_start},
    {339, "scm_call_end", scm_call_end},
    {364, "cros_ec_sensorhub_data", cros_ec_sensorhub_data},
    {476, "hyp_enter", hyp_enter},
    {477, "hyp_exit", hyp_exit},
    {478, "host_hcall", hyp_reason},
    {479, "host_smc", hyp_reason},
    {480, "host_mem_abort", hyp_reason},
    {502, "google_icc_event", interconnect},
    {503, "google_irm_event", interconnect},
    {538, "pixel_mm_kswapd_wake", kswapd_wake},
    {539, "pixel_mm_kswapd_done", kswapd_done},
    {543, "param_set_value_cpm", param_set_value_cpm},
    {549, "dpu_disp_dpu_underrun", display_instant},
    {550, "dpu_disp_vblank_irq_enable", vblank_irq_enable},
    {578, "host_ffa_call", hyp_reason},
    {580, "iommu_idmap", hyp_reason},
    {596, "fwtp_perfetto_counter", fwtp_counter},
    {600, "fwtp_perfetto_slice", fwtp_slice},
    {602, "gram_collision", display_instant},
    {605, "dpu_disp_frame_done_timeout", display_instant},
    {606, "dpu_disp_frame_start_timeout", display_instant},
    {609, "dpu_disp_frame_done_missing", display_instant},
    {610, "dpu_disp_frame_start_missing", display_instant},
    {611, "panel_settings_full", display_instant},
    {612, "panel_settings_lite", display_instant},
    {613, "dpu_disp_dpu_line_underrun", display_instant},
    {0, NULL, NULL},
};
