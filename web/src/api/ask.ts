// Calls of the console's API, with the types of their answers. Browsers send the cookie of the session along, and say
// that the request comes from this page (`Origin`), without which the console changes nothing.
import type { Calls } from "./types";
import { Problem, problemOf } from "./problem";
import { words } from "../words";

export interface Wish {
  /** What stands in the path for `{job}` and the like. */
  in?: Record<string, string>;
  /** Parameters; those that are undefined are left out. */
  query?: Record<string, string | number | boolean | readonly string[] | undefined>;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is, as YAML. */
  yaml?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

type Ended = (reason: string) => void;
let sessionEnded: Ended = () => undefined;

/** Have a function told whenever an answer says that nobody is signed in. */
export function onSessionEnd(told: Ended): void {
  sessionEnded = told;
}

/** What a call answers. Throws `Problem`, with the sentence that the command line says. */
export async function ask<Call extends keyof Calls>(call: Call, wish: Wish = {}): Promise<Calls[Call]> {
  const answer = await fetched(call, wish);
  if (answer.status === 204 || answer.status === 202) return undefined as Calls[Call];
  const isJson = (answer.headers.get("content-type") ?? "").includes("json");
  return (isJson ? await answer.json() : await answer.text()) as Calls[Call];
}

/** The answer to a call as it comes, for streams. Throws `Problem`. */
export async function fetched(call: keyof Calls, wish: Wish = {}): Promise<Response> {
  const [verb = "", path = ""] = call.split(" ");
  const headers = new Headers({ Accept: "application/json", ...wish.headers });
  const init: RequestInit = { method: verb, headers, credentials: "same-origin" };
  if (wish.signal) init.signal = wish.signal;
  if (wish.body !== undefined) {
    headers.set("Content-Type", "application/json");
    init.body = JSON.stringify(wish.body);
  } else if (wish.yaml !== undefined) {
    headers.set("Content-Type", "application/yaml");
    init.body = wish.yaml;
  }
  let answer: Response;
  try {
    answer = await fetch(address(path, wish), init);
  } catch (error) {
    if (wish.signal?.aborted) throw error;
    throw new Problem("away", 0, words.away.title, words.away.request, []);
  }
  if (answer.ok) return answer;
  const problem = await problemOf(answer);
  if (answer.status === 401 && call !== "POST /v1/session") sessionEnded(problem.message);
  throw problem;
}

/** The address of a call, with everything filled in. */
export function address(path: string, { in: places = {}, query = {} }: Wish): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = places[name];
    if (!value) throw new Error(`${path} needs ${name}`);
    return encodeURIComponent(value);
  });
  const sent = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const each of value) sent.append(name, String(each));
    else if (value !== undefined) sent.append(name, String(value));
  }
  return sent.size ? `${filled}?${sent}` : filled;
}
