# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
With less rights than root on a machine of its own: it works, or ends in a sentence with the next step.
"""

import pytest

import less_rights


@pytest.mark.parametrize("case", less_rights.CASES, ids=str)
def test_case(case):
    less_rights.check(case, less_rights.run(case))
