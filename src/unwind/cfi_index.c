/* Reads the descriptions of functions in tables of call frame information, and finds the one of an address. */
#include "unwind/cfi.h"

#include "base/bisect.h"

#include <stdlib.h>

/* DW_EH_PE_…: how an address is written. */
enum {
    PE_ABSOLUTE = 0x00,
    PE_ULEB = 0x01,
    PE_U2 = 0x02,
    PE_U4 = 0x03,
    PE_U8 = 0x04,
    PE_SLEB = 0x09,
    PE_S2 = 0x0a,
    PE_S4 = 0x0b,
    PE_S8 = 0x0c,
    PE_FORMAT = 0x0f,
    PE_RELATIVE = 0x70,
    PE_TO_PLACE = 0x10,
    PE_INDIRECT = 0x80,
    PE_OMITTED = 0xff,
};

enum { AUGMENTATION_MAX = 16, SEARCH_ROW = 8, LEB_BYTES = 16 };

/* ---- numbers ---- */

uint64_t cfi_uint(struct cfi_reader *r, unsigned bytes)
{
    uint64_t v = 0;
    if (r->bad || (size_t)(r->end - r->p) < bytes) {
        r->bad = true;
        return 0;
    }
    memcpy(&v, r->p, bytes); /* of this machine's byte order: files of the other are refused */
    r->p += bytes;
    return v;
}

int64_t cfi_sint(struct cfi_reader *r, unsigned bytes)
{
    unsigned shift = 64 - 8 * bytes;
    return (int64_t)(cfi_uint(r, bytes) << shift) >> shift;
}

/* A LEB128 number; *last has its last byte, *shift the bits in front of the sign. Longer ones than LEB_BYTES have no
 * value: megabytes of them would be read again for each address. */
static uint64_t leb(struct cfi_reader *r, uint8_t *last, unsigned *shift)
{
    uint64_t v = 0;
    *shift = 0;
    do {
        *last = (uint8_t)cfi_uint(r, 1);
        if (*shift < 64)
            v |= (uint64_t)(*last & 0x7f) << *shift;
        *shift += 7;
        r->bad |= *last & 0x80 && *shift >= 7 * LEB_BYTES;
    } while (*last & 0x80 && !r->bad);
    return v;
}

uint64_t cfi_uleb(struct cfi_reader *r)
{
    uint8_t last;
    unsigned shift;
    return leb(r, &last, &shift);
}

int64_t cfi_sleb(struct cfi_reader *r)
{
    uint8_t last;
    unsigned shift;
    uint64_t v = leb(r, &last, &shift);
    if (last & 0x40 && shift < 64)
        v |= ~UINT64_C(0) << shift;
    return (int64_t)v;
}

void cfi_skip(struct cfi_reader *r, uint64_t bytes)
{
    if (r->bad || bytes > (uint64_t)(r->end - r->p))
        r->bad = true;
    else
        r->p += bytes;
}

/* An address as the encoding says; where it is relative, to its own place alone. */
static uint64_t encoded(struct cfi_reader *r, const struct cfi_section *s, uint8_t encoding)
{
    uint64_t place = s->address + (uint64_t)(r->p - s->bytes), v = 0;
    switch (encoding & PE_FORMAT) {
    case PE_ULEB:
        v = cfi_uleb(r);
        break;
    case PE_SLEB:
        v = (uint64_t)cfi_sleb(r);
        break;
    case PE_U2:
        v = cfi_uint(r, 2);
        break;
    case PE_S2:
        v = (uint64_t)cfi_sint(r, 2);
        break;
    case PE_U4:
        v = cfi_uint(r, 4);
        break;
    case PE_S4:
        v = (uint64_t)cfi_sint(r, 4);
        break;
    case PE_ABSOLUTE:
    case PE_U8:
    case PE_S8:
        v = cfi_uint(r, 8);
        break;
    default:
        r->bad = true;
    }
    if ((encoding & PE_RELATIVE) == PE_TO_PLACE)
        v += place;
    else if (encoding & (PE_RELATIVE | PE_INDIRECT))
        r->bad = true;
    return v;
}

