/* Goes through a symbol file once. */
#include "symbols/breakpad.h"

#include "base/alloc.h"
#include "base/bisect.h"
#include "base/vec.h"

#include <string.h>

enum { MAX_FILES = 1 << 22, PUBLIC_BYTES = 0xffff };

struct public_name {
    uint64_t address;
    struct slice name;
};

struct reading {
    const uint64_t *addresses;
    size_t n;
    struct breakpad_line *out;
    VEC(struct slice)
    files;                       /* by number */
    struct public_name *nearest; /* for each address: the last PUBLIC at or below it */
    uint64_t last_public;
    bool has_public;
};

/* --- words -------------------------------------------------------------------------------------------------------- */

static struct slice word(struct slice *rest)
{
    size_t i = 0, n;
    while (i < rest->len && rest->p[i] == ' ')
        i++;
    for (n = i; n < rest->len && rest->p[n] != ' ';)
        n++;
    struct slice w = slice_of(rest->p + i, n - i);
    *rest = slice_of(rest->p + n, rest->len - n);
    return w;
}

/* What is left, without blanks around it. */
static struct slice trimmed(struct slice s)
{
    while (s.len && s.p[0] == ' ')
        s = slice_of(s.p + 1, s.len - 1);
    while (s.len && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\r'))
        s.len--;
    return s;
}

static bool number(struct slice w, unsigned base, uint64_t *out)
{
    uint64_t v = 0;
    if (!w.len || w.len > 20)
        return false;
    for (size_t i = 0; i < w.len; i++) {
        unsigned c = w.p[i], d = c - '0';
        if (d > 9) {
            d = (c | 32) - 'a';
            d = d < 6 ? d + 10 : 16;
        }
        if (d >= base || v > (UINT64_MAX - d) / base)
            return false;
        v = v * base + d;
    }
    *out = v;
    return true;
}

/* --- records ------------------------------------------------------------------------------------------------------ */

/* The first address at or above one. */
static size_t lower_bound(const struct reading *r, uint64_t address)
{
    size_t at = r->n;
    BISECT(at, mid, r->addresses[mid] < address);
    return at;
}

static bool in_range(uint64_t address, uint64_t start, uint64_t size)
{
    return address >= start && address - start < size;
}

/* "m" stands where several functions share the code. */
static struct slice without_mark(struct slice rest)
{
    struct slice after = rest, first = word(&after);
    return slice_eq_str(first, "m") ? after : rest;
}

static bool read_func(struct reading *r, struct slice rest)
{
    uint64_t address, size, parameters;
    rest = without_mark(rest);
    if (!number(word(&rest), 16, &address) || !number(word(&rest), 16, &size) || !number(word(&rest), 16, &parameters))
        return false;
    struct slice name = trimmed(rest);
    for (size_t i = lower_bound(r, address); i < r->n && in_range(r->addresses[i], address, size); i++)
        if (!r->out[i].function.len)
            r->out[i].function = name;
    return true;
}

static bool read_public(struct reading *r, struct slice rest)
{
    uint64_t address, parameters;
    rest = without_mark(rest);
    if (!number(word(&rest), 16, &address) || !number(word(&rest), 16, &parameters))
        return false;
    struct slice name = trimmed(rest);
    for (size_t i = lower_bound(r, address); i < r->n && r->addresses[i] - address < PUBLIC_BYTES; i++)
        if (!r->nearest[i].name.len || r->nearest[i].address <= address)
            r->nearest[i] = (struct public_name){address, name};
    r->last_public = !r->has_public || address > r->last_public ? address : r->last_public;
    r->has_public = true;
    return true;
}

static bool read_file(struct reading *r, struct slice rest)
{
    uint64_t i;
    if (!number(word(&rest), 10, &i) || i >= MAX_FILES)
        return false;
    if (i >= r->files.n) {
        if (!vec_reserve(&r->files, (size_t)i + 1))
            return false;
        memset(r->files.p + r->files.n, 0, ((size_t)i + 1 - r->files.n) * sizeof *r->files.p);
        r->files.n = (size_t)i + 1;
    }
    r->files.p[i] = word(&rest);
    return true;
}

static bool read_line(struct reading *r, struct slice rest)
{
    uint64_t address, size, line, file;
    if (!number(word(&rest), 16, &address) || !number(word(&rest), 16, &size) || !number(word(&rest), 10, &line) ||
        !number(word(&rest), 10, &file))
        return false;
    for (size_t i = lower_bound(r, address); i < r->n && in_range(r->addresses[i], address, size); i++) {
        if (r->out[i].line)
            continue;
        r->out[i].line = line <= UINT32_MAX ? (uint32_t)line : 0;
        r->out[i].file = file < r->files.n ? r->files.p[file] : slice_of(NULL, 0);
    }
    return true;
}

static bool read_record(struct reading *r, struct slice line)
{
    struct slice rest = line, kind = word(&rest);
    if (slice_eq_str(kind, "FUNC"))
        return read_func(r, rest);
    if (slice_eq_str(kind, "PUBLIC"))
        return read_public(r, rest);
    if (slice_eq_str(kind, "FILE"))
        return read_file(r, rest);
    if (!kind.len || (kind.p[0] >= 'A' && kind.p[0] <= 'Z' && rest.len && !number(kind, 16, &(uint64_t){0})))
        return true; /* STACK, INFO, INLINE and what may come */
    return read_line(r, line);
}

/* Functions that are known by their first address alone last to the next one, which the very last has not. */
static void use_public(struct reading *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (!r->out[i].function.len && r->nearest[i].name.len && r->nearest[i].address != r->last_public)
            r->out[i].function = r->nearest[i].name;
}

static int read_all(struct reading *r, struct slice text, struct error *err)
{
    size_t n = 0;
    while (text.len) {
        const uint8_t *eol = memchr(text.p, '\n', text.len);
        struct slice line = slice_of(text.p, eol ? (size_t)(eol - text.p) : text.len);
        text = slice_of(text.p + line.len + (eol != NULL), text.len - line.len - (eol != NULL));
        line = trimmed(line);
        if (++n == 1 ? !slice_starts(line, "MODULE") : !read_record(r, line))
            return error_set(err, -MRD_EFORMAT, "line %zu: %s", n,
                             n == 1 ? "not a symbol file of Breakpad (MODULE is missing)" : "not a record of Breakpad");
    }
    return n ? 0 : error_set(err, -MRD_EFORMAT, "the file is empty");
}

int breakpad_lookup(struct slice text, const uint64_t *addresses, size_t n, struct breakpad_line *out,
                    struct error *err)
{
    struct reading r = {.addresses = addresses, .n = n, .out = out};
    memset(out, 0, n * sizeof *out);
    r.nearest = mem_zalloc((n + 1) * sizeof *r.nearest);
    if (!r.nearest)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    int rc = read_all(&r, text, err);
    if (rc == 0)
        use_public(&r);
    vec_free(&r.files);
    mem_free(r.nearest);
    return rc;
}
