/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Names that a hostile target chose, through every format and every view that the program itself
 * lists: export's formats, table's groups, top's views. Nothing acts on a terminal, and what is
 * written reads back as what it says it is. Formats for programs are read by Python
 * (read_back.py), pprof and Perfetto by protobuf-c.
 */
#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include <cmocka.h>

#include "base/escape.h"
#include "base/log.h"
#include "cli/core/cli.h"
#include "cli/core/options.h"
#include "daemon/totals.h"
#include "nasty_names.h"
#include "sample.h"
#include "timeline/model/timeline.h"

#include "perfetto.pb-c.h"
#include "profile.pb-c.h"

#define FILES_MAX 512
#define ARGS_MAX  16

static char recordings[3][256];
static locale_t utf8;

/* What Python is to read: "KIND PATH" in turn. */
static char *to_read[FILES_MAX * 2];
static size_t to_read_nr;

static char *text_of(const char *path, size_t *ret_bytes)
{
	char *bytes = (char *)sample_read_file(path, ret_bytes), *text;

	text = realloc(bytes, *ret_bytes + 1);
	assert_non_null(text);
	text[*ret_bytes] = '\0';
	return text;
}

/* ---- bytes ---- */

/* The characters of the issue, listed again: not by the code that is tested. */
static bool acts(wchar_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x206f) ||
	       (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xfdd0 && c <= 0xfdef) ||
	       (c & 0xfffe) == 0xfffe;
}

static bool is_in(wchar_t c, const char *allowed)
{
	return c && c < 0x80 && strchr(allowed, (int)c);
}

/* All of it is UTF-8 as the C library knows it, and but for `allowed` nothing in it acts. */
static void check_bytes(const char *what, const char *text, size_t bytes, const char *allowed)
{
	locale_t before = uselocale(utf8);
	mbstate_t state = {0};

	for (size_t at = 0; at < bytes;) {
		wchar_t c = 0;
		size_t nr = mbrtowc(&c, text + at, bytes - at, &state);

		if (!nr || nr > 4)
			fail_msg("%s: byte 0x%02x at %zu is no UTF-8", what,
				 (unsigned char)text[at], at);
		if (acts(c) && !is_in(c, allowed))
			fail_msg("%s: U+%04X at %zu, before it '%.*s'", what, (unsigned int)c, at,
				 (int)(at < 60 ? at : 60), text + at - (at < 60 ? at : 60));
		at += nr;
	}
	(void)uselocale(before);
}

/* ---- running a command ---- */

struct ran {
	char out[256], err[256];
	int status;
};

static int redirect(int fd, const char *path)
{
	int kept = dup(fd), to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(kept >= 0 && to >= 0);
	assert_true(dup2(to, fd) == fd);
	(void)close(to);
	return kept;
}

static void restore(int fd, int kept)
{
	assert_true(dup2(kept, fd) == fd);
	(void)close(kept);
}

/* Runs `gpuprof ARGS`, the last of them NULL. What it says on stderr is for people. */
static struct ran run(const char *const args[])
{
	static unsigned int number;
	char name[32], *argv[ARGS_MAX] = {"gpuprof"}, *err;
	struct ran r;
	int argc = 1, out_kept, err_kept;
	size_t bytes;

