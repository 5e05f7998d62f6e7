/* Loads the recordings that are compared, one after the other. */
#ifndef MERIDIAN_SHELL_COMMANDS_COMPARE_LOAD_H
#define MERIDIAN_SHELL_COMMANDS_COMPARE_LOAD_H

#include "compare/run.h"
#include "shell/shell.h"
#include "shell/text_out.h"

/* Loads one trace into sh->tp; an empty file is an error. Close the handle afterwards. */
int compare_open(struct shell *sh, const char *path, struct error *err);
void compare_close(struct shell *sh);

/* What was lost that measures of the system may miss, as text; returns how many kinds of losses there are. */
size_t compare_losses(struct shell *sh, char *text, size_t room);

/* Loads a trace, measures it, and gives the memory back. `also` (may be NULL) is called while it is loaded. */
struct compare_hook {
    int (*call)(void *ctx, struct shell *sh, const char *path, int side, struct error *err);
    void *ctx;
};
int compare_add(struct shell *sh, struct run_set *set, const char *path, int side, const struct compare_hook *also,
                struct error *err);

/* Writes what `print` prints to a file; `path` NULL: to standard output. */
int compare_write(const char *path, void (*print)(struct text_out *o, const void *what), const void *what,
                  struct error *err);

#endif
