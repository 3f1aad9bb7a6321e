// Parts of a page of which one is shown; which one stands in the address.
import { query } from "../router";

export interface Tab {
  key: string;
  title: string;
  number?: number;
}

/** The tab that the address names; the first one where it names none. */
export function chosenTab(tabs: readonly Tab[]): string {
  const wanted = query.value.get("tab");
  return tabs.find((tab) => tab.key === wanted)?.key ?? tabs[0]?.key ?? "";
}

export function Tabs({ tabs, label, path }: { tabs: readonly Tab[]; label: string; path: string }) {
  const here = chosenTab(tabs);
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ key, title, number }, index) => (
        <a key={key} href={index ? `${path}?tab=${key}` : path} aria-current={key === here ? "page" : undefined}>
          {title}
          {number !== undefined && <span class="number">{number}</span>}
        </a>
      ))}
    </nav>
  );
}
