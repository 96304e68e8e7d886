"""Surveys that are kept, so that a file is looked at once in its life."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from amqpsniff.capture.formats import is_remote

from .filesystem import Folder, StorageOptions, opener_for, whole_path
from .listing import Listed
from .survey import Surveyed, survey

SURVEYS = "_work/surveys"

SURVEY_BYTES = 512 << 20
"""Bytes of files that are surveyed in one go, about: a fifth of a second."""

HERE_SECONDS = 0.5
"""Time that whoever plans spends on surveys before it has others make them: asking Spark for them
costs about a second, in which 3 GB are surveyed."""

MAX_REMEMBERED = 500_000
"""Conversations of surveys that a process remembers, 16 bytes each."""

MIN_SIZE = 50
"""A survey takes as much memory as so many conversations, beside its own."""

FORM = 6
"""Number of the layout; one that is written otherwise is made anew."""


@dataclass
class SurveyOrder:
    """Files to be surveyed in one go, anywhere, and kept in the folder `output`.

    `home` is the folder in which they were named.
    """

    files: list[Listed]
    output: str
    storage: Mapping[str, Any]
    home: str = field(default_factory=lambda: str(Path.cwd()))


def survey_orders(
    listed: Sequence[Listed], output: str, storage: StorageOptions | None
) -> list[SurveyOrder]:
    """Orders for all of these files."""
    groups: list[list[Listed]] = []
    held = SURVEY_BYTES
    for one in listed:
        if held >= SURVEY_BYTES:
            groups.append([])
            held = 0
        groups[-1].append(one)
        held += one.size or 0
    return [SurveyOrder(group, output, storage or {}) for group in groups]


def survey_all(order: SurveyOrder) -> list[Surveyed]:
    """Survey the files of an order, and keep what was found."""
    from pyarrow import parquet

    folder = Folder(order.output, order.storage)
    found = []
    for one in order.files:
        made = survey(*one, opener=opener_for([one.path], order.storage, order.home))
        found.append(made)
        if made.error is None:
            buffer = BytesIO()
            parquet.write_table(made.to_table(), buffer, compression="zstd")
            folder.write(survey_name(made), buffer.getvalue())
    return found


def survey_here(
    listed: Sequence[Listed], folder: Folder, seconds: float = HERE_SECONDS
) -> tuple[list[Surveyed], list[Listed]]:
    """Surveys of files on this machine that are made in this time, and the files that are left.

    A file that is large may take longer; it is surveyed here if it is the only one.
    """
    until = time.monotonic() + seconds
    found: list[Surveyed] = []
    left: list[Listed] = []
    for one in listed:
        small = len(listed) == 1 or (one.size or 0) < SURVEY_BYTES
        if small and not is_remote(one.path) and time.monotonic() < until:
            found += survey_all(SurveyOrder([one], folder.name, folder.options))
        else:
            left.append(one)
    return found, left


def known_surveys(folder: Folder, listed: Sequence[Listed]) -> tuple[list[Surveyed], list[Listed]]:
    """The surveys of files that are kept, and the files that have none."""
    there = set(folder.names(SURVEYS))
    known: list[Surveyed] = []
    missing: list[Listed] = []
    for one in listed:
        found = _read(folder, one) if survey_name(one) in there else None
        if found is None:
            missing.append(one)
        else:
            known.append(found)
    return known, missing


def survey_files(
    listed: Sequence[Listed], storage: StorageOptions | None = None, kept: str = ""
) -> list[Surveyed]:
    """Surveys of files, made in this process unless they are in the folder `kept`.

    Without a folder this process remembers some, for it is asked for every scan of the same files.
    """
    found: list[Surveyed] = []
    if kept:
        found, missing = known_surveys(Folder(kept, storage), listed)
        for order in survey_orders(missing, kept, storage):
            found += survey_all(order)
        return found
    for one in listed:
        place = one, whole_path(one.path)
        made = _remembered.get(place)
        if made is None:
            made = survey(*one, opener=opener_for([one.path], storage))
            if made.error is None and one.modified_ns is not None and not is_remote(one.path):
                _remembered[place] = made
        found.append(replace(made))
    held = sum(len(one.marks) + MIN_SIZE for one in _remembered.values())
    while held > MAX_REMEMBERED:  # older ones make room
        held -= len(_remembered.pop(next(iter(_remembered))).marks) + MIN_SIZE
    return found


_remembered: dict[tuple[Listed, str], Surveyed] = {}
"""Surveys of files on this machine."""


def survey_name(one: Listed | Surveyed) -> str:
    """The name of a file's survey in its folder."""
    facts = json.dumps([FORM, one.path, one.size, one.modified_ns])
    return f"{SURVEYS}/{hashlib.blake2b(facts.encode(), digest_size=10).hexdigest()}.parquet"


def _read(folder: Folder, one: Listed) -> Surveyed | None:
    from pyarrow import ArrowException, parquet

    octets = folder.read(survey_name(one))
    try:
        return Surveyed.from_table(parquet.read_table(BytesIO(octets or b"")))
    except (ArrowException, OSError, KeyError, TypeError, ValueError):
        return None