	for (; args[argc - 1]; argc++)
		argv[argc] = (char *)(uintptr_t)args[argc - 1];
	(void)snprintf(name, sizeof(name), "out%u", number);
	(void)snprintf(r.out, sizeof(r.out), "%s", sample_path(name));
	(void)snprintf(name, sizeof(name), "err%u", number++);
	(void)snprintf(r.err, sizeof(r.err), "%s", sample_path(name));
	(void)fflush(stdout);
	out_kept = redirect(STDOUT_FILENO, r.out);
	err_kept = redirect(STDERR_FILENO, r.err);
	r.status = cli_main(argc, argv);
	(void)fflush(stdout);
	restore(STDOUT_FILENO, out_kept);
	restore(STDERR_FILENO, err_kept);
	err = text_of(r.err, &bytes);
	check_bytes("stderr", err, bytes, "\n");
	free(err);
	(void)unlink(r.err);
	return r;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static void check_text_file(const char *what, const char *path, const char *allowed)
{
	size_t bytes;
	char *text = text_of(path, &bytes);

	assert_true(bytes > 0);
	check_bytes(what, text, bytes, allowed);
	free(text);
}

/* Python reads it at the end. */
static void read_later(const char *kind, const char *path)
{
	assert_true(to_read_nr + 2 <= FILES_MAX * 2);
	to_read[to_read_nr++] = strdup(kind);
	to_read[to_read_nr++] = strdup(path);
}

static const char *const *choices_of(const struct command *command, const char *option)
{
	const struct option_spec *o = options_find(command, option);

	assert_non_null(o);
	assert_non_null(o->choices);
	return o->choices;
}

/* ---- protocol buffers: every string of every message ---- */

static void check_message(const char *what, const ProtobufCMessage *message);

static void check_field(const char *what, const ProtobufCFieldDescriptor *f, const void *value)
{
	const ProtobufCBinaryData *data = value;

	if (f->type == PROTOBUF_C_TYPE_STRING && *(const char *const *)value)
		check_bytes(what, *(const char *const *)value, strlen(*(const char *const *)value),
			    "");
	else if (f->type == PROTOBUF_C_TYPE_BYTES && data->len)
		check_bytes(what, (const char *)data->data, data->len, "");
	else if (f->type == PROTOBUF_C_TYPE_MESSAGE && *(ProtobufCMessage *const *)value)
		check_message(what, *(ProtobufCMessage *const *)value);
}

static size_t bytes_of(const ProtobufCFieldDescriptor *f)
{
	return f->type == PROTOBUF_C_TYPE_BYTES ? sizeof(ProtobufCBinaryData) : sizeof(void *);
}

static void check_message(const char *what, const ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *d = message->descriptor;

	assert_int_equal(message->n_unknown_fields, 0);
	for (unsigned int i = 0; i < d->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &d->fields[i];
		const char *at = (const char *)message + f->offset;
		size_t nr =
			f->label == PROTOBUF_C_LABEL_REPEATED
				? *(const size_t *)((const char *)message + f->quantifier_offset)
				: 1;

		if (f->type != PROTOBUF_C_TYPE_STRING && f->type != PROTOBUF_C_TYPE_BYTES &&
		    f->type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		if (f->label == PROTOBUF_C_LABEL_REPEATED)
			at = *(const char *const *)at;
		for (size_t k = 0; k < nr; k++)
			check_field(what, f, at + k * bytes_of(f));
	}
}

static void check_protobuf(const char *path, const ProtobufCMessageDescriptor *descriptor)
{
	size_t bytes;
	char *text = text_of(path, &bytes);
	ProtobufCMessage *message =
		protobuf_c_message_unpack(descriptor, NULL, bytes, (const uint8_t *)text);

	assert_non_null(message);
	check_message(path, message);
	protobuf_c_message_free_unpacked(message, NULL);
	free(text);
}

/* ---- exports ---- */

static void check_html(const char *path)
{
	static const char begin[] = "id=\"data\">";
	size_t bytes;
	char *text = text_of(path, &bytes), *data = strstr(text, begin), *end;

	assert_non_null(data);
	data += sizeof(begin) - 1;
	end = strchr(data, '<');
	assert_non_null(end);
	/* The first '<' is that of the page. */
	assert_int_equal(strncmp(end, "</script>\n<script>", 18), 0);
	check_bytes(path, data, (size_t)(end - data), "\n");
	*end = '\0';
	assert_null(strstr(end + 1, "window.broken"));
	sample_write_file(path, data, (size_t)(end - data));
	read_later("page", path);
	free(text);
}

static void check_export(const char *format, const char *ending, const char *path)
{
	if (!strcmp(ending, ".pftrace")) {
		check_protobuf(path, &perfetto__trace__descriptor);
	} else if (!strcmp(ending, ".pb")) {
		check_protobuf(path, &pprof__profile__descriptor);
	} else if (!strcmp(ending, ".pickle")) {
		read_later("pickle", path);
	} else if (!strcmp(ending, ".html")) {
		check_html(path);
	} else if (!strcmp(ending, ".json") || !strcmp(ending, ".raw.json")) {
		check_text_file(path, path, "\n");
		read_later(!strcmp(format, "chrome") ? "chrome" : "json", path);
	} else {
		/* What is of no kind that is known here must be text. */
		check_text_file(path, path, "\n\t");
		if (!strcmp(format, "stacks"))
			read_later("folded", path);
	}
}

static unsigned int check_folder(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned int nr = 0;
	char file[1024], name[32];

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		check_bytes("file's name", entry->d_name, strlen(entry->d_name), "");
		assert_null(strchr(entry->d_name, ' '));
		(void)snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		(void)snprintf(name, sizeof(name), "worker%zu.json", to_read_nr);
		assert_int_equal(rename(file, sample_path(name)), 0);
		check_export("tensorboard", ".json", sample_path(name));
		nr++;
	}
	(void)rmdir(path);
	(void)closedir(dir);
	return nr;
}

/* Whether the format was written: it may not go with the name. */
static bool export_as(const char *recording, const char *format, const char *ending)
{
	char path[512], name[64];
	struct stat st;
	struct ran r;

	(void)snprintf(name, sizeof(name), "%s-%c%s", format, recording[strlen(recording) - 1],
		       ending);
	(void)snprintf(path, sizeof(path), "%s", sample_path(name));
	r = RUN("export", recording, "--format", format, "-o", path);
	(void)unlink(r.out);
	if (r.status != CLI_DONE && r.status != CLI_LOST)
		return false;
	assert_int_equal(stat(path, &st), 0);
	if (S_ISDIR(st.st_mode))
		return check_folder(path) > 0;
	check_export(format, ending, path);
	return true;
}

static void test_every_format(void **state)
{
	static const char *const endings[] = {".json",	  ".raw.json", ".html",
					      ".pftrace", ".pb",       ".pickle"};
	const char *const *formats = choices_of(&command_export, "format");

	for (size_t i = 0; formats[i]; i++) {
		for (int which = NASTY_TRACE; which <= NASTY_SAMPLES; which++) {
			unsigned int nr = 0;

			for (size_t k = 0; k < sizeof(endings) / sizeof(*endings); k++)
				nr += export_as(recordings[which], formats[i], endings[k]);
			/* Any of the others would have been taken. */
			if (!nr || !strcmp(formats[i], "stacks"))
				nr += export_as(recordings[which], formats[i], "");
			/* Samples have no memory. */
			if (!nr && which == NASTY_TRACE)
				fail_msg("'%s' was written under no name", formats[i]);
		}
	}
}

/* ---- tables ---- */

static void check_table(const char *recording, const char *group)
{
	char option[64];
	struct stat st;
	struct ran r;

	(void)snprintf(option, sizeof(option), "--group-by=%s", group);
	r = RUN("table", recording, option, "--limit=-1", "--losses");
	if (r.status == CLI_USAGE)
		return;
	/* There is none of what the recording has nothing of. */
	if (!stat(r.out, &st) && st.st_size)
		check_text_file(option, r.out, "\n");
	else
		assert_ptr_equal(recording, recordings[NASTY_RANKS]);
	r = RUN("table", recording, option, "--json");
	assert_true(r.status == CLI_DONE || r.status == CLI_LOST);
	check_text_file(option, r.out, "\n");
	read_later("json", r.out);
	r = RUN("table", recording, option, "--csv");
	assert_true(r.status == CLI_DONE || r.status == CLI_LOST);
	check_text_file(option, r.out, "\r\n");
	read_later(!strcmp(group, "op") && recording != recordings[NASTY_RANKS] ? "csv-names"
										: "csv",
		   r.out);
}

static void test_every_table(void **state)
{
	const char *const *groups = choices_of(&command_table, "group-by");

	for (size_t i = 0; groups[i]; i++)
		for (int which = NASTY_TRACE; which <= NASTY_RANKS; which++)
			check_table(recordings[which], groups[i]);
	for (int json = 0; json < 2; json++) {
		struct ran r = RUN("table", recordings[NASTY_RANKS], "--distributed", "--steps",
				   json ? "--json" : "--losses");

		assert_true(r.status == CLI_DONE || r.status == CLI_LOST);
		check_text_file("ranks", r.out, "\n");
		if (json)
			read_later("json", r.out);
	}
}

/* ---- top ---- */

/* Keys that show everything and end it; what was drawn without what moves the cursor: escape
 * sequences are curses' own. */
static void check_screen(const char *recording, const char *view)
{
	struct winsize size = {.ws_row = 250, .ws_col = 200};
	static char text[4 << 20];
	size_t nr = 0;
	ssize_t got;
	int fd, status;
	pid_t pid = forkpty(&fd, NULL, NULL, &size);

	assert_true(pid >= 0);
	if (!pid) {
		char *argv[] = {"gpuprof",
				"top",
				(char *)(uintptr_t)recording,
				"--view",
				(char *)(uintptr_t)view,
				NULL};

		(void)setenv("TERM", "xterm", 1);
		(void)setenv("LC_ALL", "C.UTF-8", 1);
		_exit(cli_main(5, argv));
	}
	assert_int_equal(write(fd, "q", 1), 1);
	while (nr < sizeof(text) && (got = read(fd, text + nr, sizeof(text) - nr)) > 0)
		nr += (size_t)got;
	(void)close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == CLI_DONE);
	assert_true(nr > 1000);
	check_bytes(view, text, nr, "\n\r\b\t\x0e\x0f\x1b");
	/* A name that begins with an escape sequence of its own. */
	assert_null(memmem(text, nr, "\x1b]0;title", 9));
}

