/* The args of CTF events: kept as bytes where that is possible, decoded when a query asks. */
#include "importer/ctf/ctf_internal.h"

#include <stdio.h>

static void note(struct ctf_summary *s, uint64_t *bits, int slot)
{
    if (slot >= CTF_SUMMARY_SLOTS)
        s->overflow = true;
    else if (slot >= 0)
        bits[slot / 64] |= 1ull << (slot % 64);
}

/* The largest alignment anywhere inside a type, and which slots are set and used. Kept with the type: classes share
 * parts. NULL when out of memory. */
static const struct ctf_summary *summary_of(struct ctf_metadata *m, struct ctf_type *t)
{
    if (t->summary)
        return t->summary;
    struct ctf_summary *s = arena_zalloc(&m->arena, sizeof *s);
    if (!s)
        return NULL;
    bool compound = t->kind == CTF_STRUCT || t->kind == CTF_VARIANT,
         list = t->kind == CTF_ARRAY || t->kind == CTF_SEQUENCE || t->kind == CTF_OPTIONAL;
    s->align = t->align;
    if (t->path_slot != CTF_NO_SLOT)
        note(s, s->used, t->path_slot);
    for (uint32_t i = 0; i < (compound ? t->compound.n : list); i++) {
        if (compound)
            note(s, s->set, t->compound.fields[i].slot);
        struct ctf_type *inside = compound ? t->compound.fields[i].type : t->list.element;
        s->align = inside->align > s->align ? inside->align : s->align;
        if (inside->kind < CTF_STRUCT && inside->path_slot == CTF_NO_SLOT)
            continue;
        const struct ctf_summary *part = summary_of(m, inside);
        if (!part)
            return NULL;
        s->align = part->align > s->align ? part->align : s->align;
        s->overflow |= part->overflow;
        for (int k = 0; k < CTF_SUMMARY_SLOTS / 64; k++) {
            s->set[k] |= part->set[k];
            s->used[k] |= part->used[k];
        }
    }
    return t->summary = s;
}

bool ctf_fields_position_free(struct ctf_metadata *m, const struct ctf_event_class *class)
{
    if (!class->fields)
        return true;
    const struct ctf_summary *s = summary_of(m, class->fields);
    if (!s)
        return false;
    for (int k = 0; k < CTF_SUMMARY_SLOTS / 64; k++)
        if (s->used[k] & ~s->set[k])
            return false;
    return s->align <= 8 && !s->overflow;
}

enum { KEY_MAX = 256 };

struct key_level {
    size_t len, flat_len; /* of the keys outside */
    uint32_t index;       /* next element, in a list */
    bool is_list;
};

/* All labels of a value, or of its bits, joined by commas; the length. */
static size_t labels_of(const struct ctf_type *t, int64_t value, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    const struct ctf_ranges near = ctf_ranges_near(t, value);
    for (uint32_t i = 0; i < near.n && n + 1 < size; i++) {
        const struct ctf_range *r = &near.p[i];
        bool fits = false;
        for (int64_t bit = r->lo; t->integer.is_flags && bit <= r->hi && bit < 64 && bit >= 0; bit++)
            fits |= (uint64_t)value >> bit & 1;
        if (!t->integer.is_flags)
            fits = ctf_in_range(t, value, r->lo, r->hi);
        if (fits)
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? "," : "", r->label);
    }
    return n < size ? n : size - 1;
}

/* CTF 2: the number, and its labels under a key below. */
static void push_number_and_labels(struct args *a, struct arg_list *out, const char *key, const char *flat_key,
                                   const struct ctf_item *item)
{
    char text[KEY_MAX], below[KEY_MAX + 8], flat_below[KEY_MAX + 8], hex[24];
    const char *what = item->type->integer.is_flags ? "flags" : "name";
    strid k = strpool_intern_str(a->strings, key), f = strpool_intern_str(a->strings, flat_key);
    if (item->type->integer.is_flags) {
        snprintf(hex, sizeof hex, "0x%llx", (unsigned long long)item->u);
        arg_list_add(a, out, f, k, ARG_STRING, strpool_intern_str(a->strings, hex));
    } else {
        arg_list_add(a, out, f, k, item->kind == CTF_ITEM_INT ? ARG_INT : ARG_UINT, item->i);
    }
    if (!labels_of(item->type, item->i, text, sizeof text))
        return;
    snprintf(below, sizeof below, "%s.%s", key, what);
    snprintf(flat_below, sizeof flat_below, "%s.%s", flat_key, what);
    arg_list_add(a, out, strpool_intern_str(a->strings, flat_below), strpool_intern_str(a->strings, below), ARG_STRING,
                 strpool_intern_str(a->strings, text));
}

/* Hexadecimal digits of a short blob; of a longer one what it is. */
static strid blob_text(struct args *a, const struct ctf_item *item)
{
    enum { SHOWN = 64 };
    char text[SHOWN * 2 + 1] = "";
    if (item->text.len > SHOWN)
        snprintf(text, sizeof text, "%zu bytes of %.80s", item->text.len, item->type->text.media_type);
    for (size_t i = 0; item->text.len <= SHOWN && i < item->text.len; i++)
        snprintf(text + 2 * i, 3, "%02x", item->text.p[i]);
    return strpool_intern_str(a->strings, text);
}

