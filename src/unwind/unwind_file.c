/* Reads the unwind tables of ELF files into memory, and believes no size and no place in them. */
#include "unwind/cfi.h"

#include "wire/inflate.h"
#include "wire/unxz.h"

#include <elf.h>
#include <unistd.h>

/* Files that have more are not built by linkers. */
enum { MAX_SEGMENTS = 256, MAX_SECTIONS = 32768, MAX_NAMES_BYTES = 4 << 20 };
enum { PACKED_BYTES = 16 << 20 }; /* of an unpacked .gnu_debugdata: several files are read at a time */
enum { MAP_ALIGN = 1 << 16 };     /* maps begin up to so much before their segment, where pages are large */

/* .eh_frame_hdr (LSB): version, and three encodings of which these are the ones that linkers write. */
enum { HDR_VERSION = 1, HDR_COUNT_U4 = 0x03, HDR_TABLE_DATA_S4 = 0x3b, HDR_BYTES = 12, HDR_ROW = 8 };
enum { HDR_PTR_PC_S4 = 0x1b };

/* Where the bytes come from. */
struct source {
    int fd; /* -1: the image */
    struct slice image;
    size_t max;  /* memory that tables may still take */
    bool packed; /* it was in .gnu_debugdata: nothing is packed in it */
    struct error *err;
};

static bool read_at(const struct source *s, void *to, size_t n, uint64_t at)
{
    if (s->fd >= 0)
        return at <= INT64_MAX && pread(s->fd, to, n, (off_t)at) == (ssize_t)n;
    if (at > s->image.len || n > s->image.len - at)
        return false;
    memcpy(to, s->image.p + at, n);
    return true;
}

/* Bytes of the file in memory of their own. */
static int read_bytes(struct source *s, uint64_t at, uint64_t n, const char *what, uint8_t **bytes)
{
    uint8_t last;
    if (n > s->max)
        return error_set(s->err, -MRD_ELIMIT, "its %s has %llu bytes, of which at most %zu are read", what,
                         (unsigned long long)n, s->max);
    if (n && !read_at(s, &last, 1, at + n - 1)) /* before memory is taken for it */
        return error_set(s->err, -MRD_EFORMAT, "the file ends before its %s does", what);
    *bytes = mem_alloc(n ? n : 1);
    if (!*bytes)
        return error_set(s->err, -MRD_ENOMEM, "out of memory for unwind tables");
    if (!read_at(s, *bytes, n, at)) {
        mem_free(*bytes);
        *bytes = NULL;
        return error_set(s->err, -MRD_EFORMAT, "the file ends before its %s does", what);
    }
    s->max -= n;
    return 0;
}

/* ---- headers ---- */

