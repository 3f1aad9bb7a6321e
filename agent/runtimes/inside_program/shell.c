#include "shell.h"
#include "inside.h"

enum { MAY_RUN = 1 };

/* Copies a field of a line, which ends at a colon or with the line; empty where it does not fit. Where it ends. */
static const char *take_field(const char *at, char *to, size_t space) {
    size_t size = 0;
    while (at[size] && at[size] != ':')
        size++;
    if (to && size < space) {
        copy(to, at, size);
        to[size] = 0;
    }
    return at + size + (at[size] == ':');
}

static int is_number(const char *text, unsigned long wanted) {
    unsigned long value = 0;
    if (!*text)
        return 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || value > 0xFFFFFFFF)
            return 0;
        value = value * 10 + (unsigned long)(*text - '0');
    }
    return value == wanted;
}

/* Whether a line is of the user, as in `root:x:0:0:root:/root:/bin/bash`; then what it says. */
static int is_line_of(const char *line, unsigned long user, struct person *person) {
    char number[16] = {0};
    const char *at = take_field(line, person->name, sizeof person->name);
    at = take_field(take_field(at, 0, 0), number, sizeof number);
    if (is_number(number, user)) {
        at = take_field(take_field(at, 0, 0), 0, 0);
        at = take_field(at, person->home, sizeof person->home);
        take_field(at, person->shell, sizeof person->shell);
        return 1;
    }
    person->name[0] = 0;
    return 0;
}

void look_up_person(struct person *person) {
    static char text[16384];
    const unsigned long user = (unsigned long)system_call(__NR_geteuid, 0, 0, 0, 0, 0);
    size_t filled = 0;
    int found = 0;
    long file = system_call(__NR_openat, AT_FDCWD, (long)"/etc/passwd", O_CLOEXEC, 0, 0);

    *person = (struct person){{0}, {0}, {0}};
    while (file >= 0 && !found) {
        size_t begin = 0;
        long got = read_some((int)file, text + filled, sizeof text - 1 - filled);
        if (got > 0)
            filled += (size_t)got;
        else if (filled && text[filled - 1] != '\n')
            text[filled++] = '\n'; /* the last line may be without its end */
        for (size_t at = 0; at < filled && !found; at++)
            if (text[at] == '\n') {
                text[at] = 0;
                found = is_line_of(text + begin, user, person);
                begin = at + 1;
            }
        if (got <= 0 || (begin == 0 && filled == sizeof text - 1))
            break;
        copy(text, text + begin, filled - begin);
        filled -= begin;
    }
    close_it((int)file);
}

static const char *last_part(const char *path) {
    const char *name = path;
    for (const char *at = path; *at; at++)
        if (*at == '/')
            name = at + 1;
    return name;
}

/* Whether it can run, and is none of the programs that stand for no shell. */
static int is_shell(const char *path) {
    const char *name = path ? last_part(path) : "";
    return path && *path == '/' && !same(name, "nologin") && !same(name, "false") && !same(name, "true") &&
           system_call(__NR_faccessat, AT_FDCWD, (long)path, MAY_RUN, 0, 0) == 0;
}

const char *shell_of(const struct person *person, char **variables) {
    const char *others = value_of("SHELL", variables);
    if (is_shell(person->shell))
        return person->shell;
    if (is_shell(others))
        return others;
    return is_shell("/bin/bash") ? "/bin/bash" : "/bin/sh";
}

long become_shell(const char *shell, char *line, char **variables) {
    static char name[260];
    char option[] = "-c";
    char *words[] = {name + 1, option, line, 0};
    const char *last = last_part(shell);

    if (length_of(last) + 2 > sizeof name)
        return -ENOENT;
    name[0] = '-'; /* how a shell is told that it is the first one of a login */
    copy(name + 1, last, length_of(last) + 1);
    if (!line) {
        words[0] = name;
        words[1] = 0;
    }
    return system_call(__NR_execve, (long)shell, (long)words, (long)variables, 0, 0);
}