static void test_every_view(void **state)
{
	const char *const *views = choices_of(&command_top, "view");

	for (size_t i = 0; views[i]; i++) {
		for (int which = NASTY_TRACE; which <= NASTY_SAMPLES; which++) {
			struct ran r = RUN("top", recordings[which], "--once", "--limit=-1",
					   "--view", views[i]);

			assert_true(r.status == CLI_DONE || r.status == CLI_LOST);
			check_text_file(views[i], r.out, "\n");
			check_screen(recordings[which], views[i]);
		}
	}
	for (int which = NASTY_TRACE; which <= NASTY_SAMPLES; which++) {
		struct ran r = RUN("top", recordings[which], "--json");

		check_text_file("top --json", r.out, "\n");
		read_later("json", r.out);
	}
}

/* ---- messages ---- */

static void test_messages(void **state)
{
	char path[256], *text;
	size_t bytes;
	int kept;

	(void)snprintf(path, sizeof(path), "%s", sample_path("messages"));
	kept = redirect(STDERR_FILENO, path);
	for (size_t i = 0; nasty_name(i); i++) {
		struct reason why;

		log_err("cannot open '%s'", nasty_name(i)->text);
		(void)reason_set(&why, -1, "no library '%s'", nasty_name(i)->text);
		log_warn("%s", why.text);
		(void)log_errno(-2, "%s", nasty_name(i)->text);
	}
	restore(STDERR_FILENO, kept);
	check_text_file("messages", path, "\n");
	text = text_of(path, &bytes);
	for (size_t i = 0; nasty_name(i); i++)
		if (strlen(nasty_name(i)->line) < 256 && !strstr(text, nasty_name(i)->line))
			fail_msg("no '%s' in the messages", nasty_name(i)->line);
	free(text);
}

