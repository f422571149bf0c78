/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Functions with the very symbols of PyTorch's operators and of its CPU allocator's reporter.
 */
#ifndef GP_FAKE_OPS_H
#define GP_FAKE_OPS_H

#include <cstddef>

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
struct ProfiledCPUMemoryReporter {
	void New(void *ptr, std::size_t bytes);
	void Delete(void *ptr);
};
} // namespace c10

#endif /* GP_FAKE_OPS_H */
