"""Packets of the door as bytes, and bytes as packets; nothing that the other side sends is believed."""

from collections.abc import Callable, Mapping
from enum import IntFlag
from ipaddress import IPv4Address, IPv6Address

from agent.core.door.fields import PacketCursor, data_bytes, number_bytes, raw_text, text_bytes, texts_bytes
from agent.core.door.packets import (
    DOOR_VERSION,
    LARGEST_PACKET,
    LAST_SIGNAL,
    LONGEST_KEPT_NAME,
    LONGEST_REFUSAL,
    LONGEST_TICKET,
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
    MainInputEnd,
    MainProgramExited,
    MainProgramShown,
    MainSignal,
    Packet,
    ParentOrder,
    ParentPacket,
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


class _MainFlag(IntFlag):
    TERMINAL = 1
    INPUT = 2


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
    cursor = PacketCursor(raw)
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
    if isinstance(packet, ParentPacket | ParentOrder):
        return _of_main_program(packet)
    return _to_companion(packet)


def _from_caller(packet: CallerPacket) -> bytes:
    match packet:
        case GangCommandAsked():
            flags = _CallFlag.DAEMON * packet.daemon | _CallFlag.INPUT * packet.has_input | _CallFlag.STEP * packet.step
            head = bytes((DOOR_VERSION, flags, packet.targets))
            return b"G" + head + text_bytes(packet.target) + texts_bytes(packet.words) + texts_bytes(packet.env)
        case GangInput(data=data):
            return b"I" + data_bytes(data)
        case GangInputEnd():
            return b"H"
        case GangSignal(number=number):
            return b"K" + number_bytes(number, 1, LAST_SIGNAL)


def _to_caller(packet: CallerAnswer) -> bytes:
    match packet:
        case GangBegun():
            return b"B"
        case GangOutput(data=data):
            return b"O" + data_bytes(data)
        case GangErrorOutput(data=data):
            return b"e" + data_bytes(data)
        case GangExit(code=code):
            return b"X" + number_bytes(code, 1, 255)
        case GangRefused(text=text):
            return b"R" + text_bytes(_cut(text))


def _from_companion(packet: CompanionPacket) -> bytes:
    if isinstance(packet, ConnectionBegun | ConnectionFailed):
        return _of_connection(packet)
    match packet:
        case StayAsked(ticket=ticket):
            return b"S" + bytes((DOOR_VERSION,)) + text_bytes(ticket)
        case CommandStarted(number=number, pid=pid):
            return b"P" + number_bytes(number) + number_bytes(pid)
        case CommandExited(number=number, code=code):
            return b"E" + number_bytes(number) + number_bytes(code, 1, 255)
        case CommandFailed(number=number, errno=errno, part=part):
            return b"F" + number_bytes(number) + number_bytes(errno) + bytes((part,))
        case CommandKept(number=number, pid=pid, name=name):
            return b"T" + number_bytes(number) + number_bytes(pid) + text_bytes(name)


def _of_connection(packet: ConnectionBegun | ConnectionFailed) -> bytes:
    match packet:
        case ConnectionBegun(number=number):
            return b"M" + number_bytes(number)
        case ConnectionFailed(number=number, errno=errno):
            return b"X" + number_bytes(number) + number_bytes(errno)


def _to_companion(packet: CompanionOrder) -> bytes:
    match packet:
        case CommandWanted():
            return b"C" + _wanted(packet)
        case CommandSignal(number=number, signal=signal):
            return b"K" + number_bytes(number) + number_bytes(signal, 1, LAST_SIGNAL)
        case FilesWanted(number=number):
            return b"L" + number_bytes(number)
        case ConnectionWanted(number=number, address=address, port=port):
            version = bytes((address.version,))
            return b"N" + number_bytes(number) + version + number_bytes(port, 2, 0xFFFF) + address.packed


def _of_main_program(packet: ParentPacket | ParentOrder) -> bytes:
    match packet:
        case MainProgramShown(ticket=ticket, pid=pid):
            flags = _MainFlag.TERMINAL * packet.terminal | _MainFlag.INPUT * packet.has_input
            return b"A" + bytes((DOOR_VERSION,)) + text_bytes(ticket) + bytes((flags,)) + number_bytes(pid)
        case MainProgramExited(code=code):
            return b"E" + number_bytes(code, 1, 255)
        case MainInputEnd():
            return b"H"
        case MainSignal(number=number):
            return b"K" + number_bytes(number, 1, LAST_SIGNAL)


def _wanted(wanted: CommandWanted) -> bytes:
    _check_command(wanted)
    flags = _CommandFlag.TERMINAL * wanted.terminal | _CommandFlag.INPUT * wanted.has_input
    flags |= _CommandFlag.DAEMON * wanted.daemon | _CommandFlag.SHELL * wanted.shell
    size = number_bytes(wanted.rows, 2, 0xFFFF) + number_bytes(wanted.columns, 2, 0xFFFF)
    texts = (
        text_bytes(wanted.workdir) + text_bytes(wanted.kept_name) + texts_bytes(wanted.words) + texts_bytes(wanted.env)
    )
    return number_bytes(wanted.number) + bytes((flags,)) + size + texts


def _check_command(wanted: CommandWanted) -> None:
    """Raise DoorError for a command that no companion starts."""
    if not wanted.words and not wanted.shell:
        raise DoorError("the command has no words")
    if len(wanted.words) > 1 and wanted.shell:
        raise DoorError("a shell runs one line")
    if wanted.kept_name and not wanted.terminal:
        raise DoorError("a shell that is kept has no terminal")
    if len(raw_text(wanted.kept_name)) > LONGEST_KEPT_NAME:
        raise DoorError(f"the name of a kept shell is longer than {LONGEST_KEPT_NAME} bytes")


def _cut(text: str) -> str:
    """The part of a sentence that is sent, in whole characters."""
    raw = raw_text(text)
    return text if len(raw) <= LONGEST_REFUSAL else raw[:LONGEST_REFUSAL].decode(errors="ignore")


def _gang_command(cursor: PacketCursor) -> GangCommandAsked:
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


def _command(cursor: PacketCursor) -> CommandWanted:
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


def _failed(cursor: PacketCursor) -> CommandFailed:
    number, errno, part = cursor.number(), cursor.number(), cursor.number(1)
    if part not in set(FaultyPart):
        raise DoorError(f"{part} names no part of a command")
    return CommandFailed(number=number, errno=errno, part=FaultyPart(part))


def _kept(cursor: PacketCursor) -> CommandKept:
    number, pid, name = cursor.number(), cursor.number(), cursor.text(LONGEST_KEPT_NAME)
    if not name:
        raise DoorError("a kept shell has no name")
    return CommandKept(number=number, pid=pid, name=name)


def _connection(cursor: PacketCursor) -> ConnectionWanted:
    number, version, port = cursor.number(), cursor.number(1), cursor.number(2)
    if version not in _ADDRESSES:
        raise DoorError(f"{version} is no version of the Internet Protocol")
    size, address = _ADDRESSES[version]
    return ConnectionWanted(number=number, address=address(cursor.take(size)), port=port)


def _variables(cursor: PacketCursor) -> tuple[str, ...]:
    variables = cursor.texts()
    if any(each.find("=") < 1 for each in variables):
        raise DoorError("a variable is not written as NAME=VALUE")
    return variables


def _stay(cursor: PacketCursor) -> StayAsked:
    cursor.version()
    return StayAsked(ticket=cursor.text(LONGEST_TICKET))


def _main_program(cursor: PacketCursor) -> MainProgramShown:
    cursor.version()
    ticket, flags = cursor.text(LONGEST_TICKET), cursor.number(1, sum(_MainFlag))
    return MainProgramShown(
        ticket=ticket,
        terminal=bool(flags & _MainFlag.TERMINAL),
        has_input=bool(flags & _MainFlag.INPUT),
        pid=cursor.number(),
    )


def _signal(cursor: PacketCursor) -> int:
    signal = cursor.number(1, LAST_SIGNAL)
    if signal == 0:
        raise DoorError("0 is no signal")
    return signal


_ADDRESSES: Mapping[int, tuple[int, Callable[[bytes], IPv4Address | IPv6Address]]] = {
    4: (4, IPv4Address),
    6: (16, IPv6Address),
}
"""How many bytes an address has and what reads them, by the version of the Internet Protocol."""

_READERS: Mapping[Speaker, Mapping[bytes, Callable[[PacketCursor], Packet]]] = {
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
    Speaker.PARENT: {
        b"A": _main_program,
        b"E": lambda cursor: MainProgramExited(code=cursor.number(1)),
    },
    Speaker.AGENT_TO_PARENT: {
        b"H": lambda _: MainInputEnd(),
        b"K": lambda cursor: MainSignal(number=_signal(cursor)),
    },
}
