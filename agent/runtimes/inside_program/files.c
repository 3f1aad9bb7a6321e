/* Files of the execution for the agent: an SFTP server with some of OpenSSH's extensions and two of our own. It works with
 * the rights of the execution's user, as any program. */

#include "inside.h"
#include "sftp.h"
#include "tree.h"

enum { FOR_READING = 1, FOR_WRITING = 2, APPENDING = 4, CREATING = 8, EMPTYING = 16, ONLY_NEW = 32 };
enum { O_WRONLY = 1, O_CREAT = 0100, O_EXCL = 0200, O_TRUNC = 01000, O_APPEND = 02000 };
enum { AT_REMOVEDIR = 0x200, AT_SYMLINK_NOFOLLOW = 0x100, AT_EMPTY_PATH = 0x1000, RENAME_NOREPLACE = 1, BASIC_STATS = 0x7FF };
enum { MOST_HANDLES = 128, ENTRIES = 8192 };

struct handle {
    int taken;
    int descriptor;    /* -1: none */
    struct tree *tree; /* 0: none */
};

static struct handle handles[MOST_HANDLES];

static struct handle *take_handle(struct rest *rest) {
    static struct handle none;
    size_t size;
    const unsigned char *text = take_string(rest, &size);
    none = (struct handle){0, -1, 0};
    return size == 1 && text[0] < MOST_HANDLES && handles[text[0]].taken ? &handles[text[0]] : &none;
}

static long look(int directory, const char *path, int flags, struct found *found) {
    return system_call(__NR_statx, directory, (long)path, flags, BASIC_STATS, (long)found);
}

static void tell_attributes(unsigned long id, long result, const struct found *found) {
    if (result < 0) {
        tell_result(id, result);
        return;
    }
    begin(ATTRS, id);
    put_attributes(found);
    send_answer();
}

/* A handle for what was opened: a file or directory, or a list. */
static void tell_handle(unsigned long id, long descriptor, struct tree *tree) {
    unsigned char place = 0;
    while (place < MOST_HANDLES && handles[place].taken)
        place++;
    if (descriptor < 0 && !tree) {
        tell_result(id, descriptor);
    } else if (place == MOST_HANDLES) {
        close_it((int)descriptor);
        if (tree)
            close_tree(tree);
        tell(id, FAILURE, "too many files are open");
    } else {
        handles[place] = (struct handle){1, (int)descriptor, tree};
        begin(HANDLE, id);
        put_string(&place, 1);
        send_answer();
    }
}

static void open_file(unsigned long id, const char *path, unsigned long wanted, const struct attributes *attributes) {
    const unsigned long both = FOR_READING | FOR_WRITING;
    long flags = O_CLOEXEC | ((wanted & both) == both ? O_RDWR : wanted & FOR_WRITING ? O_WRONLY : 0);
    long mode = attributes->flags & HAS_MODE ? (long)(attributes->mode & 07777) : 0666;
    flags |= (wanted & APPENDING ? O_APPEND : 0) | (wanted & CREATING ? O_CREAT : 0);
    flags |= (wanted & EMPTYING ? O_TRUNC : 0) | (wanted & ONLY_NEW ? O_EXCL : 0);
    tell_handle(id, system_call(__NR_openat, AT_FDCWD, (long)path, flags, mode, 0), 0);
}

static void read_file(unsigned long id, const struct handle *handle, uint64_t offset, uint64_t size) {
    long result;
    begin(DATA, id);
    size = size < LARGEST_READ ? size : LARGEST_READ;
    result = system_call(__NR_pread64, handle->descriptor, (long)space_behind(4), (long)size, (long)offset, 0);
    if (result > 0) {
        put((uint64_t)result, 4);
        use_space((size_t)result);
        send_answer();
    } else if (result == 0 && size) {
        tell(id, AT_END, "end of file");
    } else {
        tell_result(id, result);
    }
}

