// What is shown: the sign-in, or the shell with the page that the path names.
import { useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentType } from "preact";
import { sentence } from "./api/problem";
import { endLive } from "./live";
import { Empty } from "./parts/empty";
import { Failure } from "./parts/failure";
import { Page } from "./parts/page";
import { Shell } from "./parts/shell";
import { Toasts } from "./parts/toast";
import { SignIn } from "./pages/sign-in/page";
import { go, matched, path } from "./router";
import { FIRST_PAGE, routes, type PageRoute } from "./routes";
import { session } from "./session";
import { words } from "./words";

export function App() {
  useSignalEffect(() => {
    if (session.value.state !== "in") endLive();
  });
  return (
    <>
      {session.value.state === "in" ? <Shell>{<Content />}</Shell> : <SignIn />}
      <Toasts />
    </>
  );
}

interface Loaded {
  route: PageRoute;
  component: ComponentType<Record<string, string>>;
}

function Content() {
  const loaded = useSignal<Loaded | null>(null);
  const failed = useSignal("");
  const wanted = routeOf(path.value);
  useSignalEffect(() => {
    const route = routeOf(path.value)?.route;
    if (path.value === "/") go(FIRST_PAGE, true);
    if (!route || loaded.peek()?.route === route) return;
    failed.value = "";
    route.load().then(
      ({ default: component }) => (loaded.value = { route, component }),
      (error: unknown) => (failed.value = sentence(error)),
    );
  });
  if (failed.value) {
    return (
      <Page title={words.problem.page}>
        <Failure text={failed.value} again={() => location.reload()} />
      </Page>
    );
  }
  if (!wanted) return path.value === "/" ? null : <Lost />;
  if (loaded.value?.route !== wanted.route) return null;
  const Component = loaded.value.component;
  return <Component key={path.value} {...wanted.places} />;
}

function routeOf(at: string): { route: PageRoute; places: Record<string, string> } | null {
  for (const route of routes) {
    const places = matched(route.pattern, at);
    if (places) return { route, places };
  }
  return null;
}

function Lost() {
  return (
    <Page title={words.lost.title}>
      <Empty title={words.lost.title} text={words.lost.text(path.value)}>
        <a class="button" href={FIRST_PAGE}>
          {words.lost.action}
        </a>
      </Empty>
    </Page>
  );
}
