/* The one program that Muster brings into executions. No libc, Linux only; `build.sh` says how it is built.
 *
 *     muster-inside stay DOOR     starts commands for the agent; MUSTER_TICKET tells it from other programs
 *     muster-inside main DOOR stdin|tty PATH NAME …
 *                                 has the main program read, or talk, to whoever attaches: main.c
 *     muster-inside wait          does nothing until SIGTERM or SIGINT, and then ends with 0
 *     muster-inside tasks …       starts the tasks of a step on this node: tasks.c
 *     muster-exec, muster-rsh, muster-ssh, ssh: commands in other executions of the gang
 */

#include "inside.h"
#include "system.h"

#if defined(__x86_64__)
/* The kernel leaves the number of arguments at the top of the stack. */
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall run\n");
#else
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\tmov x0, sp\n\tbl run\n");
#endif

void run(long *stack) __attribute__((noreturn, used));

char *value_of(const char *name, char **environment) {
    size_t size = length_of(name);
    for (; *environment; environment++) {
        size_t at = 0;
        while (at < size && (*environment)[at] == name[at])
            at++;
        if (at == size && (*environment)[at] == '=')
            return *environment + size + 1;
    }
    return 0;
}

long execute(char **words, char **variables) {
    static char path[4096];
    const char *name = words[0], *search = value_of("PATH", variables);
    long result, worst = -ENOENT;
    size_t size = length_of(name);

    for (const char *at = name; *at; at++)
        if (*at == '/')
            return system_call(__NR_execve, (long)name, (long)words, (long)variables, 0, 0);
    if (!search)
        search = "/usr/local/bin:/usr/bin:/bin";
    while (*name) {
        size_t end = 0;
        while (search[end] && search[end] != ':')
            end++;
        if (end + size + 2 <= sizeof path) {
            copy(path, search, end);
            if (end)
                path[end] = '/';
            copy(path + end + (end != 0), name, size + 1);
            result = system_call(__NR_execve, (long)path, (long)words, (long)variables, 0, 0);
            if (result != -ENOENT && result != -ENOTDIR)
                worst = result;
        }
        if (!search[end])
            break;
        search += end + 1;
    }
    return worst;
}

/* The main program of an execution in which others start commands. It may be the first process of a container. */
static int wait_here(void) {
    const uint64_t heard = bit_of(SIGTERM) | bit_of(SIGINT) | bit_of(SIGCHLD);
    mask_signals(heard);
    for (;;) {
        long found = system_call(__NR_rt_sigtimedwait, (long)&heard, 0, 0, 8, 0);
        if (found == SIGTERM || found == SIGINT)
            return 0;
        while (system_call(__NR_wait4, -1, 0, WNOHANG, 0, 0) > 0)
            ;
    }
}

void run(long *stack) {
    long count = *stack;
    char **arguments = (char **)(stack + 1), **environment = arguments + count + 1;
    const char *name = count > 0 ? arguments[0] : "";

    for (const char *at = name; *at; at++)
        if (*at == '/')
            name = at + 1;
    if (!same(name, "muster-inside"))
        leave(call_gang(name, arguments + (count > 0), environment));
    if (count == 3 && same(arguments[1], "stay"))
        leave(stay(arguments[2], environment));
    if (count == 2 && same(arguments[1], "wait"))
        leave(wait_here());
    if (count == 2 && same(arguments[1], "files"))
        leave(serve_files());
    if (count > 5 && same(arguments[1], "main") && (same(arguments[3], "stdin") || same(arguments[3], "tty")))
        leave(run_main(arguments + 2, environment));
    if (count > 6 && same(arguments[1], "tasks"))
        leave(run_tasks(arguments + 2, environment));
    say("muster-inside: say `stay DOOR`, `main DOOR stdin|tty PATH NAME`, `wait`, `files` or `tasks FIRST COUNT LABELS GPUS PROGRAM`\n");
    leave(2);
}
