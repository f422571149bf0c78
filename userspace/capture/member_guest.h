/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The collector of one process of a capture: when it is put in, what is asked of it and what
 * becomes of it. Logs what is not to be had, and why.
 */
#ifndef GP_CAPTURE_MEMBER_GUEST_H
#define GP_CAPTURE_MEMBER_GUEST_H

#include "capture/private.h"

/* Whether CUDA is mapped in the process. */
bool member_has_cuda(const struct member *m);

/* Whether there is a collector and one of `features` (enum gp_feature bits) is in force. */
bool member_guest_tells(const struct member *m, uint32_t features);

/* All that it may be put in for. */
#define MEMBER_GUEST_ALL                                                                           \
	(GP_FEATURE_OPS | GP_FEATURE_SHAPES | GP_FEATURE_TENSORS | GP_FEATURE_STACKS |             \
	 GP_FEATURE_MODULES | GP_FEATURE_CALLS | GP_FEATURE_MEMORY | GP_FEATURE_CUPTI)

/* Puts it in for those of `features` that the capture's options want and the libraries in the
 * process allow. m->guest is NULL afterwards if there are none, or it could not be put in. */
void member_guest_put_in(struct capture *c, struct member *m, uint32_t features);

/* Stops it, takes its last events and frees it. `gone`: what it was in is no more. */
void member_guest_drop(struct capture *c, struct member *m, bool gone);

/* Takes in one that CUDA has loaded; where one has left, or takes no stacks any more, puts probes
 * in its place. */
void member_guest_watch(struct capture *c, struct member *m);

/* Libraries have come into the process: CUDA, perhaps, or where there are no probes PyTorch. */
void member_guest_follow_libraries(struct capture *c, struct member *m);

/* Whether there are no probes and the collector, which there should be in their place, could not be
 * put in: with a reason. */
bool member_guest_was_all(const struct capture *c, const struct member *m, struct reason *why);

/* How long its libraries need not be looked at again. */
uint64_t member_guest_patience_ns(const struct capture *c, const struct member *m);

/* CUPTI tells of calls now that uprobes told of, or no longer: probes are taken away or put back.
 * While it is not asked to, or has not answered yet, all stays as it is. Needs m->guest. */
void member_guest_follow_cupti(struct capture *c, struct member *m);

/* The collector tells of no allocations any more, as something else is in its way: by uprobes from
 * here on. Needs m->guest. */
void member_guest_follow_memory(struct capture *c, struct member *m);

/* The program, which was to bring its collector along, has ended or become another. */
void member_guest_tell_missing(struct capture *c, const struct member *m);

/* The same for a recording that ends, of a program that goes on; does not log. */
void member_guest_note_missing(struct capture *c, const struct member *m);

#endif /* GP_CAPTURE_MEMBER_GUEST_H */
