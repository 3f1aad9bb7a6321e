// Who is signed in. There is no list of sessions and no token in the page: the browser has a cookie that scripts cannot
// read, and the console says whose it is.
import { signal } from "@preact/signals";
import { ask, onSessionEnd } from "./api/ask";
import { Problem, sentence } from "./api/problem";
import type { Access, Myself } from "./api/types";
import { go } from "./router";
import { words } from "./words";

export type Session =
  | { state: "unknown" }
  | { state: "in"; myself: Myself }
  /** Nobody is signed in; `reason` says why, where that is worth a sentence. */
  | { state: "out"; reason: string }
  /** The link that was opened signs in somebody else: that is asked before. */
  | { state: "asked"; myself: Myself; code: string };

export const session = signal<Session>({ state: "unknown" });

const WANTED = "muster.wanted";

/** Find out who is signed in; the code of a link of `muster open` signs in, and stays in no history. */
export async function begin(): Promise<void> {
  onSessionEnd((reason) => {
    if (session.peek().state === "in") session.value = { state: "out", reason };
  });
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(null, "", location.pathname + location.search);
  try {
    const myself = await ask("GET /v1/whoami");
    if (code) session.value = { state: "asked", myself, code };
    else enter(myself);
  } catch (error) {
    if (code && error instanceof Problem && error.status === 401) await signIn({ code }).catch(() => undefined);
    else session.value = { state: "out", reason: isNews(error) ? sentence(error) : "" };
  }
}

/** Sign in with a token, or with the code of a link. Throws `Problem`. */
export async function signIn(credential: { token: string } | { code: string }): Promise<void> {
  try {
    enter(await ask("POST /v1/session", { body: credential }));
  } catch (error) {
    session.value = { state: "out", reason: sentence(error) };
    throw error;
  }
}

/** Leave the link of somebody else alone. */
export function stay(myself: Myself): void {
  session.value = { state: "in", myself };
}

export async function signOut(): Promise<void> {
  try {
    await ask("DELETE /v1/session");
    session.value = { state: "out", reason: words.signIn.signedOut };
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return; // it had ended
    throw error;
  }
}

/** Remember where one wanted to, while the identity provider has its turn. */
export function rememberPlace(): void {
  sessionStorage.setItem(WANTED, location.pathname + location.search);
}

function enter(myself: Myself): void {
  session.value = { state: "in", myself };
  const wanted = sessionStorage.getItem(WANTED);
  sessionStorage.removeItem(WANTED);
  if (wanted?.startsWith("/") && location.pathname === "/") go(wanted, true);
}

const ORDER: readonly Access[] = ["viewer", "member", "operator", "admin"];

/** Whether whoever is signed in has this access to a project, or more. */
export function may(access: Access, project: string): boolean {
  const now = session.value;
  if (now.state !== "in") return false;
  const grants = now.myself.grants;
  const level = (granted: Access | undefined) => (granted ? ORDER.indexOf(granted) : -1);
  return Math.max(level(grants[project]), level(grants["*"])) >= ORDER.indexOf(access);
}

/** Whether it says more than that nobody has signed in yet. */
function isNews(error: unknown): boolean {
  return !(error instanceof Problem && error.status === 401 && error.message.startsWith("show an API token"));
}
