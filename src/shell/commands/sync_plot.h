/* The picture of `tp_shell sync --plot`. */
#ifndef MERIDIAN_SHELL_COMMANDS_SYNC_PLOT_H
#define MERIDIAN_SHELL_COMMANDS_SYNC_PLOT_H

#include "shell/shell.h"

/* Writes an SVG with one panel a pair: time on the reference to the right; upwards, how far each message lies from the
 * map that was chosen. What came from the other host lies below the line, what went there above; the gap between the
 * two is where any true map must run. */
int sync_plot(struct shell *sh, const char *path, struct error *err);

#endif
