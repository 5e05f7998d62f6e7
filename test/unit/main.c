/* Runs the unit-test suites: all of suites.def, or those named on the command line. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUITE(name) Suite *name##_suite(void);
#include "suites.def"
#undef SUITE

static const struct {
    const char *name;
    Suite *(*make)(void);
} suites[] = {
#define SUITE(name) {#name, name##_suite},
#include "suites.def"
#undef SUITE
};

static int wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return argc == 1;
}

int main(int argc, char **argv)
{
    SRunner *runner = NULL;
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        if (!wanted(suites[i].name, argc, argv))
            continue;
        if (runner)
            srunner_add_suite(runner, suites[i].make());
        else
            runner = srunner_create(suites[i].make());
    }
    if (!runner) {
        fprintf(stderr, "no such suite\n");
        return 2;
    }
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
