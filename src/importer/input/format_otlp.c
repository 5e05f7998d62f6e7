/* Tells OTLP from other JSON and protobuf. */
#include "importer/input/format_otlp.h"

#include "base/json_reader.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

bool is_otlp_json(struct slice head)
{
    static const char *const keys[] = {"resourceSpans", "resourceLogs", "resourceMetrics", "resourceProfiles"};
    struct json_reader r = json_reader(head);
    struct json_text key;
    if (json_peek(&r) != '{' || !json_enter(&r, '{'))
        return false;
    while (json_member(&r, &key)) {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (json_text_is(key, keys[i]))
                return json_peek(&r) == '[';
        if (!json_skip(&r, NULL))
            return false;
    }
    return false;
}

/* The first field of a message, of which the head may hold a part only; its payload as far as it is there. False when
 * it does not fit into the message, which has `room` bytes. */
static bool first_field(const uint8_t *p, const uint8_t *end, uint64_t room, uint32_t *id, struct slice *payload,
                        uint64_t *len)
{
    const uint8_t *start = p;
    uint64_t tag;
    if (!pb_varint(&p, end, &tag) || (tag & 7) != PB_BYTES || !pb_varint(&p, end, len))
        return false;
    if (*len > room || (uint64_t)(p - start) > room - *len)
        return false;
    *id = (uint32_t)(tag >> 3);
    *payload = slice_of(p, (size_t)(end - p) < *len ? (size_t)(end - p) : (size_t)*len);
    return true;
}

/* Whether a message, of which the head may hold a part, begins with an attribute: a key of printable characters. */
static bool begins_with_attribute(struct slice head, uint64_t len)
{
    enum { LOOK = 8, LONGEST_KEY = 1024 };
    struct slice entry, key;
    uint64_t entry_len, key_len;
    uint32_t id;
    if (!first_field(head.p, head.p + head.len, len, &id, &entry, &entry_len) || id != OTLP_RESOURCE_ATTRIBUTES ||
        !first_field(entry.p, entry.p + entry.len, entry_len, &id, &key, &key_len) || id != OTLP_KEY_VALUE_KEY ||
        !key_len || key_len > LONGEST_KEY || !key.len)
        return false;
    for (size_t i = 0; i < key.len && i < LOOK; i++)
        if (key.p[i] < ' ' || key.p[i] == 0x7f)
            return false;
    return true;
}

/* Whether a message begins as ScopeSpans: with a scope that has a name, or with a span that has its trace id. */
static bool begins_as_scope_spans(struct slice head, uint64_t len)
{
    enum { TRACE_ID_BYTES = 16 };
    struct slice first, inner;
    uint64_t first_len, inner_len;
    uint32_t id, inner_id;
    const uint8_t *p = head.p, *end = head.p + head.len;
    while (first_field(p, end, len, &id, &first, &first_len)) {
        if (id == OTLP_SCOPE_SPANS_SPANS)
            return first_field(first.p, first.p + first.len, first_len, &inner_id, &inner, &inner_len) &&
                   inner_id == OTLP_SPAN_TRACE_ID && inner_len == TRACE_ID_BYTES;
        if ((id != OTLP_SCOPE_SPANS_SCOPE && id != OTLP_SCOPE_SPANS_SCHEMA_URL) || first.len < first_len)
            return false;
        len -= (uint64_t)(first.p + first_len - p);
        p = first.p + first_len;
    }
    return false;
}

/* As first_field() of ResourceSpans, behind its schema_url where that comes first. */
static bool first_of_resource_spans(const uint8_t *p, const uint8_t *end, uint64_t *room, uint32_t *id,
                                    struct slice *payload, uint64_t *len)
{
    const uint8_t *start = p;
    while (first_field(p, end, *room - (uint64_t)(p - start), id, payload, len)) {
        if (*id != OTLP_RESOURCE_SPANS_SCHEMA_URL) {
            *room -= (uint64_t)(p - start);
            return true;
        }
        if (payload->len < *len)
            return false;
        p = payload->p + *len;
    }
    return false;
}

/* Whether a resource has no attributes: nothing, or only how many were dropped. */
static bool has_no_attributes(struct slice resource, uint64_t len)
{
    enum { DROPPED_TAG = OTLP_RESOURCE_DROPPED_ATTRIBUTES_COUNT << 3 };
    return !len || (resource.len == len && resource.p[0] == DROPPED_TAG);
}

/* Whether a message of `len` bytes, of which the head may hold a part, begins as TracesData does. */
static bool begins_as_traces(struct slice head, uint64_t len)
{
    struct slice spans, inner;
    uint64_t spans_len, inner_len;
    uint32_t id;
    do { /* the first ones may be empty */
        if (!head.len || !first_field(head.p, head.p + head.len, len, &id, &spans, &spans_len) ||
            id != OTLP_TRACES_DATA_RESOURCE_SPANS)
            return false;
        len -= (uint64_t)(spans.p - head.p);
        head = slice_of(spans.p, head.len - (size_t)(spans.p - head.p));
    } while (!spans_len);
    if (!first_of_resource_spans(spans.p, spans.p + spans.len, &spans_len, &id, &inner, &inner_len))
        return false;
    if (id == OTLP_RESOURCE_SPANS_RESOURCE && !has_no_attributes(inner, inner_len))
        return begins_with_attribute(inner, inner_len);
    if (id == OTLP_RESOURCE_SPANS_RESOURCE) {
        const uint8_t *p = inner.p + inner_len;
        spans_len -= (uint64_t)(p - spans.p);
        if (!first_of_resource_spans(p, spans.p + spans.len, &spans_len, &id, &inner, &inner_len))
            return false;
    }
    return id == OTLP_RESOURCE_SPANS_SCOPE_SPANS && begins_as_scope_spans(inner, inner_len);
}

static bool is_zstd(struct slice head)
{
    return slice_starts(head, "\x28\xb5\x2f\xfd");
}

enum otlp_framing otlp_framing_of(struct slice head)
{
    enum { PREFIX = 4, SMALLEST = 8 };
    if (begins_as_traces(head, UINT64_MAX))
        return OTLP_BARE;
    if (head.len > PREFIX) {
        uint64_t n = (uint64_t)head.p[0] << 24 | (uint64_t)head.p[1] << 16 | (uint64_t)head.p[2] << 8 | head.p[3];
        struct slice rest = slice_of(head.p + PREFIX, head.len - PREFIX);
        if (n >= SMALLEST && (begins_as_traces(rest, n) || (is_zstd(rest) && head.p[0] < ' ')))
            return OTLP_BIG_ENDIAN_32;
    }
    const uint8_t *p = head.p, *end = head.p + head.len;
    uint64_t n;
    if (head.len && pb_varint(&p, end, &n) && n >= SMALLEST && begins_as_traces(slice_of(p, (size_t)(end - p)), n))
        return OTLP_VARINT;
    return OTLP_NOT;
}
