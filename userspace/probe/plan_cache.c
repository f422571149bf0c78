/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The cache file: a header, the functions, the sites, then the texts, each ended by a zero and
 * named by its place. Everything read is checked before it is used; sites only say which
 * instructions of code that the fingerprint covers carry a probe.
 */
#include "probe/plan_cache.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/intern.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define CACHE_MAGIC	0x6e616c7070727067ULL
#define CACHE_VERSION	7 /* of the file and of the planner: plans change with either */
#define CACHE_BYTES_MAX (64 << 20)

struct cache_head {
	uint64_t magic;
	uint32_t version;
	uint32_t functions_nr;
	uint32_t sites_nr;
	uint32_t texts_bytes;
	uint64_t fingerprint;
	uint64_t calls;
	uint64_t checksum; /* of everything after the header */
};

struct cache_function {
	uint32_t symbol, name, overload, why; /* places in the texts */
	uint8_t kind, placed, named, layout;
	uint32_t code_bytes;
	uint64_t code_offset;
};

struct cache_site {
	uint64_t offset;
	uint32_t function;
	int16_t sp_delta;
	uint8_t is_exit, emulated;
};

static bool valid_id(const char *id)
{
	return *id && strspn(id, "0123456789abcdef") == strlen(id);
}

static int cache_path(const struct probe_plan *plan, const char *dir, char *path, size_t bytes)
{
	if (!valid_id(plan->id) || snprintf(path, bytes, "%s/%s.plan", dir, plan->id) >= (int)bytes)
		return -EINVAL;
	return 0;
}

/* The text at a place, as the plan's own, or NULL. */
static const char *get_text(struct probe_plan *plan, const char *texts, uint32_t nr, uint32_t at)
{
	if (at >= nr)
		return NULL;
	return intern__str(plan->texts, texts + at);
}

static int load_function(struct probe_plan *plan, const struct cache_function *f, const char *texts,
			 uint32_t texts_nr)
{
	struct probe_function fn = {.kind = f->kind,
				    .placed = f->placed,
				    .named = f->named,
				    .code_bytes = f->code_bytes,
				    .code_offset = f->code_offset,
				    .layout = f->layout,
				    .symbol = get_text(plan, texts, texts_nr, f->symbol),
				    .name = get_text(plan, texts, texts_nr, f->name),
				    .overload = get_text(plan, texts, texts_nr, f->overload),
				    .why = get_text(plan, texts, texts_nr, f->why)};

	if (!fn.symbol || !fn.name || !fn.overload || !fn.why || fn.kind < PROBE_OP ||
	    fn.kind > PROBE_KIND_LAST || fn.placed > 1 || fn.named > PROBE_NAMED_SYMBOL)
		return -ENOENT;
	return vec_push(&plan->functions, fn);
}

static int load_site(struct probe_plan *plan, const struct cache_site *s)
{
	struct probe_site site = {.offset = s->offset,
				  .function = s->function,
				  .sp_delta = s->sp_delta,
				  .is_exit = s->is_exit,
				  .emulated = s->emulated};

	if (site.function >= plan->functions.nr || site.is_exit > 1 || site.emulated > 1 ||
	    site.sp_delta < 0)
		return -ENOENT;
	return vec_push(&plan->sites, site);
}

static int load_body(struct probe_plan *plan, const struct cache_head *head, const char *body)
{
	const char *sites = body + (size_t)head->functions_nr * sizeof(struct cache_function);
	const char *texts = sites + (size_t)head->sites_nr * sizeof(struct cache_site);
	int err = head->texts_bytes && !texts[head->texts_bytes - 1] ? 0 : -ENOENT;

	for (uint32_t i = 0; i < head->functions_nr && !err; i++) {
		struct cache_function f;

		memcpy(&f, body + i * sizeof(f), sizeof(f));
		err = load_function(plan, &f, texts, head->texts_bytes);
	}
	for (uint32_t i = 0; i < head->sites_nr && !err; i++) {
		struct cache_site s;

		memcpy(&s, sites + i * sizeof(s), sizeof(s));
		err = load_site(plan, &s);
	}
	if (err) {
		vec_done(&plan->functions);
		vec_done(&plan->sites);
	}
	return err;
}

