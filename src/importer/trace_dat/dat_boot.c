/* Buffers that a kernel left behind when it ended: their addresses are those of the boot before. */
#include "importer/trace_dat/dat_boot.h"

#include "base/slice.h"

/* The next line of a text; false at its end. */
static bool next_line(struct slice *rest, struct slice *line)
{
    if (!rest->len)
        return false;
    const uint8_t *nl = memchr(rest->p, '\n', rest->len);
    size_t len = nl ? (size_t)(nl - rest->p) : rest->len, used = nl ? len + 1 : len;
    *line = slice_of(rest->p, len);
    *rest = slice_of(rest->p + used, rest->len - used);
    return true;
}

/* A hexadecimal number at the start of a line, with or without 0x, in front of a blank; what follows it stays. */
static bool read_address(struct slice *line, uint64_t *address)
{
    size_t i = line->len > 2 && line->p[0] == '0' && (line->p[1] | 32) == 'x' ? 2 : 0, first = i;
    *address = 0;
    for (; i < line->len && i < first + 16; i++) {
        uint8_t c = line->p[i] | 32;
        if (line->p[i] >= '0' && line->p[i] <= '9')
            *address = *address << 4 | (uint64_t)(line->p[i] - '0');
        else if (c >= 'a' && c <= 'f')
            *address = *address << 4 | (uint64_t)(c - 'a' + 10);
        else
            break;
    }
    if (i == first || i == line->len || (line->p[i] != ' ' && line->p[i] != '\t'))
        return false;
    *line = slice_of(line->p + i + 1, line->len - i - 1);
    return true;
}

/* Where the kernel lay that wrote the buffer: the line ADDRESS [kernel] of its last_boot_info. */
static bool kernel_then(const struct dat_file *f, struct slice buffer, uint64_t *address)
{
    for (size_t i = 0; i < f->last_boots.n; i++) {
        struct slice text = f->last_boots.p[i], line;
        if (text.len <= buffer.len || text.p[buffer.len] != ':' ||
            (buffer.len && memcmp(text.p, buffer.p, buffer.len) != 0))
            continue;
        text = slice_of(text.p + buffer.len + 1, text.len - buffer.len - 1);
        while (next_line(&text, &line))
            if (read_address(&line, address) && slice_starts(line, "[kernel]"))
                return true;
    }
    return false;
}

/* Where it lies in the list of symbols. */
static bool kernel_now(const struct dat_file *f, uint64_t *address)
{
    struct slice text = f->kallsyms, line;
    while (next_line(&text, &line))
        if (read_address(&line, address) && line.len == 7 && memcmp(line.p + 1, " _text", 6) == 0)
            return *address != 0;
    return false;
}

uint64_t dat_boot_shift(const struct dat_file *f, struct slice buffer)
{
    uint64_t then, now;
    return kernel_then(f, buffer, &then) && kernel_now(f, &now) ? now - then : 0;
}
