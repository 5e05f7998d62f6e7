/* Measures what a guest's clock really shows, through a page of memory that it shares with its host: no network, and
 * nothing is assumed of either clock.
 *
 *   clockpage host FILE...             answers the guests of these files until it is killed
 *   clockpage guest SECONDS [marks]    asks through the ivshmem device fifty times a second and keeps what it learns
 *
 * An exchange: the guest reads its clock (asked), the host sees that and writes its own (told), the guest reads its
 * clock again (heard). Asked is not later than told, told is not later than heard: this is true whatever the clocks do,
 * also when the guest stands still in the middle, and it is a microsecond or two wide when nobody does. With `marks`
 * the guest writes the instant "mark NUMBER" to its kernel's trace between two exchanges: the mark's true time, on the
 * host's clock, lies between what they were told.
 *
 * Everything is kept in the file, where it outlives the guest. truth.py reads it: the structures below are its format.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { FILE_BYTES = 4 << 20, EXCHANGES = 4, PERIOD_US = 20000, PATIENCE_NS = 3000000, MAX_GUESTS = 16 };

struct exchange {
    int64_t asked, told, heard; /* CLOCK_BOOTTIME of the guest, the host, the guest; told = 0: no answer in time */
};

struct record {
    struct exchange before, after; /* each the quickest of a few */
    int64_t mark;                  /* number of the mark between the two; -1: the kernel took none */
};

struct page {
    alignas(64) _Atomic int64_t question; /* asked, of the guest's latest question */
    alignas(64) _Atomic int64_t echo;     /* the question that `told` answers */
    _Atomic int64_t told;
    alignas(64) _Atomic int64_t count; /* of records */
    char boot_id[64];
    alignas(4096) struct record records[];
};

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int host(int n, char **paths)
{
    struct page *pages[MAX_GUESTS];
    if (n > MAX_GUESTS)
        return fprintf(stderr, "clockpage: at most %d guests\n", MAX_GUESTS), 1;
    for (int i = 0; i < n; i++) {
        int fd = open(paths[i], O_RDWR | O_CREAT, 0600);
        if (fd < 0 || ftruncate(fd, FILE_BYTES) != 0)
            return perror(paths[i]), 1;
        pages[i] = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (pages[i] == MAP_FAILED)
            return perror("mmap"), 1;
    }
    prctl(PR_SET_PDEATHSIG, 9);
    prctl(PR_SET_TIMERSLACK, 1000);
    for (int64_t busy = 0;;) { /* awake while somebody asks: questions come in bursts */
        for (int i = 0; i < n; i++) {
            int64_t question = atomic_load_explicit(&pages[i]->question, memory_order_acquire);
            if (question == atomic_load_explicit(&pages[i]->echo, memory_order_relaxed))
                continue;
            busy = now_ns();
            atomic_store_explicit(&pages[i]->told, busy, memory_order_relaxed);
            atomic_store_explicit(&pages[i]->echo, question, memory_order_release);
        }
        if (now_ns() - busy > 100000)
            usleep(50);
    }
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

static struct exchange ask(struct page *page)
{
    struct exchange e = {.asked = now_ns()};
    atomic_store_explicit(&page->question, e.asked, memory_order_release);
    while (atomic_load_explicit(&page->echo, memory_order_acquire) != e.asked)
        if (now_ns() - e.asked > PATIENCE_NS)
            return e;
    e.told = atomic_load_explicit(&page->told, memory_order_relaxed);
    e.heard = now_ns();
    return e;
}

/* The quickest of a few: the processor that answers may have been somewhere else. */
static struct exchange ask_well(struct page *page)
{
    struct exchange best = {0};
    for (int i = 0; i < EXCHANGES; i++) {
        struct exchange e = ask(page);
        if (e.told && (!best.told || e.heard - e.asked < best.heard - best.asked))
            best = e;
    }
    return best;
}

static void read_boot_id(char *to, size_t size)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, to, size - 1);
    to[n > 0 ? n - 1 : 0] = '\0'; /* the line's end */
    close(fd);
}

static int guest(double seconds, bool marks)
{
    int fd = open_device(), marker = marks ? open("/sys/kernel/tracing/trace_marker", O_WRONLY) : -1;
    if (fd < 0)
        return fprintf(stderr, "clockpage: no ivshmem device\n"), 1;
    if (marks && marker < 0)
        return perror("clockpage: trace_marker"), 1;
    struct page *page = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return perror("mmap"), 1;
    read_boot_id(page->boot_id, sizeof page->boot_id);
    const int64_t room = (FILE_BYTES - (int64_t)sizeof *page) / (int64_t)sizeof(struct record),
                  end = now_ns() + (int64_t)(seconds * 1e9);
    atomic_store(&page->count, 0);
    for (int64_t i = 0; i < room && now_ns() < end; usleep(PERIOD_US)) {
        struct record r = {.before = ask_well(page), .mark = -1};
        char text[48];
        int n = snprintf(text, sizeof text, "I|%d|mark %" PRId64 "\n", (int)getpid(), i);
        if (marker >= 0 && write(marker, text, (size_t)n) == n) /* fails while nobody records */
            r.mark = i;
        r.after = ask_well(page);
        page->records[i++] = r;
        atomic_store_explicit(&page->count, i, memory_order_release);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "host") == 0)
        return host(argc - 2, argv + 2);
    if (argc >= 3 && strcmp(argv[1], "guest") == 0)
        return guest(atof(argv[2]), argc > 3 && strcmp(argv[3], "marks") == 0);
    fprintf(stderr, "usage: clockpage host FILE... | clockpage guest SECONDS [marks]\n");
    return 1;
}
