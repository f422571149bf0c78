/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A plan's file: a header, the functions, the sites, then zero-terminated texts, referred to by
 * offset. Everything is validated before it is used. Small files beside the plans record which
 * files on disk have been searched; there are at most KNOWN_NR of those, and a new one replaces an
 * older one whose identity begins alike.
 */
#include "probe/plan/plan_cache.h"

#include "base/buf.h"
#include "base/cache.h"
#include "base/cleanup.h"
#include "base/intern.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define PLAN_MAGIC	0x326e6c7070727067ULL
#define KNOWN_MAGIC	0x326e776b70727067ULL
#define CACHE_BYTES_MAX (64 << 20)
#define PLAN_END	".plan"
#define KNOWN_NR	4096
/* Limit for all plans together: those of a thousand versions of PyTorch. */
#define FOLDER_BYTES_MAX (512 << 20)
#define NAME_BYTES	 (DIGEST_TEXT_BYTES + sizeof(PLAN_END))

struct cache_head {
	uint64_t magic;
	uint32_t version;
	uint32_t functions_nr;
	uint32_t found_nr;
	uint32_t sites_nr;
	uint32_t texts_bytes;
	uint32_t reserved;
	uint8_t key[DIGEST_BYTES];
	uint8_t calls[DIGEST_BYTES];
	uint8_t sum[DIGEST_BYTES]; /* of everything above and after the header */
};

