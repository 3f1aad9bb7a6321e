#include "door.h"

/* The compiler calls these by itself. */
void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);

void *memcpy(void *to, const void *from, size_t size) {
    copy(to, from, size);
    return to;
}

void *memset(void *to, int value, size_t size) {
    unsigned char *target = to;
    for (size_t at = 0; at < size; at++)
        target[at] = (unsigned char)value;
    return to;
}

void put_bytes(struct packet *packet, const void *data, size_t size) {
    if (packet->too_long || size > LARGEST_PACKET - packet->size) {
        packet->too_long = 1;
        return;
    }
    copy(packet->bytes + packet->size, data, size);
    packet->size += size;
}

void put_number(struct packet *packet, unsigned long value, int size) {
    unsigned char bytes[4];
    for (int at = 0; at < size; at++)
        bytes[at] = (unsigned char)(value >> 8 * (size - 1 - at));
    put_bytes(packet, bytes, (size_t)size);
}

void put_text(struct packet *packet, const char *text) {
    size_t size = length_of(text);
    if (size > LARGEST_PACKET) {
        packet->too_long = 1;
        return;
    }
    put_number(packet, size, 4);
    put_bytes(packet, text, size);
}

unsigned long take_number(struct cursor *cursor, int size) {
    unsigned long value = 0;
    if (cursor->damaged || cursor->end - cursor->at < size) {
        cursor->damaged = 1;
        return 0;
    }
    for (int at = 0; at < size; at++)
        value = value << 8 | *cursor->at++;
    return value;
}

char *take_text(struct cursor *cursor, char **space) {
    unsigned long size = take_number(cursor, 4);
    char *text = *space;
    if (cursor->damaged || (unsigned long)(cursor->end - cursor->at) < size) {
        cursor->damaged = 1;
        size = 0;
    }
    copy(text, cursor->at, size);
    text[size] = 0;
    if (length_of(text) != size)
        cursor->damaged = 1;
    cursor->at += size;
    *space = text + size + 1;
    return text;
}

/* Writes a path of this directory's descriptor; a path of a socket may be no longer than 107 bytes. */
static void name_below(char *target, long directory, const char *name) {
    static const char below[] = "/proc/self/fd/";
    size_t at;
    copy(target, below, sizeof below);
    add_number(target, (unsigned long)directory);
    at = length_of(target);
    target[at++] = '/';
    copy(target + at, name, length_of(name) + 1);
}

int dial(const char *path, int flags) {
    static char directory[4096];
    struct unix_address address = {AF_UNIX, {0}};
    size_t size = length_of(path), slash = 0;
    long parent = -1, line, result;
    int space = 2 * LARGEST_PACKET;

    if (size < sizeof address.path) {
        copy(address.path, path, size);
    } else {
        for (size_t at = 0; at < size; at++)
            if (path[at] == '/')
                slash = at;
        if (slash == 0 || slash >= sizeof directory || size - slash > 64)
            return -ENOENT;
        copy(directory, path, slash);
        directory[slash] = 0;
        parent = system_call(__NR_openat, AT_FDCWD, (long)directory, O_PATH | O_DIRECTORY | O_CLOEXEC, 0, 0);
        if (parent < 0)
            return (int)parent;
        name_below(address.path, parent, path + slash + 1);
    }
    line = system_call(__NR_socket, AF_UNIX, SOCK_SEQPACKET | O_CLOEXEC | flags, 0, 0, 0);
    if (line >= 0) {
        system_call(__NR_setsockopt, line, SOL_SOCKET, SO_SNDBUF, (long)&space, sizeof space);
        result = system_call(__NR_connect, line, (long)&address, sizeof address, 0, 0);
        if (result < 0) {
            close_it((int)line);
            line = result;
        }
    }
    close_it((int)parent);
    return (int)line;
}

long send_packet(int line, const struct packet *packet, const int *descriptors, int count, int flags) {
    struct {
        size_t size;
        int level, type;
        int descriptors[3];
        int unused;
    } control = {16 + 4 * (size_t)count, SOL_SOCKET, SCM_RIGHTS, {-1, -1, -1}, 0};
    struct piece piece = {packet->bytes, packet->size};
    struct message message = {0, 0, &piece, 1, 0, 0, 0};
    long result;

    if (packet->too_long)
        return -E2BIG;
    if (count) {
        for (int each = 0; each < count; each++)
            control.descriptors[each] = descriptors[each];
        message.control = &control;
        message.control_size = 16 + ((4 * (size_t)count + 7) & ~(size_t)7);
    }
    do
        result = system_call(__NR_sendmsg, line, (long)&message, MSG_NOSIGNAL | flags, 0, 0);
    while (result == -EINTR);
    return result < 0 ? result : 0;
}
