/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * See flops_text.h.
 */
#include "output/format/flops_text.h"

static void of_peak(struct buf *out, const struct gpu_flops *gpu, double peak, const char *what)
{
	if (peak > 0)
		buf__printf(out, ", %.2f %% of the peak of %.1f TFLOP/s %s",
			    100 * gpu->per_s / peak, peak / 1e12, what);
}

void flops_text_gpu(struct buf *out, const struct gpu_flops *gpu)
{
	if (!gpu->flops || gpu->per_s <= 0)
		return;
	buf__printf(out, "GPU: %.3f TFLOP/s over the capture", gpu->per_s / 1e12);
	of_peak(out, gpu, gpu->peak.single, "in 32 bits without matrix units");
	of_peak(out, gpu, gpu->peak.matrix16, "of dense matrices in 16 bits");
	buf__char(out, '\n');
}
