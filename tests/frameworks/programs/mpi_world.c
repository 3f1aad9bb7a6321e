/* A process of MPI that does one of three things with all others, as the programs in Python beside it do:
 *   sum        adds up the ranks, and says on which node it is
 *   fail HOW   meets the others, and fails on the last rank: `exit` as a program that crashes, `abort` as MPI would have it
 *   wait FILE  meets the others, waits for a file, and meets them again
 */

#include <libgen.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAILED = 7, PAUSE = 50000, APART = 400000 };

static void sum(int rank, int size) {
    int total;
    MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d on %s, sum %d\n", rank, size, getenv("MUSTER_NODE"), total);
}

static void fail(int rank, int size, const char *how) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        if (!strcmp(how, "exit"))
            _exit(FAILED);
        MPI_Abort(MPI_COMM_WORLD, FAILED);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void wait_for(int rank, const char *go) {
    char directory[4096], told[4200];
    FILE *file;
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(directory, sizeof directory, "%s", go);
    snprintf(told, sizeof told, "%s/pid.%d", dirname(directory), (int)getpid());
    file = fopen(told, "w");
    if (!file)
        MPI_Abort(MPI_COMM_WORLD, 1);
    fclose(file);
    printf("rank %d waits\n", rank);
    fflush(stdout);
    while (access(go, F_OK))
        usleep(PAUSE);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d has met all\n", rank);
}

/* The ranks end one after another, the highest first, while those that still live do nothing. Where a lower rank is first,
 * MPICH of before 4.2 on UCX can wait for ever in MPI_Finalize, whoever has started it: a peer has stopped to answer
 * (https://github.com/pmodels/mpich/pull/6596). */
static void end(int rank, int size) {
    MPI_Barrier(MPI_COMM_WORLD);
    usleep((size - rank) * APART);
    MPI_Finalize();
}

int main(int count, char **words) {
    int rank, size;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(words[1], "sum"))
        sum(rank, size);
    else if (!strcmp(words[1], "fail"))
        fail(rank, size, words[2]);
    else
        wait_for(rank, words[2]);
    end(rank, size);
    return 0;
}
