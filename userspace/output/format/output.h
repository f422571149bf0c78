/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One file per format behind one sink: each writer turns a timeline (or its table) into bytes. A
 * writer never sees a path: cli/ opens the sink, and a file appears under its name only when it is
 * whole.
 */
#ifndef GP_OUTPUT_FORMAT_OUTPUT_H
#define GP_OUTPUT_FORMAT_OUTPUT_H

#include "base/buf.h"
#include "base/place.h"
#include "timeline/analysis/ranks.h"
#include "timeline/analysis/sample_table.h"
#include "timeline/analysis/table.h"
#include "timeline/model/timeline.h"

/* Where bytes go. write returns 0 or -errno; the first error sticks and is what every later call
 * returns. */
struct sink;

/* To a descriptor that stays the caller's (stdout). */
int sink__new_fd(int fd, struct sink **ret_sink);
/* The same, as gzip. */
int sink__new_fd_gzip(int fd, struct sink **ret_sink);
/* To a file that replaces `path` at sink__finish(); gzip when the name ends in .gz. */
int sink__new_path(const char *path, struct sink **ret_sink);
/* The same, for a path relative to the folder; NULL: the working directory. */
int sink__new_in(const struct file_folder *folder, const char *path, struct sink **ret_sink);
/* To memory: sink__bytes() borrows it. For tests. */
int sink__new_memory(struct sink **ret_sink);
int sink__write(struct sink *s, const void *data, size_t bytes);
/* Everything that the buffer holds, which is empty afterwards; an error of the buffer is one too.
 */
int sink__write_buf(struct sink *s, struct buf *b);
/* The same for a buffer that goes on: it keeps its memory, and what it holds if that is less than
 * `least` bytes. */
int sink__drain(struct sink *s, struct buf *b, size_t least);
/* Everything is out and in its place, or -errno and no file. */
int sink__finish(struct sink *s);
const char *sink__bytes(const struct sink *s, size_t *ret_bytes);
/* Without finish nothing is left behind. */
void sink__free(struct sink *s);

/* For CLEANUP. */
static inline void cleanup_sink(struct sink **s)
{
	sink__free(*s);
}

struct output_table_options {
	long limit;	       /* rows, -1: all */
	const char *time_unit; /* "s", "ms", "us", NULL: as it fits */
	const char *header;    /* NULL: none */
	bool top_level;
	int max_name_width; /* 0: 55 */
	size_t columns;	    /* of the terminal that the table has to fit; 0: no limit */
	bool hints;	    /* end with which rows and columns are left out, if any are */
	const char *sort;   /* the key that sorts it, whose column is never left out; NULL: none */
};

/*
 * key_averages().table(), column for column and byte for byte.
 *
 * Where it has to fit `columns`, numbers take no more room than they need. Then names, shapes and
 * source locations are cut, names in the middle, down to 30 (shapes to 24) characters. Then columns
 * are left out, in this order: CPU time avg, CUDA time avg, CPU total %, Self CUDA %, GFLOP/s, All
 * FLOPs, CPU Mem, CUDA Mem, est Calls, Self CPU %, est SelfCUDA, CUDA total, CPU total, Self CPU
 * Mem, Self CUDA Mem, Total FLOPs, # of Calls, est Self CPU; each estimate with its error.
 */
int output_table_text(struct sink *s, const struct table *table,
		      const struct output_table_options *options);
/* One JSON object: the rows, how long the capture was, losses, and what describe_whole() says. */
int output_table_json(struct sink *s, const struct timeline *t, const struct table *table,
		      long limit);
/* One header line, then a row a line; RFC 4180. */
int output_table_csv(struct sink *s, const struct table *table, long limit);

/* The same of samples: their number, and the times that they stand for with standard errors. What
 * has to fit `columns` is without CPU total %, Off CPU, Self CPU % or CPU total, in this order. As
 * JSON with the rows of `gpu` (NULL: none) beside them. */
int output_samples_text(struct sink *s, const struct sample_table *table,
			const struct output_table_options *options);
int output_samples_json(struct sink *s, const struct timeline *t, const struct sample_table *table,
			const struct table *gpu, long limit);
int output_samples_csv(struct sink *s, const struct sample_table *table, long limit);

/* Kineto's Chrome trace. `name` is the traceName. */
int output_chrome(struct sink *s, const struct timeline *t, const char *name);
/* The same of one process (a position in timeline.processes, TL_NONE: all of them) alone. */
int output_chrome_process(struct sink *s, const struct timeline *t, uint32_t process,
			  const char *name);
/* The same as TensorBoard's plugin reads a worker's right. */
int output_chrome_worker(struct sink *s, const struct timeline *t, uint32_t process,
			 const char *name);

