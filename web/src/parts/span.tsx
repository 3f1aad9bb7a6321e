// Times that move on by themselves, each with the exact time on hover.
import { ago, exact, now, span } from "../when";
import { words } from "../words";

/** How long ago something was. */
export function Ago({ time }: { time: number }) {
  return <time title={exact(time)}>{ago(time, now.value)}</time>;
}

/** How long something took, or takes so far. */
export function Took({ from, to }: { from: number | null; to: number | null }) {
  if (from === null) return <>{words.none}</>;
  return <time title={exact(from)}>{span(((to ?? now.value) - from) / 1000)}</time>;
}
