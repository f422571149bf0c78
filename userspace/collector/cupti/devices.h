/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The GPUs of the process as its driver describes them, and its CUDA versions.
 */
#ifndef GP_COLLECTOR_CUPTI_DEVICES_H
#define GP_COLLECTOR_CUPTI_DEVICES_H

#include "collector/cupti/cupti_library.h"
#include "collector/runtime/ring_writer.h"

#include <stdbool.h>

/* Writes one GP_EV_DEVICE for each GPU. False: CUDA is not ready yet, and nothing was written. */
bool devices__emit(struct ring_writer *w, const struct cupti_library *cupti);

#endif /* GP_COLLECTOR_CUPTI_DEVICES_H */
