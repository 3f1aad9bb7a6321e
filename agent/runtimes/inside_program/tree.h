/* What SFTP has no requests for: whole trees in a few answers, and hashes of files. docs/door.md has their bytes. */

#ifndef MUSTER_TREE_H
#define MUSTER_TREE_H

#include "sftp.h"

struct tree;

/* A list of what is at a path, with all that is below where that is wanted; or 0, and -ERRNO as the result. */
struct tree *open_tree(const char *path, int deep, long *result);
/* Answers with the next entries, or that there are no more. */
void tell_entries(unsigned long id, struct tree *tree);
void close_tree(struct tree *tree);

/* Answers with the hash of a part of a file; a length of 0 goes to the end. */
void tell_hash(unsigned long id, const char *path, uint64_t offset, uint64_t length);

#endif
