/* Tells the archives of Android's bug reports, and their members. */
#include "importer/merge/bugreport.h"

#include "importer/lines/line_reader.h"

bool bugreport_is_text(const char *name, int *year)
{
    static const char head[] = "bugreport-", form[] = "-dddd-dd-dd-dd-dd-dd.txt";
    enum { FORM = sizeof form - 1 };
    size_t len = strlen(name);
    if (strncmp(name, head, sizeof head - 1) != 0 || len < sizeof head - 1 + FORM - 1)
        return false;
    const char *tail = name + len - FORM;
    for (size_t i = 0; i < FORM; i++)
        if (form[i] == 'd' ? !is_digit((uint8_t)tail[i]) : form[i] != tail[i])
            return false;
    int64_t y;
    if (!number_decimal(slice_of(tail + 1, 4), &y))
        return false;
    *year = (int)y;
    return true;
}

bool bugreport_has_use(const char *name, enum trace_format format)
{
    int year;
    switch (format) {
    case FORMAT_DUMPSTATE:
        return bugreport_is_text(name, &year);
    case FORMAT_LOGCAT:
        return strncmp(name, "FS/data/misc/logd/logcat", 24) == 0;
    case FORMAT_PROTO:
    case FORMAT_MANIFEST:
        return true;
    default:
        return false;
    }
}
