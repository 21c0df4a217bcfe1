"""Counts what the suite tried and what held: faults survived, bad inputs answered; printed after the last test.

A test takes the fixture `faults` or `bad_inputs`, says `tried()` before each attempt and `held()` once everything it
promises was seen, so that a failing test leaves the two numbers apart. Counts travel with the test's reports, also from
the processes of pytest-xdist.
"""

from collections import Counter

import pytest

LINES = {"faults": "faults survived / tried", "bad_inputs": "bad inputs answered / tried"}


class Count:
    """The attempts of one test; kept with the test, which hands them to whoever reports it."""

    def __init__(self, kind: str, properties: list[tuple[str, object]]) -> None:
        self._kind = kind
        self._properties = properties

    def tried(self, number: int = 1) -> None:
        """Note `number` attempts begun."""
        self._properties.append((f"{self._kind} tried", number))

    def held(self, number: int = 1) -> None:
        """Note `number` attempts that ended as promised."""
        self._properties.append((f"{self._kind} held", number))

    survived = answered = held


@pytest.fixture
def faults(request: pytest.FixtureRequest) -> Count:
    """Counts faults: `faults.tried()`, then `faults.survived()`."""
    return Count("faults", request.node.user_properties)


@pytest.fixture
def bad_inputs(request: pytest.FixtureRequest) -> Count:
    """Counts bad inputs: `bad_inputs.tried()`, then `bad_inputs.answered()`."""
    return Count("bad_inputs", request.node.user_properties)


class _Totals:
    """Adds up what the reports carry and prints one line for each kind that occurred."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":  # the last of a test's reports; each carries all its properties so far
            for name, number in report.user_properties:
                if isinstance(number, int):
                    self.counts[name] += number

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for kind, line in LINES.items():
            if self.counts[f"{kind} tried"]:
                terminalreporter.write_line(f"{line}: {self.counts[f'{kind} held']} / {self.counts[f'{kind} tried']}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Totals(), "counts")
