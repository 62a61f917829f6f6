"""``python -m benchmarks [NAME …]``: run benchmarks one after the other, each in a process of its own.

A name is one of ``worker.BENCHMARKS`` or its beginning (``clicks`` is both flavours). Progress goes to standard
error, figures to standard output.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - Typer reads the annotation
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from benchmarks.machine import this_machine
from benchmarks.measures import Row
from benchmarks.report import Report, markdown, show
from benchmarks.worker import BENCHMARKS

COUNT, QUICK_COUNT = 100, 10
END_S = 20.0


def main(
    names: Annotated[list[str] | None, typer.Argument(help=f"Which: {', '.join(BENCHMARKS)}, or a beginning.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help=f"{QUICK_COUNT} samples each: to see that it runs.")] = False,
    count: Annotated[int, typer.Option(min=2, help="Samples of each kind.")] = COUNT,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print docs/reference/benchmarks.md.")] = False,
    folder: Annotated[Path | None, typer.Option(help="Where the ledgers are made, on the disk to be measured.")] = None,
) -> None:
    """Measure what browsermw costs on this machine."""
    chosen = _chosen(names or [])
    report = Report(this_machine(folder))
    errors = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors) as progress:
        tasks = {name: progress.add_task(name, total=None, start=False) for name in chosen}
        for name in chosen:
            _run(name, QUICK_COUNT if quick else count, folder, report, progress, tasks[name])
    if as_json:
        sys.stdout.write(json.dumps(_for_programs(report), indent=2, ensure_ascii=False) + "\n")
    elif as_markdown:
        sys.stdout.write(markdown(report))
    else:
        show(report, Console())
    raise typer.Exit(int(any(row.is_met is False for row in report.rows)))


def _chosen(names: list[str]) -> list[str]:
    for name in names:
        if not any(known.startswith(name) for known in BENCHMARKS):
            raise typer.BadParameter(f"{name!r} is none of {', '.join(BENCHMARKS)}")
    return [known for known in BENCHMARKS if not names or any(known.startswith(name) for name in names)]


def _run(name: str, count: int, folder: Path | None, report: Report, progress: Progress, task: TaskID) -> None:
    command = [sys.executable, "-m", "benchmarks.worker", name, str(count), *([str(folder)] if folder else [])]
    progress.start_task(task)
    with tempfile.TemporaryFile("w+") as said:
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True)
        try:
            assert worker.stdout is not None
            for line in worker.stdout:
                _take(json.loads(line), name, report, progress, task)
        finally:
            exit_code = _end(worker)
        if exit_code:
            said.seek(0)
            raise SystemExit(f"{name} failed with exit code {exit_code}:\n{said.read()}")


def _end(worker: subprocess.Popen[str]) -> int:
    """Wait for a worker that has said all; end one that was left because of an interrupt."""
    try:
        return worker.wait(END_S)
    except subprocess.TimeoutExpired:
        worker.kill()
        return worker.wait()


def _take(line: dict[str, Any], name: str, report: Report, progress: Progress, task: TaskID) -> None:
    if "step" in line:
        progress.update(task, completed=line["step"], total=line["of"])
    elif "row" in line:
        report.rows.append(Row(**line["row"]))
    elif "load" in line:
        report.loads.setdefault(name, {})[line["load"]] = line["value"]
    else:
        report.skipped.append(line["skipped"])


def _for_programs(report: Report) -> dict[str, Any]:
    rows = [{**asdict(row), "is_met": row.is_met} for row in report.rows]
    return {"machine": report.machine.facts, "loads": report.loads, "rows": rows, "skipped": report.skipped}


if __name__ == "__main__":
    typer.run(main)
