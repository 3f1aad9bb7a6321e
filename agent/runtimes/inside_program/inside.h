/* The parts of muster-inside. Each returns the exit code of the program. */

#ifndef MUSTER_INSIDE_H
#define MUSTER_INSIDE_H

/* Exit codes for programs that are not there, or cannot be run. */
enum { NOT_RUN = 126, NOT_FOUND = 127 };

/* Starts commands for the agent at a door, for as long as the execution lasts. */
int stay(const char *door, char **environment);

/* Runs the main program of the execution, which people at the door can talk to; arguments: DOOR stdin|tty PATH NAME … */
int run_main(char **arguments, char **environment);

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
