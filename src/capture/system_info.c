/* Asks the kernel who it is. */
#include "capture/system_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

void system_info_put(struct pb_writer *w)
{
    struct utsname u;
    if (uname(&u) == 0) {
        struct pb_writer m = {0};
        pb_put_str(&m, 1, u.sysname);
        pb_put_str(&m, 2, u.version);
        pb_put_str(&m, 3, u.release);
        pb_put_str(&m, 4, u.machine);
        pb_put_bytes(w, 1, m.p, m.n);
        w->failed |= m.failed;
        pb_writer_free(&m);
    }
    pb_put_varint(w, 3, (uint64_t)sysconf(_SC_CLK_TCK)); /* hz */
    pb_put_str(w, 4, "Meridian v" MERIDIAN_VERSION);
    long page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_PHYS_PAGES);
    pb_put_varint(w, 6, (uint64_t)page);
    time_t now = time(NULL);
    struct tm tm;
    if (localtime_r(&now, &tm))
        pb_put_i64(w, 7, tm.tm_gmtoff / 60);
    pb_put_varint(w, 8, (uint64_t)sysconf(_SC_NPROCESSORS_CONF));
    if (pages > 0)
        pb_put_varint(w, 16, (uint64_t)page * (uint64_t)pages);
}

void system_info_machine_name(char *buf, size_t size)
{
    const char *env = getenv("PERFETTO_MACHINE_NAME");
    struct utsname u;
    if (env && *env)
        snprintf(buf, size, "%s", env);
    else
        snprintf(buf, size, "%s", uname(&u) == 0 ? u.sysname : "");
}
