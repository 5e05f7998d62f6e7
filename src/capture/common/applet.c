/* The table of applets and the dispatch by name. */
#include "capture/common/applet.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Sorted by name; a new daemon is a new row. */
static const struct applet applets[] = {
    {"perfetto", perfetto_main, "record a trace, or ask the service about one"},
    {"record", record_main, "records this machine and others, over ssh, with one command"},
    {"relay-keys", relay_keys_main, "makes certificates for links between machines"},
    {"traced", traced_main, "the tracing service"},
    {"traced_probes", traced_probes_main, "offers this machine's data sources to the service"},
    {"traced_relay", traced_relay_main, "forwards the producers of this machine to the service of another"},
};

static const struct applet *find(const char *name)
{
    for (size_t i = 0; i < sizeof applets / sizeof *applets; i++)
        if (strcmp(applets[i].name, name) == 0)
            return &applets[i];
    return NULL;
}

static void print_usage(FILE *to)
{
    fprintf(to, "Usage: tracebox APPLET [arguments]\n\nApplets:\n");
    for (size_t i = 0; i < sizeof applets / sizeof *applets; i++)
        fprintf(to, "  %-14s %s\n", applets[i].name, applets[i].help);
    fprintf(to, "\nEach explains itself with --help. Example:\n"
                "  tracebox traced & tracebox traced_probes &\n"
                "  tracebox perfetto -t 5s -o trace.pftrace sched/sched_switch\n");
}

int tracebox_main(int argc, char **argv)
{
    const char *slash = argc ? strrchr(argv[0], '/') : NULL;
    const struct applet *a = argc ? find(slash ? slash + 1 : argv[0]) : NULL;
    if (a)
        return a->main(argc, argv);
    if (argc > 1 && (a = find(argv[1])) != NULL)
        return a->main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("Meridian v%s\n", MERIDIAN_VERSION);
        return 0;
    }
    bool asked = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    if (argc > 1 && !asked)
        fprintf(stderr, "tracebox: no applet is called '%s'\n\n", argv[1]);
    print_usage(asked ? stdout : stderr);
    return asked ? 0 : 1;
}
