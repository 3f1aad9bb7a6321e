/* The login shell of the user that this process runs as. */

#ifndef MUSTER_SHELL_H
#define MUSTER_SHELL_H

#include "system.h"

/* What /etc/passwd says of a user; empty: nothing. */
struct person {
    char name[64], home[1024], shell[1024];
};

void look_up_person(struct person *person);

/* The shell of the user where it can run and lets people in, else that of the variables, else bash, else sh. */
const char *shell_of(const struct person *person, char **variables);

/* Becomes the shell: a login shell, or one that runs a line; what it answers is why that cannot be, as -ERRNO. */
long become_shell(const char *shell, char *line, char **variables);

#endif
