/* The texts of help, made from the tables of commands and flags. */
#include "shell/shell.h"

#include <stdio.h>
#include <string.h>

static void print_flags(int where, int but)
{
    for (size_t i = 0; i < n_flags; i++) {
        const struct flag *f = &flags[i];
        if (!(f->where & where) || (but && (f->where & but) == but))
            continue;
        char head[64];
        snprintf(head, sizeof head, "%c%c%s--%s%s%s", f->letter ? '-' : ' ', f->letter ? f->letter : ' ',
                 f->letter ? ", " : "  ", f->name, f->value ? " " : "", f->value ? f->value : "");
        printf("  %-38s %s%s\n", head, f->help, f->later ? " (not yet)" : "");
    }
}

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
        printf("  %-12s %s%s\n", commands[i].name, commands[i].summary, commands[i].run ? "" : " (not yet)");
    printf("  %-12s %s\n\n", "help", "Explain a command: tp_shell help query");
    printf("Flags of every command:\n");
    print_flags(IN_OTHER, 0);
    printf("\nThe flags of the form without a command: tp_shell --help-classic\n");
}

static const struct {
    const char *command, *text;
} examples[] = {
    {"query", "  tp_shell query trace.pftrace 'select name, count(*) from slice group by name'\n"
              "  tp_shell query --remote localhost:9001 'select count(*) from sched'\n"},
    {"interactive", "  tp_shell interactive trace.pftrace\n"
                    "  tp_shell interactive --remote localhost:9001\n"},
    {"check", "  tp_shell check trace.pftrace\n"
              "  tp_shell check --format github --allow 'traced_buf_*=10' *.pftrace\n"},
    {"export", "  tp_shell export sqlite trace.pftrace -o trace.db\n"},
    {"convert", "  tp_shell convert json trace.pftrace trace.json\n"
                "  tp_shell convert systrace trace.pftrace | grep sched_switch\n"},
    {"sync", "  tp_shell sync hostA.pftrace hostB.pftrace --plot sync.svg\n"
             "  tp_shell sync hostA.pftrace hostB.pftrace -o merged.pftrace\n"},
    {"summarize", "  tp_shell summarize trace.pftrace spec.textproto --metrics-v2 all\n"
                  "  tp_shell summarize trace.pftrace spec.textproto --metrics-v2 cpu_time,wakeups --format binary\n"},
    {"server", "  tp_shell server http trace.pftrace            then open https://ui.perfetto.dev\n"
               "  tp_shell server unix --name run7 --daemonize trace.pftrace\n"
               "  tp_shell interactive --remote run7\n"
               "  tp_shell server kill run7\n"},
    {"util",
     "  tp_shell util merge -o both.tar a.pftrace b.pftrace --machine a.pftrace=server --machine b.pftrace=client\n"
     "  tp_shell util text_to_binary trace.txt trace.pftrace\n"
     "  tp_shell util merge -o both.tar a.pftrace b.pftrace --offset b.pftrace=1500us\n"},
};

void help_command(const struct command *cmd)
{
    printf("Usage: tp_shell %s [flags] %s\n\n%s.%s\n", cmd->name, cmd->arguments, cmd->summary,
           cmd->run ? "" : " Not available yet.");
    if (cmd->where != IN_OTHER) {
        printf("\nFlags:\n");
        print_flags(cmd->where, IN_ALL);
    }
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        if (strcmp(examples[i].command, cmd->name) == 0)
            printf("\nExamples:\n%s", examples[i].text);
    printf("\nFlags of every command:\n");
    print_flags(IN_OTHER, 0);
}

void help_classic(void)
{
    printf("Usage: tp_shell [flags] TRACE\n\nThe form without a command; its flags stand for these commands:\n"
           "  -q FILE, -Q SQL      query\n"
           "  -e FILE              export sqlite\n"
           "  -D, --stdiod         server\n"
           "  --summary            summarize\n"
           "  --run-metrics NAMES  metrics\n"
           "  none of them         interactive\n\nFlags:\n");
    print_flags(IN_CLASSIC, 0);
}
