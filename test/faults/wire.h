/* What the last rank does to its own connections behind the library's back (victim.c): junk, false
 * frames and packets, data that is changed, repeated or left out on its way. The layouts are those
 * of src/mplite/net/frame.h and src/ch_lite/core/packet.h; run defines the numbers (WIRE_VERSION,
 * FRAME_CONTROL, PACKET_CTS …), which it reads there. */
#ifndef WIRE_H_INCLUDED
#define WIRE_H_INCLUDED

#include <ifaddrs.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "../mpi/mpi_test.h"

static int same_address(const struct sockaddr *a, const struct sockaddr_storage *b)
{
    if (!a || a->sa_family != b->ss_family)
        return 0;
    if (a->sa_family == AF_INET)
        return memcmp(&((const struct sockaddr_in *) a)->sin_addr,
                      &((const struct sockaddr_in *) b)->sin_addr, sizeof(struct in_addr)) == 0;
    return a->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *) a)->sin6_addr,
                  &((const struct sockaddr_in6 *) b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/* Whether an interface of LITE_IFACE has the address. mpiexec's own connections, which a rank may
 * have inherited, are on another network. */
static int ranks_use(const struct sockaddr_storage *address)
{
    const char *names = getenv("LITE_IFACE");
    struct ifaddrs *all = NULL;
    int found = 0;
    if (!names || getifaddrs(&all) != 0)
        return 0;
    for (const struct ifaddrs *one = all; one && !found; one = one->ifa_next)
        found = strstr(names, one->ifa_name) && same_address(one->ifa_addr, address);
    freeifaddrs(all);
    return found;
}

static int is_connection(int fd)
{
    struct sockaddr_storage here, there;
    int protocol = 0;
    socklen_t bytes = sizeof protocol, here_bytes = sizeof here, there_bytes = sizeof there;
    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes) == 0 &&
           protocol == IPPROTO_TCP && getpeername(fd, (void *) &there, &there_bytes) == 0 &&
           getsockname(fd, (void *) &here, &here_bytes) == 0 && ranks_use(&here);
}

/* Into each connection to a rank, by one call: while short messages are exchanged it is between two
 * frames then. */
static void write_to_peers(const void *bytes, size_t length)
{
    int written = 0;
    for (int fd = 3; fd < 1024; fd++) {
        if (!is_connection(fd))
            continue;
        const long n = syscall(SYS_sendto, fd, bytes, length, MSG_NOSIGNAL, NULL, 0);
        if (n != (long) length) {
            fprintf(stderr, "victim: %ld of %zu bytes written: %s\n", n, length, strerror(errno));
            _exit(2);
        }
        written++;
    }
    if (written == 0) {
        fprintf(stderr, "victim: no connection to a rank\n");
        _exit(2);
    }
}

/* ---- what no rank would send ---- */

struct frame {
    uint8_t magic, pad, version, kind;
    uint32_t length;
    uint64_t id, offset, total;
};
_Static_assert(sizeof(struct frame) == FRAME_HEADER_BYTES, "frame.h has another header");

struct packet_header {
    uint8_t type, flags;
    uint16_t reserved;
    uint32_t credit, am_credit;
};
struct message_packet {
    struct packet_header header;
    uint32_t context;
    int32_t source, tag;
    uint64_t bytes, sender;
};
struct ack_packet {
    struct packet_header header;
    uint32_t reserved;
    uint64_t sender;
};
struct cts_packet {
    struct packet_header header;
    uint32_t resend_fragment;
    uint64_t sender, transfer, accepted;
};
struct access_packet {
    struct packet_header header;
    uint32_t reserved;
    uint64_t region, offset, bytes, id;
};
_Static_assert(sizeof(struct message_packet) == MESSAGE_PACKET_BYTES &&
                   sizeof(struct ack_packet) == ACK_PACKET_BYTES &&
                   sizeof(struct cts_packet) == CTS_PACKET_BYTES &&
                   sizeof(struct access_packet) == ACCESS_PACKET_BYTES,
               "packet.h has other packets");

