/* The perfetto applet: what the command line asked for, shared by its parts. */
#ifndef MERIDIAN_CAPTURE_CLIENT_PERFETTO_H
#define MERIDIAN_CAPTURE_CLIENT_PERFETTO_H

#include "base/flags.h"
#include "schema/config.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

/* EXIT_NOTHING: the trace is there, but nothing that was asked for could start. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_ATTACH_FAILED = 2, EXIT_NOTHING = 3 };

/* Ends what is said when the service cannot be reached. */
#define NO_SERVICE_HINT "; does it run? It is started by: tracebox traced"

struct perfetto_options {
#define FLAG(field, kind, ...) FLAG_TYPE_##kind field;
#include "capture/client/perfetto_flags.def"
#undef FLAG
    struct text_list categories; /* the other arguments: atrace categories, events as GROUP/EVENT */
    bool light;                  /* no config is given, but what to record */
    const char *sources;         /* more data sources of the short form: a TraceConfig in text form; NULL: none */
    bool full_switches;          /* the short form has sched events with all fields, not compact ones */
    bool standard_sources;       /* the short form has those that always come along, too */
    int notify_fd;               /* -1: none */
    int until_fd;                /* the recording ends when it can be read; -1: none */
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