static long write_file(const struct handle *handle, uint64_t offset, const unsigned char *data, size_t size) {
    while (size) {
        long done = system_call(__NR_pwrite64, handle->descriptor, (long)data, (long)size, (long)offset, 0);
        if (done <= 0)
            return done ? done : -ENOSPC;
        data += done;
        offset += (uint64_t)done;
        size -= (size_t)done;
    }
    return 0;
}

/* The names that one call of the kernel gives, which fit into one packet. */
static void read_directory(unsigned long id, const struct handle *handle) {
    static unsigned char entries[ENTRIES];
    long size = system_call(__NR_getdents64, handle->descriptor, (long)entries, sizeof entries, 0, 0);
    uint64_t count = 0;

    if (size <= 0) {
        tell(id, size ? FAILURE : AT_END, size ? "failure" : "end of directory");
        return;
    }
    begin_counted(NAME, id);
    for (long at = 0; at < size; at += entries[at + 16] | entries[at + 17] << 8) {
        const char *name = (const char *)entries + at + 19; /* behind inode, offset, length and kind: getdents64(2) */
        struct found found = {0};
        if (look(handle->descriptor, name, AT_SYMLINK_NOFOLLOW, &found) < 0)
            continue; /* gone meanwhile */
        put_word(name);
        put_line(name, &found);
        put_attributes(&found);
        count++;
    }
    send_entries(count);
}

static void tell_name(unsigned long id, const char *path, long size) {
    if (size < 0) {
        tell_result(id, size);
        return;
    }
    begin_counted(NAME, id);
    put_string(path, (size_t)size);
    put_string(path, (size_t)size);
    put(0, 4); /* no attributes */
    send_entries(1);
}

/* The path as the kernel has it. Of one that is not there, the directory must be. */
static void tell_real_path(unsigned long id, char *path) {
    static char real[2 * LONGEST_PATH];
    char link[40] = "/proc/self/fd/";
    size_t slash = length_of(path), name = slash;
    long size, descriptor = system_call(__NR_openat, AT_FDCWD, (long)path, O_PATH | O_CLOEXEC, 0, 0);

    if (descriptor == -ENOENT) {
        while (slash && path[slash] != '/')
            slash--;
        name = path[slash] == '/' ? slash + 1 : 0;
        copy(real, path, slash);
        copy(real + slash, slash ? "" : path[0] == '/' ? "/" : ".", slash ? 1 : 2);
        descriptor = system_call(__NR_openat, AT_FDCWD, (long)real, O_PATH | O_CLOEXEC, 0, 0);
    }
    if (descriptor < 0) {
        tell_result(id, descriptor);
        return;
    }
    add_number(link, (unsigned long)descriptor);
    size = system_call(__NR_readlinkat, AT_FDCWD, (long)link, (long)real, LONGEST_PATH, 0);
    close_it((int)descriptor);
    if (size > 0 && path[name]) {
        if (real[size - 1] != '/')
            real[size++] = '/';
        copy(real + size, path + name, length_of(path + name));
        size += (long)length_of(path + name);
    }
    tell_name(id, real, size);
}

static long set_attributes(int descriptor, const char *path, const struct attributes *wanted) {
    const struct span times[2] = {{(int64_t)wanted->read, 0}, {(int64_t)wanted->written, 0}};
    const long user = (long)wanted->user, group = (long)wanted->group, mode = (long)(wanted->mode & 07777), size = (long)wanted->size;
    long result = 0;
    if (wanted->flags & HAS_SIZE)
        result = path ? system_call(__NR_truncate, (long)path, size, 0, 0, 0) : system_call(__NR_ftruncate, descriptor, size, 0, 0, 0);
    if (result >= 0 && wanted->flags & HAS_OWNER)
        result = path ? system_call(__NR_fchownat, AT_FDCWD, (long)path, user, group, 0) : system_call(__NR_fchown, descriptor, user, group, 0, 0);
    if (result >= 0 && wanted->flags & HAS_MODE)
        result = path ? system_call(__NR_fchmodat, AT_FDCWD, (long)path, mode, 0, 0) : system_call(__NR_fchmod, descriptor, mode, 0, 0, 0);
    if (result >= 0 && wanted->flags & HAS_TIMES)
        result = system_call(__NR_utimensat, path ? AT_FDCWD : descriptor, (long)path, (long)times, 0, 0);
    return result;
}

