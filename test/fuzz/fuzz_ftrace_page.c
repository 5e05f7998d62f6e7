/* Kernel pages and format files: whatever they say, programs compile or are refused, pages parse or end with an error,
 * and every packet that comes out is well-formed protobuf. Input: parts separated by "\xff\xfe"; all but the last are
 * format files ("GROUP\n" in front), the last is one page. */
#include "kernel/event_filter.h"
#include "kernel/page_parser.h"
#include "wire/pb_cursor.h"

#include "fuzz.h"

#include <stdlib.h>

enum { MAX_EVENTS = 8 };

static void walk(struct slice message, int depth)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (depth > 0 && f.wire == PB_BYTES)
            walk(pb_bytes(&f), depth - 1);
    if (c.bad)
        abort();
}

static void check_packet(void *ctx, const struct slice *pieces, size_t n)
{
    size_t len = 0, at = 0;
    (void)ctx;
    for (size_t i = 0; i < n; i++)
        len += pieces[i].len;
    uint8_t *packet = malloc(len + 1);
    for (size_t i = 0; i < n; at += pieces[i++].len)
        if (pieces[i].len)
            memcpy(packet + at, pieces[i].p, pieces[i].len);
    walk(slice_of(packet, len), 0);
    struct pb_cursor c = pb_cursor(slice_of(packet, len));
    struct pb_field f, g;
    while (pb_next(&c, &f)) {
        if (f.id != 1)
            continue;
        struct pb_cursor bundle = pb_sub(&f);
        while (pb_next(&bundle, &g))
            if (g.id == 2) /* events; what is inside is text of the kernel */
                walk(pb_bytes(&g), 1);
        if (bundle.bad)
            abort();
    }
    free(packet);
}

struct fuzz_events {
    struct arena memory;
    struct event_program programs[3 * MAX_EVENTS];
    struct compact_offsets compact;
    const struct event_program *by_id[65536];
    size_t n;
    struct event_filter filter; /* of prints when flavour & 8; of calls when & 16, too */
};

static void add_format(struct fuzz_events *e, struct slice text, unsigned flavour)
{
    static struct format_file f;
    char group[64] = "g";
    const uint8_t *nl = memchr(text.p, '\n', text.len);
    if (!nl || e->n == MAX_EVENTS || (size_t)(nl - text.p) >= sizeof group)
        return;
    memcpy(group, text.p, (size_t)(nl - text.p));
    group[nl - text.p] = 0;
    text = slice_of(nl + 1, text.len - (size_t)(nl + 1 - text.p));
    if (format_file_parse(&f, text, NULL))
        return;
    struct event_program *p = &e->programs[3 * e->n];
    if (event_program_compile(p, &f, group, flavour & 1 ? PROGRAM_LEGACY : PROGRAM_TYPED_OR_GENERIC,
                              65536 + (uint32_t)e->n, &e->memory, NULL))
        return;
    e->n++;
    bool is_switch = p->proto_id == FTRACE_EVENT_SCHED_SWITCH, is_waking = p->proto_id == FTRACE_EVENT_SCHED_WAKING;
    if (flavour & 2 && ((is_switch && compact_switch_offsets(&f, &e->compact)) ||
                        (is_waking && compact_waking_offsets(&f, &e->compact))))
        p->kind = is_switch ? PROGRAM_COMPACT_SWITCH : PROGRAM_COMPACT_WAKING;
    if (strcmp(group, "kmem") == 0)
        (void)event_program_throttle_rss(p, &f);
    if (flavour & 8)
        p->filter = &e->filter;
    e->by_id[p->kernel_id] = p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_events *e = calloc(1, sizeof *e);
    struct symbol_output symbols = {0};
    struct packet_sink sink = {.write = check_packet};
    struct page_format format = {8, 16};
    struct page_view view;
    uint64_t previous = 0;
    unsigned flavour = size ? data[0] : 0;
    struct slice rest = slice_of(data + (size > 0), size ? size - 1 : 0);
    static const struct print_rule rules[] = {{"B", "C", true}, {"a", NULL, false}};
    static const struct call_set calls = {{1}};
    e->filter = (struct event_filter){flavour & 16 ? &calls : NULL, rules, 2, (uint16_t)(flavour >> 5 << 3)};
    for (const uint8_t *sep; rest.len && (sep = memmem(rest.p, rest.len, "\xff\xfe", 2));) {
        add_format(e, slice_of(rest.p, (size_t)(sep - rest.p)), flavour);
        rest = slice_of(sep + 2, rest.len - (size_t)(sep + 2 - rest.p));
    }
    struct ftrace_bundle *b = ftrace_bundle_create(&sink, NULL, &symbols, &e->compact);
    struct tid_tracker tids;
    struct program_table table = {e->by_id, 65536};
    struct inode_tracker inodes = {0};
    bool tracked = tid_tracker_init(&tids);
    ftrace_bundle_set_tids(b, tracked ? &tids : NULL);
    ftrace_bundle_set_inodes(b, &inodes);
    ftrace_bundle_set_debug(b, flavour & 4);
    ftrace_bundle_begin(b, 0, &previous);
    if (page_view_open(&view, &format, rest.p, rest.len) == FTRACE_STATUS_OK)
        page_view_parse(&view, &table, b);
    ftrace_bundle_end(b);
    ftrace_bundle_free(b);
    tid_tracker_free(&tids);
    u64map_free(&inodes.seen);
    vec_free(&inodes.fresh);
    address_table_free(&symbols.addresses);
    arena_free(&e->memory);
    free(e);
    return 0;
}
