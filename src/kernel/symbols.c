/* The tables from kernel addresses to numbers, names and strings. */
#include "kernel/symbols.h"

#include "base/bisect.h"
#include "base/file.h"

#include <stdlib.h>

static bool cut_line(struct slice *text, struct slice *line)
{
    if (!text->len)
        return false;
    const uint8_t *nl = memchr(text->p, '\n', text->len);
    size_t len = nl ? (size_t)(nl - text->p) : text->len;
    *line = slice_of(text->p, len);
    text->p += len + (nl != NULL);
    text->len -= len + (nl != NULL);
    return true;
}

static bool cut_hex(struct slice *s, uint64_t *value)
{
    uint64_t v = 0;
    size_t i = 0;
    for (; i < s->len && i < 17; i++) {
        uint8_t c = s->p[i];
        if (c >= '0' && c <= '9')
            v = v << 4 | (uint64_t)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            v = v << 4 | (uint64_t)((c | 0x20) - 'a' + 10);
        else
            break;
    }
    s->p += i;
    s->len -= i;
    *value = v;
    return i > 0 && i <= 16;
}

/* Appends bytes and a NUL; the offset of the string, UINT32_MAX when out of memory. */
static uint32_t add_text(void *vec, struct slice s)
{
    VEC(char)
    *text = vec;
    if (text->n + s.len + 1 > UINT32_MAX || !vec_reserve(text, text->n + s.len + 1))
        return UINT32_MAX;
    uint32_t at = (uint32_t)text->n;
    memcpy(text->p + at, s.p, s.len);
    text->p[at + s.len] = 0;
    text->n += s.len + 1;
    return at;
}

static int by_address(const void *a, const void *b)
{
    const struct kernel_symbol *x = a, *y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name; /* as in the text */
}

int kernel_symbols_parse(struct kernel_symbols *s, struct slice text, struct error *err)
{
    struct slice line;
    while (cut_line(&text, &line)) {
        uint64_t address;
        if (!cut_hex(&line, &address) || !address || line.len < 4 || line.p[0] != ' ' || !strchr("tTwW", line.p[1]))
            continue;
        uint8_t type = line.p[1];
        struct slice name = slice_of(line.p + 3, line.len - 3);
        const uint8_t *end = memchr(name.p, '\t', name.len); /* "\t[module]" follows */
        if (end)
            name.len = (size_t)(end - name.p);
        uint32_t at = add_text(&s->text, name);
        if (at == UINT32_MAX || !vec_push(&s->list, (struct kernel_symbol){address, at, (type | 0x20) == 'w'}))
            return error_set(err, -MRD_ENOMEM, "out of memory for kernel symbols");
    }
    if (s->list.n)
        qsort(s->list.p, s->list.n, sizeof *s->list.p, by_address);
    return 0;
}

int kernel_symbols_load(struct kernel_symbols *s, struct error *err)
{
    char *text;
    size_t len;
    int rc = file_read_all("/proc/kallsyms", 256u << 20, &text, &len, err);
    if (rc)
        return rc;
    rc = kernel_symbols_parse(s, slice_of(text, len), err);
    mem_free(text);
    return rc;
}

const char *kernel_symbols_find(const struct kernel_symbols *s, uint64_t address)
{
    size_t at = s->list.n;
    BISECT(at, mid, s->list.p[mid].address <= address);
    /* a function longer than 1 MiB is a hole between symbols, not a function */
    if (at == 0 || address - s->list.p[at - 1].address > 1u << 20)
        return NULL;
    return s->text.p + s->list.p[at - 1].name;
}

void kernel_symbols_free(struct kernel_symbols *s)
{
    vec_free(&s->list);
    vec_free(&s->text);
}

uint64_t address_table_number(struct address_table *t, uint64_t address)
{
    bool added;
    if (!address)
        return 0;
    if (t->next == ADDRESS_TABLE_MAX) {
        const uint64_t *known = u64map_get(&t->index, address);
        return known ? *known : 0;
    }
    uint64_t *number = u64map_put(&t->index, address, &added);
    if (!number)
        return 0;
    if (added) {
        if (!vec_push(&t->unsent, address)) {
            u64map_del(&t->index, address);
            return 0;
        }
        *number = ++t->next;
    }
    return *number;
}

void address_table_free(struct address_table *t)
{
    u64map_free(&t->index);
    vec_free(&t->unsent);
    t->next = 0;
}

/* Undoes the C escapes of `printk_formats` in place of a copy; returns the new length. */
static size_t unescape(char *out, struct slice s)
{
    static const char from[] = "nrtab\\\"'", to[] = "\n\r\t\a\b\\\"'";
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        char c = (char)s.p[i];
        if (c == '\\' && i + 1 < s.len) {
            const char *e = strchr(from, s.p[++i]);
            c = e && *e ? to[e - from] : (char)s.p[i];
        }
        out[n++] = c;
    }
    return n;
}

int printk_formats_parse(struct printk_formats *f, struct slice text, struct error *err)
{
    struct slice line;
    while (cut_line(&text, &line)) {
        uint64_t address;
        if (line.len < 3 || line.p[0] != '0' || line.p[1] != 'x')
            continue;
        line = slice_of(line.p + 2, line.len - 2);
        if (!cut_hex(&line, &address))
            continue;
        const uint8_t *open = memchr(line.p, '"', line.len);
        if (!open || line.p[line.len - 1] != '"' || open == line.p + line.len - 1)
            continue;
        struct slice quoted = slice_of(open + 1, (size_t)(line.p + line.len - 1 - (open + 1)));
        uint32_t at = add_text(&f->text, quoted);
        if (at == UINT32_MAX || !u64map_set(&f->index, address, (uint64_t)at + 1))
            return error_set(err, -MRD_ENOMEM, "out of memory for printk formats");
        f->text.p[at + unescape(f->text.p + at, quoted)] = 0;
    }
    return 0;
}

const char *printk_formats_find(const struct printk_formats *f, uint64_t address)
{
    const uint64_t *at = u64map_get(&f->index, address);
    return at ? f->text.p + *at - 1 : NULL;
}

void printk_formats_free(struct printk_formats *f)
{
    u64map_free(&f->index);
    vec_free(&f->text);
}
