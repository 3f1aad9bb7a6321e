/* The parts of muster-inside. Each returns the exit code of the program. */

#ifndef MUSTER_INSIDE_H
#define MUSTER_INSIDE_H

/* Starts commands for the agent at a door, for as long as the execution lasts. */
int stay(const char *door, char **environment);

/* Has a command run in another execution of the gang: muster-exec, muster-rsh and ssh. */
int call_gang(const char *name, char **arguments, char **environment);

/* Starts the tasks of a step on this node, and waits for them: what srun calls. */
int run_tasks(char **arguments, char **environment);

/* Serves the files of the execution on standard input and output, as SFTP, until the input ends. */
int serve_files(void);

/* Becomes the program, looked for as a shell does; what it answers is why that cannot be, as -ERRNO. */
long execute(char **words, char **variables);

/* The value of a variable, or 0. */
char *value_of(const char *name, char **environment);

#endif
