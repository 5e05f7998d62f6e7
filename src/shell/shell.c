/* Finds the command of a command line and runs it. */
#include "shell/shell.h"
#include "base/clock.h"
#include "base/suggest.h"
#include "shell/did_you_mean.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const struct command commands[] = {
#define COMMAND(name, where, arguments, summary, words, details, examples, run, later)                                 \
    {{#name, arguments, summary, words, details, examples}, where, run, later},
#include "shell/commands.def"
#undef COMMAND
};
const size_t n_commands = sizeof commands / sizeof *commands;

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < n_commands; i++)
        if (strcmp(commands[i].text.name, name) == 0)
            return &commands[i];
    return NULL;
}

int64_t shell_now_ns(void)
{
    return clock_now_ns(CLOCK_MONOTONIC);
}

static bool is_command(const char *arg)
{
    return command_find(arg) || strcmp(arg, "help") == 0;
}

/* " (did you mean 'query'?)", or nothing. */
static const char *nearest_command(const char *word, char *text, size_t room)
{
    struct suggestion s = suggest(word, strlen(word));
    for (size_t i = 0; i < n_commands; i++)
        suggest_among(&s, commands[i].text.name);
    suggest_among(&s, "help");
    return suggest_text(&s, "", text, room);
}

static void print_version(void)
{
    printf("Meridian v%s\nTrace Processor RPC API version: 14\n", MERIDIAN_VERSION);
}

static bool is_any(const char *arg, const char *letter, const char *name)
{
    return strcmp(arg, letter) == 0 || strcmp(arg, name) == 0;
}

static int run_help(int n, char **argv, struct error *err)
{
    if (n == 0 || strcmp(argv[0], "help") == 0 || is_any(argv[0], "-h", "--help")) {
        help_overview();
        return 0;
    }
    if (is_any(argv[0], "-v", "--version")) {
        print_version();
        return 0;
    }
    const struct command *cmd = command_find(argv[0]);
    if (!cmd) {
        char text[80];
        return error_set(err, -MRD_EINVALID, "Unknown command '%.100s'.%s tp_shell help lists them.", argv[0],
                         nearest_command(argv[0], text, sizeof text));
    }
    help_command(cmd);
    return 0;
}

static int run_parsed(struct shell *sh, const struct command *cmd, int parsed, struct error *err)
{
    const struct error refusal = *err;
    if (cmd->where & (IN_DIFF | IN_GATE))
        sh->failure_status = 2;
    if (sh->opt.help) {
        help_command(cmd);
        return 0;
    }
    if (sh->opt.version) {
        print_version();
        return 0;
    }
    if (!cmd->run)
        return error_set(err, -MRD_EUNSUPPORTED, "%s", cmd->later);
    if (parsed < 0)
        return error_set(err, parsed, "%s: %s (tp_shell help %s explains)", cmd->text.name, refusal.text,
                         cmd->text.name);
    int rc = dev_settings_read(&sh->dev, &sh->opt.dev_flag, cmd->where, err);
    return rc < 0 ? rc : cmd->run(sh, err);
}

/* The command's flags may stand before its name: everything but the name is its command line. */
static int dispatch(struct shell *sh, int n, char **argv, int at, struct error *err)
{
    const char *name = argv[at];
    if (access(name, F_OK) == 0)
        fprintf(stderr, "note: '%s' is taken as the command; write ./%s for the file of that name\n", name, name);
    if (strcmp(name, "help") == 0)
        return run_help(n - at - 1, argv + at + 1, err);
    memmove(argv + at, argv + at + 1, (size_t)(n - at - 1) * sizeof *argv);
    const struct command *cmd = command_find(name);
    int parsed = flags_parse(&shell_flags, &sh->opt, cmd->where, n - 1, argv, err);
    return run_parsed(sh, cmd, parsed, err);
}

static int dispatch_classic(struct shell *sh, int n, char **argv, struct error *err)
{
    const struct command *cmd = NULL;
    int rc = flags_parse(&shell_flags, &sh->opt, IN_CLASSIC, n, argv, err);
    if (sh->opt.help_classic) {
        help_classic();
        return 0;
    }
    if (sh->opt.help) {
        help_overview();
        return 0;
    }
    if (sh->opt.version) {
        print_version();
        return 0;
    }
    /* the first word is a trace, unless it was to be a command */
    const char *first = sh->opt.positionals.n ? sh->opt.positionals.p[0] : NULL;
    char meant[80];
    bool named = first && strcmp(first, "-") != 0 && !strpbrk(first, "./");
    if ((rc == 0 || rc == -MRD_EINVALID) && named && access(first, F_OK) != 0) {
        bool near = *nearest_command(first, meant, sizeof meant);
        rc = error_set(err, -MRD_EINVALID, "'%.100s' is neither a command nor a file%s", first,
                       near ? meant : " (tp_shell help lists the commands)");
    }
    if (rc == 0)
        rc = classic_choose(&sh->opt, &cmd, err);
    return rc < 0 || !cmd ? rc : run_parsed(sh, cmd, 0, err);
}

static int dispatch_traceconv(struct shell *sh, int n, char **argv, struct error *err)
{
    int at = flags_find_positional(&shell_flags, n, argv, traceconv_is_mode);
    if (at < 0 && n == 1 && is_any(argv[0], "-v", "--version"))
        return run_help(n, argv, err);
    if (at < 0) {
        bool asked = n == 0 || (n == 1 && is_any(argv[0], "-h", "--help"));
        help_command(command_find("convert"));
        return asked ? 0 : error_set(err, -MRD_EINVALID, "no format was given");
    }
    char **words = mem_alloc((size_t)(n + 2) * sizeof *words);
    if (!words)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    int rc = dispatch(sh, traceconv_words(n, argv, at, words), words, 0, err);
    mem_free(words);
    return rc;
}

int shell_main(int argc, char **argv)
{
    struct shell sh = {.program = argc > 0 ? argv[0] : "tp_shell"};
    struct error err = {0};
    int rc, at;
    const char *base = strrchr(sh.program, '/');
    base = base ? base + 1 : sh.program;
    if (strcmp(base, "traceconv") == 0 || strncmp(base, "traceconv-", 10) == 0)
        rc = dispatch_traceconv(&sh, argc > 0 ? argc - 1 : 0, argv + 1, &err);
    else if (argc <= 1)
        rc = run_help(0, NULL, &err);
    else if ((at = flags_find_positional(&shell_flags, argc - 1, argv + 1, is_command)) >= 0)
        rc = dispatch(&sh, argc - 1, argv + 1, at, &err);
    else
        rc = dispatch_classic(&sh, argc - 1, argv + 1, &err);
    if (rc < 0) {
        /* A failed statement's text may be longer than an error value: the handle has all of it. */
        if (sh.tp && err.code == -MRD_ESQL && tp_error(sh.tp)[0])
            shell_tell_error(sh.tp);
        else
            fprintf(stderr, "%s\n", err.text[0] ? err.text : error_code_text(rc));
    }
    struct error meta_err = {0};
    if (session_write_metatrace(&sh, &meta_err) < 0) {
        fprintf(stderr, "%s\n", meta_err.text);
        rc = -1;
    }
    tp_close(sh.tp);
    flags_free(&shell_flags, &sh.opt);
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (rc >= 0)
            fprintf(stderr, "the output cannot be written: %s\n", strerror(errno ? errno : EIO));
        rc = -1;
    }
    if (rc < 0)
        return sh.failure_status ? sh.failure_status : 1;
    return rc > 1 ? 2 : rc;
}
