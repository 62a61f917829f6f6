"""A wait that runs out in the very moment in which the answer comes."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from browsermw.hooks.waiting import wait_through


class _JustInTime(Future[Any]):
    """Is answered between the end of the patience and the next look."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self._answer = answer

    def result(self, timeout: float | None = None) -> Any:
        if self.done():
            return super().result(timeout)
        if isinstance(self._answer, BaseException):
            self.set_exception(self._answer)
        else:
            self.set_result(self._answer)
        raise TimeoutError


def test_the_answer_counts() -> None:
    assert wait_through(_JustInTime("closed"), SimpleNamespace()) == "closed"


def test_so_does_the_error() -> None:
    with pytest.raises(ValueError, match="its own"):
        wait_through(_JustInTime(ValueError("its own")), SimpleNamespace())
