/* Runs programs: one kernel event in, one FtraceEvent out. */
#include "kernel/event_program.h"

#include "kernel/encode.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <inttypes.h>
#include <stdio.h>

static inline uint8_t *put_tag(uint8_t *q, const struct program_step *s)
{
    memcpy(q, s->tag, 3);
    return q + s->tag_len;
}

uint64_t event_program_device(uint32_t kernel_device)
{
    uint64_t major = kernel_device >> 20, minor = kernel_device & 0xfffff;
    return (minor & 0xff) | (major & 0xfff) << 8 | (minor & ~0xffull) << 12 | (major & ~0xfffull) << 32;
}

static uint64_t address(const struct program_context *ctx, uint64_t pointer)
{
    return ctx->addresses && pointer ? address_table_number(ctx->addresses, pointer + ctx->address_shift) : 0;
}

/* A pointer of the kernel, which may have 4 bytes. */
static uint64_t pointer_of(const struct program_step *s, const uint8_t *p)
{
    return s->size == 4 ? load_u32(p) : load_u64(p);
}

/* The integer of a step, widened to 64 bits. */
static inline uint64_t integer(const struct program_step *s, const struct program_context *ctx, const uint8_t *p)
{
    switch (s->code) {
    case STEP_U8:
        return *p;
    case STEP_U16: {
        uint16_t v;
        memcpy(&v, p, 2);
        return v;
    }
    case STEP_U32:
        return load_u32(p);
    case STEP_S8:
        return (uint64_t)(int64_t)(int8_t)*p;
    case STEP_S16: {
        int16_t v;
        memcpy(&v, p, 2);
        return (uint64_t)(int64_t)v;
    }
    case STEP_S32:
        return (uint64_t)(int64_t)(int32_t)load_u32(p);
    case STEP_DEV:
        return event_program_device(load_u32(p));
    case STEP_ADDRESS32:
        return address(ctx, load_u32(p));
    case STEP_ADDRESS:
        return address(ctx, load_u64(p));
    default:
        return load_u64(p);
    }
}

enum { HEX_BYTES = 2 + 16 + 1 };

/* The name of the function that a pointer leads into, or its number written to `hex`. */
static struct slice symbol_of(const struct program_context *ctx, uint64_t pointer, char hex[HEX_BYTES])
{
    const char *name = ctx->kernel ? kernel_symbols_find(ctx->kernel, pointer + ctx->address_shift) : NULL;
    if (name)
        return slice_of(name, strnlen(name, STEP_STRING_MAX));
    return slice_of(hex, (size_t)snprintf(hex, HEX_BYTES, "0x%" PRIx64, pointer));
}

/* The bytes of a string or bytes step; false when they lie outside the event. p NULL: there is nothing to write. `hex`
 * has room for a number. */
static bool bytes_of(const struct program_step *s, const struct program_context *ctx, const uint8_t *event,
                     uint32_t size, char hex[HEX_BYTES], struct slice *out)
{
    const uint8_t *p = event + s->offset;
    size_t len = s->size;
    bool to_nul = true;
    switch (s->code) {
    case STEP_BYTES:
        to_nul = false;
        break;
    case STEP_TAIL_CHARS:
        len = size - s->offset;
        break;
    case STEP_STRING_PTR: {
        const char *text = ctx->printk ? printk_formats_find(ctx->printk, pointer_of(s, p)) : NULL;
        *out = text ? slice_of(text, strnlen(text, STEP_STRING_MAX)) : slice_of(NULL, 0);
        return true;
    }
    case STEP_SYMBOL:
        *out = symbol_of(ctx, pointer_of(s, p), hex);
        return true;
    case STEP_LOC_BYTES:
    case STEP_LOC_CHARS:
    case STEP_REL_BYTES:
    case STEP_REL_CHARS: {
        uint32_t loc = load_u32(p);
        uint32_t at = loc & 0xffff;
        len = loc >> 16;
        if (s->code >= STEP_REL_CHARS)
            at += s->offset + 4u;
        if (at > size || len > size - at)
            return false;
        p = event + at;
        to_nul = s->code == STEP_LOC_CHARS || s->code == STEP_REL_CHARS;
        break;
    }
    default:
        break;
    }
    const uint8_t *nul = to_nul && len ? memchr(p, 0, len) : NULL;
    *out = slice_of(p, nul ? (size_t)(nul - p) : len);
    return true;
}

static uint8_t *array(const struct program_step *s, const uint8_t *p, uint8_t *q)
{
    for (unsigned i = 0; i < s->size; i++) {
        q = put_tag(q, s);
        if (s->code == STEP_ARRAY_U64)
            q = encode_varint(q, load_u64(p + 8 * i));
        else
            q = encode_varint(q, load_u32(p + 4 * i));
    }
    return q;
}

