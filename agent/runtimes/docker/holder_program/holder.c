/* Holds a network namespace: sleeps until SIGTERM or SIGINT, then exits 0. No libc, Linux only.
 *
 * Built with
 *   CC -Os -static -nostdlib -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables \
 *      -Wl,--build-id=none -Wl,-z,noseparate-code -s -o holder-ARCH holder.c
 * where CC is gcc for ARCH x86_64 and aarch64-linux-gnu-gcc for ARCH aarch64.
 */

#if defined(__x86_64__)

enum { RT_SIGPROCMASK = 14, RT_SIGTIMEDWAIT = 128, EXIT_GROUP = 231 };

static long call(long number, long a, long b, long c, long d) {
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

#elif defined(__aarch64__)

enum { RT_SIGPROCMASK = 135, RT_SIGTIMEDWAIT = 137, EXIT_GROUP = 94 };

static long call(long number, long a, long b, long c, long d) {
    register long eighth __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    __asm__ volatile("svc #0"
                     : "+r"(first)
                     : "r"(eighth), "r"(second), "r"(third), "r"(fourth)
                     : "memory");
    return first;
}

#else
#error "no system call convention for this architecture"
#endif

#define BIT(signal) (1ul << ((signal) - 1))

void _start(void) {
    unsigned long awaited = BIT(2 /* SIGINT */) | BIT(15 /* SIGTERM */);
    call(RT_SIGPROCMASK, 0 /* SIG_BLOCK */, (long)&awaited, 0, sizeof awaited);
    /* A signal that is not awaited but stops and continues it (SIGSTOP, SIGCONT) ends the wait with EINTR. */
    while (call(RT_SIGTIMEDWAIT, (long)&awaited, 0, 0, sizeof awaited) < 0) {
    }
    call(EXIT_GROUP, 0, 0, 0, 0);
}
