/* What --dev-flag sets in tp_shell. */
#ifndef MERIDIAN_SHELL_DEV_SETTINGS_H
#define MERIDIAN_SHELL_DEV_SETTINGS_H

#include "shell/options.h"

/* 0 or false: not given, but for native_plan. */
struct dev_settings {
    bool ignore_ftrace_parse_errors;
    bool native_plan;
    bool all_progress;
    /* of a server: see struct server_config */
    int64_t max_connections;
    int64_t max_request_bytes;
    int64_t request_timeout_ms;
    int64_t stalled_write_ms;
    int64_t blocked_ms;
    int64_t max_views;
    int64_t max_memory_bytes; /* that the server may take more once it is loaded */
    int64_t fleet_batch;      /* struct fleet_add's */
    int64_t fleet_answer_ms, fleet_answer_bytes, fleet_answer_rows; /* limits of struct fleet_where */
    int64_t fleet_repair_s;                                         /* limit of struct fleet_repair */
};

/* Reads every --dev-flag. One that the command (`where`: one of IN_*) has no use for gets a note on standard error. */
int dev_settings_read(struct dev_settings *d, const struct text_list *given, int where, struct error *err);

#endif
