"""The code of a class that is in no file: it was typed, or stands in cells of a notebook.

Its text is collected from the class itself: its functions, as they stand in their cells, its
values and its bases, and the same of everything that they use. So the text changes when a helper in
another cell does, and it stays when cells are moved or when other cells change.
"""

from __future__ import annotations

import dataclasses
import dis
import enum
import functools
import inspect
import sys
import sysconfig
import textwrap
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from fsdil_bench.errors import RequestError

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))
#: Members of a class that say nothing about what it does.
_SILENT = {
    "__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations__",
    "__annotations_cache__", "__classcell__", "__conditional_annotations__",
    "__dataclass_fields__", "__dataclass_params__", "__dict__", "__doc__", "__firstlineno__",
    "__match_args__", "__module__", "__orig_bases__", "__parameters__", "__qualname__",
    "__replace__", "__static_attributes__", "__weakref__", "_abc_impl",
}  # fmt: skip
_HARNESS = "fsdil_bench"
#: Packages whose classes of methods are known by their files.
_BUILT_IN = "fsdil_methods"


def in_no_file(made: object) -> bool:
    """Whether a class or function was defined where there is no file, as in a notebook."""
    if not (inspect.isclass(made) or inspect.isfunction(made)):
        return False
    module = sys.modules.get(made.__module__)
    # Modules that are compiled into Python have no file, and a spec.
    return getattr(module, "__file__", None) is None and getattr(module, "__spec__", None) is None


@dataclasses.dataclass
class CellCode:
    """What was collected: the text of what is in no file, modules of the user's own, and classes of
    built-in methods as factories."""

    lines: list[str] = dataclasses.field(default_factory=list)
    files: set[Path] = dataclasses.field(default_factory=set)
    factories: set[str] = dataclasses.field(default_factory=set)


def collect(made: Any, essence: Callable[[str], str]) -> CellCode:
    """The code of a class or function that is in no file; `essence` drops comments and layout."""
    collector = _Collector(made.__qualname__, essence)
    collector.add(made, made.__qualname__)
    return collector.found


class _Collector:
    def __init__(self, owner: str, essence: Callable[[str], str]) -> None:
        self.found = CellCode()
        self._owner = owner
        self._essence = essence
        self._seen: dict[int, str] = {}
        self._kept: list[Any] = []  # so that no id is given twice

    def add(self, value: Any, name: str) -> None:
        """Add the lines of a value that is called `name`."""
        if isinstance(value, _PLAIN):
            self._say(f"{name} = {value!r}")
        elif id(value) in self._seen:
            self._say(f"{name} = {self._seen[id(value)]}")
        else:
            self._seen[id(value)] = name
            self._kept.append(value)
            self._add_new(value, name)

    def _add_new(self, value: Any, name: str) -> None:
        if isinstance(value, ModuleType):
            self._module(value, name)
        elif isinstance(value, functools.cached_property):
            self.add(value.func, f"{name}.func")
        elif isinstance(value, type) or (inspect.isroutine(value) and hasattr(value, "__module__")):
            self._definition(value, name)
        elif isinstance(value, property):
            for part in ("fget", "fset", "fdel"):
                self.add(getattr(value, part), f"{name}.{part}")
        elif isinstance(value, enum.Enum):
            self.add(type(value), f"type of {name}")
            self._say(f"{name} = {value.name}")
        elif dataclasses.is_dataclass(value):
            self.add(type(value), f"type of {name}")
            for each in dataclasses.fields(value):
                self.add(getattr(value, each.name), f"{name}.{each.name}")
        elif isinstance(value, functools.partial):
            self._items(name, [value.func, value.args, value.keywords])
        elif isinstance(value, Mapping):
            self._items(name, [part for item in value.items() for part in item])
        elif isinstance(value, list | tuple):
            self._items(name, value)
        elif isinstance(value, set | frozenset) and all(isinstance(v, _PLAIN) for v in value):
            self._items(name, sorted(value, key=repr))
        elif isinstance(value, Path) or _is_named_constant(value):
            self._say(f"{name} = {value}")
        else:
            raise RequestError(
                f"the code of {self._owner} is not known: it uses '{name}', a "
                f"{type(value).__qualname__} from outside of it",
                "Make it in the class, for instance in __init__, or put the method into a file.",
            )

    def _say(self, line: str) -> None:
        self.found.lines.append(line)

    def _items(self, name: str, values: Iterable[Any]) -> None:
        values = list(values)
        self._say(f"{name} has {len(values)}")
        for number, value in enumerate(values):
            self.add(value, f"{name}[{number}]")

    def _module(self, module: ModuleType, name: str) -> None:
        self._say(f"{name} = module {module.__name__}")
        if file := _own_file(module):
            self.found.files.add(file)

    def _definition(self, value: Any, name: str) -> None:
        """A class, or something that can be called."""
        inner = getattr(value, "__func__", None)  # a static or class method, or a bound one
        if inner is not None:
            self._say(f"{name} is a {type(value).__name__}")
            self.add(inner, name)
            if inspect.ismethod(value) and not isinstance(value.__self__, type):
                self.add(value.__self__, f"{name}.__self__")
        elif not isinstance(value, type) and _is_wrapper(value):
            # What a decorator of a library made: its line stands above the function.
            self.add(value.__wrapped__, name)
        elif not in_no_file(value):
            self._elsewhere(value, name)
        elif isinstance(value, type):
            self._class(value, name)
        else:
            self._function(value, name)

    def _elsewhere(self, value: Any, name: str) -> None:
        """What comes from a module: its name stands for it, and the file where it is one's own."""
        module = str(getattr(value, "__module__", ""))
        qualified = f"{module}:{getattr(value, '__qualname__', '')}"
        self._say(f"{name} = {qualified}")
        if module.partition(".")[0] == _BUILT_IN:
            self.found.factories.add(qualified)
        elif module in sys.modules and (file := _own_file(sys.modules[module])):
            self.found.files.add(file)

    def _class(self, value: type, name: str) -> None:
        self._say(f"class {name}")
        for number, base in enumerate(value.__bases__):
            self.add(base, f"{name}.__bases__[{number}]")
        fields = vars(value).get("__dataclass_fields__", {})
        for each in fields.values():
            self._say(f"{name} has the field {each.name}: {_type_name(each.type)}")
            for what in (each.default, each.default_factory):
                if what is not dataclasses.MISSING:
                    self.add(what, f"{name}.{each.name}")
        if issubclass(value, enum.Enum):
            self._items(f"{name}.members", [(each.name, each.value) for each in value])
            return
        for member, what in sorted(vars(value).items()):
            if member not in _SILENT and member not in fields and not _is_generated(what):
                self.add(what, f"{name}.{member}")

    def _function(self, function: Any, name: str) -> None:
        if not isinstance(function, FunctionType):
            self._say(f"{name} = {getattr(function, '__qualname__', name)}")
            return
        self._say(f"{name} is\n{self._text(function)}")
        self.add(function.__defaults__, f"{name}.__defaults__")
        self.add(function.__kwdefaults__, f"{name}.__kwdefaults__")
        free = function.__code__.co_freevars
        for variable, cell in zip(free, function.__closure__ or (), strict=True):
            if variable != "__class__":
                self.add(_content(cell), variable)
        for module in sorted(_imported(function.__code__)):
            if file := _file_on_path(module):
                self.found.files.add(file)
        for used in sorted(_globals_of(function.__code__)):
            if used in function.__globals__:
                self.add(function.__globals__[used], used)

    def _text(self, function: FunctionType) -> str:
        try:
            # `unwrap` would skip what a decorator adds, which is code, too.
            lines, _ = inspect.getsourcelines(function.__code__)
        except (OSError, TypeError):
            raise RequestError(
                f"the code of {self._owner} is not known: Python does not keep what is typed here",
                "Put the method into a file, or use a notebook.",
            ) from None
        text = textwrap.dedent("".join(lines))
        try:
            return self._essence(text)
        except (tokenize.TokenError, SyntaxError):  # a lambda in the middle of an expression
            return text.strip()


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that has no value yet
        return None


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and all inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _globals_of(code: CodeType) -> set[str]:
    """The global names that a function reads."""
    return {
        step.argval
        for each in _codes(code)
        for step in dis.get_instructions(each)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and not step.argval.startswith("__")
    }


