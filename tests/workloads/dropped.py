# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Names that torch.profiler leaves out before it builds its tree. They stand apart from truth.py for the tests, whose own process is to
have no PyTorch in it.
"""

DROPPED = {
    "[OutOfMemory]", "profiler::_record_function_enter", "profiler::_record_function_enter_new",
    "profiler::_record_function_exit", "aten::is_leaf", "aten::output_nr", "aten::_version",
}
