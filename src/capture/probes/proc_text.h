/* Small text files of /proc and /sys: read again and again through one open file, and cut into words. */
#ifndef MERIDIAN_CAPTURE_PROBES_PROC_TEXT_H
#define MERIDIAN_CAPTURE_PROBES_PROC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file that stays open. A zeroed struct is closed (`is_open` false). */
struct text_file {
    int fd;
    bool is_open, failed; /* failed: it does not exist or cannot be read, do not try again */
    char *text;           /* what the last read gave, NUL-terminated */
    size_t len, cap;
};

/* Reads the whole of `path` (opened on first use, then kept open); NULL when that fails. The text may be changed by the
 * caller and lasts until the next read. */
char *text_file_read(struct text_file *f, const char *path);
void text_file_close(struct text_file *f);

/* Reads a file once into `buf`, NUL-terminated, cut when too long. Returns the length, -1 when it cannot be read. */
int text_read_once(const char *path, char *buf, size_t size);

/* The same, relative to an open directory. */
int text_read_at(int dir, const char *name, char *buf, size_t size);

/* Cuts the next line off *p (the newline becomes a NUL); NULL at the end. */
char *text_line(char **p);

/* Cuts the next word (no blanks) off *p; NULL at the end. */
char *text_word(char **p);

/* A decimal number at *p behind blanks; *p moves behind it. False when there is none. */
bool text_u64(char **p, uint64_t *value);

/* Removes blanks and newlines at both ends, in place. */
char *text_trim(char *s);

#endif
