/* Tables that Instruments exports as XML (xctrace export): samples with call stacks.
 *
 * An element defines something under its `id`, or repeats it by `ref`. All of them are kept by their number, rows as
 * samples; samples become rows of tables in order of time, when the extent of every binary is known. */
#include "importer/text/text_formats.h"

#include "importer/clock/clock_graph.h"
#include "importer/clock/file_clock.h"
#include "importer/lines/line_reader.h"
#include "importer/profiling/profile_file.h"
#include "importer/sort/sorter.h"
#include "importer/text/text_file.h"
#include "importer/track/process_tracker.h"

#include <expat.h>

#define ITEM_NONE UINT32_MAX

enum item_kind {
    ITEM_OTHER, /* an element that means nothing here */
    ITEM_ROW,
    ITEM_TIME,
    ITEM_SUBSYSTEM,
    ITEM_UINT64,
    ITEM_THREAD,
    ITEM_TID,
    ITEM_PROCESS,
    ITEM_PID,
    ITEM_CORE,
    ITEM_BACKTRACE,
    ITEM_TAGGED_BACKTRACE,
    ITEM_FRAME,
    ITEM_BINARY,
    ITEM_KINDS,
};

static const struct {
    const char *name;
    uint8_t kind;
    bool has_text; /* what it says is its text */
} elements[] = {
    {"row", ITEM_ROW, false},
    {"sample-time", ITEM_TIME, true},
    {"event-time", ITEM_TIME, true},
    {"subsystem", ITEM_SUBSYSTEM, true},
    {"uint64", ITEM_UINT64, true},
    {"thread", ITEM_THREAD, false},
    {"tid", ITEM_TID, true},
    {"process", ITEM_PROCESS, false},
    {"pid", ITEM_PID, true},
    {"core", ITEM_CORE, true},
    {"backtrace", ITEM_BACKTRACE, false},
    {"tagged-backtrace", ITEM_TAGGED_BACKTRACE, false},
    {"frame", ITEM_FRAME, false},
    {"binary", ITEM_BINARY, false},
};

struct item {
    uint8_t kind;
    bool is_sync;    /* a subsystem: that of readings of other clocks */
    int64_t number;  /* time, tid, pid, core, address of a frame, load address of a binary */
    strid name;      /* of a thread, process or frame; path of a binary */
    uint32_t link;   /* thread: process; frame: binary; tagged backtrace: backtrace */
    uint32_t first;  /* backtrace: in `stacks` */
    uint32_t n;      /* the same, how many frames */
    int64_t highest; /* binary: of the addresses in it */
    strid build_id;  /* binary */
    uint32_t row;    /* binary: of its mapping; backtrace: of its callsite; UINT32_MAX until it is needed */
};

struct open_element {
    uint8_t kind;
    bool has_text;
    uint32_t item;
};

/* What the row at hand has said so far. */
struct row {
    uint32_t time, thread, process, core, backtrace, subsystem, value;
};

struct instruments_sample {
    int64_t ts, at; /* in the file's clock; offset in the file */
    uint32_t thread, process, core, backtrace;
};

struct instruments {
    struct importer *im;
    struct machine_ctx *m;
    struct file_clock clock;
    uint32_t queue;
    XML_Parser xml;
    const char *refused; /* why reading was stopped */
    bool done, any_sync;
    int64_t last_sync;
    struct row row;
    char text[96]; /* of the innermost element that has some */
    size_t text_len;
    struct u64map by_id; /* number in the file -> index in `items` + 1 */
    VEC(struct item)
    items;
    VEC(struct open_element)
    open;
    VEC(uint32_t)
    stack; /* frames of the backtrace at hand */
    VEC(uint32_t)
    stacks; /* frames of all backtraces */
    VEC(struct instruments_sample)
    samples;
};

static const struct row empty_row = {ITEM_NONE, ITEM_NONE, ITEM_NONE, ITEM_NONE, ITEM_NONE, ITEM_NONE, ITEM_NONE};

static struct item *item_at(struct instruments *s, uint32_t index)
{
    return index < s->items.n ? &s->items.p[index] : NULL;
}

/* --- from samples to rows ---------------------------------------------------------------------------------------- */

