/* A protobuf message as a tree that programs change in place.
 *
 * A field's bytes stay as they came until somebody enters it: only then are they taken apart. Nobody knows the schema,
 * so that a field which occurs once is a value, and one that occurs more often, or is asked for by index, a list. A
 * list of messages becomes a map when it is asked for by a field of its messages (the key). Rules: details of ProtoVM
 * in Perfetto's vm_program.proto. */
#ifndef MERIDIAN_IMPORTER_PROTOVM_MESSAGE_TREE_H
#define MERIDIAN_IMPORTER_PROTOVM_MESSAGE_TREE_H

#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

enum vm_status {
    VM_OK,
    VM_ERROR, /* what was asked for is not there: the instruction says what that means */
    VM_ABORT, /* program and message do not fit, or a bound was reached */
};

enum vm_kind { VM_EMPTY, VM_SCALAR, VM_BYTES, VM_MESSAGE, VM_LIST, VM_MAP };

struct vm_node {
    uint64_t key; /* in its parent: field number, index, or key */
    uint8_t kind; /* enum vm_kind */
    uint8_t wire; /* of a scalar */
    bool merged;  /* a list: vm_merge() has emptied it already */
    uint64_t scalar;
    uint8_t *bytes; /* VM_BYTES */
    size_t len;
    struct vm_node **children; /* of messages, lists and maps, by key */
    uint32_t n, cap;
};

struct vm_tree {
    struct vm_node root;
    size_t held, limit; /* bytes; what would pass the limit aborts */
    uint64_t *work;     /* while a program runs: what it may still do, see vm_spend() */
    bool no_memory;
};

/* Takes a step with `bytes` bytes, in pieces of 64, from what the program may still do; false when it is used up. */
bool vm_spend(struct vm_tree *t, uint64_t bytes);

/* `bytes`: what the message is at first. */
enum vm_status vm_tree_open(struct vm_tree *t, struct slice bytes, size_t limit);
void vm_tree_close(struct vm_tree *t);

/* The child with this key, or NULL. */
struct vm_node *vm_child(const struct vm_node *n, uint64_t key);

/* A field that is a single value. VM_ERROR when it is not there and not to be made. */
enum vm_status vm_enter_field(struct vm_tree *t, struct vm_node *n, uint32_t field, bool make, struct vm_node **child);
/* All values of a field as a list; *list is NULL when there are none. */
enum vm_status vm_enter_list(struct vm_tree *t, struct vm_node *n, uint32_t field, struct vm_node **list);
/* A value of a field by its index; the one behind the last is made. */
enum vm_status vm_enter_at(struct vm_tree *t, struct vm_node *n, uint32_t field, uint32_t index, struct vm_node **list,
                           struct vm_node **child);
/* A message of a field by the value of its field `key_field`, made empty when there is none. VM_ERROR when the field is
 * not there and not to be made. */
enum vm_status vm_enter_by_key(struct vm_tree *t, struct vm_node *n, uint32_t field, uint32_t key_field, uint64_t key,
                               bool make, struct vm_node **map, struct vm_node **child);

/* Fields of `message` take the place of those of n; a list is replaced as a whole. With skip_messages, fields that have
 * been entered as messages stay as they are; with delete_empty, an empty message deletes the field. */
enum vm_status vm_merge(struct vm_tree *t, struct vm_node *n, struct slice message, bool skip_messages,
                        bool delete_empty);
enum vm_status vm_set_bytes(struct vm_tree *t, struct vm_node *n, struct slice bytes);
enum vm_status vm_set_scalar(struct vm_node *n, uint8_t wire, uint64_t value);
void vm_empty(struct vm_tree *t, struct vm_node *n);
enum vm_status vm_remove(struct vm_tree *t, struct vm_node *parent, struct vm_node *child);

/* The fields of a message, in the order of their numbers, of lists by index, of maps by key. */
void vm_write(const struct vm_node *message, struct pb_writer *w);

#endif
