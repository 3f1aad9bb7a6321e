// Icons: lines on a grid of 16, in the colour of the text around them. They say nothing that a word does not say too.
import type { ComponentChildren } from "preact";

const DRAWN = {
  jobs: <path d="M2.5 4h11M2.5 8h11M2.5 12h7" />,
  queue: <path d="M3 3.5h10M3 8h7M3 12.5h4" />,
  nodes: <path d="M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01" />,
  projects: <path d="M2 4.5h4.5l1.5 2h6v6.5H2z" />,
  alerts: <path d="M8 2.5 14.2 13H1.800zM8 6.5v3M8 11.300v.01" />,
  overview: <path d="M2.5 2.5h4.5v4.5h-4.5zM9 2.5h4.5v4.5H9zM2.5 9h4.5v4.5h-4.5zM9 9h4.5v4.5H9z" />,
  check: <path d="m3.5 8.5 3 3 6-7" />,
  play: <path d="M5 3.2v9.6l7.5-4.800z" fill="currentColor" />,
  cross: <path d="m4 4 8 8M12 4l-8 8" />,
  square: <path d="M4.5 4.5h7v7h-7z" />,
  clock: <path d="M8 1.800a6.2 6.2 0 1 1 0 12.400A6.2 6.2 0 0 1 8 1.800M8 4.800V8l2.2 1.5" />,
  turning: <path d="M8 2.2A5.800 5.800 0 1 1 2.2 8" />,
  pause: <path d="M5.5 4v8M10.5 4v8" />,
  box: <path d="M2.5 5.5 8 2.5l5.5 3v5L8 13.5l-5.5-3zM2.5 5.5 8 8.5l5.5-3M8 8.5v5" />,
  search: <path d="M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10.5 10.5l3.5 3.5" />,
  menu: <path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11" />,
  up: <path d="m4.5 9.5 3.5-3.5 3.5 3.5" />,
  down: <path d="m4.5 6.5 3.5 3.5 3.5-3.5" />,
  copy: <path d="M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3" />,
  theme: <path d="M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2M8 2v12M10.5 4v8M12.6 6v4" />,
  keys: <path d="M1.5 4h13v8.5h-13zM4 6.5h.01M6.700 6.5h.01M9.400 6.5h.01M12 6.5h.01M5 10h6" />,
  out: <path d="M6.5 2.5h-4v11h4M6.5 8h7.5M11 5l3 3-3 3" />,
  back: <path d="M9.5 3.5 5 8l4.5 4.5" />,
} satisfies Record<string, ComponentChildren>;

export type IconName = keyof typeof DRAWN;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      {DRAWN[name]}
    </svg>
  );
}
