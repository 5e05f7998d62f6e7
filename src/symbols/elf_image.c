/* Reads the headers of ELF files. */
#include "symbols/elf_image.h"

#include "base/alloc.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_SEGMENTS = 1024,
    MAX_SECTIONS = 1 << 17, /* of objects with a section for each function; programs have 40 */
    MAX_NAMES = 16 << 20,
    MAX_NOTES = 1 << 20,
    MAX_LINK = 4096,
    NOTE_HEAD = 12,
};

uint64_t elf_image_number(const struct elf_image *e, const void *p, size_t size)
{
    uint64_t v = 0;
    const uint8_t *b = p;
    for (size_t i = 0; i < size; i++) {
        bool low_first = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != e->swapped;
        v |= (uint64_t)b[i] << 8 * (low_first ? i : size - 1 - i);
    }
    return v;
}

/* A field of a header that has one layout for each class. */
#define NUMBER(e, p, header, field)                                                                                    \
    ((e)->wide ? elf_image_number(e, (p) + offsetof(Elf64_##header, field), sizeof((Elf64_##header *)0)->field)        \
               : elf_image_number(e, (p) + offsetof(Elf32_##header, field), sizeof((Elf32_##header *)0)->field))
#define HEADER_BYTES(e, header) ((e)->wide ? sizeof(Elf64_##header) : sizeof(Elf32_##header))

static int read_at(const struct elf_image *e, void *to, size_t n, uint64_t at, struct error *err)
{
    size_t got = 0;
    if (at > e->file_bytes || n > e->file_bytes - at)
        return error_set(err, -MRD_EFORMAT, "the file is cut: its headers speak of %zu bytes at %llu", n,
                         (unsigned long long)at);
    if (e->fd < 0) {
        memcpy(to, e->memory.p + at, n);
        return 0;
    }
    while (got < n) {
        ssize_t r = pread(e->fd, (uint8_t *)to + got, n - got, (off_t)(at + got));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return error_set_errno(err, errno, "reading");
        if (r == 0)
            return error_set(err, -MRD_EFORMAT, "the file became shorter while it was read");
        got += (size_t)r;
    }
    return 0;
}

static int read_new(const struct elf_image *e, uint64_t at, uint64_t n, uint8_t **bytes, struct error *err)
{
    if (at > e->file_bytes || n > e->file_bytes - at)
        return error_set(err, -MRD_EFORMAT, "the file is cut: its headers speak of %llu bytes at %llu",
                         (unsigned long long)n, (unsigned long long)at);
    *bytes = mem_alloc(n ? n : 1);
    if (!*bytes)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    int rc = read_at(e, *bytes, n, at, err);
    if (rc < 0) {
        mem_free(*bytes);
        *bytes = NULL;
    }
    return rc;
}

static uint64_t aligned(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* The sizes in notes are 32 bits, sums of them 64. */
static void find_build_id(struct elf_image *e, struct slice notes, uint64_t align)
{
    align = align == 8 ? 8 : 4;
    for (uint64_t at = 0; !e->build_id_len && at <= notes.len && notes.len - at >= NOTE_HEAD;) {
        uint64_t name_len = elf_image_number(e, notes.p + at, 4), len = elf_image_number(e, notes.p + at + 4, 4);
        uint64_t type = elf_image_number(e, notes.p + at + 8, 4), name = at + NOTE_HEAD;
        uint64_t text = at + aligned(NOTE_HEAD + name_len, align), end = text + len;
        if (end > notes.len)
            return;
        if (type == NT_GNU_BUILD_ID && name_len == 4 && memcmp(notes.p + name, "GNU", 4) == 0 && len &&
            len <= sizeof e->build_id) {
            memcpy(e->build_id, notes.p + text, len);
            e->build_id_len = len;
        }
        at = aligned(end, align);
    }
}

static void read_notes(struct elf_image *e, uint64_t offset, uint64_t size, uint64_t align)
{
    uint8_t *bytes;
    size_t n = size < MAX_NOTES ? size : MAX_NOTES;
    if (e->build_id_len || !n || read_new(e, offset, n, &bytes, NULL) < 0)
        return;
    find_build_id(e, slice_of(bytes, n), align);
    if (!e->build_id_len && align == 8) /* linkers put notes of both alignments into one segment */
        find_build_id(e, slice_of(bytes, n), 4);
    mem_free(bytes);
}

static void read_segments(struct elf_image *e)
{
    uint64_t n = e->n_segments < MAX_SEGMENTS ? e->n_segments : MAX_SEGMENTS;
    uint8_t *table;
    if (!n || e->segment_bytes < HEADER_BYTES(e, Phdr) ||
        read_new(e, e->segment_table, n * e->segment_bytes, &table, NULL) < 0)
        return;
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *p = table + i * e->segment_bytes;
        uint64_t type = NUMBER(e, p, Phdr, p_type), flags = NUMBER(e, p, Phdr, p_flags),
                 align = NUMBER(e, p, Phdr, p_align), offset = NUMBER(e, p, Phdr, p_offset);
        if (type == PT_NOTE)
            read_notes(e, offset, NUMBER(e, p, Phdr, p_filesz), align);
        if (type == PT_LOAD && (flags & PF_X) && !e->executable && (align & (align - 1)) == 0) {
            e->executable = true;
            e->address = NUMBER(e, p, Phdr, p_vaddr);
            e->offset = offset;
            e->align = align;
        }
    }
    mem_free(table);
}

static int read_head(struct elf_image *e, struct error *err)
{
    uint8_t h[sizeof(Elf64_Ehdr)] = {0};
    if (e->file_bytes < sizeof(Elf32_Ehdr) || read_at(e, h, sizeof(Elf32_Ehdr), 0, err) < 0 ||
        memcmp(h, ELFMAG, SELFMAG) != 0 || (h[EI_CLASS] != ELFCLASS32 && h[EI_CLASS] != ELFCLASS64) ||
        (h[EI_DATA] != ELFDATA2LSB && h[EI_DATA] != ELFDATA2MSB))
        return error_set(err, -MRD_EFORMAT, "not an ELF file");
    e->wide = h[EI_CLASS] == ELFCLASS64;
    e->swapped = (h[EI_DATA] == ELFDATA2MSB) != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    if (e->wide && read_at(e, h, sizeof(Elf64_Ehdr), 0, err) < 0)
        return error_set(err, -MRD_EFORMAT, "not an ELF file");
    e->segment_table = NUMBER(e, h, Ehdr, e_phoff);
    e->segment_bytes = NUMBER(e, h, Ehdr, e_phentsize);
    e->n_segments = NUMBER(e, h, Ehdr, e_phnum);
    e->section_table = NUMBER(e, h, Ehdr, e_shoff);
    e->section_bytes = NUMBER(e, h, Ehdr, e_shentsize);
    e->n_sections = NUMBER(e, h, Ehdr, e_shnum);
    e->name_section = (uint32_t)NUMBER(e, h, Ehdr, e_shstrndx);
    read_segments(e);
    return 0;
}

int elf_image_open(struct elf_image *e, int fd, struct error *err)
{
    struct stat st;
    *e = (struct elf_image){.fd = fd};
    if (fstat(fd, &st) != 0)
        return error_set_errno(err, errno, "reading");
    e->file_bytes = st.st_size > 0 ? (uint64_t)st.st_size : 0;
    return read_head(e, err);
}

int elf_image_open_memory(struct elf_image *e, struct slice memory, struct error *err)
{
    *e = (struct elf_image){.fd = -1, .memory = memory, .file_bytes = memory.len};
    return read_head(e, err);
}

/* --- sections ----------------------------------------------------------------------------------------------------- */

static struct elf_section section_at(const struct elf_image *e, const uint8_t *p)
{
    return (struct elf_section){.name = (uint32_t)NUMBER(e, p, Shdr, sh_name),
                                .type = (uint32_t)NUMBER(e, p, Shdr, sh_type),
                                .link = (uint32_t)NUMBER(e, p, Shdr, sh_link),
                                .flags = NUMBER(e, p, Shdr, sh_flags),
                                .address = NUMBER(e, p, Shdr, sh_addr),
                                .offset = NUMBER(e, p, Shdr, sh_offset),
                                .size = NUMBER(e, p, Shdr, sh_size),
                                .entry_size = NUMBER(e, p, Shdr, sh_entsize)};
}

/* Files with very many sections have their number, and that of the section of names, in the first section. */
static int read_section_table(struct elf_image *e, struct error *err)
{
    uint8_t *table = NULL;
    if (!e->section_table || e->section_bytes < HEADER_BYTES(e, Shdr))
        return 0;
    if (e->n_sections == 0 || e->name_section == SHN_XINDEX) {
        int rc = read_new(e, e->section_table, e->section_bytes, &table, err);
        if (rc < 0)
            return rc;
        struct elf_section first = section_at(e, table);
        e->n_sections = e->n_sections ? e->n_sections : first.size;
        e->name_section = e->name_section == SHN_XINDEX ? first.link : e->name_section;
        mem_free(table);
    }
    if (e->n_sections > MAX_SECTIONS)
        return error_set(err, -MRD_ELIMIT, "more than %d sections", MAX_SECTIONS);
    int rc = read_new(e, e->section_table, e->n_sections * e->section_bytes, &table, err);
    if (rc < 0)
        return rc;
    bool room = vec_reserve(&e->sections, (size_t)e->n_sections);
    for (uint64_t i = 0; room && i < e->n_sections; i++)
        e->sections.p[e->sections.n++] = section_at(e, table + i * e->section_bytes);
    mem_free(table);
    return room ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
}

/* "name\0", then what follows it at `align`. The length of the rest; 0 when it is damaged. */
static size_t read_link(const struct elf_image *e, const struct elf_section *s, size_t align, char *name, uint8_t *rest,
                        size_t room)
{
    uint8_t bytes[MAX_LINK];
    size_t n = s->size < sizeof bytes ? (size_t)s->size : sizeof bytes;
    if (read_at(e, bytes, n, s->offset, NULL) < 0)
        return 0;
    const uint8_t *end = memchr(bytes, 0, n);
    if (!end || end == bytes || (size_t)(end - bytes) >= ELF_MAX_NAME)
        return 0;
    size_t at = (size_t)aligned((uint64_t)(end - bytes) + 1, align);
    if (at >= n || n - at > room)
        return 0;
    memcpy(name, bytes, (size_t)(end - bytes) + 1);
    memcpy(rest, bytes + at, n - at);
    return n - at;
}

static void read_debuglink(struct elf_image *e, const struct elf_section *s)
{
    uint8_t crc[8];
    size_t n = read_link(e, s, 4, e->debuglink, crc, sizeof crc);
    if (n < 4 || strchr(e->debuglink, '/')) /* it is the name of a file, not a way to one */
        e->debuglink[0] = 0;
    else
        e->debuglink_crc = (uint32_t)elf_image_number(e, crc, 4);
}

static void read_altlink(struct elf_image *e, const struct elf_section *s)
{
    e->alt_id_len = read_link(e, s, 1, e->altlink, e->alt_id, sizeof e->alt_id);
    if (!e->alt_id_len)
        e->altlink[0] = 0;
}

static void enrich(struct elf_image *e, enum elf_wealth with)
{
    if (with > e->wealth)
        e->wealth = with;
}

static void read_packed(struct elf_image *e, const struct elf_section *s)
{
    e->packed = *s;
    enrich(e, ELF_HAS_PACKED);
}

static void look_at(struct elf_image *e, const struct elf_section *s, const char *name)
{
    if (s->type == SHT_NOBITS) /* what a separate file has instead */
        return;
    if (s->type == SHT_NOTE)
        read_notes(e, s->offset, s->size, 4);
    else if (s->type == SHT_SYMTAB)
        enrich(e, ELF_HAS_SYMBOLS);
    else if (s->type == SHT_DYNSYM)
        enrich(e, ELF_HAS_DYNAMIC);
    else if (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0)
        enrich(e, ELF_HAS_LINES);
    else if (strcmp(name, ".gnu_debugdata") == 0 && s->size)
        read_packed(e, s);
    else if (strcmp(name, ".gnu_debuglink") == 0)
        read_debuglink(e, s);
    else if (strcmp(name, ".gnu_debugaltlink") == 0)
        read_altlink(e, s);
}

int elf_image_sections(struct elf_image *e, struct error *err)
{
    uint8_t *names = NULL;
    size_t n_names = 0;
    int rc = read_section_table(e, err);
    if (rc < 0)
        return rc;
    if (e->name_section < e->sections.n) {
        const struct elf_section *s = &e->sections.p[e->name_section];
        n_names = s->size < MAX_NAMES ? (size_t)s->size : MAX_NAMES;
        if (s->type == SHT_NOBITS || !n_names || read_new(e, s->offset, n_names, &names, NULL) < 0)
            n_names = 0;
    }
    if (n_names)
        names[n_names - 1] = 0;
    for (size_t i = 0; i < e->sections.n; i++) {
        const struct elf_section *s = &e->sections.p[i];
        look_at(e, s, s->name < n_names ? (const char *)names + s->name : "");
    }
    mem_free(names);
    return 0;
}

const struct elf_section *elf_image_section(const struct elf_image *e, uint32_t type)
{
    for (size_t i = 0; i < e->sections.n; i++)
        if (e->sections.p[i].type == type)
            return &e->sections.p[i];
    return NULL;
}

int elf_image_read(const struct elf_image *e, const struct elf_section *s, uint8_t **bytes, struct error *err)
{
    return read_new(e, s->offset, s->size, bytes, err);
}

uint64_t elf_image_address(const struct elf_image *e, uint64_t rel_pc, uint64_t file_offset, uint64_t load_bias)
{
    if (!e->executable)
        return rel_pc;
    uint64_t mask = e->align ? ~(e->align - 1) : ~UINT64_C(0);
    int64_t bias = (int64_t)((e->address & mask) - (file_offset & mask) - load_bias);
    return bias > 0 ? rel_pc + (uint64_t)bias : rel_pc;
}

void elf_image_close(struct elf_image *e)
{
    vec_free(&e->sections);
}
