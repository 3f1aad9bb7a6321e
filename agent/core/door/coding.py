"""Packets of the door as bytes, and bytes as packets; nothing that the other side sends is believed."""

from collections.abc import Callable, Mapping
from enum import IntFlag
from ipaddress import IPv4Address, IPv6Address

from agent.core.door.packets import (
    DOOR_VERSION,
    LARGEST_DATA,
    LARGEST_NUMBER,
    LARGEST_PACKET,
    LAST_SIGNAL,
    LONGEST_KEPT_NAME,
    LONGEST_REFUSAL,
    LONGEST_TICKET,
    MOST_TEXTS,
    CallerAnswer,
    CallerPacket,
    CommandExited,
    CommandFailed,
    CommandKept,
    CommandSignal,
    CommandStarted,
    CommandWanted,
    CompanionOrder,
    CompanionPacket,
    ConnectionBegun,
    ConnectionFailed,
    ConnectionWanted,
    DoorError,
    FaultyPart,
    FilesWanted,
    GangBegun,
    GangCommandAsked,
    GangErrorOutput,
    GangExit,
    GangInput,
    GangInputEnd,
    GangOutput,
    GangRefused,
    GangSignal,
    Packet,
    Speaker,
    StayAsked,
    Targets,
)


class _CallFlag(IntFlag):
    DAEMON = 1
    INPUT = 2
    STEP = 4


class _CommandFlag(IntFlag):
    TERMINAL = 1
    INPUT = 2
    DAEMON = 4
    SHELL = 8


def encoded(packet: Packet) -> bytes:
    """The bytes of a packet; raises DoorError for one that the door does not take."""
    raw = _encoded(packet)
    if len(raw) > LARGEST_PACKET:
        raise DoorError(f"a command of {len(raw) >> 10} KiB is longer than {LARGEST_PACKET >> 10} KiB")
    return raw


def decoded(raw: bytes, speaker: Speaker) -> Packet:
    """The packet that one side of a line has sent; raises DoorError for all that it may not send."""
    if not raw:
        raise DoorError("the packet is empty")
    if len(raw) > LARGEST_PACKET:
        raise DoorError(f"the packet is longer than {LARGEST_PACKET} bytes")
    read = _READERS[speaker].get(raw[:1])
    if read is None:
        raise DoorError(f"no packet of the {speaker.value} begins with byte {raw[0]}")
    cursor = _Cursor(raw)
    packet = read(cursor)
    cursor.end()
    return packet


def _encoded(packet: Packet) -> bytes:
    if isinstance(packet, CallerPacket):
        return _from_caller(packet)
    if isinstance(packet, CallerAnswer):
        return _to_caller(packet)
    if isinstance(packet, CompanionPacket):
        return _from_companion(packet)
    return _to_companion(packet)


def _from_caller(packet: CallerPacket) -> bytes:
    match packet:
        case GangCommandAsked():
            flags = _CallFlag.DAEMON * packet.daemon | _CallFlag.INPUT * packet.has_input | _CallFlag.STEP * packet.step
            head = bytes((DOOR_VERSION, flags, packet.targets))
            return b"G" + head + _text(packet.target) + _texts(packet.words) + _texts(packet.env)
        case GangInput(data=data):
            return b"I" + _data(data)
        case GangInputEnd():
            return b"H"
        case GangSignal(number=number):
            return b"K" + _number(number, 1, LAST_SIGNAL)


def _to_caller(packet: CallerAnswer) -> bytes:
    match packet:
        case GangBegun():
            return b"B"
        case GangOutput(data=data):
            return b"O" + _data(data)
        case GangErrorOutput(data=data):
            return b"e" + _data(data)
        case GangExit(code=code):
            return b"X" + _number(code, 1, 255)
        case GangRefused(text=text):
            return b"R" + _text(_cut(text))


def _from_companion(packet: CompanionPacket) -> bytes:
    if isinstance(packet, ConnectionBegun | ConnectionFailed):
        return _of_connection(packet)
    match packet:
        case StayAsked(ticket=ticket):
            return b"S" + bytes((DOOR_VERSION,)) + _text(ticket)
        case CommandStarted(number=number, pid=pid):
            return b"P" + _number(number) + _number(pid)
        case CommandExited(number=number, code=code):
            return b"E" + _number(number) + _number(code, 1, 255)
        case CommandFailed(number=number, errno=errno, part=part):
            return b"F" + _number(number) + _number(errno) + bytes((part,))
        case CommandKept(number=number, pid=pid, name=name):
            return b"T" + _number(number) + _number(pid) + _text(name)


