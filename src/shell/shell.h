/* tp_shell: finds the command of a command line, and what all commands share.
 *
 * Results go to standard output; everything else (progress, logs, the report on the trace's health, errors) to standard
 * error. The exit code is 0 or 1; commands that compare end with 2 when they could not. */
#ifndef MERIDIAN_SHELL_SHELL_H
#define MERIDIAN_SHELL_SHELL_H

#include "meridian/tp.h"
#include "shell/dev_settings.h"
#include "shell/options.h"

struct shell {
    struct options opt;
    struct dev_settings dev;
    struct tp *tp;
    int64_t load_ns;             /* time the load took */
    bool needs_packets;          /* the command reads more of a trace than its tables: no snapshot will do */
    bool writes_all;             /* what it writes has all that its traces have, and may take the place of one */
    bool no_health_report;       /* the command has a report of its own */
    bool names_functions_itself; /* the command looks for symbols, whatever the environment says about loading */
    int failure_status;          /* the exit status of an error; 0: 1 */
    const char *program;
};

struct command {
    struct command_text text;
    int where; /* whose flags it takes: one of IN_* */
    /* 0: exit 0; 1, 2: exit with that, everything has been said; negative: exit 1 (commands that compare: 2) with the
     * error's text. NULL: see `later`. */
    int (*run)(struct shell *sh, struct error *err);
    const char *later;
};

extern const struct command commands[];
extern const size_t n_commands;
const struct command *command_find(const char *name);

/* The whole program. */
int shell_main(int argc, char **argv);

/* Prints what `help` and --help show; `cmd` NULL: the overview. */
void help_overview(void);
void help_command(const struct command *cmd);
void help_classic(void);

/* Reads the flags of the form without a command as those of the command that they stand for. */
int classic_choose(struct options *o, const struct command **cmd, struct error *err);

/* Called traceconv: is this one of its modes, and the command line that argv[0, n) with the mode at `at` stands for,
 * into `out` with room for n + 2; returns their number. */
bool traceconv_is_mode(const char *arg);
int traceconv_words(int n, char **argv, int at, char **out);

/* The commands. */
int cmd_query(struct shell *sh, struct error *err);
int cmd_interactive(struct shell *sh, struct error *err);
int cmd_check(struct shell *sh, struct error *err);
int cmd_cut(struct shell *sh, struct error *err);
int cmd_diff(struct shell *sh, struct error *err);
int cmd_report(struct shell *sh, struct error *err);
int cmd_fleet(struct shell *sh, struct error *err);
int cmd_gate(struct shell *sh, struct error *err);
int cmd_export(struct shell *sh, struct error *err);
int cmd_snapshot(struct shell *sh, struct error *err);
int cmd_sync(struct shell *sh, struct error *err);
int cmd_summarize(struct shell *sh, struct error *err);
int cmd_server(struct shell *sh, struct error *err);
int cmd_convert(struct shell *sh, struct error *err);
int cmd_util(struct shell *sh, struct error *err);
int cmd_bundle(struct shell *sh, struct error *err);

/* Runs every statement of a text and shows each result on standard output in `format` (an enum output_format); `width`
 * as in struct output. *first_row_ns (may be NULL) gets the time to the first row. */
int shell_run_sql(struct shell *sh, const char *origin, const char *sql, size_t len, int format, unsigned width,
                  struct error *err);

/* The prompt, until the user leaves. */
int repl_run(struct shell *sh, struct error *err);

/* Opens the handle by the global flags (with --remote: connects to the server, `n` is 0) and loads `paths`; says how
 * long it took and how healthy the traces are. */
int session_load(struct shell *sh, const char *const *paths, size_t n, struct error *err);
/* Are both names of one regular file? */
bool session_same_file(const char *a, const char *b);
/* Refuses to write what would replace the trace that it is made of. `out` may be NULL. */
int session_spare_input(const char *in, const char *out, struct error *err);

/* What the global flags say about loading, and the modules that they add to a handle: for handles opened later. */
int session_config(const struct shell *sh, struct tp_config *config, struct error *err);
int session_add_packages(const struct shell *sh, struct tp *tp);

/* The report on losses and errors, on standard error. */
void session_report_health(struct tp *tp);

/* Takes over the text of the handle's last failure. */
int session_error(struct shell *sh, int code, struct error *err);

/* Writes "<load>,<query>" nanoseconds to --perf-file. */
int session_write_perf(struct shell *sh, int64_t query_ns, struct error *err);

/* Writes what -m asked for, if anything. */
int session_write_metatrace(struct shell *sh, struct error *err);

int64_t shell_now_ns(void);

#endif
