/* The table of applets, the dispatch by name, and what their command lines share. */
#include "capture/common/applet.h"
#include "base/suggest.h"
#include "capture/common/machine.h"

#include <string.h>

static const struct applet {
    struct command_text text;
    int (*main)(int argc, char **argv);
} applets[] = {
#define APPLET(main, name, arguments, summary, details, examples)                                                      \
    {{name, arguments, summary, NULL, details, examples}, main##_main},
#include "capture/common/applets.def"
#undef APPLET
};

static const struct applet *find(const char *name)
{
    for (size_t i = 0; i < sizeof applets / sizeof *applets; i++)
        if (strcmp(applets[i].text.name, name) == 0)
            return &applets[i];
    return NULL;
}

static void print_overview(FILE *to)
{
    fprintf(to, "Usage: tracebox APPLET [flags] [arguments]\n\nApplets:\n");
    for (size_t i = 0; i < sizeof applets / sizeof *applets; i++)
        fprintf(to, "  %-14s %s\n", applets[i].text.name, applets[i].text.summary);
    fprintf(to, "\nAPPLET --help explains an applet. Flags without an applet are those of record. Example:\n"
                "  tracebox record -o trace.pftrace -t 5s\n");
}

static void complain(const char *word)
{
    struct suggestion s = suggest(word, strlen(word));
    char text[80];
    for (size_t i = 0; i < sizeof applets / sizeof *applets; i++)
        suggest_among(&s, applets[i].text.name);
    fprintf(stderr, "tracebox: no applet is called '%s'%s\n\n", word, suggest_text(&s, "", text, sizeof text));
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
        printf("%s\n", machine_software_version);
        return 0;
    }
    if (argc > 1 && argv[1][0] == '-' && strcmp(argv[1], "-h") != 0 && strcmp(argv[1], "--help") != 0)
        return find("record")->main(argc, argv); /* tracebox -t 5s … */
    bool asked = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    if (argc > 1 && !asked)
        complain(argv[1]);
    print_overview(asked ? stdout : stderr);
    return asked ? 0 : 1;
}

void applet_help(FILE *to, const char *name, const struct flag_table *t)
{
    command_help(to, "", &find(name)->text, t, ~0, 0);
}

bool applet_tells(const char *name, const struct flag_table *t, bool help, bool version)
{
    if (help)
        applet_help(stdout, name, t);
    else if (version)
        printf("%s\n", machine_software_version);
    return help || version;
}

void applet_usage(const char *name)
{
    const char *arguments = find(name)->text.arguments;
    fprintf(stderr, "Usage: %s [flags]%s%s (%s --help explains)\n", name, *arguments ? " " : "", arguments, name);
}

bool applet_flags(const char *name, const struct flag_table *t, void *values, int argc, char **argv)
{
    struct error err = {0};
    if (flags_parse(t, values, ~0, argc - 1, argv + 1, &err) == 0)
        return true;
    fprintf(stderr, "%s: %s\n", name, err.text);
    applet_usage(name);
    return false;
}

bool applet_flags_only(const char *name, const struct flag_table *t, void *values, int argc, char **argv)
{
    if (!applet_flags(name, t, values, argc, argv))
        return false;
    const struct text_list *l = (const struct text_list *)(const void *)((const char *)values + t->positionals);
    if (l->n == 0)
        return true;
    fprintf(stderr, "%s: unexpected argument '%s'\n", name, l->p[0]);
    applet_usage(name);
    return false;
}