/* Perfetto's own format: the same slices and arrows, and counters of memory. */
int output_perfetto(struct sink *s, const struct timeline *t);

/* export_stacks(): a line "root;...;leaf NUMBER" for each event with a stack and a number above
 * zero; times are in microseconds. `metric` is one of output_stack_metrics, NULL the
 * first; -EINVAL: it is none. */
int output_stacks(struct sink *s, const struct timeline *t, const char *metric);
/* NULL-terminated: self CPU time, self CUDA time, calls, allocations, bytes allocated, bytes held
 * at the memory's peak. */
extern const char *const output_stack_metrics[];
/* The same as one profile for speedscope. `name` is its name. */
int output_speedscope(struct sink *s, const struct timeline *t, const char *metric,
		      const char *name);

/* A pprof profile with all metrics that were captured; `metric` is what it shows first. Not
 * compressed: the sink does that. What has no stack is in it too, so that sums are the table's. */
int output_pprof(struct sink *s, const struct timeline *t, const char *metric);

/* The same of several timelines, of recordings that follow each other. `metrics` are bits 1 << enum
 * stack_metric (output/flame/stack_samples.h); STACK_PEAK does not add up. NULL: out of memory. Of
 * each timeline, which is not needed any more after, pprof__add() takes one process or (0) all. 0
 * or -errno; finish: -EINVAL: no such metric. */
struct pprof;
struct pprof *pprof__new(struct sink *s, uint32_t metrics);
int pprof__add(struct pprof *p, const struct timeline *t, int32_t pid);
int pprof__finish(struct pprof *p, const char *metric);
void pprof__free(struct pprof *p);

/* Flame graphs of the same as one page that needs nothing else; `metric` is what it shows first. */
int output_flamegraph(struct sink *s, const struct timeline *t, const char *metric);

/* The memory timeline: a page that needs nothing else (a device with many events is thinned out for
 * it, and it says so), and the whole data behind it as memory_json.c describes. */
int output_memory_html(struct sink *s, const struct timeline *t);
int output_memory_json(struct sink *s, const struct timeline *t);

/* torch.profiler's export_memory_timeline(): of one device (GP_TENSOR_CPU and on) of one process
 * the bytes in each category over time, and as single changes. */
int output_memory_timeline(struct sink *s, const struct timeline *t, uint32_t process,
			   uint8_t device);
int output_memory_timeline_raw(struct sink *s, const struct timeline *t, uint32_t process,
			       uint8_t device);

/* A memory snapshot of one process (a position in timeline.processes), in Python's pickle format,
 * that PyTorch's memory_viz reads. */
int output_snapshot(struct sink *s, const struct timeline *t, uint32_t process);

/* What PyTorch Lightning's SimpleProfiler prints, one report for each process. */
int output_lightning(struct sink *s, const struct timeline *t);

/* What set off the flight recorder that wrote the recording, a line each, and for a hang where the
 * threads were; nothing if it was written by none. */
int output_triggers_text(struct sink *s, const struct timeline *t);

/* Requests for memory that were refused, and what held it then; nothing if there were none. */
int output_out_of_memory_text(struct sink *s, const struct timeline *t);

/* How complete the recording is: one line (wrapped at 100 columns) that says "complete: no event is
 * missing", or names the counters of missing events, and those of what is less exact. With `every`
 * also the counters that are harmless (operators open at the edges of the capture) or zero. cli/
 * prints it after each run. */
int output_losses_text(struct sink *s, const struct tl_loss *losses, size_t nr, bool every);

/* Whether a counter is of events that happened and are not in the recording. The others tell of
 * what is there but less exact. */
bool output_loss_is_events(const char *name);

/* Whether one of these counters of events is above zero. */
bool output_losses_have_events(const struct tl_loss *losses, size_t nr);

/* The ranks of a job beside each other. As text, of the collectives and steps that a rank held up
 * the dearest `limit` (-1: all). */
int output_ranks_text(struct sink *s, const struct timeline *t, const struct ranks *ranks,
		      long limit);
int output_ranks_json(struct sink *s, const struct timeline *t, const struct ranks *ranks);

/* One line for each process with steps, or one that says that there are none. */
int output_steps_text(struct sink *s, const struct timeline *t);

/* Whether annotations were to be recorded: where they were not, it is not known that there were
 * none. */
bool output_has_annotations(const struct timeline *t);

/* One line about Python's garbage collections, or none. */
int output_python_gc_text(struct sink *s, const struct timeline *t);

#endif /* GP_OUTPUT_FORMAT_OUTPUT_H */
