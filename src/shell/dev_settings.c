/* The table of --dev-flag. */
#include "shell/dev_settings.h"

#include "base/dev_flags.h"

#include <stdio.h>

#define AT(field) offsetof(struct dev_settings, field)

static const struct dev_flag everywhere[] = {
    {"ignore-ftrace-parse-errors", DEV_BOOL, AT(ignore_ftrace_parse_errors)},
    {"native-plan", DEV_BOOL, AT(native_plan)},
    {"all-progress", DEV_BOOL, AT(all_progress)},
};

static const struct dev_flag of_servers[] = {
    {"max-connections", DEV_NUMBER, AT(max_connections)},
    {"max-request-bytes", DEV_NUMBER, AT(max_request_bytes)},
    {"request-timeout-ms", DEV_NUMBER, AT(request_timeout_ms)},
    {"stalled-write-ms", DEV_NUMBER, AT(stalled_write_ms)},
    {"blocked-ms", DEV_NUMBER, AT(blocked_ms)},
    {"max-views", DEV_NUMBER, AT(max_views)},
    {"max-memory-bytes", DEV_NUMBER, AT(max_memory_bytes)},
};

static const struct dev_flag of_fleets[] = {
    {"fleet-batch", DEV_NUMBER, AT(fleet_batch)},
    {"fleet-answer-ms", DEV_NUMBER, AT(fleet_answer_ms)},
    {"fleet-answer-bytes", DEV_NUMBER, AT(fleet_answer_bytes)},
    {"fleet-answer-rows", DEV_NUMBER, AT(fleet_answer_rows)},
    {"fleet-repair-s", DEV_NUMBER, AT(fleet_repair_s)},
};

int dev_settings_read(struct dev_settings *d, const struct text_list *given, int where, struct error *err)
{
    *d = (struct dev_settings){.native_plan = true};
    for (size_t i = 0; i < given->n; i++) {
        const char *text = given->p[i];
        int rc = dev_flag_set(everywhere, sizeof everywhere / sizeof *everywhere, d, text, err);
        if (rc == 0 && where == IN_SERVER)
            rc = dev_flag_set(of_servers, sizeof of_servers / sizeof *of_servers, d, text, err);
        if (rc == 0 && where == IN_FLEET)
            rc = dev_flag_set(of_fleets, sizeof of_fleets / sizeof *of_fleets, d, text, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            fprintf(stderr, "note: --dev-flag %s has no effect here\n", text);
    }
    return 0;
}
