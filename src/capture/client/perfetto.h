/* The perfetto applet: what the command line asked for, shared by its parts. */
#ifndef MERIDIAN_CAPTURE_CLIENT_PERFETTO_H
#define MERIDIAN_CAPTURE_CLIENT_PERFETTO_H

#include "base/error.h"
#include "schema/config.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

/* EXIT_NOTHING: the trace is there, but nothing that was asked for could start. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_ATTACH_FAILED = 2, EXIT_NOTHING = 3 };

/* Ends what is said when the service cannot be reached. */
#define NO_SERVICE_HINT "; does it run? It is started by: tracebox traced"

struct perfetto_options {
    const char *config_path; /* "-" standard input, ":test" built in */
    const char *out;         /* "-" standard output */
    bool text, text_lossy, no_clobber, no_guardrails;
    bool background, background_wait;
    int notify_fd; /* -1 */
    /* instead of a config */
    bool light;
    const char *time, *buffer, *size;
    const char *const *apps;
    unsigned n_apps;
    const char *const *categories;
    unsigned n_categories;
    /* other things to do than to record */
    const char *detach, *attach, *is_detached;
    bool stop;
    const char *clone_id, *clone_name;
    bool clone_for_bugreport;
    bool query, query_raw, query_long;
    const char *const *triggers; /* --trigger */
    unsigned n_triggers;
    /* added to the config */
    int64_t alert_id, config_id, subscription_id;
    int32_t config_uid;
    bool has_alert_id, has_config_id, has_subscription_id, has_config_uid;
    const char *const *attributes; /* k or k=v */
    unsigned n_attributes;
};

/* Reads (or, in the short form, makes) the config; mrd__trace_config__free_unpacked() frees it. Errors of a text say
 * "file:line:column: what". */
int perfetto_load_config(const struct perfetto_options *o, Mrd__TraceConfig **out, struct error *err);

/* The config for "-t 10s -b 32mb sched/sched_switch …" as bytes. */
struct pb_writer;
int perfetto_light_config(const struct perfetto_options *o, struct pb_writer *w, struct error *err);

/* Each returns the exit code. */
int perfetto_record(const struct perfetto_options *o, Mrd__TraceConfig *config);
int perfetto_query(const struct perfetto_options *o);
int perfetto_trigger(const char *const *names, unsigned n);

#endif
