/* Writes the man page of a program (man(7) macros). */
#include "flag_pages.h"

#include <string.h>

/* Text without a meaning for troff. */
static void put_text(FILE *to, const char *s, size_t len)
{
    if (len && (s[0] == '.' || s[0] == '\''))
        fputs("\\&", to);
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '\\')
            fputs("\\e", to);
        else if (s[i] == '-')
            fputs("\\-", to);
        else if (strncmp(s + i, "…", strlen("…")) == 0)
            fputs("\\[u2026]", to), i += strlen("…") - 1;
        else
            fputc(s[i], to);
    }
}

static void put(FILE *to, const char *s)
{
    put_text(to, s, strlen(s));
}

static void put_upper(FILE *to, const char *s)
{
    for (; *s; s++)
        fputc(*s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s, to);
}

/* As it stands, line by line. */
static void put_verbatim(FILE *to, const char *text)
{
    fputs(".PP\n.RS 2\n.nf\n", to);
    while (*text) {
        size_t len = strcspn(text, "\n");
        put_text(to, text, len);
        fputc('\n', to);
        text += len + (text[len] != '\0');
    }
    fputs(".fi\n.RE\n", to);
}

static void put_flag(FILE *to, const struct flag *f)
{
    fputs(".TP\n", to);
    if (f->letter)
        fprintf(to, "\\fB\\-%c\\fR, ", f->letter);
    fputs("\\fB\\-\\-", to);
    put(to, f->name);
    fputs("\\fR", to);
    if (f->value) {
        fputs(" \\fI", to);
        put(to, f->value);
        fputs("\\fR", to);
    }
    fputc('\n', to);
    put(to, f->help);
    fputs(f->later ? " (not yet)\n" : "\n", to);
}

/* The flags of a command; those that all commands share are left out, or given alone. */
static void put_flags(FILE *to, const struct page_command *c, int common, bool shared)
{
    const char *group = NULL;
    const struct flag *f;
    for (size_t i = 0; (f = page_next_flag(c, &i)) != NULL;) {
        if ((common && (f->where & common) == common) != shared)
            continue;
        if (!group || strcmp(group, f->group) != 0) {
            if (group || !shared)
                fputs(".PP\n", to);
            put(to, f->group);
            fputs(":\n", to);
        }
        group = f->group;
        put_flag(to, f);
    }
}

static void put_command(FILE *to, const struct page_program *p, const struct page_command *c)
{
    fputs(".SS \"", to);
    fputs(p->name, to);
    if (*c->text.name)
        fputc(' ', to), put(to, c->text.name);
    fputs(" [flags] ", to);
    put(to, c->text.arguments);
    fputs("\"\n", to);
    put(to, c->text.summary);
    fputs(".\n", to);
    put_flags(to, c, p->common, false);
    if (c->text.details)
        put_verbatim(to, c->text.details);
    if (c->text.examples) {
        fputs(".PP\nExamples:\n", to);
        put_verbatim(to, c->text.examples);
    }
}

void page_write_man(FILE *to, const struct page_program *p)
{
    fputs(".TH ", to);
    put_upper(to, p->name);
    fprintf(to, " 1 \"\" \"Meridian %s\" \"Meridian\"\n.SH NAME\n", MERIDIAN_VERSION);
    fprintf(to, "%s \\- %s\n.SH SYNOPSIS\n\\fB%s\\fR ", p->name, p->summary, p->name);
    put(to, p->synopsis);
    fputs("\n.SH ", to);
    put_upper(to, p->first);
    fputs("S\n", to);
    for (size_t i = 0; i < p->n; i++)
        put_command(to, p, &p->commands[i]);
    if (p->common) {
        fputs(".SH \"FLAGS OF EVERY COMMAND\"\n", to);
        put_flags(to, &p->commands[0], p->common, true);
    }
    fprintf(to, ".SH \"SEE ALSO\"\n\\fB%s\\fR(1)\n", p->see);
}
