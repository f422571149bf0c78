/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Bans functions that take no bound or return one shared static result.
 */
#ifndef GP_BASE_BANNED_H
#define GP_BASE_BANNED_H

#include <stdio.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat sprintf vsprintf strncpy strtok gmtime ctime asctime

#endif /* GP_BASE_BANNED_H */
