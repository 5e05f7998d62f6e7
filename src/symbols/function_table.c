/* Sorts and finds functions by address. */
#include "symbols/function_table.h"

#include "base/alloc.h"
#include "base/bisect.h"
#include "symbols/mini_debug.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* A symbol without a size and without another behind it: nothing says how long it is. */
enum { MAX_OPEN_BYTES = 1 << 20 };

static int by_address(const void *a, const void *b)
{
    const struct function *f = a, *g = b;
    if (f->address != g->address)
        return f->address < g->address ? -1 : 1;
    if (f->rank != g->rank)
        return f->rank > g->rank ? -1 : 1;
    return strcmp(f->name, g->name);
}

static int finish(struct function_table *t, struct error *err)
{
    size_t n = 0;
    if (t->list.n > 1)
        qsort(t->list.p, t->list.n, sizeof *t->list.p, by_address);
    for (size_t i = 0; i < t->list.n; i++)
        if (n == 0 || t->list.p[i].address != t->list.p[n - 1].address)
            t->list.p[n++] = t->list.p[i];
    t->list.n = n;
    t->ends = mem_alloc((n + 1) * sizeof *t->ends);
    if (!t->ends)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    uint64_t longest = 0;
    for (size_t i = 0; i < n; i++) {
        const struct function *f = &t->list.p[i];
        uint64_t next = i + 1 < n ? f[1].address : f->address + MAX_OPEN_BYTES;
        uint64_t end = f->size ? f->address + f->size : next;
        end = end < f->address ? UINT64_MAX : end;
        longest = end > longest ? end : longest;
        t->ends[i] = longest;
    }
    return 0;
}

const struct function *function_table_find(const struct function_table *t, uint64_t address)
{
    size_t at = t->list.n;
    BISECT(at, mid, t->list.p[mid].address <= address);
    size_t last = at;
    enum { MAX_NESTED = 64 };
    for (int i = 0; at && i < MAX_NESTED && t->ends[at - 1] > address; i++, at--) {
        const struct function *f = &t->list.p[at - 1];
        if (f->size ? address - f->address < f->size : at == last && address - f->address < MAX_OPEN_BYTES)
            return f;
    }
    return NULL;
}

void function_table_free(struct function_table *t)
{
    vec_free(&t->list);
    mem_free(t->ends);
    mem_free(t->names);
    mem_free(t->more);
    *t = (struct function_table){0};
}

/* --- ELF ---------------------------------------------------------------------------------------------------------- */

/* Names for one address: one with a size, of a function, known everywhere, with few underscores. */
static uint8_t rank_of(unsigned type, unsigned binding, uint64_t size, const char *name)
{
    size_t lines = strspn(name, "_");
    return (uint8_t)((size ? 64 : 0) + (type != STT_NOTYPE ? 32 : 0) +
                     (binding == STB_GLOBAL || binding == STB_GNU_UNIQUE ? 16
                      : binding == STB_WEAK                              ? 8
                                                                         : 0) +
                     (lines < 7 ? 7 - lines : 0));
}

static int add_symbol(struct function_table *t, const struct elf_image *e, const uint8_t *p, struct slice names,
                      struct error *err)
{
    Elf64_Sym s;
    if (e->wide) {
        s.st_name = (uint32_t)elf_image_number(e, p + offsetof(Elf64_Sym, st_name), 4);
        s.st_info = p[offsetof(Elf64_Sym, st_info)];
        s.st_shndx = (uint16_t)elf_image_number(e, p + offsetof(Elf64_Sym, st_shndx), 2);
        s.st_value = elf_image_number(e, p + offsetof(Elf64_Sym, st_value), 8);
        s.st_size = elf_image_number(e, p + offsetof(Elf64_Sym, st_size), 8);
    } else {
        s.st_name = (uint32_t)elf_image_number(e, p + offsetof(Elf32_Sym, st_name), 4);
        s.st_info = p[offsetof(Elf32_Sym, st_info)];
        s.st_shndx = (uint16_t)elf_image_number(e, p + offsetof(Elf32_Sym, st_shndx), 2);
        s.st_value = elf_image_number(e, p + offsetof(Elf32_Sym, st_value), 4);
        s.st_size = elf_image_number(e, p + offsetof(Elf32_Sym, st_size), 4);
    }
    unsigned type = ELF64_ST_TYPE(s.st_info), binding = ELF64_ST_BIND(s.st_info);
    bool code = type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && binding != STB_LOCAL);
    if (!code || s.st_shndx == SHN_UNDEF || s.st_shndx == SHN_ABS || !s.st_name || s.st_name >= names.len)
        return 0;
    if (s.st_shndx < e->sections.n && !(e->sections.p[s.st_shndx].flags & SHF_EXECINSTR))
        return 0;
    const char *name = (const char *)names.p + s.st_name;
    if (!name[0] || name[0] == '$') /* $x and $d mark kinds of bytes on Arm */
        return 0;
    struct function f = {s.st_value, s.st_size, name, rank_of(type, binding, s.st_size, name)};
    return vec_push(&t->list, f) ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
}

