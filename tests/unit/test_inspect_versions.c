/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * inspect/versions on made-up trees of files. This program itself plays the library that holds
 * version strings.
 */
#include "inspect/program/versions.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* What the real libraries hold, in this program's read-only data. */
const unsigned long Py_Version;
const unsigned long Py_Version = 0x030c07f0;
__attribute__((used)) static const char settings[] = "USE_X=0, TORCH_VERSION=9.8.7+cu1, CXX=gcc";

struct tree {
	char folder[64];
	struct target_library libraries[8];
	struct target_process p;
};

static int make_tree(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));

	(void)snprintf(t->folder, sizeof(t->folder), "/tmp/gpuprof-test-XXXXXX");
	if (!mkdtemp(t->folder))
		return -1;
	t->p.pid = getpid();
	t->p.libraries = t->libraries;
	t->p.exe = strdup("/no/such/program");
	*state = t;
	return 0;
}

static int drop_tree(void **state)
{
	struct tree *t = *state;
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", t->folder);
	for (size_t i = 0; i < t->p.libraries_nr; i++)
		free((char *)t->libraries[i].path);
	free(t->p.exe);
	free(t);
	return system(command);
}

/* A path below the tree's folder, with the folders made; to be freed. */
static char *path_in(const struct tree *t, const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", t->folder, name) > 0);
	for (char *p = path + strlen(t->folder) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		(void)mkdir(path, 0755);
		*p = '/';
	}
	return path;
}

static void put_file(const struct tree *t, const char *name, const char *text)
{
	char *path = path_in(t, name);
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	free(path);
}

/* A mapped library of this name; content: this program's if `real`, else none. */
static void map_library(struct tree *t, const char *name, bool real)
{
	struct target_library *l = &t->libraries[t->p.libraries_nr++];

	l->path = path_in(t, name);
	l->open_path = real ? "/proc/self/exe" : "/no/such/file";
	l->start = t->p.libraries_nr;
}

static struct target_versions versions_of(const struct tree *t)
{
	struct target_versions v;

	memset(&v, 0x5a, sizeof(v));
	target_versions_read(&t->p, &v);
	return v;
}

static void nothing_there(void **state)
{
	struct target_versions v = versions_of(*state);

	assert_string_equal(v.torch, "");
	assert_string_equal(v.python, "");
	assert_string_equal(v.cuda, "");
	assert_string_equal(v.cupti, "");
	assert_false(v.cupti_mapped);
}

static void wheel_with_cuda(void **state)
{
	struct tree *t = *state;
	struct target_versions v;

	map_library(t, "site/torch/lib/libtorch_cpu.so", false);
	map_library(t, "site/nvidia/cuda_runtime/lib/libcudart.so.12", false);
	map_library(t, "lib/libpython3.10.so.1.0", false);
	put_file(t, "site/torch/version.py",
		 "from typing import Optional\n\n__all__ = ['__version__', 'cuda']\n"
		 "__version__ = '2.3.1+cu121'\ndebug = False\ncuda: Optional[str] = '12.1'\n");
	put_file(t, "site/nvidia/cuda_cupti/lib/libcupti.so.12", "");
	put_file(t, "site/nvidia/cuda_cupti/lib/libnvperf_host.so", "");
	v = versions_of(t);
	assert_string_equal(v.torch, "2.3.1+cu121");
	assert_string_equal(v.cuda, "12.1");
	assert_string_equal(v.python, "3.10");
	assert_string_equal(v.cupti, "12");
	assert_false(v.cupti_mapped);
}

