/* The companion: starts commands and opens connections for the agent, and hands over their descriptors. */

#include "connect.h"
#include "inside.h"
#include "order.h"

enum { MOST_COMMANDS = 128, LONGEST_PAUSE = 2000, SHORTEST_PAUSE = 200 };

struct command {
    long pid; /* 0: the place is free */
    unsigned long number;
    int told; /* whether the agent that asked for it is there, or one that got its terminal */
    int daemon;
    int output[2]; /* of a daemon: what it prints, for when the agent is gone; -1: nothing */
    int terminal;  /* of a kept shell, for the next agent; -1: none */
    char name[LONGEST_NAME + 1];
};

static struct command commands[MOST_COMMANDS];
static struct packet packet;
static char **inherited;

static void say_number(int line, char kind, unsigned long number, unsigned long value, int size) {
    packet.size = 0;
    packet.too_long = 0;
    put_bytes(&packet, &kind, 1);
    put_number(&packet, number, 4);
    put_number(&packet, value, size);
    send_packet(line, &packet, 0, 0, 0);
}

/* Whether a command runs, or something of it may still print. */
static int is_taken(const struct command *command) {
    return command->pid || command->output[0] >= 0 || command->output[1] >= 0;
}

/* A place for another command, or 0. */
static struct command *free_place(void) {
    for (struct command *each = commands; each < commands + MOST_COMMANDS; each++)
        if (!is_taken(each))
            return each;
    return 0;
}

static void say_failed(int line, unsigned long number, long result, int part) {
    packet.size = 0;
    packet.too_long = 0;
    put_bytes(&packet, "F", 1);
    put_number(&packet, number, 4);
    put_number(&packet, (unsigned long)-result, 4);
    put_number(&packet, (unsigned long)part, 1);
    send_packet(line, &packet, 0, 0, 0);
}

static void say_started(int line, const struct command *command, const int *ends, int count) {
    packet.size = 0;
    packet.too_long = 0;
    put_bytes(&packet, "P", 1);
    put_number(&packet, command->number, 4);
    put_number(&packet, (unsigned long)command->pid, 4);
    send_packet(line, &packet, ends, count, 0);
}

static void carry_out(int line) {
    int ends[3] = {-1, -1, -1}, count = 0, part = PART_PROGRAM;
    struct command *command = free_place();
    long pid = command ? start_order(inherited, ends, &count, &part) : -EAGAIN;

    if (pid > 0) {
        *command = (struct command){pid, order.number, 1, order.daemon, {-1, -1}, -1, {0}};
        say_started(line, command, ends, count);
        if (*order.name) {
            copy(command->name, order.name, length_of(order.name));
            command->terminal = ends[0];
            count = 0;
        } else if (order.daemon && !order.terminal) {
            command->output[0] = ends[count - 2];
            command->output[1] = ends[count - 1];
            count -= 2;
        }
    } else {
        say_failed(line, order.number, pid, part);
    }
    for (int each = 0; each < count; each++)
        close_it(ends[each]);
}

/* Has a child serve files at one end of a pair of sockets, and hands over the other end. */
static void offer_files(int line, unsigned long number) {
    struct command *command = free_place();
    int pair[2] = {-1, -1};
    long pid = command ? system_call(__NR_socketpair, AF_UNIX, SOCK_STREAM | O_CLOEXEC, 0, (long)pair, 0) : -EAGAIN;

    if (pid >= 0) {
        pid = fork_here();
        if (pid == 0) {
            stand_alone();
            system_call(__NR_dup3, pair[1], 0, 0, 0, 0);
            system_call(__NR_dup3, pair[1], 1, 0, 0, 0);
            system_call(__NR_close_range, 3, ~0U, 0, 0, 0);
            leave(serve_files());
        }
    }
    if (pid > 0) {
        *command = (struct command){pid, number, 1, 0, {-1, -1}, -1, {0}};
        say_started(line, command, pair, 1);
    } else {
        say_failed(line, number, pid, PART_STREAMS);
    }
    close_it(pair[0]);
    close_it(pair[1]);
}

