/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Only queries that need no CUDA context, so that none is created. The numbers of the attributes
 * are those of CUdevice_attribute, which never change.
 */
#include "collector/cupti/devices.h"

#include "collector/runtime/compat.h"
#include "common/clock.h"

#include <dlfcn.h>
#include <stddef.h>

#define DEVICES_MAX 64

struct driver {
	int (*cuDeviceGetCount)(int *ret_nr);
	int (*cuDeviceGet)(int *ret_device, int ordinal);
	int (*cuDeviceGetName)(char *ret_name, int bytes, int device);
	int (*cuDeviceTotalMem)(size_t *ret_bytes, int device);
	int (*cuDeviceGetAttribute)(int *ret_value, int attribute, int device);
};

static const struct {
	int attribute;
	size_t at; /* in gp_ev_device */
} attributes[] = {
	{75, offsetof(struct gp_ev_device, major)},
	{76, offsetof(struct gp_ev_device, minor)},
	{1, offsetof(struct gp_ev_device, threads_per_block)},
	{39, offsetof(struct gp_ev_device, threads_per_sm)},
	{12, offsetof(struct gp_ev_device, registers_per_block)},
	{82, offsetof(struct gp_ev_device, registers_per_sm)},
	{10, offsetof(struct gp_ev_device, warp_threads)},
	{8, offsetof(struct gp_ev_device, shared_per_block)},
	{97, offsetof(struct gp_ev_device, shared_per_block_optin)},
	{81, offsetof(struct gp_ev_device, shared_per_sm)},
	{111, offsetof(struct gp_ev_device, shared_reserved)},
	{16, offsetof(struct gp_ev_device, sms)},
	{106, offsetof(struct gp_ev_device, blocks_per_sm)},
	{13, offsetof(struct gp_ev_device, clock_khz)},
};

static bool bind(void *handle, struct driver *d)
{
	*(void **)&d->cuDeviceGetCount = dlsym(handle, "cuDeviceGetCount");
	*(void **)&d->cuDeviceGet = dlsym(handle, "cuDeviceGet");
	*(void **)&d->cuDeviceGetName = dlsym(handle, "cuDeviceGetName");
	*(void **)&d->cuDeviceTotalMem = dlsym(handle, "cuDeviceTotalMem_v2");
	*(void **)&d->cuDeviceGetAttribute = dlsym(handle, "cuDeviceGetAttribute");
	return d->cuDeviceGetCount && d->cuDeviceGet && d->cuDeviceGetName && d->cuDeviceTotalMem &&
	       d->cuDeviceGetAttribute;
}

static void emit_one(struct ring_writer *w, const struct driver *d, int ordinal,
		     const struct gp_ev_device *versions)
{
	struct gp_ev_device ev = *versions;
	size_t bytes = 0;
	int device;

	if (d->cuDeviceGet(&device, ordinal))
		return;
	ev.head.time_ns = clock_now_ns();
	ev.device = (uint32_t)ordinal;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		int value = 0;

		if (!d->cuDeviceGetAttribute(&value, attributes[i].attribute, device) && value > 0)
			*(__u32 *)((char *)&ev + attributes[i].at) = (__u32)value;
	}
	if (!d->cuDeviceTotalMem(&bytes, device))
		ev.memory_bytes = bytes;
	if (d->cuDeviceGetName(ev.name, sizeof(ev.name), device))
		ev.name[0] = '\0';
	(void)ring_writer__write(w, &ev, sizeof(ev));
}

bool devices__emit(struct ring_writer *w, const struct cupti_library *cupti)
{
	struct gp_ev_device versions = {.head.kind = GP_EV_DEVICE};
	void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	struct driver d;
	int nr = 0;

	if (!handle)
		return false;
	if (!bind(handle, &d) || d.cuDeviceGetCount(&nr))
		nr = 0;
	if (nr) {
		versions.driver_version = cupti_library__driver_version();
		versions.runtime_version = cupti_library__runtime_version();
		versions.cupti_version = cupti->version;
	}
	for (int i = 0; i < nr && i < DEVICES_MAX; i++)
		emit_one(w, &d, i, &versions);
	(void)dlclose(handle);
	return nr > 0;
}
