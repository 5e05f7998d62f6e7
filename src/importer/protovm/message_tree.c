/* The tree of a message: children sorted by key, bytes taken apart when they are entered. */
#include "importer/protovm/message_tree.h"

#include "base/alloc.h"
#include "base/bisect.h"

bool vm_spend(struct vm_tree *t, uint64_t bytes)
{
    enum { PIECE = 64 };
    uint64_t cost = 1 + bytes / PIECE;
    bool enough = *t->work >= cost;
    *t->work = enough ? *t->work - cost : 0;
    return enough;
}

static bool charge(struct vm_tree *t, size_t n)
{
    if (n > t->limit - t->held)
        return false;
    t->held += n;
    return true;
}

static void forget(struct vm_tree *t, struct vm_node *n);

static void node_free(struct vm_tree *t, struct vm_node *n)
{
    forget(t, n);
    mem_free(n);
    t->held -= sizeof *n;
}

/* What n holds is freed; its key stays. The tree is no deeper than a path, so this recursion is bounded. */
static void forget(struct vm_tree *t, struct vm_node *n)
{
    for (uint32_t i = 0; i < n->n; i++)
        node_free(t, n->children[i]);
    t->held -= n->cap * sizeof *n->children + (n->kind == VM_BYTES ? n->len : 0);
    mem_free(n->children);
    mem_free(n->bytes);
    *n = (struct vm_node){.key = n->key};
}

void vm_empty(struct vm_tree *t, struct vm_node *n)
{
    forget(t, n);
}

void vm_tree_close(struct vm_tree *t)
{
    forget(t, &t->root);
}

/* The first child whose key is not smaller. */
static uint32_t place_of(const struct vm_node *n, uint64_t key)
{
    uint32_t place = n->n;
    if (!place || n->children[place - 1]->key < key)
        return place;
    BISECT(place, i, n->children[i]->key < key);
    return place;
}

struct vm_node *vm_child(const struct vm_node *n, uint64_t key)
{
    uint32_t i = place_of(n, key);
    return i < n->n && n->children[i]->key == key ? n->children[i] : NULL;
}

static bool child_room(struct vm_tree *t, struct vm_node *n)
{
    enum { FIRST = 4 };
    uint32_t cap = n->cap ? n->cap * 2 : FIRST;
    if (n->n < n->cap)
        return true;
    if (!charge(t, (cap - n->cap) * sizeof *n->children))
        return false;
    struct vm_node **children = mem_realloc(n->children, cap * sizeof *children);
    if (!children) {
        t->held -= (cap - n->cap) * sizeof *n->children;
        t->no_memory = true;
        return false;
    }
    n->children = children;
    n->cap = cap;
    return true;
}

/* A new child, empty, where its key belongs, which no other one has; NULL when a bound is reached. */
static struct vm_node *add_child(struct vm_tree *t, struct vm_node *n, uint64_t key)
{
    uint32_t at = place_of(n, key);
    size_t moved = (n->n - at) * sizeof *n->children;
    if ((moved && !vm_spend(t, moved)) || !child_room(t, n) || !charge(t, sizeof *n))
        return NULL;
    struct vm_node *child = mem_zalloc(sizeof *child);
    if (!child) {
        t->held -= sizeof *n;
        t->no_memory = true;
        return NULL;
    }
    child->key = key;
    if (moved)
        memmove(n->children + at + 1, n->children + at, moved);
    n->children[at] = child;
    n->n++;
    return child;
}

enum vm_status vm_remove(struct vm_tree *t, struct vm_node *parent, struct vm_node *child)
{
    uint32_t at = place_of(parent, child->key), behind = parent->n - at - 1;
    if (!vm_spend(t, behind * (parent->kind == VM_LIST ? sizeof *child : sizeof *parent->children)))
        return VM_ABORT;
    memmove(parent->children + at, parent->children + at + 1, behind * sizeof *parent->children);
    parent->n--;
    for (; parent->kind == VM_LIST && at < parent->n; at++)
        parent->children[at]->key = at;
    node_free(t, child);
    return VM_OK;
}

enum vm_status vm_set_bytes(struct vm_tree *t, struct vm_node *n, struct slice bytes)
{
    if (n->kind != VM_EMPTY && n->kind != VM_BYTES && n->kind != VM_MESSAGE)
        return VM_ABORT;
    if (!charge(t, bytes.len))
        return VM_ABORT;
    uint8_t *copy = mem_alloc(bytes.len + 1);
    if (!copy) {
        t->held -= bytes.len;
        t->no_memory = true;
        return VM_ABORT;
    }
    if (bytes.len)
        memcpy(copy, bytes.p, bytes.len);
    forget(t, n);
    n->kind = VM_BYTES;
    n->bytes = copy;
    n->len = bytes.len;
    return VM_OK;
}

