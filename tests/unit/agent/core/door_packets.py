"""Packets of the door, of every kind, for tests that try them all."""

from hypothesis import strategies as st

from agent.core.door.packets import (
    LARGEST_NUMBER,
    LAST_SIGNAL,
    CommandExited,
    CommandFailed,
    CommandKept,
    CommandSignal,
    CommandStarted,
    CommandWanted,
    ConnectionBegun,
    ConnectionFailed,
    ConnectionWanted,
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
    Speaker,
    StayAsked,
    Targets,
)

_texts = st.binary(max_size=40).map(lambda raw: raw.replace(b"\0", b"").decode(errors="surrogateescape"))
_words = st.lists(_texts, min_size=1, max_size=5).map(tuple)
_variables = st.lists(st.builds(lambda name, value: f"{name}={value}", st.text("AB_", min_size=1), _texts), max_size=3)
_data = st.binary(min_size=1, max_size=300)
_numbers = st.integers(0, LARGEST_NUMBER)
_signals = st.integers(1, LAST_SIGNAL)
_codes = st.integers(0, 255)
_sizes = st.integers(0, 0xFFFF)

PACKETS: dict[Speaker, st.SearchStrategy[Packet]] = {
    Speaker.CALLER: st.one_of(
        st.builds(
            GangCommandAsked,
            targets=st.sampled_from(Targets),
            target=_texts,
            words=_words,
            env=_variables.map(tuple),
            daemon=st.booleans(),
            has_input=st.booleans(),
            step=st.booleans(),
        ),
        st.builds(GangInput, data=_data),
        st.just(GangInputEnd()),
        st.builds(GangSignal, number=_signals),
    ),
    Speaker.AGENT_TO_CALLER: st.one_of(
        st.just(GangBegun()),
        st.builds(GangOutput, data=_data),
        st.builds(GangErrorOutput, data=_data),
        st.builds(GangExit, code=_codes),
        st.builds(GangRefused, text=st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=40)),
    ),
    Speaker.COMPANION: st.one_of(
        st.builds(StayAsked, ticket=_texts),
        st.builds(CommandStarted, number=_numbers, pid=_numbers),
        st.builds(CommandExited, number=_numbers, code=_codes),
        st.builds(CommandFailed, number=_numbers, errno=_numbers, part=st.sampled_from(FaultyPart)),
        st.builds(CommandKept, number=_numbers, pid=_numbers, name=_texts.filter(bool)),
        st.builds(ConnectionBegun, number=_numbers),
        st.builds(ConnectionFailed, number=_numbers, errno=_numbers),
    ),
    Speaker.AGENT_TO_COMPANION: st.one_of(
        st.builds(
            CommandWanted,
            number=_numbers,
            words=_words,
            env=_variables.map(tuple),
            workdir=_texts,
            terminal=st.booleans(),
            has_input=st.booleans(),
            daemon=st.booleans(),
            rows=_sizes,
            columns=_sizes,
        ),
        st.builds(
            CommandWanted,
            number=_numbers,
            words=st.lists(_texts, max_size=1).map(tuple),
            env=_variables.map(tuple),
            terminal=st.just(value=True),
            shell=st.just(value=True),
            kept_name=_texts,
        ),
        st.builds(FilesWanted, number=_numbers),
        st.builds(CommandSignal, number=_numbers, signal=_signals),
        st.builds(ConnectionWanted, number=_numbers, address=st.ip_addresses(), port=_sizes),
    ),
    Speaker.PARENT: st.one_of(
        st.builds(MainProgramShown, ticket=_texts, terminal=st.booleans(), has_input=st.booleans(), pid=_numbers),
        st.builds(MainProgramExited, code=_codes),
    ),
    Speaker.AGENT_TO_PARENT: st.one_of(st.just(MainInputEnd()), st.builds(MainSignal, number=_signals)),
}
"""What each side of a line may send."""

said = st.sampled_from(Speaker).flatmap(lambda speaker: st.tuples(st.just(speaker), PACKETS[speaker]))
"""A side of a line, and a packet that it may send."""
