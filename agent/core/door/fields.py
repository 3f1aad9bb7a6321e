"""Numbers, texts and data of the door's packets, as bytes and back."""

from agent.core.door.packets import DOOR_VERSION, LARGEST_DATA, LARGEST_NUMBER, LARGEST_PACKET, MOST_TEXTS, DoorError


def number_bytes(value: int, size: int = 4, largest: int = LARGEST_NUMBER) -> bytes:
    """A number of so many bytes; raises DoorError for one that is not between 0 and `largest`."""
    if not 0 <= value <= largest:
        raise DoorError(f"{value} is not between 0 and {largest}")
    return value.to_bytes(size, "big")


def data_bytes(data: bytes) -> bytes:
    """A piece of data as it is; raises DoorError for one that is empty or too long."""
    if not 0 < len(data) <= LARGEST_DATA:
        raise DoorError(f"{len(data)} bytes of data are not between 1 and {LARGEST_DATA}")
    return data


def text_bytes(text: str) -> bytes:
    """A text with its length before it; raises DoorError."""
    raw = raw_text(text)
    if b"\0" in raw:
        raise DoorError("a text has a zero byte")
    return len(raw).to_bytes(4, "big") + raw


def raw_text(text: str) -> bytes:
    """The bytes of a text, whatever they were; raises DoorError."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise DoorError("a text has a character that cannot be sent") from error


def texts_bytes(texts: tuple[str, ...]) -> bytes:
    """Several texts with their number before them; raises DoorError."""
    return number_bytes(len(texts), 2, MOST_TEXTS) + b"".join(map(text_bytes, texts))


class PacketCursor:
    """Reads a packet from its second byte on; nothing is believed beyond the bytes that are there."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 1

    def take(self, size: int) -> bytes:
        """So many bytes."""
        taken = self._raw[self._at : self._at + size]
        if len(taken) < size:
            raise DoorError("the packet ends too early")
        self._at += size
        return taken

    def number(self, size: int = 4, largest: int = LARGEST_NUMBER) -> int:
        """A number of so many bytes."""
        value = int.from_bytes(self.take(size), "big")
        if value > largest:
            raise DoorError(f"{value} is more than {largest}")
        return value

    def text(self, longest: int = LARGEST_PACKET) -> str:
        """A text, whatever its bytes are."""
        raw = self.take(self.number(4, longest))
        if b"\0" in raw:
            raise DoorError("a text has a zero byte")
        return raw.decode(errors="surrogateescape")

    def texts(self) -> tuple[str, ...]:
        """Several texts."""
        return tuple(self.text() for _ in range(self.number(2)))

    def data(self) -> bytes:
        """All that is left."""
        return data_bytes(self.take(len(self._raw) - self._at))

    def version(self) -> None:
        """What the side that connects says of itself."""
        version = self.number(1)
        if version != DOOR_VERSION:
            raise DoorError(f"version {version} of the door is not known, only {DOOR_VERSION}")

    def end(self) -> None:
        """Refuse a packet of which something is left."""
        if self._at != len(self._raw):
            raise DoorError("the packet has more than belongs to it")
