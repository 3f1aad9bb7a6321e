// Numbers in the navigation, by the pattern of their page: of what is followed already, so that none costs a call.
import { computed, type ReadonlySignal } from "@preact/signals";
import { jobs } from "../store/jobs";
import type { Rows } from "../store/rows";

export const navCounts: Readonly<Record<string, ReadonlySignal<number | undefined>>> = {
  "/jobs": numberOf(jobs),
};

function numberOf(rows: Rows<never> | Rows<object>): ReadonlySignal<number | undefined> {
  return computed(() => (rows.changed.value, rows.known.value ? rows.all.size : undefined));
}
