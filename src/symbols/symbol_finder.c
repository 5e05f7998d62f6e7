/* Looks for files with symbols, in one place after the other. */
#include "symbols/symbol_finder.h"

#include "base/alloc.h"
#include "symbols/debuginfod.h"
#include "symbols/safe_file.h"
#include "symbols/symbol_index.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { HEX_BYTES = 2 * ELF_MAX_BUILD_ID + 1 };

struct symbol_finder {
    const struct symbol_sources *sources;
    struct symbol_index index;
    bool indexed;
    char home_debug[PATH_MAX]; /* "": none */
    struct debuginfod *servers;
};

/* What one search has come to. */
struct search {
    struct symbol_finder *f;
    struct slice path, build_id; /* build_id empty: of a kernel that is known by its release alone */
    char hex[HEX_BYTES];
    struct symbol_found *found;
    struct elf_image debug; /* of found->debug_fd */
    struct error *err;
    int rc; /* negative: out of memory */
};

const char *symbol_try_text(enum symbol_try t)
{
    static const char *const texts[] = {
#define X(name, text) text,
        SYMBOL_TRIES(X)
#undef X
    };
    return texts[t];
}

/* --- one place ---------------------------------------------------------------------------------------------------- */

static void note(struct search *s, const char *path, enum symbol_try what)
{
    if (s->found->attempts.n == SYMBOL_MAX_ATTEMPTS || s->rc < 0)
        return;
    char *copy = mem_strdup(path);
    if (!copy || !vec_push(&s->found->attempts, (struct symbol_attempt){copy, what})) {
        mem_free(copy);
        s->rc = error_set(s->err, -MRD_ENOMEM, "out of memory");
    }
}

static bool has_build_id(const struct elf_image *e, struct slice id)
{
    return slice_eq(slice_of(e->build_id, e->build_id_len), id);
}

/* The checksum of a whole file is the one that .gnu_debuglink has. */
static bool has_crc(int fd, uint32_t crc)
{
    enum { PIECE = 1 << 16 };
    uint8_t buf[PIECE];
    uLong sum = crc32(0, NULL, 0);
    off_t at = 0;
    for (ssize_t n; (n = pread(fd, buf, sizeof buf, at)) > 0; at += n)
        sum = crc32(sum, buf, (uInt)n);
    return sum == crc;
}

static void replace_path(struct search *s, const char *path)
{
    char *copy = mem_strdup(path);
    if (!copy) {
        s->rc = error_set(s->err, -MRD_ENOMEM, "out of memory");
        return;
    }
    mem_free(s->found->path);
    s->found->path = copy;
}

/* Keeps the first file, and the one that says most beside it. */
static enum symbol_try keep(struct search *s, const char *path, int fd, struct elf_image *e)
{
    struct symbol_found *found = s->found;
    if (found->fd < 0) {
        found->fd = fd;
        found->image = *e;
        found->wealth = e->wealth;
        replace_path(s, path);
        return e->wealth ? SYMBOL_TRY_FOUND : SYMBOL_TRY_NO_SYMBOLS;
    }
    if (e->wealth <= found->wealth) {
        elf_image_close(e);
        close(fd);
        return SYMBOL_TRY_POORER;
    }
    if (found->debug_fd >= 0) {
        close(found->debug_fd);
        elf_image_close(&s->debug);
    }
    found->debug_fd = fd;
    found->wealth = e->wealth;
    s->debug = *e;
    replace_path(s, path);
    return SYMBOL_TRY_FOUND;
}

/* An open file, which is taken over. `crc` NULL: it need not have a checksum. */
static enum symbol_try judge(struct search *s, const char *path, int fd, const uint32_t *crc)
{
    struct elf_image e;
    struct error damage = {0};
    enum symbol_try what = SYMBOL_TRY_FOUND;
    if (elf_image_open(&e, fd, &damage) < 0 || elf_image_sections(&e, &damage) < 0)
        what = SYMBOL_TRY_DAMAGED;
    else if (s->build_id.len ? !has_build_id(&e, s->build_id) : false)
        what = SYMBOL_TRY_MISMATCH;
    else if (crc && !has_crc(fd, *crc))
        what = SYMBOL_TRY_CRC;
    if (what == SYMBOL_TRY_FOUND)
        return keep(s, path, fd, &e);
    elf_image_close(&e);
    close(fd);
    return what;
}

