#include "order.h"
#include "inside.h"
#include "shell.h"

enum { MOST_DEFAULTS = 5 };

/* Why a command cannot run, as the child says it. */
struct fault {
    int number, part;
};

struct order order;
static struct person person;

static int take_texts(struct cursor *cursor, char **texts, char **space) {
    unsigned long count = take_number(cursor, 2);
    for (unsigned long at = 0; at < count && !cursor->damaged; at++)
        texts[at] = take_text(cursor, space);
    texts[cursor->damaged ? 0 : count] = 0;
    return (int)count;
}

int is_order(const unsigned char *bytes, size_t size) {
    struct cursor cursor = {bytes + 1, bytes + size, 0};
    char *space = order.text;
    unsigned long flags;
    int words;

    order.number = take_number(&cursor, 4);
    flags = take_number(&cursor, 1);
    order.terminal = flags & 1;
    order.input = (flags & 2) != 0;
    order.daemon = (flags & 4) != 0;
    order.shell = (flags & 8) != 0;
    order.size.rows = (uint16_t)take_number(&cursor, 2);
    order.size.columns = (uint16_t)take_number(&cursor, 2);
    order.size.width = order.size.height = 0;
    order.workdir = take_text(&cursor, &space);
    order.name = take_text(&cursor, &space);
    words = take_texts(&cursor, order.words, &space);
    take_texts(&cursor, order.variables, &space);
    if (cursor.damaged || cursor.at != cursor.end || length_of(order.name) > LONGEST_NAME)
        return 0;
    return (order.shell ? words <= 1 : words > 0) && (order.terminal || !*order.name);
}

/* Whether one of them sets the variable of the other. */
static int same_name(const char *one, const char *other) {
    while (*one && *one == *other && *one != '=') {
        one++;
        other++;
    }
    return *one == '=' && *other == '=';
}

/* Sets a variable that is not set, if there is something to set it to. */
static void add_default(char **variables, size_t *count, char *space, const char *name, const char *value) {
    variables[*count] = 0;
    if (!*value || value_of(name, variables))
        return;
    copy(space, name, length_of(name));
    space[length_of(name)] = '=';
    copy(space + length_of(name) + 1, value, length_of(value) + 1);
    variables[(*count)++] = space;
}

/* The variables of the order, those of the companion that it does not replace, and what a terminal and a shell want. They
 * stand on memory of the child. */
static char **environment_of_order(char **inherited) {
    static const char ticket[] = "MUSTER_TICKET=";
    static char defaults[MOST_DEFAULTS][sizeof person.home + 16];
    size_t asked = 0, before = 0, kept;
    char **fresh;
    long place;

    while (order.variables[asked])
        asked++;
    while (inherited[before])
        before++;
    place = system_call(__NR_brk, 0, 0, 0, 0, 0);
    place = (place + 15) & ~15L;
    if (system_call(__NR_brk, place + (long)((asked + before + MOST_DEFAULTS + 1) * sizeof *fresh), 0, 0, 0, 0) < place)
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
    if (order.terminal)
        add_default(fresh, &kept, defaults[0], "TERM", "xterm-256color");
    if (order.shell) {
        add_default(fresh, &kept, defaults[1], "SHELL", shell_of(&person, fresh));
        add_default(fresh, &kept, defaults[2], "HOME", *person.home ? person.home : "/");
        add_default(fresh, &kept, defaults[3], "USER", person.name);
        add_default(fresh, &kept, defaults[4], "LOGNAME", person.name);
    }
    fresh[kept] = 0;
    return fresh;
}

void stand_alone(void) {
    system_call(__NR_setsid, 0, 0, 0, 0, 0);
    for (int each = 1; each <= LAST_SIGNAL; each++)
        if (each != SIGKILL && each != SIGSTOP)
            set_signal(each, 0);
    mask_signals(0);
}

/* The child: its standard streams are what is given; it says through the pipe `line` why it cannot run. */
__attribute__((noreturn)) static void become(const int *streams, int line, char **inherited) {
    struct fault fault = {0, PART_PROGRAM};
    char **variables;
    long result = 0;

    if (order.shell)
        look_up_person(&person);
    variables = environment_of_order(inherited);
    stand_alone();
    for (int each = 0; each < 3 && result >= 0; each++)
        result = system_call(__NR_dup3, streams[each], each, 0, 0, 0);
    if (result >= 0 && order.terminal)
        result = system_call(__NR_ioctl, 0, TIOCSCTTY, 0, 0, 0);
    if (result < 0)
        fault.part = PART_STREAMS;
    if (result >= 0 && *order.workdir && (result = system_call(__NR_chdir, (long)order.workdir, 0, 0, 0, 0)) < 0)
        fault.part = PART_DIRECTORY;
    if (result >= 0 && !variables)
        result = -ENOMEM;
    if (result >= 0)
        result = order.shell ? become_shell(shell_of(&person, variables), order.words[0], variables) : execute(order.words, variables);
    fault.number = (int)-result;
    write_all(line, &fault, sizeof fault);
    leave(127);
}

/* Makes a terminal of the size that is wanted: the end of the command, and that of the agent. */
static long make_terminal(int *streams, int *ends, int *count) {
    int unlocked = 0;
    long result = system_call(__NR_openat, AT_FDCWD, (long)"/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC, 0, 0);

    if (result < 0)
        return result;
    ends[(*count)++] = (int)result;
    system_call(__NR_ioctl, ends[0], TIOCSPTLCK, (long)&unlocked, 0, 0);
    system_call(__NR_ioctl, ends[0], TIOCSWINSZ, (long)&order.size, 0, 0);
    result = system_call(__NR_ioctl, ends[0], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC, 0, 0);
    streams[0] = streams[1] = streams[2] = (int)result;
    return result;
}

/* Makes what the command reads from and writes to: streams of the command, and ends for the agent. */
static long make_streams(int *streams, int *ends, int *count) {
    int pair[2];
    long result;

    if (order.terminal)
        return make_terminal(streams, ends, count);
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

/* Forks the command and waits until it runs; its pid, or -ERRNO and the part that is at fault. */
static long start(const int *streams, char **inherited, int *part) {
    struct fault fault = {0, 0};
    int line[2];
    long pid, result = system_call(__NR_pipe2, (long)line, O_CLOEXEC, 0, 0, 0);

    if (result < 0)
        return result;
    pid = fork_here();
    if (pid == 0) {
        /* Streams below 3 would be overwritten by each other; the companion has 0 to 2 open, so there are none. */
        become(streams, line[1], inherited);
    }
    close_it(line[1]);
    if (pid > 0 && read_some(line[0], &fault, sizeof fault) == sizeof fault) {
        system_call(__NR_wait4, pid, 0, 0, 0, 0);
        *part = fault.part;
        pid = -fault.number;
    }
    close_it(line[0]);
    return pid;
}

long start_order(char **inherited, int *ends, int *count, int *part) {
    int streams[3] = {-1, -1, -1};
    long pid;

    *count = 0;
    *part = PART_STREAMS;
    pid = make_streams(streams, ends, count);
    if (pid >= 0) {
        *part = PART_PROGRAM;
        pid = start(streams, inherited, part);
    }
    for (int each = 0; each < (order.terminal ? 1 : 3); each++)
        close_it(streams[each]);
    return pid;
}
