/* The two packets in which a recorder hands on programs. */
#include "importer/protovm/protovm.h"

#include "wire/fields.h"

static struct protovms *protovms_of(struct importer *im)
{
    if (!im->protovms && !(im->protovms = protovms_open()))
        im->failed = true;
    return im->protovms;
}

static enum tokenize_result tokenize_trace_provenance(struct packet *p)
{
    struct protovms *v = protovms_of(p->m->im);
    if (v && !protovms_provenance(v, p->field))
        p->m->im->failed = true;
    return TOKENIZE_DONE;
}

static enum tokenize_result tokenize_protovms(struct packet *p)
{
    struct protovms *v = protovms_of(p->m->im);
    if (v && !protovms_add(v, p->m, p->field, p->byte_offset))
        p->m->im->failed = true;
    return TOKENIZE_DONE;
}

const struct packet_handler protovm_early_handlers[] = {
    {TRACE_PACKET_TRACE_PROVENANCE, "trace_provenance", tokenize_trace_provenance, NULL},
    {TRACE_PACKET_PROTOVMS, "protovms", tokenize_protovms, NULL},
    {0, NULL, NULL, NULL},
};
