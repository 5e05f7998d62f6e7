/* The journal of changes to tracefs. */
#include "capture/probes/ftrace/undo_log.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Nobody but us (and root) can have written there. */
static bool is_ours(const struct stat *st)
{
    return (st->st_uid == geteuid() || st->st_uid == 0) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

int undo_log_directory(char dir[PATH_MAX], struct error *err)
{
    const char *given = getenv("MERIDIAN_RUN_DIR");
    if (given && *given)
        snprintf(dir, PATH_MAX, "%s", given);
    else if (access("/run", W_OK) == 0)
        snprintf(dir, PATH_MAX, "/run/meridian");
    else
        snprintf(dir, PATH_MAX, "/tmp/meridian-%u", (unsigned)getuid());
    if (mkdir(dir, 0755) && errno != EEXIST)
        return error_set_errno(err, errno, "making %s", dir);
    /* Who can put a file into it tells us what to write where: /tmp is anybody's, and so is a name in it that is free
     */
    struct stat st;
    if (lstat(dir, &st))
        return error_set_errno(err, errno, "%s", dir);
    if (!S_ISDIR(st.st_mode) || !is_ours(&st))
        return error_set(
            err, -MRD_EDENIED,
            "%s is not a directory that only this user can write to: remove it, or set MERIDIAN_RUN_DIR to "
            "a directory of your own",
            dir);
    return 0;
}

/* One field of a line: up to a tab or newline, escapes undone, into fresh memory. */
static char *cut_field(const char **p)
{
    size_t len = strcspn(*p, "\t\n");
    char *out = mem_alloc(len + 1);
    size_t n = 0;
    for (size_t i = 0; out && i < len; i++) {
        char c = (*p)[i];
        if (c == '\\' && i + 1 < len) {
            c = (*p)[++i];
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
        }
        out[n++] = c;
    }
    if (out)
        out[n] = 0;
    *p += len;
    if (**p == '\t')
        ++*p;
    return out;
}

static void put_field(struct undo_log *log, const char *text, FILE *f)
{
    (void)log;
    for (; *text; text++) {
        switch (*text) {
        case '\n':
            fputs("\\n", f);
            break;
        case '\t':
            fputs("\\t", f);
            break;
        case '\\':
            fputs("\\\\", f);
            break;
        default:
            fputc(*text, f);
        }
    }
}

static void free_steps(struct undo_log *log)
{
    for (size_t i = 0; i < log->n; i++) {
        mem_free(log->steps[i].path);
        mem_free(log->steps[i].text);
    }
    mem_free(log->steps);
    log->steps = NULL;
    log->n = log->cap = 0;
}

static bool add_step(struct undo_log *log, char kind, char *path, char *text)
{
    if (!path || !text ||
        (log->n == log->cap && !vec_reserve_((void **)&log->steps, &log->cap, sizeof *log->steps, log->n + 1))) {
        mem_free(path);
        mem_free(text);
        return false;
    }
    log->steps[log->n++] = (struct undo_step){kind, path, text};
    return true;
}

/* Reads the steps that a file holds. A last line without its newline was cut off by the crash: its change never reached
 * the kernel. */
static int load(struct undo_log *log, struct error *err)
{
    char *text;
    size_t len;
    int rc = file_read_all(log->file, 16u << 20, &text, &len, err);
    if (rc)
        return rc;
    for (const char *p = text; *p;) {
        const char *nl = strchr(p, '\n');
        if (!nl)
            break;
        if (p[0] && p[1] == '\t' && strchr("WTAR", p[0])) {
            char kind = p[0];
            p += 2;
            char *path = cut_field(&p);
            char *old = cut_field(&p);
            if (!add_step(log, kind, path, old)) {
                rc = error_set(err, -MRD_ENOMEM, "out of memory for %s", log->file);
                break;
            }
        }
        p = nl + 1;
    }
    mem_free(text);
    log->stale = log->n > 0;
    return rc;
}

/* Opens and locks the file. Its last user removes an empty one when it goes: then the name is another file's by now. */
static int open_locked(const char *file, int *out, struct stat *st, struct error *err)
{
    for (;;) {
        int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (fd < 0)
            return error_set_errno(err, errno, "%s", file);
        if (flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, st)) {
            int e = errno;
            close(fd);
            return e == EWOULDBLOCK ? error_set(err, -MRD_EEXISTS,
                                                "another recorder uses this tracefs instance (it holds %s): give this "
                                                "session an instance_name of its own, or "
                                                "end the other recorder",
                                                file)
                                    : error_set_errno(err, e, "locking %s", file);
        }
        *out = fd;
        if (st->st_nlink)
            return 0;
        close(fd);
    }
}