int plan_cache_load(struct probe_plan *plan, const char *dir, uint64_t fingerprint,
		    uint64_t *ret_calls)
{
	CLEANUP(cleanup_free) char *file = NULL;
	char path[PATH_MAX];
	struct cache_head head;
	size_t nr;
	uint64_t need;

	if (cache_path(plan, dir, path, sizeof(path)) ||
	    file_read(path, CACHE_BYTES_MAX, &file, &nr) || nr < sizeof(head))
		return -ENOENT;
	memcpy(&head, file, sizeof(head));
	need = (uint64_t)head.functions_nr * sizeof(struct cache_function) +
	       (uint64_t)head.sites_nr * sizeof(struct cache_site) + head.texts_bytes;
	if (head.magic != CACHE_MAGIC || head.version != CACHE_VERSION ||
	    head.fingerprint != fingerprint || need != nr - sizeof(head) ||
	    head.checksum != hash_bytes(file + sizeof(head), nr - sizeof(head)))
		return -ENOENT;
	if (load_body(plan, &head, file + sizeof(head)))
		return -ENOENT;
	*ret_calls = head.calls;
	return 0;
}

static uint32_t put_text(struct buf *texts, const char *text)
{
	uint32_t at = (uint32_t)texts->nr;

	buf__add(texts, text, strlen(text) + 1);
	return at;
}

static void put_functions(const struct probe_plan *plan, struct buf *body, struct buf *texts)
{
	for (size_t i = 0; i < plan->functions.nr; i++) {
		const struct probe_function *fn = &plan->functions.items[i];
		struct cache_function f = {.symbol = put_text(texts, fn->symbol),
					   .name = put_text(texts, fn->name),
					   .overload = put_text(texts, fn->overload),
					   .why = put_text(texts, fn->why),
					   .kind = fn->kind,
					   .placed = fn->placed,
					   .named = fn->named,
					   .layout = fn->layout,
					   .code_bytes = fn->code_bytes,
					   .code_offset = fn->code_offset};

		buf__add(body, &f, sizeof(f));
	}
}

static void put_sites(const struct probe_plan *plan, struct buf *body)
{
	for (size_t i = 0; i < plan->sites.nr; i++) {
		const struct probe_site *site = &plan->sites.items[i];
		struct cache_site s = {.offset = site->offset,
				       .function = site->function,
				       .sp_delta = site->sp_delta,
				       .is_exit = site->is_exit,
				       .emulated = site->emulated};

		buf__add(body, &s, sizeof(s));
	}
}

static int write_file(const char *path, const struct cache_head *head, const struct buf *body)
{
	struct file_new f;
	int err = file_new__open(&f, path);

	if (err)
		return err;
	err = file_write_all(f.fd, head, sizeof(*head));
	if (!err)
		err = file_write_all(f.fd, body->bytes, body->nr);
	if (!err)
		err = file_new__commit(&f);
	file_new__done(&f);
	return err;
}

int plan_cache_store(const struct probe_plan *plan, const char *dir, uint64_t fingerprint,
		     uint64_t calls)
{
	CLEANUP(buf__done) struct buf body = {0}, texts = {0};
	struct cache_head head = {.magic = CACHE_MAGIC,
				  .version = CACHE_VERSION,
				  .functions_nr = (uint32_t)plan->functions.nr,
				  .sites_nr = (uint32_t)plan->sites.nr,
				  .fingerprint = fingerprint,
				  .calls = calls};
	char path[PATH_MAX];
	int err = cache_path(plan, dir, path, sizeof(path));

	if (err)
		return err;
	if (mkdir(dir, 0755) && errno != EEXIST)
		return -errno;
	put_functions(plan, &body, &texts);
	put_sites(plan, &body);
	head.texts_bytes = (uint32_t)texts.nr;
	buf__add(&body, texts.bytes, texts.nr);
	if (buf__error(&body) || buf__error(&texts))
		return -ENOMEM;
	head.checksum = hash_bytes(body.bytes, body.nr);
	return write_file(path, &head, &body);
}
