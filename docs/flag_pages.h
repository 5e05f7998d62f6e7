/* The man page and the completions of a program, made from its tables of commands and flags. */
#ifndef MERIDIAN_DOCS_FLAG_PAGES_H
#define MERIDIAN_DOCS_FLAG_PAGES_H

#include "base/flags.h"

struct page_command {
    struct command_text text; /* name "": the form without a command */
    int where;
    struct flag_table flags;
};

struct page_program {
    const char *name, *summary, *synopsis;
    const char *first; /* what the first argument is: "command" */
    int common;        /* the bits that all commands share, 0: none */
    const struct page_command *commands;
    size_t n;
    const char *see; /* the page that belongs to it */
};

/* The next flag at or behind row *i that is shown for a command; NULL: no more. *i becomes the row behind it. */
const struct flag *page_next_flag(const struct page_command *c, size_t *i);

/* What completes the value of a flag. */
enum value_kind { VALUE_NONE, VALUE_ANY, VALUE_FILE, VALUE_DIR, VALUE_WORDS };

/* `words` gets the literal words of the value, separated by blanks, for VALUE_WORDS. */
enum value_kind page_value(const struct flag *f, char *words, size_t size);

void page_write_man(FILE *to, const struct page_program *p);
void page_write_bash(FILE *to, const struct page_program *p);
void page_write_zsh(FILE *to, const struct page_program *p);
void page_write_fish(FILE *to, const struct page_program *p);

/* One flag a line: program, command, name, letter, name of the value, whether it can be used yet; tabs between. */
void page_write_list(FILE *to, const struct page_program *p);

#endif