static int read_head(struct unwind_file *f, const struct source *s, Elf64_Ehdr *h)
{
    if (!read_at(s, h->e_ident, EI_NIDENT, 0) || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
        return error_set(s->err, -MRD_EFORMAT, "no ELF file");
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
        return error_set(s->err, -MRD_EUNSUPPORTED,
                         "an ELF file of 32 bits or big endian; stacks of 64 bits are unwound");
    if (!read_at(s, h, sizeof *h, 0))
        return error_set(s->err, -MRD_EFORMAT, "the file ends in its ELF header");
    f->arch = h->e_machine == EM_X86_64 ? UNWIND_X86_64 : h->e_machine == EM_AARCH64 ? UNWIND_AARCH64 : UNWIND_NO_ARCH;
    return f->arch ? 0 : error_set(s->err, -MRD_EUNSUPPORTED, "an ELF file of machine %u", h->e_machine);
}

static int read_segments(struct unwind_file *f, const struct source *s, const Elf64_Ehdr *h, Elf64_Phdr *hdr)
{
    Elf64_Phdr p;
    if (h->e_phentsize != sizeof p || h->e_phoff > INT64_MAX / 2)
        return 0;
    for (unsigned i = 0; i < h->e_phnum && i < MAX_SEGMENTS; i++) {
        if (!read_at(s, &p, sizeof p, h->e_phoff + i * sizeof p))
            return error_set(s->err, -MRD_EFORMAT, "the file ends before its program headers do");
        if (p.p_type == PT_GNU_EH_FRAME)
            *hdr = p;
        if (p.p_type == PT_LOAD && p.p_flags & PF_X && p.p_filesz <= UINT64_MAX - p.p_offset &&
            !vec_push(&f->segments, (struct cfi_segment){p.p_offset, p.p_vaddr, p.p_filesz}))
            return error_set(s->err, -MRD_ENOMEM, "out of memory for unwind tables");
    }
    return 0;
}

/* What has call frame information. */
enum section { EH_FRAME, DEBUG_FRAME, PACKED, SECTIONS };
enum { SECTION_NAME_BYTES = 16 };
static const char section_names[SECTIONS][SECTION_NAME_BYTES] = {".eh_frame", ".debug_frame", ".gnu_debugdata"};

/* The sections of it, where there are headers of sections. */
static void find_sections(const struct source *s, const Elf64_Ehdr *h, Elf64_Shdr found[SECTIONS])
{
    Elf64_Shdr x, names;
    char name[SECTION_NAME_BYTES];
    if (h->e_shentsize != sizeof x || h->e_shoff > INT64_MAX / 2 || h->e_shstrndx >= h->e_shnum ||
        !read_at(s, &names, sizeof names, h->e_shoff + (uint64_t)h->e_shstrndx * sizeof names) ||
        names.sh_size > MAX_NAMES_BYTES || names.sh_offset > INT64_MAX / 2)
        return;
    for (unsigned i = 1; i < h->e_shnum && i < MAX_SECTIONS; i++) {
        if (!read_at(s, &x, sizeof x, h->e_shoff + i * sizeof x))
            return;
        memset(name, 0, sizeof name);
        uint64_t left = x.sh_name < names.sh_size ? names.sh_size - x.sh_name : 0;
        if (x.sh_type == SHT_NOBITS ||
            !read_at(s, name, left < sizeof name ? left : sizeof name, names.sh_offset + x.sh_name))
            continue;
        for (unsigned k = 0; k < SECTIONS; k++)
            if (memcmp(name, section_names[k], strlen(section_names[k]) + 1) == 0)
                found[k] = x;
    }
}

/* ---- tables ---- */

/* Where .eh_frame is by .eh_frame_hdr alone: up to the end of its segment. */
static int eh_by_hdr(const struct source *s, const Elf64_Phdr *hdr, const Elf64_Ehdr *h, Elf64_Shdr *eh)
{
    uint8_t head[HDR_BYTES];
    int32_t relative;
    Elf64_Phdr p;
    if (!read_at(s, head, sizeof head, hdr->p_offset))
        return error_set(s->err, -MRD_EFORMAT, "the file ends before its .eh_frame_hdr does");
    if (head[1] != HDR_PTR_PC_S4)
        return 0;
    memcpy(&relative, head + 4, sizeof relative);
    uint64_t address = hdr->p_vaddr + 4 + (uint64_t)(int64_t)relative;
    for (unsigned i = 0; i < h->e_phnum && i < MAX_SEGMENTS && read_at(s, &p, sizeof p, h->e_phoff + i * sizeof p);
         i++) {
        if (p.p_type != PT_LOAD || address < p.p_vaddr || address - p.p_vaddr >= p.p_filesz)
            continue;
        eh->sh_addr = address;
        eh->sh_offset = p.p_offset + (address - p.p_vaddr);
        eh->sh_size = p.p_filesz - (address - p.p_vaddr);
    }
    return 0;
}

/* The search table, when it is one of the usual form; else nothing: then the functions are listed. */
static int read_search(struct unwind_file *f, struct source *s, const Elf64_Phdr *hdr)
{
    uint8_t head[HDR_BYTES];
    uint32_t n;
    if (hdr->p_filesz < sizeof head || !read_at(s, head, sizeof head, hdr->p_offset) || head[0] != HDR_VERSION ||
        head[1] != HDR_PTR_PC_S4 || head[2] != HDR_COUNT_U4 || head[3] != HDR_TABLE_DATA_S4)
        return 0;
    memcpy(&n, head + 8, sizeof n);
    if (!n || n > (hdr->p_filesz - sizeof head) / HDR_ROW)
        return 0;
    f->search.address = hdr->p_vaddr;
    int rc = read_bytes(s, hdr->p_offset + sizeof head, (uint64_t)n * HDR_ROW, ".eh_frame_hdr", &f->search.rows);
    if (!rc)
        f->search.n = n;
    return rc;
}

/* Makes room for the bytes that a compressed section says it has, and fills it. */
static int decompress(struct cfi_section *to, struct source *s)
{
    Elf64_Chdr c;
    size_t n = 0;
    if (to->len < sizeof c)
        return error_set(s->err, -MRD_EFORMAT, "its compressed .debug_frame is too short");
    memcpy(&c, to->bytes, sizeof c);
    if (c.ch_size > s->max)
        return error_set(s->err, -MRD_ELIMIT, "its .debug_frame has %llu bytes, of which at most %zu are read",
                         (unsigned long long)c.ch_size, s->max);
    struct inflater *z = inflater_open(c.ch_type == ELFCOMPRESS_ZLIB ? INFLATE_DEFLATE : INFLATE_ZSTD);
    uint8_t *bytes = mem_alloc(c.ch_size + 1);
    struct slice in = slice_of(to->bytes + sizeof c, to->len - sizeof c);
    int rc = z && bytes ? inflater_run(z, &in, bytes, c.ch_size + 1, &n, s->err)
                        : error_set(s->err, -MRD_ENOMEM, "out of memory for unwind tables");
    inflater_close(z);
    if (!rc && n != c.ch_size)
        rc = error_set(s->err, -MRD_EFORMAT, "its compressed .debug_frame is truncated");
    mem_free(rc ? bytes : to->bytes);
    if (rc)
        return rc;
    s->max -= n;
    to->bytes = bytes;
    to->len = n;
    return 0;
}

static int read_section(struct cfi_section *to, struct source *s, const Elf64_Shdr found[SECTIONS], enum section which)
{
    const Elf64_Shdr *x = &found[which];
    if (!x->sh_size)
        return 0;
    int rc = read_bytes(s, x->sh_offset, x->sh_size, section_names[which], &to->bytes);
    if (rc)
        return rc;
    to->len = x->sh_size;
    to->address = x->sh_addr;
    return x->sh_flags & SHF_COMPRESSED ? decompress(to, s) : 0;
}

static int open_file(struct unwind_file **file, struct source *s);

/* The tables of the file in .gnu_debugdata. Where they are damaged, or take more room than is left, the file has its
 * own ones alone. */
static void read_packed(struct unwind_file *f, struct source *s, const Elf64_Shdr *x)
{
    struct error why = {0};
    uint8_t *packed = NULL, *bytes = NULL;
    size_t len;
    struct source in = *s; /* what is read for it is in memory for a moment only */
    in.err = &why;
    if (read_bytes(&in, x->sh_offset, x->sh_size, section_names[PACKED], &packed))
        return;
    size_t room = s->max < PACKED_BYTES ? s->max : PACKED_BYTES;
    int rc = unxz(slice_of(packed, x->sh_size), room, section_names[PACKED], &bytes, &len, &why);
    mem_free(packed);
    if (rc)
        return;
    in = (struct source){.fd = -1, .image = slice_of(bytes, len), .max = s->max, .packed = true, .err = &why};
    if (!open_file(&f->packed, &in) && f->packed->arch == f->arch && (f->packed->eh.len || f->packed->debug.len)) {
        f->memory += f->packed->memory;
    } else {
        unwind_file_free(f->packed);
        f->packed = NULL;
    }
    mem_free(bytes);
}

static int read_file(struct unwind_file *f, struct source *s)
{
    Elf64_Ehdr h;
    Elf64_Phdr hdr = {0};
    Elf64_Shdr found[SECTIONS] = {0};
    size_t max = s->max;
    int rc = read_head(f, s, &h);
    if (!rc)
        rc = read_segments(f, s, &h, &hdr);
    if (rc)
        return rc;
    if (s->packed) /* its segments are those of the file it was made of, whose bytes it does not have */
        hdr.p_filesz = 0;
    find_sections(s, &h, found);
    f->eh.eh = true;
    if (!found[EH_FRAME].sh_size && hdr.p_filesz)
        rc = eh_by_hdr(s, &hdr, &h, &found[EH_FRAME]);
    if (!rc)
        rc = read_section(&f->eh, s, found, EH_FRAME);
    if (!rc && f->eh.len && hdr.p_filesz)
        rc = read_search(f, s, &hdr);
    if (!rc)
        rc = read_section(&f->debug, s, found, DEBUG_FRAME);
    f->memory += sizeof *f + (max - s->max);
    if (!rc && !f->search.n)
        rc = cfi_list_functions(f, false, s->max, s->err);
    if (!rc)
        rc = cfi_list_functions(f, true, s->max, s->err);
    if (!rc && found[PACKED].sh_size && !s->packed)
        read_packed(f, s, &found[PACKED]);
    return rc;
}

static int open_file(struct unwind_file **file, struct source *s)
{
    *file = NULL;
    struct unwind_file *f = mem_zalloc(sizeof *f);
    int rc = f ? read_file(f, s) : error_set(s->err, -MRD_ENOMEM, "out of memory for unwind tables");
    if (rc)
        unwind_file_free(f);
    else
        *file = f;
    return rc;
}

int unwind_file_read(struct unwind_file **file, int fd, size_t max_bytes, struct error *err)
{
    struct source s = {.fd = fd, .max = max_bytes, .err = err};
    return open_file(file, &s);
}

int unwind_file_image(struct unwind_file **file, struct slice image, size_t max_bytes, struct error *err)
{
    struct source s = {.fd = -1, .image = image, .max = max_bytes, .err = err};
    return open_file(file, &s);
}

void unwind_file_free(struct unwind_file *f)
{
    if (!f)
        return;
    mem_free(f->eh.bytes);
    mem_free(f->debug.bytes);
    mem_free(f->search.rows);
    vec_free(&f->eh_entries);
    vec_free(&f->debug_entries);
    vec_free(&f->segments);
    unwind_file_free(f->packed);
    mem_free(f);
}

size_t unwind_file_memory(const struct unwind_file *f)
{
    return f->memory;
}

struct unwind_place unwind_place_of(const struct unwind_file *f, uint64_t map_start, uint64_t map_offset)
{
    for (size_t i = 0; f && i < f->segments.n; i++) {
        const struct cfi_segment *s = &f->segments.p[i];
        if (map_offset < s->offset + s->size && s->offset < map_offset + MAP_ALIGN)
            return (struct unwind_place){f, map_start - map_offset + s->offset - s->address};
    }
    return (struct unwind_place){0};
}
