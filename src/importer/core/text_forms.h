/* Texts that the tables hold in another form than the trace: bytes in base64, strings in UTF-16 or Latin-1. */
#ifndef MERIDIAN_IMPORTER_CORE_TEXT_FORMS_H
#define MERIDIAN_IMPORTER_CORE_TEXT_FORMS_H

#include "base/u64map.h"
#include "importer/core/context.h"

/* Bytes in base64; the empty string for none. 0 when out of memory (im->failed), as below. */
strid import_base64(struct importer *im, struct slice bytes);

/* A string of one byte for each character. */
strid import_latin1(struct importer *im, struct slice text);

/* A string of two bytes for each unit; what is not a character becomes U+FFFD. */
strid import_utf16(struct importer *im, struct slice text, bool big_endian);

/* As import_slice(), for bytes that stay where they are as long as the map `kept` is used: a long text that many short
 * records refer to is hashed once. */
strid import_kept(struct importer *im, struct u64map *kept, struct slice text);

#endif
