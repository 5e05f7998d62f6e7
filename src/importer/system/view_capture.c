/* Imports ViewCapture (in WinscopeExtensions): when the views of an application's window were captured. Of the views
 * themselves only the strings they refer to are looked up: those that were lost are counted. */
#include "importer/system/system_internal.h"

#include "wire/fields.h"

/* A field that holds the number of an interned string, and the field of InternedData that has it. */
struct reference {
    uint8_t field, interned;
};
static const struct reference package = {VIEW_CAPTURE_PACKAGE_NAME_IID, INTERNED_DATA_VIEWCAPTURE_PACKAGE_NAME},
                              window = {VIEW_CAPTURE_WINDOW_NAME_IID, INTERNED_DATA_VIEWCAPTURE_WINDOW_NAME};
static const struct reference of_view[] = {
    {VIEW_CAPTURE_VIEW_VIEW_ID_IID, INTERNED_DATA_VIEWCAPTURE_VIEW_ID},       /* its name in the layout */
    {VIEW_CAPTURE_VIEW_CLASS_NAME_IID, INTERNED_DATA_VIEWCAPTURE_CLASS_NAME}, /* its class */
    {VIEW_CAPTURE_VIEW_CONTENT_DESCRIPTION_IID,
     INTERNED_DATA_VIEWCAPTURE_CONTENT_DESCRIPTION},              /* what it says to screen readers */
    {VIEW_CAPTURE_VIEW_TEXT_IID, INTERNED_DATA_VIEWCAPTURE_TEXT}, /* its text */
};

/* The string that a message refers to: the empty one when it refers to none, or (counted) to one that is not there. */
static strid referred(struct packet *p, struct slice message, const struct reference *r)
{
    struct pb_field f;
    strid text = 0;
    if (pb_find(message, r->field, &f)) {
        text = interned_string(p->gen, r->interned, pb_u64(&f), INTERNED_STRING_STR);
        if (!text)
            stats_add(&p->m->st->stats, p->m->id, STAT_winscope_viewcapture_missing_interned_string_parse_errors, 1);
    }
    return text ? text : import_str(p->m->im, "");
}

void winscope_extensions_parse(struct packet *p)
{
    struct pb_field capture, f;
    if (!pb_find(p->field, WINSCOPE_EXTENSIONS_VIEWCAPTURE, &capture))
        return;
    viewcapture_insert(p->m->st, &(struct viewcapture_row){.ts = p->ts,
                                                           .base64_proto_id = COL_NULL,
                                                           .package_name = referred(p, pb_bytes(&capture), &package),
                                                           .window_name = referred(p, pb_bytes(&capture), &window)});
    struct pb_cursor c = pb_sub(&capture);
    while (pb_next(&c, &f))
        for (size_t i = 0; f.id == VIEW_CAPTURE_VIEWS && i < sizeof of_view / sizeof *of_view; i++)
            referred(p, pb_bytes(&f), &of_view[i]);
    if (c.bad)
        stats_add(&p->m->st->stats, p->m->id, STAT_winscope_viewcapture_parse_errors, 1);
}
