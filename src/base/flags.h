/* Command lines by tables: one row a flag, from which come the parser, --help, the man pages and the completions.
 *
 * The rows of a program are in a .def file, one macro call each, included by whatever needs them:
 *
 *     FLAG(field, KIND, letter, "name", "VALUE", where, "group", "help", "later")
 *
 *   field   member of the program's struct of values, of the type FLAG_TYPE_<KIND>
 *   letter  short form, 0: none
 *   VALUE   what stands behind it, NULL for BOOL. Words in small letters are literal: "read|map"; FILE, DIR, PATH are
 * files where   the commands that know it, a set of bits of the program group   heading in the help; rows of a group
 * stand together help    one line; NULL: no help shows it later   why it cannot be used, NULL: it can */
#ifndef MERIDIAN_BASE_FLAGS_H
#define MERIDIAN_BASE_FLAGS_H

#include "base/error.h"
#include "base/vec.h"

#include <stdint.h>
#include <stdio.h>

enum flag_kind {
    FLAG_BOOL,     /* given or not */
    FLAG_TEXT,     /* the last one counts; NULL: not given */
    FLAG_OPTIONAL, /* --name or --name=TEXT; "" without a text, NULL: not given */
    FLAG_LIST,     /* repeatable */
    FLAG_COUNT,    /* not negative */
    FLAG_NUMBER,   /* any, and whether it was given */
};

struct text_list {
    const char **p;
    size_t n;
    size_t cap;
    size_t dashes; /* of positional arguments: 1 + how many of them stand before "--"; 0: there is none */
};

struct given_number {
    bool given;
    int64_t value;
};

/* Texts are views of argv. */
#define FLAG_TYPE_BOOL     bool
#define FLAG_TYPE_TEXT     const char *
#define FLAG_TYPE_OPTIONAL const char *
#define FLAG_TYPE_LIST     struct text_list
#define FLAG_TYPE_COUNT    int64_t
#define FLAG_TYPE_NUMBER   struct given_number

struct flag {
    const char *name;
    char letter;
    uint8_t kind; /* enum flag_kind */
    int where;
    const char *value, *group, *help, *later;
    size_t offset; /* of the field, in the struct of values */
};

/* A row of a table, out of the columns of a .def file. */
#define FLAG_ROW(type, field, kind, letter, name, value, where, group, help, later)                                    \
    {                                                                                                                  \
        name, letter, FLAG_##kind, where, value, group, help, later, offsetof(type, field)                             \
    }

struct flag_table {
    const struct flag *rows;
    size_t n;
    size_t positionals; /* offset of the struct text_list that gets the arguments that are not flags */
};

/* Reads argv[0, n) for the flags of `where` into `values`. -MRD_EINVALID with a text for the user; -MRD_EUNSUPPORTED
 * for a flag that cannot be used; -MRD_ENOMEM. "--" ends the flags; long names may be shortened as long as they are
 * unique; flags may stand behind other arguments. */
int flags_parse(const struct flag_table *t, void *values, int where, int n, char **argv, struct error *err);
void flags_free(const struct flag_table *t, void *values);

/* The index in argv[0, n) of the first positional argument that `match` accepts, or -1; values of flags of any command
 * are passed over. */
int flags_find_positional(const struct flag_table *t, int n, char **argv, bool (*match)(const char *arg));

/* Prints the flags of `where` under the headings of their groups, but not those that all of `common` know (0: none);
 * nothing when there are none. */
void flags_help(FILE *to, const struct flag_table *t, int where, int common);

/* Prints the flags that all of `common` know. */
void flags_help_common(FILE *to, const struct flag_table *t, int common);

/* A command in its program's help, man page and completions. */
struct command_text {
    const char *name;
    const char *arguments; /* behind the flags in its usage */
    const char *summary;   /* a sentence without its dot */
    const char *words;     /* what its first argument may be, separated by blanks; NULL: anything */
    const char *details;   /* paragraphs: environment, exit status; NULL: none */
    const char *examples;  /* command lines, one a line */
};

/* Prints what --help shows of it: usage, summary, its flags, details, examples. `program` stands before its name in the
 * usage, with a blank; "" for an applet. `common`: the bits that all commands share, whose flags come last. */
void command_help(FILE *to, const char *program, const struct command_text *c, const struct flag_table *t, int where,
                  int common);

#endif
