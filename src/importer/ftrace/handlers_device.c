/* Events of other devices and firmware: displays, i2c, sensors, interconnects, secure calls, the hypervisor. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

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
    {FTRACE_EVENT_DPU_DISP_DPU_UNDERRUN,
     FTRACE_DPU_DISP_DPU_UNDERRUN_ID,
     "disp_dpu_underrun",
     "display_id",
     "underrun",
     "disp_dpu_underrun",
     {{FTRACE_DPU_DISP_DPU_UNDERRUN_VSYNC_COUNT, ARG_INT, "vsync_count"},
      {FTRACE_DPU_DISP_DPU_UNDERRUN_FRAMES_PENDING, ARG_INT, "pending_frame"}}},
    {FTRACE_EVENT_GRAM_COLLISION,
     FTRACE_GRAM_COLLISION_PANEL_INDEX,
     "ddic_underrun",
     "panel_index",
     "ddic_underrun",
     "ddic_underrun",
     {{FTRACE_GRAM_COLLISION_COLLISION_CNT, ARG_INT, "collision_cnt"}}},
    {FTRACE_EVENT_DPU_DISP_FRAME_DONE_TIMEOUT,
     FTRACE_DPU_DISP_FRAME_DONE_TIMEOUT_OUTPUT_ID,
     "disp_frame_done_timeout",
     "panel_index",
     "frame_done_timeout",
     "frame_done_timeout",
     {{FTRACE_DPU_DISP_FRAME_DONE_TIMEOUT_DISPLAY_ID, ARG_INT, "display_id"},
      {FTRACE_DPU_DISP_FRAME_DONE_TIMEOUT_OUTPUT_ID, ARG_INT, "output_id"},
      {FTRACE_DPU_DISP_FRAME_DONE_TIMEOUT_FRAMES_PENDING, ARG_INT, "frames_pending"},
      {FTRACE_DPU_DISP_FRAME_DONE_TIMEOUT_TE_COUNT, ARG_INT, "te_count"},
      {FTRACE_DPU_DISP_FRAME_DONE_TIMEOUT_DURING_DISABLE, ARG_INT, "during_disable"}}},
    {FTRACE_EVENT_DPU_DISP_FRAME_START_TIMEOUT,
     FTRACE_DPU_DISP_FRAME_START_TIMEOUT_OUTPUT_ID,
     "disp_frame_start_timeout",
     "panel_index",
     "frame_start_timeout",
     "frame_start_timeout",
     {{FTRACE_DPU_DISP_FRAME_START_TIMEOUT_DISPLAY_ID, ARG_INT, "display_id"},
      {FTRACE_DPU_DISP_FRAME_START_TIMEOUT_OUTPUT_ID, ARG_INT, "output_id"},
      {FTRACE_DPU_DISP_FRAME_START_TIMEOUT_FRAMES_PENDING, ARG_INT, "frames_pending"},
      {FTRACE_DPU_DISP_FRAME_START_TIMEOUT_TE_COUNT, ARG_INT, "te_count"}}},
    {FTRACE_EVENT_DPU_DISP_FRAME_DONE_MISSING,
     FTRACE_DPU_DISP_FRAME_DONE_MISSING_OUTPUT_ID,
     "disp_frame_done_missing",
     "panel_index",
     "frame_done_missing",
     "frame_done_missing",
     {{FTRACE_DPU_DISP_FRAME_DONE_MISSING_DISPLAY_ID, ARG_INT, "display_id"},
      {FTRACE_DPU_DISP_FRAME_DONE_MISSING_OUTPUT_ID, ARG_INT, "output_id"},
      {FTRACE_DPU_DISP_FRAME_DONE_MISSING_FRAMES_PENDING, ARG_INT, "frames_pending"},
      {FTRACE_DPU_DISP_FRAME_DONE_MISSING_TE_COUNT, ARG_INT, "te_count"}}},
    {FTRACE_EVENT_DPU_DISP_FRAME_START_MISSING,
     FTRACE_DPU_DISP_FRAME_START_MISSING_OUTPUT_ID,
     "disp_frame_start_missing",
     "panel_index",
     "frame_start_missing",
     "frame_start_missing",
     {{FTRACE_DPU_DISP_FRAME_START_MISSING_DISPLAY_ID, ARG_INT, "display_id"},
      {FTRACE_DPU_DISP_FRAME_START_MISSING_OUTPUT_ID, ARG_INT, "output_id"},
      {FTRACE_DPU_DISP_FRAME_START_MISSING_FRAMES_PENDING, ARG_INT, "frames_pending"},
      {FTRACE_DPU_DISP_FRAME_START_MISSING_TE_COUNT, ARG_INT, "te_count"}}},
    {FTRACE_EVENT_PANEL_SETTINGS_FULL,
     FTRACE_PANEL_SETTINGS_FULL_PANEL_INDEX,
     "panel_settings_full",
     "panel_index",
     "panel_settings_full",
     "panel_settings_full",
     {{FTRACE_PANEL_SETTINGS_FULL_HBM, ARG_BOOL, "hbm"},
      {FTRACE_PANEL_SETTINGS_FULL_IRC, ARG_INT, "irc"},
      {FTRACE_PANEL_SETTINGS_FULL_H_PWM, ARG_BOOL, "h_pwm"},
      {FTRACE_PANEL_SETTINGS_FULL_FI_AUTO, ARG_BOOL, "fi_auto"},
      {FTRACE_PANEL_SETTINGS_FULL_FI_MANUAL, ARG_BOOL, "fi_manual"},
      {FTRACE_PANEL_SETTINGS_FULL_EARLY_EXIT, ARG_BOOL, "early_exit"},
      {FTRACE_PANEL_SETTINGS_FULL_MIN_RR, ARG_INT, "min_rr"},
      {FTRACE_PANEL_SETTINGS_FULL_MAX_RR, ARG_INT, "max_rr"},
      {FTRACE_PANEL_SETTINGS_FULL_TE_FREQ, ARG_INT, "te_freq"}}},
    {FTRACE_EVENT_PANEL_SETTINGS_LITE,
     FTRACE_PANEL_SETTINGS_LITE_PANEL_INDEX,
     "panel_settings_lite",
     "panel_index",
     "panel_settings_lite",
     "panel_settings_lite",
     {{FTRACE_PANEL_SETTINGS_LITE_VRR, ARG_BOOL, "vrr"},
      {FTRACE_PANEL_SETTINGS_LITE_MIN_RR, ARG_INT, "min_rr"},
      {FTRACE_PANEL_SETTINGS_LITE_MAX_RR, ARG_INT, "max_rr"},
      {FTRACE_PANEL_SETTINGS_LITE_TE_FREQ, ARG_INT, "te_freq"}}},
    {FTRACE_EVENT_DPU_DISP_DPU_LINE_UNDERRUN,
     FTRACE_DPU_DISP_DPU_LINE_UNDERRUN_ID,
     "disp_dpu_line_underrun",
     "display_id",
     "line_underrun",
     "disp_dpu_line_underrun",
     {{FTRACE_DPU_DISP_DPU_LINE_UNDERRUN_VSYNC_COUNT, ARG_INT, "vsync_count"},
      {FTRACE_DPU_DISP_DPU_LINE_UNDERRUN_FRAMES_PENDING, ARG_INT, "pending_frame"}}},
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
    uint32_t output = field_u32(&f, FTRACE_DPU_DISP_VBLANK_IRQ_ENABLE_OUTPUT_ID);
    uint32_t track = track_intern_int(e->m->im->tracks, e->m->id, "disp_vblank_irq_enable", TRACK_SLICE, "display_id",
                                      output, ftrace_name(e, "vblank_irq_en[%u]", output));
    if (!field_i32(&f, FTRACE_DPU_DISP_VBLANK_IRQ_ENABLE_ENABLE)) {
        ftrace_end(e, track, 0, 0, NULL);
        return;
    }
    struct small_args args = {0};
    small_args_add(e, &args, "display_id", ARG_INT, field_i32(&f, FTRACE_DPU_DISP_VBLANK_IRQ_ENABLE_ID));
    small_args_add(e, &args, "output_id", ARG_INT, field_i32(&f, FTRACE_DPU_DISP_VBLANK_IRQ_ENABLE_OUTPUT_ID));
    ftrace_begin(e, track, 0, ftrace_text(e, "disp_vblank_irq_enable"), small_args_set(e, &args));
}

/* --- interconnects, sensors, firmware counters ------------------------------------------------------------------- */

