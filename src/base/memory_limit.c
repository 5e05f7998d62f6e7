/* What the machine and the control groups let a process have (cgroups(7)), and the limit of its data (RLIMIT_DATA). */
#include "base/memory_limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number behind `name` at the beginning of a line; `otherwise` when there is none. */
static uint64_t number_of(const char *path, const char *name, uint64_t otherwise)
{
    char line[256];
    uint64_t found = otherwise;
    FILE *f = fopen(path, "re");
    if (!f)
        return otherwise;
    while (found == otherwise && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            sscanf(line + strlen(name), "%" SCNu64, &found);
    fclose(f);
    return found;
}

/* ---- the control groups ---- */

struct hierarchy {
    const char *root, *limit, *held;
};

struct bounds {
    uint64_t limit; /* the least of all groups; UINT64_MAX: none has one */
    uint64_t left;  /* of that group that has the least left */
};

static void add_group(struct bounds *b, const struct hierarchy *h, const char *group)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s%s/%s", h->root, group, h->limit) >= (int)sizeof path)
        return;
    uint64_t limit = number_of(path, "", UINT64_MAX); /* "max" is no number */
    if (limit == UINT64_MAX)
        return;
    snprintf(path, sizeof path, "%s%s/%s", h->root, group, h->held);
    uint64_t held = number_of(path, "", 0), left = limit > held ? limit - held : 0;
    b->limit = limit < b->limit ? limit : b->limit;
    b->left = left < b->left ? left : b->left;
}

/* A group, and all above it. */
static void add_groups(struct bounds *b, const struct hierarchy *h, char *group)
{
    for (;;) {
        add_group(b, h, group);
        char *slash = strrchr(group, '/');
        if (!slash)
            return;
        *slash = 0;
    }
}

static struct bounds groups_bounds(void)
{
    static const struct hierarchy unified = {"/sys/fs/cgroup", "memory.max", "memory.current"};
    static const struct hierarchy of_memory = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                               "memory.usage_in_bytes"};
    struct bounds b = {UINT64_MAX, UINT64_MAX};
    char line[4096];
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        if (!controllers[1])
            add_groups(&b, &unified, group);
        else if (strstr(controllers, "memory"))
            add_groups(&b, &of_memory, group);
    }
    if (f)
        fclose(f);
    return b;
}

/* ---- what may be had ---- */

uint64_t memory_of_machine(void)
{
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
             groups = groups_bounds().limit, least = groups < machine ? groups : machine;
    struct rlimit data;
    bool limited = getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY && data.rlim_cur < least;
    return limited ? data.rlim_cur : least;
}

uint64_t memory_free_bytes(void)
{
    uint64_t machine = (number_of("/proc/meminfo", "MemAvailable:", 0) + number_of("/proc/meminfo", "SwapFree:", 0))
                       << 10;
    uint64_t groups = groups_bounds().left;
    return groups < machine ? groups : machine;
}

bool memory_limit(uint64_t bytes)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* they end the program when they find no memory */
    (void)bytes;
    return false;
#else
    struct rlimit limit;
    if (getrlimit(RLIMIT_DATA, &limit) < 0)
        return false;
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur <= bytes)
        return true; /* somebody wants less */
    limit.rlim_cur = bytes;
    return setrlimit(RLIMIT_DATA, &limit) == 0;
#endif
}

bool memory_limit_growth(uint64_t bytes)
{
    uint64_t held = number_of("/proc/self/status", "VmData:", 0) << 10;
    return held && memory_limit(held + bytes);
}
