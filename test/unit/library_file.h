/* Traces written down as rows of tables, and questions to the library about them: test/library/NAME.txt.
 *
 *     # a remark
 *     bounds 0 100ms                                  what the trace covers
 *     ui: thread tid=7 name='main' upid=@app          a row of a table; the label stands for its number from then on
 *     slice ts=1ms dur=2us track_id=@ui_track name=x arg_set_id={a.b=1, c='text'}
 *     ? slices.with_context linux.threads             modules to include; the SQL follows
 *     SELECT name, dur FROM thread_slice
 *     = x,2000                                        its rows, NULL as "-"; none: no row
 *     ! CREATE OR REPLACE PERFETTO TABLE …            SQL that the questions below begin with, before they include
 *
 * Columns that are not given are NULL, or 0 or '' where they may not be; a slice's depth and parent come from the
 * slices that are open on its track. Numbers may end in us, ms or s (of ns). Texts with blanks stand in quotes. */
#ifndef MERIDIAN_TEST_LIBRARY_FILE_H
#define MERIDIAN_TEST_LIBRARY_FILE_H

#include "storage/storage.h"

struct library_question {
    char *sql;  /* with INCLUDEs; owned */
    char *rows; /* as sql_rows() gives them; owned */
    unsigned line;
};

struct library_file {
    struct storage st;
    VEC(struct library_question)
    questions;
    char *text;     /* of the file */
    char *preamble; /* SQL; owned */
    struct {
        char name[40];
        uint32_t row;
    } labels[128];
    size_t n_labels;
    const char *path;
    unsigned line;
};

/* Reads a file; faults in it fail the test with their line. */
void library_file_open(struct library_file *f, const char *path);
void library_file_close(struct library_file *f);

#endif
