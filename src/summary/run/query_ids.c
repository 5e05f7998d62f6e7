/* Walks messages by their descriptors: a new kind of source needs nothing here. */
#include "summary/run/query_ids.h"

#include "schema/structured_query.pb-c.h"

static const void *member(const ProtobufCMessage *m, unsigned offset)
{
    return (const char *)m + offset;
}

/* Is the field there? Of a oneof, only one is. */
static bool is_set(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const uint32_t *)member(m, f->quantifier_offset) == f->id;
    return true;
}

static bool collect_field(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, struct query_ids *out)
{
    if (f->type != PROTOBUF_C_TYPE_MESSAGE || !is_set(m, f))
        return true;
    if (f->label != PROTOBUF_C_LABEL_REPEATED) {
        const ProtobufCMessage *sub = *(const ProtobufCMessage *const *)member(m, f->offset);
        return !sub || query_ids_collect(sub, out);
    }
    size_t n = *(const size_t *)member(m, f->quantifier_offset);
    const ProtobufCMessage *const *subs = *(const ProtobufCMessage *const *const *)member(m, f->offset);
    for (size_t i = 0; i < n; i++)
        if (!query_ids_collect(subs[i], out))
            return false;
    return true;
}

bool query_ids_collect(const ProtobufCMessage *message, struct query_ids *out)
{
    if (message->descriptor == &mrd__perfetto_sql_structured_query__descriptor) {
        const Mrd__PerfettoSqlStructuredQuery *q = (const Mrd__PerfettoSqlStructuredQuery *)message;
        if (q->source_case == MRD__PERFETTO_SQL_STRUCTURED_QUERY__SOURCE_INNER_QUERY_ID && q->inner_query_id &&
            !vec_push(out, q->inner_query_id))
            return false;
    }
    for (unsigned i = 0; i < message->descriptor->n_fields; i++)
        if (!collect_field(message, &message->descriptor->fields[i], out))
            return false;
    return true;
}
