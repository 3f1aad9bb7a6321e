/* The parent of a main program that people attach to: it has the program's terminal, or the pipe that the program reads,
 * and lends them to the agent.
 *
 * The program is a child, so that the end of its output is known: whatever a terminal shows goes where this program prints,
 * all of it, before this program ends with the same code. What reads a pipe prints where it would without one. An agent
 * that goes away takes nothing along, and the next one is called.
 */

#include "door.h"
#include "inside.h"
#include "order.h"

enum { PIECE = 4096 };
/* Milliseconds between two calls of an agent that is away, and of one that was there and took no output. */
enum { SHORTEST_PAUSE = 200, LONGEST_PAUSE = 2000, DEAF_PAUSE = 10000 };
/* Bytes that are read of a terminal once the program has ended: more than the kernel may have of what it printed before. */
enum { LAST_OUTPUT = 1024 * 1024 };
/* Milliseconds in which an agent takes output; one that does not is called anew, and the program goes on. It waits for
 * people for a shorter time. */
enum { AGENT_PATIENCE = 4000 };
enum { FIRST_PROCESS = 1, SOCK_NONBLOCK = O_NONBLOCK, CLOCK_MONOTONIC = 1 };

/* Bytes on their way to a descriptor. */
struct outflow {
    size_t at, size;
    unsigned char bytes[PIECE + 1];
};

static struct packet packet;
static struct outflow logged, shown;

static const char *door, *ticket;
static int terminal;    /* whether the program has one */
static int master;      /* the terminal, as the agent has it */
static int input;       /* where the program's input is written; -1 beside a terminal, and once it has ended */
static int line;        /* to the agent; -1: there is none */
static int copied;      /* where the agent reads what the terminal shows */
static int return_held; /* whether the last byte of the terminal was a carriage return that is not logged yet */
static long child;
static int code; /* how the program ended; -1: it runs */
static int64_t pause, call_at, give_up_at;

static int64_t now(void) {
    struct span span = {0, 0};
    system_call(__NR_clock_gettime, CLOCK_MONOTONIC, (long)&span, 0, 0, 0);
    return span.seconds * 1000 + span.nanoseconds / 1000000;
}

static void hang_up(void) {
    close_it(line);
    close_it(copied);
    line = copied = -1;
    shown.at = shown.size = 0;
    call_at = now() + pause;
    pause = pause * 2 < LONGEST_PAUSE ? pause * 2 : LONGEST_PAUSE;
}

