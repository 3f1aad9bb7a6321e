// The shell: navigation on the left, the page beside it, and a bar while the console is away.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { bound, useKeys } from "../keys";
import { liveState } from "../live";
import { go, matched, path } from "../router";
import { routes, type PageRoute } from "../routes";
import { session, signOut } from "../session";
import { theme, THEMES } from "../theme";
import { clock, count } from "../when";
import { words } from "../words";
import { sentence } from "../api/problem";
import { Dialog, OpenQuestion } from "./dialog";
import { Icon } from "./icons";
import { navCounts } from "./nav-counts";
import { tell } from "./toast";

const shown = routes.filter((route) => route.nav);

export function Shell({ children }: { children: ComponentChildren }) {
  const open = useSignal(false);
  const help = useSignal(false);
  useKeys([
    { keys: "?", does: words.keys.help, run: () => (help.value = true) },
    ...shown.map(({ nav, pattern }) => ({
      keys: `g ${nav!.key}`,
      does: words.keys.goTo(nav!.title),
      run: () => go(pattern),
    })),
  ]);
  return (
    <div class={open.value ? "shell nav-open" : "shell"}>
      <a class="skip" href="#content" onClick={skip}>
        {words.nav.skip}
      </a>
      <aside class="side">
        <div class="brand">
          <a href="/">
            <Logo />
            {words.product}
          </a>
          <button
            type="button"
            class="quiet-button menu"
            aria-label={words.nav.menu}
            aria-expanded={open.value}
            onClick={() => (open.value = !open.value)}
          >
            <Icon name="menu" />
          </button>
        </div>
        <div class="folding" onClick={(event) => event.target instanceof HTMLAnchorElement && (open.value = false)}>
          <nav aria-label={words.nav.label}>
            {shown.map((route) => (
              <NavLink key={route.pattern} route={route} />
            ))}
          </nav>
          <Me help={() => (help.value = true)} />
        </div>
      </aside>
      <div class="beside">
        <AwayBar />
        {children}
      </div>
      {help.value && <KeyHelp close={() => (help.value = false)} />}
      <OpenQuestion />
    </div>
  );
}

function NavLink({ route }: { route: PageRoute }) {
  const { title, icon } = route.nav!;
  const number = navCounts[route.pattern]?.value;
  return (
    <a href={route.pattern} aria-current={isHere(route) ? "page" : undefined}>
      <Icon name={icon} />
      {title}
      {number !== undefined && <span class="number">{count(number)}</span>}
    </a>
  );
}

function isHere(route: PageRoute): boolean {
  return routes.some(
    (each) => (each === route || each.under === route.pattern) && matched(each.pattern, path.value) !== null,
  );
}

function Me({ help }: { help: () => void }) {
  const now = session.value;
  const next = () => (theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "system");
  return (
    <div class="me">
      <button type="button" onClick={next}>
        <Icon name="theme" />
        {words.nav.theme}
        <span class="number">{words.nav.themes[theme.value]}</span>
      </button>
      <button type="button" onClick={help}>
        <Icon name="keys" />
        {words.nav.keys}
        <kbd>?</kbd>
      </button>
      <button type="button" onClick={() => signOut().catch((error: unknown) => tell(sentence(error), "failed"))}>
        <Icon name="out" />
        {words.nav.signOut}
      </button>
      {now.state === "in" && <p title={words.nav.signedInAs(now.myself.name)}>{now.myself.name}</p>}
    </div>
  );
}

function AwayBar() {
  const state = liveState.value;
  if (state.state !== "away") return null;
  return (
    <div class="bar warning" role="status">
      <Icon name="alerts" />
      {words.away.bar(clock(state.since))}
    </div>
  );
}

function KeyHelp({ close }: { close: () => void }) {
  return (
    <Dialog title={words.keys.title} close={close}>
      <dl class="key-list">
        {bound.value.map(({ keys, does }) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog" class="actions">
        <button class="button">{words.dialog.close}</button>
      </form>
    </Dialog>
  );
}

export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M8 23V9h3l5 8 5-8h3v14h-3.4v-8.2L16 22l-4.6-7.2V23z" />
    </svg>
  );
}

function skip(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}
