"""How programs end that cannot do what they are for."""

import pytest

from muster.daemon.refusal import refusing
from muster.domain.errors import MusterError

ERROR = MusterError("the disk is full")


@pytest.mark.parametrize("raised", [ERROR, ExceptionGroup("tasks", [ExceptionGroup("more tasks", [ERROR])])])
def test_an_error_alone_or_in_groups_ends_the_program_with_a_sentence(raised: Exception) -> None:
    with pytest.raises(SystemExit) as ended, refusing("muster-agent"):
        raise raised
    assert ended.value.code == "muster-agent: the disk is full"


def test_a_sentence_that_quotes_somebody_else_does_not_act_on_a_terminal() -> None:
    with pytest.raises(SystemExit) as ended, refusing("muster-agent"):
        raise MusterError("no node \x1b[2J")
    assert ended.value.code == r"muster-agent: no node \x1b[2J"


def test_what_is_unforeseen_comes_out_as_it_is() -> None:
    unforeseen = ZeroDivisionError("of ours")
    with pytest.raises(ZeroDivisionError) as raised, refusing("muster-agent"):
        raise unforeseen
    assert raised.value is unforeseen
