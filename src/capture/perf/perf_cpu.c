/* Opens perf events cpu by cpu, and moves along their rings. */
#include "capture/perf/perf_cpu.h"

#include "base/file.h"
#include "capture/probes/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_event(const struct perf_event_attr *a, uint32_t cpu, int group)
{
    return (int)syscall(SYS_perf_event_open, a, -1, (int)cpu, group, PERF_FLAG_FD_CLOEXEC);
}

/* ---- which cpus ---- */

static bool is_online(uint32_t cpu)
{
    char path[64], text[8];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/online", cpu);
    return text_read_once(path, text, sizeof text) <= 0 || text[0] == '1'; /* the first one cannot go: no file */
}

static bool is_target(const struct perf_config *c, uint32_t cpu)
{
    for (size_t i = 0; i < c->target_cpus.n; i++)
        if (c->target_cpus.p[i] == cpu)
            return true;
    return !c->target_cpus.n;
}

/* The id of an arm64 processor in /proc/cpuinfo: implementer, part, variant and revision in hex, without zeros in
 * front; empty on other machines. */
static void cpu_id(uint32_t cpu, const char *cpuinfo, char id[64])
{
    static const char *const parts[] = {"CPU implementer", "CPU part", "CPU variant", "CPU revision"};
    size_t n = 0;
    char head[32];
    id[0] = 0;
    for (const char *at = cpuinfo; (at = strstr(at, "processor")); at++) {
        if ((at != cpuinfo && at[-1] != '\n') || sscanf(at, "processor%*[ \t]: %31s", head) != 1 ||
            strtoul(head, NULL, 10) != cpu)
            continue;
        const char *end = strstr(at, "\n\n");
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            const char *line = strstr(at, parts[i]), *colon = line ? strchr(line, ':') : NULL;
            if (!colon || (end && colon > end))
                continue;
            n += (size_t)snprintf(id + n, 64 - n, "%lx", strtoul(colon + 1, NULL, 0) & 0xffff);
        }
        return;
    }
}

static bool has_id(const struct perf_config *c, uint32_t cpu, const char *cpuinfo)
{
    char id[64];
    cpu_id(cpu, cpuinfo, id);
    for (size_t i = 0; i < c->cpuids.n && id[0]; i++)
        if (c->cpuids.p[i].len <= strlen(id) && memcmp(id, c->cpuids.p[i].p, c->cpuids.p[i].len) == 0)
            return true;
    return !c->cpuids.n;
}

typedef VEC(uint32_t) cpu_numbers;

static int cpus_wanted(const struct perf_config *c, cpu_numbers *list, struct error *err)
{
    char *cpuinfo = NULL;
    size_t len;
    long n = sysconf(_SC_NPROCESSORS_CONF);
    bool good = true;
    if (c->cpuids.n && file_read_all("/proc/cpuinfo", 64u << 20, &cpuinfo, &len, err))
        return err ? err->code : -MRD_EIO;
    for (uint32_t cpu = 0; good && (long)cpu < n; cpu++)
        if (is_target(c, cpu) && is_online(cpu) && has_id(c, cpu, cpuinfo ? cpuinfo : ""))
            good = vec_push(list, cpu);
    mem_free(cpuinfo);
    if (!good)
        return error_set(err, -MRD_ENOMEM, "out of memory for linux.perf");
    return list->n ? 0
                   : error_set(err, -MRD_ENOTFOUND, "no processor of this machine is what target_cpu or cpuid ask for");
}

/* ---- events of one cpu ---- */

static int set_filter(int fd, const struct perf_event_spec *e, struct error *err)
{
    char filter[4096];
    if (!e->filter.len)
        return 0;
    if (e->filter.len >= sizeof filter)
        return error_set(err, -MRD_ELIMIT, "the filter of %.*s is too long", (int)e->point.len,
                         (const char *)e->point.p);
    memcpy(filter, e->filter.p, e->filter.len);
    filter[e->filter.len] = 0;
    if (ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) != 0)
        return error_set_errno(err, errno, "the kernel refuses the filter '%s' of %.*s", filter, (int)e->point.len,
                               (const char *)e->point.p);
    return 0;
}

static int refused(uint32_t cpu, const char *what, struct error *err)
{
    int e = errno;
    if (e == EACCES || e == EPERM)
        return error_set(err, -MRD_EDENIED,
                         "perf_event_open of %s on cpu %u: not permitted; run traced_perf as root, or with "
                         "CAP_PERFMON, or lower /proc/sys/kernel/perf_event_paranoid",
                         what, cpu);
    if (e == ENOENT || e == EOPNOTSUPP || e == ENODEV)
        return error_set(err, -MRD_EUNSUPPORTED,
                         "this machine does not have %s (cpu %u): use another counter, SW_CPU_CLOCK is on all", what,
                         cpu);
    if (e == EINVAL)
        return error_set(err, -MRD_EINVALID,
                         "the kernel refuses %s on cpu %u: a frequency above "
                         "/proc/sys/kernel/perf_event_max_sample_rate, or a timestamp_clock that the event cannot "
                         "have (PERF_CLOCK_MONOTONIC is for all)",
                         what, cpu);
    return error_set_errno(err, e, "perf_event_open of %s on cpu %u", what, cpu);
}

