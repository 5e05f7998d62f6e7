/* Tests the reader of BTF and the event probes that record packet headers. */
#include "capture/probes/ftrace/btf.h"
#include "capture/probes/ftrace/packet_events.h"

#include "base/file.h"
#include "base/vec.h"

#include <check.h>

/* struct sk_buff as made here: { void *head; void *data; union { struct { int:4 x; u16 network_header; }; int y; }; }
 * with the union at byte 24. Strings by offset. */
static const char strings[] = "\0sk_buff\0head\0data\0network_header\0x\0y\0int";
enum { S_SK_BUFF = 1, S_HEAD = 9, S_DATA = 14, S_NETWORK = 19, S_X = 34, S_Y = 36, S_INT = 38 };

enum { INT = 1u << 24, ARRAY = 3u << 24, STRUCT = 4u << 24, UNION = 5u << 24, BITS = 1u << 31 };
static const uint32_t types[] = {
    S_INT,     INT,
    4,         32, /* 1: int */
    0,         ARRAY,
    0,         1,
    1,         7, /* 2: int[7]: passed over */
    0,         STRUCT | BITS | 2,
    4,         S_X,
    1,         4u << 24,
    S_NETWORK, 1,
    16, /* 3 */
    0,         UNION | 2,
    4,         0,
    3,         0,
    S_Y,       1,
    0, /* 4 */
    S_SK_BUFF, STRUCT | 3,
    28,        S_HEAD,
    1,         0,
    S_DATA,    1,
    64,        0,
    4,         192, /* 5 */
};

static struct slice make(uint8_t *out)
{
    uint32_t header[6] = {0x0001EB9F, 24, 0, sizeof types, sizeof types, sizeof strings};
    memcpy(out, header, sizeof header);
    memcpy(out + sizeof header, types, sizeof types);
    memcpy(out + sizeof header + sizeof types, strings, sizeof strings);
    return slice_of(out, sizeof header + sizeof types + sizeof strings);
}

enum { ROOM = 24 + sizeof types + sizeof strings };

static const struct {
    const char *type, *member;
    int rc;
    uint32_t offset;
} cases[] = {
    {"sk_buff", "head", 0, 0},
    {"sk_buff", "data", 0, 8},
    {"sk_buff", "y", 0, 24},
    {"sk_buff", "network_header", 0, 26},
    {"sk_buff", "x", -MRD_ENOTFOUND, 0}, /* a bit-field */
    {"sk_buff", "tail", -MRD_ENOTFOUND, 0},
    {"sock", "head", -MRD_ENOTFOUND, 0},
};

START_TEST(members_are_found)
{
    uint8_t bytes[ROOM];
    uint32_t offset = 0;
    struct error err = {0};
    ck_assert_int_eq(btf_member_offset(make(bytes), cases[_i].type, cases[_i].member, &offset, &err), cases[_i].rc);
    if (!cases[_i].rc)
        ck_assert_uint_eq(offset, cases[_i].offset);
}
END_TEST

START_TEST(damage_is_refused)
{
    uint8_t bytes[ROOM];
    struct slice whole = make(bytes);
    for (size_t len = 0; len < whole.len; len++) {
        uint8_t *copy = mem_alloc(len + 1); /* of its own, so that a read behind it is seen */
        uint32_t offset;
        memcpy(copy, bytes, len);
        ck_assert_int_ne(btf_member_offset(slice_of(copy, len), "sk_buff", "network_header", &offset, NULL), 0);
        mem_free(copy);
    }
    for (size_t at = 0; at < whole.len; at++) {
        for (int bit = 0; bit < 8; bit++) {
            uint32_t offset = 0;
            bytes[at] ^= (uint8_t)(1 << bit);
            (void)btf_member_offset(whole, "sk_buff", "network_header", &offset, NULL);
            bytes[at] ^= (uint8_t)(1 << bit);
        }
    }
}
END_TEST

