/* The applets of the multi-call binary: `tracebox NAME …`, or a link of that name to it. */
#ifndef MERIDIAN_CAPTURE_COMMON_APPLET_H
#define MERIDIAN_CAPTURE_COMMON_APPLET_H

struct applet {
    const char *name;
    int (*main)(int argc, char **argv); /* argv[0] is the applet's name */
    const char *help;                   /* one line */
};

int traced_main(int argc, char **argv);
int traced_probes_main(int argc, char **argv);
int traced_relay_main(int argc, char **argv);
int record_main(int argc, char **argv);
int relay_keys_main(int argc, char **argv);
int perfetto_main(int argc, char **argv);

/* Runs the applet that argv names; 1 with a list of applets when there is none. */
int tracebox_main(int argc, char **argv);

#endif