/* ---- the daemon's metrics ---- */

static void test_metrics(void **state)
{
	struct totals_part part = {.events_nr = 1, .capture_nr = 1, .now_ns = 1};
	struct recording *rec = NULL;
	struct timeline *t = NULL;
	struct totals totals = {0};
	struct reason why = {0};
	struct buf out = {0};

	assert_int_equal(recording__open(recordings[NASTY_TRACE], &why, &rec), 0);
	assert_int_equal(timeline__new(rec, &why, &t), 0);
	assert_int_equal(totals__add(&totals, t, &part), 0);
	totals__text(&totals, &out);
	/* Most of the names have no series of their own there. */
	for (size_t i = 0; nasty_name(i); i++)
		metrics_count(&out, "nasty", "name", nasty_name(i)->text, i);
	assert_int_equal(buf__error(&out), 0);
	check_bytes("metrics", out.bytes, out.nr, "\n");
	sample_write_file(sample_path("metrics"), out.bytes, out.nr);
	read_later("metrics", sample_path("metrics"));
	buf__done(&out);
	totals__done(&totals);
	timeline__free(t);
	recording__free(rec);
}

/* ---- what each name becomes ---- */

static void test_lines(void **state)
{
	for (size_t i = 0; nasty_name(i); i++) {
		const struct nasty_name *n = nasty_name(i);
		struct buf line = {0}, part = {0};
		char small[64];
		size_t nr;

		buf__line(&line, n->text);
		assert_string_equal(line.bytes ? line.bytes : "", n->line);
		buf__line_part(&part, n->text, 3);
		assert_int_equal(strncmp(part.bytes ? part.bytes : "", n->line, part.nr), 0);
		assert_true(line_characters(n->text) <= strlen(n->text));
		assert_string_equal(line_behind(n->text, line_characters(n->text)), "");
		nr = line_into(small, sizeof(small), n->text);
		assert_int_equal(strncmp(small, n->line, nr), 0);
		assert_true(nr == strlen(n->line) || nr + 4 >= sizeof(small) - 1);
		check_bytes("a part", small, nr, "");
		assert_int_equal(text_is_plain(n->text), n->is_utf8 && !strcmp(n->text, n->line));
		buf__done(&line);
		buf__done(&part);
	}
}

