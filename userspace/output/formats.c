/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The table of output formats, made of the list in output/format/output_format.h. It stands last in
 * this room, since it knows all writers.
 */
#include "output/format/output_format.h"

#include <string.h>

#include "base/banned.h"

#define ROW(name_, write_, help_, ...)	{.name = name_, .help = help_, .write = write_, __VA_ARGS__},
#define NAME(name_, write_, help_, ...) name_,

const struct output_format output_formats[] = {OUTPUT_FORMATS(ROW)};
const size_t output_formats_nr = sizeof(output_formats) / sizeof(*output_formats);
const char *const output_format_names[] = {OUTPUT_FORMATS(NAME) NULL};

const struct output_format *output_format_find(const char *name)
{
	for (size_t i = 0; i < output_formats_nr; i++)
		if (!strcmp(output_formats[i].name, name))
			return &output_formats[i];
	return NULL;
}

bool output_format_has_extension(const struct output_format *format, const char *extension)
{
	for (int i = 0; i < OUTPUT_EXTENSIONS_MAX; i++)
		if (format->extensions[i] && !strcmp(format->extensions[i], extension))
			return true;
	return false;
}

const char *output_known_extension(const char *path)
{
	for (size_t i = 0; i < output_formats_nr; i++)
		for (int k = 0; k < OUTPUT_EXTENSIONS_MAX; k++) {
			const char *extension = output_formats[i].extensions[k];

			if (extension && output_path_ends(path, extension))
				return extension;
		}
	return NULL;
}
