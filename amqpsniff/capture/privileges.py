"""Rights given up once the socket is open: root is needed for that alone.

The process becomes the user who called sudo, or another one, and keeps no capability. Where that
would keep it from working (a user who cannot read this program or a key, or write where a capture
is to be written) it stays the user it is, and reports the reason.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterable
from pathlib import Path

from amqpsniff.capture.formats import shown
from amqpsniff.errors import UsageError

NOBODY = "nobody"
ROOT = "root"
OTHERS = "give another, or root to stay root"


def drop(
    user: str | None, writes_to: Iterable[Path] = (), reads: Iterable[Path] = ()
) -> str | None:
    """Become another user if this is root; returns why not, or None if done or not needed.

    `user` is a name, None for the caller of sudo, else `nobody`. Folders that are to be written to
    must be writable for the user, and files that are to be read readable, if they exist. Raises
    UsageError for an unknown user.
    """
    if os.geteuid() != 0 or user == ROOT:
        return None
    account = _entry(user)
    if account is None or account.pw_uid == 0:
        return "there is no other user to become"
    existing = [path for path in reads if path.exists()]
    obstacle = _obstacle(account, list(writes_to), existing)
    if obstacle is not None:
        if user is not None:
            raise UsageError(f"cannot run as {user}: {obstacle}; {OTHERS}")
        return obstacle
    os.setgroups(_groups(account))
    os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
    os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)
    return None


def _entry(user: str | None) -> pwd.struct_passwd | None:
    try:
        if user is not None:
            return pwd.getpwnam(user)
        sudo = os.environ.get("SUDO_UID", "")
        return pwd.getpwuid(int(sudo)) if sudo.isdigit() else pwd.getpwnam(NOBODY)
    except KeyError:
        if user is not None:
            text = f"cannot run as {shown(user)}: there is no such user; {OTHERS}"
            raise UsageError(text) from None
        return None


def _groups(entry: pwd.struct_passwd) -> list[int]:
    return os.getgrouplist(entry.pw_name, entry.pw_gid)


def _obstacle(entry: pwd.struct_passwd, folders: list[Path], files: list[Path]) -> str | None:
    """The reason why a user could not continue, or None."""
    readable = {Path(__file__).parent, Path(sys.prefix), Path(os.__file__).parent}
    groups = os.getgroups()
    os.setgroups(_groups(entry))
    os.setegid(entry.pw_gid)
    os.seteuid(entry.pw_uid)
    try:
        for path in sorted(readable):
            if not os.access(path, os.R_OK | os.X_OK, effective_ids=True):
                return f"{entry.pw_name} cannot read {path}"
        for path in files:
            if not os.access(path, os.R_OK, effective_ids=True):
                return f"{entry.pw_name} cannot read {path}"
        for path in folders:
            if not os.access(path, os.W_OK | os.X_OK, effective_ids=True):
                return f"{entry.pw_name} cannot write to {path}"
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)
    return None