static strid text_of(struct args *a, const struct ctf_item *item)
{
    char *utf8 = ctf_text_utf8(item);
    strid id = utf8 ? strpool_intern_str(a->strings, utf8) : strpool_intern(a->strings, item->text.p, item->text.len);
    mem_free(utf8);
    return id;
}

static void push_arg(struct args *a, struct arg_list *out, const char *key, const char *flat_key,
                     const struct ctf_item *item)
{
    strid k = strpool_intern_str(a->strings, key),
          f = strcmp(key, flat_key) ? strpool_intern_str(a->strings, flat_key) : k;
    const char *label;
    switch (item->kind) {
    case CTF_ITEM_TEXT:
        arg_list_add(a, out, f, k, ARG_STRING, text_of(a, item));
        break;
    case CTF_ITEM_BLOB:
        arg_list_add(a, out, f, k, ARG_STRING, blob_text(a, item));
        break;
    case CTF_ITEM_REAL:
        arg_list_add(a, out, f, k, ARG_REAL, column_f64_word(item->d));
        break;
    default:
        if (item->type->integer.names_apart && item->type->integer.n_ranges) {
            push_number_and_labels(a, out, key, flat_key, item);
            break;
        }
        label = item->type->kind == CTF_ENUM ? ctf_enum_label(item->type, item->i) : NULL;
        if (label)
            arg_list_add(a, out, f, k, ARG_STRING, strpool_intern_str(a->strings, label));
        else
            arg_list_add(a, out, f, k, item->kind == CTF_ITEM_INT ? ARG_INT : ARG_UINT, item->i);
    }
}

/* Appends a name, behind a dot where something stands before it, or an index. The length. */
static size_t append(char *key, size_t len, const char *name, uint32_t index)
{
    if (!name) {
        int n = snprintf(key + len, KEY_MAX - len, "[%u]", index);
        return n < 0 || len + (size_t)n >= KEY_MAX ? KEY_MAX - 1 : len + (size_t)n;
    }
    if (len && len < KEY_MAX - 1)
        key[len++] = '.';
    size_t n = strnlen(name, KEY_MAX - 1 - len);
    memcpy(key + len, name, n);
    key[len + n] = 0;
    return len + n;
}

void ctf_items_to_args(struct args *a, const ctf_items *items, struct arg_list *out)
{
    char key[KEY_MAX] = "", flat[KEY_MAX] = "";
    struct key_level levels[CTF_MAX_DEPTH + 2] = {{0}};
    unsigned depth = 0;
    for (size_t i = 0; i < items->n; i++) {
        const struct ctf_item *item = &items->p[i];
        if (item->kind == CTF_ITEM_CLOSE) {
            if (depth)
                depth--;
            continue;
        }
        struct key_level *in = &levels[depth];
        size_t len = in->len, flat_len = in->flat_len;
        key[len] = flat[flat_len] = 0;
        if (in->is_list) {
            len = append(key, len, NULL, in->index++);
        } else if (item->name) {
            len = append(key, len, item->name, 0);
            flat_len = append(flat, flat_len, item->name, 0);
        }
        if (item->kind != CTF_ITEM_OPEN) {
            push_arg(a, out, key, flat, item);
        } else if (depth + 1 < sizeof levels / sizeof *levels) {
            levels[++depth] = (struct key_level){len, flat_len, 0, item->type->kind != CTF_STRUCT};
        }
    }
}

/* What is the same for all events of a class. */
static void push_class_args(struct args *a, const struct ctf_event_class *class, struct arg_list *out)
{
    const struct {
        const char *key, *value;
    } all[] = {{"log_level", class->log_level}, {"emf_uri", class->emf_uri}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        strid key = all[i].value ? strpool_intern_str(a->strings, all[i].key) : 0;
        if (all[i].value)
            arg_list_add(a, out, key, key, ARG_STRING, strpool_intern_str(a->strings, all[i].value));
    }
}

/* Those of events whose bytes mean something else elsewhere. */
static argset args_of_items(struct args *a, const struct ctf_event_class *class, const ctf_items *fields)
{
    struct arg_list list = {0};
    ctf_items_to_args(a, fields, &list);
    push_class_args(a, class, &list);
    argset set = args_intern(a, list.p, list.n);
    arg_list_free(&list);
    return set;
}

argset ctf_args(struct ctf_import *c, struct ctf_class_use *use, struct slice payload, const ctf_items *fields)
{
    const struct ctf_event_class *class = use->class;
    if ((!fields->n && !payload.len && !class->log_level && !class->emf_uri) || payload.len > UINT32_MAX)
        return ARGSET_NONE;
    return use->on_demand && payload.p
               ? kept_args(ctf_kept_args(c), &use->sharing, CTF_ARGS_KIND, use->id, payload, KEPT_STABLE)
               : args_of_items(&ctf_importer(c)->st->args, class, fields);
}

void ctf_decode_args(void *ctx, uint32_t aux, struct slice bytes, struct arg_list *out)
{
    struct ctf_class_use *use = ctf_class_by_id(ctx, aux);
    struct importer *im = ctf_importer(ctx);
    ctf_items items = {0};
    if (!use)
        return;
    struct ctf_reader r = {.packet = bytes.p, .end = bytes.len * 8};
    int64_t slots[CTF_SUMMARY_SLOTS] = {0}; /* a class that needs more is not decoded on demand */
    r.slots = slots;
    ctf_read(&r, use->class->fields, &items);
    ctf_items_to_args(&im->st->args, &items, out);
    push_class_args(&im->st->args, use->class, out);
    vec_free(&items);
}
