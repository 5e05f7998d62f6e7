/* Reads the mappings of processes. */
#include "importer/trace_dat/dat_maps.h"

#include "importer/profiling/stack_profile.h"
#include "importer/track/process_tracker.h"

static struct slice cut_line(struct slice *rest)
{
    const uint8_t *nl = rest->len ? memchr(rest->p, '\n', rest->len) : NULL;
    size_t n = nl ? (size_t)(nl - rest->p) : rest->len;
    struct slice line = slice_of(rest->p, n);
    *rest = slice_of(rest->p + n + (nl != NULL), rest->len - n - (nl != NULL));
    return line;
}

/* Takes a hexadecimal number and the space behind it off a line. */
static bool cut_hex(struct slice *line, uint64_t *value)
{
    enum { DIGITS = 16 };
    size_t n = 0;
    *value = 0;
    for (; n < line->len && line->p[n] != ' '; n++) {
        unsigned c = line->p[n], digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
        if (digit == 16 || n == DIGITS)
            return false;
        *value = *value << 4 | digit;
    }
    if (!n || n == line->len)
        return false;
    *line = slice_of(line->p + n + 1, line->len - n - 1);
    return true;
}

static void import_map(struct machine_ctx *m, uint32_t upid, struct slice line, int64_t ts)
{
    uint64_t start, end;
    if (!cut_hex(&line, &start) || !cut_hex(&line, &end) || end < start)
        return;
    struct stack_profile_mapping_row row = {.build_id = import_str(m->im, ""),
                                            .start = (int64_t)start,
                                            .end = (int64_t)end,
                                            .name = import_slice(m->im, line)};
    uint32_t mapping = stack_profile_mapping_insert(m->st, &row);
    struct mmap_record_row r = {.ts = ts, .upid = upid, .mapping_id = mapping, .file_id = COL_NULL};
    if (mapping == UINT32_MAX || mmap_record_insert(m->st, &r) == UINT32_MAX)
        m->im->failed = true;
}

void dat_maps_import(struct machine_ctx *m, const struct dat_file *f, struct clock_id clock, int64_t time)
{
    int64_t ts;
    if (!f->procmaps.n || clock_graph_to_trace_time(m->im->clocks, clock, time, &ts) != 0)
        return;
    for (size_t i = 0; i < f->procmaps.n; i++) {
        struct slice rest = f->procmaps.p[i];
        while (rest.len) { /* a process, and as many lines as it says */
            struct slice head = cut_line(&rest);
            uint64_t pid, lines;
            if (!cut_hex(&head, &pid) || !cut_hex(&head, &lines) || !pid || pid > INT32_MAX)
                break;
            uint32_t upid = process_tracker_process(m->processes, (int64_t)pid);
            for (; lines && rest.len && !m->im->failed; lines--)
                import_map(m, upid, cut_line(&rest), ts);
        }
    }
}
