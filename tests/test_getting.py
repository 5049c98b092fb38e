"""Getting data: checked, and nothing kept that is not whole."""

import errno
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairsaoml.cli.data import app
from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.streams.datasets import getting, movielens, nypd
from fairsaoml.streams.datasets import stop_and_frisk as in_home
from fairsaoml.streams.datasets.getting import Listener, get_data, list_data
from fairsaoml.streams.datasets.home import OutOfReach, data_home, download
from fairsaoml.streams.datasets.stop_and_frisk import stop_and_frisk, stop_and_frisk_arrests
from fairsaoml.streams.table.columns import checksum
from published import (
    REAL,
    grouplens,
    grouplens_files,
    needs_real_data,
    nypd_csv,
    stops,
)

CONTENT = bytes(range(256)) * 2000  # 512,000 bytes, several chunks
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Site:
    """A server on this machine that can be told to misbehave."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"/file": CONTENT}
        self.lengths = True
        self.break_after: list[int] = []  # bytes until the connection breaks, one for each answer
        self.pause = 0.0  # seconds between chunks
        self.redirects: dict[str, str] = {}
        self.asked: list[str] = []  # the path of each request
        self.url = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        if request.path in self.redirects:
            request.send_response(302)
            request.send_header("Location", self.redirects[request.path])
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        if request.path not in self.files:
            request.send_error(404)
            return
        content = self.files[request.path]
        request.send_response(200)
        if self.lengths:
            request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        end = self.break_after.pop(0) if self.break_after else len(content)
        for place in range(0, min(end, len(content)), 1 << 14):
            request.wfile.write(content[place : min(place + (1 << 14), end)])
            request.wfile.flush()
            time.sleep(self.pause)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    told = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with suppress(ConnectionError):  # the other side may be killed: a test wants it
                told.answer(self)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01))
    thread.start()
    yield told
    server.shutdown()
    thread.join()
    server.server_close()


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# One file -----------------------------------------------------------------------------------


def test_a_file_comes_whole_and_leaves_nothing_beside_it(site: Site, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    path = download(
        f"{site.url}/file",
        tmp_path / "got",
        sha256=SHA256,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert path.read_bytes() == CONTENT
    assert everything_in(tmp_path) == ["got"]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert {total for _, total in seen} == {len(CONTENT)}
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_a_body_cut_short_is_an_error_and_leaves_nothing(site: Site, tmp_path: Path) -> None:
    site.break_after = [100_000]
    with pytest.raises(OutOfReach, match=r"broke off: .*100000 bytes read, 412000 more expected"):
        download(f"{site.url}/file", tmp_path / "got")
    assert everything_in(tmp_path) == []
    assert download(f"{site.url}/file", tmp_path / "got").read_bytes() == CONTENT


def test_a_killed_download_is_never_mistaken_for_a_whole_one(site: Site, tmp_path: Path) -> None:
    site.pause = 0.02
    script = (
        "import sys; from pathlib import Path; "
        "from fairsaoml.streams.datasets.home import download; "
        "download(sys.argv[1], Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", script, f"{site.url}/file", str(tmp_path / "got")]
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size for path in tmp_path.iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "got").exists()
    site.pause = 0.0
    assert download(f"{site.url}/file", tmp_path / "got").read_bytes() == CONTENT


def test_an_older_file_of_the_name_is_replaced(site: Site, tmp_path: Path) -> None:
    (tmp_path / "got").write_bytes(b"of another day")
    assert download(f"{site.url}/file", tmp_path / "got").read_bytes() == CONTENT


def test_a_full_disk_is_said_to_be_full(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*words: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("pooch.HTTPDownloader.__call__", full)
    with pytest.raises(DataError, match=r"cannot write '.*got' \(No space left on device\); make"):
        download(f"{site.url}/file", tmp_path / "got")
    assert everything_in(tmp_path) == []


def test_a_file_without_a_length_comes_whole(site: Site, tmp_path: Path) -> None:
    site.lengths = False
    assert download(f"{site.url}/file", tmp_path / "got").read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing(site: Site, tmp_path: Path) -> None:
    site.files["/file"] = CONTENT[:-1] + b"?"
    with pytest.raises(DataError, match=f"wrong checksum, nothing was kept: .*{SHA256}"):
        download(f"{site.url}/file", tmp_path / "got", sha256=SHA256)
    assert everything_in(tmp_path) == []


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://example.org/file", "expected an https address"),
        ("file:///etc/hosts", "expected an https address"),
        ("ftp://example.org/file", "expected an https address"),
    ],
)
def test_only_https_is_taken(tmp_path: Path, address: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        download(address, tmp_path / "got")


def test_a_redirect_away_from_https_is_refused(site: Site, tmp_path: Path) -> None:
    site.redirects["/moved"] = "http://example.org/file"
    with pytest.raises(DataError, match=r"expected an https address, got http://example\.org"):
        download(f"{site.url}/moved", tmp_path / "got")


def test_a_file_that_is_not_there_or_a_server_that_is_not_is_out_of_reach(
    site: Site, tmp_path: Path
) -> None:
    with pytest.raises(OutOfReach, match="answers 404"):
        download(f"{site.url}/nothing", tmp_path / "got")
    with pytest.raises(OutOfReach, match="cannot be reached"):
        download("http://127.0.0.1:9/file", tmp_path / "got")
    assert everything_in(tmp_path) == []


# MovieLens ----------------------------------------------------------------------------------


def zipped(files: Mapping[str, str], folder: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{folder}/{name}", text.encode("latin-1"))
    return content.getvalue()


@pytest.fixture
def small_movielens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site) -> Path:
    """A hand-made archive takes the place of the published one; gives the data home."""
    monkeypatch.setenv("FAIRSAOML_DATA_HOME", str(tmp_path / "home"))
    ratings = movielens.read_ratings(grouplens(tmp_path / "files"))
    monkeypatch.setattr(movielens, "DIGEST", checksum(ratings))
    archive = zipped(grouplens_files(), "ml-100k")
    site.files["/ml-100k.zip"] = archive
    monkeypatch.setattr(getting, "GROUPLENS_URL", f"{site.url}/ml-100k.zip")
    monkeypatch.setattr(getting, "GROUPLENS_SHA256", hashlib.sha256(archive).hexdigest())
    return tmp_path / "home"


def test_movielens_comes_from_grouplens_after_its_licence(small_movielens: Path) -> None:
    told: list[str] = []

    @contextmanager
    def progress(title: str) -> Iterator:
        told.append(title)
        yield lambda done, total: None

    get_data("movielens", listener=Listener(say=told.append, progress=progress))
    assert [words.split(" is by")[0] for words in told] == ["MovieLens 100K", "ml-100k.zip"]
    assert everything_in(small_movielens) == ["movielens/ratings.parquet"]
    assert movielens.movielens().length == 90


def test_what_is_here_is_not_got_again(small_movielens: Path, site: Site) -> None:
    get_data("movielens")
    told: list[str] = []
    assert get_data("movielens", listener=Listener(say=told.append)).notes == ("already here",)
    assert (told, len(site.asked)) == ([], 1)


def test_a_kept_file_that_was_damaged_is_got_again(small_movielens: Path) -> None:
    (kept,) = get_data("movielens").files
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"is damaged .* get it again with: fairsaoml data get"):
        movielens.movielens()
    get_data("movielens")
    assert kept.read_bytes() == whole


@pytest.mark.parametrize("what", ["a page", "another archive", "half"])
def test_an_archive_with_a_wrong_checksum_is_not_kept(
    small_movielens: Path, site: Site, what: str
) -> None:
    archive = site.files["/ml-100k.zip"]
    other = {"a page": b"<html>", "another archive": zipped(grouplens_files(50), "ml-100k")}
    site.files["/ml-100k.zip"] = other.get(what, archive[: len(archive) // 2])
    with pytest.raises(DataError, match="wrong checksum"):
        get_data("movielens")
    assert everything_in(small_movielens) == []


def test_where_grouplens_is_out_of_reach_the_error_says_what_to_do_by_hand(
    small_movielens: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getting, "GROUPLENS_URL", f"{site.url}/nothing")
    with pytest.raises(OutOfReach, match=r"404 .*; download ml-100k\.zip .* --from ml-100k\.zip"):
        get_data("movielens")
    assert everything_in(small_movielens) == []


def test_movielens_comes_from_a_folder_a_file_or_an_address(
    small_movielens: Path, site: Site, tmp_path: Path
) -> None:
    archive = tmp_path / "ml-100k.zip"
    archive.write_bytes(site.files["/ml-100k.zip"])
    for source in (tmp_path / "files", archive, f"{site.url}/ml-100k.zip"):
        (kept,) = get_data("movielens", source=source).files
        assert everything_in(small_movielens) == ["movielens/ratings.parquet"]
        kept.unlink()
    assert archive.exists()


def test_other_ratings_are_not_kept(small_movielens: Path, tmp_path: Path) -> None:
    other = grouplens(tmp_path / "other", seed=1)
    with pytest.raises(DataError, match="expected the 100,000 ratings of MovieLens 100K"):
        get_data("movielens", source=other)
    assert everything_in(small_movielens) == []


# Stop-and-frisk -----------------------------------------------------------------------------


@pytest.fixture
def nypd_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site) -> Site:
    """Small files of 2014 (zip), 2015 and 2016 (csv) where NYPD's would be."""
    monkeypatch.setenv("FAIRSAOML_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(getting, "NYPD_FILES", site.url)
    for year in (2011, 2014, 2015, 2016):
        content = nypd_csv(stops(200, year=year))
        if year < 2015:
            content = zipped({f"{year}.csv": content.decode("latin-1")}, "inside")
        site.files[getting.nypd_url(year).removeprefix(site.url)] = content
        monkeypatch.setitem(nypd.ROWS, year, 200)
    return site


def test_addresses_are_those_of_nypds_page() -> None:
    start = "https://www.nyc.gov/assets/nypd/downloads"
    end = "analysis_and_planning/stop-question-frisk"
    assert getting.nypd_url(2014) == f"{start}/zip/{end}/sqf-2014-csv.zip"
    assert getting.nypd_url(2016) == f"{start}/excel/{end}/sqf-2016.csv"


def test_stop_and_frisk_comes_from_nypd_year_by_year(nypd_site: Site, tmp_path: Path) -> None:
    got = get_data("stop-and-frisk")
    assert everything_in(tmp_path / "home") == [
        f"stop-and-frisk/{year}.parquet" for year in (2014, 2015, 2016)
    ]
    assert got.notes == ()
    stream = stop_and_frisk("BMS")
    assert (stream.length, stream.notes) == (96, ())
    again = get_data("stop-and-frisk")
    assert again.notes == ("2014: already here", "2015: already here", "2016: already here")
    assert len(nypd_site.asked) == 3


def test_a_year_short_of_stops_is_not_kept(nypd_site: Site, tmp_path: Path) -> None:
    nypd_site.files[getting.nypd_url(2015).removeprefix(nypd_site.url)] = nypd_csv(
        stops(150, year=2015)
    )
    with pytest.raises(DataError, match="expected 200 stops of 2015, got 150; nothing was kept"):
        get_data("stop-and-frisk", years="2015")
    assert everything_in(tmp_path / "home") == []


@pytest.mark.parametrize(
    "content", [b"", b"<html>gone</html>", b"PK\x03\x04half", b"a,b\r\n1,2\r\n"]
)
def test_a_download_that_is_no_such_file_is_not_kept(
    nypd_site: Site, tmp_path: Path, content: bytes
) -> None:
    nypd_site.files[getting.nypd_url(2014).removeprefix(nypd_site.url)] = content
    with pytest.raises(DataError, match=r"sqf-2014-csv\.zip"):
        get_data("stop-and-frisk")
    assert everything_in(tmp_path / "home") == []


def test_a_year_that_is_out_of_reach_says_where_to_look(nypd_site: Site) -> None:
    with pytest.raises(OutOfReach, match=r"404 .* look for the file at https.*--from FILE"):
        get_data("stop-and-frisk", years="2009")


def test_arrests_come_from_the_full_record_of_2011(nypd_site: Site) -> None:
    get_data("stop-and-frisk-arrests")
    assert sum(len(task.y) for task in stop_and_frisk_arrests().tasks(0)) == 200
    again = get_data("stop-and-frisk-arrests")
    assert ([path.name for path in again.files], again.notes) == (
        ["2011.parquet"],
        ("already here",),
    )
    assert stop_and_frisk("BMS", years=2011).length == 96


def test_a_damaged_copy_of_arrests_gives_way_to_the_full_record(
    nypd_site: Site, tmp_path: Path
) -> None:
    copy = in_home.kept_year(tmp_path / "home", "2011-arrests")
    copy.parent.mkdir(parents=True)
    copy.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match="is damaged"):
        stop_and_frisk_arrests()
    get_data("stop-and-frisk-arrests")
    assert sum(len(task.y) for task in stop_and_frisk_arrests().tasks(0)) == 200


