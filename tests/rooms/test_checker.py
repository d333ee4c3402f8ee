"""The test of the test: each kind of breach, planted in a small repository of its own, is named."""

import pathlib
import subprocess

import checker
import pytest
from checker import Book, Room

ROOMS = [
    Room("messages/base", "PURE", frozenset(), frozenset({"fmt::fmt"})),
    Room("messages/bus", "SHELL", frozenset({"messages/base"}), frozenset()),
    Room("optimizer/model", "PURE", frozenset({"messages/base"}), frozenset()),
]
INNOCENT = {
    "messages/base/ids.hpp": "#include <fmt/format.h>\n#include <string>\n",
    "messages/bus/node.hpp": '#include <zmq.hpp>\n#include <thread>\n#include "messages/base/ids.hpp"\n',
    "optimizer/model/plan.hpp": '#include <vector>\n#include "messages/base/ids.hpp"\n',
}


@pytest.fixture
def plant(tmp_path, root):
    """plant(files, rooms) -> every breach found in a repository of the innocent files with these on top."""
    def judge(files: dict[str, str], rooms: list[Room] = ROOMS, allow: str = "") -> list[str]:
        for name, text in (INNOCENT | files).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        (tmp_path / "allow.tsv").write_text(allow)
        book, by_path = Book.read(root / "tests/rooms"), {room.path: room for room in rooms}
        return (checker.declarations(by_path, book) + checker.cycles(by_path) +
                checker.file_includes(tmp_path, by_path, book) +
                checker.banned_calls(tmp_path, book, tmp_path / "allow.tsv"))
    return judge


def with_room(path: str, kind: str, uses: set[str], links: set[str] = frozenset()) -> list[Room]:
    return [room for room in ROOMS if room.path != path] + [Room(path, kind, frozenset(uses), frozenset(links))]


def test_the_innocent_are_innocent(plant):
    assert plant({}) == []


@pytest.mark.parametrize("name, text, breach", [
    ("a pure room with a clock", "#include <ctime>\n", "includes ctime: optimizer/model is pure"),
    ("a pure room with threads", "#include <thread>\n", "includes thread: optimizer/model is pure"),
    ("a pure room with randomness", "#include <random>\n", "use messages/base/rng.hpp"),
    ("a pure room with sockets", "#include <sys/socket.h>\n", "optimizer/model may not use posix"),
    ("a pure room with a shell", '#include "messages/bus/node.hpp"\n', "does not declare USES messages/bus"),
    ("a library that is not its", "#include <caf/all.hpp>\n", "optimizer/model may not use caf"),
    ("an unknown library", "#include <boost/asio.hpp>\n", "libraries.tsv does not know this header"),
    ("a relative include", '#include "ids.hpp"\n', "write includes from the root"),
    ("a banned call", "int x = std::stoi(text);\n", "use std::from_chars"),
], ids=lambda value: value.replace(" ", "-") if isinstance(value, str) and len(value) < 40 and "#" not in value else "")
def test_a_bad_file_is_named(plant, name, text, breach):
    assert any(breach in found for found in plant({"optimizer/model/planted.cpp": text})), name


@pytest.mark.parametrize("rooms, breach", [
    (with_room("optimizer/model", "PURE", {"messages/bus"}), "optimizer/model: may not use messages/bus"),
    (with_room("optimizer/model", "PURE", {"messages/bus"}), "is pure and uses the shell messages/bus"),
    (with_room("optimizer/model", "SHELL", {"messages/base"}), "declared SHELL, the law says PURE"),
    (with_room("optimizer/model", "PURE", {"messages/nothing"}), "which is no room"),
    (with_room("optimizer/model", "PURE", {"messages/base"}, {"Ceres::ceres"}), "may not link ceres"),
    (with_room("optimizer/model", "PURE", {"messages/base"}, {"Foo::foo"}), "libraries.tsv does not know"),
    (with_room("optimizer/new", "PURE", {"messages/base"}), "law.tsv does not know this room"),
    (with_room("messages/base", "PURE", {"optimizer/model"}), "cycle: messages/base -> optimizer/model -> messages/base"),
])
def test_a_bad_declaration_is_named(plant, rooms, breach):
    assert any(breach in found for found in plant({}, rooms))


def test_a_file_outside_every_room_is_named(plant):
    assert plant({"actors/stray/stray.hpp": "\n"}) == [
        "actors/stray/stray.hpp: lies in no room; give its folder a CMakeLists.txt with signalbox_room()"]


@pytest.mark.parametrize("code, symbol", [
    ("#include <chrono>\nlong f() { return std::chrono::steady_clock::now().time_since_epoch().count(); }", "steady_clock"),
    ("#include <cstdlib>\nconst char* f() { return std::getenv(\"HOME\"); }", "getenv"),
    ("#include <fstream>\nint f() { std::ifstream in(\"x\"); return in.get(); }", "basic_"),
    ("extern \"C\" int socket(int, int, int);\nint f() { return socket(1, 1, 0); }", "socket"),
    ("#include <random>\nunsigned f() { return std::random_device{}(); }", "random_device"),
    ("#include <thread>\nvoid f() { std::thread([] {}).join(); }", "thread"),
])
def test_an_impure_object_is_named(tmp_path, book, code, symbol):
    source, archive = tmp_path / "planted.cpp", tmp_path / "libroom_planted.a"
    source.write_text(code)
    subprocess.run(["g++", "-std=c++20", "-c", source, "-o", tmp_path / "planted.o"], check=True)
    subprocess.run(["ar", "rc", archive, tmp_path / "planted.o"], check=True)
    assert any(symbol in found for found in checker.impure_symbols("planted", archive, book))


def test_a_pure_object_is_innocent(tmp_path, book):
    source, archive = tmp_path / "planted.cpp", tmp_path / "libroom_planted.a"
    source.write_text("#include <map>\n#include <string>\n"
                      "std::map<std::string, int> f(std::string s) { return {{s, 1}}; }\n")
    subprocess.run(["g++", "-std=c++20", "-c", source, "-o", tmp_path / "planted.o"], check=True)
    subprocess.run(["ar", "rc", archive, tmp_path / "planted.o"], check=True)
    assert checker.impure_symbols("planted", archive, book) == []


def test_the_allow_list_is_exact(plant):
    pattern = next(name for name, _, instead in Book.read(pathlib.Path(__file__).parent).banned if "stoi" in name)
    file = {"optimizer/model/planted.cpp": "int x = std::stoi(text);\n"}
    assert plant(file, allow=f"optimizer/model/planted.cpp\t{pattern}\t1\told\n") == []
    assert any("lower the count" in found for found in plant(file, allow=f"optimizer/model/planted.cpp\t{pattern}\t2\told\n"))


def test_a_grown_allow_list_is_named():
    line = "a.cpp\t/x/\t{}\twhy\n"
    assert checker.grown(line.format(1), line.format(1)) == []
    assert checker.grown(line.format(2), line.format(1)) == []
    assert "grew from 1 to 2" in checker.grown(line.format(1), line.format(2))[0]
    assert "grew from 0 to 1" in checker.grown("", line.format(1))[0]
