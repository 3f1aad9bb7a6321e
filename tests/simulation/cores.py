"""The cores that a simulated fleet runs: the real ones, or one with a fault that the simulation must find."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.core.actions import Action as AgentAction
from agent.core.events import Event as AgentEvent
from agent.core.step import AgentState, Now
from agent.core.step import step as agent_step
from agent.core.stream import StreamAction, StreamEvent, StreamState, advance
from coordinator.core.answers import Answer
from coordinator.core.events import Event
from coordinator.core.step import finish, step
from coordinator.core.turn.turn import Turn

Core = Callable[[Turn, Event], Answer]
Finish = Callable[[Turn], None]
AgentCore = Callable[[AgentState, AgentEvent, Now], list[AgentAction]]

StreamCore = Callable[[StreamState, StreamEvent, float], list[StreamAction]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """What decides in the coordinator and in each agent."""

    step: Core = step
    finish: Finish = finish
    agent: AgentCore = agent_step
    stream: StreamCore = advance


REAL = Cores()
