/* The texts of help, made from the tables of commands and flags. */
#include "shell/shell.h"

#include <stdio.h>

static const struct flag rows[] = {
#define FLAG(...) FLAG_ROW(struct options, __VA_ARGS__),
#include "shell/flags.def"
#undef FLAG
};
const struct flag_table shell_flags = {rows, sizeof rows / sizeof *rows, offsetof(struct options, positionals)};

void help_overview(void)
{
    printf("tp_shell: ask SQL about traces.\n\n"
           "Usage: tp_shell [command] [flags] TRACE...\n\n"
           "  tp_shell trace.pftrace                        a prompt over the trace\n"
           "  tp_shell query trace.pftrace 'select ...'     one answer, as CSV\n"
           "  tp_shell check trace.pftrace                  exit 1 when data was lost\n"
           "  tp_shell server http trace.pftrace            for the Perfetto UI\n\n"
           "Commands:\n");
    for (size_t i = 0; i < n_commands; i++)
        printf("  %-12s %s%s\n", commands[i].text.name, commands[i].text.summary, commands[i].run ? "" : " (not yet)");
    printf("  %-12s %s\n\n", "help", "Explain a command: tp_shell help query");
    printf("Flags of every command\n");
    flags_help_common(stdout, &shell_flags, IN_ALL);
    printf("\nThe flags of the form without a command: tp_shell --help-classic\n");
}

void help_command(const struct command *cmd)
{
    command_help(stdout, "tp_shell ", &cmd->text, &shell_flags, cmd->where, IN_ALL);
}

void help_classic(void)
{
    printf("Usage: tp_shell [flags] TRACE\n\nThe form without a command; its flags stand for these commands:\n"
           "  -q FILE, -Q SQL      query\n"
           "  -e FILE              export sqlite\n"
           "  -D, --stdiod         server\n"
           "  --summary            summarize\n"
           "  --run-metrics NAMES  metrics\n"
           "  none of them         interactive\n\n"
           "Examples:\n"
           "  tp_shell -Q 'select count(*) from sched' trace.pftrace\n"
           "  tp_shell -D trace.pftrace\n");
    flags_help(stdout, &shell_flags, IN_CLASSIC, 0);
}
