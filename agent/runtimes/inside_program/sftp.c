/* Reads and writes the packets of SFTP on standard input and output. */

#include "sftp.h"

enum { LONGEST_LINE_OF_FILE = 768 };

static unsigned char asked[LARGEST_SFTP_PACKET], answer[LARGEST_SFTP_PACKET];
static size_t filled;

static int read_whole(unsigned char *to, size_t size) {
    while (size) {
        long got = read_some(0, to, size);
        if (got == -EINTR)
            continue;
        if (got <= 0)
            return 0;
        to += got;
        size -= (size_t)got;
    }
    return 1;
}

int hear_packet(struct rest *rest) {
    *rest = (struct rest){asked, 4, 0};
    if (!read_whole(asked, 4))
        return 0;
    *rest = (struct rest){asked, (size_t)take(rest, 4), 0};
    return rest->left && rest->left <= sizeof asked && read_whole(asked, rest->left);
}

void put(uint64_t value, int size) {
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8)
        answer[filled++] = (unsigned char)(value >> shift);
}

void put_string(const void *data, size_t size) {
    put(size, 4);
    copy(answer + filled, data, size);
    filled += size;
}

void put_word(const char *text) {
    put_string(text, length_of(text));
}

void begin(int kind, unsigned long id) {
    filled = 4;
    put((unsigned long)kind, 1);
    put(id, 4);
}

void send_answer(void) {
    size_t size = filled;
    filled = 0;
    put(size - 4, 4);
    if (write_all(1, answer, size) < 0)
        leave(1);
}

void tell(unsigned long id, unsigned long code, const char *text) {
    begin(STATUS, id);
    put(code, 4);
    put_word(text);
    put_word("");
    send_answer();
}

void tell_result(unsigned long id, long result) {
    if (result >= 0)
        tell(id, OK, "");
    else if (result == -ENOENT || result == -ENOTDIR)
        tell(id, NO_SUCH_FILE, "no such file");
    else if (result == -EACCES || result == -EPERM || result == -EROFS)
        tell(id, NOT_ALLOWED, result == -EROFS ? "the file system is read-only" : "permission denied");
    else if (result == -ENOSPC || result == -EDQUOT)
        tell(id, FAILURE, "no space is left");
    else if (result == -EEXIST)
        tell(id, FAILURE, "it exists already");
    else if (result == -ENOTEMPTY)
        tell(id, FAILURE, "the directory is not empty");
    else
        tell(id, FAILURE, "failure");
}

uint64_t take(struct rest *rest, size_t size) {
    uint64_t value = 0;
    if (rest->left < size) {
        rest->damaged = 1;
        return 0;
    }
    for (size_t at = 0; at < size; at++)
        value = value << 8 | *rest->at++;
    rest->left -= size;
    return value;
}

const unsigned char *take_string(struct rest *rest, size_t *size) {
    const unsigned char *text;
    *size = (size_t)take(rest, 4);
    if (rest->damaged || rest->left < *size) {
        rest->damaged = 1;
        *size = 0;
        return asked;
    }
    text = rest->at;
    rest->at += *size;
    rest->left -= *size;
    return text;
}

void take_path(struct rest *rest, char *path) {
    size_t size;
    const unsigned char *text = take_string(rest, &size);
    if (size >= LONGEST_PATH)
        rest->damaged = 1;
    for (size_t at = 0; at < size; at++)
        rest->damaged |= !text[at];
    size = rest->damaged ? 0 : size;
    copy(path, text, size);
    path[size] = 0;
    if (!size)
        copy(path, ".", 2);
}

struct attributes take_attributes(struct rest *rest) {
    struct attributes taken = {take(rest, 4), 0, 0, 0, 0, 0, 0};
    size_t size;
    if (taken.flags & HAS_SIZE)
        taken.size = take(rest, 8);
    if (taken.flags & HAS_OWNER) {
        taken.user = take(rest, 4);
        taken.group = take(rest, 4);
    }
    if (taken.flags & HAS_MODE)
        taken.mode = take(rest, 4);
    if (taken.flags & HAS_TIMES) {
        taken.read = take(rest, 4);
        taken.written = take(rest, 4);
    }
    if (taken.flags & HAS_MORE)
        for (uint64_t count = take(rest, 4); count && !rest->damaged; count--) {
            take_string(rest, &size);
            take_string(rest, &size);
        }
    return taken;
}

void put_attributes(const struct found *found) {
    put(HAS_SIZE | HAS_OWNER | HAS_MODE | HAS_TIMES, 4);
    put(found->size, 8);
    put(found->user, 4);
    put(found->group, 4);
    put(found->mode, 4);
    put((uint64_t)found->read.seconds & 0xFFFFFFFF, 4);
    put((uint64_t)found->written.seconds & 0xFFFFFFFF, 4);
}

static void add_two(char *text, unsigned long value) {
    if (value < 10)
        copy(text + length_of(text), "0", 2);
    add_number(text, value);
}

/* A moment as `2026-11-24 09:36`, in UTC; the date by Hinnant's days-to-civil. */
static void add_moment(char *text, int64_t seconds) {
    const uint64_t since = (uint64_t)(seconds < 0 ? 0 : seconds), days = since / 86400 + 719468, minutes = since % 86400 / 60;
    const uint64_t era = days / 146097, day_of_era = days % 146097;
    const uint64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    const uint64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const uint64_t shifted = (5 * day_of_year + 2) / 153, month = shifted < 10 ? shifted + 3 : shifted - 9;
    add_number(text, year_of_era + era * 400 + (month <= 2));
    copy(text + length_of(text), "-", 2);
    add_two(text, month);
    copy(text + length_of(text), "-", 2);
    add_two(text, day_of_year - (153 * shifted + 2) / 5 + 1);
    copy(text + length_of(text), " ", 2);
    add_two(text, minutes / 60);
    copy(text + length_of(text), ":", 2);
    add_two(text, minutes % 60);
}

void put_line(const char *name, const struct found *found) {
    static const char kinds[] = "?pc?d?b?-?l?s???", rights[] = "rwxrwxrwx";
    static char line[LONGEST_LINE_OF_FILE];
    const uint64_t numbers[] = {found->links, found->user, found->group, found->size};
    size_t at = 0;
    line[at++] = kinds[found->mode >> 12 & 15];
    for (int bit = 8; bit >= 0; bit--)
        line[at++] = found->mode >> bit & 1 ? rights[8 - bit] : '-';
    line[at] = 0;
    for (size_t each = 0; each < sizeof numbers / sizeof *numbers; each++) {
        copy(line + length_of(line), " ", 2);
        add_number(line, numbers[each]);
    }
    copy(line + length_of(line), " ", 2);
    add_moment(line, found->written.seconds);
    copy(line + length_of(line), " ", 2);
    copy(line + length_of(line), name, length_of(name) + 1); /* a name has 255 bytes at most */
    put_word(line);
}

unsigned char *space_behind(size_t size) {
    return answer + filled + size;
}

void use_space(size_t size) {
    filled += size;
}

size_t answer_size(void) {
    return filled;
}

void begin_counted(int kind, unsigned long id) {
    begin(kind, id);
    put(0, 4);
}

void send_entries(uint64_t count) {
    const size_t end = filled;
    filled = 9;
    put(count, 4);
    filled = end;
    send_answer();
}