def test_published_files_in_the_data_home_need_not_be_got(nypd_site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "stop-and-frisk"
    folder.mkdir(parents=True)
    (folder / "sqf-2014.csv").write_bytes(nypd_csv(stops(200, year=2014)))
    assert get_data("stop-and-frisk", years="2014") == ((), ("2014: already here",))
    assert nypd_site.asked == []


def test_local_files_are_read_as_they_are_and_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    for year in (2012, 2013):
        (folder / f"{year}.csv").write_bytes(nypd_csv(stops(200, year=year)))
    (folder / "few-2010.csv").write_bytes(
        b"date,time,race,arstmade,borough,pct_geo\n2010-01-01,00:05,B,N,Queens,102\n"
    )
    home = tmp_path / "home"
    got = get_data("stop-and-frisk", source=folder, home=home)
    assert [path.name for path in got.files] == ["2012.parquet", "2013.parquet"]
    assert "few-2010.csv is not used: it has few columns" in got.notes[0]
    assert len(everything_in(folder)) == 3
    one = get_data("stop-and-frisk", source=folder, years="2013", home=tmp_path / "other")
    assert [path.name for path in one.files] == ["2013.parquet"]


def test_a_part_of_a_year_is_taken_only_if_it_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "2011-first.csv").write_bytes(nypd_csv(stops(200, year=2011)))
    with pytest.raises(DataError, match=r"not the whole year \(to use a part, name the file"):
        get_data("stop-and-frisk", source=folder, home=tmp_path / "home")
    got = get_data("stop-and-frisk", source=folder / "2011-first.csv", home=tmp_path / "home")
    assert got.notes == ("2011: 200 stops, where NYPD published 685,724: not the whole year",)
    assert set(got.notes) <= set(stop_and_frisk(years=2011, home=tmp_path / "home").notes)


