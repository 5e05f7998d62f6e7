/* What `record` records when it is not told each event: presets by name, and what is left without the kernel's. */
#ifndef MERIDIAN_CAPTURE_RECORD_PRESETS_H
#define MERIDIAN_CAPTURE_RECORD_PRESETS_H

#include "base/error.h"
#include "base/flags.h"

struct presets {
    struct text_list events;
    char *memory;       /* of the presets' events; others are the caller's */
    char sources[1024]; /* the presets' other data sources: a TraceConfig in text form */
};

/* The events of the presets in `wanted`, and `words`, each once. `here`: what this kernel does not have is left out of
 * the presets, and said on standard error. -MRD_EINVALID: no preset has such a name. Free it, whatever is returned. */
int presets_expand(struct presets *p, const struct text_list *wanted, const struct text_list *words, bool here,
                   struct error *err);
void presets_free(struct presets *p);

/* The data sources that need no privileges: processes and the figures of /proc. */
extern const char presets_unprivileged[];

/* True when this user may switch on events of this kernel (a tracefs that is not mounted counts: the probes say what
 * to do). */
bool presets_kernel_is_open(void);

#endif