def _imported(code: CodeType) -> set[str]:
    """The modules that a function imports when it runs."""
    return {
        step.argval
        for each in _codes(code)
        for step in dis.get_instructions(each)
        if step.opname == "IMPORT_NAME" and step.argval
    }


def _is_generated(what: Any) -> bool:
    """Whether `dataclass` has made it: its fields say the same."""
    if not isinstance(what, FunctionType):
        return False
    inner = inspect.unwrap(what)
    return isinstance(inner, FunctionType) and inner.__code__.co_filename == "<string>"


def _is_wrapper(value: Any) -> bool:
    """Whether a decorator has put something installed in a function's place: `torch.no_grad()`,
    `lru_cache`."""
    if not hasattr(value, "__wrapped__"):
        return False
    if not isinstance(value, FunctionType):
        return True
    return _is_library(Path(value.__code__.co_filename))


def _is_named_constant(value: Any) -> bool:
    """A type of number, a device: its name says all."""
    kind = type(value)
    return kind.__module__.partition(".")[0] in ("numpy", "torch") and (
        kind.__name__ in ("dtype", "device", "layout", "memory_format")
        or kind.__name__.endswith("DType")
    )


def _type_name(kind: Any) -> str:
    return kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))


def _own_file(module: ModuleType) -> Path | None:
    """The file of a module that is neither installed nor a part of Python and the harness."""
    file = getattr(module, "__file__", None)
    return None if file is None or _is_installed(module.__name__, Path(file)) else Path(file)


def _file_on_path(module: str) -> Path | None:
    """The file of a module of one's own, found without importing it."""
    for place in sys.path:
        base = Path(place or ".", *module.split("."))
        for file in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
            if file.is_file():
                return None if _is_installed(module, file) else file.absolute()
    return None


def _is_installed(module: str, file: Path) -> bool:
    if module.partition(".")[0] in (_HARNESS, _BUILT_IN, "fsdil_scenarios"):
        return True
    return file.suffix != ".py" or _is_library(file)


def _is_library(file: Path) -> bool:
    """Whether a file is installed, or comes with Python."""
    if {"site-packages", "dist-packages"} & set(file.parts):
        return True
    return file.absolute().is_relative_to(sysconfig.get_paths()["stdlib"])
