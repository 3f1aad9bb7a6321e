/* The tasks of a step on one node, for srun. They share a process group with this program, so a signal for the group
 * reaches all of them. The first that fails ends the others: SIGTERM, and SIGKILL after half a minute. What tasks of a
 * step that failed leave behind gets SIGTERM once all of them have ended. */

#include "inside.h"
#include "system.h"

enum { MOST_TASKS = 256, MOST_VARIABLES = 8192, LONGEST_LINE = 4000, PATIENCE = 30 };

/* Output of a task that gets labels. */
struct stream {
    int descriptor; /* -1: closed, or none */
    size_t size;
    char line[LONGEST_LINE];
};

struct task {
    long pid; /* 0: has ended */
    struct stream streams[2];
};

static struct task tasks[MOST_TASKS];
static unsigned long first, count, labels, gpus;

static unsigned long number_of(const char *text) {
    unsigned long value = 0;
    for (; *text >= '0' && *text <= '9' && value < 1000000; text++)
        value = value * 10 + (unsigned long)(*text - '0');
    return value;
}

static int sets(const char *variable, const char *name) {
    while (*name && *variable == *name) {
        variable++;
        name++;
    }
    return !*name;
}

/* The GPUs of the task in this place: so many of the list, after those of the tasks before it. */
static char *devices_of(unsigned long place, const char *all) {
    static const char name[] = "CUDA_VISIBLE_DEVICES=";
    static char text[4096];
    size_t at = sizeof name - 1;
    unsigned long item = 0;
    copy(text, name, at);
    for (; all && *all && at + 1 < sizeof text; all++) {
        if (item / gpus == place && !(*all == ',' && (item + 1) % gpus == 0))
            text[at++] = *all;
        item += *all == ',';
    }
    text[at] = 0;
    return text;
}

/* The variables of the task in this place. */
static char **environment_of(unsigned long place, char **environment) {
    static char *variables[MOST_VARIABLES + 1];
    static char task[40], local[40];
    size_t used = 0;

    if (gpus)
        variables[used++] = devices_of(place, value_of("CUDA_VISIBLE_DEVICES", environment));
    for (; *environment && used + 2 < MOST_VARIABLES; environment++)
        if (!sets(*environment, "SLURM_PROCID=") && !sets(*environment, "SLURM_LOCALID=") &&
            !(gpus && sets(*environment, "CUDA_VISIBLE_DEVICES=")))
            variables[used++] = *environment;
    copy(task, "SLURM_PROCID=", 14);
    add_number(task, first + place);
    copy(local, "SLURM_LOCALID=", 15);
    add_number(local, place);
    variables[used++] = task;
    variables[used++] = local;
    variables[used] = 0;
    return variables;
}

__attribute__((noreturn)) static void become_task(unsigned long place, char **words, char **environment, const int *outputs) {
    long result;

    mask_signals(0);
    if (first + place > 0) {
        long nothing = system_call(__NR_openat, AT_FDCWD, (long)"/dev/null", O_CLOEXEC, 0, 0);
        system_call(__NR_dup3, nothing, 0, 0, 0, 0);
    }
    for (int each = 0; each < 2; each++)
        if (outputs[each] >= 0)
            system_call(__NR_dup3, outputs[each], each + 1, 0, 0, 0);
    result = execute(words, environment_of(place, environment));
    say("srun: ");
    say(words[0]);
    say(result == -ENOENT || result == -ENOTDIR ? ": not found\n" : ": cannot be run\n");
    leave(result == -ENOENT || result == -ENOTDIR ? NOT_FOUND : NOT_RUN);
}

static int start_task(unsigned long place, char **words, char **environment) {
    int outputs[2] = {-1, -1};
    for (int each = 0; each < 2; each++) {
        int pair[2] = {-1, -1};
        if (labels && system_call(__NR_pipe2, (long)pair, O_CLOEXEC, 0, 0, 0) < 0)
            return 0;
        tasks[place].streams[each].descriptor = pair[0];
        outputs[each] = pair[1];
    }
    tasks[place].pid = fork_here();
    if (tasks[place].pid == 0)
        become_task(place, words, environment, outputs);
    close_it(outputs[0]);
    close_it(outputs[1]);
    return tasks[place].pid > 0;
}

static void end_with(int number) {
    system_call(__NR_kill, 0, number, 0, 0, 0);
}

static void kill_all(void) {
    for (unsigned long place = 0; place < count; place++)
        if (tasks[place].pid > 0)
            system_call(__NR_kill, tasks[place].pid, SIGKILL, 0, 0, 0);
}

static void ring_after(long seconds) {
    const long timer[4] = {0, 0, seconds, 0};
    system_call(__NR_setitimer, 0, (long)timer, 0, 0, 0);
}

