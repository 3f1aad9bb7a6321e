/* The companion: starts commands and opens connections for the agent, and hands over their descriptors. */

#include "connect.h"
#include "door.h"
#include "inside.h"

enum { MOST_COMMANDS = 128, LONGEST_PAUSE = 2000, SHORTEST_PAUSE = 200 };

struct command {
    long pid; /* 0: the place is free */
    unsigned long number;
    int told;      /* whether the agent that asked for it is there */
    int daemon;
    int output[2]; /* of a daemon: what it prints, for when the agent is gone; -1: nothing */
};

/* What a command is started with. The text of all fits where its packet did: each of them had four bytes more. */
struct order {
    unsigned long number;
    int terminal, input, daemon;
    struct window_size size;
    char *workdir;
    char *words[MOST_TEXTS + 1];
    char *variables[MOST_TEXTS + 1];
    char text[LARGEST_PACKET + 8];
};

static struct command commands[MOST_COMMANDS];
static struct order order;
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

static int take_texts(struct cursor *cursor, char **texts, char **space) {
    unsigned long count = take_number(cursor, 2);
    for (unsigned long at = 0; at < count && !cursor->damaged; at++)
        texts[at] = take_text(cursor, space);
    texts[cursor->damaged ? 0 : count] = 0;
    return (int)count;
}

static int is_order(const unsigned char *bytes, size_t size) {
    struct cursor cursor = {bytes + 1, bytes + size, 0};
    char *space = order.text;
    unsigned long flags;
    int words;

    order.number = take_number(&cursor, 4);
    flags = take_number(&cursor, 1);
    order.terminal = flags & 1;
    order.input = (flags & 2) != 0;
    order.daemon = (flags & 4) != 0;
    order.size.rows = (uint16_t)take_number(&cursor, 2);
    order.size.columns = (uint16_t)take_number(&cursor, 2);
    order.size.width = order.size.height = 0;
    order.workdir = take_text(&cursor, &space);
    words = take_texts(&cursor, order.words, &space);
    take_texts(&cursor, order.variables, &space);
    return !cursor.damaged && cursor.at == cursor.end && words > 0;
}

/* Whether one of them sets the variable of the other. */
static int same_name(const char *one, const char *other) {
    while (*one && *one == *other && *one != '=') {
        one++;
        other++;
    }
    return *one == '=' && *other == '=';
}

/* The variables of the order, and those of the companion that it does not replace. They stand on memory of the child. */
static char **environment_of_order(void) {
    static const char ticket[] = "MUSTER_TICKET=";
    size_t asked = 0, before = 0, kept;
    char **fresh;
    long place;

    while (order.variables[asked])
        asked++;
    while (inherited[before])
        before++;
    place = system_call(__NR_brk, 0, 0, 0, 0, 0);
    place = (place + 15) & ~15L;
    if (system_call(__NR_brk, place + (long)((asked + before + 1) * sizeof *fresh), 0, 0, 0, 0) < place)
        return 0;
    fresh = (char **)place;
    for (kept = 0; kept < asked; kept++)
        fresh[kept] = order.variables[kept];
    for (size_t each = 0; each < before; each++) {
        size_t other = 0;
        while (other < asked && !same_name(inherited[each], order.variables[other]))
            other++;
        if (other == asked && !same_name(inherited[each], ticket))
            fresh[kept++] = inherited[each];
    }
    fresh[kept] = 0;
    return fresh;
}

/* The child: its standard streams are what is given; it says through the pipe `fault` why it cannot run. */
__attribute__((noreturn)) static void become(const int *streams, int terminal, int fault) {
    char **variables = environment_of_order();
    long result = variables ? 0 : -ENOMEM;
    int number;

    system_call(__NR_setsid, 0, 0, 0, 0, 0);
    for (int each = 1; each <= LAST_SIGNAL; each++)
        if (each != SIGKILL && each != SIGSTOP)
            set_signal(each, 0);
    mask_signals(0);
    for (int each = 0; each < 3 && result >= 0; each++)
        result = system_call(__NR_dup3, streams[each], each, 0, 0, 0);
    if (result >= 0 && terminal)
        result = system_call(__NR_ioctl, 0, TIOCSCTTY, 0, 0, 0);
    if (result >= 0 && *order.workdir)
        result = system_call(__NR_chdir, (long)order.workdir, 0, 0, 0, 0);
    if (result >= 0)
        result = execute(order.words, variables);
    number = (int)-result;
    write_all(fault, &number, sizeof number);
    leave(127);
}

