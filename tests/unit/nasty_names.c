/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The names are made by hand here, and what stands for them too: not by the code that is tested.
 */
#include "unit/nasty_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording/recording.h"

#define NAMES_MAX  512
#define LONG_BYTES 4096
#define FIRST_TID  100
#define START_NS   1000000000ULL
#define SPACING_NS 100000ULL
#define PRODUCT	   0x3000

static struct nasty_name names[NAMES_MAX];
static size_t names_nr;

static void must(int err)
{
	if (!err)
		return;
	fprintf(stderr, "nasty_names: %s\n", strerror(-err));
	abort();
}

static char *copy(const char *text)
{
	char *to = strdup(text);

	must(to ? 0 : -ENOMEM);
	return to;
}

static void add(const char *text, const char *line, bool is_utf8)
{
	must(names_nr < NAMES_MAX - 1 ? 0 : -E2BIG);
	names[names_nr++] = (struct nasty_name){copy(text), copy(line), is_utf8};
}

/* A character between two letters. */
static void add_acting(unsigned int code)
{
	char text[8] = "a", *p = text + 1;

	if (code < 0x80) {
		*p++ = (char)code;
	} else if (code < 0x800) {
		*p++ = (char)(0xc0 | code >> 6);
		*p++ = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		*p++ = (char)(0xe0 | code >> 12);
		*p++ = (char)(0x80 | (code >> 6 & 0x3f));
		*p++ = (char)(0x80 | (code & 0x3f));
	} else {
		*p++ = (char)(0xf0 | code >> 18);
		*p++ = (char)(0x80 | (code >> 12 & 0x3f));
		*p++ = (char)(0x80 | (code >> 6 & 0x3f));
		*p++ = (char)(0x80 | (code & 0x3f));
	}
	*p++ = 'b';
	add(text, "a?b", true);
}

static void add_broken(const char *bytes)
{
	char text[16], line[32] = "a";

	(void)snprintf(text, sizeof(text), "a%sb", bytes);
	for (size_t i = 0; i < strlen(bytes); i++)
		strcat(line, "\xef\xbf\xbd");
	strcat(line, "b");
	add(text, line, false);
}

static void add_characters(void)
{
	static const unsigned int others[] = {
		0x7f,	0x61c,	0x200e, 0x200f, 0x2028, 0x2029,	 0x202a,  0x202b, 0x202c,
		0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069,	 0x206a,  0x206f, 0xfdd0,
		0xfdef, 0xfff9, 0xfffb, 0xfffe, 0xffff, 0x1fffe, 0x10ffff};

	for (unsigned int code = 1; code < 0x20; code++)
		add_acting(code);
	for (unsigned int code = 0x80; code < 0xa0; code++)
		add_acting(code);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		add_acting(others[i]);
}

/* Raw C1 bytes, overlong forms (of the escape character among them), surrogates, codes beyond the
 * last one, forms that were cut. */
static void add_ill_formed(void)
{
	static const char *const others[] = {
		"\xff",
		"\xfe",
		"\xc0\x80",
		"\xc0\x9b",
		"\xc1\xbf",
		"\xe0\x80\x9b",
		"\xe0\x9f\xbf",
		"\xed\xa0\x80",
		"\xed\xbf\xbf",
		"\xe2\x80",
		"\xc3",
		"\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80",
		"\xf8\x88\x80\x80\x80",
	};

	for (int byte = 0x80; byte < 0xa0; byte++)
		add_broken((const char[]){(char)byte, '\0'});
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		add_broken(others[i]);
}

static void add_syntax(void)
{
	static const char *const same[] = {
		"",
		" ",
		"   ",
		"</script><img src=x onerror=\"window.broken = 1\">",
		"</SCRIPT ><svg onload='window.broken = 1'>",
		"<!-- <script>",
		"]]>&amp;&#x1b;",
		"\"};window.broken=1;//",
		"${window.broken=1}",
		"\"",
		"'",
		"\\",
		"\\\\u001b",
		"\\u202e",
		"a;b",
		"a 12",
		";;; 7",
		",,",
		"a,\"b\"",
		"=1+1",
		"=cmd|'/C calc'!A0",
		"+1",
		"-1+2",
		"@SUM(A1)",
		" =1+1",
		("\xef\xbc\x9d"
		 "1+1"),
		"%s%n%*d",
		"`id`$(id)",
		"../../etc/passwd",
		"op\"} 1e9",
		"[k]",
		"\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d 12",
		"\xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7",
		"\xe7\x9f\xa9\xe9\x98\xb5\xe4\xb9\x98\xe6\xb3\x95",
		"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb",
		"e\xcc\x81",
	};

	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
		add(same[i], same[i], true);
	add("\t=1+1", "?=1+1", true);
	add("\r=1+1", "?=1+1", true);
	add("two\nlines 1", "two?lines 1", true);
	add("\x1b]0;title\a\x1b[2J", "?]0;title??[2J", true);
	add("\xc2\x9b"
	    "31m\xc2\x9d"
	    "0;title\xc2\x9c",
	    "?31m?0;title?", true);
	add("\xe2\x80\xae"
	    "gpj.exe",
	    "?gpj.exe", true);
}