static long rename_to(const char *from, const char *to, long flags) {
    return system_call(__NR_renameat2, AT_FDCWD, (long)from, AT_FDCWD, (long)to, flags);
}

static int is_word(const unsigned char *text, size_t size, const char *word) {
    size_t at = 0;
    while (at < size && word[at] && text[at] == (unsigned char)word[at])
        at++;
    return at == size && !word[at];
}

static void tell_file_system(unsigned long id, const char *path) {
    /* kind, block size, blocks, free, available, files, free files, id, longest name, fragment, flags: statfs(2) */
    uint64_t told[15] = {0};
    long result = system_call(__NR_statfs, (long)path, (long)told, 0, 0, 0);
    const uint64_t values[] = {told[1], told[9] ? told[9] : told[1], told[2], told[3], told[4], told[5], told[6], told[6], told[7], told[10] & 3, told[8]};
    if (result < 0) {
        tell_result(id, result);
        return;
    }
    begin(EXTENDED_REPLY, id);
    for (size_t each = 0; each < sizeof values / sizeof *values; each++)
        put(values[each], 8);
    send_answer();
}

static void extended(unsigned long id, struct rest *rest) {
    static char path[LONGEST_PATH], other[LONGEST_PATH];
    uint64_t offset, length;
    size_t size;
    const unsigned char *name = take_string(rest, &size);

    if (is_word(name, size, "fsync@openssh.com")) {
        const struct handle *handle = take_handle(rest);
        tell_result(id, rest->damaged ? -EINVAL : system_call(__NR_fsync, handle->descriptor, 0, 0, 0, 0));
        return;
    }
    take_path(rest, path);
    if (is_word(name, size, "posix-rename@openssh.com")) {
        take_path(rest, other);
        tell_result(id, rest->damaged ? -EINVAL : rename_to(path, other, 0));
    } else if (is_word(name, size, "statvfs@openssh.com") && !rest->damaged) {
        tell_file_system(id, path);
    } else if (is_word(name, size, "hash@muster")) {
        offset = take(rest, 8);
        length = take(rest, 8);
        if (rest->damaged)
            tell(id, BAD_MESSAGE, "the packet is damaged");
        else
            tell_hash(id, path, offset, length);
    } else if (is_word(name, size, "list@muster")) {
        const int deep = (int)(take(rest, 4) & 1);
        long result = -EINVAL;
        struct tree *tree = rest->damaged ? 0 : open_tree(path, deep, &result);
        if (!tree && result == -EAGAIN)
            tell(id, FAILURE, "too many lists are open");
        else
            tell_handle(id, tree ? -1 : result, tree);
    } else {
        tell(id, UNSUPPORTED, "not known here");
    }
}

static void close_handle(unsigned long id, struct handle *handle) {
    if (!handle->taken) {
        tell(id, FAILURE, "nothing is open by this handle");
        return;
    }
    close_it(handle->descriptor);
    if (handle->tree)
        close_tree(handle->tree);
    *handle = (struct handle){0, -1, 0};
    tell(id, OK, "");
}

static void with_handle(int kind, unsigned long id, struct rest *rest) {
    struct handle *handle = take_handle(rest);
    struct attributes wanted;
    struct found found = {0};
    uint64_t offset;
    size_t size;

    switch (kind) {
    case CLOSE:
        close_handle(id, handle);
        break;
    case READ:
        offset = take(rest, 8);
        size = (size_t)take(rest, 4);
        read_file(id, handle, offset, size);
        break;
    case WRITE:
        offset = take(rest, 8);
        {
            const unsigned char *data = take_string(rest, &size);
            tell_result(id, rest->damaged ? -EINVAL : write_file(handle, offset, data, size));
        }
        break;
    case FSTAT:
        tell_attributes(id, look(handle->descriptor, "", AT_EMPTY_PATH, &found), &found);
        break;
    case FSETSTAT:
        wanted = take_attributes(rest);
        tell_result(id, rest->damaged ? -EINVAL : set_attributes(handle->descriptor, 0, &wanted));
        break;
    default:
        if (handle->tree)
            tell_entries(id, handle->tree);
        else
            read_directory(id, handle);
    }
}