static uint32_t mapping_of(struct instruments *s, struct item *binary)
{
    if (!binary)
        return profile_file_mapping(s->m, 0);
    if (binary->row == UINT32_MAX)
        binary->row = stack_profile_mapping(s->m, &(struct stack_profile_mapping_row){.build_id = binary->build_id,
                                                                                      .exact_offset = binary->number,
                                                                                      .start = binary->number,
                                                                                      .end = binary->highest,
                                                                                      .name = binary->name});
    return binary->row;
}

static uint32_t callsite_of(struct instruments *s, struct item *backtrace)
{
    uint32_t callsite = CALLSITE_NONE;
    if (backtrace->row != UINT32_MAX) /* many samples may repeat one */
        return backtrace->row;
    for (uint32_t i = backtrace->n; i-- > 0;) {
        const struct item *frame = item_at(s, s->stacks.p[backtrace->first + i]);
        struct item *binary = item_at(s, frame->link);
        uint64_t pc = (uint64_t)frame->number - (binary ? (uint64_t)binary->number : 0);
        if (pc && i) /* an address of return: the call is in front of it */
            pc--;
        uint32_t row = stack_profile_frame(s->m,
                                           &(struct stack_profile_frame_row){.name = frame->name,
                                                                             .mapping = mapping_of(s, binary),
                                                                             .rel_pc = (int64_t)pc,
                                                                             .symbol_set_id = COL_NULL},
                                           NULL);
        callsite = stack_profile_callsite(s->m, callsite, row);
    }
    return backtrace->row = callsite;
}

static void parse_samples(void *owner, const struct sort_event *events, size_t n)
{
    struct instruments *s = owner;
    struct process_tracker *t = s->m->processes;
    for (size_t i = 0; i < n; i++) {
        const struct instruments_sample *sample = &s->samples.p[events[i].a];
        const struct item *thread = item_at(s, sample->thread), *core = item_at(s, sample->core);
        const struct item *process = item_at(s, thread && thread->link != ITEM_NONE ? thread->link : sample->process);
        struct item *backtrace = item_at(s, sample->backtrace);
        enum stat_key missing = !thread      ? STAT_instruments_row_missing_thread
                                : !process   ? STAT_instruments_row_missing_process
                                : !backtrace ? STAT_instruments_row_missing_backtrace
                                             : STAT_instruments_row_missing_frame;
        if (!thread || !process || !backtrace || !backtrace->n) {
            import_log(s->m, missing, events[i].ts, -1, ARGSET_NONE);
            continue;
        }
        uint32_t upid = process_tracker_process(t, process->number);
        uint32_t utid = process_tracker_update_thread(t, thread->number, process->number);
        if (process->name)
            process_tracker_process_name(t, upid, process->name, PROCESS_NAME_OTHER);
        if (thread->name)
            process_tracker_thread_name(t, utid, thread->name, THREAD_NAME_OTHER);
        profile_file_sample(s->m, events[i].ts, "instruments", utid, upid, core ? core->number : COL_NULL,
                            callsite_of(s, backtrace));
    }
}