/* ---- one description ---- */

/* The length of an entry: its reader ends behind it. `wide`: it has the 64-bit format. */
static bool read_length(struct cfi_reader *r, bool *wide)
{
    uint64_t n = cfi_uint(r, 4);
    *wide = n == UINT32_MAX;
    if (*wide)
        n = cfi_uint(r, 8);
    if (r->bad || n > (uint64_t)(r->end - r->p))
        return false;
    r->end = r->p + n;
    return n > 0;
}

static bool read_augmentation(struct cfi_function *f, struct cfi_reader *r, const char *text)
{
    if (!*text)
        return true;
    if (*text != 'z')
        return false;
    f->augmented = true;
    uint64_t n = cfi_uleb(r);
    if (r->bad || n > (uint64_t)(r->end - r->p))
        return false;
    struct cfi_reader data = {r->p, r->p + n, false};
    r->p += n;
    for (text++; *text; text++) {
        switch (*text) {
        case 'R':
            f->pointers = (uint8_t)cfi_uint(&data, 1);
            break;
        case 'L':
            cfi_skip(&data, 1);
            break;
        case 'P': {
            uint8_t encoding = (uint8_t)cfi_uint(&data, 1);
            if (encoding != PE_OMITTED) /* relative to what does not matter: it is passed over */
                encoded(&data, f->section, encoding & PE_FORMAT);
            break;
        }
        case 'S':
            f->signal = true;
            break;
        case 'B': /* aarch64: signed with key B */
        case 'G': /* aarch64: a tagged stack */
            break;
        default: /* what follows has a size that we do not know; the instructions do not */
            return !data.bad;
        }
    }
    return !data.bad;
}

/* What the functions of a kind have in common. */
static bool read_common(struct cfi_function *f, struct cfi_reader r)
{
    char augmentation[AUGMENTATION_MAX];
    size_t n = 0;
    bool wide;
    if (!read_length(&r, &wide))
        return false;
    uint64_t id = cfi_uint(&r, wide ? 8 : 4);
    if (id != (f->section->eh ? 0 : wide ? UINT64_MAX : UINT32_MAX))
        return false;
    uint64_t version = cfi_uint(&r, 1);
    do {
        augmentation[n] = (char)cfi_uint(&r, 1);
    } while (augmentation[n] && ++n < sizeof augmentation);
    if (r.bad || n == sizeof augmentation || (version != 1 && version != 3 && version != 4))
        return false;
    if (version == 4 && (cfi_uint(&r, 1) != 8 || cfi_uint(&r, 1) != 0)) /* sizes of addresses and segments */
        return false;
    f->code_align = cfi_uleb(&r);
    f->data_align = cfi_sleb(&r);
    uint64_t column = version == 1 ? cfi_uint(&r, 1) : cfi_uleb(&r);
    if (column >= UNWIND_REGISTERS)
        return false;
    f->return_column = (uint8_t)column;
    f->pointers = PE_ABSOLUTE;
    if (!read_augmentation(f, &r, augmentation))
        return false;
    f->common = r;
    return !r.bad;
}

bool cfi_function_read(struct cfi_function *f, const struct cfi_section *s, uint64_t offset)
{
    bool wide;
    *f = (struct cfi_function){.section = s};
    if (offset >= s->len)
        return false;
    struct cfi_reader r = {s->bytes + offset, s->bytes + s->len, false};
    if (!read_length(&r, &wide))
        return false;
    uint64_t here = (uint64_t)(r.p - s->bytes), at = cfi_uint(&r, wide ? 8 : 4);
    if (s->eh ? at == 0 || at > here : at >= s->len)
        return false; /* not of a function, or the common part would be outside */
    uint64_t common = s->eh ? here - at : at;
    if (r.bad || !read_common(f, (struct cfi_reader){s->bytes + common, s->bytes + s->len, false}))
        return false;
    f->start = encoded(&r, s, f->pointers);
    uint64_t size = encoded(&r, s, f->pointers & PE_FORMAT);
    if (f->augmented) /* data of the language, which unwinding does not need */
        cfi_skip(&r, cfi_uleb(&r));
    f->own = r;
    f->end = f->start + size;
    return !r.bad && f->end > f->start;
}

