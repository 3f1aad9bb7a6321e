/* Commands in other executions of the gang: muster-exec, and ssh as mpirun, pdsh and DeepSpeed call it. */

#include "door.h"
#include "inside.h"

enum { NOT_DONE = 255, TRIES = 100, PAUSE = 100, MOST_VARIABLES = 64 };
enum { ONE = 1, RANKS = 2, ALL = 3 };

struct wish {
    const char *name;
    int is_ssh, is_daemon, is_step, input, background;
    int targets;
    const char *target;
    char **words; /* up to a null pointer */
    char *variables[MOST_VARIABLES];
    int variable_count;
};

static const char help[] =
    "Usage: muster-exec [OPTIONS] [--] TARGET WORDS...\n"
    "       muster-exec [OPTIONS] --ranks 0,2-3 [--] WORDS...\n"
    "       muster-exec [OPTIONS] --all [--] WORDS...\n"
    "\n"
    "Runs a command in another execution of this job. TARGET is a rank, a name such as\n"
    "worker-1, a node or an address of the job. One word is a line for /bin/sh; several\n"
    "are a program and its arguments. The exit code is that of the command, or 255 where\n"
    "it cannot be run; with several targets it is the highest.\n"
    "\n"
    "  --all         in all executions; each line begins with its rank\n"
    "  --ranks LIST  in these executions\n"
    "  --step        the executions are parts of one program: output as it is, input to\n"
    "                the first, and one that fails has the others ended by SIGTERM\n"
    "  -e NAME=VALUE a variable for the command; may be given 64 times\n"
    "  -n            the command has no input\n"
    "  -h, --help    this text\n"
    "\n"
    "SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 go to the command.\n";

static struct packet packet, pending;

static int fail(const char *name, const char *what, const char *subject) {
    say(name);
    say(": ");
    say(what);
    say(subject);
    say("\n");
    return NOT_DONE;
}

static int has(const char *set, char letter) {
    for (; *set; set++)
        if (*set == letter)
            return 1;
    return 0;
}

/* One argument with options of ssh; how many arguments it takes, or 0 where one is missing. */
static int ssh_option(struct wish *wish, char **arguments) {
    static const char with_value[] = "BbcDEeFIiJLlmOoPpQRSWw";
    for (const char *letter = arguments[0] + 1; *letter; letter++) {
        if (has(with_value, *letter))
            return letter[1] ? 1 : arguments[1] ? 2 : 0;
        if (*letter == 'n')
            wish->input = 0;
        if (*letter == 'f') {
            wish->input = 0;
            wish->background = 1;
        }
    }
    return 1;
}

/* As ssh reads its command line: options stand before the host, and after it until the first word of the command. */
static int read_as_ssh(struct wish *wish, char **arguments) {
    while (*arguments) {
        if (same(*arguments, "--")) {
            arguments++;
            if (!wish->target && *arguments)
                wish->target = *arguments++;
            break;
        }
        if (**arguments == '-' && (*arguments)[1]) {
            int taken = ssh_option(wish, arguments);
            if (!taken)
                return fail(wish->name, "a value is missing after ", *arguments);
            arguments += taken;
        } else if (!wish->target) {
            wish->target = *arguments++;
        } else {
            break;
        }
    }
    if (wish->target)
        for (const char *at = wish->target; *at; at++)
            if (*at == '@')
                wish->target = at + 1;
    wish->words = arguments;
    return 0;
}

