/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Used by one thread at a time (cupti_gate.h). Loaded libraries are found by name in the loader's
 * list; a new one is loaded by its full path, beside the CUDA runtime that is mapped. It is never
 * unloaded: the driver may keep addresses in it for as long as it lives, even after
 * cuptiFinalize().
 */
#include "collector/cupti/cupti_library.h"

#include "collector/runtime/compat.h"
#include "collector/runtime/libraries.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>

#define CUDA_11_MINORS 8

/* Paths among the libraries that are loaded now; empty: none. */
static struct {
	char cupti[PATH_MAX];
	char runtime[PATH_MAX];
} seen;

static bool name_begins(const char *path, const char *begin)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, begin, strlen(begin));
}

static void keep(char *to, const char *path)
{
	size_t bytes = strlen(path);

	if (!to[0] && bytes < PATH_MAX)
		memcpy(to, path, bytes + 1);
}

static int note_library(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	if (!info->dlpi_name)
		return 0;
	if (name_begins(info->dlpi_name, "libcupti.so"))
		keep(seen.cupti, info->dlpi_name);
	if (name_begins(info->dlpi_name, "libcudart.so"))
		keep(seen.runtime, info->dlpi_name);
	return 0;
}

static void find_loaded(void)
{
	memset(&seen, 0, sizeof(seen));
	(void)libraries__each(note_library, NULL);
}

/* The text after "libcudart.so.", up to the next dot. */
static size_t major_of(const char *runtime, const char **ret_major)
{
	const char *slash = strrchr(runtime, '/');
	const char *at = (slash ? slash + 1 : runtime) + strlen("libcudart.so");

	if (*at == '.')
		at++;
	*ret_major = at;
	return strcspn(at, ".");
}

/* Opens folder + between + "libcupti.so." + major [+ minor]; NULL if that does not exist. */
static void *try(const char *folder, size_t folder_bytes, const char *between, const char *major,
		 size_t major_bytes, const char *minor)
{
	static const char stem[] = "libcupti.so.";
	char path[PATH_MAX];
	size_t at = 0;
	const struct {
		const char *text;
		size_t bytes;
	} parts[] = {{folder, folder_bytes},
		     {between, strlen(between)},
		     {stem, sizeof(stem) - 1},
		     {major, major_bytes},
		     {minor, strlen(minor)}};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (at + parts[i].bytes >= sizeof(path))
			return NULL;
		memcpy(path + at, parts[i].text, parts[i].bytes);
		at += parts[i].bytes;
	}
	path[at] = '\0';
	return dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
}

/* The same with CUDA 11's minor versions, which are part of that CUPTI's name. */
static void *try_folder(const char *folder, size_t bytes, const char *between, const char *major,
			size_t major_bytes)
{
	void *handle = try(folder, bytes, between, major, major_bytes, "");
	char minor[] = ".0";

	if (handle || major_bytes != 2 || memcmp(major, "11", 2))
		return handle;
	for (int i = CUDA_11_MINORS; i >= 0 && !handle; i--) {
		minor[1] = (char)('0' + i);
		handle = try(folder, bytes, between, major, major_bytes, minor);
	}
	return handle;
}

/* Toolkits have CUPTI in lib64 or extras/CUPTI, Python wheels in a package of its own. */
static void *open_beside(const char *runtime)
{
	static const char *const betweens[] = {"", "../extras/CUPTI/lib64/",
					       "../../cuda_cupti/lib/",
					       "../../../extras/CUPTI/lib64/"};
	const char *slash = strrchr(runtime, '/');
	size_t folder_bytes = slash ? (size_t)(slash - runtime) + 1 : 0;
	const char *major;
	size_t major_bytes = major_of(runtime, &major);
	void *handle = NULL;

	for (size_t i = 0; i < sizeof(betweens) / sizeof(betweens[0]) && !handle; i++)
		handle = try_folder(runtime, folder_bytes, betweens[i], major, major_bytes);
	return handle;
}

/* The function that returns the driver's CUDA version (13000: 13.0); NULL: there is no driver. */
static int (*find_driver_version(void))(int *ret_version)
{
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	int (*get_version)(int *ret_version) = NULL;

	if (!driver)
		return NULL;
	*(void **)&get_version = dlsym(driver, "cuDriverGetVersion");
	(void)dlclose(driver);
	return get_version;
}

