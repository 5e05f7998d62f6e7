/* The data source linux.inode_file_map: the paths of files that ftrace events name by device and inode number.
 *
 * Inodes come from ftrace; after a delay the file systems they lie on are walked in small steps, by directory entries
 * alone (no stat), and what is found goes out as InodeFileMap packets. */
#include "base/alloc.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "capture/probes/common/data_source.h"
#include "capture/probes/common/metatrace.h"
#include "capture/probes/proc_text.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

enum {
    SCAN_INTERVAL_MS = 10,   /* between steps */
    SCAN_DELAY_MS = 10000,   /* from the first unknown inode to the scan */
    SCAN_BATCH = 15000,      /* directory entries a step */
    FLUSH_SCAN_MAX = 200000, /* entries that a flush still walks, so that short recordings get their paths */
};

struct mount {
    uint64_t device;
    char *path;
};

struct mapping { /* mount_point_mapping: where to look instead of the whole mount */
    char *mount;
    VEC(char *)
    roots;
};

struct inode_file_map {
    const struct probes_host *host;
    struct packet_sink sink;
    uint32_t interval_ms, delay_ms, batch;
    bool do_not_scan;
    VEC(char *)
    only_mounts; /* scan_mount_points; empty: all */
    VEC(struct mapping)
    mappings;
    VEC(struct mount)
    mounts;
    struct u64map wanted; /* of the file system being walked: inode → 1 */
    VEC(struct inode_key)
    pending;
    VEC(char *)
    stack;             /* directories to walk */
    uint64_t device;   /* being walked */
    const char *mount; /* its mount point */
    bool walking;
    uv_timer_t *timer;
    struct pb_writer w;
    size_t message;
    size_t n_entries;
};

/* ---- mounts ---- */

/* mountinfo: "36 35 98:0 /root /mount/point options …", blanks in paths as \040. */
static void unescape_octal(char *s)
{
    char *out = s;
    for (; *s; s++) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
            *out++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
            s += 3;
        } else {
            *out++ = *s;
        }
    }
    *out = 0;
}

static void free_mounts(struct inode_file_map *s)
{
    for (size_t i = 0; i < s->mounts.n; i++)
        mem_free(s->mounts.p[i].path);
    vec_clear(&s->mounts);
}

static void read_mounts(struct inode_file_map *s)
{
    struct text_file f = {0};
    char *text = text_file_read(&f, "/proc/self/mountinfo");
    free_mounts(s);
    for (char *line; text && (line = text_line(&text));) {
        unsigned major, minor;
        char *p = line;
        char *id = text_word(&p), *parent = id ? text_word(&p) : NULL, *device = parent ? text_word(&p) : NULL;
        char *root = device ? text_word(&p) : NULL, *path = root ? text_word(&p) : NULL;
        if (!path || strcmp(root, "/") != 0 || sscanf(device, "%u:%u", &major, &minor) != 2)
            continue; /* a bind mount shows a part of what another mount shows whole */
        unescape_octal(path);
        struct mount m = {makedev(major, minor), mem_strdup(path)};
        if (m.path && !vec_push(&s->mounts, m))
            mem_free(m.path);
    }
    text_file_close(&f);
}

static bool is_mount_point(const struct inode_file_map *s, const char *path)
{
    for (size_t i = 0; i < s->mounts.n; i++)
        if (strcmp(s->mounts.p[i].path, path) == 0)
            return true;
    return false;
}

static const char *mount_of(const struct inode_file_map *s, uint64_t device)
{
    for (size_t i = 0; i < s->mounts.n; i++) {
        const struct mount *m = &s->mounts.p[i];
        bool wanted = s->only_mounts.n == 0;
        for (size_t k = 0; k < s->only_mounts.n; k++)
            wanted |= strcmp(s->only_mounts.p[k], m->path) == 0;
        if (m->device == device && wanted)
            return m->path;
    }
    return NULL;
}

/* ---- packets ---- */

static void packet_begin(struct inode_file_map *s)
{
    pb_writer_clear(&s->w);
    s->w.failed = false;
    s->n_entries = 0;
    pb_put_varint(&s->w, TRACE_PACKET_TIMESTAMP, probes_boot_ns());
    s->message = pb_begin(&s->w, TRACE_PACKET_INODE_FILE_MAP);
    pb_put_varint(&s->w, INODE_FILE_MAP_BLOCK_DEVICE_ID, s->device);
    pb_put_str(&s->w, INODE_FILE_MAP_MOUNT_POINTS, s->mount);
}

static void packet_end(struct inode_file_map *s)
{
    pb_end(&s->w, s->message);
    if (s->n_entries && !s->w.failed)
        packet_sink_write(&s->sink, pb_written(&s->w));
}

