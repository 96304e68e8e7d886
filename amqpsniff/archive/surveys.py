"""Surveys of capture files, without following conversations: the input of a plan.

A survey reads every packet's headers once. It does not depend on options, so it is kept next to the
tables of an archive and made again only if the file has changed.
"""

from __future__ import annotations

import hashlib
import json
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from amqpsniff.capture import CaptureFile
from amqpsniff.capture.formats import LINK_TYPES, is_remote, shown
from amqpsniff.errors import CaptureError, NotACapture
from amqpsniff.findings import Finding
from amqpsniff.tcp.headers import unread_tunnels
from amqpsniff.tcp.partition import Survey

from .encoding import pack, unpack
from .filesystem import Folder, Opener, StorageOptions, whole_path
from .listing import Listed

SURVEYS = "_work/surveys"

SURVEY_BYTES = 512 << 20
"""Bytes of files that are surveyed in one go, about: a fifth of a second."""

HERE_SECONDS = 0.5
"""Time that the planning process spends on surveys before workers make them: asking Spark for them
costs about a second, in which 3 GB are surveyed."""

MAX_REMEMBERED = 500_000
"""Conversations of surveys that a process remembers, 16 bytes each."""

MIN_SIZE = 50
"""A survey takes as much memory as so many conversations, beside its own."""

FORM = 8
"""Version of the layout of surveys. A survey of another version is written again."""


@dataclass
class Surveyed:
    """The survey of one file.

    Attributes:
        path: Its name.
        size, modified_ns: Its length in bytes and the time of its last change; None if the file
            system does not have them.
        error: Why it could not be read at all, else None.
        packets, segments: Packets, and TCP segments among them.
        octets: Captured bytes of its packets.
        first_ns: Time of the first packet with a time, or None.
        least_ns, last_ns: The earliest and the latest time.
        findings: Faults of the file.
        secrets: Decryption Secrets Blocks in it.
        marks, mark_bytes: Its conversations by mark (`amqpsniff.tcp.partition`), and the captured
            bytes of each one's packets.
    """

    path: str
    size: int | None = None
    modified_ns: int | None = None
    error: str | None = None
    packets: int = 0
    segments: int = 0
    octets: int = 0
    first_ns: int | None = None
    least_ns: int | None = None
    last_ns: int | None = None
    secrets: int = 0
    findings: list[Finding] = field(default_factory=list)
    marks: array[int] = field(default_factory=lambda: array("q"))
    mark_bytes: array[int] = field(default_factory=lambda: array("q"))

    def forget_conversations(self) -> None:
        """Let go of them: when the plan is made, the tasks know them."""
        self.marks, self.mark_bytes = array("q"), array("q")

    def to_bytes(self) -> bytes:
        """Itself, packed."""
        return pack(vars(self), "findings")

    @classmethod
    def from_bytes(cls, octets: bytes | None) -> Surveyed:
        """The opposite of `to_bytes`; raises ValueError for other or damaged bytes."""
        facts = unpack(octets, "findings")
        return cls(**facts | {name: array("q", facts[name]) for name in ("marks", "mark_bytes")})


def survey(
    path: str,
    size: int | None = None,
    modified_ns: int | None = None,
    opener: Opener | None = None,
) -> Surveyed:
    """Read the headers of a file's packets; an unreadable file is reported, not raised."""
    found = Surveyed(path, size, modified_ns)
    counts = Survey()
    try:
        with CaptureFile(path, opener=opener) as packets:
            for batch in packets:
                counts.feed(batch)
            if packets.link_types and LINK_TYPES.isdisjoint(packets.link_types):
                kinds = ", ".join(map(str, packets.link_types))
                raise NotACapture(
                    f"{shown(path)}: not a capture: its link type is {kinds}, and archives are "
                    "not read through tshark; convert it with "
                    '"amqpsniff cut --reader tshark FILE -o OUT"'
                )
            found.findings = packets.findings
            if counts.unread:
                found.findings = [*packets.findings, unread_tunnels(path, counts.unread)]
            found.secrets = len(packets.secrets)
    except CaptureError as error:
        found.error = str(error)
        found.findings = [Finding("capture-unreadable", found.error, path)]
        return found
    found.packets, found.segments = counts.packet_count, counts.segment_count
    found.octets = counts.octets
    found.first_ns, found.least_ns, found.last_ns = counts.times
    found.marks, found.mark_bytes = counts.conversations()
    return found


