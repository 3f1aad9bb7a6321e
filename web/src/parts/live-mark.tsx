// Whether what is shown is live.
import { words } from "../words";

export function LiveMark({ state }: { state: keyof typeof words.live }) {
  return <span class={`live-mark ${state}`}>{words.live[state]}</span>;
}
