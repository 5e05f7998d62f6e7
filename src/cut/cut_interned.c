/* Leaves out the names that nothing uses any more.
 *
 * A packet interns a string once, events then say its number. When the events went, the string must go, too: it may be
 * all that was secret. So the file is cut twice: the first time to see which numbers are used, each by its sequence and
 * the stretch between two clearings of its state; the second time to write. Names of events and categories, of args and
 * their texts, and bodies of log messages are looked after; functions, files and other names of programs stay. */
#include "cut/cut_internal.h"

#include "base/hash.h"
#include "wire/fields.h"

enum { MAX_NESTED = 64 /* of args in args; deeper ones keep all names of their kind */ };

static const uint32_t pruned[] = {
    INTERNED_DATA_EVENT_CATEGORIES,       INTERNED_DATA_EVENT_NAMES,
    INTERNED_DATA_DEBUG_ANNOTATION_NAMES, INTERNED_DATA_DEBUG_ANNOTATION_VALUE_TYPE_NAMES,
    INTERNED_DATA_LOG_MESSAGE_BODY,       INTERNED_DATA_DEBUG_ANNOTATION_STRING_VALUES,
};

/* A number of a kind (field of InternedData) in a stretch of a sequence; number 0: all of that kind. */
static uint64_t key_of(const struct cut *c, const struct cut_sequence *s, uint32_t kind, uint64_t number)
{
    return hash_combine(hash_keyed(c->secret, s->number, (uint64_t)s->generation << 32 | kind), number);
}

struct use {
    struct cut *c;
    const struct cut_sequence *s;
};

static void use(const struct use *u, uint32_t kind, uint64_t number)
{
    if (!u64map_set(&u->c->used, key_of(u->c, u->s, kind, number), 1))
        u->c->out.failed = true;
}

/* Numbers of a field that may be packed. */
static void use_all(const struct use *u, uint32_t kind, const struct pb_field *f)
{
    if (f->wire != PB_BYTES) {
        use(u, kind, pb_u64(f));
        return;
    }
    struct slice packed = pb_bytes(f);
    const uint8_t *at = packed.p;
    uint64_t number;
    while (pb_varint(&at, packed.p + packed.len, &number))
        use(u, kind, number);
}

static void use_annotation(const struct use *u, struct slice annotation, unsigned depth)
{
    struct pb_cursor c = pb_cursor(annotation);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case DEBUG_ANNOTATION_NAME_IID:
            use(u, INTERNED_DATA_DEBUG_ANNOTATION_NAMES, pb_u64(&f));
            break;
        case DEBUG_ANNOTATION_PROTO_TYPE_NAME_IID:
            use(u, INTERNED_DATA_DEBUG_ANNOTATION_VALUE_TYPE_NAMES, pb_u64(&f));
            break;
        case DEBUG_ANNOTATION_STRING_VALUE_IID:
            use(u, INTERNED_DATA_DEBUG_ANNOTATION_STRING_VALUES, pb_u64(&f));
            break;
        case DEBUG_ANNOTATION_DICT_ENTRIES:
        case DEBUG_ANNOTATION_ARRAY_VALUES:
            if (depth < MAX_NESTED)
                use_annotation(u, pb_bytes(&f), depth + 1);
            else
                for (size_t i = 0; i < sizeof pruned / sizeof *pruned; i++)
                    use(u, pruned[i], 0);
            break;
        }
    }
}

static void use_event(const struct use *u, struct slice event)
{
    struct pb_cursor c = pb_cursor(event);
    struct pb_field f, g;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case TRACK_EVENT_CATEGORY_IIDS:
            use_all(u, INTERNED_DATA_EVENT_CATEGORIES, &f);
            break;
        case TRACK_EVENT_NAME_IID:
            use(u, INTERNED_DATA_EVENT_NAMES, pb_u64(&f));
            break;
        case TRACK_EVENT_LEGACY_EVENT:
            if (pb_find(pb_bytes(&f), TRACK_EVENT_LEGACY_EVENT_NAME_IID, &g))
                use(u, INTERNED_DATA_EVENT_NAMES, pb_u64(&g));
            break;
        case TRACK_EVENT_LOG_MESSAGE:
            if (pb_find(pb_bytes(&f), LOG_MESSAGE_BODY_IID, &g))
                use(u, INTERNED_DATA_LOG_MESSAGE_BODY, pb_u64(&g));
            break;
        case TRACK_EVENT_DEBUG_ANNOTATIONS:
            use_annotation(u, pb_bytes(&f), 0);
            break;
        }
    }
}

/* The packet that begins at `before` of what is written. */
static struct slice written_packet(const struct cut *c, size_t before)
{
    struct pb_cursor cursor = pb_cursor(slice_of(c->out.p + before, c->out.n - before));
    struct pb_field f;
    return !c->out.failed && pb_next(&cursor, &f) ? pb_bytes(&f) : slice_of(NULL, 0);
}

void cut_interned_use(struct cut *c, const struct cut_sequence *s, size_t before)
{
    const struct use u = {c, s};
    struct pb_cursor cursor = pb_cursor(written_packet(c, before));
    struct pb_field f;
    while (pb_next(&cursor, &f))
        if (f.id == TRACE_PACKET_TRACK_EVENT)
            use_event(&u, pb_bytes(&f));
}

static bool stays(const struct cut *c, const struct cut_sequence *s, const struct pb_field *entry)
{
    struct pb_field iid;
    bool looked_after = false;
    for (size_t i = 0; i < sizeof pruned / sizeof *pruned; i++)
        looked_after |= entry->id == pruned[i];
    /* all of these messages have their number in the first field */
    if (!looked_after || entry->wire != PB_BYTES || !pb_find(pb_bytes(entry), EVENT_NAME_IID, &iid))
        return true;
    return u64map_get(&c->used, key_of(c, s, entry->id, pb_u64(&iid))) ||
           u64map_get(&c->used, key_of(c, s, entry->id, 0));
}

void cut_interned_prune(struct cut *c, const struct cut_sequence *s, size_t before)
{
    struct slice packet = written_packet(c, before);
    struct pb_field f, g;
    if (!pb_find(packet, TRACE_PACKET_INTERNED_DATA, &f))
        return;
    pb_writer_clear(&c->redacted);
    struct pb_cursor cursor = pb_cursor(packet);
    for (const uint8_t *from = cursor.p; pb_next(&cursor, &f); from = cursor.p) {
        if (f.id != TRACE_PACKET_INTERNED_DATA || f.wire != PB_BYTES) {
            pb_put_raw(&c->redacted, from, (size_t)(cursor.p - from));
            continue;
        }
        size_t mark = pb_begin(&c->redacted, TRACE_PACKET_INTERNED_DATA);
        struct pb_cursor inner = pb_sub(&f);
        for (const uint8_t *entry = inner.p; pb_next(&inner, &g); entry = inner.p)
            if (stays(c, s, &g))
                pb_put_raw(&c->redacted, entry, (size_t)(inner.p - entry));
        pb_end(&c->redacted, mark);
    }
    c->out.n = before;
    pb_put_bytes(&c->out, TRACE_PACKET, c->redacted.p, c->redacted.n);
    c->out.failed |= c->redacted.failed;
}
