/* Kernel events as the text of the kernel's own `trace` file, plain or packed as atrace packs it. */
#include "shell/convert/convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a viewer of such files can open: 140 MiB of lines of some 130 bytes. */
enum { TRUNCATED_EVENTS = (140 << 20) / 130 };

struct scope {
    const char *wanted; /* --machine */
    int64_t machine;    /* row of the table machine */
    int64_t events, cpus, others;
};

static int64_t number(const struct tp_result *r, int column)
{
    return tp_column_type(r, column) == TP_NULL ? 0 : tp_int64(r, column);
}

static int first_machine(void *ctx, struct tp_result *r)
{
    struct scope *s = ctx;
    s->machine = number(r, 0);
    return 0;
}

static int match_machine(void *ctx, struct tp_result *r)
{
    struct scope *s = ctx;
    for (int column = 0; column < 2; column++)
        if (tp_column_type(r, column) != TP_NULL && strcmp(tp_text(r, column, NULL), s->wanted) == 0)
            s->machine = strtoll(tp_text(r, 0, NULL), NULL, 10);
    return 0;
}

static int read_scope(void *ctx, struct tp_result *r)
{
    struct scope *s = ctx;
    s->events = number(r, 0);
    s->cpus = number(r, 1);
    s->others = number(r, 2);
    return 0;
}

/* The machine of --machine, a name or a row of the table; else the first that has events. */
static int choose_machine(struct shell *sh, struct scope *s, struct error *err)
{
    s->wanted = sh->opt.of_machine;
    s->machine = -1;
    if (!s->wanted)
        return convert_rows(sh, "select _machine_of_ucpu!(min(ucpu)) from ftrace_event", first_machine, s, err);
    int rc = convert_rows(sh, "select cast(id as text), name from machine", match_machine, s, err);
    if (rc == 0 && s->machine < 0)
        rc = error_set(err, -MRD_ENOTFOUND, "--machine: this trace has no machine '%s'", s->wanted);
    return rc;
}

static int find_scope(struct shell *sh, struct scope *s, struct error *err)
{
    char sql[256];
    int rc = choose_machine(sh, s, err);
    if (rc < 0)
        return rc;
    snprintf(sql, sizeof sql,
             "select sum(machine = %" PRId64 "), count(distinct iif(machine = %" PRId64
             ", ucpu, NULL)), sum(machine != %" PRId64
             ") from (select ucpu, _machine_of_ucpu!(ucpu) as machine from ftrace_event)",
             s->machine, s->machine, s->machine);
    return convert_rows(sh, sql, read_scope, s, err);
}

/* As the kernel heads the file: the columns are those of TO_FTRACE(). */
static int put_head(struct out_file *out, int64_t shown, const struct scope *s)
{
    out_file_printf(
        out, "# tracer: nop\n#\n# entries-in-buffer/entries-written: %" PRId64 "/%" PRId64 "   #P:%" PRId64 "\n#\n",
        shown, s->events, s->cpus);
    return out_file_text(out, "#                                      _-----=> irqs-off\n"
                              "#                                     / _----=> need-resched\n"
                              "#                                    | / _---=> hardirq/softirq\n"
                              "#                                    || / _--=> preempt-depth\n"
                              "#                                    ||| /     delay\n"
                              "#           TASK-PID    TGID   CPU#  ||||    TIMESTAMP  FUNCTION\n"
                              "#              | |        |      |   ||||       |         |\n");
}

static int put_line(void *ctx, struct tp_result *r)
{
    size_t len;
    const char *line = tp_text(r, 0, &len), *end = line ? line + len : NULL, *next;
    if (!line)
        return 0;
    for (; (next = memchr(line, '\n', (size_t)(end - line))) != NULL; line = next + 1) {
        out_file_write(ctx, line, (size_t)(next - line));
        out_file_write(ctx, " ", 1); /* a line of a program's text would be taken for another event */
    }
    out_file_write(ctx, line, (size_t)(end - line));
    return out_file_write(ctx, "\n", 1);
}

int convert_systrace(struct shell *sh, struct out_file *out, struct error *err)
{
    struct scope s = {0};
    const char *keep = sh->opt.truncate;
    char sql[256];
    if (keep && strcmp(keep, "start") != 0 && strcmp(keep, "end") != 0)
        return error_set(err, -MRD_EINVALID, "--truncate: '%s' is neither start nor end", keep);
    int rc = find_scope(sh, &s, err);
    if (rc < 0)
        return rc;
    int64_t shown = keep && s.events > TRUNCATED_EVENTS ? TRUNCATED_EVENTS : s.events;
    int64_t from = keep && strcmp(keep, "end") == 0 ? s.events - shown : 0;
    snprintf(sql, sizeof sql,
             "select to_kernel_ftrace(id) from ftrace_event where ucpu >= _ucpu!(%" PRId64
             ", 0) and ucpu < _ucpu!(%" PRId64 ", 0) limit %" PRId64 " offset %" PRId64,
             s.machine, s.machine + 1, shown, from);
    rc = put_head(out, shown, &s);
    if (rc == 0)
        rc = convert_rows(sh, sql, put_line, out, err);
    if (rc == 0 && s.others)
        fprintf(stderr,
                "note: %" PRId64
                " events of other machines are left out: the format has room for one machine (--machine NAME "
                "chooses)\n",
                s.others);
    return rc;
}

int convert_ctrace(struct shell *sh, struct out_file *out, struct error *err)
{
    out_file_text(out, "TRACE:\n");
    int rc = out_file_pack(out, OUT_ZLIB);
    return rc < 0 ? rc : convert_systrace(sh, out, err);
}
