// Cards, and tiles with one figure each.
import type { ComponentChildren } from "preact";

export function Card({ title, aside, children }: { title: string; aside?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="card" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

export function Tile({ title, figure, more }: { title: string; figure: ComponentChildren; more?: ComponentChildren }) {
  return (
    <div class="tile">
      <dt>{title}</dt>
      <dd>
        <span class="figure">{figure}</span>
        {more && <span class="second">{more}</span>}
      </dd>
    </div>
  );
}
