/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Binding to PyTorch at run time, on the collector's thread only. The mangled names fix the types
 * of the functions. What they do not fix, the layouts of RecordFunctionCallback and RecordFunction,
 * is verified before the first real op.
 */
#include "collector/torch/torch.h"

#include "collector/runtime/compat.h"
#include "collector/runtime/fork_guard.h"
#include "collector/runtime/libraries.h"
#include "collector/runtime/symbol.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>

/* at::RecordScope::CUSTOM_CLASS: besides ours, only callbacks for all scopes see our record. */
#define VERIFY_SCOPE	4
#define VERIFY_NAME	"gpuprof.verify"
#define VERIFY_SEQUENCE 0x5a17c0de600dbeefLL
#define RECORD_BYTES	4096 /* more than any RecordFunction */
#define MEMBERS_BYTES	1024 /* the members searched lie below this */

/* std::variant<std::string_view, std::reference_wrapper<const FunctionSchema>> in libstdc++. */
struct name_variant {
	size_t bytes;
	const char *text;
	uint64_t index;
};

/* Used for the verification only. */
struct record_api {
	void (*construct)(void *record, uint8_t scope);
	void (*destroy)(void *record);
	void (*before_text)(void *record, const char *name, int64_t sequence_nr);
	void (*before_variant)(void *record, struct name_variant name, int64_t sequence_nr);
	void (*end)(void *record);
	void (*set_async)(void *record);
};

static struct {
	union {
		unsigned char bytes[RECORD_BYTES];
		uint64_t words[RECORD_BYTES / 8];
	} record __attribute__((aligned(64)));
	const struct torch_api *api;
	unsigned starts, ends;
	bool name_equal;
	size_t sequence_offset;
	unsigned sequences_nr;
} verify;

#ifdef __x86_64__
static void *verify_start(void **ret_context, const void *record)
{
	const char *name;

	*ret_context = NULL;
	if (record != verify.record.bytes)
		return ret_context;
	verify.starts++;
	name = verify.api->record_name(record);
	verify.name_equal = name && !strcmp(name, VERIFY_NAME);
	for (size_t at = 0; at < MEMBERS_BYTES; at += 8) {
		if (verify.record.words[at / 8] != (uint64_t)VERIFY_SEQUENCE)
			continue;
		verify.sequence_offset = at;
		verify.sequences_nr++;
	}
	return ret_context;
}

static void verify_end(const void *record, void *context)
{
	if (record == verify.record.bytes && !context)
		verify.ends++;
}

/*
 * Finds is_async_ by setting it, and so its neighbours: uint64 fwd_thread_id_, uint64 handle_, bool
 * is_async_, int64 debug_handle_ (-1). The handle is not zero, because we asked for ids; the thread
 * is, because nobody has set it.
 */
static bool find_forward_thread(const struct record_api *r, size_t *ret_offset)
{
	static unsigned char before[MEMBERS_BYTES];
	size_t changed = 0, nr = 0;

	memcpy(before, verify.record.bytes, sizeof(before));
	r->set_async(verify.record.bytes);
	for (size_t at = 0; at < MEMBERS_BYTES; at++) {
		if (before[at] == verify.record.bytes[at])
			continue;
		changed = at;
		nr++;
	}
	if (nr != 1 || changed % 8 || changed < 16 || changed + 16 > MEMBERS_BYTES ||
	    before[changed] != 0 || verify.record.bytes[changed] != 1)
		return false;
	if (verify.record.words[changed / 8 - 2] != 0 ||
	    verify.record.words[changed / 8 - 1] == 0 ||
	    verify.record.words[changed / 8 + 1] != UINT64_MAX)
		return false;
	*ret_offset = changed - 16;
	return true;
}