@pytest.mark.parametrize(
    ("name", "wish", "message"),
    [
        ("stop-and-frisk", {"source": "nowhere.csv"}, "got 'nowhere.csv': not found"),
        ("stop-and-frisk", {"source": "."}, "expected NYPD's files"),
        ("stop-and-frisk", {"source": "http://example.org/2011.csv"}, "expected an https address"),
        ("stop-and-frisk-arrests", {"source": "2012.csv"}, "expected stops of 2011, got 2012"),
        ("movielens", {"source": "2012.csv"}, "expected a folder or a whole zip archive"),
    ],
)
def test_a_source_that_does_not_fit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, wish: dict, message: str
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    if wish["source"] == "2012.csv":
        Path("2012.csv").write_bytes(nypd_csv(stops(10)))
    with pytest.raises(DataError, match=re.escape(message)):
        get_data(name, **wish, home=tmp_path / "home")
    assert not (tmp_path / "home" / "stop-and-frisk").exists()


def test_unknown_names_and_needless_years_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown data set 'movilens'; did you mean 'movielens'"):
        get_data("movilens", home=tmp_path)
    with pytest.raises(ConfigError, match="only stop-and-frisk has years"):
        get_data("movielens", years="2014", home=tmp_path)


def test_a_home_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "2012.csv").write_bytes(nypd_csv(stops(10)))
    with pytest.raises(DataError, match=r"cannot write to .* set FAIRSAOML_DATA_HOME"):
        get_data("stop-and-frisk", source=tmp_path / "2012.csv", home=tmp_path / "file")


