// The state of something: an icon, a word and a colour, never the colour alone.
import type { JobPhase } from "../api/types";
import { words } from "../words";
import { Icon, type IconName } from "./icons";

export type Tone = "running" | "warning" | "failed" | "succeeded" | "quiet" | "stopping";

const PHASES: Record<JobPhase, { tone: Tone; icon: IconName }> = {
  waiting: { tone: "stopping", icon: "pause" },
  queued: { tone: "quiet", icon: "clock" },
  preparing: { tone: "warning", icon: "turning" },
  running: { tone: "running", icon: "play" },
  stopping: { tone: "stopping", icon: "turning" },
  storing: { tone: "stopping", icon: "box" },
  succeeded: { tone: "succeeded", icon: "check" },
  failed: { tone: "failed", icon: "cross" },
  stopped: { tone: "quiet", icon: "square" },
};

export function Status({ tone, icon, children }: { tone: Tone; icon: IconName; children: string }) {
  return (
    <span class={`status ${tone}`}>
      <Icon name={icon} />
      {children}
    </span>
  );
}

export function Phase({ phase }: { phase: JobPhase }) {
  const { tone, icon } = PHASES[phase] ?? { tone: "quiet", icon: "clock" };
  return (
    <Status tone={tone} icon={icon}>
      {words.phases[phase] ?? phase}
    </Status>
  );
}