static const char *verify_layout(struct torch_api *t, const struct record_api *r)
{
	struct torch_callback callback = {
		.start = verify_start,
		.end = verify_end,
		.probability = 1.0,
		.needs_ids = 1,
	};
	struct name_variant name = {sizeof(VERIFY_NAME) - 1, VERIFY_NAME, 0};
	size_t forward_offset = 0;
	bool forward_found;
	uint64_t handle;

	memset(&verify, 0, sizeof(verify));
	verify.api = t;
	callback.scopes[VERIFY_SCOPE] = 1;
	handle = torch_api__add(t, callback);
	r->construct(verify.record.bytes, VERIFY_SCOPE);
	if (r->before_text)
		r->before_text(verify.record.bytes, VERIFY_NAME, VERIFY_SEQUENCE);
	else
		r->before_variant(verify.record.bytes, name, VERIFY_SEQUENCE);
	forward_found = find_forward_thread(r, &forward_offset);
	r->end(verify.record.bytes);
	r->destroy(verify.record.bytes);
	torch_api__remove(t, handle);

	if (verify.starts != 1 || verify.ends != 1)
		return "operator callbacks: PyTorch did not call a test callback as expected";
	if (!verify.name_equal)
		return "operator callbacks: PyTorch gave a test record another name";
	if (verify.sequences_nr != 1)
		return "operator callbacks: sequence number not found in a test record";
	if (!forward_found)
		return "operator callbacks: forward thread not found in a test record";
	t->sequence_offset = verify.sequence_offset;
	t->forward_thread_offset = forward_offset;
	return NULL;
}
#else
static const char *verify_layout(struct torch_api *t, const struct record_api *r)
{
	return "operator callbacks: not built for this processor yet";
}
#endif

struct found {
	char path[PATH_MAX];
};

static int find_library(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	static const char prefix[] = "libtorch_cpu.so";
	struct found *found = arg;
	const char *path = info->dlpi_name;
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (!slash || strncmp(slash + 1, prefix, sizeof(prefix) - 1) ||
	    strlen(path) >= sizeof(found->path))
		return 0;
	memcpy(found->path, path, strlen(path) + 1);
	return 1;
}

static bool find_api(struct torch_api *t)
{
	void *l = t->library;

	return symbol_find(l, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE",
			   &t->add_global_callback) &&
	       symbol_find(l, "_ZN2at14removeCallbackEm", &t->remove_callback) &&
	       symbol_find(l, "_ZNK2at14RecordFunction4nameEv", &t->record_name) &&
	       symbol_find(l, "_ZN2at14RecordFunction15currentThreadIdEv", &t->current_thread);
}

static bool find_record(void *l, struct record_api *r)
{
	void *marker;

	(void)symbol_find(l, "_ZN2at14RecordFunction6beforeEPKcl", &r->before_text);
	/* 2.14 */
	(void)symbol_find(
		l,
		"_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_"
		"traitsIcEESt17reference_wrapperIKN3c1014FunctionSchemaEEEEl",
		&r->before_variant);
	/* StepCallbacks shows that callbacks may be added and removed while ops run: PyTorch 1.12.
	 */
	return (r->before_text || r->before_variant) &&
	       symbol_find(l, "_ZN2at14RecordFunctionC1EONS_13StepCallbacksE", &marker) &&
	       symbol_find(l, "_ZN2at14RecordFunctionC1ENS_11RecordScopeE", &r->construct) &&
	       symbol_find(l, "_ZN2at14RecordFunctionD1Ev", &r->destroy) &&
	       symbol_find(l, "_ZN2at14RecordFunction3endEv", &r->end) &&
	       symbol_find(l, "_ZN2at14RecordFunction9_setAsyncEv", &r->set_async);
}

enum torch_result torch_api__bind(struct torch_api *t, const char **why_text)
{
	static struct found found;
	struct record_api record = {0};

	found.path[0] = '\0';
	*why_text = "operator callbacks: no libtorch_cpu in this process";
	if (!libraries__each(find_library, &found))
		return TORCH_ABSENT;
	/* Waits until a thread that is loading it now has finished. */
	t->library = dlopen(found.path, RTLD_LAZY | RTLD_NOLOAD);
	if (!t->library)
		return TORCH_ABSENT;
	*why_text = "operator callbacks: this PyTorch does not export what they need";
	if (!find_api(t) || !find_record(t->library, &record))
		goto refuse;
	fork_guard__hold(); /* Making a record reads the list. */
	*why_text = t->verified ? NULL : verify_layout(t, &record);
	fork_guard__release();
	if (*why_text)
		goto refuse;
	t->verified = true;
	return TORCH_BOUND;
refuse:
	torch_api__release(t);
	return TORCH_REFUSED;
}

uint64_t torch_api__add(const struct torch_api *t, struct torch_callback callback)
{
	uint64_t handle;

	fork_guard__hold();
	handle = t->add_global_callback(callback);
	fork_guard__release();
	return handle;
}

void torch_api__remove(const struct torch_api *t, uint64_t handle)
{
	fork_guard__hold();
	t->remove_callback(handle);
	fork_guard__release();
}

void torch_api__release(struct torch_api *t)
{
	if (t->library)
		(void)dlclose(t->library);
	t->library = NULL;
}