static uint32_t ask_version(int (*get_version)(int *ret_version))
{
	int version = 0;

	return get_version && !get_version(&version) && version > 0 ? (uint32_t)version : 0;
}

uint32_t cupti_library__driver_version(void)
{
	return ask_version(find_driver_version());
}

/* Whether the runtime may be asked. The one of CUDA 11 would initialize CUDA. */
static bool runtime_may_be_asked(void)
{
	const char *major;
	size_t bytes;

	if (!seen.runtime[0])
		return false;
	bytes = major_of(seen.runtime, &major);
	return bytes == 2 && memcmp(major, "11", 2) != 0;
}

uint32_t cupti_library__runtime_version(void)
{
	int (*get_version)(int *ret_version) = NULL;
	void *runtime = NULL;
	uint32_t version;

	find_loaded();
	if (runtime_may_be_asked())
		runtime = dlopen(seen.runtime, RTLD_LAZY | RTLD_NOLOAD);
	if (!runtime)
		return 0;
	*(void **)&get_version = dlsym(runtime, "cudaRuntimeGetVersion");
	version = ask_version(get_version);
	(void)dlclose(runtime);
	return version;
}

/* Opens the CUPTI of the driver's CUDA version, or of an older one, from the loader's search path:
 * for a program that has the runtime linked in. */
static void *open_for_driver(void)
{
	void *handle = NULL;
	char major[] = "11";

	for (int m = (int)(cupti_library__driver_version() / 1000); m >= 11 && m < 14 && !handle;
	     m--) {
		major[1] = (char)('0' + m - 10);
		handle = try_folder("", 0, "", major, 2);
	}
	return handle;
}

