/* The packets of SFTP, version 3 (draft-ietf-secsh-filexfer-02): one is read, and one is written in answer. */

#ifndef MUSTER_SFTP_H
#define MUSTER_SFTP_H

#include "system.h"

enum {
    INIT = 1, VERSION = 2, OPEN = 3, CLOSE = 4, READ = 5, WRITE = 6, LSTAT = 7, FSTAT = 8, SETSTAT = 9, FSETSTAT = 10, OPENDIR = 11,
    READDIR = 12, REMOVE = 13, MKDIR = 14, RMDIR = 15, REALPATH = 16, STAT = 17, RENAME = 18, READLINK = 19, SYMLINK = 20,
    STATUS = 101, HANDLE = 102, DATA = 103, NAME = 104, ATTRS = 105, EXTENDED = 200, EXTENDED_REPLY = 201,
};
enum { OK = 0, AT_END = 1, NO_SUCH_FILE = 2, NOT_ALLOWED = 3, FAILURE = 4, BAD_MESSAGE = 5, UNSUPPORTED = 8 };
enum { HAS_SIZE = 1, HAS_OWNER = 2, HAS_MODE = 4, HAS_TIMES = 8, HAS_MORE = 0x80000000 };
enum { LONGEST_PATH = 4096, LARGEST_SFTP_PACKET = 256 * 1024 + 1024, LARGEST_READ = 128 * 1024 };

struct moment {
    int64_t seconds;
    uint32_t nanoseconds;
    int32_t unused;
};

/* What statx(2) tells; the same on every architecture. */
struct found {
    uint32_t mask, block_size;
    uint64_t attributes;
    uint32_t links, user, group;
    uint16_t mode, unused;
    uint64_t inode, size, blocks, attributes_mask;
    struct moment read, born, changed, written;
    unsigned char rest[128];
};

struct attributes {
    unsigned long flags, user, group, mode, read, written;
    uint64_t size;
};

/* What of a packet has not been read yet. */
struct rest {
    const unsigned char *at;
    size_t left;
    int damaged;
};

/* The next packet; 0 where there is none. */
int hear_packet(struct rest *rest);

uint64_t take(struct rest *rest, size_t size);
const unsigned char *take_string(struct rest *rest, size_t *size);
/* A path; an empty one is the working directory. */
void take_path(struct rest *rest, char *path);
struct attributes take_attributes(struct rest *rest);

/* Begins an answer; what is put is behind it, and it goes with send_answer(). */
void begin(int kind, unsigned long id);
void put(uint64_t value, int size);
void put_string(const void *data, size_t size);
void put_word(const char *text);
void put_attributes(const struct found *found);
/* A line as `ls -l` has it, which people are shown. */
void put_line(const char *name, const struct found *found);
/* Space for data behind what stands in the answer, and how many bytes of it were used. */
unsigned char *space_behind(size_t size);
void use_space(size_t size);
/* The bytes of the answer so far. */
size_t answer_size(void);
/* Begins an answer with entries, which are counted in the end. */
void begin_counted(int kind, unsigned long id);
void send_entries(uint64_t count);
void send_answer(void);
void tell(unsigned long id, unsigned long code, const char *text);
/* How a system call ended, in the words of SFTP, which has few. */
void tell_result(unsigned long id, long result);

#endif
