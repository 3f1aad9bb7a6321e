// The one stream of the page: what it wants to be told of, and who hears what comes. A page says what it wants with
// `useLive`; parts of the fleet, once wanted, are followed for as long as the tab lives, so that going back to a list
// finds it up to date, while what is told of single jobs ends with their page.
import { batch, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask, fetched } from "./api/ask";
import { EventReader, type StreamEvent } from "./api/events";
import { Problem, problemFrom } from "./api/problem";

/** Takes what comes under a name of an event: `changes`, `job`, `logs`, `points` or `alerts`. */
export type Hearer = (told: Record<string, unknown>, about: { whole: boolean }) => void;

/** Whether the stream is there; `since` is when it was lost, in milliseconds. */
export const liveState = signal<{ state: "live" } | { state: "connecting" } | { state: "away"; since: number }>({
  state: "connecting",
});

const HIDDEN_FOR = 10_000; // milliseconds until the stream of a hidden tab is closed
const QUIET_FOR = 40_000; // milliseconds without a word after which a stream is taken for lost; it says something every 15 s
const PAUSES = [500, 1000, 2000, 5000, 10_000]; // milliseconds before the next try
const KEPT = /^(job_rows|jobs|nodes|projects|queue|alerts)$/;

const wanted = new Map<string, number>();
const hearers = new Map<string, Set<Hearer>>();
let lastPlace = "";
let running: AbortController | null = null;
let tries = 0;
let again: number | undefined;
let hiddenTimer: number | undefined;

/** Hear all events of a name, for as long as the page lives. */
export function hear(name: string, hearer: Hearer): () => void {
  const found = hearers.get(name) ?? new Set();
  hearers.set(name, found.add(hearer));
  return () => found.delete(hearer);
}

/** Have these told while a component is there: `jobs`, `queue`, `job:ID`, `logs:ID`, … */
export function useLive(...wishes: string[]): void {
  const written = wishes.join(",");
  useEffect(() => {
    const words = written.split(",").filter(Boolean);
    for (const word of words) want(word);
    return () => words.forEach(release);
  }, [written]);
}

/** Close the stream and forget what was told, as somebody signs out. */
export function endLive(): void {
  clearTimeout(again);
  running?.abort();
  running = null;
  wanted.clear();
  lastPlace = "";
  liveState.value = { state: "connecting" };
}

/** Close the stream while nobody sees the tab, and go on when somebody does. */
export function followVisibility(): void {
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    if (document.hidden) hiddenTimer = window.setTimeout(() => running?.abort(), HIDDEN_FOR);
    else if (!running && wanted.size) connectSoon(0);
  });
}

function want(word: string): void {
  const there = wanted.has(word);
  wanted.set(word, (wanted.get(word) ?? 0) + 1);
  if (there) return;
  if (KEPT.test(word)) lastPlace = ""; // of a part that was not told yet all has to be told
  restart();
}

function release(word: string): void {
  if (KEPT.test(word)) return;
  const left = (wanted.get(word) ?? 1) - 1;
  if (left > 0) {
    wanted.set(word, left);
  } else if (wanted.delete(word)) {
    restart();
  }
}

function restart(): void {
  tries = 0;
  connectSoon(0);
}

function connectSoon(pause: number): void {
  clearTimeout(again);
  again = window.setTimeout(() => void connect(), pause);
}

async function connect(): Promise<void> {
  running?.abort();
  if (!wanted.size || document.hidden) return;
  const control = (running = new AbortController());
  let quiet = window.setTimeout(() => control.abort(), QUIET_FOR);
  try {
    const answer = await fetched("GET /v1/live", {
      query: { on: [...wanted.keys()].join(",") },
      headers: { Accept: "text/event-stream", ...(lastPlace ? { "Last-Event-ID": lastPlace } : {}) },
      signal: control.signal,
    });
    tries = 0;
    liveState.value = { state: "live" };
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    const events = new EventReader();
    for (;;) {
      const { done, value } = await reader.read();
      clearTimeout(quiet);
      if (done) break;
      quiet = window.setTimeout(() => control.abort(), QUIET_FOR);
      for (const event of events.read(value)) take(event);
    }
  } catch (error) {
    if (running !== control) return; // another one has taken its place
    if (error instanceof Problem && error.status === 401) return endLive();
    if (error instanceof Problem && error.word === "not-signed-in") await lookAgain();
  } finally {
    clearTimeout(quiet);
  }
  if (running !== control) return;
  running = null;
  if (document.hidden) return;
  if (liveState.peek().state !== "away") liveState.value = { state: "away", since: Date.now() };
  connectSoon((PAUSES[Math.min(tries++, PAUSES.length - 1)] ?? 0) * (0.75 + Math.random() / 2));
}

function take(event: StreamEvent): void {
  const told = JSON.parse(event.data) as Record<string, unknown>;
  if (event.name === "problem") throw problemFrom(told, Number(told["status"]));
  batch(() => {
    for (const hearer of hearers.get(event.name) ?? []) hearer(told, { whole: event.id !== "" });
  });
  if (event.id) lastPlace = event.id;
}

/** What one may look at has changed, or the session has ended: the answer to the next call says which. */
async function lookAgain(): Promise<void> {
  lastPlace = "";
  await ask("GET /v1/whoami").catch(() => undefined);
}