static struct frame frame_of(uint8_t kind, uint32_t length)
{
    return (struct frame){.magic = FRAME_MAGIC,
                          .version = WIRE_VERSION,
                          .kind = kind,
                          .length = length,
                          .total = length};
}

static void write_frame(struct frame header, const void *payload, size_t bytes)
{
    unsigned char whole[sizeof header + 4096];
    memcpy(whole, &header, sizeof header);
    if (bytes > 0)
        memcpy(whole + sizeof header, payload, bytes);
    write_to_peers(whole, sizeof header + bytes);
}

static void write_packet(const void *packet, size_t bytes)
{
    write_frame(frame_of(FRAME_CONTROL, (uint32_t) bytes), packet, bytes);
}
#define WRITE_PACKET(...) write_packet(&(__VA_ARGS__), sizeof(__VA_ARGS__))

static void junk(void)
{
    unsigned char bytes[1000];
    memset(bytes, 0xff, sizeof bytes); /* neither a frame's magic nor a record's length */
    write_to_peers(bytes, sizeof bytes);
}

/* As LITE_ENCRYPT cuts the stream: a length that may be, and a tag that is not right. */
static void false_record(void)
{
    unsigned char bytes[4 + 40 + 16] = {40};
    write_to_peers(bytes, sizeof bytes);
}

static void false_kind(void)
{
    write_frame(frame_of(FRAME_KINDS, 0), NULL, 0);
}

static void false_version(void)
{
    struct frame header = frame_of(FRAME_TRANSFER, 0);
    header.version = WIRE_VERSION - 1;
    write_frame(header, NULL, 0);
}

static void false_length(void)
{
    write_frame(frame_of(FRAME_CONTROL, CONTROL_BYTES_MAX + 1), NULL, 0);
}

static void false_piece(void)
{
    struct frame header = frame_of(FRAME_TRANSFER, 8);
    header.offset = 1; /* it ends behind its whole */
    write_frame(header, "12345678", 8);
}

static void false_goodbye(void)
{
    write_frame(frame_of(FRAME_GOODBYE, 0), NULL, 0);
}

static void false_lane(void)
{
    struct frame header = frame_of(FRAME_LANE, 0);
    header.id = 3 | 1000000u << 8; /* a million frames on lane 3 */
    write_frame(header, NULL, 0);
}

static void false_transfer(void)
{
    struct frame header = frame_of(FRAME_TRANSFER, 8);
    header.id = 0x123456789u;
    write_frame(header, "12345678", 8);
}

static void false_channel(void)
{
    write_frame(frame_of(FRAME_CHANNEL, 8), "12345678", 8);
}

static void false_channel_dies(void)
{
    false_channel();
    raise(SIGKILL);
}

static void false_packet(void)
{
    WRITE_PACKET((struct packet_header){.type = 200});
}

static void false_message(void)
{
    /* says that there are 8 bytes behind it */
    WRITE_PACKET((struct message_packet){
        .header.type = PACKET_SHORT, .source = my_rank, .tag = 1, .bytes = 8});
}

static void false_ack(void)
{
    WRITE_PACKET((struct ack_packet){.header.type = PACKET_SYNCACK, .sender = 0x123456789u});
}

static void false_put_ack(void)
{
    WRITE_PACKET((struct ack_packet){.header.type = PACKET_PUTACK, .sender = 1});
}

static void false_cts(void)
{
    WRITE_PACKET((struct cts_packet){
        .header.type = PACKET_CTS, .sender = 0x123456789u, .transfer = 7, .accepted = 100});
}

static void false_credit(void)
{
    WRITE_PACKET((struct packet_header){.type = PACKET_CREDIT, .credit = 1u << 30});
}

static void false_access(void)
{
    WRITE_PACKET((struct access_packet){
        .header.type = PACKET_GET, .region = 0x123456789u, .bytes = 8, .id = 1});
}

