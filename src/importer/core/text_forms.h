/* Texts that the tables hold in another form than the trace: bytes in base64, strings in UTF-16 or Latin-1. */
#ifndef MERIDIAN_IMPORTER_CORE_TEXT_FORMS_H
#define MERIDIAN_IMPORTER_CORE_TEXT_FORMS_H

#include "importer/core/context.h"

/* Bytes in base64; the empty string for none. 0 when out of memory (im->failed), as below. */
strid import_base64(struct importer *im, struct slice bytes);

/* A string of one byte for each character. */
strid import_latin1(struct importer *im, struct slice text);

/* A string of two bytes for each unit; what is not a character becomes U+FFFD. */
strid import_utf16(struct importer *im, struct slice text, bool big_endian);

#endif
