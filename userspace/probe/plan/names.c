/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads operator names from symbols and schema texts. The linker may store a text as the end of a
 * longer one ("conj(..." inside "_conj(..."), so each ending of a text's head is tried; a text that
 * is a whole string wins over an ending.
 */
#include "probe/plan/names.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "inspect/elf/elf.h"
#include "probe/plan/schemas.h"

#define SYMBOL_BEGIN   "_ZN2at4_ops"
#define NAME_BYTES_MAX 128

/* A name with its length before it. */
static int parse_class(const char *at, const char **ret_name, size_t *ret_bytes)
{
	size_t bytes = 0;

	for (; isdigit((unsigned char)*at); at++) {
		bytes = bytes * 10 + (size_t)(*at - '0');
		if (bytes > NAME_BYTES_MAX)
			return -EINVAL;
	}
	if (!bytes || strnlen(at, bytes) < bytes)
		return -EINVAL;
	*ret_name = at;
	*ret_bytes = bytes;
	return 0;
}

/* "BEGIN LENGTH NAME METHOD...". */
static int parse_method(const char *symbol, const char *begin, const char *method,
			const char **ret_name, size_t *ret_bytes)
{
	const char *name;
	size_t bytes;

	if (strncmp(symbol, begin, strlen(begin)) ||
	    parse_class(symbol + strlen(begin), &name, &bytes) ||
	    strncmp(name + bytes, method, strlen(method)))
		return -EINVAL;
	*ret_name = name;
	*ret_bytes = bytes;
	return 0;
}

int op_symbol_parse(const char *symbol, const char **ret_joined, size_t *ret_bytes)
{
	return parse_method(symbol, SYMBOL_BEGIN, "4callE", ret_joined, ret_bytes);
}

int op_frame_parse(const char *symbol, const char **ret_joined, size_t *ret_bytes)
{
	if (!op_symbol_parse(symbol, ret_joined, ret_bytes))
		return 0;
	return parse_method(symbol, SYMBOL_BEGIN, "10redispatchE", ret_joined, ret_bytes);
}

int node_frame_parse(const char *symbol, char *ret_name, size_t name_bytes)
{
	static const char method[] = "5applyE";
	const char *name;
	size_t bytes;
	int nr;

	if (!parse_method(symbol, "_ZN5torch8autograd9generated", method, &name, &bytes))
		nr = snprintf(ret_name, name_bytes, "%.*s", (int)bytes, name);
	else if (!parse_method(symbol, "_ZN5torch8autograd", method, &name, &bytes))
		nr = snprintf(ret_name, name_bytes, "torch::autograd::%.*s", (int)bytes, name);
	else
		return -EINVAL;
	return nr < (int)name_bytes ? 0 : -EINVAL;
}

int node_name_parse(const char *symbol, char *ret_name, size_t name_bytes)
{
	static const char begin[] = "_ZTVN", generated[] = "torch::autograd::generated::";
	const char *at = symbol + strlen(begin);
	char name[NODE_NAME_BYTES] = "";
	size_t nr = 0;

	if (strncmp(symbol, begin, strlen(begin)))
		return -EINVAL;
	while (isdigit((unsigned char)*at)) {
		size_t bytes = 0;

		for (; isdigit((unsigned char)*at) && bytes < sizeof(name); at++)
			bytes = bytes * 10 + (size_t)(*at - '0');
		if (!bytes || bytes >= sizeof(name) - nr - 3 || strnlen(at, bytes) < bytes)
			return -EINVAL;
		nr += (size_t)snprintf(name + nr, sizeof(name) - nr, "%s%.*s", nr ? "::" : "",
				       (int)bytes, at);
		at += bytes;
	}
	if (!nr || (*at != 'E' && *at != 'I'))
		return -EINVAL;
	at = strncmp(name, generated, strlen(generated)) ? name : name + strlen(generated);
	return snprintf(ret_name, name_bytes, "%s", at) < (int)name_bytes ? 0 : -EINVAL;
}

