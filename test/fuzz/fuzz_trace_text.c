/* Trace text: any bytes parse or give an error with a place; what parsed prints, and parses again to the same bytes.
 * The same bytes as a binary trace: what is printed parses, and prints the same again. */
#include "wire/trace_text.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

static void need_same(struct pb_writer a, struct pb_writer b)
{
    if (a.n != b.n || (a.n && memcmp(a.p, b.p, a.n) != 0))
        abort();
}

/* Prints `binary`, parses that and prints it again. */
static void there_and_back(const struct trace_message *m, struct slice binary, bool *whole)
{
    struct pb_writer text = {0}, bytes = {0}, again = {0};
    struct error err = {0};
    *whole = trace_text_print(m, binary, 0, &text);
    if (trace_text_parse(m, pb_written(&text), 0, &bytes, NULL, NULL, &err))
        abort();
    if (!trace_text_print(m, pb_written(&bytes), 0, &again))
        abort();
    need_same(text, again);
    pb_writer_free(&text);
    pb_writer_free(&bytes);
    pb_writer_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct trace_message *m = trace_message_by_name("Trace");
    struct pb_writer bytes = {0};
    struct error err = {0};
    bool whole;
    int rc = trace_text_parse(m, slice_of(data, size), size && data[0] == '!' ? TRACE_TEXT_SKIP_UNKNOWN : 0, &bytes,
                              NULL, NULL, &err);
    if (rc && !strchr(err.text, ':'))
        abort();
    if (!rc) {
        there_and_back(m, pb_written(&bytes), &whole);
        if (!whole)
            abort();
    }
    there_and_back(m, slice_of(data, size), &whole);
    pb_writer_free(&bytes);
    return 0;
}