static void add_long(void)
{
	char text[LONG_BYTES + 1], line[LONG_BYTES + 1] = "";

	memset(text, 'x', LONG_BYTES);
	text[LONG_BYTES] = '\0';
	add(text, text, true);
	/* All cuts but one go through a character. */
	for (size_t i = 0; i < LONG_BYTES; i++)
		text[i] = "\xe2\x82\xac"[i % 3];
	text[LONG_BYTES - 1] = '\0';
	add(text, text, true);
	for (size_t i = 0; i < LONG_BYTES; i++)
		text[i] = "\xc2\x9b"[i % 2];
	memset(line, '?', LONG_BYTES / 2);
	add(text, line, true);
}

const struct nasty_name *nasty_name(size_t n)
{
	if (!names_nr) {
		add_characters();
		add_ill_formed();
		add_syntax();
		add_long();
	}
	return n < names_nr ? &names[n] : NULL;
}

/* ---- recordings ---- */

struct writing {
	struct recording_writer *w;
	enum nasty_recording which;
};

static const char *name_of(size_t i)
{
	return nasty_name(i)->text;
}

/* Two ids for each: the name with itself as overload, and a mark of steps that ends in it. */
static uint32_t id_of(size_t i)
{
	return (uint32_t)i * 2 + 1;
}

static void add_names(struct writing *x)
{
	for (size_t i = 0; nasty_name(i); i++) {
		char *marker = NULL;

		must(asprintf(&marker, "Optimizer.step#%s", name_of(i)) < 0 ? -ENOMEM : 0);
		must(recording_writer__name(x->w, id_of(i), name_of(i), name_of(i)));
		must(recording_writer__name(x->w, id_of(i) + 1, marker, ""));
		free(marker);
	}
}

static void add_frames(struct writing *x, size_t i)
{
	const char *name = name_of(i);
	const uint32_t first = (uint32_t)i * 3 + 1;
	const struct recording_frame frames[] = {
		{.kind = RECORDING_FRAME_KERNEL,
		 .module = name,
		 .function = name,
		 .file = "",
		 .build_id = "",
		 .address = 1},
		{.kind = RECORDING_FRAME_NATIVE,
		 .module = name,
		 .function = name,
		 .file = "",
		 .build_id = name,
		 .address = 4096 + i},
		{.kind = RECORDING_FRAME_PYTHON,
		 .module = "",
		 .function = name,
		 .file = name,
		 .build_id = "",
		 .line = 7,
		 .first_line = 1},
	};
	const struct recording_line lines[] = {{name, name, 3}, {name, name, 4}};

	for (uint32_t k = 0; k < 3; k++)
		must(recording_writer__frame(x->w, first + k, &frames[k]));
	must(recording_writer__frame_lines(x->w, first + 1, lines, 2));
	must(recording_writer__stack(x->w, (uint32_t)i + 1, 0,
				     (const uint32_t[]){first, first + 1, first + 2}, 3));
}

static void add_event(struct writing *x, const void *event, size_t bytes)
{
	must(recording_writer__event(x->w, event, bytes));
}

static void add_thread(struct writing *x, size_t i)
{
	struct gp_ev_thread ev = {.head = {.kind = GP_EV_THREAD, .tid = FIRST_TID + (uint32_t)i}};

	memcpy(ev.comm, name_of(i), strnlen(name_of(i), sizeof(ev.comm) - 1));
	add_event(x, &ev, sizeof(ev));
}

static void add_device(struct writing *x, size_t i)
{
	struct gp_ev_device ev = {.head = {.kind = GP_EV_DEVICE, .time_ns = START_NS},
				  .memory_bytes = 1 << 30,
				  .device = (uint32_t)i,
				  .sms = 1};

	memcpy(ev.name, name_of(i), strnlen(name_of(i), sizeof(ev.name)));
	add_event(x, &ev, sizeof(ev));
}

