/* The type declarations of TSDL: integers, floats, strings, enums, structs, variants, arrays, aliases. */
#include "importer/ctf/tsdl_internal.h"

#include <stdio.h>
#include <string.h>

struct ctf_type *ctf_new_type(struct tsdl_parser *p, enum ctf_kind kind, uint32_t align)
{
    struct ctf_type *t = tsdl_alloc(p, sizeof *t);
    if (t) {
        t->kind = kind;
        t->align = align;
        t->path_slot = CTF_NO_SLOT;
    }
    return t;
}

/* Fills depth, weight and min_bits once all parts are there. A few lines of metadata can nest empty structs into more
 * steps than a computer can make, so what costs no bits is counted and bounded. Long: a case for each kind. */
struct ctf_type *ctf_measured(struct tsdl_parser *p, struct ctf_type *t)
{
    uint64_t weight = 1, bits = 0;
    uint32_t depth = 0;
    if (p->rc || !t)
        return NULL;
    switch (t->kind) {
    case CTF_INTEGER:
    case CTF_ENUM:
        bits = t->integer.bits;
        break;
    case CTF_FLOAT:
        bits = t->real.bits;
        break;
    case CTF_STRING:
    case CTF_VARIABLE:
        bits = 8;
        break;
    case CTF_TEXT:
    case CTF_BLOB:
        bits = t->text.length * (uint64_t)8;
        break;
    case CTF_OPTIONAL:
        depth = t->list.element->depth + 1;
        weight += t->list.element->weight;
        break;
    case CTF_ARRAY:
        bits = t->list.element->min_bits * t->list.length;
        depth = t->list.element->depth + 1;
        weight += t->list.element->weight * (uint64_t)(t->list.element->min_bits ? 1 : t->list.length);
        break;
    case CTF_SEQUENCE:
        depth = t->list.element->depth + 1;
        weight += t->list.element->weight;
        if (!t->list.element->min_bits && !p->is_ctf2) /* there: see CTF_MAX_EMPTY */
            tsdl_fail(p, "a sequence of elements that take no space");
        break;
    case CTF_STRUCT:
    case CTF_VARIANT:
        tsdl_work(p, t->compound.n);
        if (t->kind == CTF_VARIANT)
            bits = t->compound.n ? UINT32_MAX : 0;
        for (uint32_t i = 0; i < t->compound.n; i++) {
            const struct ctf_type *part = t->compound.fields[i].type;
            depth = part->depth + 1 > depth ? part->depth + 1 : depth;
            weight += part->weight;
            if (t->kind == CTF_STRUCT)
                bits += part->min_bits;
            else if (part->min_bits < bits)
                bits = part->min_bits;
        }
        break;
    }
    if (depth > CTF_MAX_DEPTH)
        tsdl_fail(p, "types nest too deeply");
    else if (weight > CTF_MAX_WEIGHT)
        tsdl_fail(p, "type is too complex");
    t->depth = depth;
    t->weight = (uint32_t)weight;
    t->min_bits = bits > UINT32_MAX ? UINT32_MAX : bits;
    return p->rc ? NULL : t;
}

bool ctf_valid_align(struct tsdl_parser *p, uint64_t align)
{
    if (align >= 1 && align <= CTF_MAX_ALIGN && (align & (align - 1)) == 0)
        return true;
    tsdl_fail(p, "alignment %llu is not a power of two up to %d", (unsigned long long)align, CTF_MAX_ALIGN);
    return false;
}

/* "native" stays open until the trace block has said what it is, which may come later. */
static bool byte_order(struct ctf_type *t, const char *text)
{
    t->native_order = strcmp(text, "native") == 0;
    return strcmp(text, "be") == 0 || strcmp(text, "network") == 0;
}

