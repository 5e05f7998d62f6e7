/* Walks the DWARF of a file: units by address, functions of a unit by address, what is inlined in a function. */
#include "symbols/dwarf_lines.h"

#include "base/alloc.h"
#include "symbols/range_list.h"

#include <dwarf.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    NO_UNIT = -1,
    MAX_DEPTH = 64,       /* of blocks, name spaces and inlined functions in each other */
    MAX_ENTRIES = 1 << 26 /* looked at in one unit: a loop of damaged ones ends */
};

struct dwarf_lines {
    const struct libdw *l;
    Elf *elf, *alt_elf;
    Dwarf *dwarf, *alt;
    uint64_t lowest;
    VEC(Dwarf_Die)
    units;
    struct range_list unit_ranges;

    long unit; /* the one whose functions these are, NO_UNIT: none yet */
    VEC(Dwarf_Die)
    routines;
    struct range_list routine_ranges;
    bool everywhere; /* all entries of the unit have been looked at, not only its outer ones */
    uint32_t looked_at;
};

/* --- units -------------------------------------------------------------------------------------------------------- */

static bool add_ranges(struct dwarf_lines *d, struct range_list *to, Dwarf_Die *die, uint32_t id)
{
    Dwarf_Addr base, start = 0, end = 0;
    bool fits = true;
    for (ptrdiff_t at = 0; fits && (at = d->l->dwarf_ranges(die, at, &base, &start, &end)) > 0;)
        if (start >= d->lowest)
            fits = range_list_add(to, start, end, id);
    return fits;
}

static int read_units(struct dwarf_lines *d, struct error *err)
{
    Dwarf_CU *cu = NULL;
    Dwarf_Die die;
    uint8_t type;
    while (d->l->dwarf_get_units(d->dwarf, cu, &cu, NULL, &type, &die, NULL) == 0) {
        if (type != DW_UT_compile && type != DW_UT_skeleton && type != DW_UT_partial)
            continue;
        if (!vec_push(&d->units, die) || !add_ranges(d, &d->unit_ranges, &die, (uint32_t)d->units.n - 1))
            return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    range_list_sort(&d->unit_ranges);
    return 0;
}

int dwarf_lines_open(struct dwarf_lines **out, const struct libdw *l, int fd, int alt_fd, uint64_t lowest,
                     struct error *err)
{
    struct dwarf_lines *d = *out = mem_zalloc(sizeof *d);
    if (!d)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    d->l = l;
    d->lowest = lowest;
    d->unit = NO_UNIT;
    l->elf_version(EV_CURRENT);
    d->elf = l->elf_begin(fd, ELF_C_READ_MMAP, NULL);
    d->dwarf = d->elf ? l->dwarf_begin_elf(d->elf, DWARF_C_READ, NULL) : NULL;
    if (!d->dwarf)
        return error_set(err, -MRD_EFORMAT, "no debugging information can be read");
    if (alt_fd >= 0) {
        d->alt_elf = l->elf_begin(alt_fd, ELF_C_READ_MMAP, NULL);
        d->alt = d->alt_elf ? l->dwarf_begin_elf(d->alt_elf, DWARF_C_READ, NULL) : NULL;
        if (d->alt)
            l->dwarf_setalt(d->dwarf, d->alt);
    }
    return read_units(d, err);
}

void dwarf_lines_close(struct dwarf_lines *d)
{
    if (!d)
        return;
    vec_free(&d->units);
    vec_free(&d->routines);
    range_list_free(&d->unit_ranges);
    range_list_free(&d->routine_ranges);
    if (d->dwarf)
        d->l->dwarf_end(d->dwarf);
    if (d->alt)
        d->l->dwarf_end(d->alt);
    if (d->elf)
        d->l->elf_end(d->elf);
    if (d->alt_elf)
        d->l->elf_end(d->alt_elf);
    mem_free(d);
}

/* --- functions of a unit ------------------------------------------------------------------------------------------ */

/* Whether functions with code can be inside. */
static bool may_hold_routines(const struct dwarf_lines *d, int tag)
{
    switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
        return true;
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type: /* Rust's have methods */
    case DW_TAG_inlined_subroutine:
        return d->everywhere;
    default:
        return false;
    }
}

static bool add_routine(struct dwarf_lines *d, Dwarf_Die *die)
{
    size_t before = d->routine_ranges.list.n;
    if (!add_ranges(d, &d->routine_ranges, die, (uint32_t)d->routines.n))
        return false;
    return d->routine_ranges.list.n == before || vec_push(&d->routines, *die);
}

/* False when out of memory. */
static bool walk_routines(struct dwarf_lines *d, Dwarf_Die *parent, int depth)
{
    Dwarf_Die die;
    if (depth > MAX_DEPTH || d->l->dwarf_child(parent, &die) != 0)
        return true;
    do {
        int tag = d->l->dwarf_tag(&die);
        if (tag == DW_TAG_subprogram && !add_routine(d, &die))
            return false;
        if (may_hold_routines(d, tag) && !walk_routines(d, &die, depth + 1))
            return false;
    } while (++d->looked_at < MAX_ENTRIES && d->l->dwarf_siblingof(&die, &die) == 0);
    return true;
}