/* All readings of other clocks are known now. */
static void push_samples(struct instruments *s)
{
    for (size_t i = 0; i < s->samples.n; i++) {
        int64_t ts;
        if (file_clock_to_trace_time(&s->clock, s->samples.p[i].ts, s->samples.p[i].at, &ts))
            sorter_push(s->im->sorter, s->queue, (struct sort_event){.ts = ts, .a = i});
    }
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

/* The file's clock and the time since boot, read together; a reading before the last one relates nothing. */
static void add_sync(struct instruments *s, int64_t here, int64_t boottime)
{
    if (s->any_sync && here < s->last_sync)
        return;
    s->any_sync = true;
    s->last_sync = here;
    struct clock_graph *g = s->im->clocks;
    struct clock_id boot = {
        .id = CLOCK_ID_BOOTTIME, .machine = s->im->input.base_machine, .file = s->im->input.clock_file};
    struct clock_reading both[] = {{.clock = s->clock.clock, .value = here}, {.clock = boot, .value = boottime}};
    clock_graph_own_domain(g, s->clock.clock);
    clock_graph_write_rows(g, both, 2, clock_graph_add_snapshot(g, both, 2));
}

static void end_row(struct instruments *s)
{
    const struct row *r = &s->row;
    const struct item *time = item_at(s, r->time), *value = item_at(s, r->value);
    const struct item *subsystem = item_at(s, r->subsystem);
    if (r->backtrace != ITEM_NONE) {
        struct instruments_sample sample = {.ts = time ? time->number : 0,
                                            .at = XML_GetCurrentByteIndex(s->xml),
                                            .thread = r->thread,
                                            .process = r->process,
                                            .core = r->core,
                                            .backtrace = r->backtrace};
        if (!vec_push(&s->samples, sample))
            s->im->failed = true;
    } else if (subsystem && subsystem->is_sync && time && value) {
        add_sync(s, time->number, value->number);
    }
}

/* --- elements ---------------------------------------------------------------------------------------------------- */

static const char *attribute(const char **attributes, const char *name)
{
    for (; *attributes; attributes += 2)
        if (strcmp(attributes[0], name) == 0)
            return attributes[1];
    return NULL;
}

static int64_t address(const char *text)
{
    uint64_t value = 0;
    return text && number_hex(slice_str(text), &value) ? (int64_t)value : 0;
}

/* The bytes that the digits of a UUID stand for. */
static strid build_id_of(struct instruments *s, const char *uuid)
{
    uint8_t raw[32];
    size_t digits = 0;
    for (; uuid && *uuid && digits < 2 * sizeof raw; uuid++) {
        uint64_t digit;
        if (*uuid == '-')
            continue;
        if (!number_hex(slice_of(uuid, 1), &digit))
            return import_str(s->im, "");
        raw[digits / 2] = (uint8_t)(digits % 2 ? raw[digits / 2] | digit : digit << 4);
        digits++;
    }
    return digits ? build_id_text(s->m, slice_of(raw, digits / 2)) : import_str(s->im, "");
}

static strid text_of(struct instruments *s, const char *text)
{
    return text && *text ? import_str(s->im, text) : 0;
}

static struct item item_of(struct instruments *s, enum item_kind kind, const char **attributes)
{
    struct item item = {.kind = (uint8_t)kind, .link = ITEM_NONE, .row = UINT32_MAX};
    if (kind == ITEM_THREAD || kind == ITEM_PROCESS)
        item.name = text_of(s, attribute(attributes, "fmt"));
    else if (kind == ITEM_FRAME || kind == ITEM_BINARY)
        item.name = text_of(s, attribute(attributes, kind == ITEM_FRAME ? "name" : "path"));
    if (kind == ITEM_FRAME)
        item.number = address(attribute(attributes, "addr"));
    if (kind == ITEM_BINARY) {
        item.number = item.highest = address(attribute(attributes, "load-addr"));
        item.build_id = build_id_of(s, attribute(attributes, "UUID"));
        if (!item.name)
            item.name = import_str(s->im, "");
    }
    return item;
}

/* The item that an element defines or repeats; ITEM_NONE when it repeats nothing that is known. */
static uint32_t item_for(struct instruments *s, enum item_kind kind, const char **attributes)
{
    const char *ref = attribute(attributes, "ref"), *id = attribute(attributes, "id");
    int64_t number;
    if (ref) {
        const uint64_t *at = number_decimal(slice_str(ref), &number) ? u64map_get(&s->by_id, (uint64_t)number) : NULL;
        return at && s->items.p[*at - 1].kind == kind ? (uint32_t)(*at - 1) : ITEM_NONE;
    }
    if (s->items.n >= ITEM_NONE || !vec_push(&s->items, item_of(s, kind, attributes))) {
        s->im->failed = true;
        return ITEM_NONE;
    }
    if (id && number_decimal(slice_str(id), &number)) {
        uint64_t *slot = u64map_put(&s->by_id, (uint64_t)number, NULL);
        if (slot)
            *slot = s->items.n;
        else
            s->im->failed = true;
    }
    return (uint32_t)(s->items.n - 1);
}

static void XMLCALL on_start(void *ctx, const char *name, const char **attributes)
{
    struct instruments *s = ctx;
    struct open_element e = {.item = ITEM_NONE};
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (strcmp(elements[i].name, name) == 0) {
            e.kind = elements[i].kind;
            e.has_text = elements[i].has_text && !attribute(attributes, "ref");
        }
    if (e.kind == ITEM_ROW)
        s->row = empty_row;
    else if (e.kind != ITEM_OTHER)
        e.item = item_for(s, e.kind, attributes);
    if (e.kind == ITEM_BACKTRACE)
        vec_clear(&s->stack);
    if (e.has_text)
        s->text_len = 0;
    if (!vec_push(&s->open, e))
        s->im->failed = true;
    if (s->im->failed)
        XML_StopParser(s->xml, XML_FALSE);
}

static void XMLCALL on_text(void *ctx, const char *text, int len)
{
    struct instruments *s = ctx;
    size_t room = sizeof s->text - s->text_len, n = (size_t)len;
    if (!s->open.n || !vec_last(&s->open)->has_text)
        return;
    n = n < room ? n : room;
    memcpy(s->text + s->text_len, text, n);
    s->text_len += n;
}

/* What the text of an element says. */
static void read_text(struct instruments *s, struct item *item)
{
    struct slice text = trim_space(slice_of(s->text, s->text_len));
    if (item->kind == ITEM_SUBSYSTEM)
        item->is_sync = slice_eq_str(text, "dev.perfetto.clock_sync");
    else if (!number_decimal(text, &item->number))
        item->number = 0;
}

/* The innermost open element of a kind. */
static struct item *enclosing(struct instruments *s, enum item_kind kind)
{
    enum { NEAR = 4 /* how deep they lie in each other */ };
    for (size_t i = s->open.n, k = 0; i-- > 0 && k < NEAR; k++)
        if (s->open.p[i].kind == kind)
            return item_at(s, s->open.p[i].item);
    return NULL;
}

/* Frames of a backtrace that has ended. */
static void end_backtrace(struct instruments *s, struct item *backtrace)
{
    if (!s->stack.n) /* it repeats one, or has none */
        return;
    backtrace->first = (uint32_t)s->stacks.n;
    for (size_t i = 0; i < s->stack.n && !s->im->failed; i++) {
        struct item *frame = item_at(s, s->stack.p[i]), *binary = item_at(s, frame->link);
        if (binary && (uint64_t)frame->number > (uint64_t)binary->highest)
            binary->highest = frame->number;
        if (s->stacks.n >= UINT32_MAX || !vec_push(&s->stacks, s->stack.p[i]))
            s->im->failed = true;
    }
    backtrace->n = (uint32_t)(s->stacks.n - backtrace->first);
    vec_clear(&s->stack);
}

/* Gives an element that has ended to the one, or to the row, that it is part of. */
static void attach(struct instruments *s, struct open_element e)
{
    struct item *item = item_at(s, e.item), *outer;
    switch ((enum item_kind)e.kind) {
    case ITEM_TIME:
        s->row.time = e.item;
        break;
    case ITEM_SUBSYSTEM:
        s->row.subsystem = e.item;
        break;
    case ITEM_UINT64:
        if (s->row.value == ITEM_NONE)
            s->row.value = e.item;
        break;
    case ITEM_TID:
        if (item && (outer = enclosing(s, ITEM_THREAD)))
            outer->number = item->number;
        break;
    case ITEM_PID:
        if (item && (outer = enclosing(s, ITEM_PROCESS)))
            outer->number = item->number;
        break;
    case ITEM_PROCESS:
        if ((outer = enclosing(s, ITEM_THREAD)))
            outer->link = e.item;
        else
            s->row.process = e.item;
        break;
    case ITEM_THREAD:
        s->row.thread = e.item;
        break;
    case ITEM_CORE:
        s->row.core = e.item;
        break;
    case ITEM_BINARY:
        if ((outer = enclosing(s, ITEM_FRAME)))
            outer->link = e.item;
        break;
    case ITEM_FRAME:
        if (item && enclosing(s, ITEM_BACKTRACE) && !vec_push(&s->stack, e.item))
            s->im->failed = true;
        break;
    case ITEM_BACKTRACE:
        if (item)
            end_backtrace(s, item);
        if ((outer = enclosing(s, ITEM_TAGGED_BACKTRACE)))
            outer->link = e.item;
        s->row.backtrace = item ? e.item : ITEM_NONE - 1; /* one that is not there */
        break;
    case ITEM_TAGGED_BACKTRACE:
        if (item && item->link != ITEM_NONE)
            s->row.backtrace = item->link;
        break;
    case ITEM_ROW:
        end_row(s);
        break;
    default:
        break;
    }
}

static void XMLCALL on_end(void *ctx, const char *name)
{
    struct instruments *s = ctx;
    (void)name;
    if (!s->open.n)
        return;
    struct open_element e = *vec_last(&s->open);
    s->open.n--;
    struct item *item = item_at(s, e.item);
    if (e.has_text && item)
        read_text(s, item);
    attach(s, e);
    if (s->im->failed)
        XML_StopParser(s->xml, XML_FALSE);
}

/* Entities of a document could make a few bytes any number; Instruments writes none. */
static void XMLCALL on_doctype(void *ctx, const char *name, const char *system_id, const char *public_id, int internal)
{
    struct instruments *s = ctx;
    (void)name;
    (void)system_id;
    (void)public_id;
    (void)internal;
    s->refused = "a document type declaration, which exports of Instruments do not have";
    XML_StopParser(s->xml, XML_FALSE);
}

/* --- the file ---------------------------------------------------------------------------------------------------- */

static void close_file(void *self)
{
    struct instruments *s = self;
    if (s->xml)
        XML_ParserFree(s->xml);
    vec_free(&s->items);
    vec_free(&s->open);
    vec_free(&s->stack);
    vec_free(&s->stacks);
    vec_free(&s->samples);
    u64map_free(&s->by_id);
    mem_free(s);
}

static void *open_file(struct importer *im)
{
    static const XML_Memory_Handling_Suite memory = {mem_alloc, mem_realloc, mem_free};
    struct instruments *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (struct instruments){
        .im = im, .m = text_machine(im), .row = empty_row, .xml = XML_ParserCreate_MM(NULL, &memory, NULL)};
    if (!s->xml) {
        close_file(s);
        return NULL;
    }
    XML_SetUserData(s->xml, s);
    XML_SetElementHandler(s->xml, on_start, on_end);
    XML_SetCharacterDataHandler(s->xml, on_text);
    XML_SetStartDoctypeDeclHandler(s->xml, on_doctype);
    s->queue = sorter_add_queue(im->sorter, parse_samples, s);
    file_clock_open(&s->clock, im, CLOCK_ID_TRACE_FILE);
    return s;
}

static int parse(struct instruments *s, struct slice bytes, bool last, struct error *err)
{
    if (s->done)
        return 0;
    enum XML_Status status = XML_Parse(s->xml, (const char *)bytes.p, (int)bytes.len, last);
    if (s->im->failed || XML_GetErrorCode(s->xml) == XML_ERROR_NO_MEMORY)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    s->done = last || status != XML_STATUS_OK;
    if (s->done)
        push_samples(s);
    if (status == XML_STATUS_OK)
        return 0;
    return error_set(err, -MRD_EFORMAT, "Instruments: line %lu, column %lu: %s; what came before is there",
                     XML_GetCurrentLineNumber(s->xml), XML_GetCurrentColumnNumber(s->xml) + 1,
                     s->refused ? s->refused : XML_ErrorString(XML_GetErrorCode(s->xml)));
}

static int write_file(void *self, struct slice bytes, struct error *err)
{
    enum { PIECE = 1 << 20 };
    int rc = 0;
    while (bytes.len && !rc) {
        size_t n = bytes.len < PIECE ? bytes.len : PIECE;
        rc = parse(self, slice_to(bytes, n), false, err);
        format_reader_used(((struct instruments *)self)->im, slice_to(bytes, n));
        bytes = slice_from(bytes, n);
    }
    return rc;
}

static int end_file(void *self, struct error *err)
{
    return parse(self, slice_of("", 0), true, err);
}

const struct format_reader instruments_format_reader = {
    .format = FORMAT_INSTRUMENTS, .open = open_file, .write = write_file, .end = end_file, .close = close_file};