static int find_clock(struct tsdl_parser *p, const char *path)
{
    /* clock.NAME.value */
    const char *from = strchr(path, '.');
    const char *to = from ? strchr(from + 1, '.') : NULL;
    tsdl_work(p, p->m->clocks.n);
    for (size_t i = 0; to && i < p->m->clocks.n; i++)
        if (strlen(p->m->clocks.p[i].name) == (size_t)(to - from - 1) &&
            memcmp(p->m->clocks.p[i].name, from + 1, (size_t)(to - from - 1)) == 0)
            return (int)i;
    return -1;
}

static bool is_true(const struct tsdl_value *v)
{
    return v->is_number ? v->number != 0 : strcmp(v->text, "true") == 0 || strcmp(v->text, "TRUE") == 0;
}

static struct ctf_type *parse_integer(struct tsdl_parser *p)
{
    struct ctf_type *t = ctf_new_type(p, CTF_INTEGER, 0);
    if (!t || !tsdl_expect(p, '{'))
        return NULL;
    t->integer.clock = -1;
    t->integer.base = 10;
    t->native_order = true;
    uint64_t size = 0, align = 0;
    while (!p->rc && !tsdl_take(p, '}')) {
        const char *name;
        struct tsdl_value v;
        if (!tsdl_attribute(p, &name, &v))
            return NULL;
        if (strcmp(name, "size") == 0)
            size = v.number;
        else if (strcmp(name, "align") == 0)
            align = v.number;
        else if (strcmp(name, "signed") == 0)
            t->integer.is_signed = is_true(&v);
        else if (strcmp(name, "byte_order") == 0)
            t->integer.big_endian = byte_order(t, v.text);
        else if (strcmp(name, "base") == 0)
            t->integer.base = (uint8_t)(v.is_number                                      ? v.number
                                        : v.text[0] == 'x' || strcmp(v.text, "hex") == 0 ? 16
                                                                                         : 10);
        else if (strcmp(name, "encoding") == 0)
            t->integer.is_text = strcmp(v.text, "UTF8") == 0 || strcmp(v.text, "ASCII") == 0;
        else if (strcmp(name, "map") == 0)
            t->integer.clock = (int16_t)find_clock(p, v.text);
    }
    if (size < 1 || size > 64) {
        tsdl_fail(p, "integer of %llu bits (1 to 64 are supported)", (unsigned long long)size);
        return NULL;
    }
    if (!align)
        align = size % 8 == 0 ? 8 : 1;
    if (!ctf_valid_align(p, align))
        return NULL;
    t->integer.bits = (uint8_t)size;
    t->align = (uint32_t)align;
    return ctf_measured(p, t);
}

static struct ctf_type *parse_float(struct tsdl_parser *p)
{
    struct ctf_type *t = ctf_new_type(p, CTF_FLOAT, 8);
    if (!t || !tsdl_expect(p, '{'))
        return NULL;
    t->native_order = true;
    uint64_t exponent = 0, mantissa = 0, align = 8;
    while (!p->rc && !tsdl_take(p, '}')) {
        const char *name;
        struct tsdl_value v;
        if (!tsdl_attribute(p, &name, &v))
            return NULL;
        if (strcmp(name, "exp_dig") == 0)
            exponent = v.number;
        else if (strcmp(name, "mant_dig") == 0)
            mantissa = v.number;
        else if (strcmp(name, "align") == 0)
            align = v.number;
        else if (strcmp(name, "byte_order") == 0)
            t->real.big_endian = byte_order(t, v.text);
    }
    if (!((exponent == 8 && mantissa == 24) || (exponent == 11 && mantissa == 53)))
        tsdl_fail(p, "only 32-bit and 64-bit IEEE floats are supported");
    if (p->rc || !ctf_valid_align(p, align))
        return NULL;
    t->real.bits = exponent == 8 ? 32 : 64;
    t->align = (uint32_t)align;
    return ctf_measured(p, t);
}

