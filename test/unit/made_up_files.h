/* A directory of files that a test makes up: /proc, /sys or a tracefs, as the code under test is to find it. */
#ifndef MERIDIAN_TEST_MADE_UP_FILES_H
#define MERIDIAN_TEST_MADE_UP_FILES_H

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where it is; names of the functions below are relative to it. */
static char made_up[64];

static inline void make_file(const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s%s", made_up, name);
    for (char *p = path + strlen(made_up) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(path, 0755);
        *p = '/';
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static inline void read_made_up(const char *name, char *buf, size_t size)
{
    char path[600];
    snprintf(path, sizeof path, "%s%s", made_up, name);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
    ck_assert_msg(n >= 0, "%s", path);
    buf[n] = 0;
    close(fd);
}

static inline void make_root(void)
{
    strcpy(made_up, "/tmp/mrd-root-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(made_up));
}

static inline void remove_root(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", made_up);
    ck_assert_int_eq(system(command), 0);
}

#endif