static inline uint8_t *run_steps(const struct event_program *p, const struct program_context *ctx, const uint8_t *event,
                                 uint32_t size, uint8_t *q)
{
    const struct program_step *s = p->steps, *end = s + p->n_steps;
    for (; s < end; s++) {
        if (s->code <= STEP_ADDRESS) {
            uint64_t v = integer(s, ctx, event + s->offset);
            q = put_tag(q, s);
            q = encode_varint(q, s->truncate ? (uint32_t)v : v);
        } else if (s->code < STEP_ARRAY_U64) {
            struct slice text;
            char hex[HEX_BYTES];
            if (!bytes_of(s, ctx, event, size, hex, &text))
                return NULL;
            if (text.p) {
                q = put_tag(q, s);
                q = encode_bytes(q, text.p, text.len);
            }
        } else {
            q = array(s, event + s->offset, q);
        }
    }
    return q;
}

/* GenericFtraceEvent.Field: 1 name, 3 string, 4 signed, 5 unsigned value. */
static uint8_t *run_legacy(const struct event_program *p, const struct program_context *ctx, const uint8_t *event,
                           uint32_t size, uint8_t *q)
{
    for (const struct program_step *s = p->steps; s < p->steps + p->n_steps; s++) {
        struct slice text = {NULL, 0};
        char hex[HEX_BYTES];
        if (s->code > STEP_ADDRESS && !bytes_of(s, ctx, event, size, hex, &text))
            return NULL;
        *q++ = FTRACE_GENERIC_FIELD << 3 | PB_BYTES;
        uint8_t *length = q++;
        *q++ = GENERIC_FTRACE_EVENT_FIELD_NAME << 3 | PB_BYTES;
        q = encode_bytes(q, s->name, strlen(s->name));
        if (s->code > STEP_ADDRESS) {
            *q++ = GENERIC_FTRACE_EVENT_FIELD_STR_VALUE << 3 | PB_BYTES;
            q = encode_bytes(q, text.p, text.len);
        } else {
            *q++ = (s->code >= STEP_S8 && s->code <= STEP_S64 ? GENERIC_FTRACE_EVENT_FIELD_INT_VALUE
                                                              : GENERIC_FTRACE_EVENT_FIELD_UINT_VALUE)
                   << 3;
            q = encode_varint(q, integer(s, ctx, event + s->offset));
        }
        q = encode_end(length, q);
    }
    return q;
}

/* As run_steps() where all are words: system calls. */
static inline uint8_t *run_words(const struct event_program *p, const uint8_t *event, uint8_t *q)
{
    for (const struct program_step *s = p->steps, *end = s + p->n_steps; s < end; s++) {
        const uint8_t *at = event + s->offset;
        for (unsigned n = s->code == STEP_ARRAY_U64 ? s->size : 1; n; n--, at += sizeof(uint64_t)) {
            *q++ = s->tag[0];
            q = encode_varint(q, load_u64(at));
        }
    }
    return q;
}

static __attribute__((noinline)) uint8_t *run_any(const struct event_program *p, const struct program_context *ctx,
                                                  const uint8_t *event, uint32_t size, uint8_t *q)
{
    if (p->constant_len) {
        memcpy(q, p->constant, p->constant_len);
        q += p->constant_len;
    }
    if (__builtin_expect(p->kind == PROGRAM_GENERIC_LEGACY, 0))
        return run_legacy(p, ctx, event, size, q);
    return run_steps(p, ctx, event, size, q);
}

static inline uint8_t *payload(const struct event_program *p, const struct program_context *ctx, const uint8_t *event,
                               uint32_t size, uint8_t *q)
{
    return p->of_words ? run_words(p, event, q) : run_any(p, ctx, event, size, q);
}

uint8_t *event_program_payload(const struct event_program *p, const struct program_context *ctx, const uint8_t *event,
                               uint32_t size, uint8_t *q)
{
    return size < p->min_size ? NULL : payload(p, ctx, event, size, q);
}

uint8_t *event_program_run(const struct event_program *p, const struct program_context *ctx, const uint8_t *event,
                           uint32_t size, uint64_t timestamp, uint8_t *q)
{
    if (__builtin_expect(size < p->min_size, 0))
        return NULL;
    *q++ = FTRACE_EVENT_BUNDLE_EVENT << 3 | PB_BYTES;
    uint8_t *outer = q++;
    *q++ = FTRACE_EVENT_TIMESTAMP << 3;
    q = encode_varint(q, timestamp);
    *q++ = FTRACE_EVENT_PID << 3;
    q = encode_varint(q, load_u32(event + p->pid_offset));
    memcpy(q, p->tag, 4);
    q += p->tag_len;
    uint8_t *inner = q++;
    q = payload(p, ctx, event, size, q);
    if (!q)
        return NULL;
    /* both lengths were given one byte: when the inner message needs more, everything behind it moves once */
    q = encode_end(inner, q);
    return encode_end(outer, q);
}
