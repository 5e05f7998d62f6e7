/* tp_shell sync: relates the clocks of separate recordings, and says how well that went. */
#include "shell/commands/sync_plot.h"
#include "shell/shell.h"
#include "shell/ticker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char pairs_sql[] =
    "select p.id, r.name, o.name, r.id, o.id, quality, to_ref_slope, to_ref_offset_ns, slope_ppm, max_error_ns, "
    "matched, "
    "unmatched_send, unmatched_recv, in_hull_above, in_hull_below, windows, inverted_before, inverted_after, x_begin, "
    "x_end, method, in_tree from clock_sync_pair p join machine r on r.id = ref_machine_id join machine o on o.id = "
    "other_machine_id order by p.id";

enum {
    C_ID,
    C_REF,
    C_OTHER,
    C_REF_ID,
    C_OTHER_ID,
    C_QUALITY,
    C_SLOPE,
    C_OFFSET,
    C_PPM,
    C_ERROR,
    C_MATCHED,
    C_UNMATCHED_SEND,
    C_UNMATCHED_RECV,
    C_ABOVE,
    C_BELOW,
    C_WINDOWS,
    C_INVERTED_BEFORE,
    C_INVERTED_AFTER,
    C_BEGIN,
    C_END,
    C_METHOD,
    C_IN_TREE,
};

static const char *host(const struct tp_result *r, int name_column)
{
    return tp_column_type(r, name_column) == TP_TEXT ? tp_text(r, name_column, NULL) : "(no name)";
}

static void print_pair(const struct tp_result *r)
{
    const char *ref = host(r, C_REF), *other = host(r, C_OTHER);
    printf("%s (machine %" PRId64 ") <==> %s (machine %" PRId64 ")\n", ref, tp_int64(r, C_REF_ID), other,
           tp_int64(r, C_OTHER_ID));
    printf("  quality    %s (%s)%s\n", tp_text(r, C_QUALITY, NULL), tp_text(r, C_METHOD, NULL),
           tp_int64(r, C_IN_TREE) ? "" : "; not used: another path is more accurate");
    if (tp_column_type(r, C_SLOPE) != TP_NULL)
        printf("  formula    t(%s) = %.16g * t(%s) %+.3f ns\n", ref, tp_double(r, C_SLOPE), other,
               tp_double(r, C_OFFSET));
    if (tp_column_type(r, C_PPM) != TP_NULL)
        printf("  drift      %s runs %+.3f ppm against %s\n", other, tp_double(r, C_PPM), ref);
    if (tp_column_type(r, C_ERROR) != TP_NULL)
        printf("  accuracy   off by %.3f us at most, over %.3f s in %" PRId64 " window%s\n",
               tp_double(r, C_ERROR) / 1e3, (tp_double(r, C_END) - tp_double(r, C_BEGIN)) / 1e9, tp_int64(r, C_WINDOWS),
               tp_int64(r, C_WINDOWS) == 1 ? "" : "s");
    printf("  messages   %" PRId64 " matched; without partner: %" PRId64 " sent, %" PRId64 " received\n",
           tp_int64(r, C_MATCHED), tp_int64(r, C_UNMATCHED_SEND), tp_int64(r, C_UNMATCHED_RECV));
    printf("  hulls      %" PRId64 " points above, %" PRId64 " below\n", tp_int64(r, C_ABOVE), tp_int64(r, C_BELOW));
    printf("  inverted   %" PRId64 " messages before, %" PRId64 " after\n", tp_int64(r, C_INVERTED_BEFORE),
           tp_int64(r, C_INVERTED_AFTER));
}

/* Machines that nothing relates to the others. */
static int report_islands(struct shell *sh, struct error *err)
{
    struct tp_result *r;
    int rc = tp_query(
        sh->tp,
        "select m.id, m.name from machine m where (select count(*) from machine) > 1 and not exists (select 1 "
        "from clock_sync_pair where in_tree and m.id in (ref_machine_id, other_machine_id)) and m.id not in (select "
        "machine_id from clock_sync)",
        &r);
    while (rc == 0 && (rc = tp_step(r)) == 1) {
        printf("%s (machine %" PRId64
               "): its clock cannot be related to the others: no packet that it exchanged with them "
               "was recorded on both sides\n",
               host(r, 1), tp_int64(r, 0));
        rc = 0;
    }
    tp_result_close(r);
    return rc < 0 ? session_error(sh, rc, err) : 0;
}

static int write_merged(struct shell *sh)
{
    struct ticker ticker;
    fflush(stdout); /* the pairs come first */
    ticker_start(&ticker, "Writing", true);
    int rc = tp_write_merged(sh->tp, sh->opt.output);
    ticker_stop(&ticker);
    return rc;
}

int cmd_sync(struct shell *sh, struct error *err)
{
    const struct text_list *args = &sh->opt.positionals;
    if (args->n == 0)
        return error_set(err, -MRD_EINVALID, "sync: traces are needed, e.g. tp_shell sync hostA/ hostB/");
    sh->needs_packets = sh->writes_all = sh->opt.output != NULL;
    int rc = session_load(sh, args->p, args->n, err);
    if (rc < 0)
        return rc;
    struct tp_result *r;
    int pairs = 0, good = 0;
    rc = tp_query(sh->tp, pairs_sql, &r);
    while (rc == 0 && (rc = tp_step(r)) == 1) {
        if (pairs++)
            printf("\n");
        print_pair(r);
        good += tp_column_type(r, C_SLOPE) != TP_NULL;
        rc = 0;
    }
    tp_result_close(r);
    if (rc < 0)
        return session_error(sh, rc, err);
    rc = report_islands(sh, err);
    if (rc == 0 && sh->opt.plot && pairs)
        rc = sync_plot(sh, sh->opt.plot, err);
    if (rc == 0 && sh->opt.output && good == pairs && pairs && (rc = write_merged(sh)) < 0)
        return session_error(sh, rc, err);
    if (rc == 0 && !pairs)
        return error_set(err, -MRD_ENOTFOUND,
                         "sync: no pair of hosts exchanged packets that both recorded; record net_dev_queue and "
                         "net_if_receive_skb (LTTng) or with packet_headers: true (ftrace) on each");
    if (rc == 0 && good < pairs && sh->opt.output)
        return error_set(err, -MRD_ENOTFOUND, "sync: %s is not written: of %d pairs, %d could not be related",
                         sh->opt.output, pairs, pairs - good);
    return rc == 0 && good < pairs ? 1 : rc;
}
