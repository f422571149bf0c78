/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Completes command lines: `gpuprof __complete WORD...` prints what share/gpuprof.bash offers.
 */
#ifndef GP_CLI_CORE_COMPLETE_H
#define GP_CLI_CORE_COMPLETE_H

/* Completes the last of words[0..nr), those after `gpuprof`; it may be empty and ends at the
 * cursor. "=" may be a word of its own, as bash splits. Prints one candidate a line; a line
 * ":files" or ":commands" asks the shell to offer those itself. Returns CLI_DONE. */
int complete_print(int nr, char **words);

#endif /* GP_CLI_CORE_COMPLETE_H */
