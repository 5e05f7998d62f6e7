/* Reads the name of the kernel's clock source. */
#include "capture/common/clock_source.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

void clock_source_open(struct clock_source *s)
{
    *s = (struct clock_source){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    clock_source_read(s);
}

void clock_source_close(struct clock_source *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

bool clock_source_read(struct clock_source *s)
{
    char name[CLOCK_SOURCE_NAME_MAX] = "";
    ssize_t n = s->fd >= 0 ? pread(s->fd, name, sizeof name - 1, 0) : 0;
    name[n > 0 ? n : 0] = '\0';
    name[strcspn(name, "\n")] = '\0';
    bool same = strcmp(name, s->name) == 0;
    memcpy(s->name, name, sizeof name);
    return same;
}
