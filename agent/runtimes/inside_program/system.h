/* What the kernel offers, without a libc: Linux on x86_64 and aarch64. Calls answer -ERRNO where they fail. */

#ifndef MUSTER_SYSTEM_H
#define MUSTER_SYSTEM_H

#include <asm/unistd.h>
#include <stddef.h>
#include <stdint.h>

static inline long system_call6(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
    long result;
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long eighth __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long fifth __asm__("x4") = e;
    register long sixth __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(first)
                     : "r"(eighth), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "memory");
    return first;
#else
#error "no system call convention for this architecture"
#endif
}

static inline long system_call(long number, long a, long b, long c, long d, long e) {
    return system_call6(number, a, b, c, d, e, 0);
}

enum { EPERM = 1, ENOENT = 2, EINTR = 4, EAGAIN = 11, ENOMEM = 12, EACCES = 13, ENOTDIR = 20, E2BIG = 7, ECONNRESET = 104, ECONNREFUSED = 111, EINPROGRESS = 115 };
enum { EEXIST = 17, EINVAL = 22, ENOSPC = 28, EROFS = 30, ENAMETOOLONG = 36, ENOTEMPTY = 39, ELOOP = 40, EDQUOT = 122 };
enum { O_RDWR = 2, O_NOCTTY = 0400, O_NONBLOCK = 04000, O_CLOEXEC = 02000000, AT_FDCWD = -100 };
#if defined(__aarch64__)
enum { O_DIRECTORY = 040000, O_NOFOLLOW = 0100000, O_PATH = 010000000 };
#else
enum { O_DIRECTORY = 0200000, O_NOFOLLOW = 0400000, O_PATH = 010000000 };
#endif
enum { AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10, SOCK_STREAM = 1, SOCK_SEQPACKET = 5, SOL_SOCKET = 1, SCM_RIGHTS = 1, SO_SNDBUF = 7 };
enum { MSG_DONTWAIT = 0x40, MSG_NOSIGNAL = 0x4000, MSG_TRUNC = 0x20 };
enum { POLLIN = 1, POLLOUT = 4, POLLERR = 8, POLLHUP = 16 };
enum { SIGHUP = 1, SIGINT = 2, SIGKILL = 9, SIGPIPE = 13, SIGALRM = 14, SIGTERM = 15, SIGCHLD = 17, SIGCONT = 18, SIGSTOP = 19, LAST_SIGNAL = 64 };
enum { SIGQUIT = 3, SIGUSR1 = 10, SIGUSR2 = 12 };
enum { SIG_BLOCK = 0, SIG_SETMASK = 2, SIG_IGN = 1, WNOHANG = 1 };
enum { TIOCSCTTY = 0x540E, TIOCSWINSZ = 0x5414, TIOCSPTLCK = 0x40045431, TIOCGPTPEER = 0x5441 };
enum { PROT_READ = 1, PROT_WRITE = 2, MAP_PRIVATE = 2, MAP_ANONYMOUS = 0x20 };

struct poll_entry {
    int descriptor;
    short wanted;
    short found;
};

struct span {
    int64_t seconds;
    int64_t nanoseconds;
};

struct piece {
    const void *data;
    size_t size;
};

struct message {
    void *name;
    unsigned name_size;
    struct piece *pieces;
    size_t piece_count;
    void *control;
    size_t control_size;
    int flags;
};

struct unix_address {
    uint16_t family;
    char path[108];
};

struct window_size {
    uint16_t rows, columns, width, height;
};

static inline size_t length_of(const char *text) {
    size_t count = 0;
    while (text[count])
        count++;
    return count;
}

static inline int same(const char *one, const char *other) {
    while (*one && *one == *other) {
        one++;
        other++;
    }
    return *one == *other;
}

static inline void copy(void *to, const void *from, size_t size) {
    unsigned char *target = to;
    const unsigned char *source = from;
    for (size_t at = 0; at < size; at++)
        target[at] = source[at];
}

/* Writes a number behind what stands in a text. */
static inline void add_number(char *text, unsigned long value) {
    char digits[20];
    size_t size = length_of(text);
    int used = 0;
    do
        digits[used++] = (char)('0' + value % 10);
    while (value /= 10);
    while (used)
        text[size++] = digits[--used];
    text[size] = 0;
}

static inline long read_some(int descriptor, void *data, size_t size) {
    return system_call(__NR_read, descriptor, (long)data, (long)size, 0, 0);
}

/* Writes all of it, or answers what went wrong. */
static inline long write_all(int descriptor, const void *data, size_t size) {
    const char *at = data;
    while (size) {
        long done = system_call(__NR_write, descriptor, (long)at, (long)size, 0, 0);
        if (done == -EAGAIN) {
            struct poll_entry space = {descriptor, POLLOUT, 0};
            system_call(__NR_ppoll, (long)&space, 1, 0, 0, 8);
        } else if (done < 0 && done != -EINTR) {
            return done;
        } else if (done > 0) {
            at += done;
            size -= (size_t)done;
        }
    }
    return 0;
}

static inline void close_it(int descriptor) {
    if (descriptor >= 0)
        system_call(__NR_close, descriptor, 0, 0, 0, 0);
}

static inline void pause_for(int64_t milliseconds) {
    struct span span = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    system_call(__NR_nanosleep, (long)&span, 0, 0, 0, 0);
}

static inline int wait_for(struct poll_entry *entries, size_t count) {
    return (int)system_call(__NR_ppoll, (long)entries, (long)count, 0, 0, 8);
}

/* A fork: the child gets 0. */
static inline long fork_here(void) {
    return system_call(__NR_clone, SIGCHLD, 0, 0, 0, 0);
}

static inline void set_signal(int number, long handler) {
    const struct {
        long handler;
        unsigned long flags;
        long restorer;
        uint64_t mask;
    } wanted = {handler, 0, 0, 0};
    system_call(__NR_rt_sigaction, number, (long)&wanted, 0, 8, 0);
}

static inline int is_ignored(int number) {
    struct {
        long handler;
        unsigned long flags;
        long restorer;
        uint64_t mask;
    } found = {0, 0, 0, 0};
    system_call(__NR_rt_sigaction, number, 0, (long)&found, 8, 0);
    return found.handler == SIG_IGN;
}

static inline void mask_signals(uint64_t mask) {
    system_call(__NR_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, 8, 0);
}

static inline uint64_t bit_of(int number) {
    return (uint64_t)1 << (number - 1);
}

__attribute__((noreturn)) static inline void leave(long code) {
    for (;;)
        system_call(__NR_exit_group, code, 0, 0, 0, 0);
}

static inline void say(const char *text) {
    write_all(2, text, length_of(text));
}

#endif
