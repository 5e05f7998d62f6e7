/* Config text: any bytes parse or give an error with a place; what parsed prints, and parses again to the same bytes.
 */
#include "base/alloc.h"
#include "schema/config.pb-c.h"
#include "wire/text_format.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ProtobufCMessageDescriptor *d = &mrd__trace_config__descriptor;
    struct pb_writer bytes = {0}, text = {0}, again = {0};
    struct error err = {0};
    int rc = text_parse(d, slice_of(data, size), size && data[0] == '!' ? TEXT_SKIP_UNKNOWN : 0, &bytes, &err);
    if (rc && !strchr(err.text, ':'))
        abort();
    if (!rc) {
        Mrd__TraceConfig *c = mrd__trace_config__unpack(NULL, bytes.n, bytes.p);
        if (!c || !text_print(d, pb_written(&bytes), 0, &text))
            abort();
        mrd__trace_config__free_unpacked(c, NULL);
        if (text_parse(d, pb_written(&text), 0, &again, &err) || again.n != bytes.n ||
            (bytes.n && memcmp(again.p, bytes.p, bytes.n) != 0))
            abort();
    }
    text_print(d, slice_of(data, size), 0, &text); /* the same bytes as a binary message */
    pb_writer_free(&bytes);
    pb_writer_free(&text);
    pb_writer_free(&again);
    return 0;
}