def _of_connection(packet: ConnectionBegun | ConnectionFailed) -> bytes:
    match packet:
        case ConnectionBegun(number=number):
            return b"M" + _number(number)
        case ConnectionFailed(number=number, errno=errno):
            return b"X" + _number(number) + _number(errno)


def _to_companion(packet: CompanionOrder) -> bytes:
    match packet:
        case CommandWanted():
            return b"C" + _wanted(packet)
        case CommandSignal(number=number, signal=signal):
            return b"K" + _number(number) + _number(signal, 1, LAST_SIGNAL)
        case FilesWanted(number=number):
            return b"L" + _number(number)
        case ConnectionWanted(number=number, address=address, port=port):
            version = bytes((address.version,))
            return b"N" + _number(number) + version + _number(port, 2, 0xFFFF) + address.packed


def _wanted(wanted: CommandWanted) -> bytes:
    _check_command(wanted)
    flags = _CommandFlag.TERMINAL * wanted.terminal | _CommandFlag.INPUT * wanted.has_input
    flags |= _CommandFlag.DAEMON * wanted.daemon | _CommandFlag.SHELL * wanted.shell
    size = _number(wanted.rows, 2, 0xFFFF) + _number(wanted.columns, 2, 0xFFFF)
    texts = _text(wanted.workdir) + _text(wanted.kept_name) + _texts(wanted.words) + _texts(wanted.env)
    return _number(wanted.number) + bytes((flags,)) + size + texts


def _check_command(wanted: CommandWanted) -> None:
    """Raise DoorError for a command that no companion starts."""
    if not wanted.words and not wanted.shell:
        raise DoorError("the command has no words")
    if len(wanted.words) > 1 and wanted.shell:
        raise DoorError("a shell runs one line")
    if wanted.kept_name and not wanted.terminal:
        raise DoorError("a shell that is kept has no terminal")
    if len(_raw(wanted.kept_name)) > LONGEST_KEPT_NAME:
        raise DoorError(f"the name of a kept shell is longer than {LONGEST_KEPT_NAME} bytes")


def _cut(text: str) -> str:
    """The part of a sentence that is sent, in whole characters."""
    raw = _raw(text)
    return text if len(raw) <= LONGEST_REFUSAL else raw[:LONGEST_REFUSAL].decode(errors="ignore")


def _number(value: int, size: int = 4, largest: int = LARGEST_NUMBER) -> bytes:
    if not 0 <= value <= largest:
        raise DoorError(f"{value} is not between 0 and {largest}")
    return value.to_bytes(size, "big")


def _data(data: bytes) -> bytes:
    if not 0 < len(data) <= LARGEST_DATA:
        raise DoorError(f"{len(data)} bytes of data are not between 1 and {LARGEST_DATA}")
    return data


def _text(text: str) -> bytes:
    raw = _raw(text)
    if b"\0" in raw:
        raise DoorError("a text has a zero byte")
    return len(raw).to_bytes(4, "big") + raw


def _raw(text: str) -> bytes:
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise DoorError("a text has a character that cannot be sent") from error


def _texts(texts: tuple[str, ...]) -> bytes:
    return _number(len(texts), 2, MOST_TEXTS) + b"".join(map(_text, texts))


class _Cursor:
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
        return _data(self.take(len(self._raw) - self._at))

    def version(self) -> None:
        """What the side that connects says of itself."""
        version = self.number(1)
        if version != DOOR_VERSION:
            raise DoorError(f"version {version} of the door is not known, only {DOOR_VERSION}")

    def end(self) -> None:
        """Refuse a packet of which something is left."""
        if self._at != len(self._raw):
            raise DoorError("the packet has more than belongs to it")


def _gang_command(cursor: _Cursor) -> GangCommandAsked:
    cursor.version()
    flags, targets = cursor.number(1, sum(_CallFlag)), cursor.number(1)
    if targets not in set(Targets):
        raise DoorError(f"{targets} names no way to say where a command runs")
    target, words, env = cursor.text(), cursor.texts(), _variables(cursor)
    if not words:
        raise DoorError("the command has no words")
    return GangCommandAsked(
        targets=Targets(targets),
        target=target,
        words=words,
        env=env,
        daemon=bool(flags & _CallFlag.DAEMON),
        has_input=bool(flags & _CallFlag.INPUT),
        step=bool(flags & _CallFlag.STEP),
    )


