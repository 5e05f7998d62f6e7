/* The command line as values: one struct for all commands, filled from the table in flags.def. */
#ifndef MERIDIAN_SHELL_OPTIONS_H
#define MERIDIAN_SHELL_OPTIONS_H

#include "base/flags.h"

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
    IN_BUNDLE = 128,
    IN_SYNC = 256,
    IN_SERVER = 512,
    IN_UTIL = 1024,
    IN_CONVERT = 2048,
    IN_CUT = 4096,
    IN_DIFF = 8192,
    IN_GATE = 16384,
    IN_REPORT = 32768,
    IN_FLEET = 65536,
    IN_SNAPSHOT = 131072,
    IN_ALL = 262143,
};

/* Texts are views of argv. */
struct options {
#define FLAG(field, kind, ...) FLAG_TYPE_##kind field;
#include "shell/flags.def"
#undef FLAG
    struct text_list positionals;
};

extern const struct flag_table shell_flags;

#endif
