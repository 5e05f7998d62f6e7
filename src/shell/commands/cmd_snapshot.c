/* tp_shell snapshot: the loaded trace as a file that opens at once. */
#include "shell/shell.h"
#include "shell/ticker.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The size of a file, or -1. */
static double size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (double)st.st_size : -1;
}

static int choose_output(const struct options *o, char *out, size_t room, struct error *err)
{
    if (!o->output && strcmp(o->positionals.p[0], "-") == 0)
        return error_set(err, -MRD_EINVALID, "snapshot: standard input has no name: give one with -o FILE");
    int n = o->output ? snprintf(out, room, "%s", o->output) : snprintf(out, room, "%s.mrdsnap", o->positionals.p[0]);
    return n < (int)room ? 0 : error_set(err, -MRD_EINVALID, "snapshot: the name of the file is too long");
}

int cmd_snapshot(struct shell *sh, struct error *err)
{
    const struct options *o = &sh->opt;
    char path[4096];
    if (o->positionals.n == 0)
        return error_set(err, -MRD_EINVALID, "snapshot: a trace is needed, e.g. tp_shell snapshot trace.pftrace");
    int rc = choose_output(o, path, sizeof path, err);
    rc = rc ? rc : session_load(sh, o->positionals.p, o->positionals.n, err);
    if (rc < 0)
        return rc;
    const char *source = o->positionals.n == 1 ? o->positionals.p[0] : NULL;
    struct ticker ticker;
    ticker_start(&ticker, "Writing", true);
    int64_t start = shell_now_ns();
    rc = tp_write_snapshot(sh->tp, path, source);
    double seconds = (double)(shell_now_ns() - start) / 1e9;
    ticker_stop(&ticker);
    if (rc < 0)
        return session_error(sh, rc, err);
    double bytes = size_of(path), of = (double)tp_loaded_bytes(sh->tp);
    if (bytes >= 0)
        fprintf(stderr, "%s: %.2f MB, %.2f times the trace, in %.2fs\n", path, bytes / 1e6, of > 0 ? bytes / of : 0,
                seconds);
    return 0;
}
