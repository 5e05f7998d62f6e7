/* Reads small text files. */
#include "capture/probes/proc_text.h"

#include "base/alloc.h"
#include "base/vec.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

char *text_file_read(struct text_file *f, const char *path)
{
    if (f->failed)
        return NULL;
    if (!f->is_open) {
        f->fd = open(path, O_RDONLY | O_CLOEXEC);
        f->failed = f->fd < 0;
        f->is_open = !f->failed;
        if (f->failed)
            return NULL;
    }
    f->len = 0;
    for (;;) {
        if (!vec_reserve_((void **)&f->text, &f->cap, 1, f->len + 4096))
            return NULL;
        ssize_t n = pread(f->fd, f->text + f->len, f->cap - f->len - 1, (off_t)f->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return NULL;
        if (n == 0)
            break;
        f->len += (size_t)n;
    }
    f->text[f->len] = 0;
    return f->text;
}

void text_file_close(struct text_file *f)
{
    if (f->is_open)
        close(f->fd);
    mem_free(f->text);
    memset(f, 0, sizeof *f);
}

int text_read_at(int dir, const char *name, char *buf, size_t size)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    if (fd < 0)
        return -1;
    while (len + 1 < size) {
        ssize_t n = read(fd, buf + len, size - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n < 0 && !len)
                len = (size_t)-1;
            break;
        }
        len += (size_t)n;
    }
    close(fd);
    if (len == (size_t)-1)
        return -1;
    buf[len] = 0;
    return (int)len;
}

int text_read_once(const char *path, char *buf, size_t size)
{
    return text_read_at(AT_FDCWD, path, buf, size);
}

char *text_line(char **p)
{
    char *line = *p;
    if (!*line)
        return NULL;
    char *end = strchr(line, '\n');
    if (end)
        *end++ = 0;
    else
        end = line + strlen(line);
    *p = end;
    return line;
}

char *text_word(char **p)
{
    char *s = *p;
    while (*s == ' ' || *s == '\t')
        s++;
    if (!*s || *s == '\n')
        return NULL;
    char *end = s;
    while (*end && !isspace((unsigned char)*end))
        end++;
    if (*end)
        *end++ = 0;
    *p = end;
    return s;
}

bool text_u64(char **p, uint64_t *value)
{
    char *s = *p;
    uint64_t v = 0;
    while (*s == ' ' || *s == '\t')
        s++;
    if (!isdigit((unsigned char)*s))
        return false;
    for (; isdigit((unsigned char)*s); s++)
        v = v * 10 + (uint64_t)(*s - '0');
    *p = s;
    *value = v;
    return true;
}

char *text_trim(char *s)
{
    size_t len;
    while (isspace((unsigned char)*s))
        s++;
    len = strlen(s);
    while (len && isspace((unsigned char)s[len - 1]))
        s[--len] = 0;
    return s;
}