static int read_as_exec(struct wish *wish, char **arguments) {
    for (; *arguments && **arguments == '-'; arguments++) {
        if (same(*arguments, "--")) {
            arguments++;
            break;
        }
        if (same(*arguments, "-n")) {
            wish->input = 0;
        } else if (same(*arguments, "--step")) {
            wish->is_step = 1;
        } else if (same(*arguments, "--all")) {
            wish->targets = ALL;
            wish->target = "";
        } else if (same(*arguments, "--ranks") && arguments[1]) {
            wish->targets = RANKS;
            wish->target = *++arguments;
        } else if (same(*arguments, "-e") && arguments[1]) {
            if (wish->variable_count == MOST_VARIABLES)
                return fail(wish->name, "there are more than 64 variables: ", arguments[1]);
            wish->variables[wish->variable_count++] = *++arguments;
        } else {
            return fail(wish->name, "this option is not known, or its value is missing: ", *arguments);
        }
    }
    if (!wish->target && *arguments)
        wish->target = *arguments++;
    wish->words = arguments;
    return 0;
}

/* The first packet. Words for ssh are one line for the shell there, with blanks between them. */
static void put_wish(const struct wish *wish) {
    unsigned long count = 0, size = 0;
    while (wish->words[count])
        size += length_of(wish->words[count++]) + 1;
    put_bytes(&packet, "G", 1);
    put_number(&packet, DOOR_VERSION, 1);
    put_number(&packet, (unsigned long)(wish->is_daemon | wish->input << 1 | wish->is_step << 2), 1);
    put_number(&packet, (unsigned long)wish->targets, 1);
    put_text(&packet, wish->target);
    if (count > MOST_TEXTS || size > LARGEST_PACKET)
        packet.too_long = 1;
    if (wish->is_ssh) {
        put_number(&packet, 1, 2);
        put_number(&packet, size - 1, 4);
        for (unsigned long each = 0; each < count; each++) {
            put_bytes(&packet, " ", each > 0);
            put_bytes(&packet, wish->words[each], length_of(wish->words[each]));
        }
    } else {
        put_number(&packet, count, 2);
        for (unsigned long each = 0; each < count; each++)
            put_text(&packet, wish->words[each]);
    }
    put_number(&packet, (unsigned long)wish->variable_count, 2);
    for (int each = 0; each < wish->variable_count; each++)
        put_text(&packet, wish->variables[each]);
}

/* The agent may be starting just now, so that a refusal of the kernel is tried again for ten seconds. */
static int dial_for_long(const char *door) {
    int line = dial(door, 0);
    for (int left = TRIES; left > 0 && (line == -ECONNREFUSED || line == -ENOENT || line == -EAGAIN); left--) {
        pause_for(PAUSE);
        line = dial(door, 0);
    }
    return line;
}

/* A descriptor that tells of signals for the command; those that whoever called ignores stay ignored. */
static int open_signals(void) {
    static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM};
    uint64_t mask = 0;
    for (size_t each = 0; each < sizeof passed_on / sizeof *passed_on; each++)
        if (!is_ignored(passed_on[each]))
            mask |= bit_of(passed_on[each]);
    mask_signals(mask);
    return (int)system_call(__NR_signalfd4, -1, (long)&mask, 8, O_CLOEXEC, 0);
}

/* Hands a signal on; the exit code where the command takes nothing any more, or -1. */
static int pass_signal(int line, int signals) {
    static unsigned char found[128];
    static struct packet told;
    if (read_some(signals, found, sizeof found) != sizeof found)
        return -1;
    told.size = 0;
    put_bytes(&told, "K", 1);
    put_bytes(&told, found, 1); /* a number in the order of this machine, below 256 */
    return send_packet(line, &told, 0, 0, MSG_DONTWAIT) == -EAGAIN ? 128 + found[0] : -1;
}

/* Reads the next piece of input into `pending`. */
static void read_input(void) {
    long size = read_some(0, pending.bytes + 1, LARGEST_DATA);
    if (size == -EAGAIN || size == -EINTR)
        return;
    pending.bytes[0] = size > 0 ? 'I' : 'H';
    pending.size = size > 0 ? (size_t)size + 1 : 1;
}

