// Rows by their names, as the stream tells them: one signal says that something has changed, and one for each row that
// is looked at says what it is now, so that a change draws that row anew and nothing else.
import { signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { hear } from "../live";

export class Rows<Row> {
  readonly all: ReadonlyMap<string, Row>;
  readonly #rows = new Map<string, Row>();
  readonly #looked = new Map<string, Signal<Row | undefined>>();
  readonly #changed = signal(0);
  readonly #known = signal(false);
  #fresh: Map<string, Row> | null = null;

  constructor(
    /** The name under which the stream tells of them. */
    part: string,
    nameOf: (told: never) => string,
    rowOf: (told: never) => Row,
  ) {
    this.all = this.#rows;
    hear("changes", (told, { whole }) => {
      const rows = told[part] as never[] | undefined;
      const gone = told[`${part}_gone`] as string[] | undefined;
      if (told["anew"]) this.#fresh = new Map();
      if (rows?.length || gone?.length || this.#fresh) {
        this.#take(rows?.map((row) => [nameOf(row), rowOf(row)] as const) ?? [], gone ?? [], whole);
      }
    });
  }

  /** A number that grows with each change. */
  get changed(): ReadonlySignal<number> {
    return this.#changed;
  }

  /** Whether all that there is has been told. */
  get known(): ReadonlySignal<boolean> {
    return this.#known;
  }

  /** One row, while it is there. */
  at(name: string): ReadonlySignal<Row | undefined> {
    let found = this.#looked.get(name);
    if (!found) {
      if (this.#looked.size > MOST_LOOKED_AT) this.#looked.clear();
      this.#looked.set(name, (found = signal(this.#rows.get(name))));
    }
    return found;
  }

  /** Forget everything. */
  clear(): void {
    this.#rows.clear();
    for (const each of this.#looked.values()) each.value = undefined;
    this.#known.value = false;
    this.#changed.value += 1;
  }

  #take(rows: readonly (readonly [string, Row])[], gone: readonly string[], whole: boolean): void {
    for (const [name, row] of rows) {
      this.#fresh?.set(name, row);
      this.#rows.set(name, row);
      const looked = this.#looked.get(name);
      if (looked) looked.value = row;
    }
    for (const name of gone) this.#remove(name);
    if (whole && this.#fresh) {
      for (const name of [...this.#rows.keys()]) if (!this.#fresh.has(name)) this.#remove(name);
      this.#fresh = null;
      this.#known.value = true;
    }
    this.#changed.value += 1;
  }

  #remove(name: string): void {
    this.#rows.delete(name);
    const looked = this.#looked.get(name);
    if (looked) looked.value = undefined;
  }
}

/** Rows whose signals are kept; more than any page draws at once. */
const MOST_LOOKED_AT = 4000;
