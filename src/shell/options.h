/* The command line as values: one struct for all commands, filled from the table in flags.def. */
#ifndef MERIDIAN_SHELL_OPTIONS_H
#define MERIDIAN_SHELL_OPTIONS_H

#include "base/error.h"
#include "base/vec.h"

#include <stdint.h>

/* Why Perfetto's metrics of the first generation cannot be had, and what can. */
#define SHELL_NO_METRICS                                                                                               \
    "metrics by name are not available yet; those of trace summary specs are, with tp_shell summarize"

/* Who knows a flag. */
enum flag_where {
    IN_QUERY = 1,
    IN_INTERACTIVE = 2,
    IN_CHECK = 4,
    IN_EXPORT = 8,
    IN_SUMMARIZE = 16,
    IN_METRICS = 32,
    IN_CLASSIC = 64, /* the form without a command */
    IN_OTHER = 128,  /* commands that take only the flags of all */
    IN_SYNC = 256,
    IN_SERVER = 512,
    IN_UTIL = 1024,
    IN_CONVERT = 2048,
    IN_ALL = 4095,
};

enum flag_kind { FLAG_BOOL, FLAG_TEXT, FLAG_LIST, FLAG_COUNT };

struct text_list {
    const char **p;
    size_t n;
    size_t cap;
};

#define FLAG_TYPE_BOOL  bool
#define FLAG_TYPE_TEXT  const char *
#define FLAG_TYPE_LIST  struct text_list
#define FLAG_TYPE_COUNT int64_t

/* Texts are views of argv. */
struct options {
#define FLAG(field, kind, letter, name, value, where, help, later) FLAG_TYPE_##kind field;
#include "shell/flags.def"
#undef FLAG
    struct text_list positionals;
};

struct flag {
    const char *name;
    char letter; /* 0: none */
    uint8_t kind;
    uint16_t where;
    const char *value; /* name of the value in the help; NULL for BOOL */
    const char *help;
    const char *later; /* why it cannot be used yet, or NULL */
    size_t offset;     /* in struct options */
};

extern const struct flag flags[];
extern const size_t n_flags;

/* Reads argv[0, n) for the flags of `where`. -MRD_EINVALID with a text for the user; -MRD_EUNSUPPORTED for a flag whose
 * feature comes later; -MRD_ENOMEM. "--" ends the flags; long names may be shortened as long as they are unique. */
int options_parse(struct options *o, int where, int n, char **argv, struct error *err);
void options_free(struct options *o);

/* The index in argv[0, n) of the first positional argument that `match` accepts, or -1; values of flags of any command
 * are passed over. */
int options_find_positional(int n, char **argv, bool (*match)(const char *arg));

/* The flag that `arg` ("--name", "--name=value", "-x…") means among those of `where`; NULL when none does. */
const struct flag *options_flag(int where, const char *arg);

#endif