int undo_log_open_file(struct undo_log *log, const char *file, const char *root, struct error *err)
{
    struct stat st;
    memset(log, 0, sizeof *log);
    log->fd = -1;
    log->root = root;
    snprintf(log->file, sizeof log->file, "%s", file);
    int rc = open_locked(file, &log->fd, &st, err);
    if (rc)
        return rc;
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || !is_ours(&st)) {
        close(log->fd); /* and leave it as it is */
        log->fd = -1;
        return error_set(err, -MRD_EDENIED, "another user may have written %s; it is not replayed; remove it", file);
    }
    rc = load(log, err);
    if (rc)
        undo_log_close(log);
    return rc;
}

int undo_log_open(struct undo_log *log, const char *dir, const char *instance, const char *root, struct error *err)
{
    char file[PATH_MAX];
    if (snprintf(file, sizeof file, "%s/ftrace-%s.undo", dir, instance && *instance ? instance : "top.") >=
        (int)sizeof file)
        return error_set(err, -MRD_ELIMIT, "path too long");
    return undo_log_open_file(log, file, root, err);
}

static bool noted(const struct undo_log *log, char kind, const char *path)
{
    for (size_t i = 0; kind != UNDO_APPEND && i < log->n; i++)
        if (log->steps[i].kind == kind && strcmp(log->steps[i].path, path) == 0)
            return true;
    return false;
}

int undo_log_note(struct undo_log *log, enum undo_kind kind, const char *path, const char *text, struct error *err)
{
    if (noted(log, (char)kind, path))
        return 0;
    char *line = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&line, &len);
    if (!f)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    fprintf(f, "%c\t", (char)kind);
    put_field(log, path, f);
    fputc('\t', f);
    put_field(log, text, f);
    fputc('\n', f);
    int rc = fclose(f) ? error_set(err, -MRD_ENOMEM, "out of memory") : file_write_all(log->fd, line, len, err);
    free(line);
    if (!rc && !add_step(log, (char)kind, mem_strdup(path), mem_strdup(text)))
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    return rc;
}

/* What to write to get the present state again. Some files show more than they take: the chosen one of a list in
 * brackets ("[local] global"), a size with a remark ("7 (expanded: 1408)"), a list file with a comment when it is
 * empty, a filter file that says "none". */
static void restorable(char *text)
{
    unsigned long now, later;
    char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;
    size_t len = strlen(text);
    while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
        text[--len] = 0;
    if (len == 2 && text[1] == '*') { /* an event that is enabled softly */
        text[1] = 0;
    } else if (open && close) {
        memmove(text, open + 1, (size_t)(close - open - 1));
        text[close - open - 1] = 0;
    } else if (sscanf(text, "%lu (expanded: %lu)", &now, &later) == 2) {
        /* the kernel has no way back to the unexpanded state; this is the size its next user would have had */
        snprintf(text, len + 1, "%lu", later);
    } else if (strcmp(text, "none") == 0) {
        memcpy(text, "0", 2);
    } else if (strcmp(text, "no pid") == 0 || text[0] == '#') {
        text[0] = 0;
    }
}

int undo_log_change(struct undo_log *log, const struct tracefs *fs, const char *name, enum undo_kind kind,
                    const char *text, struct error *err)
{
    char path[PATH_MAX], *old;
    size_t len;
    if (!tracefs_path(fs, path, name))
        return error_set(err, -MRD_ELIMIT, "path too long");
    if (!noted(log, (char)kind, path)) {
        int rc = tracefs_read(fs, name, &old, &len, err);
        if (rc)
            return rc;
        restorable(old);
        rc = undo_log_note(log, kind, path, old, err);
        mem_free(old);
        if (rc)
            return rc;
    }
    return tracefs_write_path(path, kind == UNDO_TRUNCATE ? TRACEFS_TRUNCATE : TRACEFS_WRITE, text, err);
}

