/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Multiply-adds that an SM completes per cycle. For 32 bits from the table "Throughput of Native
 * Arithmetic Instructions" of NVIDIA's programming guide, for matrices from the architectures'
 * whitepapers. A value that is not published, or differs between GPUs of one compute capability, is
 * not known.
 */
#include "timeline/analysis/peak.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "common/saturating.h"

static const struct {
	uint32_t major, minor;
	uint32_t single;   /* fused multiply-adds */
	uint32_t matrix16; /* likewise, of matrices; 0: not known */
} units[] = {
	{6, 0, 64, 0},	 {6, 1, 128, 0},    {7, 0, 64, 512}, /* P100; GP10x; V100 */
	{7, 5, 64, 0},	 {8, 0, 64, 1024},  {8, 6, 128, 0},  /* TU10x; A100; GA10x */
	{8, 9, 128, 0},	 {9, 0, 128, 2048}, {10, 0, 128, 0}, /* AD10x; H100; GB100 */
	{12, 0, 128, 0},				     /* GB20x */
};

struct peak peak_of(const struct gp_ev_device *d)
{
	double cycles = (double)d->sms * (double)d->clock_khz * 1000;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (units[i].major == d->major && units[i].minor == d->minor)
			return (struct peak){2 * units[i].single * cycles,
					     2 * units[i].matrix16 * cycles};
	return (struct peak){0};
}

/* Whether a device that several processes use is one GPU, or one of each machine, is not known. */
static struct peak peak_of_all(const struct tl_gpus *gpu)
{
	struct peak sum = {0};
	bool single = true, matrix16 = true;

	for (size_t i = 0; i < gpu->devices.nr; i++) {
		const struct tl_gpu_use *use = &gpu->devices.items[i];
		const struct tl_device *device = tl_gpus__device(gpu, use->process, use->device);
		const struct peak one = device ? peak_of(&device->reported) : (struct peak){0};

		single &= one.single > 0;
		matrix16 &= one.matrix16 > 0;
		sum.single += one.single;
		sum.matrix16 += one.matrix16;
		for (size_t j = 0; j < i; j++)
			single &= gpu->devices.items[j].device != use->device;
	}
	return (struct peak){single ? sum.single : 0, single && matrix16 ? sum.matrix16 : 0};
}

int gpu_flops_find(const struct timeline *t, struct gpu_flops *ret_flops)
{
	uint64_t captured_ns = t->end_ns - t->start_ns;
	bool *is_around = calloc(t->ops.nr + 1, sizeof(*is_around));
	struct gpu_flops f = {0};

	if (!is_around)
		return -ENOMEM;
	/* Children come after their parents. Each product counts at the innermost op that is
	 * known. */
	for (size_t i = t->ops.nr; i-- > 0;) {
		const struct tl_op_sums *sums = timeline__op_sums(t, i);
		uint32_t parent = t->ops.items[i].parent;

		if (sums->cuda_ns && !is_around[i])
			f.flops = add_saturating(f.flops, sums->all_flops);
		if (sums->all_flops && parent != TL_NONE)
			is_around[parent] = true;
	}
	free(is_around);
	captured_ns -= t->paused_ns < captured_ns ? t->paused_ns : captured_ns;
	if (captured_ns)
		f.per_s = (double)f.flops / (double)captured_ns * 1e9;
	f.peak = peak_of_all(&t->gpu);
	*ret_flops = f;
	return 0;
}
