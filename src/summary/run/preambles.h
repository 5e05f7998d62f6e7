/* Preambles that have run on an engine, and whose what they make now is.
 *
 * A preamble runs once however many queries bring it: what it creates is still there, and creating it again would fail.
 * But where another one has created something of the same name since (CREATE OR REPLACE, or DROP before CREATE), it has
 * to take effect again. */
#ifndef MERIDIAN_SUMMARY_RUN_PREAMBLES_H
#define MERIDIAN_SUMMARY_RUN_PREAMBLES_H

#include "base/strpool.h"
#include "base/vec.h"

struct preambles {
    struct strpool texts;
    struct strpool names; /* that they have created */
    VEC(strid) makers;    /* [name - 1]: the text that created it last */
};

/* Has it run, and is what it created still its own? */
bool preambles_hold(const struct preambles *p, const char *text);

/* It has run. False: out of memory. */
bool preambles_note(struct preambles *p, const char *text);

void preambles_free(struct preambles *p);

#endif
