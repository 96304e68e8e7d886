"""The names of Cython's pure Python mode as mypy takes them: C numbers are Python's.

Cython itself checks their sizes, and that a module agrees with its .pxd file.
"""

import builtins
from typing import Any, TypeAlias, TypeVar, overload

_Decorated = TypeVar("_Decorated")
_Value = TypeVar("_Value")

compiled: builtins.bool
NULL: Any

bint: TypeAlias = Any  # True, False, or what C makes of numbers
double: TypeAlias = builtins.float
int: TypeAlias = Any
long: TypeAlias = builtins.int
longlong: TypeAlias = Any  # views of it too: `longlong[::1]`
Py_ssize_t: TypeAlias = builtins.int
schar: TypeAlias = builtins.int
short: TypeAlias = Any  # likewise
size_t: TypeAlias = builtins.int
uchar: TypeAlias = Any  # likewise
uint: TypeAlias = builtins.int
ulonglong: TypeAlias = Any  # likewise
ushort: TypeAlias = Any  # likewise

def address(value: Any) -> Any: ...

char: TypeAlias = Any
const: Any
p_const_uchar: TypeAlias = Any

class _Directive:
    """A decorator, or the block of a `with`."""

    def __call__(self, function: _Decorated) -> _Decorated: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...

def boundscheck(checked: builtins.bool) -> _Directive: ...
def cast(kind: Any, value: Any, **directives: Any) -> Any: ...
def ccall(function: _Decorated) -> _Decorated: ...
def cclass(kind: _Decorated) -> _Decorated: ...
def cfunc(function: _Decorated) -> _Decorated: ...
@overload
def declare(kind: Any, *, visibility: str) -> Any: ...
@overload
def declare(kind: Any, value: _Value) -> _Value: ...
def exceptval(*value: Any, check: builtins.bool = ...) -> _Directive: ...
def final(kind: _Decorated) -> _Decorated: ...
def freelist(size: builtins.int) -> _Directive: ...
def inline(function: _Decorated) -> _Decorated: ...
def no_gc(kind: _Decorated) -> _Decorated: ...
