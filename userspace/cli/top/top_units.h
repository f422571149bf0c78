/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes numbers in at most 8 characters, bars and small curves. Each text is cut to fit `bytes`.
 */
#ifndef GP_CLI_TOP_TOP_UNITS_H
#define GP_CLI_TOP_TOP_UNITS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* "12.3", "100", "1234": without the sign. */
void top_percent(char *to, size_t bytes, double percent);
/* Of nanoseconds: "0", "812ns", "12.3us", "81.2ms", "1.95s", "92.1min", "12.5h". */
void top_time(char *to, size_t bytes, double ns);
/* "0", "812B", "12.3KB", "1.24GB", powers of 1024 as in the table. */
void top_bytes(char *to, size_t bytes, double n);
/* "812", "123,456", "12.3M". */
void top_count(char *to, size_t bytes, double n);
/* "42s", "3m05s", "2h07m", "5d03h". */
void top_uptime(char *to, size_t bytes, double s);

/* `cells` characters of which part/whole are filled, by eighths unless `ascii`. */
void top_bar(struct buf *out, double part, double whole, int cells, bool ascii);
/* One character for each of nr percentages; above 100 is as 100. */
void top_curve(struct buf *out, const double *percent, size_t nr, bool ascii);

#endif /* GP_CLI_TOP_TOP_UNITS_H */
