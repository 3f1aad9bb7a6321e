/* The door: one message of a Unix socket is one packet. docs/door.md has them all. */

#ifndef MUSTER_DOOR_H
#define MUSTER_DOOR_H

#include "system.h"

enum { DOOR_VERSION = 1, LARGEST_PACKET = 128 * 1024, LARGEST_DATA = 64 * 1024, MOST_TEXTS = 0xFFFF };

/* A packet that is written. What does not fit makes it too long, and it is not sent. */
struct packet {
    size_t size;
    int too_long;
    unsigned char bytes[LARGEST_PACKET];
};

/* A packet that is read. A number or a text beyond its end makes it damaged, and the answer is 0 or empty. */
struct cursor {
    const unsigned char *at, *end;
    int damaged;
};

void put_bytes(struct packet *packet, const void *data, size_t size);
void put_number(struct packet *packet, unsigned long value, int size);
void put_text(struct packet *packet, const char *text);

unsigned long take_number(struct cursor *cursor, int size);
/* A text, copied to where `space` points, with a zero byte behind it; `space` moves on. No text is longer than its packet. */
char *take_text(struct cursor *cursor, char **space);

/* A line to the door at a path, or -ERRNO; `flags` of a socket: SOCK_NONBLOCK has one that waits for nothing. */
int dial(const char *path, int flags);

/* Sends a packet with up to three descriptors; 0, or -ERRNO. */
long send_packet(int line, const struct packet *packet, const int *descriptors, int count, int flags);

#endif
