"""The law of rooms as a program: reads the sources, what CMake was told, and the objects, and names every breach.

Every function takes what it judges and returns a list of sentences; an empty list is innocence. test_checker.py plants
one breach of each kind and expects it to be named.
"""

import collections
import dataclasses
import fnmatch
import pathlib
import re
import subprocess

TOPS = ("messages", "optimizer", "cluster-config", "actors", "tools")
PROGRAMS = ("tools/signalbox/", "tools/solver/")  # what puts the rooms together belongs to none
SOURCES = (".cpp", ".hpp", ".c", ".h")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def rows(path: pathlib.Path) -> list[list[str]]:
    lines = (line.rstrip("\n") for line in path.read_text().splitlines())
    return [line.split("\t") for line in lines if line and not (line.startswith("# ") or line == "#")]


@dataclasses.dataclass(frozen=True)
class Room:
    """One room: as declared in CMake (`uses` are rooms, `links` CMake targets)."""
    path: str
    kind: str
    uses: frozenset[str]
    links: frozenset[str]


@dataclasses.dataclass(frozen=True)
class Law:
    """What one row of law.tsv allows."""
    pattern: str
    kind: str
    rooms: tuple[str, ...]
    libraries: frozenset[str]

    def allows_room(self, room: str) -> bool:
        return any(fnmatch.fnmatchcase(room, allowed) for allowed in self.rooms)


@dataclasses.dataclass(frozen=True)
class Book:
    """The tables of this folder."""
    laws: list[Law]
    libraries: dict[str, tuple[frozenset[str], tuple[str, ...]]]  # name -> CMake targets, header prefixes
    impure: list[tuple[str, re.Pattern, str]]
    banned: list[tuple[str, re.Pattern, str]]

    @staticmethod
    def read(folder: pathlib.Path) -> "Book":
        laws = [Law(room, kind, tuple(uses.split()), frozenset(libs.split()))
                for room, kind, uses, libs in rows(folder / "law.tsv")]
        libraries = {name: (frozenset(targets.split()), tuple(prefixes.split()))
                     for name, targets, prefixes in rows(folder / "libraries.tsv")}
        impure = [(what, re.compile(pattern), instead) for what, pattern, instead in rows(folder / "impure.tsv")]
        banned = [(pattern, re.compile(pattern), instead) for pattern, instead in rows(folder / "banned.tsv")]
        return Book(laws, libraries, impure, banned)

    def law_of(self, room: str) -> Law | None:
        def matches(pattern: str) -> bool:
            parts, given = pattern.split("/"), room.split("/")
            return len(parts) == len(given) and all(p in ("*", g) for p, g in zip(parts, given))
        exact = [law for law in self.laws if law.pattern == room]
        return (exact or [law for law in self.laws if matches(law.pattern)] or [None])[0]

    def library_of_header(self, header: str) -> str | None:
        return next((name for name, (_, prefixes) in self.libraries.items() if header.startswith(prefixes)), None)

    def library_of_target(self, target: str) -> str | None:
        return next((name for name, (targets, _) in self.libraries.items() if target in targets), None)


def read_rooms(rooms_tsv: pathlib.Path) -> dict[str, Room]:
    """What CMake was told: build/<preset>/rooms.tsv."""
    found = {}
    for line in rooms_tsv.read_text().splitlines():
        if line:
            path, kind, uses, links = line.split("\t")
            found[path] = Room(path, kind, frozenset(filter(None, uses.split(","))), frozenset(filter(None, links.split(","))))
    return found


def room_of(path: str, rooms: dict[str, Room]) -> Room | None:
    """The innermost room that a file (relative to the root) lies in."""
    return next((rooms[str(p)] for p in pathlib.PurePath(path).parents if str(p) in rooms), None)


def sources(root: pathlib.Path, tops=TOPS) -> list[pathlib.Path]:
    return sorted(p for top in tops for p in (root / top).rglob("*") if p.suffix in SOURCES and p.is_file())


def includes(text: str) -> list[tuple[bool, str]]:
    return [(quote == '"', header) for quote, header in INCLUDE.findall(text)]


def declarations(rooms: dict[str, Room], book: Book) -> list[str]:
    """Each room's declared uses, libraries and kind are within the law."""
    found = []
    for room in rooms.values():
        law = book.law_of(room.path)
        if law is None:
            found.append(f"{room.path}: law.tsv does not know this room; add its row")
            continue
        if room.kind != law.kind:
            found.append(f"{room.path}: declared {room.kind}, the law says {law.kind}")
        for used in sorted(room.uses):
            if used not in rooms:
                found.append(f"{room.path}: uses {used}, which is no room")
                continue
            if not law.allows_room(used):
                found.append(f"{room.path}: may not use {used}")
            if room.kind == "PURE" and rooms[used].kind == "SHELL":
                found.append(f"{room.path}: is pure and uses the shell {used}")
        for target in sorted(room.links):
            library = book.library_of_target(target)
            if library is None:
                found.append(f"{room.path}: links {target}, which libraries.tsv does not know")
            elif library not in law.libraries:
                found.append(f"{room.path}: may not link {library}")
    return found


