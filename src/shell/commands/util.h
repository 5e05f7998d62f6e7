/* The modes of `tp_shell util`: small tools over trace files. */
#ifndef MERIDIAN_SHELL_COMMANDS_UTIL_H
#define MERIDIAN_SHELL_COMMANDS_UTIL_H

#include "shell/shell.h"

/* Each is given the whole command line; positional 0 is the mode's name. Results as those of a command. */
int util_merge(struct shell *sh, struct error *err);
int util_deobfuscate(struct shell *sh, struct error *err);

#endif