static void put_entry(struct inode_file_map *s, uint64_t inode, const char *path, bool is_directory)
{
    enum { FILE_ENTRY = 1, DIRECTORY_ENTRY = 2, PACKET_MAX = 32 << 10 };
    size_t entry = pb_begin(&s->w, INODE_FILE_MAP_ENTRIES);
    pb_put_varint(&s->w, INODE_FILE_MAP_ENTRY_INODE_NUMBER, inode);
    pb_put_str(&s->w, INODE_FILE_MAP_ENTRY_PATHS, path);
    pb_put_varint(&s->w, INODE_FILE_MAP_ENTRY_TYPE, is_directory ? DIRECTORY_ENTRY : FILE_ENTRY);
    pb_end(&s->w, entry);
    s->n_entries++;
    if (s->w.n > PACKET_MAX) {
        packet_end(s);
        packet_begin(s);
    }
}

/* ---- the walk ---- */

static bool push_directory(struct inode_file_map *s, const char *path)
{
    char *copy = mem_strdup(path);
    if (copy && vec_push(&s->stack, copy))
        return true;
    mem_free(copy);
    return false;
}

static void push_roots(struct inode_file_map *s)
{
    for (size_t i = 0; i < s->mappings.n; i++) {
        struct mapping *m = &s->mappings.p[i];
        if (strcmp(m->mount, s->mount) != 0)
            continue;
        for (size_t k = 0; k < m->roots.n; k++)
            push_directory(s, m->roots.p[k]);
        return;
    }
    push_directory(s, s->mount);
}

/* Takes the pending inodes of one device as the next walk; false when there is nothing to walk. */
static bool next_walk(struct inode_file_map *s)
{
    while (s->pending.n) {
        size_t kept = 0;
        s->device = s->pending.p[0].device;
        s->mount = mount_of(s, s->device);
        u64map_clear(&s->wanted);
        for (size_t i = 0; i < s->pending.n; i++) {
            if (s->pending.p[i].device != s->device)
                s->pending.p[kept++] = s->pending.p[i];
            else
                u64map_set(&s->wanted, s->pending.p[i].inode, 1);
        }
        s->pending.n = kept;
        if (s->mount) {
            push_roots(s);
            return true;
        }
    }
    return false;
}

/* Walks one directory; returns the entries seen. */
static uint32_t walk_directory(struct inode_file_map *s, const char *directory)
{
    char path[4096];
    uint32_t n = 0;
    DIR *dir = opendir(directory);
    if (!dir)
        return 1;
    for (struct dirent *d; (d = readdir(dir)); n++) {
        bool is_directory = d->d_type == DT_DIR;
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        bool wanted = u64map_get(&s->wanted, d->d_ino) != NULL;
        if (!wanted && !is_directory)
            continue;
        const char *slash = directory[strlen(directory) - 1] == '/' ? "" : "/";
        if (snprintf(path, sizeof path, "%s%s%s", directory, slash, d->d_name) >= (int)sizeof path ||
            (is_directory && is_mount_point(s, path)))
            continue;
        if (wanted) {
            put_entry(s, d->d_ino, path, is_directory);
            if (is_directory || d->d_type != DT_REG) /* a file may have more names */
                u64map_del(&s->wanted, d->d_ino);
        }
        if (is_directory)
            push_directory(s, path);
    }
    closedir(dir);
    return n + 1;
}

/* Walks up to `max` entries; true when there is more. */
static bool step(struct inode_file_map *s, uint32_t max)
{
    uint32_t n = 0;
    struct metatrace_span span = metatrace_begin(s->host->metatrace);
    while (n < max && (s->stack.n || next_walk(s))) {
        packet_begin(s);
        while (n < max && s->stack.n) {
            char *directory = s->stack.p[--s->stack.n];
            n += walk_directory(s, directory);
            mem_free(directory);
        }
        packet_end(s);
    }
    metatrace_end(s->host->metatrace, span, "inode_scan");
    s->walking = s->stack.n || s->pending.n;
    return s->walking;
}

static void on_timer(uv_timer_t *timer)
{
    struct inode_file_map *s = timer->data;
    if (!s->walking)
        read_mounts(s);
    if (step(s, s->batch))
        uv_timer_start(timer, on_timer, s->interval_ms, 0);
}

static void on_new_inodes(void *state, const struct inode_key *inodes, size_t n)
{
    struct inode_file_map *s = state;
    if (s->do_not_scan || !s->timer)
        return;
    for (size_t i = 0; i < n; i++)
        (void)!vec_push(&s->pending, inodes[i]);
    if (!uv_is_active((uv_handle_t *)s->timer))
        uv_timer_start(s->timer, on_timer, s->delay_ms, 0);
}

