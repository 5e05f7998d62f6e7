/* Cleans up after recorders that were killed. */
#include "capture/probes/ftrace/ftrace_instance.h"

#include <dirent.h>
#include <stdio.h>

int ftrace_recover_all(const char *tracefs_root, const char *run_directory, struct error *err)
{
    int n = 0;
    DIR *dir = opendir(run_directory);
    if (!dir)
        return 0;
    for (struct dirent *d; (d = readdir(dir));) {
        char file[PATH_MAX];
        struct undo_log log;
        size_t len = strlen(d->d_name);
        if (strncmp(d->d_name, "ftrace-", 7) != 0 || len < 5 || strcmp(d->d_name + len - 5, ".undo") != 0)
            continue;
        if (snprintf(file, sizeof file, "%s/%s", run_directory, d->d_name) >= (int)sizeof file)
            continue;
        struct error e = {0};
        if (undo_log_open_file(&log, file, tracefs_root, &e)) {
            if (e.code != -MRD_EEXISTS && !err->code) /* else its recorder lives */
                *err = e;
            continue;
        }
        if (log.stale) {
            n++;
            if (undo_log_restore(&log, &e) != 0 && !err->code)
                *err = e;
        }
        undo_log_close(&log);
    }
    closedir(dir);
    return n;
}

int ftrace_reset(const char *tracefs_root, const char *run_directory, struct error *err)
{
    struct tracefs fs;
    struct undo_log log;
    static const struct {
        const char *name, *text;
        enum tracefs_mode mode;
    } writes[] = {
        {"tracing_on", "0", TRACEFS_WRITE},     {"current_tracer", "nop", TRACEFS_WRITE},
        {"set_event", "", TRACEFS_TRUNCATE},    {"trace", "", TRACEFS_TRUNCATE},
        {"buffer_size_kb", "4", TRACEFS_WRITE}, {"buffer_percent", "50", TRACEFS_WRITE},
    };
    int rc = tracefs_open(&fs, tracefs_root, NULL, err);
    if (rc)
        return rc;
    struct error first = {0};
    ftrace_recover_all(tracefs_root, run_directory, &first);
    rc = undo_log_open(&log, run_directory, NULL, tracefs_root, err); /* not while a recorder works in it */
    for (size_t i = 0; !rc && i < sizeof writes / sizeof *writes; i++)
        if (tracefs_exists(&fs, writes[i].name))
            rc = tracefs_write(&fs, writes[i].name, writes[i].mode, writes[i].text, err);
    undo_log_close(&log);
    if (!rc && first.code)
        rc = error_set(err, first.code, "%s", first.text);
    return rc;
}
