/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The version of gpuprof. The archive of the rooms holds the release alone; the `gpuprof` that
 * `make` builds is linked with the commit's version, so that a new commit rebuilds one file only.
 */
#ifndef GP_BASE_VERSION_H
#define GP_BASE_VERSION_H

extern const char gpuprof_version[];

#endif /* GP_BASE_VERSION_H */
