/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Gets GPU times for `run`: the program's environment has CUDA load the collector as it
 * initializes.
 */
#ifndef GP_CLI_RECORD_RUN_GPU_H
#define GP_CLI_RECORD_RUN_GPU_H

#include "base/reason.h"

#include <stdbool.h>

/* The path of the collector for the command to be run, to be freed, or NULL with a reason: CUDA
 * would not load it, or it cannot be written. cache_dir may be NULL. */
char *run_gpu_library(const char *command, const char *cache_dir, struct reason *why);

/* In the child, before exec: changes its environment so that CUDA loads the library, and with
 * `children` so that it does in what the child starts, too; `nvtx`: NVTX loads it as well. */
void run_gpu_invite(const char *library, bool children, bool nvtx);

#endif /* GP_CLI_RECORD_RUN_GPU_H */
