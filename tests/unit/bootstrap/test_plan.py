"""From what is there and what is wished for to the steps between."""

import hashlib
import tomllib
from dataclasses import replace
from datetime import UTC, datetime

from muster.bootstrap.inspect.facts import Installed, MachineFacts
from muster.bootstrap.installation.plan import (
    Await,
    BundleToSend,
    Configure,
    Install,
    Join,
    Known,
    MachinePlan,
    Send,
    plan_node,
    plan_upgrade,
)
from muster.bootstrap.request import MachineRequest, agent_config
from muster.bootstrap.ssh.target import Target
from muster.domain.fleet.access import EnrolledNode
from muster.domain.fleet.node import Inventory, NodeState, NodeView
from muster.domain.ids import NodeId

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PARCEL = BundleToSend(name="b.tar", size=1 << 20, version="0.4.0")
WISH = MachineRequest(target=Target(host="10.0.0.7"), labels={"pool": "a"})
COORDINATOR = "10.0.0.1:7460"
TEXT = agent_config(WISH, name="gpu7", coordinator=COORDINATOR)
BARE = MachineFacts(hostname="gpu7")
THERE = Installed(
    version="0.4.0",
    unit="active",
    config=hashlib.sha256(TEXT.encode()).hexdigest(),
    name="gpu7",
    joined=True,
    job_user="990:990",
)
VIEW = NodeView(name=NodeId("gpu7"), state=NodeState.READY, address="10.0.0.7", inventory=Inventory(cpus=1, memory=1))
ENROLLED = EnrolledNode(name=NodeId("gpu7"), key="k", enrolled_at=NOW, token="t", labels={"pool": "a"})
KNOWN = Known(view=VIEW, enrolled=ENROLLED)


def _plan(facts: MachineFacts, wish: MachineRequest = WISH, known: Known = KNOWN) -> MachinePlan:
    return plan_node(facts, wish, parcel=PARCEL, coordinator=COORDINATOR, known=known, findings=())


def test_a_bare_computer_gets_everything() -> None:
    plan = _plan(BARE, known=Known())
    assert plan.steps == (
        Send(bundle="b.tar", size=1 << 20),
        Install(version="0.4.0", before=None),
        Configure(text=TEXT),
        Join(name="gpu7", labels={"pool": "a"}),
        Await(name="gpu7"),
    )
    assert (plan.name, plan.blockers, plan.config) == ("gpu7", (), TEXT)


def test_nothing_is_done_where_all_is_as_wished() -> None:
    assert _plan(replace(BARE, muster=THERE)).steps == ()


def test_what_the_installer_adds_to_the_configuration_is_no_change() -> None:
    text = f'{TEXT}job-user = "990:990"\n'
    there = replace(THERE, config=hashlib.sha256(text.encode()).hexdigest())
    assert _plan(replace(BARE, muster=there)).steps == ()


def test_another_wish_changes_the_configuration_only() -> None:
    steps = _plan(replace(BARE, muster=THERE), replace(WISH, address="ib0")).steps
    assert [type(step) for step in steps] == [Send, Install, Configure, Await]


def test_another_version_is_installed_and_joins_nothing() -> None:
    steps = _plan(replace(BARE, muster=replace(THERE, version="0.3.0"))).steps
    assert steps == (
        Send(bundle="b.tar", size=1 << 20),
        Install(version="0.4.0", before="0.3.0"),
        Await(name="gpu7"),
    )


def test_a_node_that_is_not_heard_of_is_started_again() -> None:
    lost = replace(KNOWN, view=replace(VIEW, state=NodeState.UNREACHABLE))
    assert [type(step) for step in _plan(replace(BARE, muster=THERE), known=lost).steps] == [Send, Install, Await]


def test_a_node_that_was_sent_away_joins_anew() -> None:
    known = replace(KNOWN, enrolled=replace(ENROLLED, revoked_at=NOW))
    join = _plan(replace(BARE, muster=THERE), known=known).join
    assert join == Join(name="gpu7", labels={"pool": "a"}, again=True)


def test_a_node_of_another_name_or_fleet_is_left_alone() -> None:
    there = replace(BARE, muster=THERE)
    assert [each.id for each in _plan(there, replace(WISH, name="other")).blockers] == ["name"]
    assert [each.id for each in _plan(there, known=Known()).blockers] == ["fleet"]


def test_labels_that_came_with_the_token_are_not_changed_behind_its_back() -> None:
    plan = _plan(replace(BARE, muster=THERE), replace(WISH, labels={"pool": "b"}))
    assert (plan.steps, [each.id for each in plan.findings]) == ((), ["labels"])


def test_an_upgrade_touches_neither_configuration_nor_membership() -> None:
    plan = plan_upgrade(replace(BARE, muster=replace(THERE, version="0.3.0")), "gpu7", parcel=PARCEL, findings=())
    assert [type(step) for step in plan.steps] == [Send, Install, Await]
    assert plan_upgrade(replace(BARE, muster=THERE), "gpu7", parcel=PARCEL, findings=()).steps == ()
    assert [each.id for each in plan_upgrade(BARE, "gpu7", parcel=PARCEL, findings=()).blockers] == ["muster"]


def test_an_upgrade_leaves_a_computer_alone_that_is_another_node() -> None:
    plan = plan_upgrade(replace(BARE, muster=THERE), "gpu8", parcel=PARCEL, findings=())
    assert ([each.sentence for each in plan.blockers], plan.steps) == (["is gpu7, not gpu8"], ())


def test_steps_are_told_in_words() -> None:
    assert list(map(str, _plan(BARE, known=Known()).steps)) == [
        "send b.tar (1 MiB)",
        "install 0.4.0 into /opt/muster, users and the unit muster-agent",
        "write /etc/muster/agent.toml",
        "join as gpu7 with pool=a",
        "start muster-agent and wait until gpu7 is ready",
    ]


def test_the_configuration_is_toml_whatever_it_holds() -> None:
    wish = replace(
        WISH,
        address="10.0.0.0/8",
        ports=(40000, 40999),
        settings={"processes": True, "mount-root": ("/data", '/o"dd\\'), "log-limit": 5},
    )
    assert tomllib.loads(agent_config(wish, name="gpu7", coordinator=COORDINATOR)) == {
        "coordinator": COORDINATOR,
        "name": "gpu7",
        "join-file": "/etc/muster/join-token",
        "address": "10.0.0.0/8",
        "ports": "40000-40999",
        "processes": True,
        "mount-root": ["/data", '/o"dd\\'],
        "log-limit": 5,
    }