def cycles(rooms: dict[str, Room]) -> list[str]:
    """Rooms form no cycle."""
    found, state = [], {}

    def visit(path: str, trail: list[str]) -> None:
        if state.get(path) == "done":
            return
        if path in trail:
            found.append("cycle: " + " -> ".join(trail[trail.index(path):] + [path]))
            return
        for used in sorted(rooms[path].uses & rooms.keys()):
            visit(used, trail + [path])
        state[path] = "done"

    for path in sorted(rooms):
        visit(path, [])
    return found


def file_includes(root: pathlib.Path, rooms: dict[str, Room], book: Book) -> list[str]:
    """Each file lies in a room and includes only that room, the rooms it declares, and libraries that the law allows."""
    found = []
    for path in sources(root):
        name = str(path.relative_to(root))
        room = room_of(name, rooms)
        if room is None:
            if not name.startswith(PROGRAMS):
                found.append(f"{name}: lies in no room; give its folder a CMakeLists.txt with signalbox_room()")
            continue
        for ours, header in includes(path.read_text()):
            breach = judge_include(ours, header, room, rooms, book)
            if breach:
                found.append(f"{name}: includes {header}: {breach}")
    return found


def judge_include(ours: bool, header: str, room: Room, rooms: dict[str, Room], book: Book) -> str | None:
    if ours:
        owner = room_of(header, rooms)
        if owner is None:
            return "that is in no room; write includes from the root of the repository"
        if owner.path != room.path and owner.path not in room.uses:
            return f"{room.path} does not declare USES {owner.path}"
        return None
    law = book.law_of(room.path)
    library = book.library_of_header(header)
    if library is None and ("/" in header or header.endswith((".h", ".hpp"))):
        return "libraries.tsv does not know this header"
    if library is not None and law is not None and library not in law.libraries:
        return f"{room.path} may not use {library}"
    if room.kind == "PURE":
        for what, pattern, instead in book.impure:
            if what == "header" and pattern.fullmatch(header):
                return f"{room.path} is pure; use {instead}"
    return None


def undefined_symbols(archive: pathlib.Path) -> set[str]:
    """Demangled names that an archive's objects refer to, without those that its other objects define."""
    text = subprocess.run(["nm", "-C", str(archive)], check=True, capture_output=True, text=True).stdout
    wanted, defined = set(), set()
    for line in text.splitlines():
        match = re.match(r"^[0-9a-f ]{16} (\w) (.+)$", line)
        if match:
            name = match[2].split("@")[0]
            (wanted if match[1] in "Uw" else defined).add(name)
    return wanted - defined


def impure_symbols(room: str, archive: pathlib.Path, book: Book) -> list[str]:
    """A pure room's own objects refer to no clock, randomness, file, socket, thread, log or environment."""
    return [f"{room}: refers to {symbol}; use {instead}"
            for symbol in sorted(undefined_symbols(archive))
            for what, pattern, instead in book.impure if what == "symbol" and pattern.fullmatch(symbol)]


def banned_calls(root: pathlib.Path, book: Book, allow_tsv: pathlib.Path) -> list[str]:
    """No banned call outside the allow-list, and the allow-list is exact."""
    allowed = {(file, pattern): (int(count), why) for file, pattern, count, why in rows(allow_tsv)}
    counted: collections.Counter = collections.Counter()
    instead_of = {}
    for path in sources(root, TOPS + ("tests",)):
        text = path.read_text()
        for name, pattern, instead in book.banned:
            counted[(str(path.relative_to(root)), name)] += len(pattern.findall(text))
            instead_of[name] = instead
    found = []
    for (file, name), count in sorted(counted.items()):
        limit = allowed.get((file, name), (0, ""))[0]
        if count > limit:
            found.append(f"{file}: /{name}/ {count} times, allowed {limit}; use {instead_of[name]}")
        elif count < limit:
            found.append(f"{file}: /{name}/ {count} times, allowed {limit}; lower the count in allow.tsv")
    return found + [f"allow.tsv: {file} is gone; remove its line" for file, _ in allowed if not (root / file).exists()]


def grown(before: str, now: str) -> list[str]:
    """Lines of the allow-list that are new or allow more than before."""
    def table(text: str) -> dict[tuple[str, str], int]:
        cells = [line.split("\t") for line in text.splitlines() if line and not line.startswith("# ")]
        return {(file, pattern): int(count) for file, pattern, count, _ in cells}
    old = table(before)
    return [f"allow.tsv: {file} /{pattern}/ grew from {old.get((file, pattern), 0)} to {count}; the list may only shrink"
            for (file, pattern), count in table(now).items() if count > old.get((file, pattern), 0)]
