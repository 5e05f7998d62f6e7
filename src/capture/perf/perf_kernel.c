/* Names of kernel functions from /proc/kallsyms, and which processes a session's shard has. */
#include "capture/perf/perf_kernel.h"

#include "base/alloc.h"
#include "base/bisect.h"
#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

static const char kptr_restrict[] = "/proc/sys/kernel/kptr_restrict";
enum { FIRST_BYTES = 4096, MAX_BYTES = 256 << 20, ONE_NAME_BYTES = 128 };

/* ---- opening it ---- */

/* The first lines have an address that is not 0. */
static bool shows_addresses(int fd)
{
    char text[FIRST_BYTES];
    ssize_t n = pread(fd, text, sizeof text, 0);
    for (ssize_t i = 0; i < n && text[i] != ' '; i++)
        if (text[i] != '0')
            return true;
    for (const char *line = n > 0 ? memchr(text, '\n', (size_t)n) : NULL; line && line + 1 < text + n;
         line = memchr(line + 1, '\n', (size_t)(text + n - line - 1)))
        for (const char *c = line + 1; c < text + n && *c != ' '; c++)
            if (*c != '0')
                return true;
    return false;
}

static int open_kallsyms(void)
{
    int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && !shows_addresses(fd)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int read_restrict(void)
{
    char text[16] = "";
    int fd = open(kptr_restrict, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    return n > 0 ? atoi(text) : 0;
}

static bool write_restrict(int value)
{
    char text[16];
    int fd = open(kptr_restrict, O_WRONLY | O_CLOEXEC), len = snprintf(text, sizeof text, "%d\n", value);
    bool good = fd >= 0 && write(fd, text, (size_t)len) == len;
    if (fd >= 0)
        close(fd);
    return good;
}

void perf_shared_init(struct perf_shared *s)
{
    *s = (struct perf_shared){.kallsyms = open_kallsyms(), .files.threads = true};
    int was = s->kallsyms < 0 ? read_restrict() : 0;
    bool written = false;
    for (int value = was - 1; value >= 0 && s->kallsyms < 0 && write_restrict(value); value--) {
        written = true;
        s->kallsyms = open_kallsyms();
    }
    if (written)
        write_restrict(was);
}

void perf_shared_free(struct perf_shared *s)
{
    if (s->kallsyms >= 0)
        close(s->kallsyms);
    kernel_symbols_free(&s->symbols);
    perf_files_free(&s->files);
    vec_free(&s->shards);
}

/* ---- symbols ---- */

static int load(struct perf_shared *s, struct error *err)
{
    VEC(char) text = {0};
    ssize_t n = 1;
    int rc = 0;
    if (s->kallsyms < 0)
        return error_set(err, -MRD_EDENIED,
                         "/proc/kallsyms shows no addresses: kernel frames have no names (run traced_perf as root)");
    for (off_t at = 0; !rc && n > 0; at += n) {
        if (text.n > MAX_BYTES || !vec_reserve(&text, text.n + (1u << 16)))
            rc = error_set(err, -MRD_ENOMEM, "out of memory for the kernel's symbols");
        else if ((n = pread(s->kallsyms, text.p + text.n, 1u << 16, at)) > 0)
            text.n += (size_t)n;
    }
    if (!rc)
        rc = kernel_symbols_parse(&s->symbols, slice_of(text.p, text.n), err);
    vec_free(&text);
    return rc;
}

int perf_kernel_symbols_use(struct perf_shared *s, struct error *err)
{
    return s->symbol_users++ == 0 ? load(s, err) : 0;
}

void perf_kernel_symbols_drop(struct perf_shared *s)
{
    if (--s->symbol_users > 0)
        return;
    kernel_symbols_free(&s->symbols);
    s->symbols = (struct kernel_symbols){0};
}

static bool ends_with(struct slice s, const char *end)
{
    size_t n = strlen(end);
    return s.len > n && memcmp(s.p + s.len - n, end, n) == 0;
}

struct slice perf_kernel_name(const struct perf_shared *s, uint64_t address, char name[PERF_KERNEL_NAME_BYTES])
{
    const char *found = kernel_symbols_find(&s->symbols, address);
    size_t at = s->symbols.list.n, n = 0;
    if (!found)
        return slice_of(name, 0);
    const char *pool = s->symbols.text.p;
    const struct kernel_symbol *list = s->symbols.list.p;
    BISECT(at, i, list[i].address <= address);
    uint64_t begin = at ? list[at - 1].address : list[0].address; /* back to the first symbol of that address */
    while (at > 0 && list[at - 1].address == begin)
        at--;
    for (; at < s->symbols.list.n && list[at].address == begin && n < ONE_NAME_BYTES; at++) {
        struct slice one = slice_str(pool + list[at].name);
        if (list[at].weak || !one.len || one.p[0] == '$')
            continue;
        one.len -= ends_with(one, ".cfi_jt") ? 7 : ends_with(one, ".cfi") ? 4 : 0;
        if (n)
            name[n++] = '_';
        one.len = one.len < ONE_NAME_BYTES - n ? one.len : ONE_NAME_BYTES - n;
        memcpy(name + n, one.p, one.len);
        n += one.len;
    }
    return n ? slice_of(name, n) : slice_str(found);
}

/* ---- shards ---- */

static struct perf_shard *find_shard(struct perf_shared *s, uint64_t session_id)
{
    for (size_t i = 0; i < s->shards.n; i++)
        if (s->shards.p[i].session_id == session_id)
            return &s->shards.p[i];
    return NULL;
}

uint32_t perf_shard_use(struct perf_shared *s, uint64_t session_id, uint32_t *count)
{
    struct perf_shard *shard = *count ? find_shard(s, session_id) : NULL;
    uint32_t random = 0;
    if (!*count)
        return 0;
    if (!shard && vec_push(&s->shards, (struct perf_shard){.session_id = session_id, .count = *count})) {
        shard = vec_last(&s->shards);
        (void)!getrandom(&random, sizeof random, 0);
        shard->chosen = random % *count;
    }
    if (!shard)
        return 0;
    shard->users++;
    *count = shard->count; /* the first source's count wins */
    return shard->chosen;
}

void perf_shard_drop(struct perf_shared *s, uint64_t session_id)
{
    struct perf_shard *shard = find_shard(s, session_id);
    if (shard && --shard->users == 0)
        *shard = s->shards.p[--s->shards.n];
}
