/* Reads the kernel's ring buffer of one cpu. */
#include "capture/probes/ftrace/ring_reader.h"

#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* The first page of a mapped buffer (kernel ABI, linux/trace_mmap.h). */
struct ring_meta {
    uint32_t meta_page_size;
    uint32_t meta_struct_len;
    uint32_t subbuf_size;
    uint32_t nr_subbufs;
    struct {
        uint64_t lost_events;
        uint32_t id;
        uint32_t read;
    } reader;
    uint64_t flags;
    uint64_t entries;
    uint64_t overrun;
    uint64_t read;
};

#define GET_READER _IO('R', 0x20)

static bool map_buffer(struct ring_reader *r)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct ring_meta *meta = mmap(NULL, page, PROT_READ, MAP_SHARED, r->fd, 0);
    if (meta == MAP_FAILED)
        return false;
    uint64_t len = (uint64_t)meta->subbuf_size * meta->nr_subbufs;
    void *pages = MAP_FAILED;
    if (meta->meta_struct_len >= sizeof *meta && meta->meta_page_size == page && meta->subbuf_size == r->page_size &&
        len && len < 1ull << 40)
        pages = mmap(NULL, (size_t)len, PROT_READ, MAP_SHARED, r->fd, (off_t)meta->meta_page_size);
    if (pages == MAP_FAILED) {
        munmap(meta, page);
        return false;
    }
    r->meta = meta;
    r->meta_len = page;
    r->pages = pages;
    r->pages_len = (size_t)len;
    r->last_id = meta->reader.id;
    r->last_read = meta->reader.read;
    return true;
}

int ring_reader_open(struct ring_reader *r, const struct tracefs *fs, uint32_t cpu, const struct page_format *format,
                     size_t page_size, enum ring_mode mode, struct error *err)
{
    char name[64], path[PATH_MAX];
    memset(r, 0, sizeof *r);
    r->cpu = cpu;
    r->format = *format;
    r->page_size = page_size;
    r->fd = -1;
    snprintf(name, sizeof name, "per_cpu/cpu%u/trace_pipe_raw", cpu);
    if (!tracefs_path(fs, path, name))
        return error_set(err, -MRD_ELIMIT, "path too long");
    r->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (r->fd < 0)
        return error_set_errno(err, errno, "%s", path);
    if (mode == RING_MAPPED && map_buffer(r))
        return 0;
    r->page = mem_alloc(page_size);
    if (!r->page) {
        ring_reader_close(r);
        return error_set(err, -MRD_ENOMEM, "out of memory for a ring-buffer page");
    }
    return 0;
}

static enum ring_result next_read(struct ring_reader *r, struct page_view *view, enum ftrace_status *status)
{
    ssize_t n = file_read(r->fd, r->page, r->page_size);
    if (n == 0 || (n < 0 && (errno == EAGAIN || errno == EBUSY)))
        return RING_EMPTY;
    /* a cpu that went offline reads as ENOMEM or ENODEV until it is back */
    if (n < 0 && (errno == ENOMEM || errno == ENODEV))
        return RING_EMPTY;
    if (n < 0) {
        *status = FTRACE_STATUS_UNEXPECTED_READ_ERROR;
        return RING_FAILED;
    }
    if ((size_t)n != r->page_size) {
        *status = FTRACE_STATUS_PARTIAL_PAGE_READ;
        return RING_DAMAGED;
    }
    *status = page_view_open(view, &r->format, r->page, r->page_size);
    return *status == FTRACE_STATUS_OK ? RING_PAGE : RING_DAMAGED;
}

static enum ring_result next_mapped(struct ring_reader *r, struct page_view *view, enum ftrace_status *status)
{
    if (ioctl(r->fd, GET_READER) < 0) {
        *status = FTRACE_STATUS_UNEXPECTED_READ_ERROR;
        return errno == EAGAIN || errno == EINTR ? RING_EMPTY : RING_FAILED;
    }
    uint32_t id = r->meta->reader.id, read = r->meta->reader.read;
    if (id == r->last_id && read == r->last_read)
        return RING_EMPTY;
    if ((uint64_t)(id + 1ull) * r->page_size > r->pages_len) {
        *status = FTRACE_STATUS_ABI_INVALID_PAGE_HEADER;
        return RING_FAILED;
    }
    bool same = id == r->last_id;
    *status = page_view_open(view, &r->format, r->pages + (size_t)id * r->page_size, r->page_size);
    if (*status != FTRACE_STATUS_OK)
        return RING_DAMAGED;
    if (read < view->end)
        view->end = read; /* what lies behind is being written */
    if (same) {
        view->begin = r->last_read;
        view->timestamp = r->last_timestamp;
        view->lost = false;
    }
    r->last_id = id;
    r->last_read = read;
    return RING_PAGE;
}

enum ring_result ring_reader_next(struct ring_reader *r, struct page_view *view, enum ftrace_status *status)
{
    return r->meta ? next_mapped(r, view, status) : next_read(r, view, status);
}

bool ring_reader_caught_up(const struct ring_reader *r, const struct page_view *view)
{
    return !r->meta && view->end < r->page_size / 2;
}

void ring_reader_parsed(struct ring_reader *r, const struct page_view *view)
{
    r->last_timestamp = view->timestamp;
}

void ring_reader_close(struct ring_reader *r)
{
    if (r->pages)
        munmap((void *)(uintptr_t)r->pages, r->pages_len);
    if (r->meta)
        munmap((void *)(uintptr_t)r->meta, r->meta_len);
    mem_free(r->page);
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
    r->page = NULL;
    r->pages = NULL;
    r->meta = NULL;
}
