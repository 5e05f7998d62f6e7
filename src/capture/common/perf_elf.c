/* Reads the headers of ELF files, a few KiB of each, and believes no size in them. */
#include "capture/common/perf_elf.h"

#include "base/slice.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

/* Of headers and of notes; files that have more are not built by linkers. */
enum { MAX_SEGMENTS = 128, MAX_NOTES_BYTES = 16384, NOTE_HEAD_BYTES = 12 };

/* A segment of either class. */
struct segment {
    uint32_t type, flags;
    uint64_t offset, address, size, align;
};

static bool read_at(int fd, void *to, size_t n, uint64_t at)
{
    return at <= INT64_MAX && pread(fd, to, n, (off_t)at) == (ssize_t)n;
}

static uint64_t aligned(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* The notes of one segment; the sizes in them are 32 bits, sums of them 64. */
static void read_notes(struct perf_elf *e, int fd, const struct segment *s)
{
    uint8_t bytes[MAX_NOTES_BYTES];
    uint64_t align = s->align == 8 ? 8 : 4, at = 0;
    size_t n = s->size < sizeof bytes ? (size_t)s->size : sizeof bytes;
    if (!n || !read_at(fd, bytes, n, s->offset))
        return;
    while (!e->build_id_len && n - at >= NOTE_HEAD_BYTES) {
        uint32_t head[3]; /* sizes of name and description, type */
        memcpy(head, bytes + at, sizeof head);
        uint64_t name = at + NOTE_HEAD_BYTES, text = aligned(name + head[0], align), end = text + head[1];
        if (end > n)
            return;
        if (head[2] == NT_GNU_BUILD_ID && head[0] == 4 && memcmp(bytes + name, "GNU", 4) == 0 &&
            head[1] <= sizeof e->build_id) {
            memcpy(e->build_id, bytes + text, head[1]);
            e->build_id_len = head[1];
        }
        at = aligned(end, align);
        if (at > n)
            return;
    }
}

static bool read_segment(struct segment *s, int fd, bool wide, uint64_t at)
{
    Elf64_Phdr p;
    Elf32_Phdr q;
    if (wide) {
        if (!read_at(fd, &p, sizeof p, at))
            return false;
        *s = (struct segment){p.p_type, p.p_flags, p.p_offset, p.p_vaddr, p.p_filesz, p.p_align};
    } else {
        if (!read_at(fd, &q, sizeof q, at))
            return false;
        *s = (struct segment){q.p_type, q.p_flags, q.p_offset, q.p_vaddr, q.p_filesz, q.p_align};
    }
    return true;
}

bool perf_elf_read(struct perf_elf *e, int fd)
{
    Elf64_Ehdr h;
    Elf32_Ehdr h32;
    *e = (struct perf_elf){0};
    if (!read_at(fd, &h32, sizeof h32, 0) || memcmp(h32.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    bool wide = h32.e_ident[EI_CLASS] == ELFCLASS64;
    if (wide && !read_at(fd, &h, sizeof h, 0))
        return false;
    uint64_t table = wide ? h.e_phoff : h32.e_phoff, row = wide ? h.e_phentsize : h32.e_phentsize;
    unsigned n = wide ? h.e_phnum : h32.e_phnum;
    bool loads = false;
    for (unsigned i = 0; i < n && i < MAX_SEGMENTS && row; i++) {
        struct segment s;
        if (table > INT64_MAX / 2 || !read_segment(&s, fd, wide, table + i * row))
            break;
        if (s.type == PT_NOTE && !e->build_id_len)
            read_notes(e, fd, &s);
        if (s.type == PT_LOAD && (s.flags & PF_X) && !loads) {
            e->load_bias = s.address - s.offset;
            loads = true;
        }
    }
    return true;
}
