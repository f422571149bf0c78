/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Operators to be probed. Each has the shape of the real ones: a frame with a buffer, so that the
 * stack protector is there, and calls that may throw.
 */
#include "ops.h"

#include <cstdlib>
#include <stdexcept>

/* The texts by which names are resolved. */
extern "C" __attribute__((visibility("default"))) const char *const fake_schemas[] = {
	"mul.Tensor(Tensor self, Tensor other) -> Tensor",
	"aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
	"fail(int n) -> int",
	"_catch_it(int n) -> int",
	"recurse(int n) -> int",
	"wait(int n) -> int",
	"empty.memory_format(SymInt[] size) -> Tensor",
};

/* Keeps a buffer on the stack, and the compiler from knowing what is in it. */
static void touch(char *buffer)
{
	asm volatile("" : : "r"(buffer) : "memory");
}

namespace at
{
StepCallbacks getStepCallbacksUnlessEmpty(RecordScope scope)
{
	StepCallbacks none = {};

	asm volatile("" : : "r"(&none), "r"(scope) : "memory");
	return none;
}

RecordFunction::RecordFunction(RecordScope scope) : words()
{
	asm volatile("" : : "r"(this), "r"(scope) : "memory");
}
} // namespace at

namespace at::_ops
{
int mul_Tensor::call(int n)
{
	char buffer[32];

	touch(buffer);
	return n * 3;
}

int add__Tensor::call(int n)
{
	char buffer[64];

	touch(buffer);
	return mul_Tensor::call(n) + mul_Tensor::call(n + 1);
}

int fail::call(int n)
{
	char buffer[32];

	touch(buffer);
	if (!n)
		throw std::runtime_error("as wanted");
	n = call(n - 1);
	touch(buffer);
	return n;
}

int _catch_it::call(int n)
{
	char buffer[48];

	touch(buffer);
	try {
		n = fail::call(n);
	} catch (const std::runtime_error &) {
		n = 0;
	}
	return mul_Tensor::call(n);
}

int recurse::call(int n)
{
	char buffer[16];

	touch(buffer);
	if (n > 1)
		n += call(n - 1);
	touch(buffer);
	return n;
}

int wait::call(void (*middle)())
{
	char buffer[24];

	touch(buffer);
	middle();
	touch(buffer);
	return 0;
}

void *empty_memory_format::call(std::size_t n)
{
	char buffer[24];
	void *p = std::malloc(n);
	c10::ProfiledCPUMemoryReporter reporter;

	touch(buffer);
	reporter.New(p, n);
	touch(buffer);
	return p;
}
} // namespace at::_ops

namespace torch::autograd
{
Node::~Node()
{
}

int Node::apply(int n)
{
	return n;
}

int generated::FakeBackward0::apply(int n)
{
	return at::_ops::mul_Tensor::call(n);
}

int Engine::evaluate_function(void *, Node *node, int n)
{
	char buffer[40];

	touch(buffer);
	n = node->apply(n);
	touch(buffer);
	return n;
}
} // namespace torch::autograd

namespace c10
{
void detail::torchCheckFail(const char *, const char *, unsigned, const std::string &text)
{
	throw std::runtime_error(text);
}

int call_boxed(const OperatorHandle &op, int n)
{
	const OperatorEntry *entry = op.entry;
	at::StepCallbacks callbacks =
		at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION);
	int result;

	touch((char *)&callbacks);
	if (callbacks.words[0])
		std::abort();
	result = entry->kernel(n);
	touch((char *)&callbacks);
	return result + (int)entry->name.size();
}

int call_often(const OperatorHandle &op, int n)
{
	const OperatorEntry *entry = op.entry;
	int sum = 0;

	for (int i = 0; i < n; i++) {
		at::StepCallbacks callbacks =
			at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION);

		touch((char *)&callbacks);
		sum += entry->kernel(i);
	}
	return sum;
}

int call_script(int n)
{
	at::StepCallbacks callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::SCRIPT);

	touch((char *)&callbacks);
	return at::_ops::mul_Tensor::call(n);
}

at::RecordFunction begin_range(const std::string &name)
{
	at::RecordFunction record(at::RecordScope::USER);

	asm volatile("" : : "r"(&record), "r"(&name) : "memory");
	return record;
}

void ProfiledCPUMemoryReporter::New(void *ptr, std::size_t bytes)
{
	char buffer[16];

	touch(buffer);
	asm volatile("" : : "r"(ptr), "r"(bytes));
}

void ProfiledCPUMemoryReporter::Delete(void *ptr)
{
	char buffer[16];

	touch(buffer);
	asm volatile("" : : "r"(ptr));
}
} // namespace c10
