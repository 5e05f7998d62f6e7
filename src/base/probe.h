/* Walks the slots of a hash table with open addressing: from the home of `hash` on, round the end, while `taken` holds.
 * `cap` is a power of two, and at least one slot is free.
 *
 *     uint32_t at;
 *     probe_each(at, hash, cap, slots[at].used)
 *         if (slots[at].key == key)
 *             return &slots[at];
 *     slots[at] = ...;    // the free slot that ended the walk */
#ifndef MERIDIAN_BASE_PROBE_H
#define MERIDIAN_BASE_PROBE_H

#define probe_each(at, hash, cap, taken) for ((at) = (hash) & ((cap)-1); taken; (at) = ((at) + 1) & ((cap)-1))

/* Leaves in `at` the first free slot. */
#define probe_free(at, hash, cap, taken)                                                                               \
    do {                                                                                                               \
        probe_each(at, hash, cap, taken) continue;                                                                     \
    } while (0)

#endif
