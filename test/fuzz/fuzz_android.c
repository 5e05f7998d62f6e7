/* Packets of Android, GPUs, Chrome and Windows: frames, wakelocks, networks, windows, layers, render stages, code of V8,
 * dumps of memory, files. */
#include "fuzz_records.h"

static const uint32_t fields[] = {
    12,   /* interned_data */
    6,    /* clock_snapshot */
    39,   /* android_log */
    47,   /* packages_list */
    52,   /* gpu_counter_event */
    53,   /* gpu_render_stage_event */
    57,   /* graphics_frame_event */
    62,   /* vulkan_memory_event */
    63,   /* gpu_log */
    65,   /* vulkan_api_event */
    76,   /* frame_timeline_event */
    83,   /* android_game_intervention_list */
    84,   /* statsd_atom */
    86,   /* android_system_property */
    88,   /* network_packet */
    92,   /* network_packet_bundle */
    114,  /* bluetooth_trace_event */
    115,  /* kernel_wakelock_data */
    116,  /* app_wakelock_bundle */
    119,  /* cpu_per_uid_data */
    123,  /* user_list */
    127,  /* android_aflags */
    134,  /* concurrent_session_event */
    1000, /* video_frame */
    1001, /* video_frame_error */
    11,   /* track_event */
    60,   /* track_descriptor */
    93,   /* surfaceflinger_layers_snapshot */
    94,   /* surfaceflinger_transactions */
    96,   /* shell_transition */
    97,   /* shell_handler_mappings */
    104,  /* protolog_message */
    105,  /* protolog_viewer_config */
    112,  /* winscope_extensions */
    5,    /* chrome_events */
    48,   /* chrome_benchmark_metadata */
    66,   /* perf_sample */
    73,   /* memory_tracker_snapshot */
    95,   /* etw_events */
    99,   /* v8_js_code */
    100,  /* v8_internal_code */
    101,  /* v8_wasm_code */
    102,  /* v8_reg_exp_code */
    103,  /* v8_code_move */
    110,  /* pixel_modem_events */
    111,  /* pixel_modem_token_database */
    124,  /* trace_provenance */
    125,  /* protovms */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_records(data, size, fields, sizeof fields / sizeof *fields);
}