static void interconnect(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t track =
        ftrace_track(e, TRACK_SLICE, "interconnect_events", ftrace_text(e, "Interconnect Events"), NULL, 0);
    ftrace_instant(e, track, ftrace_text(e, e->f->kinds[e->id].desc->name),
                   field_str(e, &f, FTRACE_GOOGLE_ICC_EVENT_EVENT), ARGSET_NONE);
}

static void cros_ec_sensorhub_data(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    uint32_t sensor = field_u32(&f, FTRACE_CROS_EC_SENSORHUB_DATA_EC_SENSOR_NUM);
    uint64_t stamp = field_u64(&f, FTRACE_CROS_EC_SENSORHUB_DATA_CURRENT_TIMESTAMP);
    uint32_t track =
        track_intern_int(e->m->im->tracks, e->m->id, "cros_ec_sensorhub_data", TRACK_COUNTER, "ec_sensor_num", sensor,
                         ftrace_name(e, "cros_ec.cros_ec_sensorhub_data.%u", sensor));
    small_args_add(e, &args, "ec_num", ARG_INT, sensor);
    small_args_add(e, &args, "ec_delta", ARG_INT,
                   (int64_t)(field_u64(&f, FTRACE_CROS_EC_SENSORHUB_DATA_FIFO_TIMESTAMP) - stamp));
    small_args_add(e, &args, "sample_ts", ARG_INT, (int64_t)stamp);
    ftrace_counter_args(e, e->ts, track,
                        (double)(int64_t)(field_u64(&f, FTRACE_CROS_EC_SENSORHUB_DATA_CURRENT_TIME) - stamp),
                        small_args_set(e, &args));
}