int op_names__add(struct op_names *names, const char *joined, size_t bytes)
{
	uint64_t key = hash_bytes(joined, bytes);
	struct op_name item = {0};

	if (!names->texts) {
		names->texts = intern__new();
		if (!names->texts)
			return -ENOMEM;
	}
	if (hash__find(&names->index, key))
		return 0;
	item.joined = intern__get(names->texts, joined, bytes);
	if (!item.joined || vec_push(&names->items, item))
		return -ENOMEM;
	return hash__set(&names->index, key, names->items.nr - 1);
}

static struct op_name *find(const struct op_names *names, const char *joined, size_t bytes)
{
	const uint64_t *i = hash__find(&names->index, hash_bytes(joined, bytes));
	struct op_name *item;

	if (!i)
		return NULL;
	item = &names->items.items[*i];
	if (strlen(item->joined) != bytes || memcmp(item->joined, joined, bytes))
		return NULL;
	return item;
}

const struct op_name *op_names__find(const struct op_names *names, const char *joined, size_t bytes)
{
	return find(names, joined, bytes);
}

/* Tries one ending of a schema's head: "add_.Tensor". */
static int offer(struct op_names *names, const char *head, size_t bytes, bool whole)
{
	const char *dot = memchr(head, '.', bytes);
	char joined[NAME_BYTES_MAX], full[NAME_BYTES_MAX + 8];
	size_t base = dot ? (size_t)(dot - head) : bytes;
	struct op_name *item;
	int n;

	memcpy(joined, head, bytes);
	if (dot)
		joined[base] = '_';
	item = find(names, joined, bytes);
	if (!item || item->whole || (item->name && !whole))
		return 0;
	n = snprintf(full, sizeof(full), "aten::%.*s", (int)base, head);
	item->name = intern__get(names->texts, full, (size_t)n);
	item->overload = dot ? intern__get(names->texts, dot + 1, bytes - base - 1) : "";
	item->whole = whole;
	return item->name && item->overload ? 0 : -ENOMEM;
}

static bool is_head(unsigned char c)
{
	return isalnum(c) || c == '_' || c == '.' || c == ':';
}

/* Tries the text in string[0..bytes) up to its arrow. */
static int offer_schema(const char *string, size_t bytes, void *arg)
{
	struct op_names *names = arg;
	static const char prefix[] = "aten::";
	size_t head = 0;
	int err = 0;

	while (head < bytes && is_head((unsigned char)string[head]))
		head++;
	if (head == bytes || string[head] != '(' || head >= NAME_BYTES_MAX)
		return 0;
	if (head > strlen(prefix) && !memcmp(string, prefix, strlen(prefix))) {
		string += strlen(prefix);
		head -= strlen(prefix);
	}
	/* Operators of another namespace are not in at::_ops. */
	if (memchr(string, ':', head))
		return 0;
	for (size_t i = 0; i < head && !err; i++)
		err = offer(names, string + i, head - i, !i);
	return err;
}

int op_names__scan(struct op_names *names, const unsigned char *data, size_t bytes)
{
	return schemas_each(data, bytes, offer_schema, names);
}

static int add_symbol(const struct elf_symbol *symbol, void *arg)
{
	const char *joined;
	size_t bytes;

	return op_frame_parse(symbol->name, &joined, &bytes) ? 0
							     : op_names__add(arg, joined, bytes);
}

int op_names__read(struct op_names *names, const char *path)
{
	const unsigned char *data;
	struct elf_file *f;
	uint64_t address;
	size_t bytes;
	int err = elf_file__open(path, NULL, &f);

	if (err)
		return err;
	err = elf_file__each_symbol(f, SYMBOL_BEGIN, add_symbol, names);
	if (!err && !elf_file__section(f, ".rodata", &data, &bytes, &address))
		err = op_names__scan(names, data, bytes);
	err = err ? err : elf_file__error(f);
	elf_file__free(f);
	return err;
}

void op_names__done(struct op_names *names)
{
	hash__done(&names->index);
	vec_done(&names->items);
	intern__free(names->texts);
	names->texts = NULL;
}
