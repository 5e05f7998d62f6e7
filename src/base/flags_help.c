/* Prints help out of the tables of flags and commands. */
#include "base/flags.h"

#include <string.h>

enum { COLUMN = 40, WIDTH = 118 };

/* Prints `text` behind the column `at`, its further lines below its beginning. */
static void wrapped(FILE *to, const char *text, int at)
{
    size_t room = (size_t)(WIDTH - at);
    while (strlen(text) > room) {
        size_t cut = room;
        while (cut > 0 && text[cut] != ' ')
            cut--;
        if (cut == 0)
            break;
        fprintf(to, "%.*s\n%*s", (int)cut, text, at, "");
        text += cut + 1;
    }
    fprintf(to, "%s\n", text);
}

static void print_flag(FILE *to, const struct flag *f)
{
    char head[96], help[400];
    snprintf(head, sizeof head, "  %c%c%s--%s%s%s", f->letter ? '-' : ' ', f->letter ? f->letter : ' ',
             f->letter ? ", " : "  ", f->name, f->value ? " " : "", f->value ? f->value : "");
    snprintf(help, sizeof help, "%s%s", f->help, f->later ? " (not yet)" : "");
    if (strlen(head) >= COLUMN)
        fprintf(to, "%s\n%*s", head, COLUMN, "");
    else
        fprintf(to, "%-*s", COLUMN, head);
    wrapped(to, help, COLUMN);
}

/* Is it a flag of `where`, and one that all of `common` know, or not all? */
static bool is_wanted(const struct flag *f, int where, int common, bool want_common)
{
    bool is_common = common && (f->where & common) == common;
    return f->help && f->where & where && is_common == want_common;
}

static void print_groups(FILE *to, const struct flag_table *t, int where, int common, bool want_common)
{
    const char *group = NULL;
    for (size_t i = 0; i < t->n; i++) {
        const struct flag *f = &t->rows[i];
        if (!is_wanted(f, where, common, want_common))
            continue;
        if (!group || strcmp(group, f->group) != 0)
            fprintf(to, "\n%s:\n", f->group);
        group = f->group;
        print_flag(to, f);
    }
}

void flags_help(FILE *to, const struct flag_table *t, int where, int common)
{
    print_groups(to, t, where, common, false);
}

void flags_help_common(FILE *to, const struct flag_table *t, int common)
{
    print_groups(to, t, common, common, true);
}

static void print_paragraph(FILE *to, const char *text, const char *indent)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        fprintf(to, "%s%.*s\n", len ? indent : "", (int)len, text);
        text += len + (text[len] != '\0');
    }
}

void command_help(FILE *to, const char *program, const struct command_text *c, const struct flag_table *t, int where,
                  int common)
{
    fprintf(to, "Usage: %s%s [flags]%s%s\n\n%s.\n", program, c->name, *c->arguments ? " " : "", c->arguments,
            c->summary);
    flags_help(to, t, where, common);
    if (c->details) {
        fputc('\n', to);
        print_paragraph(to, c->details, "");
    }
    if (c->examples) {
        fputs("\nExamples:\n", to);
        print_paragraph(to, c->examples, "  ");
    }
    if (common) {
        fputs("\nFlags of every command\n", to);
        flags_help_common(to, t, common);
    }
}