/* Makes what the command reads from and writes to: streams of the command, and ends for the agent. */
static long make_streams(int *streams, int *ends, int *count) {
    int pair[2];
    long result;

    *count = 0;
    if (order.terminal) {
        int unlocked = 0;
        result = system_call(__NR_openat, AT_FDCWD, (long)"/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC, 0, 0);
        if (result < 0)
            return result;
        ends[(*count)++] = (int)result;
        system_call(__NR_ioctl, ends[0], TIOCSPTLCK, (long)&unlocked, 0, 0);
        system_call(__NR_ioctl, ends[0], TIOCSWINSZ, (long)&order.size, 0, 0);
        result = system_call(__NR_ioctl, ends[0], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC, 0, 0);
        streams[0] = streams[1] = streams[2] = (int)result;
        return result;
    }
    if (order.input) {
        if ((result = system_call(__NR_pipe2, (long)pair, O_CLOEXEC, 0, 0, 0)) < 0)
            return result;
        streams[0] = pair[0];
        ends[(*count)++] = pair[1];
    } else {
        result = system_call(__NR_openat, AT_FDCWD, (long)"/dev/null", O_CLOEXEC, 0, 0);
        if (result < 0)
            return result;
        streams[0] = (int)result;
    }
    for (int each = 1; each < 3; each++) {
        if ((result = system_call(__NR_pipe2, (long)pair, O_CLOEXEC, 0, 0, 0)) < 0)
            return result;
        streams[each] = pair[1];
        ends[(*count)++] = pair[0];
    }
    return 0;
}

/* Forks the command and waits until it runs; its pid, or -ERRNO. */
static long start(const int *streams) {
    int fault[2], number = 0;
    long pid, result = system_call(__NR_pipe2, (long)fault, O_CLOEXEC, 0, 0, 0);

    if (result < 0)
        return result;
    pid = fork_here();
    if (pid == 0) {
        /* Streams below 3 would be overwritten by each other; the companion has 0 to 2 open, so there are none. */
        become(streams, order.terminal, fault[1]);
    }
    close_it(fault[1]);
    if (pid > 0 && read_some(fault[0], &number, sizeof number) == sizeof number) {
        system_call(__NR_wait4, pid, 0, 0, 0, 0);
        pid = -number;
    }
    close_it(fault[0]);
    return pid;
}

/* Whether a command runs, or something of it may still print. */
static int is_taken(const struct command *command) {
    return command->pid || command->output[0] >= 0 || command->output[1] >= 0;
}

static void carry_out(int line) {
    int streams[3] = {-1, -1, -1}, ends[3] = {-1, -1, -1}, count = 0, free = 0;
    struct command *command;
    long pid;

    while (free < MOST_COMMANDS && is_taken(&commands[free]))
        free++;
    if (free == MOST_COMMANDS) {
        say_number(line, 'F', order.number, EAGAIN, 4);
        return;
    }
    command = &commands[free];
    pid = make_streams(streams, ends, &count);
    if (pid >= 0)
        pid = start(streams);
    for (int each = 0; each < (order.terminal ? 1 : 3); each++)
        close_it(streams[each]);
    if (pid > 0) {
        *command = (struct command){pid, order.number, 1, order.daemon, {-1, -1}};
        packet.size = 0;
        packet.too_long = 0;
        put_bytes(&packet, "P", 1);
        put_number(&packet, order.number, 4);
        put_number(&packet, (unsigned long)pid, 4);
        send_packet(line, &packet, ends, count, 0);
        if (order.daemon && !order.terminal) {
            command->output[0] = ends[count - 2];
            command->output[1] = ends[count - 1];
            count -= 2;
        }
    } else {
        say_number(line, 'F', order.number, (unsigned long)-pid, 4);
    }
    for (int each = 0; each < count; each++)
        close_it(ends[each]);
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
                each->pid = 0;
            }
}

static void send_signal(const unsigned char *bytes, size_t size) {
    struct cursor cursor = {bytes + 1, bytes + size, 0};
    unsigned long number = take_number(&cursor, 4), signal = take_number(&cursor, 1);

    if (!cursor.damaged && cursor.at == cursor.end && signal > 0 && signal <= LAST_SIGNAL)
        for (struct command *each = commands; each < commands + MOST_COMMANDS; each++)
            if (each->pid && each->told && each->number == number)
                system_call(__NR_kill, -each->pid, (long)signal, 0, 0, 0);
}

/* The agent is gone: what is no daemon ends, and what daemons print goes where the companion's own output goes. */
static void forget(void) {
    for (struct command *each = commands; each < commands + MOST_COMMANDS; each++) {
        if (each->pid && each->told && !each->daemon)
            system_call(__NR_kill, -each->pid, SIGHUP, 0, 0, 0);
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
            else if (bytes[0] == 'K')
                send_signal(bytes, (size_t)size);
            else if (bytes[0] == 'N' && is_connection(bytes, (size_t)size, &connection))
                open_connection(line, &connection);
            else
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
        each->output[0] = each->output[1] = -1;
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
        int line = dial(door);
        if (line >= 0) {
            pause = SHORTEST_PAUSE;
            packet.size = 0;
            packet.too_long = 0;
            put_bytes(&packet, "S", 1);
            put_number(&packet, DOOR_VERSION, 1);
            put_text(&packet, ticket);
            if (send_packet(line, &packet, 0, 0, 0) == 0)
                serve(line, children);
            close_it(line);
            forget();
        }
        rest(children, pause);
        pause = pause * 2 < LONGEST_PAUSE ? pause * 2 : LONGEST_PAUSE;
    }
}