static struct ctf_type *parse_string(struct tsdl_parser *p)
{
    if (tsdl_take(p, '{')) {
        while (!p->rc && !tsdl_take(p, '}')) {
            const char *name;
            struct tsdl_value v;
            tsdl_attribute(p, &name, &v);
        }
    }
    return p->rc ? NULL : ctf_measured(p, ctf_new_type(p, CTF_STRING, 8));
}

static struct ctf_type *find_alias(struct tsdl_parser *p, const char *name)
{
    tsdl_work(p, p->aliases.n);
    for (size_t i = p->aliases.n; i-- > 0;)
        if (strcmp(p->aliases.p[i].name, name) == 0)
            return p->aliases.p[i].type;
    return NULL;
}

static void add_alias(struct tsdl_parser *p, const char *name, struct ctf_type *type)
{
    if (!p->rc && !vec_push(&p->aliases, (struct tsdl_alias){name, type}))
        tsdl_fail(p, "out of memory");
}

/* One or more words of a type name: "unsigned long". A word followed by what ends a declarator is the declarator. */
static const char *type_words(struct tsdl_parser *p)
{
    char words[128] = "";
    while (!p->rc && p->lex.token == TSDL_WORD) {
        char longer[sizeof words];
        int n = snprintf(longer, sizeof longer, "%s%s%s", words, *words ? " " : "", p->lex.text);
        if (n < 0 || (size_t)n >= sizeof longer) {
            tsdl_fail(p, "type name too long");
            return "";
        }
        if (*words && find_alias(p, words) && !find_alias(p, longer)) {
            /* "unsigned long x": the words so far name a type, with the next they do not */
            bool prefix = false;
            size_t len = strlen(longer);
            tsdl_work(p, p->aliases.n);
            for (size_t i = 0; i < p->aliases.n; i++)
                prefix |= strncmp(p->aliases.p[i].name, longer, len) == 0 && p->aliases.p[i].name[len] == ' ';
            if (!prefix)
                break;
        }
        memcpy(words, longer, sizeof words);
        tsdl_next(&p->lex);
    }
    const char *copy = arena_strndup(&p->m->arena, words, strlen(words));
    return copy ? copy : "";
}

/* Names that LTTng escapes with one leading underscore. */
static const char *plain_name(const char *name)
{
    return name[0] == '_' ? name + 1 : name;
}

/* { "[" length "]" } behind a declarator: arrays and sequences, the first bracket outermost. */
static struct ctf_type *parse_brackets(struct tsdl_parser *p, struct ctf_type *element, int depth)
{
    if (depth > CTF_MAX_DEPTH) {
        tsdl_fail(p, "types nest too deeply");
        return NULL;
    }
    if (!tsdl_take(p, '['))
        return p->rc ? NULL : element;
    struct ctf_type *t = ctf_new_type(p, CTF_ARRAY, 1);
    if (!t)
        return NULL;
    if (p->lex.token == TSDL_NUMBER) {
        if (p->lex.number > UINT32_MAX / 64)
            tsdl_fail(p, "array of %llu elements", (unsigned long long)p->lex.number);
        t->list.length = (uint32_t)p->lex.number;
        tsdl_next(&p->lex);
    } else {
        t->kind = CTF_SEQUENCE;
        t->path = tsdl_path(p);
    }
    if (!tsdl_expect(p, ']'))
        return NULL;
    t->list.element = parse_brackets(p, element, depth + 1);
    if (!t->list.element)
        return NULL;
    t->align = t->list.element->align;
    return ctf_measured(p, t);
}

