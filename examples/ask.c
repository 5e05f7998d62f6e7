/* Asks a trace one question from C: ask TRACE SQL */
#include <meridian/tp.h>

#include <stdio.h>

static int print_rows(struct tp_result *r)
{
    int rc;
    while ((rc = tp_step(r)) == 1)
        for (int c = 0; c < tp_columns(r); c++) {
            const char *text = tp_text(r, c, NULL);
            printf("%s%c", text ? text : "NULL", c + 1 < tp_columns(r) ? '\t' : '\n');
        }
    return rc;
}

int main(int argc, char **argv)
{
    struct tp *tp;
    struct tp_result *r;
    if (argc != 3) {
        fprintf(stderr, "usage: ask TRACE SQL\n");
        return 2;
    }
    int rc = tp_open(&tp, NULL);
    if (rc == 0)
        rc = tp_load(tp, argv[1]);
    if (rc == 0)
        rc = tp_finish(tp);
    if (rc == 0 && (rc = tp_query(tp, argv[2], &r)) == 0) {
        rc = print_rows(r);
        tp_result_close(r);
    }
    if (rc < 0)
        fprintf(stderr, "%s\n", tp_error(tp));

    struct tp_stat loss;
    for (size_t it = 0; rc == 0 && tp_stats_next(tp, &it, &loss);)
        if (loss.severity[0] == 'd') /* data_loss */
            fprintf(stderr, "lost: %s %lld\n", loss.name, (long long)loss.value);
    tp_close(tp);
    return rc < 0;
}
