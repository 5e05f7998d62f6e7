/* Names the addresses that a trace has of programs and libraries, as ModuleSymbols packets. */
#ifndef MERIDIAN_SYMBOLS_SYMBOLIZE_H
#define MERIDIAN_SYMBOLS_SYMBOLIZE_H

#include "symbols/symbol_finder.h"
#include "wire/pb_writer.h"

/* A program or library of a trace, and the addresses in it that have no name. */
struct symbol_module {
    const char *path;
    const char *build_id; /* as the tables show it: hexadecimal; "" of a kernel that is not known better */
    uint64_t file_offset; /* of its mapping, less where the ELF file begins in that file */
    uint64_t load_bias;
    uint64_t start;            /* of the mapping; kernels only */
    const uint64_t *addresses; /* rel_pc, rising, each once */
    size_t n;
    uint64_t n_frames, n_mappings; /* rows of the tables that it stands for */
};

/* What came of it. */
struct symbol_outcome {
    size_t named;
    char *file;     /* where the names are from; NULL: no file was found */
    char note[192]; /* what is wrong with that file; "" */
    VEC(struct symbol_attempt)
    attempts; /* the places looked at */
};

struct symbolizer {
    const struct symbol_sources *sources;
    struct symbol_finder *finder;
    const char *release; /* of the kernel that was recorded; "" */
    const char *program; /* the worker's; NULL: this one */
    int64_t cpu_s;       /* the worker's bound; 0: by the size of the files */
};

/* Appends the packets of one module, if anything is known of it. Negative: out of memory, or a broken source for all
 * (debuginfod). Damaged files are told by the outcome, which is to be freed in any case. */
int symbolize_module(const struct symbolizer *s, const struct symbol_module *m, struct pb_writer *packets,
                     struct symbol_outcome *out, struct error *err);

bool symbol_module_is_kernel(const struct symbol_module *m);

void symbol_outcome_free(struct symbol_outcome *out);

#endif
