/* Connections for the agent; docs/door.md has the order. */

#ifndef MUSTER_CONNECT_H
#define MUSTER_CONNECT_H

#include <stddef.h>

/* Where to. */
struct connection {
    unsigned long number;
    int version; /* of the Internet Protocol: 4 or 6 */
    unsigned char port[2], address[16];
};

/* Whether a packet is a whole order for a connection, and that order. */
int is_connection(const unsigned char *bytes, size_t size, struct connection *wanted);

/* A socket on its way there, which the agent waits for; or -ERRNO. */
long connect_to(const struct connection *wanted);

#endif
