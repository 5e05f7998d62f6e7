/* Reads and writes problems of a recording, and puts them into words. */
#include "wire/recording_problem.h"

#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <stdio.h>
#include <string.h>

static const struct {
    uint32_t kind;
    const char *text, *cure;
} table[] = {
#define RECORDING_PROBLEM(name, number, stat, text, cure) {number, text, cure},
#include "wire/recording_problem.def"
#undef RECORDING_PROBLEM
};

void recording_problem_put(struct pb_writer *w, uint32_t field, const struct recording_problem *p)
{
    const struct {
        uint32_t id;
        struct slice text;
    } texts[] = {{RECORDING_PROBLEM_SOURCE, p->source},
                 {RECORDING_PROBLEM_PRODUCER, p->producer},
                 {RECORDING_PROBLEM_MACHINE_NAME, p->machine_name},
                 {RECORDING_PROBLEM_REASON, p->reason}};
    size_t m = pb_begin(w, field);
    pb_put_varint(w, RECORDING_PROBLEM_KIND, p->kind);
    pb_put_varint(w, RECORDING_PROBLEM_SOURCE_INDEX, p->source_index);
    if (p->machine_id)
        pb_put_varint(w, RECORDING_PROBLEM_MACHINE_ID, p->machine_id);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].text.len)
            pb_put_text(w, texts[i].id, texts[i].text);
    pb_end(w, m);
}

void recording_problem_read(struct recording_problem *p, struct slice message)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    *p = (struct recording_problem){0};
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case RECORDING_PROBLEM_KIND:
            p->kind = pb_u32(&f);
            break;
        case RECORDING_PROBLEM_SOURCE_INDEX:
            p->source_index = pb_u32(&f);
            break;
        case RECORDING_PROBLEM_SOURCE:
            p->source = pb_bytes(&f);
            break;
        case RECORDING_PROBLEM_PRODUCER:
            p->producer = pb_bytes(&f);
            break;
        case RECORDING_PROBLEM_MACHINE_ID:
            p->machine_id = pb_u32(&f);
            break;
        case RECORDING_PROBLEM_MACHINE_NAME:
            p->machine_name = pb_bytes(&f);
            break;
        case RECORDING_PROBLEM_REASON:
            p->reason = pb_bytes(&f);
            break;
        }
    }
}

/* Appends what fits. */
static void add(char *text, size_t size, size_t *at, struct slice s)
{
    for (size_t i = 0; i < s.len && *at + 1 < size; i++) {
        unsigned char c = s.p[i];
        text[(*at)++] = c < ' ' || c == 0x7f ? '?' : (char)c;
    }
    text[*at] = 0;
}

/* "perfetto.traced_probes on machine guest", "this machine", "machine 0x12ab". */
static void add_where(char *text, size_t size, size_t *at, const struct recording_problem *p)
{
    char id[32];
    add(text, size, at, p->producer);
    if (p->producer.len && p->machine_id)
        add(text, size, at, slice_str(" on "));
    if (!p->machine_id) {
        if (!p->producer.len)
            add(text, size, at, slice_str("this machine"));
        return;
    }
    snprintf(id, sizeof id, "0x%x", p->machine_id);
    add(text, size, at, slice_str("machine "));
    add(text, size, at, p->machine_name.len ? p->machine_name : slice_str(id));
}

void recording_problem_text(const struct recording_problem *p, char *text, size_t size)
{
    const char *t = "the recorder reports a problem that this version does not know: {reason}";
    size_t at = 0;
    text[0] = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].kind == p->kind)
            t = table[i].text;
    while (*t) {
        size_t n = strcspn(t, "{");
        add(text, size, &at, slice_of(t, n));
        t += n;
        if (strncmp(t, "{source}", 8) == 0)
            add(text, size, &at, p->source);
        else if (strncmp(t, "{reason}", 8) == 0)
            add(text, size, &at, p->reason);
        else if (strncmp(t, "{where}", 7) == 0)
            add_where(text, size, &at, p);
        t += strcspn(t, "}");
        t += *t == '}';
    }
}

const char *recording_problem_cure(uint32_t kind)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].kind == kind)
            return table[i].cure;
    return "read the recorder's log";
}
