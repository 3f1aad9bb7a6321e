"""Whatever comes in whatever order, no user code runs past what contact and permits allow."""

from hypothesis import given
from hypothesis import strategies as st

from muster.domain.gangs.fence import Fence, PeerWord
from muster.domain.ids import NodeId
from tests.unit.agent.core.fence_builders import GANG, ME, STOPPER, A, B, FencedAgent, cuts

words = st.dictionaries(st.sampled_from((A, B)), st.sampled_from(PeerWord))
moments = st.lists(
    st.tuples(
        st.floats(0.1, 30.0),  # how much later
        st.sampled_from(("contact", "answers", "nothing")),
        st.floats(0.0, 5.0),  # how long it was under way
        words,
    ),
    max_size=30,
)


@given(fence=st.sampled_from((GANG, STOPPER)), grace=st.floats(0.0, 60.0), moments=moments)
def test_user_code_is_cut_off_exactly_when_neither_contact_nor_permit_lets_it_run(
    fence: Fence, grace: float, moments: list[tuple[float, str, float, dict[NodeId, PeerWord]]]
) -> None:
    agent = FencedAgent(fence, grace=grace).run()
    at, allowed, cut = 0.0, 81.0, False
    patience = min(grace, 10.0)
    for later, what, under_way, said in moments:
        at += later
        late = at >= allowed
        if what == "contact":
            done = agent.contact(max(0.0, at - under_way), at)
            allowed = allowed if late else max(allowed, max(0.0, at - under_way) + 81.0)
        elif what == "answers":
            agent.answers(max(0.0, at - under_way), said, at)
            done = []
            permitted = fence is GANG and said == {A: PeerWord.WITHOUT, B: PeerWord.WITHOUT}
            allowed = max(allowed, max(0.0, at - under_way) + 20.0) if permitted and not late else allowed
        else:
            done = agent.pass_time(at)
        cut = cut or bool(cuts(done)) or bool(agent.halts)
        assert cut == (at >= allowed - patience)
        assert agent.deadline() == allowed
        if cut:
            return
    assert not cut
    assert agent.fencing.may_start(ME, at)
