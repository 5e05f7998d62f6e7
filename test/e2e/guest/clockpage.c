/* Measures the true offset between the clocks of a host and its guests through a page of shared memory, without a
 * network.
 *
 *   clockpage host FILE SECONDS     writes CLOCK_BOOTTIME into the first word of FILE over and over
 *   clockpage guest SECONDS         samples the page of the ivshmem device and prints a line per 100 ms:
 *                                   <guest boottime ns> <offset guest - host, ns> <uncertainty ns>
 *
 * What the guest reads is never later than the host's now, so guest time after the read minus the value is never less
 * than the true offset; the smallest of many is close to it: off by the time the read took and the age of the value. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int host(const char *path, double seconds)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 1 << 20) != 0)
        return perror(path), 1;
    _Atomic int64_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return perror("mmap"), 1;
    int64_t end = now_ns() + (int64_t)(seconds * 1e9);
    for (int64_t t = now_ns(); t < end;) { /* in bursts, to leave the processor to the guest that is being emulated */
        for (int64_t burst = t + 1000000; t < burst; t = now_ns())
            atomic_store_explicit(page, t, memory_order_release);
        usleep(4000);
        t = now_ns();
    }
    return 0;
}

/* Opens the memory of the first ivshmem device (1af4:1110), or -1. */
static int open_device(void)
{
    static const char root[] = "/sys/bus/pci/devices";
    DIR *d = opendir(root);
    int fd = -1;
    for (struct dirent *e; d && fd < 0 && (e = readdir(d));) {
        char path[512], id[16] = "";
        snprintf(path, sizeof path, "%s/%s/device", root, e->d_name);
        int id_fd = open(path, O_RDONLY);
        if (id_fd < 0)
            continue;
        if (read(id_fd, id, sizeof id - 1) > 0 && strncmp(id, "0x1110", 6) == 0) {
            snprintf(path, sizeof path, "%s/%s/enable", root, e->d_name);
            int enable = open(path, O_WRONLY);
            if (enable >= 0 && write(enable, "1", 1) != 1)
                perror(path);
            close(enable);
            snprintf(path, sizeof path, "%s/%s/resource2", root, e->d_name);
            fd = open(path, O_RDWR);
        }
        close(id_fd);
    }
    if (d)
        closedir(d);
    return fd;
}

static int guest(double seconds)
{
    int fd = open_device();
    if (fd < 0)
        return fprintf(stderr, "clockpage: no ivshmem device\n"), 1;
    const _Atomic int64_t *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return perror("mmap"), 1;
    int64_t end = now_ns() + (int64_t)(seconds * 1e9);
    while (now_ns() < end) {
        int64_t window = now_ns() + 20000000, best = INT64_MAX, at = 0, bracket = 0;
        for (int64_t before; (before = now_ns()) < window;) {
            int64_t value = atomic_load_explicit(page, memory_order_acquire), after = now_ns();
            if (value && after - value < best) {
                best = after - value;
                bracket = after - before;
                at = after;
            }
        }
        if (best != INT64_MAX)
            printf("%" PRId64 " %" PRId64 " %" PRId64 "\n", at, best, bracket);
        fflush(stdout);
        usleep(80000);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "host") == 0)
        return host(argv[2], atof(argv[3]));
    if (argc == 3 && strcmp(argv[1], "guest") == 0)
        return guest(atof(argv[2]));
    fprintf(stderr, "usage: clockpage host FILE SECONDS | clockpage guest SECONDS\n");
    return 1;
}
