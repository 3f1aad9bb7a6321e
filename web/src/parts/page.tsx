// The frame of a page: its title, what can be done, and its content.
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { words } from "../words";

interface PageProps {
  title: string;
  /** What stands in the head in place of the title alone; the page's `h1` is in it. */
  head?: ComponentChildren;
  actions?: ComponentChildren;
  /** Whether the content fills the window and scrolls by itself, as tables do. */
  fills?: boolean;
  children: ComponentChildren;
}

export function Page({ title, head, actions, fills = false, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · ${words.product}`;
  }, [title]);
  return (
    <main id="content" class={fills ? "page fills" : "page"} tabIndex={-1}>
      <header class="page-head">
        {head ?? <h1>{title}</h1>}
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </main>
  );
}