/* struct sk_buff { struct sk_buff; … }: MAX_NESTING levels of them would be walked for ever. */
START_TEST(types_that_hold_themselves_end)
{
    enum { MEMBERS = 64, TYPE_WORDS = 3, WORDS = TYPE_WORDS * (MEMBERS + 1) };
    uint32_t holder[WORDS] = {S_SK_BUFF, STRUCT | MEMBERS, 8}, offset;
    uint32_t header[6] = {0x0001EB9F, 24, 0, sizeof holder, sizeof holder, sizeof strings};
    uint8_t bytes[sizeof header + sizeof holder + sizeof strings];
    for (size_t i = 0; i < MEMBERS; i++)
        holder[TYPE_WORDS * (i + 1) + 1] = 1; /* without a name, of type 1 */
    memcpy(bytes, header, sizeof header);
    memcpy(bytes + sizeof header, holder, sizeof holder);
    memcpy(bytes + sizeof header + sizeof holder, strings, sizeof strings);
    struct slice file = slice_of(bytes, sizeof bytes);
    ck_assert_int_eq(btf_member_offset(file, "sk_buff", "head", &offset, NULL), -MRD_ENOTFOUND);
}
END_TEST

START_TEST(members_behind_the_types_are_refused)
{
    uint32_t cut[3] = {S_SK_BUFF, STRUCT | 1, 8}, offset; /* says a member, has none */
    uint32_t header[6] = {0x0001EB9F, 24, 0, sizeof cut, sizeof cut, sizeof strings};
    uint8_t bytes[sizeof header + sizeof cut + sizeof strings];
    memcpy(bytes, header, sizeof header);
    memcpy(bytes + sizeof header, cut, sizeof cut);
    memcpy(bytes + sizeof header + sizeof cut, strings, sizeof strings);
    struct slice file = slice_of(bytes, sizeof bytes);
    ck_assert_int_eq(btf_member_offset(file, "sk_buff", "head", &offset, NULL), -MRD_EFORMAT);
}
END_TEST

START_TEST(the_probes_are_written)
{
    uint8_t bytes[ROOM];
    char command[PACKET_HEADERS_COMMAND_BYTES];
    ck_assert_int_eq(packet_headers_command(make(bytes), 0, command, NULL), 0);
    static const char begin[] = "e:meridian/packet_sent net/net_dev_queue head=+0($skbaddr):x16 data=+8($skbaddr):x16 "
                                "network_header=+26($skbaddr):x16 b0=+0(+8($skbaddr)):x64 b1=+8(+8($skbaddr)):x64";
    ck_assert_msg(strncmp(command, begin, sizeof begin - 1) == 0, "%s", command);
    ck_assert_int_eq(packet_headers_command(make(bytes), 1, command, NULL), 0);
    ck_assert_ptr_eq(strstr(command, "e:meridian/packet_received net/netif_receive_skb "), command);
    ck_assert(strstr(command, " b9=+72(+8($skbaddr)):x64"));
}
END_TEST

/* The kernel at hand, where it describes itself. */
START_TEST(this_kernel_is_read)
{
    char *text;
    size_t len;
    uint32_t head, data, network;
    if (file_read_all("/sys/kernel/btf/vmlinux", 256 << 20, &text, &len, NULL))
        return;
    struct slice btf = slice_of(text, len);
    struct error err = {0};
    ck_assert_msg(btf_member_offset(btf, "sk_buff", "head", &head, &err) == 0, "%s", err.text);
    ck_assert_msg(btf_member_offset(btf, "sk_buff", "data", &data, &err) == 0, "%s", err.text);
    ck_assert_msg(btf_member_offset(btf, "sk_buff", "network_header", &network, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(data, head + sizeof(void *)); /* they stand side by side in every kernel so far */
    ck_assert_uint_lt(network, head);
    mem_free(text);
}
END_TEST

Suite *packet_headers_suite(void);
Suite *packet_headers_suite(void)
{
    Suite *s = suite_create("packet_headers");
    TCase *t = tcase_create("packet_headers");
    tcase_add_loop_test(t, members_are_found, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(t, damage_is_refused);
    tcase_add_test(t, types_that_hold_themselves_end);
    tcase_add_test(t, members_behind_the_types_are_refused);
    tcase_add_test(t, the_probes_are_written);
    tcase_add_test(t, this_kernel_is_read);
    suite_add_tcase(s, t);
    return s;
}
