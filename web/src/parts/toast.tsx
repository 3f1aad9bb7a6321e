// Short news of what somebody has just done. Readers of the screen hear it, too.
import { signal } from "@preact/signals";
import { Icon } from "./icons";

type ToastTone = "plain" | "failed";

interface Toast {
  number: number;
  text: string;
  tone: ToastTone;
}

const SHOWN_FOR = 6000; // milliseconds
const toasts = signal<readonly Toast[]>([]);
let newest = 0;

export function tell(text: string, tone: ToastTone = "plain"): void {
  const number = ++newest;
  toasts.value = [...toasts.value.slice(-3), { number, text, tone }];
  setTimeout(() => (toasts.value = toasts.value.filter((each) => each.number !== number)), SHOWN_FOR);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ number, text, tone }) => (
        <div key={number} class={`toast ${tone}`}>
          <Icon name={tone === "failed" ? "alerts" : "check"} />
          {text}
        </div>
      ))}
    </div>
  );
}
