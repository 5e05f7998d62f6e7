/* The same random rows twice, for tests that ask both: in our tables, and in plain tables of SQLite, which knows
 * better.
 *
 * Queries are texts in which @ stands for the prefix of a table: @slice is v_slice, a view of ours, and p_slice. All
 * that is random comes from one seeded sequence, so that a failure can be met again. */
#ifndef MERIDIAN_TEST_MIRROR_H
#define MERIDIAN_TEST_MIRROR_H

#include "sql/engine.h"

struct mirror {
    struct storage st;
    struct engine *e;
    uint32_t most_ms;  /* of the processor, for each answer that mirror_compare_planner() asks for; 0: as it takes */
    uint64_t compared; /* statements of which a plan answered some part, by mirror_compare_planner() */
};

/* Begins the sequence at `seed` and makes the rows: n of slice, half as many of counter, some of the others. */
void mirror_open(struct mirror *m, uint64_t seed, uint32_t n_slices);
void mirror_close(struct mirror *m);

enum { MIRRORED = 4 };
extern const struct mirrored {
    enum table_id table;
    const char *name; /* behind the @ */
} mirrored[MIRRORED];

/* The next number of the sequence, below n; a word that cells of strings may hold. */
uint32_t pick(uint32_t n);
const char *pick_word(void);

struct text {
    char p[4000];
    size_t n;
};

void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Runs statements to their ends; fails unless all of them work. */
void mirror_run(struct mirror *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Fails unless both give the same rows, in any order; by their `ordered` leading columns also in the same order. */
void mirror_compare(struct mirror *m, const char *query, uint32_t ordered);

/* Fails unless the planner gives the same rows in the same order under the same names as SQLite alone, or the same
 * error. True when it had a plan. A statement that takes longer than most_ms is left out, and named if it does so with
 * plans only. */
bool mirror_compare_planner(struct mirror *m, const char *query);

/* The same of a statement that must have a plan; the rows that the plan looks at. */
uint64_t mirror_visited_by(struct mirror *m, const char *query);

/* Fails unless the query gives the right rows or says that memory ran out, when an allocation of it fails (or all from
 * there on), ours or SQLite's; and the right rows afterwards. */
void mirror_check_memory(struct mirror *m, const char *query, unsigned fail_at, bool for_good);

/* Fails unless the query gives the right rows or says "interrupted" when that happens before its row of that number is
 * asked for, and the right rows afterwards. True when it said so. */
bool mirror_check_interrupt(struct mirror *m, const char *query, uint32_t row);

/* mirror_compare() of n queries that `make` writes; it returns how many columns are ordered. */
void mirror_compare_made(struct mirror *m, uint32_t (*make)(struct text *t), int n);

#endif
