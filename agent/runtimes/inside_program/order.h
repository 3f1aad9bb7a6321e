/* A command that the agent orders, and how it is started. docs/door.md has the order. */

#ifndef MUSTER_ORDER_H
#define MUSTER_ORDER_H

#include "door.h"

enum { LONGEST_NAME = 64 };
enum { PART_PROGRAM = 1, PART_DIRECTORY = 2, PART_STREAMS = 3 };

/* What a command is started with. The text of all fits where its packet did: each of them had four bytes more. */
struct order {
    unsigned long number;
    int terminal, input, daemon, shell;
    struct window_size size;
    char *workdir;
    char *name; /* of a shell whose terminal is kept for the next agent; empty: none */
    char *words[MOST_TEXTS + 1];
    char *variables[MOST_TEXTS + 1];
    char text[LARGEST_PACKET + 8];
};

extern struct order order;

/* Whether a packet is a whole order, which then stands in `order`. */
int is_order(const unsigned char *bytes, size_t size);

/* Starts what was ordered: its pid, and the ends of its streams for the agent; or -ERRNO, and the part that is at fault. */
long start_order(char **inherited, int *ends, int *count, int *part);

/* The child of a fork: leads a session of its own, with all signals as they are by default. */
void stand_alone(void);

#endif