static void system_layout(void **state)
{
	struct tree *t = *state;
	struct target_versions v;

	map_library(t, "lib/libtorch_cpu.so.1.13.0", false);
	map_library(t, "dist-packages/torch/_C.cpython-311-x86_64-linux-gnu.so", false);
	map_library(t, "cuda/targets/x86_64-linux/lib/libcudart.so.11.8.89", false);
	put_file(t, "dist-packages/torch/version.py", "__version__ = '1.13.0a0'\ncuda = None\n");
	put_file(t, "cuda/extras/CUPTI/lib64/libcupti.so", "");
	put_file(t, "cuda/extras/CUPTI/lib64/libcupti.so.11.8", "");
	put_file(t, "cuda/extras/CUPTI/lib64/libcupti.so.2022.3.0", "");
	v = versions_of(t);
	assert_string_equal(v.torch, "1.13.0a0");
	assert_string_equal(v.cuda, "11.8.89");
	assert_string_equal(v.cupti, "2022.3.0");
	assert_false(v.cupti_mapped);
}

static void from_the_files_themselves(void **state)
{
	struct tree *t = *state;
	struct target_versions v;

	map_library(t, "app/libtorch_cpu.so", true);
	map_library(t, "app/libpython3.12.so.1.0", true);
	map_library(t, "app/libcuda.so.535.104.05", false);
	map_library(t, "app/libcupti.so.2023.1.1", false);
	v = versions_of(t);
	assert_string_equal(v.torch, "9.8.7+cu1");
	assert_string_equal(v.python, "3.12.7");
	assert_string_equal(v.cuda, "driver 535.104.05");
	assert_string_equal(v.cupti, "2023.1.1");
	assert_true(v.cupti_mapped);
}

static void there_but_untold(void **state)
{
	struct tree *t = *state;
	struct target_versions v;

	map_library(t, "app/libtorch_cpu.so", false);
	map_library(t, "app/libpython.so", false);
	map_library(t, "app/libcudart.so", false);
	map_library(t, "app/libcupti.so", false);
	v = versions_of(t);
	assert_string_equal(v.torch, "?");
	assert_string_equal(v.python, "?");
	assert_string_equal(v.cuda, "?");
	assert_string_equal(v.cupti, "?");
	assert_true(v.cupti_mapped);
}

static void hostile_version_py(void **state)
{
	static const char *const texts[] = {
		"__version__ = 'root:x:0:0:root'\n",
		"__version__ = '2.0\x1b[2J'\n",
		"__version__ = '2.0\n",
		"__version__ = ''\n",
		"__version__ = \"2.0'\n",
		"# __version__ = '2.0'\n",
		"__version__x = '2.0'\n",
		"__version__",
		"__version__ = ",
		"",
		"__version__ = '1234567890123456789012345678901234567890123456789'\n",
	};
	struct tree *t = *state;
	char *path = path_in(t, "torch/version.py");
	struct target_versions v;

	map_library(t, "torch/lib/libtorch_cpu.so", false);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		put_file(t, "torch/version.py", texts[i]);
		v = versions_of(t);
		assert_string_equal(v.torch, "?");
	}
	/* A FIFO would block a reader that just opens it. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0666), 0);
	v = versions_of(t);
	assert_string_equal(v.torch, "?");
	free(path);
}

static void reads_a_real_interpreter(void **state)
{
	struct tree *t = *state;
	char expected[64] = "", exe[512] = "";
	FILE *f = popen("/usr/bin/python3 -Bc 'import platform, os; "
			"print(platform.python_version(), os.path.realpath(\"/usr/bin/python3\"))'",
			"re");
	struct target_versions v;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%63s %511s", expected, exe), 2);
	assert_int_equal(pclose(f), 0);
	free(t->p.exe);
	t->p.exe = strdup(exe);
	t->libraries[0] = (struct target_library){.path = strdup(exe), .open_path = exe};
	t->p.libraries_nr = 1;
	v = versions_of(t);
	assert_string_equal(v.python, expected);
}

int main(void)
{
#define ON_A_TREE(test) cmocka_unit_test_setup_teardown(test, make_tree, drop_tree)
	const struct CMUnitTest tests[] = {
		ON_A_TREE(nothing_there),
		ON_A_TREE(wheel_with_cuda),
		ON_A_TREE(system_layout),
		ON_A_TREE(from_the_files_themselves),
		ON_A_TREE(there_but_untold),
		ON_A_TREE(hostile_version_py),
		ON_A_TREE(reads_a_real_interpreter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
