/* Reads JSON values of CTF 2 metadata. */
#include "importer/ctf/ctf2_internal.h"

#include <string.h>

static const char *const names[CTF2_KEYS] = {
#define KEY(NAME, text) text,
#include "importer/ctf/ctf2_keys.def"
#undef KEY
};

static int key_of(struct json_text key)
{
    for (int i = 0; i < CTF2_KEYS; i++)
        if (json_text_is(key, names[i]))
            return i;
    return -1;
}

bool ctf2_read_object(struct tsdl_parser *p, struct slice json, const char *what, struct ctf2_object *o)
{
    struct json_reader r = json_reader(json);
    struct json_text key;
    *o = (struct ctf2_object){0};
    if (p->rc)
        return false;
    if (json_peek(&r) != '{' || !json_enter(&r, '{')) {
        tsdl_fail(p, "%s is not an object", what);
        return false;
    }
    while (json_member(&r, &key)) {
        struct slice value;
        int k = key_of(key);
        tsdl_work(p, 1);
        if (json_skip(&r, &value) && k >= 0)
            o->at[k] = value; /* of equal keys the last one counts */
    }
    if (r.status != JSON_OK)
        tsdl_fail(p, "%s: %s", what, json_error_text(&r));
    return !p->rc;
}

bool ctf2_need(struct tsdl_parser *p, const struct ctf2_object *o, enum ctf2_key key)
{
    if (!o->at[key].len)
        tsdl_fail(p, "the property '%s' is missing", names[key]);
    return !p->rc;
}

const char *ctf2_text(struct tsdl_parser *p, struct slice json)
{
    struct json_reader r = json_reader(json);
    struct json_text text;
    if (!json.len || p->rc)
        return NULL;
    if (json_peek(&r) != '"' || !json_string(&r, &text)) {
        tsdl_fail(p, "a text was expected");
        return NULL;
    }
    char *out = arena_alloc_bytes(&p->m->arena, text.raw.len + 1);
    size_t n = out ? json_unescape(text, JSON_TOLERANT, out) : SIZE_MAX;
    if (n == SIZE_MAX) {
        tsdl_fail(p, "invalid text");
        return NULL;
    }
    out[n] = '\0';
    return out;
}

bool ctf2_number(struct tsdl_parser *p, struct json_reader *r, int64_t *out)
{
    struct json_number n;
    r->whole = true;
    if (p->rc || !json_read_number(r, &n) || !n.integer || !n.whole_exact) {
        tsdl_fail(p, "an integer was expected");
        return false;
    }
    *out = (int64_t)(n.negative ? 0 - n.whole : n.whole);
    return true;
}

int64_t ctf2_int(struct tsdl_parser *p, struct slice json, int64_t otherwise)
{
    struct json_reader r = json_reader(json);
    int64_t v = otherwise;
    if (json.len && !p->rc)
        ctf2_number(p, &r, &v);
    return v;
}

uint64_t ctf2_uint(struct tsdl_parser *p, struct slice json, uint64_t otherwise)
{
    if (json.len && json.p[0] == '-')
        tsdl_fail(p, "a number that is not negative was expected");
    return (uint64_t)ctf2_int(p, json, (int64_t)otherwise);
}
