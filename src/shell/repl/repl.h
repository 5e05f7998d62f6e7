/* The interactive shell: a prompt, statements over several lines, dot commands, history and completion. */
#ifndef MERIDIAN_SHELL_REPL_REPL_H
#define MERIDIAN_SHELL_REPL_REPL_H

#include "shell/interrupt.h"
#include "shell/output.h"
#include "shell/repl/pager.h"
#include "shell/shell.h"

#include <signal.h>
#include <stdio.h>

struct repl {
    struct shell *sh;
    struct line_reader *reader;
    struct text_out *out;
    struct pager pager;
    enum output_format format;
    unsigned width; /* of the table's columns; 0: by their content and the terminal */
    bool terminal;  /* questions and answers are on one */
    bool timer;     /* say how long a query took */
    bool once;      /* the next answer goes into the file, the ones behind it not */
    bool quit;
    bool failed; /* a statement or command: a script that was piped in ends with status 1 */
    VEC(char)
    statement; /* the lines of an unfinished statement */
    VEC(char)
    last; /* the text that gave the last answer; ends with a NUL */
};

/* Answers go into a file from now on, or again to where they went at first (`path` empty). */
void repl_output(struct repl *r, const char *path, bool once);

/* Runs SQL and shows every result; failures are told on standard error. */
void repl_run_sql(struct repl *r, const char *sql, size_t len);

/* A line that begins with a dot. */
void repl_meta(struct repl *r, const char *line);

/* .plot [KIND] [SELECT …]: a picture of that answer, or of the last one, whose statement runs again. */
void repl_plot(struct repl *r, const char *arg);

/* .tables: those with rows, by what they are about. 0, or a negative tp_code. */
int repl_table_groups(struct repl *r);

/* Names of dot commands for the completion; NULL at the end. */
const char *repl_meta_name(size_t i);

/* ---- lines: edited (libedit) when standard input is a terminal, plain otherwise ---- */

struct line_reader;

struct line_reader *line_reader_open(struct repl *r); /* NULL when out of memory */

/* The next line without its end, valid until the next call. 1; 0 at the end; -1: Ctrl-C, what was typed is dropped. */
int line_reader_next(struct line_reader *l, const char *prompt, const char **line);

/* Was the end of the last line pasted? */
bool line_reader_pasted(const struct line_reader *l);

/* Remembers a statement. */
void line_reader_add_history(struct line_reader *l, const char *text);
void line_reader_close(struct line_reader *l); /* writes the history */

/* Reads one line from the terminal as it is; true when it begins with `c` (or the terminal is gone). */
bool line_reader_ask(struct line_reader *l, const char *question, char c);

/* ---- completion ---- */

/* All that the word before the cursor may become: `before` is the text up to the cursor, after[0, after_len) the rest
 * of the line, *word_at where the word begins. Candidates are mem_alloc()ed texts in a sorted list without duplicates;
 * what stands behind CANDIDATE_NOTE is shown and not inserted. */
#define CANDIDATE_NOTE "\t"
struct candidates {
    char **p;
    size_t n;
    size_t cap;
};
void complete_word(struct repl *r, const char *before, const char *after, size_t after_len, size_t *word_at,
                   struct candidates *out);
void candidates_free(struct candidates *c);

#endif