static void firmware_counter(const struct ftrace_event *e, const char *type, strid name, int64_t ts, double value)
{
    ftrace_counter_args(e, ts, FTRACE_TRACK(e, TRACK_COUNTER, type, name, DIM_S("name", name)), value, ARGSET_NONE);
}

static void param_set_value_cpm(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    firmware_counter(e, "pixel_cpm_counters", field_str(e, &f, FTRACE_PARAM_SET_VALUE_CPM_BODY),
                     field_i64(&f, FTRACE_PARAM_SET_VALUE_CPM_TIMESTAMP),
                     field_u32(&f, FTRACE_PARAM_SET_VALUE_CPM_VALUE));
}

static void fwtp_counter(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    firmware_counter(e, "pixel_fwtp_counters", field_str(e, &f, FTRACE_FWTP_PERFETTO_COUNTER_NAME),
                     field_i64(&f, FTRACE_FWTP_PERFETTO_COUNTER_TIMESTAMP),
                     field_u32(&f, FTRACE_FWTP_PERFETTO_COUNTER_VALUE));
}

static void fwtp_slice(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    strid name = field_str(e, &f, FTRACE_FWTP_PERFETTO_SLICE_NAME);
    uint32_t track =
        track_intern(e->m->im->tracks, e->m->id,
                     &(struct track_spec){
                         .type = "pixel_fwtp_slices", .event_type = TRACK_SLICE, .name = name, .parent = UINT32_MAX});
    ftrace_end(e, track, 0, 0, NULL); /* a begin also ends what was left open */
    if (field_u32(&f, FTRACE_FWTP_PERFETTO_SLICE_BEGIN))
        ftrace_begin(e, track, field_str(e, &f, FTRACE_FWTP_PERFETTO_SLICE_CATEGORY), name, ARGSET_NONE);
}

/* --- slices of threads ------------------------------------------------------------------------------------------- */