static struct gp_ev_head head_of(size_t i, uint8_t kind, uint64_t at_ns)
{
	return (struct gp_ev_head){.kind = kind,
				   .tid = FIRST_TID + (uint32_t)i,
				   .time_ns = START_NS + i * SPACING_NS + at_ns};
}

static uint64_t instance_of(size_t i, uint64_t nr)
{
	return (uint64_t)(i + 1) << 32 | nr;
}

static void add_op(struct writing *x, size_t i, uint64_t nr, uint64_t parent, uint32_t name,
		   uint32_t scope)
{
	struct gp_ev_op op = {
		.head = head_of(i, GP_EV_OP, 90000 - (parent ? 10000 : 0)),
		.start_ns = START_NS + i * SPACING_NS + (parent ? 10000 : 0),
		.instance = instance_of(i, nr),
		.parent = parent ? instance_of(i, parent) : 0,
		.sequence_nr = -1,
		.name_id = name,
		.stack_id = (uint32_t)i + 1,
		.scope = scope,
		.thread_number = (uint32_t)i + 1,
	};

	add_event(x, &op, sizeof(op));
}

static void add_memory(struct writing *x, size_t i, int64_t bytes, int16_t device, uint8_t flags)
{
	struct gp_ev_memory m = {
		.head = head_of(i, GP_EV_MEMORY, 20000),
		.instance = instance_of(i, 2),
		.address = 0x10000 * (i + 1),
		.bytes = bytes,
		.device_type = device,
		.device_index = device == GP_DEVICE_CPU ? -1 : 0,
		.stack_id = (uint32_t)i + 1,
	};

	m.head.flags = flags;
	add_event(x, &m, sizeof(m));
}

static void add_gpu(struct writing *x, size_t i)
{
	struct gp_ev_api api = {
		.head = head_of(i, GP_EV_API, 40000),
		.start_ns = START_NS + i * SPACING_NS + 30000,
		.instance = instance_of(i, 2),
		.name_id = id_of(i),
		.cbid = 211,
		.correlation_id = (uint32_t)i + 1,
	};
	struct gp_ev_kernel kernel = {
		.head = head_of(i, GP_EV_KERNEL, 60000),
		.start_ns = START_NS + i * SPACING_NS + 45000,
		.correlation_id = (uint32_t)i + 1,
		.name_id = id_of(i),
		.context = 1,
		.stream = 7,
	};

	api.head.flags = GP_API_CUPTI;
	kernel.head.tid = 0;
	add_event(x, &api, sizeof(api));
	add_event(x, &kernel, sizeof(kernel));
}

static void add_module(struct writing *x, size_t i)
{
	struct gp_ev_module_call call = {
		.head = head_of(i, GP_EV_MODULE_CALL, 80000),
		.start_ns = START_NS + i * SPACING_NS + 10000,
		.first = instance_of(i, 2),
		.last = instance_of(i, 2),
		.object = 0x1000 * (i + 1),
		.name_id = id_of(i),
	};

	add_event(x, &call, sizeof(call));
}

static void add_trigger(struct writing *x, size_t i)
{
	struct gp_ev_thread_stack stack = {.head = head_of(i, GP_EV_THREAD_STACK, 95000),
					   .stack_id = (uint32_t)i + 1};
	struct gp_ev_trigger trigger = {.head = head_of(i, GP_EV_TRIGGER, 95000),
					.start_ns = START_NS,
					.what = GP_TRIGGER_HANG};

	add_event(x, &stack, sizeof(stack));
	add_event(x, &trigger, sizeof(trigger));
}

/* So that memory has categories: an operator that tells which tensors it got. */
static void add_tensors(struct writing *x)
{
	struct {
		struct gp_ev_tensors ev;
		uint64_t words[2];
	} t = {.ev = {.head = {.kind = GP_EV_TENSORS},
		      .instance = instance_of(0, 2),
		      .words_nr = 2},
	       .words = {(uint64_t)GP_TENSOR_STORED << 56 | PRODUCT, 100}};

	add_event(x, &t, sizeof(t));
}

static void add_traced(struct writing *x, size_t i)
{
	add_memory(x, i, 4096, GP_DEVICE_CPU, 0);
	add_memory(x, i, 8192, GP_DEVICE_CUDA, 0);
	add_memory(x, i, 1 << 30, GP_DEVICE_CPU, GP_MEMORY_OOM);
	add_op(x, i, 2, 1, id_of(i), GP_SCOPE_FUNCTION);
	add_op(x, i, 1, 0, i % 2 ? id_of(i) : id_of(i) + 1, GP_SCOPE_USER);
	add_gpu(x, i);
	add_module(x, i);
	add_trigger(x, i);
}

