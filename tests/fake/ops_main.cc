/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Does what it is told by letters on its standard input, each with a number after it ("r200 ");
 * answers each on its standard output with one byte when it is done.
 */
#include "ops.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace at::_ops;

static volatile int sink;

static void answer()
{
	if (write(STDOUT_FILENO, "k", 1) != 1)
		_exit(3);
}

/* In the middle of an op: says so, and goes on when told. */
static void pause_inside()
{
	char byte;

	answer();
	if (read(STDIN_FILENO, &byte, 1) != 1)
		_exit(3);
}

static void nested(int times)
{
	for (int i = 0; i < times; i++)
		sink = add__Tensor::call(i);
}

static void allocate(int bytes)
{
	c10::ProfiledCPUMemoryReporter reporter;
	void *p = empty_memory_format::call((std::size_t)bytes);

	reporter.Delete(p);
	std::free(p);
}

static void threads(int nr)
{
	for (int i = 0; i < nr; i++)
		std::thread([] {
			(void)prctl(PR_SET_NAME, "worker");
			nested(1);
		}).join();
}

static void child()
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	(void)waitpid(pid, nullptr, 0);
}

static void escape(int n)
{
	try {
		sink = fail::call(n);
	} catch (const std::runtime_error &) {
	}
}

static void backward(int n)
{
	torch::autograd::generated::FakeBackward0 fake;
	torch::autograd::Engine engine;
	torch::autograd::Node plain;

	sink = engine.evaluate_function(nullptr, &fake, n);
	sink = engine.evaluate_function(nullptr, &plain, n);
}

namespace
{
/* Of no library: nobody knows its virtual table. */
struct OwnBackward : torch::autograd::Node {
	int apply(int n) override
	{
		return n;
	}
};
} // namespace

static void backward_unknown(int n)
{
	torch::autograd::Engine engine;
	OwnBackward own;

	sink = engine.evaluate_function(nullptr, &own, n);
}

static std::string range_name;

static int kernel_begin(int n)
{
	at::RecordFunction record = c10::begin_range(range_name);

	return n + (int)record.words[0];
}

static int kernel_end(int n)
{
	return n;
}

static int call(const char *name, const char *overload, int (*kernel)(int), int n,
		int (*how)(const c10::OperatorHandle &, int) = c10::call_boxed)
{
	c10::OperatorEntry entry = {name, overload, kernel};
	c10::OperatorHandle handle = {&entry, nullptr};

	return how(handle, n);
}

static void begin_range(const char *name, int n)
{
	range_name = name;
	sink = call("profiler::_record_function_enter_new", "", kernel_begin, n);
}

static void end_range(int n)
{
	sink = call("profiler::_record_function_exit", "_RecordFunction", kernel_end, n);
}

/* An operator in a range in a range; their ends are not in order with those of functions. */
static void ranges(int n)
{
	begin_range("outer", n);
	begin_range("a range whose name does not fit into the string itself", n);
	sink = call("test::mul", "", mul_Tensor::call, n);
	end_range(n);
	end_range(n);
}

/* So many ranges in each other, and an operator after the end of each. */
static void deep_ranges(int n)
{
	for (int i = 0; i < n; i++)
		begin_range("deep", i);
	for (int i = 0; i < n; i++) {
		end_range(i);
		sink = call("test::mul", "", mul_Tensor::call, i);
	}
}

static void raise_boxed()
{
	try {
		sink = call("test::fail", "", fail::call, 0);
	} catch (const std::runtime_error &) {
	}
}

static void obey(char what, int n)
{
	switch (what) {
	case 'a':
		return nested(n);
	case 'c':
		sink = _catch_it::call(n);
		return;
	case 'b':
		return backward(n);
	case 'B':
		return backward_unknown(n);
	case 'o':
		sink = call("test::add_", "Tensor", add__Tensor::call, n);
		return;
	case 'O':
		sink = call("test::mul", "", mul_Tensor::call, n, c10::call_often);
		return;
	case 's':
		sink = c10::call_script(n);
		return;
	case 'g':
		return ranges(n);
	case 'G':
		return deep_ranges(n);
	case 'X':
		return raise_boxed();
	case 'x':
		return escape(n);
	case 'r':
		sink = recurse::call(n);
		return;
	case 'w':
		sink = wait::call(pause_inside);
		return;
	case 'm':
		return allocate(n);
	case 't':
		return threads(n);
	case 'f':
		return child();
	case 'l':
		if (void *library = dlopen("libfakeops.so", RTLD_NOW | RTLD_NOLOAD))
			(void)dlclose(library);
		if (!dlopen("libutil.so.1", RTLD_NOW))
			_exit(4);
		return;
	default:
		_exit(n);
	}
}

/* One command: a letter, digits, a blank. False at the end of the input. */
static bool read_command(char *what, int *number)
{
	char byte;

	*number = 0;
	if (read(STDIN_FILENO, what, 1) != 1)
		return false;
	while (read(STDIN_FILENO, &byte, 1) == 1 && byte >= '0' && byte <= '9')
		*number = *number * 10 + (byte - '0');
	return true;
}

int main()
{
	char what;
	int number;

	answer();
	while (read_command(&what, &number)) {
		obey(what, number);
		answer();
	}
	return 0;
}
