// The state of an execution.
import type { State } from "../api/types";
import { words } from "../words";
import type { IconName } from "./icons";
import { Status, type Tone } from "./status";

export const STATES: Record<State, { tone: Tone; icon: IconName }> = {
  waiting: { tone: "stopping", icon: "pause" },
  queued: { tone: "quiet", icon: "clock" },
  placed: { tone: "quiet", icon: "clock" },
  preparing: { tone: "warning", icon: "turning" },
  checked_in: { tone: "warning", icon: "check" },
  armed: { tone: "warning", icon: "check" },
  running: { tone: "running", icon: "play" },
  stopping: { tone: "stopping", icon: "turning" },
  succeeded: { tone: "succeeded", icon: "check" },
  failed: { tone: "failed", icon: "cross" },
  stopped: { tone: "quiet", icon: "square" },
  lost: { tone: "failed", icon: "alerts" },
};

export function ExecutionState({ state }: { state: State }) {
  const { tone, icon } = STATES[state];
  return (
    <Status tone={tone} icon={icon}>
      {words.job.states[state]}
    </Status>
  );
}
