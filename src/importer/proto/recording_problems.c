/* Reads what the recorder could not record, and why. */
#include "importer/core/context.h"
#include "importer/proto/special_packets.h"
#include "wire/recording_problem.h"

enum { TEXT_MAX = 1800 };

static const struct {
    uint32_t kind;
    const char *key;
    enum stat_key stat;
} kinds[] = {
#define RECORDING_PROBLEM(name, number, stat, text, cure) {number, #stat, STAT_##stat},
#include "wire/recording_problem.def"
#undef RECORDING_PROBLEM
};

enum tokenize_result recording_problem_packet(struct packet *p)
{
    struct importer *im = p->m->im;
    struct recording_problem problem;
    char text[TEXT_MAX];
    recording_problem_read(&problem, p->field);
    recording_problem_text(&problem, text, sizeof text);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].kind != problem.kind)
            continue;
        stats_add_idx(&im->st->stats, p->m->id, kinds[i].stat, (int32_t)problem.source_index, 1);
        struct trace_diagnostics_row row = {
            .key = import_str(im, kinds[i].key),
            .title = import_slice(im, slice_str(text)),
            .description = import_slice(im, problem.reason),
            .remediation = import_str(im, recording_problem_cure(problem.kind)),
            .confidence = 1.0,
            .trace_id = im->trace_file,
        };
        trace_diagnostics_insert(im->st, &row);
    }
    return TOKENIZE_DONE;
}
