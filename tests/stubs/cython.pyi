"""The names of Cython's pure Python mode as mypy takes them: C numbers are Python's.

Cython itself checks their sizes, and that a module agrees with its .pxd file.
"""

import builtins
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

_Decorated = TypeVar("_Decorated")
_Value = TypeVar("_Value")

compiled: builtins.bool
NULL: Any

bint: TypeAlias = builtins.bool
double: TypeAlias = builtins.float
int: TypeAlias = builtins.int
long: TypeAlias = builtins.int
longlong: TypeAlias = Any  # there are views of these: `longlong[::1]`
Py_ssize_t: TypeAlias = builtins.int
schar: TypeAlias = builtins.int
short: TypeAlias = builtins.int
size_t: TypeAlias = builtins.int
uchar: TypeAlias = Any
uint: TypeAlias = builtins.int
ulonglong: TypeAlias = builtins.int
ushort: TypeAlias = builtins.int

def __getattr__(name: str) -> Any: ...
def address(value: Any) -> Any: ...
def boundscheck(checked: builtins.bool) -> Any: ...
def cast(kind: Any, value: Any, **directives: Any) -> Any: ...
def ccall(function: _Decorated) -> _Decorated: ...
def cclass(kind: _Decorated) -> _Decorated: ...
def cfunc(function: _Decorated) -> _Decorated: ...
def declare(kind: Any, value: _Value = ..., **directives: Any) -> _Value: ...
def exceptval(*value: Any, check: builtins.bool = ...) -> Callable[[_Decorated], _Decorated]: ...
def freelist(size: builtins.int) -> Callable[[_Decorated], _Decorated]: ...
def inline(function: _Decorated) -> _Decorated: ...