/* More than LITE_CREDITS=16K, in a communicator that nobody has. */
static void false_overdraft(void)
{
    struct {
        struct frame frame;
        struct message_packet message;
        unsigned char data[1000];
    } many[20];
    memset(many, 0, sizeof many);
    for (int i = 0; i < 20; i++) {
        many[i].frame = frame_of(FRAME_CONTROL, sizeof many[i].message + sizeof many[i].data);
        many[i].message = (struct message_packet){.header.type = PACKET_SHORT,
                                                  .context = 60000,
                                                  .source = my_rank,
                                                  .bytes = sizeof many[i].data};
    }
    write_to_peers(many, sizeof many);
}

/* ---- on its way ---- */

/* What happens to the next data that is sent to a rank. The library calls send and sendmsg, of
 * which these come first. */
enum { AS_IT_IS, CHANGED, REPEATED, LEFT_OUT };
static volatile int next_data = AS_IT_IS;

static ssize_t tampered(int fd, const struct msghdr *message, int flags)
{
    unsigned char bytes[4096];
    size_t length = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        const struct iovec part = message->msg_iov[i];
        if (length + part.iov_len > sizeof bytes)
            return syscall(SYS_sendmsg, fd, message, flags);
        memcpy(bytes + length, part.iov_base, part.iov_len);
        length += part.iov_len;
    }
    if (next_data == CHANGED)
        bytes[length / 2] ^= 1;
    const int times = next_data == LEFT_OUT ? 0 : next_data == REPEATED ? 2 : 1;
    next_data = AS_IT_IS;
    for (int i = 0; i < times; i++)
        if (syscall(SYS_sendto, fd, bytes, length, flags, NULL, 0) != (long) length)
            _exit(2);
    return (ssize_t) length;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (next_data != AS_IT_IS && is_connection(fd))
        return tampered(fd, message, flags);
    return syscall(SYS_sendmsg, fd, message, flags);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
    struct iovec part = {(void *) bytes, length};
    const struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (next_data != AS_IT_IS && is_connection(fd))
        return tampered(fd, &message, flags);
    return syscall(SYS_sendto, fd, bytes, length, flags, NULL, 0);
}

static void change(void)
{
    next_data = CHANGED;
}

static void repeat(void)
{
    next_data = REPEATED;
}

/* What is missing shows when something comes behind it. */
static void leave_out(void)
{
    static int numbers[5];
    next_data = LEFT_OUT;
    for (int i = 0; i < 5; i++) {
        MPI_Request request;
        int flag;
        MPI_Isend(&numbers[i], 1, MPI_INT, 0, 999, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        MPI_Iprobe(0, 998, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        rest(0.02);
    }
}

static const struct {
    const char *name;
    void (*done)(void);
} wire_faults[] = {
    {"junk", junk},
    {"changed", change},
    {"repeated", repeat},
    {"left_out", leave_out},
    {"false_record", false_record},
    {"false_kind", false_kind},
    {"false_version", false_version},
    {"false_length", false_length},
    {"false_piece", false_piece},
    {"false_goodbye", false_goodbye},
    {"false_lane", false_lane},
    {"false_transfer", false_transfer},
    {"false_channel", false_channel},
    {"false_channel_dies", false_channel_dies},
    {"false_packet", false_packet},
    {"false_message", false_message},
    {"false_ack", false_ack},
    {"false_put_ack", false_put_ack},
    {"false_cts", false_cts},
    {"false_credit", false_credit},
    {"false_access", false_access},
    {"false_overdraft", false_overdraft},
};

/* Whether it is one of these; then it is done. */
static int do_to_the_wire(const char *name)
{
    for (size_t i = 0; i < sizeof wire_faults / sizeof *wire_faults; i++)
        if (strcmp(wire_faults[i].name, name) == 0) {
            wire_faults[i].done();
            return 1;
        }
    return 0;
}

#endif
