/* Rows of `metadata`: what the trace says about itself, one value a key and scope. */
#ifndef MERIDIAN_IMPORTER_CORE_METADATA_H
#define MERIDIAN_IMPORTER_CORE_METADATA_H

#include "importer/core/context.h"

/* X(key, type, scope). SINGLE keys keep the last value set; MULTI keys get a row each time. The scope says which of
 * machine_id and trace_id a row carries: GLOBAL none, TRACE trace_id, MACHINE machine_id, BOTH both. */
#define METADATA_KEYS(X)                                                                                               \
    X(all_data_source_flushed_ns, MULTI, BOTH)                                                                         \
    X(all_data_source_started_ns, SINGLE, BOTH)                                                                        \
    X(android_build_fingerprint, SINGLE, MACHINE)                                                                      \
    X(android_device_manufacturer, SINGLE, MACHINE)                                                                    \
    X(android_guest_soc_model, SINGLE, MACHINE)                                                                        \
    X(android_hardware_revision, SINGLE, MACHINE)                                                                      \
    X(android_incremental_build, SINGLE, MACHINE)                                                                      \
    X(android_profile_boot_classpath, SINGLE, MACHINE)                                                                 \
    X(android_profile_system_server, SINGLE, MACHINE)                                                                  \
    X(android_ram_model, SINGLE, MACHINE)                                                                              \
    X(android_sdk_version, SINGLE, MACHINE)                                                                            \
    X(android_serial_console, SINGLE, MACHINE)                                                                         \
    X(android_soc_model, SINGLE, MACHINE)                                                                              \
    X(android_storage_model, SINGLE, MACHINE)                                                                          \
    X(benchmark_description, SINGLE, TRACE)                                                                            \
    X(benchmark_had_failures, SINGLE, TRACE)                                                                           \
    X(benchmark_label, SINGLE, TRACE)                                                                                  \
    X(benchmark_name, SINGLE, TRACE)                                                                                   \
    X(benchmark_start_time_us, SINGLE, TRACE)                                                                          \
    X(benchmark_story_name, SINGLE, TRACE)                                                                             \
    X(benchmark_story_run_index, SINGLE, TRACE)                                                                        \
    X(benchmark_story_run_time_us, SINGLE, TRACE)                                                                      \
    X(benchmark_story_tags, MULTI, TRACE)                                                                              \
    X(ftrace_latest_data_start_ns, SINGLE, BOTH)                                                                       \
    X(range_of_interest_start_us, SINGLE, BOTH)                                                                        \
    X(slow_start_data_source, MULTI, BOTH)                                                                             \
    X(statsd_triggering_subscription_id, SINGLE, TRACE)                                                                \
    X(system_machine, SINGLE, MACHINE)                                                                                 \
    X(system_name, SINGLE, MACHINE)                                                                                    \
    X(system_ram_bytes, SINGLE, MACHINE)                                                                               \
    X(system_ram_gb, SINGLE, MACHINE)                                                                                  \
    X(system_release, SINGLE, MACHINE)                                                                                 \
    X(system_version, SINGLE, MACHINE)                                                                                 \
    X(timezone_off_mins, SINGLE, MACHINE)                                                                              \
    X(trace_config_pbtxt, SINGLE, TRACE)                                                                               \
    X(trace_size_bytes, SINGLE, TRACE)                                                                                 \
    X(trace_time_clock_id, SINGLE, GLOBAL)                                                                             \
    X(trace_trigger, SINGLE, TRACE)                                                                                    \
    X(trace_type, SINGLE, TRACE)                                                                                       \
    X(trace_uuid, SINGLE, TRACE)                                                                                       \
    X(tracing_disabled_ns, SINGLE, BOTH)                                                                               \
    X(tracing_service_version, SINGLE, MACHINE)                                                                        \
    X(tracing_started_ns, SINGLE, BOTH)                                                                                \
    X(ui_state, SINGLE, TRACE)                                                                                         \
    X(unique_session_name, SINGLE, TRACE)

enum metadata_key {
#define X(key, type, scope) METADATA_##key,
    METADATA_KEYS(X)
#undef X
        METADATA_COUNT
};

/* `m` may be NULL for keys of scope GLOBAL and TRACE. */
void metadata_int(struct importer *im, const struct machine_ctx *m, enum metadata_key key, int64_t value);
void metadata_str(struct importer *im, const struct machine_ctx *m, enum metadata_key key, strid value);
/* What is of no machine and of no trace, though the key mostly is. */
void metadata_str_of_all(struct importer *im, enum metadata_key key, strid value);

/* A key made at run time ("trace_attribute.<key>"): pass COL_NULL and a strid, or a number and 0. One row a (name,
 * machine or trace), the last value wins: of machine `m`, or of the trace when `m` is NULL. */
void metadata_dynamic(struct importer *im, const struct machine_ctx *m, strid name, int64_t int_value, strid str_value);

/* The smallest value of an integer key of a machine over all traces read so far, COL_NULL when there is none. */
int64_t metadata_earliest(const struct importer *im, const struct machine_ctx *m, enum metadata_key key);

/* The value of an integer key set so far for a machine, COL_NULL when there is none. */
int64_t metadata_get_int(const struct importer *im, const struct machine_ctx *m, enum metadata_key key);

#endif
