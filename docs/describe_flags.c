/* Writes man pages and completions of tp_shell and tracebox into a directory, out of their tables of flags. */
#include "flag_pages.h"

#include "shell/options.h"

#include <string.h>

#define FLAG(field, kind, letter, name, value, where, group, help, later)                                              \
    {name, letter, FLAG_##kind, where, value, group, help, later, 0},
static const struct flag shell_rows[] = {
#include "shell/flags.def"
};
static const struct flag perfetto_rows[] = {
#include "capture/client/perfetto_flags.def"
};
static const struct flag profile_rows[] = {
#include "capture/record/profile_flags.def"
};
static const struct flag record_rows[] = {
#include "capture/record/record_flags.def"
};
static const struct flag heapprofd_rows[] = {
#include "capture/heap/heap_flags.def"
};
static const struct flag relay_keys_rows[] = {
#include "capture/relay/keys_flags.def"
};
static const struct flag traced_rows[] = {
#include "capture/service/traced_flags.def"
};
static const struct flag traced_perf_rows[] = {
#include "capture/perf/perf_flags.def"
};
static const struct flag traced_probes_rows[] = {
#include "capture/probes/probes_flags.def"
};
static const struct flag traced_relay_rows[] = {
#include "capture/relay/relay_flags.def"
};
#undef FLAG

static const struct page_command shell_commands[] = {
#define COMMAND(name, where, arguments, summary, words, details, examples, run, later)                                 \
    {{#name, arguments, summary, words, details, examples},                                                            \
     where,                                                                                                            \
     {shell_rows, sizeof shell_rows / sizeof *shell_rows, 0}},
#include "shell/commands.def"
#undef COMMAND
    {{"", "TRACE", "Without a command, flags say what to do; without those: ask questions at a prompt", NULL, NULL,
      "tp_shell trace.pftrace\n"
      "tp_shell -Q 'select count(*) from sched' trace.pftrace"},
     IN_CLASSIC,
     {shell_rows, sizeof shell_rows / sizeof *shell_rows, 0}},
};

static const struct page_command applets[] = {
#define APPLET(main, name, arguments, summary, details, examples)                                                      \
    {{name, arguments, summary, NULL, details, examples},                                                              \
     1,                                                                                                                \
     {main##_rows, sizeof main##_rows / sizeof *main##_rows, 0}},
#include "capture/common/applets.def"
#undef APPLET
};

static const struct page_program programs[] = {
    {"tp_shell", "ask SQL about traces", "[command] [flags] TRACE...", "command", IN_ALL, shell_commands,
     sizeof shell_commands / sizeof *shell_commands, "tracebox"},
    {"tracebox", "record what Linux machines do", "APPLET [flags] [arguments]", "applet", 0, applets,
     sizeof applets / sizeof *applets, "tp_shell"},
};

static const struct {
    const char *before, *after; /* of the program's name */
    void (*write)(FILE *to, const struct page_program *p);
} kinds[] = {
    {"", ".1", page_write_man},     {"", ".bash", page_write_bash},  {"_", "", page_write_zsh},
    {"", ".fish", page_write_fish}, {"", ".flags", page_write_list},
};

static int write_page(const char *dir, size_t kind, const struct page_program *p)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s%s", dir, kinds[kind].before, p->name, kinds[kind].after);
    FILE *to = fopen(path, "w");
    if (to)
        kinds[kind].write(to, p);
    bool good = to && !ferror(to);
    if ((to && fclose(to) != 0) || !good) {
        perror(path);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: describe_flags DIR\n");
        return 1;
    }
    int rc = 0;
    for (size_t p = 0; p < sizeof programs / sizeof *programs; p++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            rc |= write_page(argv[1], k, &programs[p]);
    return rc;
}
