/* The applets of the multi-call binary: `tracebox NAME …`, or a link of that name to it. */
#ifndef MERIDIAN_CAPTURE_COMMON_APPLET_H
#define MERIDIAN_CAPTURE_COMMON_APPLET_H

#include "base/flags.h"

/* argv[0] is the applet's name. */
#define APPLET(main, ...) int main##_main(int argc, char **argv);
#include "capture/common/applets.def"
#undef APPLET

/* Runs the applet that argv names; 1 with a list of applets when there is none. */
int tracebox_main(int argc, char **argv);

/* Reads the flags of an applet. False: something is wrong with them, which has been said. */
bool applet_flags(const char *name, const struct flag_table *t, void *values, int argc, char **argv);

/* The same for an applet that takes no other arguments. */
bool applet_flags_only(const char *name, const struct flag_table *t, void *values, int argc, char **argv);

/* What --help says. */
void applet_help(FILE *to, const char *name, const struct flag_table *t);

/* Says what --help and --version ask for; false: neither was given. */
bool applet_tells(const char *name, const struct flag_table *t, bool help, bool version);

/* On standard error: "Usage: …", and how to get the rest. */
void applet_usage(const char *name);

#endif