/* Says what the program is reached by; 0, or -ERRNO. */
static long introduce(void) {
    int ends[2] = {terminal ? master : input, -1}, pair[2] = {-1, -1}, count = ends[0] >= 0;
    long result = 0;

    if (terminal) {
        result = system_call(__NR_pipe2, (long)pair, O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
        ends[count++] = pair[0];
        copied = pair[1];
    }
    packet.size = 0;
    packet.too_long = 0;
    put_bytes(&packet, "A", 1);
    put_number(&packet, DOOR_VERSION, 1);
    put_text(&packet, ticket);
    put_number(&packet, (unsigned long)(terminal | (input >= 0) << 1), 1);
    put_number(&packet, (unsigned long)child, 4);
    if (result >= 0)
        result = send_packet(line, &packet, ends, count, MSG_DONTWAIT);
    close_it(pair[0]);
    return result;
}

static void call_agent(void) {
    line = dial(door, SOCK_NONBLOCK);
    if (line >= 0 && introduce() >= 0)
        pause = SHORTEST_PAUSE;
    else
        hang_up();
}

/* What the log gets of a piece: what a terminal adds at the end of a line is left out. */
static void log_piece(const unsigned char *bytes, size_t size) {
    for (size_t at = 0; at < size; at++) {
        if (return_held && bytes[at] != '\n')
            logged.bytes[logged.size++] = '\r';
        return_held = bytes[at] == '\r';
        if (!return_held)
            logged.bytes[logged.size++] = bytes[at];
    }
}

/* Reads a piece of the terminal; how long it is, or -ERRNO where there is none now. */
static long read_terminal(void) {
    long size = read_some(master, shown.bytes, PIECE);
    shown.at = shown.size = 0;
    logged.at = logged.size = 0;
    if (size > 0) {
        log_piece(shown.bytes, (size_t)size);
        shown.size = copied >= 0 ? (size_t)size : 0;
        give_up_at = now() + AGENT_PATIENCE;
    }
    return size;
}

/* Writes no more than a pipe takes at once where it has space at all. What cannot be written is lost as it would be for
 * the program itself. */
static void flow(struct outflow *flow, int descriptor) {
    size_t left = flow->size - flow->at;
    long done = system_call(__NR_write, descriptor, (long)(flow->bytes + flow->at), (long)(left < PIECE ? left : PIECE), 0, 0);
    if (done > 0)
        flow->at += (size_t)done;
    else if (done != -EAGAIN && done != -EINTR)
        flow->at = flow->size;
}

static int flows(const struct outflow *flow) {
    return flow->at < flow->size;
}

static void reap(void) {
    int status;
    long pid;
    while ((pid = system_call(__NR_wait4, -1, (long)&status, WNOHANG, 0, 0)) > 0)
        if (pid == child)
            code = status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff;
}

/* The first process of a container is told what all are meant to hear; elsewhere each is told by itself. */
static void take_signal(int signals) {
    unsigned char told[128];
    while (read_some(signals, told, sizeof told) == sizeof told) {
        if (told[0] == SIGCHLD)
            reap();
        else if (system_call(__NR_getpid, 0, 0, 0, 0, 0) == FIRST_PROCESS && code < 0)
            system_call(__NR_kill, child, told[0], 0, 0, 0);
    }
}

static void take_order(void) {
    unsigned char bytes[8];
    long size = system_call(__NR_recvfrom, line, (long)bytes, sizeof bytes, MSG_DONTWAIT, 0);

    if (size == -EAGAIN || size == -EINTR)
        return;
    if (size == 1 && bytes[0] == 'H') {
        close_it(input);
        input = -1;
    } else if (size == 2 && bytes[0] == 'K' && bytes[1] && bytes[1] <= LAST_SIGNAL) {
        if (code < 0)
            system_call(__NR_kill, -child, bytes[1], 0, 0, 0);
    } else {
        hang_up();
    }
}

/* Waits until something happens, for as long as there is nothing to do by itself. */
static void turn(int signals) {
    struct poll_entry entries[] = {
        {signals, POLLIN, 0},
        {line, POLLIN, 0},
        {flows(&logged) || flows(&shown) ? -1 : master, POLLIN, 0},
        {flows(&logged) ? 1 : -1, POLLOUT, 0},
        {flows(&shown) ? copied : -1, POLLOUT, 0},
    };
    int64_t until = line < 0 ? call_at : flows(&shown) ? give_up_at : 0, left = until - now();
    struct span span = {left > 0 ? left / 1000 : 0, left > 0 ? left % 1000 * 1000000 : 0};

    if (system_call(__NR_ppoll, (long)entries, 5, until ? (long)&span : 0, 0, 8) < 0)
        return;
    if (entries[4].found)
        flow(&shown, copied);
    else if (flows(&shown) && now() >= give_up_at) {
        pause = DEAF_PAUSE;
        hang_up();
    }
    if (entries[3].found)
        flow(&logged, 1);
    if (entries[2].found)
        read_terminal();
    if (entries[0].found)
        take_signal(signals);
    if (entries[1].found && line >= 0)
        take_order();
    if (line < 0 && now() >= call_at)
        call_agent();
}

/* Passes on what is left: to the log all of it, to an agent what it takes in time. */
static void pass_rest(int signals) {
    while (flows(&logged) || flows(&shown))
        turn(signals);
}

static void end_well(int signals) {
    pass_rest(signals);
    if (terminal) {
        long size, most = LAST_OUTPUT;
        while (most > 0 && (size = read_terminal()) > 0) {
            most -= size;
            pass_rest(signals);
        }
        if (return_held)
            write_all(1, "\r", 1);
    }
    if (line >= 0) {
        packet.size = 0;
        packet.too_long = 0;
        put_bytes(&packet, "E", 1);
        put_number(&packet, (unsigned long)code, 1);
        send_packet(line, &packet, 0, 0, MSG_DONTWAIT);
    }
}

/* The variables without the ticket; in its place comes the kind of the terminal, where nobody says it. */
static void tidy(char **variables) {
    static const char kind[] = "TERM=xterm-256color";
    static char space[sizeof kind];
    int named = terminal && !value_of("TERM", variables);
    char **to = variables;
    for (; *variables; variables++)
        if (value_of("MUSTER_TICKET", (char *[]){*variables, 0}))
            ticket = *variables + sizeof "MUSTER_TICKET";
        else
            *to++ = *variables;
    copy(space, kind, sizeof kind);
    if (named && to < variables)
        *to++ = space;
    *to = 0;
}

__attribute__((noreturn)) static void become(const int *streams, char **words, char **variables) {
    long result = 0;

    stand_alone();
    for (int each = 0; each < 3 && result >= 0; each++)
        if (streams[each] >= 0)
            result = system_call(__NR_dup3, streams[each], each, 0, 0, 0);
    if (result >= 0 && terminal)
        result = system_call(__NR_ioctl, 0, TIOCSCTTY, 0, 0, 0);
    if (result >= 0)
        result = system_call(__NR_execve, (long)words[0], (long)(words + 1), (long)variables, 0, 0);
    say("muster: cannot run ");
    say(words[1]);
    say("\n");
    leave(result == -ENOENT || result == -ENOTDIR ? NOT_FOUND : NOT_RUN);
}

/* Makes what the program reads from and, at a terminal, prints to: the ends that it gets, or -ERRNO. */
static long make_streams(int *streams) {
    const struct window_size usual = {24, 80, 0, 0};
    int unlocked = 0, pair[2];
    long result;

    if (!terminal) {
        if ((result = system_call(__NR_pipe2, (long)pair, O_CLOEXEC, 0, 0, 0)) < 0)
            return result;
        streams[0] = pair[0];
        input = pair[1];
        return 0;
    }
    result = system_call(__NR_openat, AT_FDCWD, (long)"/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK, 0, 0);
    if (result < 0)
        return result;
    master = (int)result;
    system_call(__NR_ioctl, master, TIOCSPTLCK, (long)&unlocked, 0, 0);
    system_call(__NR_ioctl, master, TIOCSWINSZ, (long)&usual, 0, 0);
    result = system_call(__NR_ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC, 0, 0);
    streams[0] = streams[1] = streams[2] = (int)result;
    return result;
}

int run_main(char **arguments, char **environment) {
    const uint64_t all = ~(uint64_t)0;
    int streams[3] = {-1, -1, -1}, signals;

    master = input = line = copied = code = -1;
    pause = SHORTEST_PAUSE;
    door = arguments[0];
    terminal = same(arguments[1], "tty");
    tidy(environment);
    mask_signals(all);
    signals = (int)system_call(__NR_signalfd4, -1, (long)&all, 8, O_CLOEXEC | O_NONBLOCK, 0);
    if (!ticket || signals < 0 || make_streams(streams) < 0) {
        say("muster: no terminal or pipe can be made for the main program\n");
        return NOT_RUN;
    }
    child = fork_here();
    if (child == 0)
        become(streams, arguments + 2, environment);
    if (child < 0) {
        say("muster: no process can be started for the main program\n");
        return NOT_RUN;
    }
    if (!terminal)
        close_it(streams[0]); /* the terminal's is kept: its end would say nothing, as the program may open it again */
    call_agent();
    while (code < 0)
        turn(signals);
    end_well(signals);
    return code;
}