/* ---- */

static void write_names(const char *path)
{
	struct buf out = {0};

	for (size_t i = 0; nasty_name(i); i++) {
		const struct nasty_name *n = nasty_name(i);

		for (const char *c = n->text; *c; c++)
			buf__printf(&out, "%02x", (unsigned char)*c);
		buf__char(&out, ' ');
		for (const char *c = n->line; *c; c++)
			buf__printf(&out, "%02x", (unsigned char)*c);
		buf__printf(&out, " %d\n", n->is_utf8);
	}
	sample_write_file(path, out.bytes, out.nr);
	buf__done(&out);
}

static void test_python_reads_it(void **state)
{
	char names[256], list[256], command[1024];
	struct buf out = {0};

	assert_true(to_read_nr > 60);
	(void)snprintf(names, sizeof(names), "%s", sample_path("names"));
	(void)snprintf(list, sizeof(list), "%s", sample_path("list"));
	write_names(names);
	for (size_t i = 0; i < to_read_nr; i += 2)
		buf__printf(&out, "%s %s\n", to_read[i], to_read[i + 1]);
	sample_write_file(list, out.bytes, out.nr);
	buf__done(&out);
	(void)snprintf(command, sizeof(command), "python3 -B tests/unit/read_back.py '%s' '%s'",
		       names, list);
	assert_int_equal(system(command), 0);
	freelocale(utf8);
	for (size_t i = 0; i < to_read_nr; i++)
		free(to_read[i]);
}

static int setup(void **state)
{
	utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	assert_true(utf8 != (locale_t)0);
	for (int i = 0; i <= NASTY_RANKS; i++) {
		char name[2] = {(char)('0' + i), '\0'};

		(void)snprintf(recordings[i], sizeof(recordings[i]), "%s", sample_path(name));
		nasty_write(recordings[i], (enum nasty_recording)i);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_every_format),	cmocka_unit_test(test_every_table),
		cmocka_unit_test(test_every_view),	cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_python_reads_it),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
