/* Differential flame graphs: the call stacks or slices of two sides in one picture. */
#ifndef MERIDIAN_SHELL_COMMANDS_DIFF_FLAME_H
#define MERIDIAN_SHELL_COMMANDS_DIFF_FLAME_H

#include "shell/convert/stack_forest.h"

/* What the recordings of both sides have; several of one side are added up. */
struct diff_flame {
    struct stack_forest side[2];
    const char *unit[2]; /* NULL: nothing was read yet */
};

/* Reads the loaded trace. */
int diff_flame_add(struct diff_flame *f, struct shell *sh, const char *path, int side, struct error *err);

/* Draws both: the width of a box is the mean of its shares, red takes a larger share on side B, blue a smaller one. */
int diff_flame_write(const struct diff_flame *f, const char *path, struct error *err);
void diff_flame_free(struct diff_flame *f);

#endif
