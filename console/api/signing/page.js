// The page on which somebody signs in: with the code of a link, or with a token. It shows who is signed in, and where
// the API has what.
"use strict";

const LINKS = { Jobs: "/v1/jobs", Nodes: "/v1/nodes", "Who I am": "/v1/whoami", "The API": "/v1/openapi.json" };
const byId = (id) => document.getElementById(id);

function say(text) {
  byId("state").textContent = text;
}

async function ask(verb, path, body) {
  const sent = body && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  const answer = await fetch(path, { method: verb, credentials: "same-origin", ...sent });
  const said = answer.status === 204 ? null : await answer.json();
  return { ok: answer.ok, status: answer.status, said };
}

function offer(text, action) {
  const button = document.createElement("button");
  button.textContent = text;
  button.addEventListener("click", action);
  byId("actions").append(button);
}

function link(text, path) {
  const item = document.createElement("li");
  const anchor = document.createElement("a");
  anchor.textContent = text;
  anchor.href = path;
  item.append(anchor);
  byId("links").append(item);
}

function clear() {
  byId("actions").replaceChildren();
  byId("links").replaceChildren();
  byId("sign-in").hidden = true;
}

function showMyself(myself) {
  clear();
  say(`You are signed in as ${myself.name}.`);
  const job = location.pathname.match(/^\/jobs\/([^/]+)$/);
  if (job) link("The job of this link", `/v1/jobs/${job[1]}`);
  for (const [text, path] of Object.entries(LINKS)) link(text, path);
  offer("Sign out", async () => {
    const ended = await ask("DELETE", "/v1/session");
    showStranger(ended.ok ? "You are signed out." : ended.said.detail);
  });
}

function showStranger(text) {
  clear();
  say(text);
  link("Sign in through your organisation", "/v1/login");
  byId("sign-in").hidden = false;
}

async function signIn(credential) {
  const began = await ask("POST", "/v1/session", credential);
  if (began.ok) showMyself(began.said);
  else showStranger(began.said.detail);
}

function askWhose(myself, code) {
  // Somebody else may have sent this link: nobody changes accounts without knowing it.
  showMyself(myself);
  say(`You are signed in as ${myself.name}. The link that you have opened signs in whoever has made it.`);
  offer("Sign in with the link", () => signIn({ code }));
}

async function begin() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  history.replaceState(null, "", location.pathname); // the code is to stay in no history
  const known = await ask("GET", "/v1/whoami");
  if (known.ok) code ? askWhose(known.said, code) : showMyself(known.said);
  else if (code) await signIn({ code });
  else if (known.status === 401) showStranger("Nobody is signed in. `muster open` signs you in; so does a token.");
  else showStranger(known.said.detail);
}

byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = byId("token").value.trim();
  byId("token").value = "";
  signIn({ token });
});

begin().catch(() => say("The console does not answer; reload this page."));
