/* What we changed in tracefs and how it was before, kept in a file so that a killed recorder can be cleaned up after.
 *
 * Every change goes through here: the old value is on disk before the new one is in the kernel. The file is locked as
 * long as its recorder lives; a file that is there and not locked is what a crash has left behind. One file a tracefs
 * instance, `DIR/ftrace-NAME.undo`; each line is one step: kind, path, old text, with \n, \t and \\ escaped. */
#ifndef MERIDIAN_CAPTURE_PROBES_FTRACE_UNDO_LOG_H
#define MERIDIAN_CAPTURE_PROBES_FTRACE_UNDO_LOG_H

#include "base/error.h"
#include "capture/probes/ftrace/tracefs.h"

enum undo_kind {
    UNDO_WRITE = 'W',    /* write the text back */
    UNDO_TRUNCATE = 'T', /* the same, into a file whose O_TRUNC empties a list; each line of the text is appended */
    UNDO_APPEND = 'A',   /* append the text (kprobe_events: "-:group/name") */
    UNDO_RMDIR = 'R',    /* remove the instance; everything recorded before it goes with it */
};

struct undo_step {
    char kind;
    char *path;
    char *text;
};

struct undo_log {
    int fd; /* -1 when closed */
    char file[PATH_MAX];
    const char *root; /* besides a real tracefs, steps may be below this directory; NULL: not */
    bool stale;       /* undo_log_open() found steps of a recorder that is gone */
    struct undo_step *steps;
    size_t n, cap;
};

/* The directory of undo files: $MERIDIAN_RUN_DIR, else /run/meridian, else /tmp/meridian-UID; made when missing. One
 * that others could write to is refused (-MRD_EDENIED): its files say what is written where. */
int undo_log_directory(char dir[PATH_MAX], struct error *err);

/* Opens and locks the file of `instance` (NULL or "": the top). -MRD_EEXISTS when another recorder holds it,
 * -MRD_EDENIED when somebody else can have written it. `root`: where tracefs is said to be (it outlives the log); NULL:
 * where the kernel has it. */
int undo_log_open(struct undo_log *log, const char *dir, const char *instance, const char *root, struct error *err);

/* The same for a file of the directory by its full name. */
int undo_log_open_file(struct undo_log *log, const char *file, const char *root, struct error *err);

/* Notes a step; the file has it when this returns 0. A second note of the same kind for the same path is ignored, as
 * the first holds what was there before us (except UNDO_APPEND, where each counts). */
int undo_log_note(struct undo_log *log, enum undo_kind kind, const char *path, const char *text, struct error *err);

/* Reads the old content of base/name, notes it, writes the new text. A file that does not exist is an error, and then
 * nothing is noted. */
int undo_log_change(struct undo_log *log, const struct tracefs *fs, const char *name, enum undo_kind kind,
                    const char *text, struct error *err);

/* Takes every step back, last first, and empties the file. Paths that are in no tracefs are left alone. Steps that fail
 * do not keep the others from being tried; the first failure is returned. */
int undo_log_restore(struct undo_log *log, struct error *err);

/* Unlocks, and removes the file when there is nothing in it. */
void undo_log_close(struct undo_log *log);

#endif