/* One write, so that lines of other nodes do not come between the label and its line. */
static void print_line(unsigned long place, int which) {
    static char line[LONGEST_LINE + 32];
    struct stream *stream = &tasks[place].streams[which];
    size_t size;
    line[0] = 0;
    add_number(line, first + place);
    size = length_of(line);
    copy(line + size, ": ", 2);
    copy(line + size + 2, stream->line, stream->size);
    size += 2 + stream->size;
    if (line[size - 1] != '\n')
        line[size++] = '\n';
    write_all(which + 1, line, size);
    stream->size = 0;
}

/* Reads what a task has printed; a line is passed on when it is whole, or longer than a pipe takes at once. */
static void read_lines(unsigned long place, int which) {
    struct stream *stream = &tasks[place].streams[which];
    char bytes[LONGEST_LINE];
    long size = read_some(stream->descriptor, bytes, sizeof bytes);

    if (size <= 0 && size != -EINTR && size != -EAGAIN) {
        close_it(stream->descriptor);
        stream->descriptor = -1;
        if (stream->size)
            print_line(place, which);
    }
    for (long at = 0; at < size; at++) {
        stream->line[stream->size++] = bytes[at];
        if (bytes[at] == '\n' || stream->size == LONGEST_LINE)
            print_line(place, which);
    }
}

/* Waits for signals and for output; without `span` for as long as it takes. Whether there was any output. */
static int listen(int signals, int *rang, struct span *span) {
    static struct poll_entry entries[1 + 2 * MOST_TASKS];
    int heard = 0;
    entries[0] = (struct poll_entry){signals, POLLIN, 0};
    for (unsigned long each = 0; each < 2 * count; each++)
        entries[1 + each] = (struct poll_entry){tasks[each / 2].streams[each % 2].descriptor, POLLIN, 0};
    if (system_call(__NR_ppoll, (long)entries, (long)(1 + 2 * count), (long)span, 0, 8) <= 0)
        return 0;
    *rang = entries[0].found != 0;
    for (unsigned long each = 0; each < 2 * count; each++)
        if (entries[1 + each].found) {
            read_lines(each / 2, (int)(each % 2));
            heard = 1;
        }
    return heard;
}

/* Takes in tasks that have ended; the code of the first that failed, or 0. */
static int reap(unsigned long *left) {
    int status = 0, failed = 0;
    long pid;
    while ((pid = system_call(__NR_wait4, -1, (long)&status, WNOHANG, 0, 0)) > 0)
        for (unsigned long place = 0; place < count; place++)
            if (tasks[place].pid == pid) {
                int number = status & 0x7F, code = number ? 128 + number : status >> 8 & 0xFF;
                tasks[place].pid = 0;
                --*left;
                failed = failed ? failed : code;
            }
    return failed;
}

int run_tasks(char **arguments, char **environment) {
    const uint64_t ending = bit_of(SIGHUP) | bit_of(SIGINT) | bit_of(SIGQUIT) | bit_of(SIGTERM);
    const uint64_t heard = ending | bit_of(SIGUSR1) | bit_of(SIGUSR2) | bit_of(SIGALRM) | bit_of(SIGCHLD);
    static unsigned char told[128];
    struct span none = {0, 0};
    unsigned long left = 0;
    int signals, failed = 0, ended = 0, rang = 0;

    first = number_of(arguments[0]);
    count = number_of(arguments[1]);
    labels = number_of(arguments[2]);
    gpus = number_of(arguments[3]);
    if (!count || count > MOST_TASKS) {
        say("srun: one node takes 1 to 256 tasks of a step\n");
        return 1;
    }
    mask_signals(heard);
    signals = (int)system_call(__NR_signalfd4, -1, (long)&heard, 8, O_CLOEXEC | O_NONBLOCK, 0);
    for (; left < count; left++)
        if (!start_task(left, arguments + 4, environment)) {
            say("srun: no more processes can be started on this node\n");
            kill_all();
            return 1;
        }
    /* A signal that came so far may have missed a task. */
    if (read_some(signals, told, sizeof told) == sizeof told && told[0] != SIGCHLD)
        end_with(told[0]);
    for (;;) {
        int code = reap(&left);
        if (code && !failed) {
            failed = code;
            if (left && !ended)
                end_with(SIGTERM);
            ring_after(PATIENCE);
        }
        if (!left) {
            /* A shell that was starting a command takes the signal only after it, so the command may have missed it. */
            if (failed)
                end_with(SIGTERM);
            break;
        }
        rang = 0;
        listen(signals, &rang, 0);
        while (rang && read_some(signals, told, sizeof told) == sizeof told) {
            if (told[0] == SIGALRM)
                kill_all();
            else if (bit_of(told[0]) & ending)
                ended = 1;
        }
    }
    while (labels && listen(-1, &rang, &none))
        ;
    for (unsigned long each = 0; each < 2 * count; each++)
        if (tasks[each / 2].streams[each % 2].size)
            print_line(each / 2, (int)(each % 2));
    return failed;
}
