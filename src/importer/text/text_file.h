/* What the readers of text and profiles share. */
#ifndef MERIDIAN_IMPORTER_TEXT_TEXT_FILE_H
#define MERIDIAN_IMPORTER_TEXT_TEXT_FILE_H

#include "importer/input/format_reader.h"

/* The machine that the file at hand belongs to. */
static inline struct machine_ctx *text_machine(struct importer *im)
{
    uint32_t row = im->input.base_machine;
    return im->machines.p[row < im->machines.n ? row : 0];
}

#endif