/* Deals with a packet of the agent; the exit code, or -1 while it goes on. */
static int take_answer(const struct wish *wish, const unsigned char *bytes, long size, int *begun) {
    switch (bytes[0]) {
    case 'B':
        *begun = 1;
        if (wish->background && fork_here() > 0)
            return 0;
        return -1;
    case 'O':
    case 'e':
        if (write_all(bytes[0] == 'O' ? 1 : 2, bytes + 1, (size_t)size - 1) < 0)
            return NOT_DONE;
        return -1;
    case 'X':
        return size == 2 ? bytes[1] : NOT_DONE;
    case 'R':
        if (size < 5)
            return NOT_DONE;
        say(wish->name);
        say(": ");
        write_all(2, bytes + 5, (size_t)size - 5);
        say("\n");
        return NOT_DONE;
    default:
        return NOT_DONE;
    }
}

/* Moves bytes until the command has ended. Directions do not wait for each other. */
static int carry(int line, int signals, const struct wish *wish) {
    static unsigned char bytes[LARGEST_PACKET];
    int input = wish->input, begun = 0;

    for (;;) {
        int reads = input && !pending.size;
        struct poll_entry entries[3] = {
            {line, (short)(pending.size ? POLLIN | POLLOUT : POLLIN), 0},
            {reads ? 0 : -1, POLLIN, 0},
            {signals, POLLIN, 0},
        };
        if (wait_for(entries, 3) < 0)
            continue;
        if (entries[0].found & (POLLIN | POLLHUP | POLLERR)) {
            long size = system_call(__NR_recvfrom, line, (long)bytes, sizeof bytes, MSG_DONTWAIT, 0);
            /* An agent that has not read all input resets the line; what it said before that is read after the reset. */
            if (size == -ECONNRESET)
                continue;
            if (size == 0 || (size < 0 && size != -EAGAIN && size != -EINTR)) {
                if (begun && wish->is_daemon)
                    return 0;
                return fail(wish->name, "the agent of this node has gone away", "");
            }
            if (size > 0) {
                int code = take_answer(wish, bytes, size, &begun);
                if (code >= 0)
                    return code;
            }
        }
        if (entries[1].found) {
            read_input();
            if (pending.size && pending.bytes[0] == 'H')
                input = 0;
        }
        if (entries[2].found) {
            int code = pass_signal(line, signals);
            if (code >= 0)
                return code;
        }
        if (pending.size && send_packet(line, &pending, 0, 0, MSG_DONTWAIT) != -EAGAIN)
            pending.size = 0;
    }
}

int call_gang(const char *name, char **arguments, char **environment) {
    struct wish wish = {name, 0, 0, 0, 1, 0, ONE, 0, 0, {0}, 0};
    const char *door = value_of("MUSTER_DOOR", environment);
    int code, line, signals;

    wish.is_daemon = same(name, "muster-rsh");
    wish.is_ssh = !same(name, "muster-exec");
    if (!wish.is_ssh && *arguments && (same(*arguments, "-h") || same(*arguments, "--help")))
        return write_all(1, help, sizeof help - 1) < 0;
    code = wish.is_ssh ? read_as_ssh(&wish, arguments) : read_as_exec(&wish, arguments);
    if (code)
        return code;
    if (!wish.target)
        return fail(name, "say where a command is to run: a rank, a name or an address of the gang", "");
    if (!*wish.words)
        return fail(name, "say what is to run there; there are no login shells", "");
    if (!door)
        return fail(name, "MUSTER_DOOR is not set; the job needs `gang_commands: true`", "");
    put_wish(&wish);
    if (packet.too_long)
        return fail(name, "the command and its variables are longer than 128 KiB", "");
    line = dial_for_long(door);
    if (line < 0)
        return fail(name, "the agent of this node does not answer at ", door);
    signals = wish.is_ssh ? -1 : open_signals();
    if (send_packet(line, &packet, 0, 0, 0) < 0)
        return fail(name, "the agent of this node has gone away", "");
    return carry(line, signals, &wish);
}
