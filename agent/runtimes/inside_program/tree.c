#include "tree.h"

enum { PIECE = 64 * 1024, MOST_LEVELS = 201, ENTRIES_OF_LEVEL = 8192, MOST_TREES = 8 };
enum { AT_NOT_FOLLOWED = 0x100, AT_ITSELF = 0x1000, ALL_STATS = 0x7FF, KIND_BITS = 0170000 };

/* A directory that is open, and those of its entries that were read and not told yet. */
struct level {
    int descriptor;
    size_t length; /* of its path */
    long at, size;
    unsigned char entries[ENTRIES_OF_LEVEL];
};

struct tree {
    int deep, begun, count; /* of levels that are open */
    long fault;             /* why what is at the path cannot be read */
    struct found root;
    char path[LONGEST_PATH];
    struct level levels[MOST_LEVELS];
};

static int open_trees;

static int is_kind(const struct found *found, unsigned kind) {
    return (found->mode & KIND_BITS) == kind;
}

/* The path of an entry below that of its directory; 0 where it is too long. */
static int name_entry(struct tree *tree, size_t length, const char *name) {
    size_t size = length_of(name);
    if (length + 1 + size >= sizeof tree->path)
        return 0;
    if (length)
        tree->path[length++] = '/';
    copy(tree->path + length, name, size + 1);
    return 1;
}

static void put_fault(const char *path, long fault) {
    put_word(path);
    put('e', 1);
    put((uint64_t)-fault, 4);
    put(0, 8);
    put(0, 8);
    put_word("");
}

/* An entry; `directory` and `name` lead to it, for where a link leads. */
static void put_entry(const char *path, const struct found *found, int directory, const char *name) {
    static char target[LONGEST_PATH];
    const int is_file = is_kind(found, 0100000), is_link = is_kind(found, 0120000);
    const int64_t seconds = found->written.seconds;
    long size = is_link ? system_call(__NR_readlinkat, directory, (long)name, (long)target, sizeof target, 0) : 0;

    put_word(path);
    put((uint64_t)(is_file ? 'f' : is_kind(found, 0040000) ? 'd' : is_link ? 'l' : 'o'), 1);
    put(found->mode, 4);
    put(is_file ? found->size : 0, 8);
    put(seconds < 0 ? 0 : (uint64_t)seconds * 1000000000 + found->written.nanoseconds, 8);
    put_string(target, size < 0 ? 0 : (size_t)size);
}

/* Goes down into a directory, whose path is that of the tree now; or answers why not. */
static long go_down(struct tree *tree, int directory, const char *name, long flags) {
    struct level *level = &tree->levels[tree->count];
    long descriptor;

    if (tree->count == MOST_LEVELS)
        return -ELOOP;
    descriptor = system_call(__NR_openat, directory, (long)name, flags | O_DIRECTORY | O_CLOEXEC, 0, 0);
    if (descriptor < 0)
        return descriptor;
    level->descriptor = (int)descriptor;
    level->length = length_of(tree->path);
    level->at = level->size = 0;
    tree->count++;
    return 0;
}

struct tree *open_tree(const char *path, int deep, long *result) {
    struct tree *tree;
    struct found root = {0};

    if (open_trees == MOST_TREES) {
        *result = -EAGAIN;
        return 0;
    }
    *result = system_call(__NR_statx, AT_FDCWD, (long)path, 0, ALL_STATS, (long)&root);
    if (*result < 0)
        return 0;
    *result = system_call6(__NR_mmap, 0, sizeof *tree, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*result < 0 && *result > -4096)
        return 0;
    tree = (struct tree *)*result;
    tree->deep = deep;
    tree->root = root;
    if (is_kind(&root, 0040000))
        tree->fault = go_down(tree, AT_FDCWD, path, 0);
    open_trees++;
    *result = 0;
    return tree;
}

void close_tree(struct tree *tree) {
    while (tree->count)
        close_it(tree->levels[--tree->count].descriptor);
    system_call(__NR_munmap, (long)tree, sizeof *tree, 0, 0, 0);
    open_trees--;
}

/* Puts what one name of a directory stands for, and goes down there; how many entries that is. */
static int put_name(struct tree *tree, struct level *level, const char *name) {
    struct found found = {0};
    long result;

    if (same(name, ".") || same(name, ".."))
        return 0;
    if (!name_entry(tree, level->length, name)) {
        tree->path[level->length] = 0;
        put_fault(tree->path, -ENAMETOOLONG);
        return 1;
    }
    result = system_call(__NR_statx, level->descriptor, (long)name, AT_NOT_FOLLOWED, ALL_STATS, (long)&found);
    if (result < 0) {
        if (result != -ENOENT) /* else it is gone meanwhile */
            put_fault(tree->path, result);
        return result != -ENOENT;
    }
    put_entry(tree->path, &found, level->descriptor, name);
    result = tree->deep && is_kind(&found, 0040000) ? go_down(tree, level->descriptor, name, O_NOFOLLOW) : 0;
    if (result < 0 && result != -ENOENT)
        put_fault(tree->path, result);
    return 1 + (result < 0 && result != -ENOENT);
}

/* Puts the next name of the innermost directory, or leaves that; how many entries that is. */
static int put_next(struct tree *tree) {
    struct level *level = &tree->levels[tree->count - 1];
    const unsigned char *entry;

    if (level->at == level->size) {
        level->at = 0;
        level->size = system_call(__NR_getdents64, level->descriptor, (long)level->entries, sizeof level->entries, 0, 0);
        if (level->size <= 0) {
            const int is_fault = level->size < 0 && level->size != -ENOENT;
            tree->path[level->length] = 0;
            if (is_fault)
                put_fault(tree->path, level->size);
            close_it(level->descriptor);
            tree->count--;
            return is_fault;
        }
    }
    entry = level->entries + level->at;
    level->at += entry[16] | entry[17] << 8; /* behind inode and offset: getdents64(2) */
    return put_name(tree, level, (const char *)entry + 19);
}

void tell_entries(unsigned long id, struct tree *tree) {
    uint64_t count = 0;

    begin_counted(EXTENDED_REPLY, id);
    if (!tree->begun) {
        put_entry("", &tree->root, AT_FDCWD, "");
        count++;
        if (tree->fault < 0) {
            put_fault("", tree->fault);
            count++;
        }
        tree->begun = 1;
    }
    while (tree->count && answer_size() < PIECE)
        count += (uint64_t)put_next(tree);
    if (count)
        send_entries(count);
    else
        tell(id, AT_END, "end of the list");
}