static void scm_call_start(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    ftrace_begin(e, ftrace_thread_track(e, event_utid(e)), 0,
                 ftrace_name(e, "scm id=%#llx", (unsigned long long)field_u64(&f, FTRACE_SCM_CALL_START_X0)),
                 ARGSET_NONE);
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
    uint64_t scanned = field_u64(&f, FTRACE_PIXEL_MM_KSWAPD_DONE_DELTA_NR_SCANNED),
             reclaimed = field_u64(&f, FTRACE_PIXEL_MM_KSWAPD_DONE_DELTA_NR_RECLAIMED);
    if (field_has(&f, FTRACE_PIXEL_MM_KSWAPD_DONE_DELTA_NR_SCANNED))
        small_args_add(e, &args, "pages scanned", ARG_UINT, (int64_t)scanned);
    if (field_has(&f, FTRACE_PIXEL_MM_KSWAPD_DONE_DELTA_NR_RECLAIMED))
        small_args_add(e, &args, "pages reclaimed", ARG_UINT, (int64_t)reclaimed);
    if (field_has(&f, FTRACE_PIXEL_MM_KSWAPD_DONE_DELTA_NR_SCANNED) &&
        field_has(&f, FTRACE_PIXEL_MM_KSWAPD_DONE_DELTA_NR_RECLAIMED) && scanned)
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
    uint32_t adapter = field_u32(&f, FTRACE_I2C_READ_ADAPTER_NR), messages = field_u32(&f, FTRACE_I2C_READ_MSG_NR) + 1,
             utid = event_utid(e);
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
    uint32_t adapter = field_u32(&f, FTRACE_I2C_RESULT_ADAPTER_NR), utid = event_utid(e);
    const uint64_t *open = s ? u64map_get(&s->open, utid) : NULL;
    if (!open || *open != ((uint64_t)adapter << 32 | field_u32(&f, FTRACE_I2C_RESULT_NR_MSGS)))
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
        {FTRACE_EVENT_HOST_HCALL,
         {{FTRACE_HOST_HCALL_ID, ARG_UINT, "id"}, {FTRACE_HOST_HCALL_INVALID, ARG_UINT, "invalid"}}},
        {FTRACE_EVENT_HOST_SMC,
         {{FTRACE_HOST_SMC_ID, ARG_UINT, "id"}, {FTRACE_HOST_SMC_FORWARDED, ARG_UINT, "forwarded"}}},
        {FTRACE_EVENT_HOST_MEM_ABORT,
         {{FTRACE_HOST_MEM_ABORT_ESR, ARG_UINT, "esr"}, {FTRACE_HOST_MEM_ABORT_ADDR, ARG_UINT, "addr"}}},
        {FTRACE_EVENT_HOST_FFA_CALL,
         {{FTRACE_HOST_FFA_CALL_FUNC_ID, ARG_UINT, "func_id"},
          {FTRACE_HOST_FFA_CALL_HANDLED, ARG_INT, "handled"},
          {FTRACE_HOST_FFA_CALL_ERR, ARG_INT, "err"}}},
        {FTRACE_EVENT_IOMMU_IDMAP,
         {{FTRACE_IOMMU_IDMAP_FROM, ARG_UINT, "from"},
          {FTRACE_IOMMU_IDMAP_TO, ARG_UINT, "to"},
          {FTRACE_IOMMU_IDMAP_PROT, ARG_INT, "prot"}}},
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
    {FTRACE_EVENT_I2C_READ, "i2c_read", i2c_message},
    {FTRACE_EVENT_I2C_WRITE, "i2c_write", i2c_message},
    {FTRACE_EVENT_I2C_RESULT, "i2c_result", i2c_result},
    {FTRACE_EVENT_SCM_CALL_START, "scm_call_start", scm_call_start},
    {FTRACE_EVENT_SCM_CALL_END, "scm_call_end", scm_call_end},
    {FTRACE_EVENT_CROS_EC_SENSORHUB_DATA, "cros_ec_sensorhub_data", cros_ec_sensorhub_data},
    {FTRACE_EVENT_HYP_ENTER, "hyp_enter", hyp_enter},
    {FTRACE_EVENT_HYP_EXIT, "hyp_exit", hyp_exit},
    {FTRACE_EVENT_HOST_HCALL, "host_hcall", hyp_reason},
    {FTRACE_EVENT_HOST_SMC, "host_smc", hyp_reason},
    {FTRACE_EVENT_HOST_MEM_ABORT, "host_mem_abort", hyp_reason},
    {FTRACE_EVENT_GOOGLE_ICC_EVENT, "google_icc_event", interconnect},
    {FTRACE_EVENT_GOOGLE_IRM_EVENT, "google_irm_event", interconnect},
    {FTRACE_EVENT_PIXEL_MM_KSWAPD_WAKE, "pixel_mm_kswapd_wake", kswapd_wake},
    {FTRACE_EVENT_PIXEL_MM_KSWAPD_DONE, "pixel_mm_kswapd_done", kswapd_done},
    {FTRACE_EVENT_PARAM_SET_VALUE_CPM, "param_set_value_cpm", param_set_value_cpm},
    {FTRACE_EVENT_DPU_DISP_DPU_UNDERRUN, "dpu_disp_dpu_underrun", display_instant},
    {FTRACE_EVENT_DPU_DISP_VBLANK_IRQ_ENABLE, "dpu_disp_vblank_irq_enable", vblank_irq_enable},
    {FTRACE_EVENT_HOST_FFA_CALL, "host_ffa_call", hyp_reason},
    {FTRACE_EVENT_IOMMU_IDMAP, "iommu_idmap", hyp_reason},
    {FTRACE_EVENT_FWTP_PERFETTO_COUNTER, "fwtp_perfetto_counter", fwtp_counter},
    {FTRACE_EVENT_FWTP_PERFETTO_SLICE, "fwtp_perfetto_slice", fwtp_slice},
    {FTRACE_EVENT_GRAM_COLLISION, "gram_collision", display_instant},
    {FTRACE_EVENT_DPU_DISP_FRAME_DONE_TIMEOUT, "dpu_disp_frame_done_timeout", display_instant},
    {FTRACE_EVENT_DPU_DISP_FRAME_START_TIMEOUT, "dpu_disp_frame_start_timeout", display_instant},
    {FTRACE_EVENT_DPU_DISP_FRAME_DONE_MISSING, "dpu_disp_frame_done_missing", display_instant},
    {FTRACE_EVENT_DPU_DISP_FRAME_START_MISSING, "dpu_disp_frame_start_missing", display_instant},
    {FTRACE_EVENT_PANEL_SETTINGS_FULL, "panel_settings_full", display_instant},
    {FTRACE_EVENT_PANEL_SETTINGS_LITE, "panel_settings_lite", display_instant},
    {FTRACE_EVENT_DPU_DISP_DPU_LINE_UNDERRUN, "dpu_disp_dpu_line_underrun", display_instant},
    {0, NULL, NULL},
};
