"""What each method does: the comments of everything.thrift as code.

The same object serves both runtimes: they only need an attribute by the name
of the method. An argument that did not arrive is None, which the runtimes
leave to the handler; it counts as zero here, as it does in Go.
"""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

NOT_FOUND, REJECTED, UNDECLARED = 1, 2, 3
PAUSE_LIMIT_MILLISECONDS = 10_000
REPEAT_LIMIT = 1 << 20


class WrongAnswer(Exception):
    """Asks the code below the handler to answer as Misbehaviour number `kind` says."""

    def __init__(self, kind: int) -> None:
        super().__init__(f"misbehaviour {kind}")
        self.kind = kind


class UndeclaredFailure(Exception):
    """A failure that no method declares."""


def _echo(value: Any) -> Any:
    return value


def _flip(value: int | None) -> int:
    return -1 - (value or 0)


class Rules:
    """Implements Everything, Base and Apache with the classes of one runtime."""

    echoScalars = echoContainers = echoDefaults = echoDrawing = echoTree = staticmethod(_echo)
    echoNothing = echoWords = echoNumbers = staticmethod(_echo)
    echoIdentified = echoContainerKeys = staticmethod(_echo)
    flipI8 = flipI16 = flipI32 = flipI64 = staticmethod(_flip)

    def __init__(self, types: Mapping[str, Callable[..., Any]]) -> None:
        self._types = types
        self._lock = threading.Lock()
        self._notes: dict[str, list[str]] = {}

    def ping(self) -> None:
        return None

    def describe(self) -> str:
        return "base of everything"

    def stamp(self, moment: int, level: int) -> int:
        return int(f"{moment}{level}")

    def invert(self, value: bool) -> bool:
        return not value

    def negate(self, value: float) -> float:
        return -value

    def repeatText(self, text: str, count: int) -> str:
        if len(text) * count > REPEAT_LIMIT:
            raise UndeclaredFailure(f"text would get longer than {REPEAT_LIMIT}")
        return text * count

    def flipBytes(self, value: bytes) -> bytes:
        return bytes(byte ^ 0xFF for byte in value)

    def nextColor(self, color: int) -> int:
        return color + 1

    def freshDefaults(self) -> Any:
        return self._types["Defaults"]()

    def scale(self, shape: Any, factor: float) -> Any:
        if shape.circle:
            circle = self._types["Circle"](center=shape.circle.center, radius=shape.circle.radius * factor)
            return self._types["Shape"](circle=circle)
        if shape.square:
            square = self._types["Square"](corner=shape.square.corner, side=shape.square.side * factor)
            return self._types["Shape"](square=square)
        return shape

    def sumTree(self, tree: Any) -> int:
        rest = [tree.rest] if tree.rest else []
        branches = [*(tree.children or []), *rest, *(tree.named or {}).values()]
        return int(tree.value) + sum(self.sumTree(branch) for branch in branches)

    def countWords(self, words: list[str]) -> dict[str, int]:
        return dict(Counter(words))

    def uniquePoints(self, points: list[Any]) -> set[Any]:
        return set(points)

    def labelPoints(self, points: Any) -> dict[Any, str]:
        return {point: f"{point.x}:{point.y}" for point in points}

    def measure(self, blobs: list[bytes]) -> dict[bytes, int]:
        return {blob: len(blob) for blob in blobs}

    def grid(self, rows: int, columns: int) -> list[list[int]]:
        return [[row * columns + column for column in range(columns)] for row in range(rows)]

    def joinArguments(self, fifth: str, first: int, third: list[bool]) -> str:
        words = ["yes" if value else "no" for value in third]
        return "/".join([str(first), *words, fifth])

    def describeStrict(self, value: Any) -> str:
        return f"{value.id}:{value.name}"

    def fail(self, failure: int, subject: str) -> str:
        self._fail(failure, subject)
        return subject.upper() + "!"

    def failVoid(self, failure: int, subject: str) -> None:
        self._fail(failure, subject)

    def failUndeclared(self, failure: int) -> int:
        self._fail(failure, "undeclared")
        return 0

    def note(self, topic: str, text: str) -> None:
        with self._lock:
            self._notes.setdefault(topic, []).append(text)

    def failQuietly(self, topic: str) -> None:
        raise UndeclaredFailure(topic)

    def notes(self, topic: str) -> list[str]:
        with self._lock:
            return list(self._notes.get(topic, []))

    def pause(self, milliseconds: int) -> int:
        time.sleep(min(milliseconds, PAUSE_LIMIT_MILLISECONDS) / 1000)
        return milliseconds

    def misbehave(self, kind: int) -> int:
        if kind:
            raise WrongAnswer(kind)
        return 1

    def flipUuid(self, value: uuid.UUID) -> uuid.UUID:
        return uuid.UUID(bytes=self.flipBytes(value.bytes))

    def nilUuid(self) -> uuid.UUID:
        return uuid.UUID(int=0)

    def _fail(self, failure: int, subject: str) -> None:
        if failure == NOT_FOUND:
            raise self._types["NotFound"](what=subject)
        if failure == REJECTED:
            raise self._types["Rejected"](reason=subject, code=409, details=[])
        if failure == UNDECLARED:
            raise UndeclaredFailure(subject)
