/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes short numbers. The unit is chosen after rounding, so that "1000us" never comes before
 * "1.00ms".
 */
#include "cli/top/top_units.h"

#include <stdint.h>
#include <stdio.h>

/* Three digits that count. */
static void three(char *to, size_t bytes, double n, const char *unit)
{
	int digits = n < 9.995 ? 2 : n < 99.95 ? 1 : 0;

	(void)snprintf(to, bytes, "%.*f%s", digits, n, unit);
}

void top_percent(char *to, size_t bytes, double percent)
{
	(void)snprintf(to, bytes, percent < 99.95 ? "%.1f" : "%.0f", percent);
}

void top_time(char *to, size_t bytes, double ns)
{
	if (ns < 999.5)
		(void)snprintf(to, bytes, ns < 0.5 ? "0" : "%.0fns", ns);
	else if (ns < 999.5e3)
		three(to, bytes, ns / 1e3, "us");
	else if (ns < 999.5e6)
		three(to, bytes, ns / 1e6, "ms");
	else if (ns < 999.5e9)
		three(to, bytes, ns / 1e9, "s");
	else if (ns < 999.5 * 60e9)
		three(to, bytes, ns / 60e9, "min");
	else
		three(to, bytes, ns / 3600e9, "h");
}

void top_bytes(char *to, size_t bytes, double n)
{
	static const char *const units[] = {"KB", "MB", "GB", "TB", "PB"};
	size_t unit = 0;

	if (n < 1023.5) {
		(void)snprintf(to, bytes, n < 0.5 ? "0" : "%.0fB", n);
		return;
	}
	n /= 1024;
	while (n >= 1023.5 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		n /= 1024;
		unit++;
	}
	three(to, bytes, n, units[unit]);
}

void top_count(char *to, size_t bytes, double n)
{
	uint64_t whole = (uint64_t)(n + 0.5);

	if (n >= 999999.5)
		three(to, bytes, n < 999.5e6 ? n / 1e6 : n / 1e9, n < 999.5e6 ? "M" : "G");
	else if (whole >= 1000)
		(void)snprintf(to, bytes, "%u,%03u", (unsigned int)(whole / 1000),
			       (unsigned int)(whole % 1000));
	else
		(void)snprintf(to, bytes, n < 9.95 && n != (double)whole ? "%.1f" : "%.0f", n);
}

void top_uptime(char *to, size_t bytes, double s)
{
	uint64_t n = s > 0 ? (uint64_t)s : 0;

	if (n >= 86400)
		(void)snprintf(to, bytes, "%ud%02uh", (unsigned int)(n / 86400),
			       (unsigned int)(n / 3600 % 24));
	else if (n >= 3600)
		(void)snprintf(to, bytes, "%uh%02um", (unsigned int)(n / 3600),
			       (unsigned int)(n / 60 % 60));
	else if (n >= 60)
		(void)snprintf(to, bytes, "%um%02us", (unsigned int)(n / 60),
			       (unsigned int)(n % 60));
	else
		(void)snprintf(to, bytes, "%us", (unsigned int)n);
}

void top_bar(struct buf *out, double part, double whole, int cells, bool ascii)
{
	static const char *const eighths[] = {"",	"\u258f", "\u258e", "\u258d",
					      "\u258c", "\u258b", "\u258a", "\u2589"};
	double share = whole > 0 ? part / whole : 0;
	int steps = ascii ? cells : cells * 8;
	int filled = (int)((share < 0 ? 0 : share > 1 ? 1 : share) * steps + 0.5);
	int full = ascii ? filled : filled / 8;

	for (int i = 0; i < full; i++)
		buf__str(out, ascii ? "#" : "\u2588");
	if (!ascii && filled % 8) {
		buf__str(out, eighths[filled % 8]);
		full++;
	}
	for (int i = full; i < cells; i++)
		buf__str(out, ascii ? "-" : " ");
}

void top_curve(struct buf *out, const double *percent, size_t nr, bool ascii)
{
	static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
					     "\u2585", "\u2586", "\u2587", "\u2588"};
	static const char *const signs[] = {"_", ".", ":", "-", "=", "+", "*", "#"};

	for (size_t i = 0; i < nr; i++) {
		double p = percent[i] < 0 ? 0 : percent[i] > 100 ? 100 : percent[i];
		int level = (int)(p * 7 / 100 + 0.5);

		buf__str(out, (ascii ? signs : blocks)[level]);
	}
}