enum vm_status vm_set_scalar(struct vm_node *n, uint8_t wire, uint64_t value)
{
    if (n->kind != VM_EMPTY && n->kind != VM_SCALAR)
        return VM_ABORT;
    n->kind = VM_SCALAR;
    n->wire = wire;
    n->scalar = value;
    return VM_OK;
}

static enum vm_status set_field(struct vm_tree *t, struct vm_node *n, const struct pb_field *f)
{
    return f->wire == PB_BYTES ? vm_set_bytes(t, n, pb_bytes(f)) : vm_set_scalar(n, f->wire, f->u);
}

/* What n is moves into its first element. */
static enum vm_status make_list(struct vm_tree *t, struct vm_node *n)
{
    if (n->kind == VM_LIST)
        return VM_OK;
    if (n->kind == VM_MAP)
        return VM_ABORT;
    struct vm_node list = {.key = n->key, .kind = VM_LIST};
    if (n->kind != VM_EMPTY) {
        struct vm_node *first = add_child(t, &list, 0);
        if (!first) {
            forget(t, &list);
            return VM_ABORT;
        }
        *first = *n;
        first->key = 0;
    }
    *n = list;
    return VM_OK;
}

static enum vm_status add_field(struct vm_tree *t, struct vm_node *message, const struct pb_field *f)
{
    struct vm_node *n = vm_child(message, f->id);
    if (n && make_list(t, n) != VM_OK)
        return VM_ABORT;
    n = n ? add_child(t, n, n->n) : add_child(t, message, f->id);
    return n ? set_field(t, n, f) : VM_ABORT;
}

static enum vm_status make_message(struct vm_tree *t, struct vm_node *n)
{
    if (n->kind == VM_EMPTY)
        n->kind = VM_MESSAGE;
    if (n->kind == VM_MESSAGE)
        return VM_OK;
    if (n->kind != VM_BYTES)
        return VM_ABORT;
    struct vm_node message = {.key = n->key, .kind = VM_MESSAGE};
    struct pb_cursor c = pb_cursor(slice_of(n->bytes, n->len));
    struct pb_field f;
    enum vm_status status = VM_OK;
    while (status == VM_OK && pb_next(&c, &f))
        status = add_field(t, &message, &f);
    if (status != VM_OK || c.bad) {
        forget(t, &message);
        return VM_ABORT;
    }
    forget(t, n);
    *n = message;
    return VM_OK;
}

enum vm_status vm_tree_open(struct vm_tree *t, struct slice bytes, size_t limit)
{
    *t = (struct vm_tree){.limit = limit};
    return bytes.len ? vm_set_bytes(t, &t->root, bytes) : VM_OK;
}

enum vm_status vm_enter_field(struct vm_tree *t, struct vm_node *n, uint32_t field, bool make, struct vm_node **child)
{
    if (make_message(t, n) != VM_OK)
        return VM_ABORT;
    *child = vm_child(n, field);
    if (!*child && !make)
        return VM_ERROR;
    if (!*child)
        *child = add_child(t, n, field);
    return *child && (*child)->kind != VM_LIST && (*child)->kind != VM_MAP ? VM_OK : VM_ABORT;
}

enum vm_status vm_enter_list(struct vm_tree *t, struct vm_node *n, uint32_t field, struct vm_node **list)
{
    if (make_message(t, n) != VM_OK)
        return VM_ABORT;
    *list = vm_child(n, field);
    return *list ? make_list(t, *list) : VM_OK;
}

enum vm_status vm_enter_at(struct vm_tree *t, struct vm_node *n, uint32_t field, uint32_t index, struct vm_node **list,
                           struct vm_node **child)
{
    if (vm_enter_list(t, n, field, list) != VM_OK)
        return VM_ABORT;
    if (!*list && (!(*list = add_child(t, n, field)) || make_list(t, *list) != VM_OK))
        return VM_ABORT;
    *child = vm_child(*list, index);
    if (!*child && index == (*list)->n)
        *child = add_child(t, *list, index);
    return *child ? VM_OK : VM_ABORT;
}

/* The value of a message's field that is a number. */
static bool read_key(const struct vm_node *n, uint32_t key_field, uint64_t *key)
{
    struct pb_field f;
    if (n->kind == VM_BYTES) {
        bool found = pb_find(slice_of(n->bytes, n->len), key_field, &f) && f.wire != PB_BYTES;
        *key = found ? f.u : 0;
        return found;
    }
    const struct vm_node *child = n->kind == VM_MESSAGE ? vm_child(n, key_field) : NULL;
    *key = child ? child->scalar : 0;
    return child && child->kind == VM_SCALAR;
}