/* Gives the terminals of kept shells to an agent that is new here; 0, or -ERRNO where it is gone already. */
static long hand_over(int line) {
    long result = 0;
    for (struct command *each = commands; each < commands + MOST_COMMANDS && result >= 0; each++)
        if (each->pid && each->terminal >= 0) {
            packet.size = 0;
            packet.too_long = 0;
            put_bytes(&packet, "T", 1);
            put_number(&packet, each->number, 4);
            put_number(&packet, (unsigned long)each->pid, 4);
            put_text(&packet, each->name);
            result = send_packet(line, &packet, &each->terminal, 1, 0);
            each->told = 1;
        }
    return result;
}

/* Hands over the connection as soon as it is begun, so that a slow one holds up nothing here. */
static void open_connection(int line, const struct connection *wanted) {
    long result = connect_to(wanted);
    int connection = (int)result;

    if (result < 0) {
        say_number(line, 'X', wanted->number, (unsigned long)-result, 4);
        return;
    }
    packet.size = 0;
    packet.too_long = 0;
    put_bytes(&packet, "M", 1);
    put_number(&packet, wanted->number, 4);
    send_packet(line, &packet, &connection, 1, 0);
    close_it(connection);
}

static void close_terminal(struct command *command) {
    close_it(command->terminal);
    command->terminal = -1;
}

static void close_outputs(struct command *command) {
    for (int each = 0; each < 2; each++) {
        close_it(command->output[each]);
        command->output[each] = -1;
    }
}

static void reap(int line) {
    int status;
    long pid;

    while ((pid = system_call(__NR_wait4, -1, (long)&status, WNOHANG, 0, 0)) > 0)
        for (struct command *each = commands; each < commands + MOST_COMMANDS; each++)
            if (each->pid == pid) {
                int code = status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff;
                if (each->told && line >= 0)
                    say_number(line, 'E', each->number, (unsigned long)code, 1);
                if (each->told)
                    close_outputs(each);
                close_terminal(each);
                each->pid = 0;
            }
}

/* Has a command hang up, also where it is stopped; its terminal is kept no longer. */
static void hang_up(struct command *command) {
    close_terminal(command);
    system_call(__NR_kill, -command->pid, SIGHUP, 0, 0, 0);
    system_call(__NR_kill, -command->pid, SIGCONT, 0, 0, 0);
}

static int is_signal(const unsigned char *bytes, size_t size) {
    struct cursor cursor = {bytes + 1, bytes + size, 0};
    unsigned long number = take_number(&cursor, 4), signal = take_number(&cursor, 1);

    if (cursor.damaged || cursor.at != cursor.end || signal == 0 || signal > LAST_SIGNAL)
        return 0;
    for (struct command *each = commands; each < commands + MOST_COMMANDS; each++)
        if (each->pid && each->told && each->number == number) {
            if (signal == SIGHUP)
                hang_up(each);
            else
                system_call(__NR_kill, -each->pid, (long)signal, 0, 0, 0);
        }
    return 1;
}

static int is_files(const unsigned char *bytes, size_t size, unsigned long *number) {
    struct cursor cursor = {bytes + 1, bytes + size, 0};
    *number = take_number(&cursor, 4);
    return !cursor.damaged && cursor.at == cursor.end;
}

/* The agent is gone: what is no daemon and no kept shell ends, and what daemons print goes where the companion's own output
 * goes. */
static void forget(void) {
    for (struct command *each = commands; each < commands + MOST_COMMANDS; each++) {
        if (each->pid && each->told && !each->daemon && each->terminal < 0)
            hang_up(each);
        each->told = 0;
    }
}

/* Passes on what forgotten daemons print; whoever else has their output open may print after their end. */
static size_t watch(struct poll_entry *entries, size_t count) {
    for (struct command *each = commands; each < commands + MOST_COMMANDS; each++)
        for (int stream = 0; stream < 2; stream++)
            if (!each->told && each->output[stream] >= 0)
                entries[count++] = (struct poll_entry){each->output[stream], POLLIN, 0};
    return count;
}

static void close_output(int descriptor) {
    for (struct command *each = commands; each < commands + MOST_COMMANDS; each++)
        for (int stream = 0; stream < 2; stream++)
            if (each->output[stream] == descriptor)
                each->output[stream] = -1;
    close_it(descriptor);
}

