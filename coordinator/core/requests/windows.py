"""What admins ask about windows: set one, and remove it. One that has ended goes by itself."""

from coordinator.core.answers import Answer, RefusalCause, Refused, WindowGone, WindowKept
from coordinator.core.events import WindowRemoved, WindowSet
from coordinator.core.requests.projects import unknown_project
from coordinator.core.turn.notices import notice_fleet
from coordinator.core.turn.turn import Turn
from muster.domain.event import FleetEventKind
from muster.domain.fleet.window import MOST_WINDOWS, Window
from muster.domain.quantity import moment_text


def put(turn: Turn, event: WindowSet) -> Answer:
    """Have a window from now on, in place of the one of its name."""
    window, windows = event.window, turn.cluster.records.windows
    if window.project and window.project not in turn.cluster.projects:
        return unknown_project(window.project)
    if window.ends <= turn.now:
        return Refused(cause=RefusalCause.CONFLICT, message=f"window {window.name} would be over already")
    before = windows.get(window.name)
    if before is None and len(windows) >= MOST_WINDOWS:
        message = f"there are {len(windows)} windows, as many as a fleet may have; remove some (`muster windows`)"
        return Refused(cause=RefusalCause.EXHAUSTED, message=message)
    if window != before:
        notice_fleet(turn, FleetEventKind.WINDOW_SET, project=window.project, text=_told(window))
        turn.put(window)
        turn.cluster.deadlines.watch_window(window)
        turn.reconsider_queue()
    return WindowKept(window=window, before=before)


def remove(turn: Turn, event: WindowRemoved) -> Answer:
    """Forget a window; its nodes take jobs again."""
    window = turn.cluster.records.windows.get(event.name)
    if window is None:
        message = f"there is no window {event.name!r}; `muster windows` lists them"
        return Refused(cause=RefusalCause.UNKNOWN, message=message)
    notice_fleet(turn, FleetEventKind.WINDOW_REMOVED, project=window.project, text=window.name)
    turn.forget(window)
    return WindowGone(window=window)


def come_due(turn: Turn, name: str) -> None:
    """The end of a window may have come: it goes then."""
    window = turn.cluster.records.windows.get(name)
    if window is not None and window.ends <= turn.now:
        notice_fleet(turn, FleetEventKind.WINDOW_ENDED, project=window.project, text=name)
        turn.forget(window)


def _told(window: Window) -> str:
    times = f"{moment_text(window.begins)} to {moment_text(window.ends)}"
    return f"{window.name}, from {times}" + (f": {window.reason}" if window.reason else "")