/* Fields of a struct or options of a variant, up to "}". */
static bool parse_fields(struct tsdl_parser *p, struct ctf_type *t, int depth)
{
    VEC(struct ctf_field)
    fields = {0};
    while (!p->rc && !tsdl_take(p, '}')) {
        if (tsdl_take_word(p, "typealias")) {
            tsdl_typealias(p);
            continue;
        }
        if (tsdl_take_word(p, "typedef")) {
            tsdl_typedef(p);
            continue;
        }
        struct ctf_type *base = tsdl_type(p, depth + 1);
        do {
            if (p->rc || p->lex.token != TSDL_WORD) {
                tsdl_fail(p, "expected a field name");
                break;
            }
            const char *name = plain_name(p->lex.text);
            tsdl_next(&p->lex);
            struct ctf_type *type = parse_brackets(p, base, depth);
            if (!type)
                break;
            if (type->align > t->align && t->kind == CTF_STRUCT)
                t->align = type->align;
            if (!vec_push(&fields, (struct ctf_field){name, type, CTF_NO_SLOT, CTF_ROLE_NONE}))
                tsdl_fail(p, "out of memory");
        } while (tsdl_take(p, ','));
        tsdl_expect(p, ';');
    }
    if (!p->rc && fields.n) {
        t->compound.fields = tsdl_alloc(p, fields.n * sizeof *fields.p);
        if (t->compound.fields)
            memcpy(t->compound.fields, fields.p, fields.n * sizeof *fields.p);
        t->compound.n = (uint32_t)fields.n;
    }
    vec_free(&fields);
    return !p->rc;
}

/* The optional tag behind struct, variant or enum; "" when there is none. */
static const char *parse_tag(struct tsdl_parser *p, const char *keyword)
{
    if (p->lex.token != TSDL_WORD)
        return "";
    const char *tag = arena_printf(&p->m->arena, "%s %s", keyword, p->lex.text);
    tsdl_next(&p->lex);
    return tag ? tag : "";
}

static struct ctf_type *known(struct tsdl_parser *p, const char *tag)
{
    struct ctf_type *t = find_alias(p, tag);
    if (!t)
        tsdl_fail(p, "unknown type '%s'", tag);
    return t;
}

static struct ctf_type *parse_struct(struct tsdl_parser *p, int depth)
{
    const char *tag = parse_tag(p, "struct");
    if (!tsdl_take(p, '{'))
        return known(p, tag);
    struct ctf_type *t = ctf_new_type(p, CTF_STRUCT, 1);
    size_t outer = p->aliases.n; /* aliases made inside end with it */
    if (!t || !parse_fields(p, t, depth))
        return NULL;
    p->aliases.n = outer;
    if (tsdl_take_word(p, "align")) {
        uint64_t align;
        bool negative;
        if (!tsdl_expect(p, '(') || !tsdl_number(p, &align, &negative) || !tsdl_expect(p, ')') ||
            !ctf_valid_align(p, align))
            return NULL;
        if (align > t->align)
            t->align = (uint32_t)align;
    }
    if (*tag)
        add_alias(p, tag, t);
    return ctf_measured(p, t);
}

static struct ctf_type *parse_variant(struct tsdl_parser *p, int depth)
{
    const char *tag = parse_tag(p, "variant"), *path = "";
    if (tsdl_take(p, '<')) {
        path = tsdl_path(p);
        if (!tsdl_expect(p, '>'))
            return NULL;
    }
    struct ctf_type *t = ctf_new_type(p, CTF_VARIANT, 1);
    if (!t)
        return NULL;
    if (tsdl_take(p, '{')) {
        size_t outer = p->aliases.n;
        if (!parse_fields(p, t, depth))
            return NULL;
        p->aliases.n = outer;
        if (*tag)
            add_alias(p, tag, t);
    } else {
        struct ctf_type *declared = known(p, tag);
        if (!declared)
            return NULL;
        t = tsdl_copy_type(p, declared); /* a variant declared without its tag field: each use has its own */
        if (!t)
            return NULL;
    }
    if (*path)
        t->path = path;
    return ctf_measured(p, t);
}

