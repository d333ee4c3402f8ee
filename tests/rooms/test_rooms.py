"""The repository keeps the law of rooms."""

import subprocess

import checker


def breaches(found: list[str]) -> str:
    return "\n".join(found)


def test_declarations_are_within_the_law(rooms, book):
    assert not (found := checker.declarations(rooms, book)), breaches(found)


def test_rooms_form_no_cycle(rooms):
    assert not (found := checker.cycles(rooms)), breaches(found)


def test_files_include_what_their_room_declares(root, rooms, book):
    assert not (found := checker.file_includes(root, rooms, book)), breaches(found)


def test_pure_rooms_refer_to_nothing_impure(build, rooms, book):
    archives = [(room.path, archive) for room in rooms.values() if room.kind == "PURE"
                for archive in (build / room.path).glob("libroom_*.a")]
    assert archives, f"{build} holds no built pure room; run tools/make first"
    found = [text for room, archive in archives for text in checker.impure_symbols(room, archive, book)]
    assert not found, breaches(found)


def test_every_room_links_with_what_it_declares(build):
    done = subprocess.run(["ninja", "-C", build, "link_tests"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def test_no_banned_call(root, book):
    assert not (found := checker.banned_calls(root, book, root / "tests/rooms/allow.tsv")), breaches(found)


def test_the_allow_list_only_shrinks(root):
    """Against the parent commit, where the checkout has one."""
    before = subprocess.run(["git", "-C", root, "show", "HEAD~1:tests/rooms/allow.tsv"], capture_output=True, text=True)
    now = (root / "tests/rooms/allow.tsv").read_text()
    assert not (found := checker.grown(before.stdout if before.returncode == 0 else now, now)), breaches(found)