/* A list file: emptied, then one write a line. */
static int restore_list(const struct undo_step *s, const char *path, struct error *err)
{
    int rc = tracefs_write_path(path, TRACEFS_TRUNCATE, "", err);
    for (char *p = s->text; *p && !rc;) {
        size_t n = strcspn(p, "\n");
        char *line = mem_strndup(p, n);
        if (!line)
            return error_set(err, -MRD_ENOMEM, "out of memory");
        if (n)
            rc = tracefs_write_path(path, TRACEFS_APPEND, line, err);
        mem_free(line);
        p += n + (p[n] == '\n');
    }
    return rc;
}

/* Only a tracefs is undone in: what else the journal may name is not ours, whoever wrote it. The file or directory
 * (`fd`) that was looked at is the one that is written to. With a root of its own (--tracefs) that directory counts as
 * well. */
static bool in_tracefs(const struct undo_log *log, const char *path, int fd)
{
    struct statfs fs;
    size_t n = log->root ? strlen(log->root) : 0;
    if (fstatfs(fd, &fs) != 0)
        return false;
    return fs.f_type == TRACEFS_MAGIC ||
           (n && strncmp(path, log->root, n) == 0 && path[n] == '/' && !strstr(path + n, "/.."));
}

static int remove_instance(const struct undo_log *log, const struct undo_step *s, struct error *err)
{
    int fd = open(s->path, O_PATH | O_NOFOLLOW | O_CLOEXEC | O_DIRECTORY);
    bool ours = fd >= 0 && in_tracefs(log, s->path, fd); /* a tracefs holds no way out of itself */
    int e = errno;
    if (fd >= 0)
        close(fd);
    if (!ours)
        return fd < 0 ? error_set_errno(err, e, "removing %s", s->path)
                      : error_set(err, -MRD_EDENIED, "%s in the undo log is not in a tracefs; ignored", s->path);
    return rmdir(s->path) == 0 || errno == ENOENT ? 0 : error_set_errno(err, errno, "removing %s", s->path);
}

static int take_back(const struct undo_log *log, const struct undo_step *s, struct error *err)
{
    if (s->kind == UNDO_RMDIR)
        return remove_instance(log, s, err);
    int fd = open(s->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "%s", s->path);
    char path[64];
    struct error why = {0};
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int rc = !in_tracefs(log, s->path, fd)
                 ? error_set(&why, -MRD_EDENIED, "%s in the undo log is not in a tracefs; ignored", s->path)
             : s->kind == UNDO_TRUNCATE
                 ? restore_list(s, path, &why)
                 : tracefs_write_path(path, s->kind == UNDO_APPEND ? TRACEFS_APPEND : TRACEFS_WRITE, s->text, &why);
    close(fd);
    return rc ? error_set(err, rc, "%s: %s", s->path, why.text) : 0;
}

/* The instance that goes away as a whole, or NULL: steps inside it need no undoing. */
static const char *removed_instance(const struct undo_log *log)
{
    for (size_t i = 0; i < log->n; i++)
        if (log->steps[i].kind == UNDO_RMDIR)
            return log->steps[i].path;
    return NULL;
}

int undo_log_restore(struct undo_log *log, struct error *err)
{
    const char *dir = removed_instance(log);
    int first = 0;
    /* probes can be removed only when their events are off, so appended steps come behind all others */
    for (int appended = 0; appended < 2; appended++) {
        for (size_t i = log->n; i-- > 0;) {
            const struct undo_step *s = &log->steps[i];
            struct error e = {0};
            bool inside = dir && s->kind != UNDO_RMDIR && strncmp(s->path, dir, strlen(dir)) == 0;
            if ((s->kind == UNDO_APPEND) != appended || inside || access(s->path, F_OK) != 0)
                continue;
            int rc = take_back(log, s, &e);
            if (rc == -MRD_ENOTFOUND && appended) /* the probe was refused when it was asked for */
                rc = 0;
            if (rc && !first) {
                first = rc;
                error_set(err, rc, "%s", e.text);
            }
        }
    }
    free_steps(log);
    log->stale = false;
    if (ftruncate(log->fd, 0) && !first)
        first = error_set_errno(err, errno, "emptying %s", log->file);
    return first;
}

void undo_log_close(struct undo_log *log)
{
    if (log->fd < 0)
        return;
    if (log->n == 0)
        unlink(log->file); /* while we hold the lock */
    free_steps(log);
    close(log->fd);
    log->fd = -1;
}
