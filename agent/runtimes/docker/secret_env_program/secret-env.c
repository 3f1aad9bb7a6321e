/* Adds variables from a file to the environment and becomes another program. No libc, Linux only.
 *
 *     secret-env FILE COUNT PATH... NAME [ARGUMENT...]
 *
 * FILE has NAME=VALUE, each with a zero byte behind it. COUNT paths follow, in the order in which they are tried; the
 * rest are the program's own arguments, with its name first. What the file says replaces variables of the same name.
 * So the values are in no list of arguments, and in nothing that Docker keeps.
 *
 * Built with
 *   CC -Os -static -nostdlib -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables -fno-builtin \
 *      -Wl,--build-id=none -Wl,-z,noseparate-code -s -o secret-env-ARCH secret-env.c
 * where CC is gcc for ARCH x86_64 and aarch64-linux-gnu-gcc for ARCH aarch64.
 */

#if defined(__x86_64__)

enum { WRITE = 1, LSEEK = 8, MMAP = 9, EXECVE = 59, EXIT_GROUP = 231, OPENAT = 257 };

static long call(long number, long a, long b, long c, long d, long e, long f) {
    long result;
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}

/* The kernel leaves the number of arguments at the top of the stack. */
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall run\n");

#elif defined(__aarch64__)

enum { OPENAT = 56, LSEEK = 62, WRITE = 64, EXIT_GROUP = 94, EXECVE = 221, MMAP = 222 };

static long call(long number, long a, long b, long c, long d, long e, long f) {
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
}

__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\tmov x0, sp\n\tbl run\n");

#else
#error "no system call convention for this architecture"
#endif

enum { ENOENT = 2, ENOTDIR = 20 };
enum { NOT_FOUND = 127, NOT_RUN = 126 };
enum { AT_FDCWD = -100, O_RDONLY = 0, O_CLOEXEC = 02000000, SEEK_END = 2 };
enum { PROT_READ = 1, PROT_WRITE = 2, MAP_PRIVATE = 2, MAP_ANONYMOUS = 32 };

static long length(const char *text) {
    long count = 0;
    while (text[count])
        count++;
    return count;
}

static void say(const char *text) {
    call(WRITE, 2, (long)text, length(text), 0, 0, 0);
}

static void fail(const char *what, const char *subject, long code) {
    say("muster: ");
    say(what);
    say(subject);
    say("\n");
    for (;;)
        call(EXIT_GROUP, code, 0, 0, 0, 0, 0);
}

/* Whether both are of the same variable. */
static int same_name(const char *one, const char *other) {
    while (*one && *one == *other && *one != '=') {
        one++;
        other++;
    }
    return *one == '=' && *other == '=';
}

static char *map(long size, long descriptor) {
    long flags = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE;
    long found = call(MMAP, 0, size, PROT_READ | PROT_WRITE, flags, descriptor, 0);
    return found < 0 && found > -4096 ? 0 : (char *)found;
}

void __attribute__((noreturn, used)) run(long *stack) {
    long count = *stack, paths = 0, size, descriptor, variables = 0, error = -ENOENT, kept = 0, before = 0;
    char **arguments = (char **)(stack + 1), **environment = arguments + count + 1, **fresh, *file;

    if (count < 4)
        fail("too few arguments", "", NOT_RUN);
    for (const char *digit = arguments[2]; *digit >= '0' && *digit <= '9'; digit++)
        paths = 10 * paths + (*digit - '0');
    if (paths < 1 || 3 + paths >= count)
        fail("too few arguments", "", NOT_RUN);

    descriptor = call(OPENAT, AT_FDCWD, (long)arguments[1], O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (descriptor < 0)
        fail("cannot read the secrets of the environment in ", arguments[1], NOT_RUN);
    size = call(LSEEK, descriptor, 0, SEEK_END, 0, 0, 0);
    file = size > 0 ? map(size, descriptor) : 0;
    if (size < 0 || (size > 0 && (!file || file[size - 1])))
        fail("cannot read the secrets of the environment in ", arguments[1], NOT_RUN);
    for (long at = 0; at < size; at++)
        variables += !file[at];

    while (environment[before])
        before++;
    fresh = (char **)map((variables + before + 1) * sizeof *fresh, -1);
    if (!fresh)
        fail("no memory is left", "", NOT_RUN);
    for (long at = 0; at < size; at += length(file + at) + 1)
        fresh[kept++] = file + at;
    for (long each = 0; each < before; each++) {
        long other = 0;
        while (other < variables && !same_name(environment[each], fresh[other]))
            other++;
        if (other == variables)
            fresh[kept++] = environment[each];
    }
    fresh[kept] = 0;

    for (long each = 0; each < paths; each++) {
        long result = call(EXECVE, (long)arguments[3 + each], (long)(arguments + 3 + paths), (long)fresh, 0, 0, 0);
        if (result != -ENOENT && result != -ENOTDIR)
            error = result;
    }
    fail("cannot run ", arguments[3 + paths], error == -ENOENT ? NOT_FOUND : NOT_RUN);
    __builtin_unreachable();
}