/* One table of symbols, whose names are kept in *names. */
static int read_symbols(struct function_table *t, const struct elf_image *e, uint32_t type, char **kept,
                        struct error *err)
{
    const struct elf_section *s = elf_image_section(e, type);
    if (!s || s->link >= e->sections.n || e->sections.p[s->link].type != SHT_STRTAB)
        return 0;
    const struct elf_section *names = &e->sections.p[s->link];
    size_t entry = e->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym), n_names = (size_t)names->size;
    uint8_t *table = NULL, *bytes = NULL;
    int rc = elf_image_read(e, s, &table, err);
    if (rc == 0)
        rc = elf_image_read(e, names, &bytes, err);
    *kept = (char *)bytes;
    if (rc == 0 && n_names)
        (*kept)[n_names - 1] = 0;
    for (uint64_t at = 0; rc == 0 && at + entry <= s->size; at += entry)
        rc = add_symbol(t, e, table + at, slice_of(*kept, n_names), err);
    mem_free(table);
    return rc;
}

/* The symbols of the file that is packed in .gnu_debugdata. False: it cannot be used, and nothing of it was. */
static bool read_packed(struct function_table *t, const struct elf_image *e, struct error *err)
{
    uint8_t *bytes;
    size_t len, before = t->list.n;
    struct elf_image mini = {.fd = -1};
    if (mini_debug_unpack(e, &bytes, &len, err) < 0)
        return false;
    bool good = elf_image_open_memory(&mini, slice_of(bytes, len), err) == 0 && elf_image_sections(&mini, err) == 0 &&
                read_symbols(t, &mini, SHT_SYMTAB, &t->more, err) == 0;
    elf_image_close(&mini);
    mem_free(bytes);
    if (!good)
        t->list.n = before;
    return good;
}

int function_table_read_elf(struct function_table *t, const struct elf_image *e, bool *passed_over, struct error *err)
{
    struct error why = {0};
    bool whole = elf_image_section(e, SHT_SYMTAB) != NULL, unpacked = true;
    *t = (struct function_table){0};
    int rc = read_symbols(t, e, whole ? SHT_SYMTAB : SHT_DYNSYM, &t->names, err);
    if (rc == 0 && !whole && e->packed.size)
        unpacked = read_packed(t, e, &why);
    if (passed_over)
        *passed_over = !unpacked;
    return rc < 0 ? rc : finish(t, err);
}

/* --- kallsyms ----------------------------------------------------------------------------------------------------- */

static void cut_ending(char *name, size_t *len, const char *ending)
{
    size_t n = strlen(ending);
    if (*len > n && strcmp(name + *len - n, ending) == 0)
        name[ *len -= n] = 0;
}

/* "ffffffff81000000 T name\t[module]" */
static int add_line(struct function_table *t, char *line, bool *hidden, struct error *err)
{
    char *end;
    uint64_t address = strtoull(line, &end, 16);
    if (end == line || end[0] != ' ' || (end[1] != 't' && end[1] != 'T') || end[2] != ' ')
        return 0;
    char *name = end + 3;
    size_t len = strcspn(name, "\t ");
    name[len] = 0;
    cut_ending(name, &len, ".cfi_jt");
    cut_ending(name, &len, ".cfi");
    *hidden |= !address;
    if (!address || !len || name[0] == '$')
        return 0;
    struct function f = {address, 0, name, (uint8_t)(end[1] == 'T')};
    return vec_push(&t->list, f) ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
}

int function_table_read_kallsyms(struct function_table *t, char *text, size_t len, struct error *err)
{
    bool hidden = false;
    int rc = 0;
    *t = (struct function_table){.names = text};
    for (char *p = text, *end = text + len; rc == 0 && p < end;) {
        char *eol = memchr(p, '\n', (size_t)(end - p));
        if (!eol)
            break; /* the last line is cut */
        *eol = 0;
        rc = add_line(t, p, &hidden, err);
        p = eol + 1;
    }
    if (rc == 0 && !t->list.n)
        rc = hidden ? error_set(err, -MRD_EDENIED,
                                "the kernel hides its addresses (run as root, or set "
                                "kernel.kptr_restrict to 0)")
                    : error_set(err, -MRD_EFORMAT, "no functions are there");
    return rc < 0 ? rc : finish(t, err);
}
