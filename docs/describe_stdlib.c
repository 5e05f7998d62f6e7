/* Writes docs/stdlib.md from the comments of the standard library: describe_stdlib FILE. */
#include "describe_objects.h"

static const char head[] =
    "# The standard library\n\n"
    "Made from the comments in `stdlib/` by `make docs`. `INCLUDE PERFETTO MODULE a.b;` makes a module's objects "
    "known;\n"
    "`a.*` takes all modules below `a`. Names that begin with `_` are for other modules and not listed.\n";

int main(int argc, char **argv)
{
    struct storage st;
    struct engine *e;
    struct error err = {0};
    FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (!out || storage_init(&st) || engine_open(&e, &st, &err) || fputs(head, out) < 0 ||
        describe_objects(out, e, "package != 'prelude' ORDER BY module, object_type != 'MODULE', name", &err)) {
        fprintf(stderr, "describe_stdlib: %s\n", err.text[0] ? err.text : "usage: describe_stdlib FILE");
        return 1;
    }
    engine_close(e);
    storage_free(&st);
    return fclose(out) != 0;
}