def _command(cursor: _Cursor) -> CommandWanted:
    number, flags = cursor.number(), cursor.number(1, sum(_CommandFlag))
    rows, columns = cursor.number(2), cursor.number(2)
    workdir, name = cursor.text(), cursor.text(LONGEST_KEPT_NAME)
    wanted = CommandWanted(
        number=number,
        words=cursor.texts(),
        env=_variables(cursor),
        workdir=workdir,
        terminal=bool(flags & _CommandFlag.TERMINAL),
        has_input=bool(flags & _CommandFlag.INPUT),
        daemon=bool(flags & _CommandFlag.DAEMON),
        shell=bool(flags & _CommandFlag.SHELL),
        kept_name=name,
        rows=rows,
        columns=columns,
    )
    _check_command(wanted)
    return wanted


def _failed(cursor: _Cursor) -> CommandFailed:
    number, errno, part = cursor.number(), cursor.number(), cursor.number(1)
    if part not in set(FaultyPart):
        raise DoorError(f"{part} names no part of a command")
    return CommandFailed(number=number, errno=errno, part=FaultyPart(part))


def _kept(cursor: _Cursor) -> CommandKept:
    number, pid, name = cursor.number(), cursor.number(), cursor.text(LONGEST_KEPT_NAME)
    if not name:
        raise DoorError("a kept shell has no name")
    return CommandKept(number=number, pid=pid, name=name)


def _connection(cursor: _Cursor) -> ConnectionWanted:
    number, version, port = cursor.number(), cursor.number(1), cursor.number(2)
    if version not in _ADDRESSES:
        raise DoorError(f"{version} is no version of the Internet Protocol")
    size, address = _ADDRESSES[version]
    return ConnectionWanted(number=number, address=address(cursor.take(size)), port=port)


def _variables(cursor: _Cursor) -> tuple[str, ...]:
    variables = cursor.texts()
    if any(each.find("=") < 1 for each in variables):
        raise DoorError("a variable is not written as NAME=VALUE")
    return variables


def _stay(cursor: _Cursor) -> StayAsked:
    cursor.version()
    return StayAsked(ticket=cursor.text(LONGEST_TICKET))


def _signal(cursor: _Cursor) -> int:
    signal = cursor.number(1, LAST_SIGNAL)
    if signal == 0:
        raise DoorError("0 is no signal")
    return signal


_ADDRESSES: Mapping[int, tuple[int, Callable[[bytes], IPv4Address | IPv6Address]]] = {
    4: (4, IPv4Address),
    6: (16, IPv6Address),
}
"""How many bytes an address has and what reads them, by the version of the Internet Protocol."""

_READERS: Mapping[Speaker, Mapping[bytes, Callable[[_Cursor], Packet]]] = {
    Speaker.CALLER: {
        b"G": _gang_command,
        b"I": lambda cursor: GangInput(data=cursor.data()),
        b"H": lambda _: GangInputEnd(),
        b"K": lambda cursor: GangSignal(number=_signal(cursor)),
    },
    Speaker.AGENT_TO_CALLER: {
        b"B": lambda _: GangBegun(),
        b"O": lambda cursor: GangOutput(data=cursor.data()),
        b"e": lambda cursor: GangErrorOutput(data=cursor.data()),
        b"X": lambda cursor: GangExit(code=cursor.number(1)),
        b"R": lambda cursor: GangRefused(text=cursor.text(LONGEST_REFUSAL)),
    },
    Speaker.COMPANION: {
        b"S": _stay,
        b"P": lambda cursor: CommandStarted(number=cursor.number(), pid=cursor.number()),
        b"E": lambda cursor: CommandExited(number=cursor.number(), code=cursor.number(1)),
        b"F": _failed,
        b"T": _kept,
        b"M": lambda cursor: ConnectionBegun(number=cursor.number()),
        b"X": lambda cursor: ConnectionFailed(number=cursor.number(), errno=cursor.number()),
    },
    Speaker.AGENT_TO_COMPANION: {
        b"C": _command,
        b"K": lambda cursor: CommandSignal(number=cursor.number(), signal=_signal(cursor)),
        b"L": lambda cursor: FilesWanted(number=cursor.number()),
        b"N": _connection,
    },
}
