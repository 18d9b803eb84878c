"""Where the bytes come from (SPEC 8): nothing unsafe is read, nothing is left out in silence."""

import io
import os
import struct
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.mirror.reading import tree
from memory.mirror.reading.squad import read_tree
from memory.mirror.reading.tree import (
    NotASquadTree,
    SourceTree,
    Unreadable,
    UnsafeTree,
    read_folder,
    read_zip,
)
from tests.memory.mirror.files import zipped

LEDGER = "# Decisions\n\n### 2026-03-01: Use it\n**By:** Ana\n\nYes.\n"


def contents(read: SourceTree) -> dict[str, bytes]:
    return {file.path: file.read() for file in read.files}


def written(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


FILES = {".squad/agents/ana/charter.md": "# Ana", ".squad/decisions.md": LEDGER}
GOOD_ZIP = zipped(FILES).getvalue()
BYTES = {name: content.encode() for name, content in FILES.items()}


def test_a_folder_that_holds_the_root_and_the_root_itself_read_alike(tmp_path):
    written(tmp_path, FILES)
    assert contents(read_folder(tmp_path)) == contents(read_folder(tmp_path / ".squad")) == BYTES
    assert read_folder(tmp_path).root == ".squad"


def test_the_older_root_is_read_and_keeps_its_name(tmp_path):
    written(tmp_path, {".ai-team/decisions.md": LEDGER})
    read = read_folder(tmp_path)
    assert (read.root, contents(read)) == (".ai-team", {".ai-team/decisions.md": LEDGER.encode()})


def test_of_two_roots_the_older_one_is_listed_and_not_read(tmp_path):
    written(tmp_path, {".squad/decisions.md": LEDGER, ".ai-team/decisions.md": LEDGER})
    report = read_tree(read_folder(tmp_path))
    assert [record.path for record in report.records] == [".squad/decisions.md"]
    assert [(item.path, item.reason) for item in report.unread] == [(".ai-team/decisions.md", "other_root")]


def test_a_folder_by_another_name_with_a_ledger_in_it_is_a_root(tmp_path):
    written(tmp_path / "copy-of-squad", {"decisions.md": LEDGER})
    assert contents(read_folder(tmp_path / "copy-of-squad")) == {".squad/decisions.md": LEDGER.encode()}


@pytest.mark.parametrize("prefix", ["", "team-main/"])
def test_a_zip_reads_like_the_folder_even_inside_one_wrapping_folder(prefix):
    read = read_zip(zipped({prefix + name: content for name, content in FILES.items()}))
    assert (read.root, contents(read)) == (".squad", BYTES)


def test_a_zip_of_the_content_of_a_root_is_read():
    assert contents(read_zip(zipped({"decisions.md": LEDGER}))) == {".squad/decisions.md": LEDGER.encode()}


def test_our_context_folder_is_read_with_the_root_and_the_rest_of_the_project_is_not(tmp_path):
    written(
        tmp_path,
        {".squad/decisions.md": LEDGER, ".agentweaver/context/patterns.md": "x", "src/main.py": "x"},
    )
    assert sorted(contents(read_folder(tmp_path))) == [
        ".agentweaver/context/patterns.md",
        ".squad/decisions.md",
    ]


@pytest.mark.parametrize("files", [{"src/main.py": "x"}, {}])
def test_what_is_no_squad_tree_is_refused(tmp_path, files):
    with pytest.raises(NotASquadTree):
        read_folder(written(tmp_path, files))
    with pytest.raises(NotASquadTree):
        read_zip(zipped(files))


def test_a_path_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(NotASquadTree):
        read_folder(tmp_path / "nowhere")


def test_symlinks_are_listed_and_never_followed(tmp_path):
    secret = tmp_path / "secret.md"
    secret.write_text("### 2026-01-01: Secret\n**By:** Eve\n\nsecret")
    folder = written(tmp_path / "project", FILES)
    (folder / ".squad/decisions/inbox").mkdir(parents=True)
    (folder / ".squad/decisions/inbox/eve.md").symlink_to(secret)
    (folder / ".squad/agents/eve").symlink_to(tmp_path)
    report = read_tree(read_folder(folder))
    assert {item.path: item.reason for item in report.unread} == {
        ".squad/agents/eve": "symlink",
        ".squad/decisions/inbox/eve.md": "symlink",
    }
    assert "secret" not in repr(report.records)


def test_a_root_that_is_a_symlink_is_refused(tmp_path):
    written(tmp_path / "other", FILES)
    (tmp_path / "project").mkdir()
    (tmp_path / "project/.squad").symlink_to(tmp_path / "other/.squad")
    with pytest.raises(UnsafeTree, match="symlink"):
        read_folder(tmp_path / "project")


def test_a_file_that_becomes_a_symlink_after_listing_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("secret")
    read = read_folder(written(tmp_path / "project", FILES))
    ledger = tmp_path / "project/.squad/decisions.md"
    ledger.unlink()
    ledger.symlink_to(tmp_path / "secret")
    with pytest.raises(Unreadable):
        contents(read)


def test_a_folder_that_becomes_a_symlink_after_listing_is_not_followed(tmp_path):
    written(tmp_path / "elsewhere", {"charter.md": "secret"})
    read = read_folder(written(tmp_path / "project", FILES))
    (tmp_path / "project/.squad/agents/ana").rename(tmp_path / "gone")
    (tmp_path / "project/.squad/agents/ana").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unreadable):
        contents(read)