@dataclass
class SurveyOrder:
    """Files to be surveyed in one go, anywhere, and kept in `folder`."""

    files: list[Listed]
    folder: Folder
    opener: Opener


def survey_orders(listed: Sequence[Listed], folder: Folder) -> list[SurveyOrder]:
    """Orders for all of these files."""
    groups: list[list[Listed]] = []
    group_bytes = SURVEY_BYTES
    for file in listed:
        if group_bytes >= SURVEY_BYTES:
            groups.append([])
            group_bytes = 0
        groups[-1].append(file)
        group_bytes += file.size or 0
    return [SurveyOrder(group, folder, Opener(folder.options)) for group in groups]


def survey_all(order: SurveyOrder) -> list[Surveyed]:
    """Survey the files of an order, and keep the results."""
    found = [survey(*file, opener=order.opener) for file in order.files]
    for file in found:
        if file.error is None:
            order.folder.write(survey_name(file), file.to_bytes())
    return found


def survey_in_process(
    listed: Sequence[Listed], folder: Folder, seconds: float = HERE_SECONDS
) -> tuple[list[Surveyed], list[Listed]]:
    """Surveys of files on this machine that are made in this time, and the files that are left.

    A file that is large may take longer; it is surveyed here if it is the only one.
    """
    until = time.monotonic() + seconds
    found: list[Surveyed] = []
    remaining: list[Listed] = []
    for file in listed:
        small = len(listed) == 1 or (file.size or 0) < SURVEY_BYTES
        if small and not is_remote(file.path) and time.monotonic() < until:
            found += survey_all(SurveyOrder([file], folder, Opener(folder.options)))
        else:
            remaining.append(file)
    return found, remaining


def known_surveys(folder: Folder, listed: Sequence[Listed]) -> tuple[list[Surveyed], list[Listed]]:
    """The surveys of files that are kept, and the files that have none."""
    existing = set(folder.names(SURVEYS))
    surveys: list[Surveyed] = []
    missing: list[Listed] = []
    for file in listed:
        name = survey_name(file)
        try:
            surveys.append(Surveyed.from_bytes(folder.read(name) if name in existing else None))
        except (ValueError, KeyError, TypeError):  # it is not there, damaged, or of another version
            missing.append(file)
    return surveys, missing


def survey_files(
    listed: Sequence[Listed], storage: StorageOptions | None = None, folder_name: str = ""
) -> list[Surveyed]:
    """Surveys of files, made in this process unless the folder `folder_name` has them.

    Without a folder this process remembers some, for it is asked for every scan of the same files.
    """
    found: list[Surveyed] = []
    if folder_name:
        folder = Folder(folder_name, storage)
        found, missing = known_surveys(folder, listed)
        for order in survey_orders(missing, folder):
            found += survey_all(order)
        return found
    for file in listed:
        key = file, whole_path(file.path)
        surveyed = _remembered.get(key)
        if surveyed is None:
            surveyed = survey(*file, opener=Opener(storage or {}))
            if surveyed.error is None and file.modified_ns is not None and not is_remote(file.path):
                _remembered[key] = surveyed
        found.append(replace(surveyed))
    total_bytes = sum(len(remembered.marks) + MIN_SIZE for remembered in _remembered.values())
    while total_bytes > MAX_REMEMBERED:  # older ones make room
        total_bytes -= len(_remembered.pop(next(iter(_remembered))).marks) + MIN_SIZE
    return found


_remembered: dict[tuple[Listed, str], Surveyed] = {}
"""Surveys of files on this machine."""


def survey_name(file: Listed | Surveyed) -> str:
    """The name of a file's survey in its folder."""
    facts = json.dumps([FORM, file.path, file.size, file.modified_ns])
    return f"{SURVEYS}/{hashlib.blake2b(facts.encode(), digest_size=10).hexdigest()}.survey"