/* ---- config and life ---- */

static char *copy_text(const struct pb_field *f)
{
    struct slice v = pb_bytes(f);
    return mem_strndup(v.p ? (const char *)v.p : "", v.len);
}

static void read_mapping(struct inode_file_map *s, const struct pb_field *f)
{
    struct pb_cursor c = pb_sub(f);
    struct pb_field g;
    struct mapping *m = vec_add(&s->mappings);
    while (m && pb_next(&c, &g)) {
        char *text = copy_text(&g);
        if (g.id == INODE_FILE_CONFIG_MOUNT_POINT_MAPPING_ENTRY_MOUNTPOINT && text && !m->mount)
            m->mount = text;
        else if (g.id != INODE_FILE_CONFIG_MOUNT_POINT_MAPPING_ENTRY_SCAN_ROOTS || !text || !vec_push(&m->roots, text))
            mem_free(text);
    }
    if (m && !m->mount)
        m->mount = mem_strdup("");
}

static void read_config(struct inode_file_map *s, struct slice bytes)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    char *text;
    s->interval_ms = SCAN_INTERVAL_MS;
    s->delay_ms = SCAN_DELAY_MS;
    s->batch = SCAN_BATCH;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case INODE_FILE_CONFIG_SCAN_INTERVAL_MS:
            s->interval_ms = pb_u32(&f) ? pb_u32(&f) : SCAN_INTERVAL_MS;
            break;
        case INODE_FILE_CONFIG_SCAN_DELAY_MS:
            s->delay_ms = pb_u32(&f);
            break;
        case INODE_FILE_CONFIG_SCAN_BATCH_SIZE:
            s->batch = pb_u32(&f) ? pb_u32(&f) : SCAN_BATCH;
            break;
        case INODE_FILE_CONFIG_DO_NOT_SCAN:
            s->do_not_scan = pb_bool(&f);
            break;
        case INODE_FILE_CONFIG_SCAN_MOUNT_POINTS:
            text = copy_text(&f);
            if (text && !vec_push(&s->only_mounts, text))
                mem_free(text);
            break;
        case INODE_FILE_CONFIG_MOUNT_POINT_MAPPING:
            read_mapping(s, &f);
            break;
        default:
            break;
        }
    }
}

static int setup(const struct probes_host *host, const struct data_source_config *config,
                 const struct packet_sink *sink, void **state, struct error *err)
{
    struct inode_file_map *s = mem_zalloc(sizeof *s);
    if (!s)
        return error_set(err, -MRD_ENOMEM, "out of memory for inode_file_map");
    s->host = host;
    s->sink = *sink;
    read_config(s, config->specific);
    *state = s;
    return 0;
}

static int start(void *state, struct error *err)
{
    struct inode_file_map *s = state;
    s->timer = probes_timer_new(s->host->loop, s);
    return s->timer ? 0 : error_set(err, -MRD_ENOMEM, "out of memory for inode_file_map");
}

/* What is pending is walked now, within reason. */
static void flush(void *state)
{
    struct inode_file_map *s = state;
    if (!s->pending.n && !s->stack.n)
        return;
    if (!s->walking)
        read_mounts(s);
    step(s, FLUSH_SCAN_MAX);
}

static void stop(void *state)
{
    struct inode_file_map *s = state;
    flush(s);
    if (s->timer)
        uv_timer_stop(s->timer);
}

static void free_state(void *state)
{
    struct inode_file_map *s = state;
    probes_timer_free(s->timer);
    free_mounts(s);
    vec_free(&s->mounts);
    for (size_t i = 0; i < s->mappings.n; i++) {
        struct mapping *m = &s->mappings.p[i];
        for (size_t k = 0; k < m->roots.n; k++)
            mem_free(m->roots.p[k]);
        vec_free(&m->roots);
        mem_free(m->mount);
    }
    vec_free(&s->mappings);
    for (size_t i = 0; i < s->only_mounts.n; i++)
        mem_free(s->only_mounts.p[i]);
    vec_free(&s->only_mounts);
    for (size_t i = 0; i < s->stack.n; i++)
        mem_free(s->stack.p[i]);
    vec_free(&s->stack);
    vec_free(&s->pending);
    u64map_free(&s->wanted);
    pb_writer_free(&s->w);
    mem_free(s);
}

const struct data_source_type inode_file_map_data_source = {
    .name = "linux.inode_file_map",
    .config_field = 102,
    .setup = setup,
    .start = start,
    .flush = flush,
    .stop = stop,
    .free = free_state,
    .new_inodes = on_new_inodes,
};
