// Times, spans and sizes in words.
import { signal } from "@preact/signals";

/** The time now, in milliseconds; it moves once a second while the page is seen. */
export const now = signal(Date.now());

/** Have the time move. */
export function tick(): void {
  setInterval(() => {
    if (!document.hidden) now.value = Date.now();
  }, 1000);
  document.addEventListener("visibilitychange", () => (now.value = Date.now()));
}

/** A time as milliseconds; null: there is none. */
export function ms(time: string | null | undefined): number | null {
  const found = time ? Date.parse(time) : NaN;
  return Number.isNaN(found) ? null : found;
}

/** A span like `28 s`, `3 m 49 s`, `3 h 12 m`, `5 d 2 h`. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const [d, h, m, s] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60, whole % 60];
  if (d) return h ? `${d} d ${h} h` : `${d} d`;
  if (h) return m ? `${h} h ${m} m` : `${h} h`;
  if (m) return s ? `${m} m ${s} s` : `${m} m`;
  return `${s} s`;
}

/** A span of less than a minute with a tenth. */
export function shortSpan(seconds: number): string {
  return seconds < 60 ? `${Math.max(0, seconds).toFixed(1)} s` : span(seconds);
}

/** How long ago something was: `now`, `4 m ago`, `3 d ago`. */
export function ago(then: number, at: number): string {
  const seconds = Math.max(0, Math.floor((at - then) / 1000));
  if (seconds < 10) return "now";
  const [first = "", unit = ""] = span(seconds).split(" ");
  return `${first} ${unit} ago`;
}

/** The exact time, in the zone of whoever looks. */
export function exact(then: number): string {
  const date = new Date(then);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${clock(then)}`;
}

/** The time of day. */
export function clock(then: number): string {
  const date = new Date(then);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((each) => String(each).padStart(2, "0")).join(":");
}

/** A number with commas between the thousands. */
export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** Bytes as GiB and the like. */
export function size(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let [value, unit] = [bytes, 0];
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${unit && value < 100 ? Number(value.toFixed(1)) : Math.round(value)} ${units[unit]}`;
}