/* ---- which one ---- */

/* A row of the search table has two words: where a function begins, and where its description is. */
static int32_t search_word(const struct cfi_search *t, size_t row, size_t word)
{
    int32_t w;
    memcpy(&w, t->rows + row * SEARCH_ROW + word * sizeof w, sizeof w);
    return w;
}

/* The description that the search table names for an address. Its rows are sorted, or nothing is found. */
static bool search(const struct unwind_file *file, uint64_t address, uint64_t *offset)
{
    const struct cfi_search *t = &file->search;
    int64_t want = (int64_t)(address - t->address);
    size_t n = t->n;
    BISECT(n, i, search_word(t, i, 0) <= want);
    if (!n)
        return false;
    *offset = t->address + (uint64_t)(int64_t)search_word(t, n - 1, 1) - file->eh.address;
    return true;
}

/* The last entry that begins at or before the address. */
static bool look_up(const struct cfi_entry *entries, size_t n, uint64_t address, uint64_t *offset)
{
    size_t at = n;
    BISECT(at, mid, entries[mid].start <= address);
    if (!at || entries[at - 1].end <= address)
        return false;
    *offset = entries[at - 1].offset;
    return true;
}

static bool read_if_in(struct cfi_function *f, const struct cfi_section *s, uint64_t offset, uint64_t address)
{
    return cfi_function_read(f, s, offset) && f->start <= address && address < f->end;
}

bool cfi_function_find(struct cfi_function *f, const struct unwind_file *file, uint64_t address)
{
    uint64_t at;
    if (look_up(file->debug_entries.p, file->debug_entries.n, address, &at) && read_if_in(f, &file->debug, at, address))
        return true;
    if ((file->search.n ? search(file, address, &at) : look_up(file->eh_entries.p, file->eh_entries.n, address, &at)) &&
        read_if_in(f, &file->eh, at, address))
        return true;
    return file->packed && cfi_function_find(f, file->packed, address);
}

static int by_start(const void *a, const void *b)
{
    const struct cfi_entry *x = a, *y = b;
    return x->start != y->start ? (x->start > y->start) - (x->start < y->start)
                                : (x->offset > y->offset) - (x->offset < y->offset);
}

int cfi_list_functions(struct unwind_file *file, bool debug, size_t max, struct error *err)
{
    const struct cfi_section *s = debug ? &file->debug : &file->eh;
    VEC(struct cfi_entry) list = {0};
    for (uint64_t at = 0; at < s->len;) {
        struct cfi_reader r = {s->bytes + at, s->bytes + s->len, false};
        struct cfi_function f;
        bool wide;
        if (!read_length(&r, &wide)) {
            if (r.bad || r.p == r.end || !debug)
                break; /* a length of 0 ends .eh_frame */
            at += sizeof(uint32_t);
            continue;
        }
        if (cfi_function_read(&f, s, at)) {
            struct cfi_entry e = {f.start, f.end, (uint32_t)at};
            if (list.n >= max / sizeof e || !vec_push(&list, e)) {
                vec_free(&list);
                return error_set(err, -MRD_ELIMIT, "its unwind tables describe too many functions");
            }
        }
        at = (uint64_t)(r.end - s->bytes);
    }
    if (list.n)
        qsort(list.p, list.n, sizeof *list.p, by_start);
    file->memory += list.cap * sizeof *list.p;
    struct cfi_entry *p = list.p;
    if (debug) {
        file->debug_entries.p = p;
        file->debug_entries.n = file->debug_entries.cap = list.n;
    } else {
        file->eh_entries.p = p;
        file->eh_entries.n = file->eh_entries.cap = list.n;
    }
    return 0;
}
