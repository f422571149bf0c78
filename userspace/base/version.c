/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GPUPROF_VERSION is given by the makefile.
 */
#include "base/version.h"

const char gpuprof_version[] = GPUPROF_VERSION;
