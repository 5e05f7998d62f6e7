/* The limit of data (RLIMIT_DATA), set by what the process has and what the system still has. */
#include "base/memory_limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* The number behind `name` at the beginning of a line, in KiB. */
static uint64_t number_of(const char *path, const char *name)
{
    char line[256];
    uint64_t found = 0;
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    while (!found && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            sscanf(line + strlen(name), "%" SCNu64, &found);
    fclose(f);
    return found;
}

uint64_t memory_free_bytes(void)
{
    uint64_t machine = (number_of("/proc/meminfo", "MemAvailable:") + number_of("/proc/meminfo", "SwapFree:")) << 10;
    uint64_t most = number_of("/sys/fs/cgroup/memory.max", ""); /* "max" without a limit */
    uint64_t held = number_of("/sys/fs/cgroup/memory.current", "");
    uint64_t group = most > held ? most - held : 0;
    return most && group < machine ? group : machine;
}

bool memory_limit_growth(uint64_t bytes)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* they end the program when they find no memory */
    (void)bytes;
    return false;
#else
    struct rlimit limit;
    uint64_t held = number_of("/proc/self/status", "VmData:") << 10;
    if (!held || getrlimit(RLIMIT_DATA, &limit) < 0)
        return false;
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur <= held + bytes)
        return true; /* somebody wants less */
    limit.rlim_cur = held + bytes;
    return setrlimit(RLIMIT_DATA, &limit) == 0;
#endif
}