static struct ctf_type *parse_enum(struct tsdl_parser *p, int depth)
{
    const char *tag = parse_tag(p, "enum");
    struct ctf_type *container = NULL;
    if (tsdl_take(p, ':')) {
        container = tsdl_type(p, depth + 1);
        if (container && container->kind != CTF_INTEGER)
            tsdl_fail(p, "an enum needs an integer to hold it");
    }
    if (p->rc)
        return NULL;
    if (!tsdl_take(p, '{'))
        return known(p, tag);
    if (!container)
        container = known(p, "int");
    struct ctf_type *t = container ? ctf_new_type(p, CTF_ENUM, container->align) : NULL;
    if (!t)
        return NULL;
    t->integer = container->integer;
    t->native_order = container->native_order;
    VEC(struct ctf_range)
    ranges = {0};
    int64_t next = 0;
    while (!p->rc && !tsdl_take(p, '}')) {
        if (p->lex.token != TSDL_WORD && p->lex.token != TSDL_TEXT) {
            tsdl_fail(p, "expected a label");
            break;
        }
        struct ctf_range r = {plain_name(p->lex.text), next, next, 0};
        tsdl_next(&p->lex);
        if (tsdl_take(p, '=')) {
            uint64_t v;
            bool negative;
            if (!tsdl_number(p, &v, &negative))
                break;
            r.lo = r.hi = (int64_t)(negative ? 0 - v : v);
            if (tsdl_take(p, TSDL_DOTS)) {
                if (!tsdl_number(p, &v, &negative))
                    break;
                r.hi = (int64_t)(negative ? 0 - v : v);
            }
        }
        next = (int64_t)((uint64_t)r.hi + 1);
        if (!vec_push(&ranges, r))
            tsdl_fail(p, "out of memory");
        if (!tsdl_take(p, ',')) {
            tsdl_expect(p, '}');
            break;
        }
    }
    ctf_keep_ranges(p, t, ranges.p, ranges.n);
    vec_free(&ranges);
    if (*tag)
        add_alias(p, tag, t);
    return ctf_measured(p, t);
}

struct ctf_type *tsdl_type(struct tsdl_parser *p, int depth)
{
    if (depth > CTF_MAX_DEPTH) {
        tsdl_fail(p, "types nest too deeply");
        return NULL;
    }
    if (tsdl_take_word(p, "integer"))
        return parse_integer(p);
    if (tsdl_take_word(p, "floating_point"))
        return parse_float(p);
    if (tsdl_take_word(p, "string"))
        return parse_string(p);
    if (tsdl_take_word(p, "struct"))
        return parse_struct(p, depth);
    if (tsdl_take_word(p, "variant"))
        return parse_variant(p, depth);
    if (tsdl_take_word(p, "enum"))
        return parse_enum(p, depth);
    if (!p->rc && p->lex.token != TSDL_WORD)
        tsdl_fail(p, "expected a type");
    const char *words = type_words(p);
    return p->rc ? NULL : known(p, words);
}

/* typealias TYPE [brackets] := NAME; */
void tsdl_typealias(struct tsdl_parser *p)
{
    struct ctf_type *t = tsdl_type(p, 0);
    if (!t || !tsdl_expect(p, TSDL_ASSIGN))
        return;
    char words[128] = "";
    while (p->lex.token == TSDL_WORD) {
        size_t n = strlen(words);
        snprintf(words + n, sizeof words - n, "%s%s", n ? " " : "", p->lex.text);
        tsdl_next(&p->lex);
    }
    const char *name = arena_strndup(&p->m->arena, words, strlen(words));
    if (!name || !*words)
        tsdl_fail(p, "expected a type name");
    else
        add_alias(p, name, t);
    tsdl_expect(p, ';');
}

/* typedef TYPE NAME; */
void tsdl_typedef(struct tsdl_parser *p)
{
    struct ctf_type *t = tsdl_type(p, 0);
    if (p->rc || p->lex.token != TSDL_WORD) {
        tsdl_fail(p, "expected a type name");
        return;
    }
    const char *name = p->lex.text;
    tsdl_next(&p->lex);
    t = parse_brackets(p, t, 0);
    if (t)
        add_alias(p, name, t);
    tsdl_expect(p, ';');
}
