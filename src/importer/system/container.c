/* Reads the names that engines of containers and systemd give to control groups. */
#include "importer/system/container.h"

#include "base/slice.h"

#include <stdbool.h>
#include <string.h>

enum { ID_DIGITS = 64 };

static bool is_hex(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static struct slice text(const char *s)
{
    return slice_of(s, strlen(s));
}

static bool ends(struct slice s, const char *with)
{
    size_t n = strlen(with);
    return s.len > n && memcmp(s.p + s.len - n, with, n) == 0;
}

static struct slice without_end(struct slice s, const char *with)
{
    return ends(s, with) ? slice_of(s.p, s.len - strlen(with)) : s;
}

/* The words before an id, and whose they are; "": nothing before it. The monitor beside a container is not in it. */
static const struct {
    const char *before, *runtime;
} engines[] = {
    {"docker-", "docker"},      {"cri-containerd-", "containerd"},
    {"nerdctl-", "containerd"}, {"crio-", "cri-o"},
    {"libpod-", "podman"},      {"", NULL},
};

/* Folders whose children are containers of that name, and whose they are. */
static const struct {
    const char *folder, *runtime;
} folders[] = {{"docker", "docker"}, {"libpod_parent", "podman"}, {"lxc", "lxc"}};

/* Containers that carry a name in place of an id. */
static const struct {
    const char *before, *after, *runtime;
} named[] = {
    {"lxc.payload.", "", "lxc"},
    {"systemd-nspawn@", ".service", "systemd-nspawn"},
};

static bool take_id(struct slice part, struct slice parent, struct container *c)
{
    struct slice s = without_end(part, ".scope"), before;
    if (s.len < ID_DIGITS)
        return false;
    before = slice_of(s.p, s.len - ID_DIGITS);
    for (size_t i = before.len; i < s.len; i++)
        if (!is_hex(s.p[i]))
            return false;
    const char *runtime = NULL;
    bool known = false;
    for (size_t i = 0; i < sizeof engines / sizeof *engines && !known; i++) {
        known = slice_eq_str(before, engines[i].before);
        runtime = engines[i].runtime;
    }
    if (!known && ends(before, ":cri-containerd:")) {
        known = true;
        runtime = "containerd";
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders && known && !runtime; i++)
        if (slice_eq_str(parent, folders[i].folder))
            runtime = folders[i].runtime;
    if (!known)
        return false;
    c->id = slice_of(s.p + before.len, ID_DIGITS);
    c->runtime = runtime ? text(runtime) : (struct slice){0};
    return true;
}

static bool take_name(struct slice part, struct slice parent, struct container *c)
{
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        size_t n = strlen(named[i].before);
        if (!slice_starts(part, named[i].before) || part.len <= n + strlen(named[i].after) ||
            !ends(part, named[i].after))
            continue;
        c->id = slice_of(part.p + n, part.len - n - strlen(named[i].after));
        c->runtime = text(named[i].runtime);
        return true;
    }
    if (!slice_eq_str(parent, "lxc") || !part.len)
        return false;
    c->id = part;
    c->runtime = text("lxc");
    return true;
}

/* "pod" and a UUID at the end of the name of a group. */
static void take_pod(struct slice part, struct container *c)
{
    struct slice s = without_end(part, ".slice");
    size_t colon = 0;
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] == ':') /* SLICE:cri-containerd:ID */
            colon = colon ? colon : i;
    if (colon)
        s = without_end(slice_of(s.p, colon), ".slice");
    if (s.len < POD_UID_BYTES + 3)
        return;
    const uint8_t *uid = s.p + s.len - POD_UID_BYTES;
    if (memcmp(uid - 3, "pod", 3) != 0 || (s.len > POD_UID_BYTES + 3 && uid[-4] != '-'))
        return;
    for (size_t i = 0; i < POD_UID_BYTES; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? uid[i] != '-' && uid[i] != '_' : !is_hex(uid[i]))
            return;
        c->pod_text[i] = dash ? '-' : (char)uid[i];
    }
    c->pod = slice_of(c->pod_text, POD_UID_BYTES);
}

static bool is_unit(struct slice part)
{
    static const char *const kinds[] = {".service", ".scope", ".mount", ".socket", ".swap"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ends(part, kinds[i]))
            return true;
    return false;
}

void container_of_cgroup(struct slice path, struct container *c)
{
    struct slice parent = {0};
    memset(c, 0, sizeof *c);
    for (size_t at = 0; at < path.len;) {
        const uint8_t *slash = memchr(path.p + at, '/', path.len - at);
        struct slice part = slice_of(path.p + at, slash ? (size_t)(slash - path.p) - at : path.len - at);
        struct container inner = {0};
        if (take_id(part, parent, &inner) || take_name(part, parent, &inner)) {
            c->id = inner.id;
            c->runtime = inner.runtime;
        }
        take_pod(part, c);
        if (is_unit(part))
            c->unit = part;
        at += part.len + 1;
        parent = part;
    }
}
