/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The process's mappings at one moment, sorted by address.
 */
#ifndef GP_INJECT_MEMORY_MAP_H
#define GP_INJECT_MEMORY_MAP_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mapping {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	dev_t device;
	ino_t inode; /* 0: no file */
	bool readable, writable, executable, private;
	bool grows;    /* the main thread's stack */
	char name[64]; /* what follows the last '/', cut to fit */
};

struct memory_map {
	VEC(struct mapping) maps;
};

/* Reads /proc/PID/maps. 0 or -errno. The caller calls memory_map__done() in any case. */
int memory_map__read(pid_t pid, struct memory_map *ret_map);
void memory_map__done(struct memory_map *m);

/* Returns the mapping that contains an address, or NULL. */
const struct mapping *memory_map__find(const struct memory_map *m, uint64_t address);

#endif /* GP_INJECT_MEMORY_MAP_H */