def test_the_home_is_the_one_given_the_one_set_or_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    monkeypatch.delenv("FAIRSAOML_DATA_HOME", raising=False)
    assert data_home().name == "fairsaoml"
    monkeypatch.setenv("FAIRSAOML_DATA_HOME", "/set")
    assert data_home() == Path("/set")
    assert data_home("/given") == Path("/given")


# The command --------------------------------------------------------------------------------


def test_the_command_lists_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRSAOML_DATA_HOME", str(tmp_path))
    answer = CliRunner().invoke(app, ["list", "--json"])
    found = json.loads(answer.stdout)
    assert [data["name"] for data in found] == list(getting.DATASETS)
    assert found == list_data()
    assert all(data["here"] == [] and data["home"] == str(tmp_path) for data in found)
    plain = CliRunner().invoke(app, ["list"]).stdout
    assert "get it: fairsaoml data get stop-and-frisk-arrests" in plain


def test_the_command_gets_a_local_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRSAOML_DATA_HOME", str(tmp_path / "home"))
    (tmp_path / "2012.csv").write_bytes(nypd_csv(stops(10)))
    options = ["get", "stop-and-frisk", "--from", str(tmp_path / "2012.csv"), "--years", "2012"]
    answer = CliRunner().invoke(app, options, catch_exceptions=False)
    kept = in_home.kept_year(tmp_path / "home", 2012)
    assert (answer.exit_code, answer.stdout) == (0, f"{kept}\n")
    assert "here: 2012" in CliRunner().invoke(app, ["list"]).stdout


def test_the_command_shows_licence_and_progress(small_movielens: Path) -> None:
    answer = CliRunner().invoke(app, ["get", "movielens"], catch_exceptions=False)
    assert answer.exit_code == 0
    assert "do not redistribute it" in answer.stderr
    assert "ml-100k.zip" in answer.stderr
    assert answer.stdout.strip() == str(small_movielens / "movielens" / "ratings.parquet")


@needs_real_data
@pytest.mark.real_data
def test_the_real_files_are_got_from_their_folder_and_loaded(tmp_path: Path) -> None:
    assert get_data("movielens", source=REAL, home=tmp_path).notes == ()
    got = get_data("stop-and-frisk", source=REAL, home=tmp_path)
    assert [path.stem for path in got.files] == ["2014", "2015", "2016"]
    arrests = get_data("stop-and-frisk-arrests", source=REAL, home=tmp_path)
    assert [path.stem for path in arrests.files] == ["2011-arrests"]
    for make, length in (
        (movielens.movielens, 90),
        (stop_and_frisk, 96),
        (stop_and_frisk_arrests, 185),
    ):
        stream = make(home=tmp_path)
        assert stream.length == length
        assert make(**stream.settings).encoder == stream.encoder
