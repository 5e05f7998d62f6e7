/* Tests the modules of the library over the traces of test/library, and that each can be included alone and all
 * together. */
#include "library_file.h"
#include "sql/embedded.h"
#include "sql_fixture.h"

#include <dirent.h>

static char paths[64][512];
static int n_paths;

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void find_files(void)
{
    DIR *d = opendir(MERIDIAN_SOURCE_DIR "/test/library");
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        size_t n = strlen(e->d_name);
        if (n > 4 && strcmp(e->d_name + n - 4, ".txt") == 0 && n_paths < 64)
            snprintf(paths[n_paths++], sizeof *paths, MERIDIAN_SOURCE_DIR "/test/library/%s", e->d_name);
    }
    if (d)
        closedir(d);
    qsort(paths, (size_t)n_paths, sizeof *paths, by_name);
}

/* Each question has an engine of its own: what a module does not include is not there. */
START_TEST(modules_answer)
{
    struct library_file file;
    unsigned wrong = 0;
    library_file_open(&file, paths[_i]);
    ck_assert_uint_gt(file.questions.n, 0);
    for (size_t i = 0; i < file.questions.n; i++) {
        const struct library_question *q = &file.questions.p[i];
        struct sql_fixture f = {.e = NULL};
        struct error err = {0};
        ck_assert_msg(engine_open(&f.e, &file.st, &err) == 0 && engine_loaded(f.e, &err) == 0, "%s", err.text);
        char *got = sql_rows(&f, q->sql);
        if (!got || strcmp(got, q->rows) != 0) {
            fprintf(stderr, "%s:%u: %s", paths[_i], q->line, q->sql);
            fprintf(stderr, "got      %s\nexpected %s\n", got ? got : engine_error_text(f.e), q->rows);
            wrong++;
        }
        sqlite3_free(got);
        engine_close(f.e);
    }
    library_file_close(&file);
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

static void include_each(bool alone)
{
    size_t n;
    const struct embedded_sql *all = embedded_sql_all(&n);
    struct sql_fixture f;
    ck_assert_uint_gt(n, 200);
    if (!alone)
        sql_open(&f);
    for (size_t i = 0; i < n; i++) {
        char sql[160];
        if (alone)
            sql_open(&f);
        snprintf(sql, sizeof sql, "INCLUDE PERFETTO MODULE %s;", all[i].module);
        sql_run(&f, sql);
        if (alone)
            sql_close(&f);
    }
    if (!alone)
        sql_close(&f);
}

START_TEST(each_module_stands_alone)
{
    include_each(true);
}
END_TEST

START_TEST(all_modules_go_together)
{
    struct sql_fixture f;
    include_each(false);
    sql_open(&f);
    sql_run(&f, "INCLUDE PERFETTO MODULE *");
    sql_close(&f);
}
END_TEST

/* All rows of all tables and views: what is not asked for by name may still be wrong SQL. */
START_TEST(all_objects_can_be_read)
{
    struct sql_fixture f;
    sql_open(&f);
    sql_run(&f, "INCLUDE PERFETTO MODULE *");
    char *names = sql_rows(&f, "SELECT DISTINCT name FROM __intrinsic_stdlib_objects WHERE object_type IN ('TABLE', "
                               "'VIEW') AND name NOT GLOB '*!*'");
    ck_assert_ptr_nonnull(names);
    unsigned wrong = 0;
    for (char *save, *name = strtok_r(names, ";", &save); name; name = strtok_r(NULL, ";", &save)) {
        char *sql = sqlite3_mprintf("SELECT * FROM %s", name);
        char *got = sql_rows(&f, sql);
        if (!got) {
            fprintf(stderr, "%s: %s\n", name, engine_error_text(f.e));
            wrong++;
        }
        sqlite3_free(got);
        sqlite3_free(sql);
    }
    sqlite3_free(names);
    sql_close(&f);
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

Suite *library_suite(void);
Suite *library_suite(void)
{
    Suite *s = suite_create("library");
    TCase *c = tcase_create("library");
    find_files();
    tcase_set_timeout(c, 30);
    tcase_add_loop_test(c, modules_answer, 0, n_paths);
    tcase_add_test(c, each_module_stands_alone);
    tcase_add_test(c, all_modules_go_together);
    tcase_add_test(c, all_objects_can_be_read);
    suite_add_tcase(s, c);
    return s;
}