static int map_ring(struct perf_cpu *p, uint32_t pages, struct error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (pages + (size_t)1) * page;
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->leader, 0);
    if (map == MAP_FAILED)
        return error_set_errno(err, errno,
                               "a ring of %u pages for cpu %u (less ring_buffer_pages, or more of "
                               "/proc/sys/kernel/perf_event_mlock_kb, may help)",
                               pages, p->cpu);
    p->map = map;
    p->map_bytes = bytes;
    p->ring = (struct perf_ring){(const uint8_t *)map + page, (uint64_t)pages * page};
    return 0;
}

static void close_cpu(struct perf_cpu *p)
{
    if (p->map)
        munmap(p->map, p->map_bytes);
    for (uint32_t i = 0; i < p->n_followers; i++)
        close(p->followers[i]);
    if (p->leader >= 0)
        close(p->leader);
    *p = (struct perf_cpu){.leader = -1};
}

/* attrs[0] is the leader, the others are followers in the order of the config. */
static int open_cpu(struct perf_cpu *p, uint32_t cpu, const struct perf_config *c, const struct perf_event_attr *attrs,
                    struct error *err)
{
    *p = (struct perf_cpu){.cpu = cpu, .leader = open_event(&attrs[0], cpu, -1)};
    if (p->leader < 0)
        return refused(cpu, "the timebase", err);
    int rc = set_filter(p->leader, &c->timebase, err);
    for (uint32_t i = 0; !rc && i < c->n_followers; i++) {
        int fd = open_event(&attrs[i + 1], cpu, p->leader);
        if (fd < 0) {
            rc = refused(cpu, "a follower", err);
            break;
        }
        p->followers[p->n_followers++] = fd;
        rc = set_filter(fd, &c->followers[i], err);
    }
    if (!rc && !c->poll_ms)
        rc = map_ring(p, c->ring_pages, err);
    if (rc)
        close_cpu(p);
    return rc;
}

/* Kernels before 6.0 do not know PERF_FORMAT_LOST. */
static void leave_out_unknown(struct perf_event_attr *leader, uint32_t cpu)
{
    int fd = open_event(leader, cpu, -1);
    if (fd >= 0)
        close(fd);
    else if (errno == EINVAL)
        leader->read_format &= ~(uint64_t)PERF_FORMAT_LOST;
}

int perf_cpus_open(perf_cpu_list *cpus, struct perf_config *c, struct perf_layout *layout, struct error *left_out,
                   struct error *err)
{
    struct perf_event_attr attrs[PERF_MAX_FOLLOWERS + 1];
    cpu_numbers wanted = {0};
    int rc = perf_attr_make(&attrs[0], c, &c->timebase, true, err);
    for (uint32_t i = 0; !rc && i < c->n_followers; i++)
        rc = perf_attr_make(&attrs[i + 1], c, &c->followers[i], false, err);
    if (!rc)
        rc = cpus_wanted(c, &wanted, err);
    if (!rc)
        leave_out_unknown(&attrs[0], wanted.p[0]);
    *layout = perf_attr_layout(&attrs[0]);
    for (size_t i = 0; !rc && i < wanted.n; i++) {
        struct perf_cpu cpu;
        rc = open_cpu(&cpu, wanted.p[i], c, attrs, err);
        if (!rc && !vec_push(cpus, cpu)) {
            close_cpu(&cpu);
            rc = error_set(err, -MRD_ENOMEM, "out of memory for linux.perf");
        } else if (rc && c->ignore_open_failure) {
            *left_out = *err;
            rc = 0;
        }
    }
    vec_free(&wanted);
    return rc;
}

void perf_cpus_close(perf_cpu_list *cpus)
{
    for (size_t i = 0; i < cpus->n; i++)
        close_cpu(&cpus->p[i]);
    vec_free(cpus);
}

int perf_cpu_enable(const struct perf_cpu *p, struct error *err)
{
    if (ioctl(p->leader, PERF_EVENT_IOC_ENABLE, 0) != 0)
        return error_set_errno(err, errno, "enabling the events of cpu %u", p->cpu);
    return 0;
}

void perf_cpu_disable(const struct perf_cpu *p)
{
    ioctl(p->leader, PERF_EVENT_IOC_DISABLE, 0);
}

uint64_t perf_cpu_head(const struct perf_cpu *p)
{
    return __atomic_load_n(&p->map->data_head, __ATOMIC_ACQUIRE);
}

uint64_t perf_cpu_tail(const struct perf_cpu *p)
{
    return p->map->data_tail;
}

void perf_cpu_set_tail(struct perf_cpu *p, uint64_t tail)
{
    __atomic_store_n(&p->map->data_tail, tail, __ATOMIC_RELEASE);
}

uint64_t perf_cpu_lost(const struct perf_cpu *p, const struct perf_layout *layout)
{
    uint64_t values[2 * (PERF_MAX_FOLLOWERS + 1) + 1];
    ssize_t n = layout->lost ? read(p->leader, values, sizeof values) : 0;
    size_t at = layout->group ? 2 : 1; /* behind the leader's count */
    return n >= (ssize_t)((at + 1) * sizeof *values) ? values[at] : 0;
}

unsigned perf_cpu_read(const struct perf_cpu *p, uint64_t counts[PERF_MAX_FOLLOWERS + 1])
{
    uint64_t values[PERF_MAX_FOLLOWERS + 2];
    size_t want = (p->n_followers + (size_t)2) * sizeof *values;
    if (read(p->leader, values, want) != (ssize_t)want || values[0] != p->n_followers + 1)
        return 0;
    memcpy(counts, values + 1, want - sizeof *values);
    return p->n_followers + 1;
}
