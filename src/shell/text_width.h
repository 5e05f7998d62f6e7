/* How many columns of a terminal a text takes: wide characters take two, marks that combine none. */
#ifndef MERIDIAN_SHELL_TEXT_WIDTH_H
#define MERIDIAN_SHELL_TEXT_WIDTH_H

#include <stdbool.h>
#include <stddef.h>

/* Of a whole text in UTF-8 without controls. */
unsigned text_width(const char *s);

/* How many bytes at its beginning fit into `columns`; *width is what they take. */
size_t text_fit(const char *s, unsigned columns, unsigned *width);

/* Columns of the terminal behind `fd`; COLUMNS of the environment goes first. 0: it is not a terminal. */
unsigned text_screen(int fd);

/* May colours be used there: a terminal that is not dumb, and no NO_COLOR in the environment. */
bool text_colours(int fd);

#endif