def test_a_pipe_is_listed_and_not_waited_for(tmp_path):
    folder = written(tmp_path, FILES)
    os.mkfifo(folder / ".squad/agents/ana/history.md")
    report = read_tree(read_folder(folder))
    assert [(item.path, item.reason) for item in report.unread] == [
        (".squad/agents/ana/history.md", "not_a_file")
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_reported_and_the_rest_comes_in(tmp_path):
    folder = written(tmp_path, FILES)
    (folder / ".squad/decisions.md").chmod(0)
    report = read_tree(read_folder(folder))
    assert [(item.path, item.reason) for item in report.unread] == [(".squad/decisions.md", "unreadable")]
    assert [record.kind for record in report.records] == ["charter"]


def test_a_file_that_vanishes_is_reported_and_the_rest_comes_in(tmp_path):
    read = read_folder(written(tmp_path, FILES))
    (tmp_path / ".squad/decisions.md").unlink()
    report = read_tree(read)
    assert [(item.path, item.reason) for item in report.unread] == [(".squad/decisions.md", "unreadable")]
    assert [record.kind for record in report.records] == ["charter"]


def test_a_name_that_is_not_utf_8_is_reported_in_readable_form(tmp_path):
    folder = written(tmp_path, FILES)
    name = os.fsencode(folder / ".squad") + b"/bad-\xff.txt"
    os.close(os.open(name, os.O_CREAT))
    assert [item.path for item in read_tree(read_folder(folder)).unread] == [".squad/bad-�.txt"]


def test_a_file_over_the_bound_is_reported_and_the_rest_comes_in(tmp_path, monkeypatch):
    monkeypatch.setattr(tree, "MAX_FILE_BYTES", 100)
    files = {**FILES, ".squad/identity/now.md": "x" * 101}
    for read in (read_folder(written(tmp_path, files)), read_zip(zipped(files))):
        report = read_tree(read)
        assert [(item.path, item.reason) for item in report.unread] == [
            (".squad/identity/now.md", "too_large")
        ]
        assert len(report.records) == 2


def test_a_file_that_grew_after_listing_is_not_read_past_the_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(tree, "MAX_FILE_BYTES", 100)
    read = read_folder(written(tmp_path, {".squad/decisions.md": LEDGER}))
    (tmp_path / ".squad/decisions.md").write_bytes(b"x" * 1000)
    assert [item.reason for item in read_tree(read).unread] == ["too_large"]


@pytest.mark.parametrize(
    ("bound", "value", "files", "limit"),
    [
        ("MAX_ENTRIES", 1, FILES, "entries"),
        ("MAX_TOTAL_BYTES", 20, FILES, "total_size"),
        ("MAX_DEPTH", 1, {".squad/a/b/c/d/x.md": "x"}, "depth"),
    ],
)
def test_a_tree_over_a_bound_is_refused_as_a_whole(tmp_path, monkeypatch, bound, value, files, limit):
    monkeypatch.setattr(tree, bound, value)
    with pytest.raises(UnsafeTree) as folder:
        read_folder(written(tmp_path, files))
    with pytest.raises(UnsafeTree) as archive:
        read_zip(zipped(files))
    assert (folder.value.limit, archive.value.limit) == (limit, limit)


def test_ten_thousand_tiny_files_are_refused():
    with pytest.raises(UnsafeTree, match="entries"):
        read_zip(zipped({f".squad/decisions/inbox/{number}.md": "x" for number in range(10_000)}))


@pytest.mark.parametrize(
    ("names", "limit"),
    [
        (["/etc/passwd"], "name"),
        (["../.squad/decisions.md"], "name"),
        ([".squad/../../x.md"], "name"),
        ([".squad/./x.md"], "name"),
        ([".squad//x.md"], "name"),
        (["C:/x.md"], "name"),
        (["C:x.md"], "name"),
        ([".squad\\decisions.md"], "name"),
        ([".squad/Decisions.md", ".squad/decisions.md"], "duplicate_name"),
        ([".squad/é.md", ".squad/e\u0301.md"], "duplicate_name"),
        ([".squad/" + "x" * 256 + ".md"], "name_length"),
        ([".squad/" + "x/" * 300 + "x.md"], "name_length"),
        ([".squad/" + "x/" * 20 + "x.md"], "depth"),
    ],
)
def test_a_zip_with_an_unsafe_name_is_refused(names, limit):
    with pytest.raises(UnsafeTree) as refused:
        read_zip(zipped({".squad/decisions.md" if name is None else name: "x" for name in names}))
    assert refused.value.limit == limit


def test_a_zip_with_the_same_name_twice_is_refused():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(".squad/decisions.md", "one")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(".squad/decisions.md", "two")
    with pytest.raises(UnsafeTree, match="same name twice"):
        read_zip(stream)


def test_a_zip_with_a_nul_in_a_name_is_refused():
    stream = zipped({".squad/decisionsXmd": "x"})
    with pytest.raises(UnsafeTree, match="NUL"):
        read_zip(io.BytesIO(stream.getvalue().replace(b"decisionsXmd", b"decisions\x00md")))


def test_an_encrypted_entry_is_refused():
    data = bytearray(zipped({".squad/decisions.md": "x"}).getvalue())
    at = data.find(b"PK\x01\x02") + 8
    data[at : at + 2] = struct.pack("<H", struct.unpack("<H", data[at : at + 2])[0] | 1)
    with pytest.raises(UnsafeTree, match="Encrypted"):
        read_zip(io.BytesIO(bytes(data)))


def test_a_symlink_in_a_zip_is_listed_and_never_followed():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        link = zipfile.ZipInfo(".squad/decisions.md")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr(".squad/agents/ana/charter.md", "# Ana")
    report = read_tree(read_zip(stream))
    assert [(item.path, item.reason) for item in report.unread] == [(".squad/decisions.md", "symlink")]
    assert [record.kind for record in report.records] == ["charter"]


def test_a_zip_that_compresses_too_well_is_refused():
    with pytest.raises(UnsafeTree) as refused:
        read_zip(zipped({".squad/decisions.md": b"\0" * 3_000_000}))
    assert refused.value.limit == "zip_ratio"


def test_an_entry_that_is_larger_than_the_zip_says_is_stopped_while_it_is_read():
    data = bytearray(zipped({".squad/decisions.md": os.urandom(200_000)}).getvalue())
    at = data.find(b"PK\x01\x02") + 24
    data[at : at + 4] = struct.pack("<I", 100)
    read = read_zip(io.BytesIO(bytes(data)))
    assert read.files[0].size == 100
    with pytest.raises((UnsafeTree, Unreadable)):
        read.files[0].read()


def test_the_bytes_that_really_come_out_of_a_zip_are_counted(monkeypatch):
    read = read_zip(zipped({".squad/decisions.md": os.urandom(1000)}))
    monkeypatch.setattr(
        tree._Budget, "spend", lambda self, count: (_ for _ in ()).throw(UnsafeTree("total_size", "x"))
    )
    with pytest.raises(UnsafeTree):
        read.files[0].read()


def test_a_damaged_entry_is_reported_and_the_rest_comes_in():
    data = bytearray(
        zipped({".squad/decisions.md": LEDGER * 50, ".squad/agents/ana/charter.md": "# Ana"}).getvalue()
    )
    at = data.find(b"decisions.md") + 20
    data[at : at + 8] = b"\xff" * 8
    report = read_tree(read_zip(io.BytesIO(bytes(data))))
    assert [(item.path, item.reason) for item in report.unread] == [(".squad/decisions.md", "unreadable")]
    assert [record.kind for record in report.records] == ["charter"]


@given(st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=4)), max_size=6), st.floats(0.2, 1))
def test_a_zip_damaged_anywhere_is_refused_or_read_and_never_more(changes, kept):
    data = bytearray(GOOD_ZIP)
    for place, new in changes:
        at = int(place * (len(data) - len(new)))
        data[at : at + len(new)] = new
    try:
        report = read_tree(read_zip(io.BytesIO(bytes(data[: int(len(data) * kept)]))))
    except (UnsafeTree, NotASquadTree):
        return
    assert report.found == report.taken + len(report.skipped)


def test_a_directory_that_is_too_long_is_refused_before_it_is_read():
    data = bytearray(GOOD_ZIP)
    data[-10:-6] = struct.pack("<I", 100_000_000)
    with pytest.raises(UnsafeTree) as refused:
        read_zip(io.BytesIO(bytes(data)))
    assert refused.value.limit == "entries"


def test_an_entry_in_an_unusual_compression_is_reported():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(".squad/decisions.md", LEDGER)
    report = read_tree(read_zip(stream))
    assert [(item.path, item.reason) for item in report.unread] == [(".squad/decisions.md", "unreadable")]


def test_a_zip_is_read_from_its_path(tmp_path):
    (tmp_path / "team.zip").write_bytes(GOOD_ZIP)
    assert (
        contents(read_zip(tmp_path / "team.zip")) == contents(read_zip(str(tmp_path / "team.zip"))) == BYTES
    )
    with pytest.raises(UnsafeTree):
        read_zip(tmp_path / "nowhere.zip")


@pytest.mark.parametrize("data", [b"", b"not a zip", b"PK\x05\x06" + b"\0" * 10])
def test_what_is_no_zip_is_refused(data):
    with pytest.raises(UnsafeTree, match="not a readable zip"):
        read_zip(io.BytesIO(data))
