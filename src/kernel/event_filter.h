/* What a session keeps of an event that it has asked for: some system calls (syscall_events), some of the texts that
 * programs write into the kernel's trace (print_filter).
 *
 * The kernel filters system calls too, which saves the writes; but sessions of an instance share its filter, and each
 * gets its own calls only by looking again here. */
#ifndef MERIDIAN_KERNEL_EVENT_FILTER_H
#define MERIDIAN_KERNEL_EVENT_FILTER_H

#include "base/slice.h"
#include "wire/syscall_names.h"

/* One rule of print_filter: "PREFIX…" or, for an atrace message, "TYPE|PID|PREFIX…". */
struct print_rule {
    const char *prefix;
    const char *type; /* of an atrace message, "" for any; NULL: the rule is about the bare text */
    bool allow;
};

/* System calls by number. */
struct call_set {
    uint64_t bits[(SYSCALL_LIMIT + 63) / 64];
};

static inline bool call_set_has(const struct call_set *s, uint64_t call)
{
    return call < SYSCALL_LIMIT && (s->bits[call / 64] >> (call % 64) & 1);
}

static inline void call_set_add(struct call_set *s, unsigned call)
{
    s->bits[call / 64] |= 1ull << (call % 64);
}

struct event_filter {
    const struct call_set *calls;   /* of raw_syscalls; NULL: the filter is about a text */
    const struct print_rule *rules; /* [n_rules] */
    size_t n_rules;
    uint16_t offset; /* of the call's number (8 bytes), or of the text that ends the event */
};

/* Whether an event of `size` bytes is kept. One too short to tell is: what reads it next counts it as damaged. */
bool event_filter_keeps(const struct event_filter *f, const uint8_t *event, uint32_t size);

/* The outcome of the first rule that matches the text; true when none does. */
bool print_rules_allow(const struct print_rule *rules, size_t n, struct slice text);

#endif
