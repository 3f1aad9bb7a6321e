/* Connections that the companion opens for the agent, in the network of the execution and as its user. */

#include "connect.h"
#include "door.h"
#include "system.h"

/* How the kernel has an address; the port and the address are as they go over the network. */
struct address4 {
    uint16_t family;
    unsigned char port[2], address[4], unused[8];
};

struct address6 {
    uint16_t family;
    unsigned char port[2], flow[4], address[16], scope[4];
};

static void take_bytes(struct cursor *cursor, unsigned char *to, size_t size) {
    for (size_t at = 0; at < size; at++)
        to[at] = (unsigned char)take_number(cursor, 1);
}

int is_connection(const unsigned char *bytes, size_t size, struct connection *wanted) {
    struct cursor cursor = {bytes + 1, bytes + size, 0};
    wanted->number = take_number(&cursor, 4);
    wanted->version = (int)take_number(&cursor, 1);
    take_bytes(&cursor, wanted->port, sizeof wanted->port);
    take_bytes(&cursor, wanted->address, wanted->version == 6 ? 16 : 4);
    return !cursor.damaged && cursor.at == cursor.end && (wanted->version == 4 || wanted->version == 6);
}

long connect_to(const struct connection *wanted) {
    struct address4 four = {AF_INET, {0}, {0}, {0}};
    struct address6 six = {AF_INET6, {0}, {0}, {0}, {0}};
    int is6 = wanted->version == 6;
    long result, line = system_call(__NR_socket, is6 ? AF_INET6 : AF_INET, SOCK_STREAM | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);

    if (line < 0)
        return line;
    copy(four.port, wanted->port, sizeof four.port);
    copy(four.address, wanted->address, sizeof four.address);
    copy(six.port, wanted->port, sizeof six.port);
    copy(six.address, wanted->address, sizeof six.address);
    result = is6 ? system_call(__NR_connect, line, (long)&six, sizeof six, 0, 0)
                 : system_call(__NR_connect, line, (long)&four, sizeof four, 0, 0);
    if (result == 0 || result == -EINPROGRESS)
        return line;
    close_it((int)line);
    return result;
}
