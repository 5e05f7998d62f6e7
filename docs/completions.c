/* Writes completions of a program for bash, zsh and fish. */
#include "flag_pages.h"

#include <ctype.h>
#include <string.h>

const struct flag *page_next_flag(const struct page_command *c, size_t *i)
{
    for (; *i < c->flags.n; (*i)++)
        if (c->flags.rows[*i].help && c->flags.rows[*i].where & c->where)
            return &c->flags.rows[(*i)++];
    return NULL;
}

enum value_kind page_value(const struct flag *f, char *words, size_t size)
{
    words[0] = '\0';
    if (!f->value)
        return VALUE_NONE;
    if (strncmp(f->value, "FILE", 4) == 0)
        return VALUE_FILE;
    if (strncmp(f->value, "PATH", 4) == 0 || strncmp(f->value, "DIR", 3) == 0)
        return VALUE_DIR;
    if (strchr(f->value, '['))
        return VALUE_ANY;
    size_t at = 0;
    for (const char *p = f->value; *p;) {
        size_t len = strcspn(p, "|");
        if (islower((unsigned char)*p) && at < size)
            at += (size_t)snprintf(words + at, size - at, "%s%.*s", at ? " " : "", (int)len, p);
        p += len + (p[len] != '\0');
    }
    return at ? VALUE_WORDS : VALUE_ANY;
}

static void put_commands(FILE *to, const struct page_program *p, const char *between)
{
    const char *before = "";
    for (size_t i = 0; i < p->n; i++)
        if (*p->commands[i].text.name)
            fprintf(to, "%s%s", before, p->commands[i].text.name), before = between;
}

/* ---- bash ---- */

static void bash_command(FILE *to, const struct page_command *c)
{
    const struct flag *f;
    char words[200];
    fprintf(to, "    %s)\n        case $prev in\n", *c->text.name ? c->text.name : "''");
    for (size_t i = 0; (f = page_next_flag(c, &i)) != NULL;)
        if (page_value(f, words, sizeof words) == VALUE_WORDS)
            fprintf(to, "        --%s) words='%s' ;;\n", f->name, words);
        else if (f->kind != FLAG_BOOL && f->letter)
            fprintf(to, "        --%s | -%c) return ;;\n", f->name, f->letter);
        else if (f->kind != FLAG_BOOL)
            fprintf(to, "        --%s) return ;;\n", f->name);
    fprintf(to, "        \"$cmd\") words='%s' ;;\n        esac\n        flags='", c->text.words ? c->text.words : "");
    for (size_t i = 0; (f = page_next_flag(c, &i)) != NULL;)
        fprintf(to, "--%s ", f->name);
    fputs("'\n        ;;\n", to);
}

void page_write_bash(FILE *to, const struct page_program *p)
{
    fprintf(to,
            "# Completion of %s for bash; made from the tables of its flags.\n"
            "_%s()\n{\n"
            "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} cmd='' words='' flags='' i\n"
            "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
            "        case ${COMP_WORDS[i]} in\n        ",
            p->name, p->name);
    put_commands(to, p, " | ");
    fputs(") cmd=${COMP_WORDS[i]}; break ;;\n        esac\n    done\n    case $cmd in\n", to);
    for (size_t i = 0; i < p->n; i++)
        bash_command(to, &p->commands[i]);
    fputs("    esac\n    [[ -z $cmd && $COMP_CWORD == 1 ]] && words='", to);
    put_commands(to, p, " ");
    fprintf(to,
            "'\n    [[ $cur == -* ]] && words=$flags\n"
            "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
            "}\n"
            "complete -o bashdefault -o default -F _%s %s\n",
            p->name, p->name);
}

/* ---- zsh ---- */

/* Inside of single quotes; brackets and colons have a meaning for _arguments. */
static void zsh_text(FILE *to, const char *s)
{
    for (; *s; s++) {
        if (*s == '\'')
            fputs("'\\''", to);
        else if (strchr("[]:\\", *s))
            fprintf(to, "\\%c", *s);
        else
            fputc(*s, to);
    }
}

static void zsh_flag(FILE *to, const struct flag *f)
{
    char words[200];
    enum value_kind kind = page_value(f, words, sizeof words);
    const char *often = f->kind == FLAG_LIST ? "*" : "";
    if (f->letter)
        fprintf(to, "            '%s'{-%c%s,--%s%s}'[", often, f->letter, f->value ? "+" : "", f->name,
                f->value ? "=" : "");
    else
        fprintf(to, "            '%s--%s%s[", often, f->name, f->value ? "=" : "");
    zsh_text(to, f->help);
    fputc(']', to);
    if (kind != VALUE_NONE) {
        fputc(':', to);
        zsh_text(to, f->value);
        fputc(':', to);
    }
    if (kind == VALUE_WORDS)
        fprintf(to, "(%s)", words);
    fputs(kind == VALUE_FILE ? "_files" : kind == VALUE_DIR ? "_files -/" : "", to);
    fputs("' \\\n", to);
}

