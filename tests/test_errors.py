"""The errors say what happened, whether anything left the browser, and what to do."""

from __future__ import annotations

import inspect
import pickle

import pytest

from browsermw import errors
from browsermw.errors import BrowsermwError, EffectRefused, OutcomeUnknown, RunOwned, RuntimeOwned

EVERY_ERROR = [error for _, error in inspect.getmembers(errors, inspect.isclass) if issubclass(error, BrowsermwError)]
BY_NAME = {error.__name__: error for error in EVERY_ERROR}


def test_the_errors_of_the_design_are_there() -> None:
    assert {
        "EffectRefused", "InFlightDuplicate", "OutcomeUnknown", "Quarantined", "Held", "RunOwned", "Superseded",
        "IdentityMismatch", "LedgerUnavailable", "LedgerCorrupt", "IllegalTransition",
    } <= set(BY_NAME)  # fmt: skip


@pytest.mark.parametrize("error", EVERY_ERROR)
def test_the_first_line_says_whether_anything_left_the_browser(error: type[BrowsermwError]) -> None:
    assert error.__doc__ is not None
    first = error.__doc__.splitlines()[0]
    assert "left the browser" in first or first.startswith("Nothing was changed")


@pytest.mark.parametrize("error", EVERY_ERROR)
def test_only_an_unknown_outcome_says_that_something_left(error: type[BrowsermwError]) -> None:
    first = str(error()).splitlines()[0]
    if error is OutcomeUnknown:
        assert first.startswith("A request left the browser")
    elif error is not BrowsermwError:
        assert first.startswith(("Nothing left the browser", "Nothing was changed"))


@pytest.mark.parametrize("error", EVERY_ERROR)
def test_every_error_says_more_than_one_line(error: type[BrowsermwError]) -> None:
    assert len([line for line in str(error()).splitlines() if line.strip()]) > 1


@pytest.mark.parametrize("error", EVERY_ERROR)
def test_the_docstring_is_the_default_message(error: type[BrowsermwError]) -> None:
    assert str(error()) == str(error(None)) == str(error("")) == inspect.getdoc(error)
    assert str(error("Nothing left: the disk is full.")) == "Nothing left: the disk is full."


def test_an_error_of_a_user_without_a_docstring_speaks_as_its_parent_does() -> None:
    class Undocumented(EffectRefused):
        pass

    assert str(Undocumented()) == str(EffectRefused())


@pytest.mark.parametrize("error", EVERY_ERROR)
def test_the_facts_are_kept_as_a_copy_also_across_processes(error: type[BrowsermwError]) -> None:
    facts: dict[str, object] = {"run_id": "invoice-8472", "seq": 3}
    raised = error("message", facts=facts)
    facts["seq"] = 4
    assert raised.facts == {"run_id": "invoice-8472", "seq": 3}
    assert error().facts == {}
    again = pickle.loads(pickle.dumps(raised))  # noqa: S301 - our own bytes
    assert (type(again), str(again), again.facts) == (error, "message", raised.facts)


def test_one_clause_catches_every_refusal_at_the_gate() -> None:
    refusals = {name for name, error in BY_NAME.items() if issubclass(error, EffectRefused)}
    assert refusals == {"EffectRefused", "InFlightDuplicate", "Quarantined", "Held", "Superseded", "LedgerUnavailable"}


def test_one_clause_catches_every_owner_and_one_catches_all() -> None:
    assert issubclass(RuntimeOwned, RunOwned)
    assert issubclass(BrowsermwError, Exception)
    defined = {error for _, error in inspect.getmembers(errors, inspect.isclass) if error.__module__ == errors.__name__}
    assert defined == set(EVERY_ERROR)