/* The elements of a list, by their keys. A list in which one has no key, or that of another, stays as it is. */
static enum vm_status key_list(struct vm_tree *t, struct vm_node *n, uint32_t key_field)
{
    struct vm_node map = {.key = n->key, .kind = VM_MAP};
    uint64_t key;
    bool fits = true;
    for (uint32_t i = 0; i < n->n && fits; i++)
        fits = read_key(n->children[i], key_field, &key) && !vm_child(&map, key) && add_child(t, &map, key);
    if (!fits) {
        forget(t, &map);
        return VM_ABORT;
    }
    for (uint32_t i = 0; i < n->n; i++) {
        read_key(n->children[i], key_field, &key);
        struct vm_node *to = vm_child(&map, key);
        struct vm_node *from = n->children[i];
        *to = *from;
        to->key = key;
        *from = (struct vm_node){.key = from->key}; /* what it held is the map's now */
    }
    forget(t, n);
    *n = map;
    return VM_OK;
}

static enum vm_status make_map(struct vm_tree *t, struct vm_node *n, uint32_t key_field)
{
    if (n->kind == VM_EMPTY)
        n->kind = VM_MAP;
    if (n->kind == VM_MAP)
        return VM_OK;
    return make_list(t, n) == VM_OK ? key_list(t, n, key_field) : VM_ABORT;
}

enum vm_status vm_enter_by_key(struct vm_tree *t, struct vm_node *n, uint32_t field, uint32_t key_field, uint64_t key,
                               bool make, struct vm_node **map, struct vm_node **child)
{
    if (make_message(t, n) != VM_OK)
        return VM_ABORT;
    *map = vm_child(n, field);
    if (!*map && !make)
        return VM_ERROR;
    if (!*map)
        *map = add_child(t, n, field);
    if (!*map || make_map(t, *map, key_field) != VM_OK)
        return VM_ABORT;
    *child = vm_child(*map, key);
    if (!*child)
        *child = add_child(t, *map, key);
    return *child ? VM_OK : VM_ABORT;
}

static enum vm_status merge_field(struct vm_tree *t, struct vm_node *n, const struct pb_field *f, bool skip_messages,
                                  bool delete_empty)
{
    struct vm_node *child = vm_child(n, f->id);
    if (!child) {
        child = add_child(t, n, f->id);
        return child ? set_field(t, child, f) : VM_ABORT;
    }
    if (skip_messages && child->kind == VM_MESSAGE)
        return VM_OK;
    if (delete_empty && f->wire == PB_BYTES && !f->u)
        return vm_remove(t, n, child);
    if (child->kind == VM_MAP)
        return VM_ABORT;
    if (child->kind != VM_LIST) {
        forget(t, child);
        return set_field(t, child, f);
    }
    if (!child->merged) {
        forget(t, child);
        child->kind = VM_LIST;
        child->merged = true;
    }
    struct vm_node *element = add_child(t, child, child->n);
    return element ? set_field(t, element, f) : VM_ABORT;
}

enum vm_status vm_merge(struct vm_tree *t, struct vm_node *n, struct slice message, bool skip_messages,
                        bool delete_empty)
{
    if (n->kind != VM_EMPTY && n->kind != VM_MESSAGE && n->kind != VM_BYTES)
        return VM_ABORT;
    if (!message.len)
        return VM_OK;
    if (make_message(t, n) != VM_OK)
        return VM_ABORT;
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    enum vm_status status = VM_OK;
    while (status == VM_OK && pb_next(&c, &f))
        status = merge_field(t, n, &f, skip_messages, delete_empty);
    bool damaged = c.bad;
    for (c = pb_cursor(message); pb_next(&c, &f);) {
        struct vm_node *child = vm_child(n, f.id);
        if (child)
            child->merged = false;
    }
    return damaged ? VM_ABORT : status;
}

static void write_value(const struct vm_node *n, uint32_t field, struct pb_writer *w)
{
    switch ((enum vm_kind)n->kind) {
    case VM_EMPTY:
        break;
    case VM_SCALAR:
        if (n->wire == PB_VARINT)
            pb_put_varint(w, field, n->scalar);
        else if (n->wire == PB_FIXED64)
            pb_put_fixed64(w, field, n->scalar);
        else
            pb_put_fixed32(w, field, (uint32_t)n->scalar);
        break;
    case VM_BYTES:
        pb_put_bytes(w, field, n->bytes, n->len);
        break;
    case VM_MESSAGE: {
        size_t message = pb_begin(w, field);
        vm_write(n, w);
        pb_end(w, message);
        break;
    }
    case VM_LIST:
    case VM_MAP:
        for (uint32_t i = 0; i < n->n; i++)
            write_value(n->children[i], field, w);
        break;
    }
}

void vm_write(const struct vm_node *message, struct pb_writer *w)
{
    if (message->kind == VM_BYTES)
        pb_put_raw(w, message->bytes, message->len);
    for (uint32_t i = 0; message->kind == VM_MESSAGE && i < message->n; i++)
        write_value(message->children[i], (uint32_t)message->children[i]->key, w);
}
