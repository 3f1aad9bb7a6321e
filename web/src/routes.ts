// The table of pages. A page is a module of its own, which is fetched when somebody goes there; what it exports as
// `default` gets what its path has said.
import type { ComponentType } from "preact";
import type { IconName } from "./parts/icons";

export interface PageRoute {
  pattern: string;
  load: () => Promise<{ default: ComponentType<Record<string, string>> }>;
  /** Where it stands in the navigation; none: it is reached from elsewhere. */
  nav?: { title: string; icon: IconName; key: string };
  /** The page in the navigation to which it belongs. */
  under?: string;
}

export const routes: readonly PageRoute[] = [
  {
    pattern: "/jobs",
    load: () => import("./pages/jobs/page"),
    nav: { title: "Jobs", icon: "jobs", key: "j" },
  },
  { pattern: "/jobs/:job", load: () => import("./pages/job/page"), under: "/jobs" },
];

/** Where one comes to who asks for nothing. */
export const FIRST_PAGE = "/jobs";
