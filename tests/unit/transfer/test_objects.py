import os
from hashlib import sha256
from pathlib import Path

import pytest

from muster.transfer.objects import OBJECT_READ, ObjectFiles, WrongContentError

CONTENT = b"weights" * 100
DIGEST = sha256(CONTENT).hexdigest()


def put(objects: ObjectFiles, content: bytes) -> str:
    digest = sha256(content).hexdigest()
    with objects.arriving(digest, len(content)) as arriving:
        arriving.write(content)
        arriving.commit()
    return digest


def test_an_object_is_there_once_it_is_whole(tmp_path: Path) -> None:
    objects = ObjectFiles(tmp_path)
    with objects.arriving(DIGEST, len(CONTENT)) as arriving:
        arriving.write(CONTENT[:300])
        arriving.write(CONTENT[300:])
        assert objects.size(DIGEST) is None
        arriving.commit()
    assert objects.size(DIGEST) == len(CONTENT)
    assert b"".join(objects.read(DIGEST, 0, len(CONTENT))) == CONTENT
    assert [name for name, _ in objects.all()] == [DIGEST]
    assert list(objects.parts()) == []


def test_a_whole_object_is_read_only(tmp_path: Path) -> None:
    objects = ObjectFiles(tmp_path)
    put(objects, CONTENT)
    (_, status), *_ = objects.all()
    assert status.st_mode & 0o777 == 0o400


def test_an_object_that_was_left_half_way_goes_on_where_it_was(tmp_path: Path) -> None:
    with ObjectFiles(tmp_path).arriving(DIGEST, len(CONTENT)) as arriving:
        arriving.write(CONTENT[:300])
    again = ObjectFiles(tmp_path)
    assert again.begun(DIGEST) == 300
    with again.arriving(DIGEST, len(CONTENT)) as arriving:
        assert arriving.offset == 300
        arriving.write(CONTENT[300:])
        arriving.commit()
    assert b"".join(again.read(DIGEST, 0, len(CONTENT))) == CONTENT
    assert again.begun(DIGEST) == 0


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT[:-1] + b"x"])
def test_what_is_not_what_its_name_says_is_not_kept(tmp_path: Path, content: bytes) -> None:
    objects = ObjectFiles(tmp_path)
    with objects.arriving(DIGEST, len(CONTENT)) as arriving:
        arriving.write(content)
        with pytest.raises(WrongContentError, match="holds something else"):
            arriving.commit()
    assert objects.size(DIGEST) is None
    assert objects.begun(DIGEST) == 0


def test_more_than_was_announced_is_refused_before_it_is_written(tmp_path: Path) -> None:
    objects = ObjectFiles(tmp_path)
    with objects.arriving(DIGEST, 10) as arriving, pytest.raises(WrongContentError, match="more than the 10 bytes"):
        arriving.write(CONTENT)
    assert objects.begun(DIGEST) == 0


def test_a_beginning_that_is_longer_than_what_is_announced_now_begins_anew(tmp_path: Path) -> None:
    objects = ObjectFiles(tmp_path)
    with objects.arriving(DIGEST, 2 * len(CONTENT)) as arriving:
        arriving.write(CONTENT + b"rest")
    with objects.arriving(DIGEST, len(CONTENT)) as arriving:
        assert arriving.offset == 0
        arriving.write(CONTENT)
        arriving.commit()
    assert objects.size(DIGEST) == len(CONTENT)


def test_a_part_of_an_object_is_read_in_bounded_portions(tmp_path: Path) -> None:
    objects = ObjectFiles(tmp_path)
    content = os.urandom(OBJECT_READ + 500)
    digest = put(objects, content)
    portions = list(objects.read(digest, 200, OBJECT_READ + 100))
    assert [len(each) for each in portions] == [OBJECT_READ, 100]
    assert b"".join(portions) == content[200 : OBJECT_READ + 300]


def test_whoever_reads_an_object_that_is_removed_gets_it_whole(tmp_path: Path) -> None:
    objects = ObjectFiles(tmp_path)
    content = os.urandom(2 * OBJECT_READ)
    digest = put(objects, content)
    reading = objects.read(digest, 0, len(content))
    first = next(reading)
    objects.remove(digest)
    assert objects.size(digest) is None
    assert first + b"".join(reading) == content


@pytest.mark.parametrize("name", ["../../etc/passwd", "", DIGEST.upper(), DIGEST + "0", f"{DIGEST[:62]}/a"])
def test_a_name_that_is_no_digest_becomes_no_path(tmp_path: Path, name: str) -> None:
    objects = ObjectFiles(tmp_path)
    with pytest.raises(ValueError, match="no SHA-256"):
        objects.size(name)
    with pytest.raises(ValueError, match="no SHA-256"):
        objects.arriving(name, 1)