struct cache_function {
	uint32_t symbol, name, overload, why; /* offsets in the texts */
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

struct known {
	uint64_t magic;
	uint8_t file[DIGEST_BYTES];
	uint8_t key[DIGEST_BYTES];
	uint8_t sum[DIGEST_BYTES];
};

static void plan_name(const uint8_t key[DIGEST_BYTES], char ret_name[NAME_BYTES])
{
	digest_text(key, ret_name);
	memcpy(ret_name + DIGEST_TEXT_BYTES - 1, PLAN_END, sizeof(PLAN_END));
}

static void sum_up(const struct cache_head *head, const void *body, size_t bytes,
		   uint8_t ret_sum[DIGEST_BYTES])
{
	struct digest d;

	digest__init(&d);
	digest__add(&d, head, offsetof(struct cache_head, sum));
	digest__add(&d, body, bytes);
	digest__end(&d, ret_sum);
}

/* Returns the text at an offset, as the plan's own, or NULL. */
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

/* Whether the site lies in its function, which has sites, and comes after the last one. */
static bool is_site(const struct probe_plan *plan, const struct cache_site *s)
{
	const struct probe_function *fn;
	const struct probe_site *last =
		plan->sites.nr ? &plan->sites.items[plan->sites.nr - 1] : NULL;

	if (s->function >= plan->functions.nr || s->is_exit > 1 || s->emulated > 1 ||
	    s->sp_delta < 0 || s->sp_delta > PROBE_SP_DELTA_MAX ||
	    (last && s->function < last->function))
		return false;
	fn = &plan->functions.items[s->function];
	return fn->placed && s->offset >= fn->code_offset &&
	       s->offset - fn->code_offset < fn->code_bytes;
}

static int load_site(struct probe_plan *plan, const struct cache_site *s)
{
	struct probe_site site = {.offset = s->offset,
				  .function = s->function,
				  .sp_delta = s->sp_delta,
				  .is_exit = s->is_exit,
				  .emulated = s->emulated};

	return is_site(plan, s) ? vec_push(&plan->sites, site) : -ENOENT;
}

static int load_body(struct probe_plan *plan, const struct cache_head *head, const char *body)
{
	const char *sites = body + (size_t)head->functions_nr * sizeof(struct cache_function);
	const char *texts = sites + (size_t)head->sites_nr * sizeof(struct cache_site);
	int err = head->texts_bytes && texts[head->texts_bytes - 1] ? -ENOENT : 0;

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

/* Whether it is the header of these bytes, and the plan has this key. */
static bool is_head(const struct cache_head *head, const uint8_t key[DIGEST_BYTES],
		    const void *body, size_t bytes)
{
	uint64_t need = (uint64_t)head->functions_nr * sizeof(struct cache_function) +
			(uint64_t)head->sites_nr * sizeof(struct cache_site) + head->texts_bytes;
	uint8_t sum[DIGEST_BYTES];

	if (head->magic != PLAN_MAGIC || head->version != PLAN_CACHE_VERSION || need != bytes ||
	    head->found_nr > head->functions_nr || memcmp(head->key, key, DIGEST_BYTES) != 0)
		return false;
	sum_up(head, body, bytes, sum);
	return !memcmp(head->sum, sum, DIGEST_BYTES);
}

int plan_cache_load(struct probe_plan *plan, const char *dir, struct plan_kept *kept)
{
	CLEANUP(cleanup_free) char *file = NULL;
	char name[NAME_BYTES];
	struct cache_head head;
	size_t nr;

	plan_name(kept->key, name);
	if (cache_read(dir, name, CACHE_BYTES_MAX, &file, &nr) || nr < sizeof(head))
		return -ENOENT;
	memcpy(&head, file, sizeof(head));
	if (!is_head(&head, kept->key, file + sizeof(head), nr - sizeof(head)) ||
	    load_body(plan, &head, file + sizeof(head)))
		return -ENOENT;
	memcpy(kept->calls, head.calls, DIGEST_BYTES);
	memcpy(kept->sum, head.sum, DIGEST_BYTES);
	kept->found_nr = head.found_nr;
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

int plan_cache_store(const struct probe_plan *plan, const char *dir, struct plan_kept *kept)
{
	static const char *const suffixes[] = {PLAN_END};
	CLEANUP(buf__done) struct buf body = {0}, texts = {0};
	struct cache_head head = {.magic = PLAN_MAGIC,
				  .version = PLAN_CACHE_VERSION,
				  .functions_nr = (uint32_t)plan->functions.nr,
				  .found_nr = kept->found_nr,
				  .sites_nr = (uint32_t)plan->sites.nr};
	struct cache_part parts[2] = {{&head, sizeof(head)}};
	char name[NAME_BYTES];
	int err;

	put_functions(plan, &body, &texts);
	put_sites(plan, &body);
	head.texts_bytes = (uint32_t)texts.nr;
	buf__add(&body, texts.bytes, texts.nr);
	if (buf__error(&body) || buf__error(&texts))
		return -ENOMEM;
	memcpy(head.key, kept->key, DIGEST_BYTES);
	memcpy(head.calls, kept->calls, DIGEST_BYTES);
	sum_up(&head, body.bytes, body.nr, head.sum);
	if (!memcmp(head.sum, kept->sum, DIGEST_BYTES))
		return 0;
	parts[1] = (struct cache_part){body.bytes, body.nr};
	plan_name(kept->key, name);
	err = cache_write(dir, name, 0600, parts, 2);
	if (err)
		return err;
	memcpy(kept->sum, head.sum, DIGEST_BYTES);
	cache_shrink(dir, suffixes, 1, FOLDER_BYTES_MAX);
	return 0;
}

/* ---- files that have been searched ---- */

static void known_name(const struct plan_kept *kept, char *ret_name, size_t bytes)
{
	unsigned int slot = (kept->file[0] << 8 | kept->file[1]) % KNOWN_NR;

	(void)snprintf(ret_name, bytes, "searched-%03x", slot);
}

static struct known known_of(const struct plan_kept *kept)
{
	struct known known = {.magic = KNOWN_MAGIC};

	memcpy(known.file, kept->file, DIGEST_BYTES);
	memcpy(known.key, kept->key, DIGEST_BYTES);
	memcpy(known.sum, kept->sum, DIGEST_BYTES);
	return known;
}

bool plan_cache_knows(const char *dir, const struct plan_kept *kept)
{
	CLEANUP(cleanup_free) char *file = NULL;
	struct known known = known_of(kept);
	char name[32];
	size_t nr;

	known_name(kept, name, sizeof(name));
	return !cache_read(dir, name, sizeof(known), &file, &nr) && nr == sizeof(known) &&
	       !memcmp(file, &known, sizeof(known));
}

int plan_cache_learn(const char *dir, const struct plan_kept *kept)
{
	struct known known = known_of(kept);
	struct cache_part part = {&known, sizeof(known)};
	char name[32];

	known_name(kept, name, sizeof(name));
	return cache_write(dir, name, 0600, &part, 1);
}