static void pass_on(const struct poll_entry *entries, size_t count) {
    for (size_t at = 0; at < count; at++) {
        long size = entries[at].found ? read_some(entries[at].descriptor, packet.bytes, LARGEST_DATA) : -EAGAIN;
        if (size > 0)
            write_all(2, packet.bytes, (size_t)size);
        else if (size != -EAGAIN && size != -EINTR)
            close_output(entries[at].descriptor);
    }
}

/* Serves the agent while it is there. */
static void serve(int line, int children) {
    static unsigned char bytes[LARGEST_PACKET];
    struct poll_entry entries[2 + 2 * MOST_COMMANDS] = {{line, POLLIN, 0}, {children, POLLIN, 0}};
    struct connection connection;
    unsigned long number;

    for (;;) {
        size_t count = watch(entries, 2);
        if (wait_for(entries, count) < 0)
            continue;
        pass_on(entries + 2, count - 2);
        if (entries[1].found) {
            unsigned char ignored[128];
            read_some(children, ignored, sizeof ignored);
            reap(line);
        }
        if (entries[0].found) {
            long size = system_call(__NR_recvfrom, line, (long)bytes, sizeof bytes, MSG_DONTWAIT, 0);
            if (size == -EAGAIN || size == -EINTR)
                continue;
            if (size <= 0)
                return;
            if (bytes[0] == 'C' && is_order(bytes, (size_t)size))
                carry_out(line);
            else if (bytes[0] == 'L' && is_files(bytes, (size_t)size, &number))
                offer_files(line, number);
            else if (bytes[0] == 'N' && is_connection(bytes, (size_t)size, &connection))
                open_connection(line, &connection);
            else if (bytes[0] != 'K' || !is_signal(bytes, (size_t)size))
                return;
        }
    }
}

/* Waits before the next call of the agent; what happens meanwhile is looked after. */
static void rest(int children, int64_t milliseconds) {
    struct poll_entry entries[1 + 2 * MOST_COMMANDS] = {{children, POLLIN, 0}};
    struct span span = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    size_t count = watch(entries, 1);

    if (system_call(__NR_ppoll, (long)entries, (long)count, (long)&span, 0, 8) > 0) {
        pass_on(entries + 1, count - 1);
        if (entries[0].found) {
            unsigned char ignored[128];
            read_some(children, ignored, sizeof ignored);
            reap(-1);
        }
    }
}

/* Has 0 to 2 open and nothing else, so that no command gets what was meant for the companion. */
static void open_standard_streams(void) {
    long last;
    system_call(__NR_close_range, 3, ~0U, 0, 0, 0);
    do
        last = system_call(__NR_openat, AT_FDCWD, (long)"/dev/null", O_RDWR, 0, 0);
    while (last >= 0 && last < 3);
    close_it((int)last);
}

int stay(const char *door, char **environment) {
    const char *ticket = value_of("MUSTER_TICKET", environment);
    const uint64_t heard = bit_of(SIGCHLD);
    int64_t pause = SHORTEST_PAUSE;
    int children;

    inherited = environment;
    for (struct command *each = commands; each < commands + MOST_COMMANDS; each++)
        each->output[0] = each->output[1] = each->terminal = -1;
    open_standard_streams();
    system_call(__NR_setsid, 0, 0, 0, 0, 0);
    set_signal(SIGHUP, 1);
    set_signal(SIGINT, 1);
    set_signal(SIGTERM, 1);
    set_signal(SIGPIPE, 1);
    mask_signals(heard);
    children = (int)system_call(__NR_signalfd4, -1, (long)&heard, 8, O_CLOEXEC, 0);
    if (!ticket || children < 0) {
        say("muster-inside: there is no MUSTER_TICKET, or no signalfd\n");
        return 2;
    }
    for (;;) {
        int line = dial(door, 0);
        if (line >= 0) {
            pause = SHORTEST_PAUSE;
            packet.size = 0;
            packet.too_long = 0;
            put_bytes(&packet, "S", 1);
            put_number(&packet, DOOR_VERSION, 1);
            put_text(&packet, ticket);
            if (send_packet(line, &packet, 0, 0, 0) == 0 && hand_over(line) == 0)
                serve(line, children);
            close_it(line);
            forget();
        }
        rest(children, pause);
        pause = pause * 2 < LONGEST_PAUSE ? pause * 2 : LONGEST_PAUSE;
    }
}
