/* Reads symbol tables in place, with every offset checked against the file. */
#include "capture/record/elf_names.h"

#include "base/alloc.h"
#include "base/bisect.h"

#include <elf.h>
#include <stdlib.h>

/* The bytes of a section; empty when they are not all there. */
static struct slice section_bytes(struct slice file, const Elf64_Shdr *s)
{
    if (s->sh_type == SHT_NOBITS || s->sh_offset > file.len || s->sh_size > file.len - s->sh_offset)
        return slice_of(NULL, 0);
    return slice_of(file.p + s->sh_offset, (size_t)s->sh_size);
}

static bool read_section(struct slice file, const Elf64_Ehdr *h, unsigned i, Elf64_Shdr *s)
{
    uint64_t at = (uint64_t)i * sizeof *s;
    if (h->e_shentsize != sizeof *s || h->e_shoff > file.len || at + sizeof *s > file.len - h->e_shoff)
        return false;
    memcpy(s, file.p + h->e_shoff + at, sizeof *s);
    return true;
}

static int by_start(const void *a, const void *b)
{
    const struct elf_name *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static bool read_symbols(struct elf_names *n, struct slice table)
{
    Elf64_Sym y;
    for (size_t at = 0; table.len - at >= sizeof y; at += sizeof y) {
        memcpy(&y, table.p + at, sizeof y);
        unsigned type = ELF64_ST_TYPE(y.st_info);
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) || !y.st_value || y.st_name >= n->strings.len)
            continue;
        if (!vec_push(&n->list, (struct elf_name){y.st_value, y.st_size, y.st_name}))
            return false;
    }
    if (n->list.n)
        qsort(n->list.p, n->list.n, sizeof *n->list.p, by_start);
    return true;
}

bool elf_names_read(struct elf_names *n, struct slice file)
{
    Elf64_Ehdr h;
    Elf64_Shdr s, strings;
    *n = (struct elf_names){.strings = slice_of(NULL, 0)};
    if (file.len < sizeof h || memcmp(file.p, ELFMAG, SELFMAG) != 0 || file.p[EI_CLASS] != ELFCLASS64)
        return true;
    memcpy(&h, file.p, sizeof h);
    for (uint32_t want = SHT_SYMTAB; !n->list.n; want = SHT_DYNSYM) {
        for (unsigned i = 0; i < h.e_shnum && read_section(file, &h, i, &s); i++) {
            if (s.sh_type != want || !read_section(file, &h, s.sh_link, &strings))
                continue;
            n->strings = section_bytes(file, &strings);
            if (!read_symbols(n, section_bytes(file, &s)))
                return false;
            break;
        }
        if (want == SHT_DYNSYM)
            break;
    }
    return true;
}

struct slice elf_names_find(const struct elf_names *n, uint64_t address)
{
    size_t at = n->list.n;
    BISECT(at, mid, n->list.p[mid].start <= address);
    if (!at || (n->list.p[at - 1].size && address - n->list.p[at - 1].start >= n->list.p[at - 1].size))
        return slice_of(NULL, 0);
    const uint8_t *text = n->strings.p + n->list.p[at - 1].text;
    const uint8_t *end = memchr(text, 0, n->strings.len - n->list.p[at - 1].text);
    return slice_of(text, end ? (size_t)(end - text) : 0);
}

void elf_names_free(struct elf_names *n)
{
    vec_free(&n->list);
}