static bool read_routines(struct dwarf_lines *d, uint32_t unit, bool everywhere)
{
    vec_clear(&d->routines);
    vec_clear(&d->routine_ranges.list);
    d->unit = unit;
    d->everywhere = everywhere;
    d->looked_at = 0;
    bool fits = walk_routines(d, &d->units.p[unit], 0);
    range_list_sort(&d->routine_ranges);
    return fits;
}

/* The function that has code of its own at an address. Most stand at the outside of their unit; when none does, the
 * whole unit is looked at, once. */
static Dwarf_Die *find_routine(struct dwarf_lines *d, uint32_t unit, uint64_t address)
{
    if (d->unit != (long)unit && !read_routines(d, unit, false))
        return NULL;
    const struct code_range *r = range_list_find(&d->routine_ranges, address);
    if (!r && !d->everywhere && read_routines(d, unit, true))
        r = range_list_find(&d->routine_ranges, address);
    return r ? &d->routines.p[r->id] : NULL;
}

/* --- names and lines ---------------------------------------------------------------------------------------------- */

static const char *text_of(const struct libdw *l, Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute a;
    return l->dwarf_attr_integrate(die, name, &a) ? l->dwarf_formstring(&a) : NULL;
}

static const char *name_of(const struct libdw *l, Dwarf_Die *die)
{
    static const unsigned names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name};
    const char *name = NULL;
    for (size_t i = 0; !name && i < sizeof names / sizeof *names; i++)
        name = text_of(l, die, names[i]);
    return name;
}

static Dwarf_Word number_of(const struct libdw *l, Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute a;
    Dwarf_Word v;
    return l->dwarf_attr(die, name, &a) && l->dwarf_formudata(&a, &v) == 0 ? v : 0;
}

/* Where an inlined function was called. */
static void call_place(const struct libdw *l, Dwarf_Die *unit, Dwarf_Die *inlined, struct code_line *to)
{
    Dwarf_Files *files;
    size_t n;
    Dwarf_Word file = number_of(l, inlined, DW_AT_call_file);
    to->line = (uint32_t)number_of(l, inlined, DW_AT_call_line);
    to->file =
        l->dwarf_getsrcfiles(unit, &files, &n) == 0 && file < n ? l->dwarf_filesrc(files, file, NULL, NULL) : NULL;
}

static bool covers(const struct libdw *l, Dwarf_Die *die, uint64_t address)
{
    Dwarf_Addr base, start = 0, end = 0;
    for (ptrdiff_t at = 0; (at = l->dwarf_ranges(die, at, &base, &start, &end)) > 0;)
        if (address >= start && address < end)
            return true;
    return false;
}

/* The entry inside of `in` that an address lies in: an inlined function, or a block (whose ranges may be those of what
 * it holds, or not be there at all). */
static bool step_into(struct dwarf_lines *d, Dwarf_Die *in, uint64_t address, Dwarf_Die *out)
{
    Dwarf_Die die;
    if (d->l->dwarf_child(in, &die) != 0)
        return false;
    do {
        int tag = d->l->dwarf_tag(&die);
        if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) && covers(d->l, &die, address)) {
            *out = die;
            return true;
        }
    } while (++d->looked_at < MAX_ENTRIES && d->l->dwarf_siblingof(&die, &die) == 0);
    return false;
}

/* The inlined functions at an address from the outside in; their number. */
static size_t find_inlined(struct dwarf_lines *d, Dwarf_Die *routine, uint64_t address,
                           Dwarf_Die out[DWARF_MAX_INLINED])
{
    size_t n = 0;
    Dwarf_Die at = *routine, next;
    for (int depth = 0; depth < 4 * MAX_DEPTH && n < DWARF_MAX_INLINED && step_into(d, &at, address, &next); depth++) {
        if (d->l->dwarf_tag(&next) == DW_TAG_inlined_subroutine)
            out[n++] = next;
        at = next;
    }
    return n;
}

size_t dwarf_lines_at(struct dwarf_lines *d, uint64_t address, struct code_line out[DWARF_MAX_INLINED + 1])
{
    Dwarf_Die inlined[DWARF_MAX_INLINED];
    const struct code_range *r = range_list_find(&d->unit_ranges, address);
    if (!r)
        return 0;
    Dwarf_Die *unit = &d->units.p[r->id];
    Dwarf_Line *line = d->l->dwarf_getsrc_die(unit, address);
    struct code_line place = {.file = line ? d->l->dwarf_linesrc(line, NULL, NULL) : NULL,
                              .dir = text_of(d->l, unit, DW_AT_comp_dir)};
    int number = 0;
    if (line && d->l->dwarf_lineno(line, &number) == 0 && number > 0)
        place.line = (uint32_t)number;
    Dwarf_Die *routine = find_routine(d, r->id, address);
    d->looked_at = 0;
    size_t n = routine ? find_inlined(d, routine, address, inlined) : 0;
    for (size_t i = 0; i < n; i++) { /* the innermost stands at the place of the address, each other where it calls */
        Dwarf_Die *die = &inlined[n - 1 - i];
        place.function = name_of(d->l, die);
        out[i] = place;
        call_place(d->l, unit, die, &place);
    }
    place.function = routine ? name_of(d->l, routine) : NULL;
    out[n] = place;
    return n + 1;
}
