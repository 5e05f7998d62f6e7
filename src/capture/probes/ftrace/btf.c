/* Reads BTF. */
#include "capture/probes/ftrace/btf.h"

#include "base/vec.h"

enum {
    MAGIC = 0xEB9F,
    HEADER_BYTES = 24,
    TYPE_BYTES = 12,
    MEMBER_BYTES = 12,
    MAX_NESTING = 16, /* anonymous structs and unions inside each other */
};

enum kind { KIND_STRUCT = 4, KIND_UNION = 5, KINDS = 20 };

/* Bytes behind a type: so many for itself, and for each of its parts. */
static const struct {
    uint8_t fixed, part;
} extra[KINDS] = {
    [1] = {4, 0},            /* int */
    [3] = {12, 0},           /* array */
    [4] = {0, MEMBER_BYTES}, /* struct */
    [5] = {0, MEMBER_BYTES}, /* union */
    [6] = {0, 8},            /* enum */
    [13] = {0, 8},           /* function prototype */
    [14] = {4, 0},           /* variable */
    [15] = {0, 12},          /* section */
    [17] = {4, 0},           /* tag of a declaration */
    [19] = {0, 12},          /* enum of 64 bits */
};

struct btf {
    struct slice types, strings;
    VEC(uint32_t)
    at; /* where type k + 1 begins; type 0 is void */
};

static uint32_t load(struct slice s, size_t at)
{
    uint32_t v = 0;
    if (at <= s.len && s.len - at >= sizeof v)
        memcpy(&v, s.p + at, sizeof v);
    return v;
}

static unsigned kind_of(uint32_t info)
{
    return info >> 24 & 0x1f;
}

static const char *name_at(const struct btf *b, uint32_t offset)
{
    bool ends = offset < b->strings.len && memchr(b->strings.p + offset, 0, b->strings.len - offset);
    return ends ? (const char *)b->strings.p + offset : "";
}

static bool section(struct slice file, uint32_t header, uint32_t offset, uint32_t len, struct slice *out)
{
    uint64_t begin = (uint64_t)header + offset;
    if (begin > file.len || len > file.len - begin)
        return false;
    *out = slice_of(file.p + begin, len);
    return true;
}

/* Finds where each type begins: they follow each other without an index. */
static int index_types(struct btf *b, struct error *err)
{
    for (size_t at = 0; at < b->types.len;) {
        uint32_t info = load(b->types, at + 4);
        unsigned kind = kind_of(info);
        if (b->types.len - at < TYPE_BYTES || kind == 0 || kind >= KINDS)
            return error_set(err, -MRD_EFORMAT, "BTF: type %zu is of unknown kind %u", b->at.n + 1, kind);
        if (!vec_push(&b->at, (uint32_t)at))
            return error_set(err, -MRD_ENOMEM, "out of memory for BTF");
        at += TYPE_BYTES + extra[kind].fixed + (size_t)extra[kind].part * (info & 0xffff);
        if (at > b->types.len)
            return error_set(err, -MRD_EFORMAT, "BTF: type %zu ends behind the types", b->at.n);
    }
    return 0;
}

static int open_btf(struct btf *b, struct slice file, struct error *err)
{
    uint16_t magic = 0;
    if (file.len >= HEADER_BYTES)
        memcpy(&magic, file.p, sizeof magic);
    uint32_t header = load(file, 4);
    if (magic != MAGIC || !section(file, header, load(file, 8), load(file, 12), &b->types) ||
        !section(file, header, load(file, 16), load(file, 20), &b->strings))
        return error_set(err, -MRD_EFORMAT, "the BTF data has another byte order than this machine");
    return index_types(b, err);
}

/* A member by its name. Members of a struct of C, and of the anonymous ones inside it, have different names, so a
 * search sees each member of the file once: one that sees more goes through types that hold themselves. */
struct search {
    const struct btf *btf;
    const char *name;
    size_t left;   /* members that it may still look at */
    uint64_t bits; /* where the member was found */
};

/* Looks in the struct or union at `at`, which lies `base` bits into the one asked for. */
static bool find_member(struct search *s, uint32_t at, uint64_t base, int depth)
{
    const struct btf *b = s->btf;
    uint32_t info = load(b->types, at + 4);
    bool has_bitfields = info >> 31;
    for (uint32_t i = 0; i < (info & 0xffff) && s->left > 0; i++) {
        size_t member = at + TYPE_BYTES + (size_t)MEMBER_BYTES * i;
        const char *own = name_at(b, load(b->types, member));
        uint32_t type = load(b->types, member + 4), where = load(b->types, member + 8);
        s->left--;
        if (has_bitfields && where >> 24)
            continue;
        uint64_t offset = base + (has_bitfields ? where & 0xffffff : where);
        if (*own) {
            if (strcmp(own, s->name) == 0)
                return s->bits = offset, true;
            continue;
        }
        unsigned kind = type && type <= b->at.n ? kind_of(load(b->types, b->at.p[type - 1] + 4)) : 0;
        if ((kind == KIND_STRUCT || kind == KIND_UNION) && depth < MAX_NESTING &&
            find_member(s, b->at.p[type - 1], offset, depth + 1))
            return true;
    }
    return false;
}

static int find_in_struct(const struct btf *b, const char *type, const char *member, uint32_t *offset,
                          struct error *err)
{
    for (size_t i = 0; i < b->at.n; i++) {
        uint32_t at = b->at.p[i], info = load(b->types, at + 4);
        struct search s = {.btf = b, .name = member, .left = b->types.len / MEMBER_BYTES};
        if (kind_of(info) != KIND_STRUCT || strcmp(name_at(b, load(b->types, at)), type) != 0)
            continue;
        if (!find_member(&s, at, 0, 0) || s.bits % 8 || s.bits / 8 > UINT32_MAX)
            return error_set(err, -MRD_ENOTFOUND, "this kernel's struct %s has no %s", type, member);
        *offset = (uint32_t)(s.bits / 8);
        return 0;
    }
    return error_set(err, -MRD_ENOTFOUND, "this kernel has no struct %s", type);
}

int btf_member_offset(struct slice file, const char *type, const char *member, uint32_t *offset, struct error *err)
{
    struct btf b = {0};
    int rc = open_btf(&b, file, err);
    if (!rc)
        rc = find_in_struct(&b, type, member, offset, err);
    vec_free(&b.at);
    return rc;
}
