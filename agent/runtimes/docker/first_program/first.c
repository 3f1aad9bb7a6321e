/* The first process of a container: starts user code, and notes how it ended where the node can read it. No libc, Linux
 * only.
 *
 *     muster-first NOTE COUNT PATH... NAME [ARGUMENT...]
 *
 * NOTE is the file for the exit code. COUNT paths follow, in the order in which they are tried; the rest are user code's
 * own arguments, with its name first. Signals are passed on, orphans are reaped. The exit code is that of user code, and
 * 128 + n for signal n.
 *
 * build.sh builds it.
 */

#if defined(__x86_64__)

enum {
    WRITE = 1,
    RT_SIGPROCMASK = 14,
    IOCTL = 16,
    PWRITE = 18,
    GETPID = 39,
    CLONE = 56,
    EXECVE = 59,
    WAIT4 = 61,
    KILL = 62,
    SETPGID = 109,
    RT_SIGTIMEDWAIT = 128,
    EXIT_GROUP = 231,
    OPENAT = 257
};

static long call(long number, long a, long b, long c, long d, long e) {
    long result;
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
    return result;
}

/* The kernel leaves the number of arguments at the top of the stack. */
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall run\n");

#elif defined(__aarch64__)

enum {
    IOCTL = 29,
    OPENAT = 56,
    WRITE = 64,
    PWRITE = 68,
    EXIT_GROUP = 94,
    KILL = 129,
    RT_SIGPROCMASK = 135,
    RT_SIGTIMEDWAIT = 137,
    SETPGID = 154,
    GETPID = 172,
    CLONE = 220,
    EXECVE = 221,
    WAIT4 = 260
};

static long call(long number, long a, long b, long c, long d, long e) {
    register long eighth __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long fifth __asm__("x4") = e;
    __asm__ volatile("svc #0"
                     : "+r"(first)
                     : "r"(eighth), "r"(second), "r"(third), "r"(fourth), "r"(fifth)
                     : "memory");
    return first;
}

__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\tmov x0, sp\n\tbl run\n");

#else
#error "no system call convention for this architecture"
#endif

enum { ENOENT = 2, ENOEXEC = 8, ENOTDIR = 20 };
enum { NOT_FOUND = 127, NOT_RUN = 126 };
enum { AT_FDCWD = -100, O_WRONLY = 1, O_CLOEXEC = 02000000 };
enum { SIG_SETMASK = 2, SIGCHLD = 17, WNOHANG = 1, TIOCSPGRP = 0x5410 };

static long length(const char *text) {
    long count = 0;
    while (text[count])
        count++;
    return count;
}

static void say(const char *text) {
    call(WRITE, 2, (long)text, length(text), 0, 0);
}

static void __attribute__((noreturn)) leave(long code) {
    for (;;)
        call(EXIT_GROUP, code, 0, 0, 0, 0);
}

static void __attribute__((noreturn)) fail(const char *what, const char *subject, long code) {
    say("muster: ");
    say(what);
    say(subject);
    say("\n");
    leave(code);
}

/* Becomes user code, as a process group of its own that has the terminal if there is one. */
static void __attribute__((noreturn)) become(char **words, long paths, char **environment, unsigned long *signals) {
    char **name = words + paths;
    long error = -ENOENT;
    int group = (int)call(GETPID, 0, 0, 0, 0, 0);

    call(SETPGID, 0, 0, 0, 0, 0);
    call(IOCTL, 0, TIOCSPGRP, (long)&group, 0, 0); /* fails where there is no terminal */
    call(RT_SIGPROCMASK, SIG_SETMASK, (long)signals, 0, sizeof *signals, 0);
    for (long each = 0; each < paths; each++) {
        char *path = words[each], *called = *name;
        long result = call(EXECVE, (long)path, (long)name, (long)environment, 0, 0);
        if (result == -ENOEXEC) {
            /* A script that names no shell, which every shell and docker-init give to this one. */
            char *before = name[-1];
            name[-1] = "/bin/sh";
            *name = path;
            call(EXECVE, (long)name[-1], (long)(name - 1), (long)environment, 0, 0);
            name[-1] = before;
            *name = called;
        }
        if (result != -ENOENT && result != -ENOTDIR)
            error = result;
    }
    fail("cannot run ", *name, error == -ENOENT ? NOT_FOUND : NOT_RUN);
}

/* In place of what the node has written there, so that a full disk takes nothing away. */
static void write_note(long note, long code) {
    char text[4] = "   \n";
    long digits = code < 10 ? 1 : code < 100 ? 2 : 3;
    for (long rest = code, each = digits; each > 0; rest /= 10)
        text[--each] = (char)('0' + rest % 10);
    call(PWRITE, note, (long)text, sizeof text, 0, 0);
}

void __attribute__((noreturn, used)) run(long *stack) {
    long count = *stack, paths = 0, note, user_code;
    char **arguments = (char **)(stack + 1), **environment = arguments + count + 1;
    unsigned long all = ~0ul, before = 0;

    if (count < 5)
        fail("too few arguments", "", NOT_RUN);
    for (const char *digit = arguments[2]; *digit >= '0' && *digit <= '9'; digit++)
        paths = 10 * paths + (*digit - '0');
    if (paths < 1 || 3 + paths >= count)
        fail("too few arguments", "", NOT_RUN);

    /* Without the note the engine's word for the exit code is all there is. */
    note = call(OPENAT, AT_FDCWD, (long)arguments[1], O_WRONLY | O_CLOEXEC, 0, 0);
    call(RT_SIGPROCMASK, SIG_SETMASK, (long)&all, (long)&before, sizeof all, 0);
    user_code = call(CLONE, SIGCHLD, 0, 0, 0, 0);
    if (user_code < 0)
        fail("no process can be started for ", arguments[3 + paths], NOT_RUN);
    if (user_code == 0)
        become(arguments + 3, paths, environment, &before);

    for (;;) {
        /* A signal that is not awaited but stops and continues it (SIGSTOP, SIGCONT) ends the wait with EINTR. */
        long signal = call(RT_SIGTIMEDWAIT, (long)&all, 0, 0, sizeof all, 0), ended;
        int status = 0;

        if (signal > 0 && signal != SIGCHLD)
            call(KILL, user_code, signal, 0, 0, 0);
        while ((ended = call(WAIT4, -1, (long)&status, WNOHANG, 0, 0)) > 0) {
            if (ended == user_code) {
                long code = status & 0x7f ? 128 + (status & 0x7f) : (status >> 8) & 0xff;
                write_note(note, code);
                leave(code);
            }
        }
    }
}