static void zsh_command(FILE *to, const struct page_command *c)
{
    const struct flag *f;
    fprintf(to, "        %s)\n            _arguments -s \\\n", *c->text.name ? c->text.name : "*");
    for (size_t i = 0; (f = page_next_flag(c, &i)) != NULL;)
        zsh_flag(to, f);
    if (c->text.words)
        fprintf(to, "            '1:word:(%s)' \\\n", c->text.words);
    fputs("            '*:file:_files'\n            ;;\n", to);
}

void page_write_zsh(FILE *to, const struct page_program *p)
{
    fprintf(to,
            "#compdef %s\n# Completion of %s for zsh; made from the tables of its flags.\n\n_%s()\n{\n"
            "    local -a commands\n    commands=(\n",
            p->name, p->name, p->name);
    for (size_t i = 0; i < p->n; i++) {
        if (!*p->commands[i].text.name)
            continue;
        fprintf(to, "        '%s:", p->commands[i].text.name);
        zsh_text(to, p->commands[i].text.summary);
        fputs("'\n", to);
    }
    fputs("    )\n    if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n"
          "        _describe command commands\n        _files\n        return\n    fi\n"
          "    local command=$words[2]\n    case $command in\n        ",
          to);
    put_commands(to, p, " | ");
    fputs(") shift words; ((CURRENT--)) ;;\n    esac\n    case $command in\n", to);
    for (size_t i = 0; i < p->n; i++)
        zsh_command(to, &p->commands[i]);
    fprintf(to, "    esac\n}\n\n_%s \"$@\"\n", p->name);
}

/* ---- fish ---- */

/* Inside of single quotes. */
static void fish_text(FILE *to, const char *s)
{
    for (; *s; s++)
        fprintf(to, *s == '\'' || *s == '\\' ? "\\%c" : "%c", *s);
}

static void fish_flag(FILE *to, const struct page_program *p, const struct page_command *c, const struct flag *f)
{
    static const char *const how[] = {
        [VALUE_NONE] = "", [VALUE_ANY] = " -x", [VALUE_FILE] = " -r -F", [VALUE_DIR] = " -r -F", [VALUE_WORDS] = " -x"};
    char words[200];
    enum value_kind kind = page_value(f, words, sizeof words);
    if (*c->text.name) {
        fprintf(to, "complete -c %s -n '__fish_seen_subcommand_from %s'", p->name, c->text.name);
    } else {
        fprintf(to, "complete -c %s -n 'not __fish_seen_subcommand_from ", p->name);
        put_commands(to, p, " ");
        fputc('\'', to);
    }
    fprintf(to, " -l %s", f->name);
    if (f->letter)
        fprintf(to, " -s %c", f->letter);
    fputs(how[kind], to);
    if (*words)
        fprintf(to, " -a '%s'", words);
    fputs(" -d '", to);
    fish_text(to, f->help);
    fputs("'\n", to);
}

void page_write_fish(FILE *to, const struct page_program *p)
{
    const struct flag *f;
    fprintf(to, "# Completion of %s for fish; made from the tables of its flags.\n", p->name);
    if (*p->commands[p->n - 1].text.name) /* there is no form without a command: no files in its place */
        fprintf(to, "complete -c %s -n __fish_use_subcommand -f\n", p->name);
    for (size_t i = 0; i < p->n; i++) {
        const struct page_command *c = &p->commands[i];
        if (*c->text.name) {
            fprintf(to, "complete -c %s -n __fish_use_subcommand -a %s -d '", p->name, c->text.name);
            fish_text(to, c->text.summary);
            fputs("'\n", to);
        }
        if (c->text.words)
            fprintf(to, "complete -c %s -n '__fish_seen_subcommand_from %s' -a '%s'\n", p->name, c->text.name,
                    c->text.words);
        for (size_t k = 0; (f = page_next_flag(c, &k)) != NULL;)
            fish_flag(to, p, c, f);
    }
}

/* ---- for tests ---- */

void page_write_list(FILE *to, const struct page_program *p)
{
    const struct flag *f;
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; (f = page_next_flag(&p->commands[i], &k)) != NULL;)
            fprintf(to, "%s\t%s\t%s\t%c\t%s\t%d\t%s\n", p->name, p->commands[i].text.name, f->name,
                    f->letter ? f->letter : '-', f->value ? f->value : "-", f->kind, f->later ? "later" : "now");
}
