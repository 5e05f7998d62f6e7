/* What the readers of text and profiles share. */
#ifndef MERIDIAN_IMPORTER_TEXT_TEXT_FILE_H
#define MERIDIAN_IMPORTER_TEXT_TEXT_FILE_H

#include "importer/input/format_reader.h"
#include "importer/lines/line_reader.h"

/* The machine that the file at hand belongs to. */
static inline struct machine_ctx *text_machine(struct importer *im)
{
    uint32_t row = im->input.base_machine;
    return im->machines.p[row < im->machines.n ? row : 0];
}

/* At the end of a text: whoever wrote it ends its last line, too, so one without a line feed is told. Whether it is
 * read as it stands is up to the format. */
static inline void text_check_end(struct importer *im, const struct line_reader *lines)
{
    if (!lines->ended && lines->tail.n)
        stats_set_idx(&im->st->stats, 0, STAT_text_last_line_cut, (int32_t)im->trace_file, 1);
}

/* … of a format that reads it. */
static inline void text_read_end(struct importer *im, struct line_reader *lines)
{
    text_check_end(im, lines);
    line_reader_end(lines);
}

#endif