static bool enough(const struct search *s)
{
    return s->rc < 0 || s->found->wealth == ELF_HAS_LINES;
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void try_file(struct search *s, const char *path, bool trusted, const uint32_t *crc)
{
    static const enum symbol_try texts[] = {
        [SAFE_FILE_MISSING] = SYMBOL_TRY_MISSING,
        [SAFE_FILE_UNREADABLE] = SYMBOL_TRY_UNREADABLE,
        [SAFE_FILE_NOT_REGULAR] = SYMBOL_TRY_NOT_REGULAR,
        [SAFE_FILE_UNTRUSTED] = SYMBOL_TRY_UNTRUSTED,
    };
    int fd;
    if (enough(s))
        return;
    enum safe_file opened = safe_file_open(path, trusted, &fd);
    bool directory =
        opened == SAFE_FILE_NOT_REGULAR && is_directory(path); /* in perf's cache it is what we look into */
    note(s, path, opened == SAFE_FILE_OPEN ? judge(s, path, fd, crc) : directory ? SYMBOL_TRY_MISSING : texts[opened]);
}

/* --- all places of a root ----------------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void try_format(struct search *s, bool trusted, const char *fmt, ...)
{
    char path[PATH_MAX];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(path, sizeof path, fmt, ap);
    va_end(ap);
    if (n > 0 && (size_t)n < sizeof path)
        try_file(s, path, trusted, NULL);
}

/* /usr/lib/debug and what is laid out like it, and perf's cache (~/.debug). */
static void try_build_id(struct search *s, const char *root, bool trusted)
{
    if (strlen(s->hex) < 4)
        return;
    try_format(s, trusted, "%s/.build-id/%.2s/%s.debug", root, s->hex, s->hex + 2);
    try_format(s, trusted, "%s/.build-id/%.2s/%s/debug", root, s->hex, s->hex + 2);
    try_format(s, trusted, "%s/.build-id/%.2s/%s/elf", root, s->hex, s->hex + 2);
    try_format(s, trusted, "%s/.build-id/%.2s/%s", root, s->hex, s->hex + 2);
}

/* The file under its own name: with its directories and without, as it is and inside of an Android package. */
static void try_names(struct search *s, const char *root, bool trusted)
{
    static const char inside[] = "base.apk!";
    int n = s->path.len < PATH_MAX ? (int)s->path.len : 0;
    const char *path = (const char *)s->path.p;
    if (!n || memchr(path, 0, s->path.len))
        return;
    const char *slash = memrchr(path, '/', s->path.len), *base = slash ? slash + 1 : path;
    int n_base = n - (int)(base - path);
    bool packed = (size_t)n_base > strlen(inside) && memcmp(base, inside, strlen(inside)) == 0;
    const char *bare = packed ? base + strlen(inside) : base;
    int n_bare = n - (int)(bare - path);
    if (!n_base)
        return;
    try_format(s, trusted, "%s/%.*s", root, n, path);
    if (packed)
        try_format(s, trusted, "%s/%.*s%.*s", root, (int)(base - path), path, n_bare, bare);
    try_format(s, trusted, "%s/%.*s.debug", root, n, path);
    try_format(s, trusted, "%s/%.*s", root, n_base, base);
    if (packed)
        try_format(s, trusted, "%s/%.*s", root, n_bare, bare);
    try_format(s, trusted, "%s/%.*s.debug", root, n_bare, bare);
}

static void build_index(struct search *s)
{
    struct symbol_finder *f = s->f;
    for (size_t i = 0; !f->indexed && s->rc == 0 && i < f->sources->n_paths; i++) {
        struct stat st;
        if (stat(f->sources->paths[i], &st) == 0)
            s->rc = symbol_index_add(&f->index, f->sources->paths[i], s->err);
    }
    f->indexed = true;
}

static void try_index(struct search *s)
{
    const struct symbol_sources *sources = s->f->sources;
    if (sources->names_only || !sources->n_paths || enough(s))
        return;
    build_index(s);
    uint32_t at = 0;
    const char *path;
    size_t before = s->found->attempts.n;
    while (!enough(s) && (path = symbol_index_next(&s->f->index, s->build_id, &at)))
        try_file(s, path, false, NULL);
    for (size_t i = 0; s->found->attempts.n == before && i < sources->n_paths; i++)
        note(s, sources->paths[i], SYMBOL_TRY_NO_BUILD_ID);
}

static void try_given(struct search *s)
{
    const struct symbol_sources *sources = s->f->sources;
    for (size_t i = 0; i < sources->n_paths && !enough(s); i++) {
        const char *path = sources->paths[i];
        if (!is_directory(path)) {
            try_file(s, path, false, NULL);
            continue;
        }
        try_build_id(s, path, false);
        if (sources->names_only)
            try_names(s, path, false);
    }
    try_index(s);
}

static const char system_debug[] = "/usr/lib/debug";

static void try_this_machine(struct search *s)
{
    if (!s->f->sources->this_machine)
        return;
    bool named = s->path.len && s->path.p[0] == '/' && s->path.len < PATH_MAX && !memchr(s->path.p, 0, s->path.len);
    if (named)
        try_format(s, true, "%.*s", (int)s->path.len, (const char *)s->path.p);
    try_build_id(s, system_debug, true);
    if (named)
        try_format(s, true, "%s%.*s.debug", system_debug, (int)s->path.len, (const char *)s->path.p);
    if (s->f->home_debug[0])
        try_build_id(s, s->f->home_debug, true);
}

/* --- links from one file to another ------------------------------------------------------------------------------- */

/* The directory that a file lies in, without its last slash. */
static bool directory_of(const char *path, char out[PATH_MAX])
{
    char real[PATH_MAX];
    if (!realpath(path, real))
        return false;
    char *slash = strrchr(real, '/');
    *slash = 0;
    memcpy(out, real, (size_t)(slash - real) + 1);
    return true;
}

/* A file may name another that has what it lacks: beside it, below .debug there, or below a root in the same place. */
static void follow_debuglink(struct search *s)
{
    struct symbol_found *found = s->found;
    const struct symbol_sources *sources = s->f->sources;
    char dir[PATH_MAX], path[3 * PATH_MAX];
    if (found->fd < 0 || enough(s) || !found->image.debuglink[0] || !directory_of(found->path, dir))
        return;
    const char *name = found->image.debuglink;
    const uint32_t crc = found->image.debuglink_crc;
    bool trusted = sources->this_machine && !sources->n_paths;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    try_file(s, path, trusted, &crc);
    snprintf(path, sizeof path, "%s/.debug/%s", dir, name);
    try_file(s, path, trusted, &crc);
    for (size_t i = 0; i < sources->n_paths; i++) {
        snprintf(path, sizeof path, "%s%s/%s", sources->paths[i], dir, name);
        try_file(s, path, false, &crc);
        snprintf(path, sizeof path, "%s/%s", sources->paths[i], name);
        try_file(s, path, false, &crc);
    }
    if (sources->this_machine) {
        snprintf(path, sizeof path, "%s%s/%s", system_debug, dir, name);
        try_file(s, path, true, &crc);
    }
}

static void to_hex(struct slice id, char out[HEX_BYTES])
{
    size_t n = id.len < ELF_MAX_BUILD_ID ? id.len : ELF_MAX_BUILD_ID;
    for (size_t i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02x", id.p[i]);
    out[2 * n] = 0;
}

/* Opens the file that debugging information shares its texts with; it must have the build id that is named. */
static int open_alt(const char *path, bool trusted, struct slice id)
{
    struct elf_image e;
    struct error damage = {0};
    int fd;
    if (safe_file_open(path, trusted, &fd) != SAFE_FILE_OPEN)
        return -1;
    bool right = elf_image_open(&e, fd, &damage) == 0 &&
                 (has_build_id(&e, id) || (elf_image_sections(&e, &damage) == 0 && has_build_id(&e, id)));
    elf_image_close(&e);
    if (right)
        return fd;
    close(fd);
    return -1;
}

static void follow_altlink(struct search *s)
{
    struct symbol_found *found = s->found;
    const struct symbol_sources *sources = s->f->sources;
    const struct elf_image *e = found->debug_fd >= 0 ? &s->debug : &found->image;
    char dir[PATH_MAX], path[3 * PATH_MAX], hex[HEX_BYTES];
    if (found->fd < 0 || !e->altlink[0] || found->wealth != ELF_HAS_LINES || !directory_of(found->path, dir))
        return;
    struct slice id = slice_of(e->alt_id, e->alt_id_len);
    bool trusted = !sources->n_paths;
    to_hex(id, hex);
    snprintf(path, sizeof path, "%s%s%s", e->altlink[0] == '/' ? "" : dir, e->altlink[0] == '/' ? "" : "/", e->altlink);
    found->alt_fd = open_alt(path, trusted, id);
    for (size_t i = 0; found->alt_fd < 0 && i < sources->n_paths; i++) {
        snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", sources->paths[i], hex, hex + 2);
        found->alt_fd = open_alt(path, false, id);
    }
    if (found->alt_fd < 0) {
        snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", system_debug, hex, hex + 2);
        found->alt_fd = open_alt(path, true, id);
    }
}

static void ask_servers(struct search *s)
{
    char *path;
    if (!s->f->servers || enough(s) || !s->build_id.len)
        return;
    int fd = debuginfod_fetch(s->f->servers, s->build_id, &path);
    note(s, path ? path : "debuginfod",
         fd >= 0 ? judge(s, path ? path : "debuginfod", fd, NULL) : SYMBOL_TRY_NO_SERVER);
    free(path);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static int finish(struct search *s)
{
    if (s->rc == 0)
        follow_altlink(s);
    elf_image_close(&s->debug);
    return s->rc;
}

static struct search begin(struct symbol_finder *f, struct slice path, struct slice build_id,
                           struct symbol_found *found, struct error *err)
{
    *found = (struct symbol_found){.fd = -1, .debug_fd = -1, .alt_fd = -1};
    struct search s = {.f = f, .path = path, .build_id = build_id, .found = found, .err = err};
    to_hex(build_id, s.hex);
    return s;
}

int symbol_finder_find(struct symbol_finder *f, struct slice path, struct slice build_id, struct symbol_found *found,
                       struct error *err)
{
    struct search s = begin(f, path, build_id, found, err);
    if (!build_id.len || build_id.len > ELF_MAX_BUILD_ID)
        return 0;
    try_given(&s);
    try_this_machine(&s);
    follow_debuglink(&s);
    ask_servers(&s);
    return finish(&s);
}

int symbol_finder_find_kernel(struct symbol_finder *f, const char *release, struct slice build_id,
                              struct symbol_found *found, struct error *err)
{
    static const char *const places[] = {"/usr/lib/debug/boot/vmlinux-%s", "/boot/vmlinux-%s",
                                         "/lib/modules/%s/build/vmlinux", "/usr/lib/debug/lib/modules/%s/vmlinux",
                                         "/usr/lib/debug/boot/vmlinux-%s.debug"};
    struct search s = begin(f, slice_str("vmlinux"), build_id, found, err);
    if (build_id.len && build_id.len <= ELF_MAX_BUILD_ID)
        try_given(&s);
    for (size_t i = 0; f->sources->this_machine && release[0] && i < sizeof places / sizeof *places; i++) {
        char path[PATH_MAX];
        const char *hole = strstr(places[i], "%s");
        int n = snprintf(path, sizeof path, "%.*s%s%s", (int)(hole - places[i]), places[i], release, hole + 2);
        if (n > 0 && (size_t)n < sizeof path && !strchr(release, '/'))
            try_file(&s, path, true, NULL);
    }
    ask_servers(&s);
    return finish(&s);
}

int symbol_finder_open(struct symbol_finder **out, const struct symbol_sources *sources, struct error *err)
{
    struct symbol_finder *f = *out = mem_zalloc(sizeof *f);
    const char *home = getenv("HOME");
    if (!f)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    f->sources = sources;
    if (home && home[0] == '/' && strlen(home) < sizeof f->home_debug - sizeof "/.debug")
        snprintf(f->home_debug, sizeof f->home_debug, "%s/.debug", home);
    return sources->debuginfod ? debuginfod_open(&f->servers, err) : 0;
}

void symbol_found_free(struct symbol_found *found)
{
    const int fds[] = {found->fd, found->debug_fd, found->alt_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    elf_image_close(&found->image);
    for (size_t i = 0; i < found->attempts.n; i++)
        mem_free(found->attempts.p[i].path);
    vec_free(&found->attempts);
    mem_free(found->path);
    *found = (struct symbol_found){.fd = -1, .debug_fd = -1, .alt_fd = -1};
}

void symbol_finder_close(struct symbol_finder *f)
{
    if (!f)
        return;
    symbol_index_free(&f->index);
    debuginfod_close(f->servers);
    mem_free(f);
}
