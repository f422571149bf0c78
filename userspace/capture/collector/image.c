/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The collector's library as a file, for processes into which CUDA loads it. The file stays, like
 * the plans beside it: its name has the version in it, and its content is compared each time.
 */
#include "capture/collector/client.h"

#include "base/cache.h"
#include "base/cleanup.h"
#include "base/digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

extern const unsigned char collector_so_start[], collector_so_end[];

static bool is_there(const char *folder, const char *name, size_t bytes)
{
	CLEANUP(cleanup_free) char *text = NULL;
	size_t nr;

	return !cache_read(folder, name, bytes, &text, &nr) && nr == bytes &&
	       !memcmp(text, collector_so_start, bytes);
}

static void name_library(size_t bytes, char *ret_name, size_t name_bytes)
{
	char text[DIGEST_TEXT_BYTES];
	uint8_t sum[DIGEST_BYTES];
	struct digest d;

	digest__init(&d);
	digest__add(&d, collector_so_start, bytes);
	digest__end(&d, sum);
	digest_text(sum, text);
	(void)snprintf(ret_name, name_bytes, "libgpuprof-cupti-%.16s.so", text);
}

int collector_image_write(const char *folder, struct reason *why, char **ret_path)
{
	size_t bytes = (size_t)(collector_so_end - collector_so_start);
	struct cache_part part = {collector_so_start, bytes};
	CLEANUP(cleanup_free) char *path = NULL;
	char name[64];
	int err = cache_check(folder, why);

	if (err)
		return err;
	name_library(bytes, name, sizeof(name));
	if (asprintf(&path, "%s/%s", folder, name) < 0) {
		path = NULL;
		return reason_set(why, -ENOMEM, "out of memory");
	}
	/* The program that loads it may be another user's. */
	err = is_there(folder, name, bytes) ? 0 : cache_write(folder, name, 0755, &part, 1);
	if (err)
		return reason_set(why, err, "cannot write '%s': %s", path, strerror(-err));
	*ret_path = TAKE(path);
	return 0;
}