static void add_sample(struct writing *x, size_t i)
{
	struct gp_ev_sample s = {
		.head = head_of(i, GP_EV_SAMPLE, 50000),
		.start_ns = START_NS + i * SPACING_NS + 50000,
		.weight_ns = 10000000,
		.nr = 1,
		.stack_id = (uint32_t)i + 1,
	};

	s.head.flags = i % 2 ? GP_SAMPLE_RUNNING : 0;
	add_event(x, &s, sizeof(s));
	must(recording_writer__frame_op(x->w, (uint32_t)i * 3 + 2, id_of(i), GP_SCOPE_FUNCTION));
}

/* A training loop whose optimizer has a nasty name, and collectives, of each rank. */
static void add_rank(struct writing *x, uint16_t rank, size_t name)
{
	const uint32_t base = id_of(name) + 1, tid = 4000U + rank;

	for (uint64_t i = 0; i < 12; i++) {
		struct gp_ev_op op = {
			.head = {.kind = GP_EV_OP,
				 .process = rank,
				 .tid = tid,
				 .time_ns = START_NS + (i + 1) * 1000000 + rank * 1000},
			.start_ns = START_NS + i * 1000000 + 1000 + rank * 1000,
			.instance = (uint64_t)tid << 32 | (i + 1),
			.sequence_nr = -1,
			.name_id = i % 3 == 2 ? base
				   : i % 3    ? 1000
					      : 1001,
			.scope = i % 3 == 2 ? GP_SCOPE_USER
				 : i % 3    ? GP_SCOPE_FUNCTION
					    : GP_SCOPE_BACKWARD,
			.thread_number = tid,
		};

		add_event(x, &op, sizeof(op));
	}
}

static void add_ranks(struct writing *x)
{
	size_t last = 0;

	while (nasty_name(last + 1))
		last++;
	must(recording_writer__name(x->w, 1000, "gloo:all_reduce", ""));
	must(recording_writer__name(x->w, 1001, "MulBackward0", ""));
	/* The one that begins with CSI and the last one. */
	for (uint16_t rank = 0; rank < 2; rank++)
		add_rank(x, rank, last - (rank ? 0 : 4));
}

static void add_about(struct writing *x)
{
	static const char *const keys[] = {"host",  "kernel", "nccl_version",
					   "torch", "damage", "gpu_lack.4242"};
	const char *csi = "\xc2\x9b"
			  "31m</script>\xe2\x80\xae\x9b\x1b[2J";

	must(recording_writer__meta(x->w, "mode", x->which == NASTY_SAMPLES ? "sample" : "trace"));
	must(recording_writer__meta(x->w, "stacks", "python"));
	must(recording_writer__meta(x->w, "memory", "1"));
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		must(recording_writer__meta(x->w, keys[i], csi));
	for (uint32_t i = 0; i < (x->which == NASTY_RANKS ? 2 : 1); i++) {
		const struct recording_process p = {
			.index = i,
			.pid = 4242 + (int32_t)i,
			.rank = x->which == NASTY_RANKS ? (int32_t)i : -1,
			.world_size = x->which == NASTY_RANKS ? 2 : -1,
			.comm = csi,
			.cmdline = csi,
		};

		must(recording_writer__process(x->w, &p));
	}
	for (size_t i = 0; nasty_name(i); i++) {
		char *key = NULL;

		must(asprintf(&key, "user:%s", name_of(i)) < 0 ? -ENOMEM : 0);
		must(recording_writer__meta(x->w, key, name_of(i)));
		must(recording_writer__loss(x->w, name_of(i), i));
		free(key);
	}
	must(recording_writer__window(x->w, START_NS, START_NS + 1000000000, 1763800000000000000));
}

void nasty_write(const char *path, enum nasty_recording which)
{
	struct writing x = {.which = which};
	struct reason why = {0};

	must(recording_writer__new(path, &why, &x.w));
	add_about(&x);
	add_names(&x);
	for (size_t i = 0; which != NASTY_RANKS && nasty_name(i); i++) {
		add_frames(&x, i);
		add_thread(&x, i);
		add_device(&x, i);
		if (which == NASTY_TRACE)
			add_traced(&x, i);
		else
			add_sample(&x, i);
	}
	if (which == NASTY_TRACE)
		add_tensors(&x);
	if (which == NASTY_RANKS)
		add_ranks(&x);
	must(recording_writer__finish(x.w));
	recording_writer__free(x.w);
}
