/* Reads what the machine tells about itself. */
#include "capture/common/machine.h"

#include "base/fnv.h"
#include "wire/fields.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

const char machine_software_version[] = "Meridian v" MERIDIAN_VERSION;

uint32_t machine_id_of_hint(const char *hint, size_t len)
{
    uint32_t id = (uint32_t)fnv1a(FNV1A_BASIS, hint, len);
    return id ? id : 1;
}

void machine_name(char *buf, size_t size)
{
    const char *name = getenv("PERFETTO_MACHINE_NAME");
    struct utsname u;
    if (name && *name)
        snprintf(buf, size, "%s", name);
    else
        snprintf(buf, size, "%s", uname(&u) == 0 ? u.sysname : "");
}

void machine_display_name(const char *name, char *buf, size_t size)
{
    struct utsname u;
    bool is_default = uname(&u) == 0 && strcmp(name, u.sysname) == 0;
    snprintf(buf, size, "%s", is_default ? u.nodename : name);
}

static bool read_boot_id(char *buf, size_t size)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, buf, size - 1);
    close(fd);
    if (n <= 0)
        return false;
    buf[n] = 0;
    buf[strcspn(buf, "\n")] = 0;
    return *buf != 0;
}

void machine_id_hint(char *buf, size_t size)
{
    if (read_boot_id(buf, size))
        return;
    struct statx st;
    struct utsname u;
    *buf = 0;
    memset(&u, 0, sizeof u);
    if (statx(AT_FDCWD, "/dev", 0, STATX_BTIME, &st) != 0 || !(st.stx_mask & STATX_BTIME) || uname(&u) != 0)
        return;
    uint64_t h = fnv1a(FNV1A_BASIS, &st.stx_btime, sizeof st.stx_btime);
    snprintf(buf, size, "%llx", (unsigned long long)fnv1a(h, &u, sizeof u));
}

static int timezone_off_mins(void)
{
    time_t now = time(NULL);
    struct tm local;
    return localtime_r(&now, &local) ? (int)(local.tm_gmtoff / 60) : 0;
}

void machine_put_system_info(struct pb_writer *w)
{
    struct utsname u;
    if (uname(&u) == 0) {
        size_t mark = pb_begin(w, SYSTEM_INFO_UTSNAME);
        pb_put_str(w, UTSNAME_SYSNAME, u.sysname);
        pb_put_str(w, UTSNAME_VERSION, u.version);
        pb_put_str(w, UTSNAME_RELEASE, u.release);
        pb_put_str(w, UTSNAME_MACHINE, u.machine);
        pb_end(w, mark);
    }
    pb_put_str(w, SYSTEM_INFO_TRACING_SERVICE_VERSION, machine_software_version);
    pb_put_varint(w, SYSTEM_INFO_PAGE_SIZE, (uint64_t)sysconf(_SC_PAGESIZE));
    pb_put_i64(w, SYSTEM_INFO_TIMEZONE_OFF_MINS, timezone_off_mins());
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    if (cpus > 0)
        pb_put_varint(w, SYSTEM_INFO_NUM_CPUS, (uint64_t)cpus);
    struct sysinfo info;
    if (sysinfo(&info) == 0)
        pb_put_varint(w, SYSTEM_INFO_SYSTEM_RAM_BYTES, (uint64_t)info.totalram * info.mem_unit);
}
