/* Imports ModuleSymbols: the functions at addresses of a file, for frames that were recorded without. */
#include "importer/profiling/profiling_internal.h"

#include "wire/fields.h"

enum { MAX_LINES = 64 /* functions inlined at one address */ };

struct found {
    struct machine_ctx *m;
    uint32_t set, frames;
};

static void name_frame(void *ctx, uint32_t frame)
{
    struct found *f = ctx;
    ROW_SET(f->m->st, stack_profile_frame, symbol_set_id, frame, f->set);
    f->frames++;
}

static size_t read_lines(struct machine_ctx *m, struct slice address, struct source_line *lines)
{
    size_t n = 0;
    struct pb_cursor c = pb_cursor(address);
    struct pb_field f;
    while (pb_next(&c, &f) && n < MAX_LINES) {
        if (f.id != ADDRESS_SYMBOLS_LINES)
            continue;
        lines[n] = source_line_read(m, pb_bytes(&f));
        if (!lines[n].file) /* symbolizers say line 0 for what they do not know */
            lines[n].line = COL_NULL;
        n++;
    }
    return n;
}

static void count_frame(void *ctx, uint32_t frame)
{
    (void)frame;
    (*(uint64_t *)ctx)++;
}

/* The frames that were named. `if_there`: the message is about other machines as well: of what it says only that is
 * taken which names a frame of this one. */
static uint64_t name_module(struct machine_ctx *m, struct slice message, bool if_there)
{
    struct pb_field f;
    uint64_t named = 0;
    strid path = import_slice(m->im, pb_find(message, MODULE_SYMBOLS_PATH, &f) ? pb_bytes(&f) : slice_of("", 0));
    strid build_id = build_id_text(m, pb_find(message, MODULE_SYMBOLS_BUILD_ID, &f) ? pb_bytes(&f) : slice_of("", 0));
    struct pb_cursor c = pb_cursor(message);
    while (pb_next(&c, &f)) {
        struct pb_field address;
        struct source_line lines[MAX_LINES];
        size_t n = f.id == MODULE_SYMBOLS_ADDRESS_SYMBOLS ? read_lines(m, pb_bytes(&f), lines) : 0;
        if (!n)
            continue;
        int64_t rel_pc = pb_find(pb_bytes(&f), ADDRESS_SYMBOLS_ADDRESS, &address) ? pb_i64(&address) : 0;
        uint64_t there = 0;
        if (if_there)
            stack_profile_frames_at(m, path, build_id, rel_pc, count_frame, &there);
        if (if_there && !there)
            continue;
        struct found found = {m, stack_profile_symbols(m, lines, n), 0};
        stack_profile_frames_at(m, path, build_id, rel_pc, name_frame, &found);
        if (!found.frames)
            stats_add(&m->st->stats, m->id, STAT_stackprofile_invalid_frame_id, 1);
        named += found.frames;
    }
    return named;
}

void module_symbols_parse(struct packet *p)
{
    const struct importer *im = p->m->im;
    name_module(p->m, p->field, false);
    for (size_t i = 0; i < im->machines.n; i++) /* a build id is the same file everywhere */
        if (im->machines.p[i] != p->m)
            name_module(im->machines.p[i], p->field, true);
}

uint64_t module_symbols_apply(struct machine_ctx *m, struct slice packets)
{
    struct pb_cursor c = pb_cursor(packets);
    struct pb_field packet, module;
    uint64_t named = 0;
    while (pb_next(&c, &packet))
        if (packet.id == TRACE_PACKET && pb_find(pb_bytes(&packet), TRACE_PACKET_MODULE_SYMBOLS, &module))
            named += name_module(m, pb_bytes(&module), true);
    return named;
}
