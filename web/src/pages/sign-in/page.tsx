// Where somebody signs in: through the organisation, with a token, or by a link of the command line.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Command } from "../../parts/command";
import { Failure } from "../../parts/failure";
import { Logo } from "../../parts/shell";
import { rememberPlace, session, signIn, stay, type Session } from "../../session";
import { words } from "../../words";

export function SignIn() {
  const now = session.value;
  useEffect(() => {
    document.title = `${words.signIn.title} · ${words.product}`;
  }, []);
  return (
    <main class="sign-in">
      <div class="sign-in-card">
        <h1>
          <Logo />
          {words.product}
        </h1>
        {now.state === "unknown" && <p role="status">{words.signIn.looking}</p>}
        {now.state === "asked" && <Asked asked={now} />}
        {now.state === "out" && <Ways reason={now.reason} />}
      </div>
    </main>
  );
}

/** Somebody else may have sent this link: nobody changes accounts without knowing it. */
function Asked({ asked: { myself, code } }: { asked: Extract<Session, { state: "asked" }> }) {
  return (
    <>
      <p role="status">{words.signIn.asked(myself.name)}</p>
      <div class="actions">
        <button type="button" class="button primary" onClick={() => stay(myself)}>
          {words.signIn.askedNo(myself.name)}
        </button>
        <button type="button" class="button" onClick={() => signIn({ code }).catch(() => undefined)}>
          {words.signIn.askedYes}
        </button>
      </div>
    </>
  );
}

function Ways({ reason }: { reason: string }) {
  const token = useSignal("");
  const busy = useSignal(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    busy.value = true;
    await signIn({ token: token.value.trim() }).catch(() => undefined);
    busy.value = false;
    token.value = "";
  };
  return (
    <>
      {reason && (reason === words.signIn.signedOut ? <p role="status">{reason}</p> : <Failure text={reason} />)}
      <a class="button primary wide" href="/v1/login" onClick={rememberPlace}>
        {words.signIn.provider}
      </a>
      <p class="or">{words.signIn.or}</p>
      <form onSubmit={(event) => void submit(event)}>
        <label for="token">{words.signIn.token}</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          required
          value={token}
          onInput={(event) => (token.value = event.currentTarget.value)}
        />
        <button class="button wide" disabled={busy.value}>
          {words.signIn.button}
        </button>
      </form>
      <div class="hint">
        <p>{words.signIn.open}</p>
        <Command text={words.signIn.openCommand} />
        <p>{words.signIn.tokenHelp}</p>
        <Command text={words.signIn.tokenCommand} />
      </div>
    </>
  );
}