static void with_path(int kind, unsigned long id, struct rest *rest) {
    static char path[LONGEST_PATH], other[LONGEST_PATH];
    struct attributes wanted = {0};
    struct found found = {0};
    unsigned long flags = 0;

    take_path(rest, path);
    if (kind == OPEN)
        flags = take(rest, 4);
    if (kind == OPEN || kind == SETSTAT || kind == MKDIR)
        wanted = take_attributes(rest);
    if (kind == RENAME || kind == SYMLINK)
        take_path(rest, other);
    if (rest->damaged) {
        tell(id, BAD_MESSAGE, "the packet is damaged");
        return;
    }
    switch (kind) {
    case OPEN:
        open_file(id, path, flags, &wanted);
        break;
    case OPENDIR:
        tell_handle(id, system_call(__NR_openat, AT_FDCWD, (long)path, O_DIRECTORY | O_CLOEXEC, 0, 0), 0);
        break;
    case LSTAT:
    case STAT:
        tell_attributes(id, look(AT_FDCWD, path, kind == LSTAT ? AT_SYMLINK_NOFOLLOW : 0, &found), &found);
        break;
    case SETSTAT:
        tell_result(id, set_attributes(-1, path, &wanted));
        break;
    case REMOVE:
        tell_result(id, system_call(__NR_unlinkat, AT_FDCWD, (long)path, 0, 0, 0));
        break;
    case MKDIR:
        tell_result(id, system_call(__NR_mkdirat, AT_FDCWD, (long)path, wanted.flags & HAS_MODE ? (long)(wanted.mode & 07777) : 0777, 0, 0));
        break;
    case RMDIR:
        tell_result(id, system_call(__NR_unlinkat, AT_FDCWD, (long)path, AT_REMOVEDIR, 0, 0));
        break;
    case REALPATH:
        tell_real_path(id, path);
        break;
    case RENAME:
        tell_result(id, rename_to(path, other, RENAME_NOREPLACE));
        break;
    case READLINK:
        tell_name(id, other, system_call(__NR_readlinkat, AT_FDCWD, (long)path, (long)other, sizeof other, 0));
        break;
    default: /* SYMLINK: what it leads to comes first, as OpenSSH has it */
        tell_result(id, system_call(__NR_symlinkat, (long)path, AT_FDCWD, (long)other, 0, 0));
    }
}

static void serve_request(int kind, struct rest *rest) {
    const unsigned long id = take(rest, 4);
    if (kind == CLOSE || kind == READ || kind == WRITE || kind == FSTAT || kind == FSETSTAT || kind == READDIR)
        with_handle(kind, id, rest);
    else if (kind == OPEN || (kind >= LSTAT && kind <= SYMLINK))
        with_path(kind, id, rest);
    else if (kind == EXTENDED)
        extended(id, rest);
    else
        tell(id, UNSUPPORTED, "not known here");
}

int serve_files(void) {
    /* each with its version */
    static const char *const extensions[] = {
        "posix-rename@openssh.com", "1", "statvfs@openssh.com", "2", "fsync@openssh.com", "1", "hash@muster", "1", "list@muster", "1",
    };
    struct rest rest;
    while (hear_packet(&rest)) {
        const int kind = (int)take(&rest, 1);
        if (kind == INIT) {
            begin(VERSION, 3);
            for (size_t each = 0; each < sizeof extensions / sizeof *extensions; each++)
                put_word(extensions[each]);
            send_answer();
        } else {
            serve_request(kind, &rest);
        }
    }
    return 0;
}