static bool get_functions(void *handle, struct cupti_functions *ret_functions)
{
	bool all = true;

#define NEEDED(name)                                                                               \
	do {                                                                                       \
		*(void **)&ret_functions->name = dlsym(handle, #name);                             \
		all = all && ret_functions->name;                                                  \
	} while (0)
	NEEDED(cuptiGetVersion);
	NEEDED(cuptiGetTimestamp);
	NEEDED(cuptiSubscribe);
	NEEDED(cuptiUnsubscribe);
	NEEDED(cuptiEnableDomain);
	NEEDED(cuptiActivityRegisterCallbacks);
	NEEDED(cuptiActivityEnable);
	NEEDED(cuptiActivityDisable);
	NEEDED(cuptiActivityFlushAll);
	NEEDED(cuptiActivityGetNextRecord);
	NEEDED(cuptiActivityGetNumDroppedRecords);
	NEEDED(cuptiGetCallbackName);
	NEEDED(cuptiGetResultString);
	NEEDED(cuptiGetThreadIdType);
	NEEDED(cuptiSetThreadIdType);
	NEEDED(cuptiFinalize);
#undef NEEDED
	*(void **)&ret_functions->cuptiActivityEnableRuntimeApi =
		dlsym(handle, "cuptiActivityEnableRuntimeApi");
	*(void **)&ret_functions->cuptiActivityEnableDriverApi =
		dlsym(handle, "cuptiActivityEnableDriverApi");
	*(void **)&ret_functions->cuptiActivityEnableCudaEventDeviceTimestamps =
		dlsym(handle, "cuptiActivityEnableCudaEventDeviceTimestamps");
	return all;
}

/* Whether the process has initialized CUDA. We must not be the first: once CUDA is initialized in a
 * parent process, its children cannot use it. */
static bool cuda_in_use(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	int (*count)(int *ret_nr) = NULL;
	int nr = 0;
	bool ready;

	if (!driver)
		return false;
	*(void **)&count = dlsym(driver, "cuDeviceGetCount");
	ready = count && !count(&nr) && nr > 0;
	(void)dlclose(driver);
	return ready;
}

static void *find(bool starting, const char **why_text)
{
	void *handle;

	*why_text = "gpu activity: CUDA is not in use in the process yet";
	if (!starting && !cuda_in_use())
		return NULL;

	*why_text = "gpu activity: CUPTI cannot be loaded though the process has it";
	if (seen.cupti[0])
		return dlopen(seen.cupti, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	*why_text = "gpu activity: no libcupti beside the process's CUDA; install it (the CUDA "
		    "toolkit or the wheel nvidia-cuda-cupti has it)";
	handle = seen.runtime[0] ? open_beside(seen.runtime) : NULL;
	return handle ? handle : open_for_driver();
}

/* Whether the driver exports the table of functions that each CUPTI since 11.8 asks for first. */
static bool driver_serves_cupti(void)
{
	static const unsigned char id[16] = {0x7c, 0xb6, 0x3f, 0x9b, 0x9c, 0xa4, 0x8e, 0x42,
					     0xa4, 0x84, 0xbe, 0xb6, 0x6e, 0x6a, 0xed, 0x7f};
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	int (*get_table)(const void **ret_table, const void *id) = NULL;
	const void *table = NULL;
	bool serves;

	if (!driver)
		return false;
	*(void **)&get_table = dlsym(driver, "cuGetExportTable");
	serves = get_table && !get_table(&table, id) && table;
	(void)dlclose(driver);
	return serves;
}

/* Whether it is the CUPTI of CUDA 13.2, the first that exports one function and the last without
 * the other, and cannot initialize with this driver. Then each of its functions calls itself until
 * the stack overflows, even cuptiGetVersion(). */
static bool may_recurse(void *handle)
{
	return dlsym(handle, "cuptiActivityGetStructSize") &&
	       !dlsym(handle, "cuptiActivityGetNextRecord_v2") && !driver_serves_cupti();
}

static const char *why_strange(struct cupti_library *l)
{
	if (may_recurse(l->handle))
		return "gpu activity: the CUPTI of CUDA 13.2 crashes a process in which it cannot "
		       "initialize, and this driver lacks what it needs; update the driver or "
		       "CUPTI (nvidia-cuda-cupti)";
	if (!get_functions(l->handle, &l->call))
		return "gpu activity: the process's libcupti lacks functions that CUDA 11 to 13 "
		       "have";
	if (l->call.cuptiGetVersion(&l->version))
		return "gpu activity: the process's libcupti cannot initialize; compare its CUDA "
		       "with the driver's, which nvidia-smi shows";
	if (l->version < CUPTI_VERSION_11_0 || l->version >= CUPTI_VERSION_14_0)
		return "gpu activity: the process's libcupti is not of CUDA 11 to 13";
	return NULL;
}

enum cupti_found cupti_library__bind(struct cupti_library *l, bool starting, const char **why_text)
{
	*l = (struct cupti_library){0};
	find_loaded();
	l->handle = find(starting, why_text);
	if (!l->handle)
		return CUPTI_ABSENT;
	l->driver_version = find_driver_version();
	*why_text = why_strange(l);
	if (!*why_text)
		return CUPTI_FOUND;
	cupti_library__release(l);
	return CUPTI_STRANGE;
}

const char *cupti_library__danger(const struct cupti_library *l, bool from_start)
{
	if (l->version < CUPTI_VERSION_12_2 && !from_start)
		return "gpu activity: the CUPTI of CUDA before 12.2 may crash a process that runs "
		       "CUDA graphs captured before it came; start the process with gpuprof run, "
		       "or attach with --any-cupti if it has no graphs";
	if (l->version == CUPTI_VERSION_13_0)
		return "gpu activity: the first CUPTI of CUDA 13.0 may hang the process when it is "
		       "given back; update it (nvidia-cuda-cupti), or use it anyway with "
		       "--any-cupti";
	return NULL;
}

void cupti_library__release(struct cupti_library *l)
{
	if (l->handle)
		(void)dlclose(l->handle);
	*l = (struct cupti_library){0};
}

static int note_cupti_user(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	static const struct {
		const char *begin, *who;
	} users[] = {
		{"libToolsInjection", "Nsight Systems"},
		{"libcuda-injection", "Nsight Compute"},
		{"libcuinj", "nvprof"},
		{"libtorch_cpu.so", "torch.profiler (which keeps it once it was used) or another "
				    "profiler"},
	};
	const char **who = arg;

	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++)
		if (info->dlpi_name && name_begins(info->dlpi_name, users[i].begin) &&
		    (!*who || i + 1 < sizeof(users) / sizeof(users[0])))
			*who = users[i].who;
	return 0;
}

const char *cupti_library__other_user(void)
{
	const char *who = NULL;

	(void)libraries__each(note_cupti_user, &who);
	return who ? who : "another profiler";
}
