/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Functions with the very symbols of PyTorch's operators and of its CPU allocator's reporter.
 */
#ifndef GP_FAKE_OPS_H
#define GP_FAKE_OPS_H

#include <cstddef>
#include <string>

namespace at
{
enum class RecordScope : unsigned char { FUNCTION = 0, BACKWARD = 1, SCRIPT = 2, USER = 7 };
/* Returned in memory, as the real one. */
struct StepCallbacks {
	long words[12];
};
StepCallbacks getStepCallbacksUnlessEmpty(RecordScope scope);
struct RecordFunction {
	explicit RecordFunction(RecordScope scope);
	long words[4];
};
} // namespace at

namespace at::_ops
{
/* aten::mul, overload Tensor: does a little. */
struct mul_Tensor {
	static int call(int n);
};
/* aten::add_, overload Tensor: calls mul twice. */
struct add__Tensor {
	static int call(int n);
};
/* aten::fail: calls itself n times, then throws. */
struct fail {
	static int call(int n);
};
/* aten::_catch_it: catches what fail throws, then calls mul. */
struct _catch_it {
	static int call(int n);
};
/* aten::recurse: calls itself n times. */
struct recurse {
	static int call(int n);
};
/* aten::wait: calls back in the middle. */
struct wait {
	static int call(void (*middle)());
};
/* aten::empty, overload memory_format: reports an allocation of n bytes. */
struct empty_memory_format {
	static void *call(std::size_t n);
};
} // namespace at::_ops

namespace torch::autograd
{
struct Node {
	virtual ~Node();
	virtual int apply(int n);
};
namespace generated
{
struct FakeBackward0 : Node {
	int apply(int n) override;
};
} // namespace generated
struct Engine {
	/* Calls the node, as the real one does with the same registers. */
	int evaluate_function(void *task, Node *node, int n);
};
} // namespace torch::autograd

namespace c10
{
namespace detail
{
/* Called by none here; what its string is in the symbol tells that of all. */
[[noreturn]] void torchCheckFail(const char *function, const char *file, unsigned line,
				 const std::string &text);
} // namespace detail
/* Begins as the real one does; a handle begins with a pointer to it. */
struct OperatorEntry {
	std::string name;
	std::string overload;
	int (*kernel)(int n);
};
struct OperatorHandle {
	const OperatorEntry *entry;
	const void *other;
};
/* The boxed call of an operator. */
int call_boxed(const OperatorHandle &op, int n);
/* Calls it n times from one function, whose exit says nothing about any of them. */
int call_often(const OperatorHandle &op, int n);
/* Runs a TorchScript function. */
int call_script(int n);
/* What the operator that begins a range calls. */
at::RecordFunction begin_range(const std::string &name);
struct ProfiledCPUMemoryReporter {
	void New(void *ptr, std::size_t bytes);
	void Delete(void *ptr);
};
} // namespace c10

#endif /* GP_FAKE_OPS_H */
