/* The parts of a report: each a query, and how its rows are drawn. */
#ifndef MERIDIAN_SHELL_COMPARE_REPORT_SECTIONS_H
#define MERIDIAN_SHELL_COMPARE_REPORT_SECTIONS_H

#include <stddef.h>

enum report_picture {
    PICTURE_NONE,
    PICTURE_BARS,  /* a bar a row: its first column is the label, `value` the column that is drawn */
    PICTURE_AREAS, /* rows of (place in time, series, value), areas on top of each other; no table */
};

struct report_section {
    const char *title;
    const char *what;  /* a sentence */
    const char *empty; /* what to say when there is no row */
    const char *sql;
    enum report_picture picture;
    int value;
    const char *unit; /* of the picture */
    /* A query whose first value must not be more than `most`, for what takes long on large traces; NULL: none. */
    const char *size;
    double most;
};

extern const struct report_section report_sections[];
extern const size_t n_report_sections;

/* How many steps of time PICTURE_AREAS have. */
enum { REPORT_STEPS = 100 };

#endif
