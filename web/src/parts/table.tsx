// A table of thousands of rows of one height. As many nodes as fit, and a few more, are used again while one scrolls:
// slot s shows each row whose place leaves s over, so nothing is made or thrown away. A change of a row that is seen
// draws that row alone.
import { computed, useSignal, useSignalEffect, type ReadonlySignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useKeys } from "../keys";
import { go } from "../router";
import { words } from "../words";
import { Icon } from "./icons";
import { isNarrow, windowWidth } from "./narrow";

export interface Column<Row> {
  key: string;
  title: string;
  /** A track of a CSS grid: `120px`, `minmax(200px, 2fr)`. */
  width: string;
  end?: boolean;
  /** The least width of the window in which there is a place for it. */
  from?: number;
  /** Whether the list can be sorted by it. */
  sorts?: boolean;
  cell: (row: Row) => ComponentChildren;
}

/** What a list is sorted by: the key of a column, with `-` before it for the greatest first. */
export type Order = string;

interface TableProps<Row> {
  label: string;
  columns: readonly Column<Row>[];
  /** The names of the rows, in order. */
  names: ReadonlySignal<readonly string[]>;
  at: (name: string) => { readonly value: Row | undefined };
  /** Where a row leads. */
  link: (name: string) => string;
  /** The row where the window is narrow, in up to three lines. */
  card: (row: Row) => ComponentChildren;
  order: ReadonlySignal<Order>;
  sort: (order: Order) => void;
  /** Whether the pointer moves over the rows; who sorts them then waits. */
  held?: Signal<boolean>;
}

const ROW = 34;
const CARD = 76;
const RESTS_AFTER = 3000; // milliseconds after which a pointer that does not move points at nothing
const MORE = 8; // rows beyond those that are seen

export function Table<Row>(given: TableProps<Row>) {
  const columns = given.columns.filter(({ from = 0 }) => from <= windowWidth.value);
  const props = { ...given, columns };
  const { names, held } = props;
  const port = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(800);
  const cursor = useSignal("");
  const rowHeight = isNarrow.value ? CARD : ROW;
  useEffect(() => {
    const watched = new ResizeObserver(([entry]) => (height.value = entry?.contentRect.height ?? height.value));
    watched.observe(port.current!);
    return () => watched.disconnect();
  }, []);
  const slots = Math.min(names.value.length, Math.ceil(height.value / rowHeight) + MORE);
  const first = useMemo(
    () => computed(() => Math.max(0, Math.floor(top.value / (isNarrow.value ? CARD : ROW)) - MORE / 2)),
    [],
  );
  useSignalEffect(() => {
    if (cursor.value && !names.value.includes(cursor.value)) cursor.value = "";
  });
  const move = (by: number) => {
    const there = names.peek();
    const next = Math.min(Math.max(there.indexOf(cursor.peek()) + by, 0), there.length - 1);
    const each = isNarrow.peek() ? CARD : ROW;
    cursor.value = there[next] ?? "";
    show(port.current!, next * each, each);
  };
  useKeys([
    { keys: "j", does: words.keys.next, run: () => move(1) },
    { keys: "k", does: words.keys.before, run: () => move(-1) },
    { keys: "Enter", does: words.keys.open, run: () => cursor.peek() && go(props.link(cursor.peek())) },
  ]);
  const resting = useRef<number | undefined>(undefined);
  const letGo = () => held && (held.value = false);
  const hold = () => {
    if (!held) return;
    held.value = true;
    clearTimeout(resting.current);
    resting.current = window.setTimeout(letGo, RESTS_AFTER);
  };
  const tracks = columns.map((each) => each.width).join(" ");
  return (
    <div
      class={isNarrow.value ? "table cards" : "table"}
      role="grid"
      aria-label={props.label}
      aria-rowcount={names.value.length + 1}
      style={{ "--tracks": tracks, "--row": `${rowHeight}px` }}
    >
      <div class="table-head" role="rowgroup">
        <div class="table-row" role="row" aria-rowindex={1}>
          {columns.map((column) => (
            <Heading key={column.key} column={column} order={props.order.value} sort={props.sort} />
          ))}
        </div>
      </div>
      <div
        ref={port}
        class="table-port"
        role="rowgroup"
        tabIndex={0}
        onScroll={() => (top.value = port.current!.scrollTop)}
        onPointerMove={hold}
        onPointerLeave={letGo}
      >
        <div class="table-rows" role="presentation" style={{ height: `${names.value.length * rowHeight}px` }}>
          {Array.from({ length: slots }, (_, slot) => (
            <Slot key={slot} slot={slot} slots={slots} first={first} cursor={cursor} rowHeight={rowHeight} {...props} />
          ))}
        </div>
      </div>
    </div>
  );
}

interface SlotProps<Row> extends TableProps<Row> {
  slot: number;
  slots: number;
  first: ReadonlySignal<number>;
  cursor: Signal<string>;
  rowHeight: number;
}

function Slot<Row>({ slot, slots, first, cursor, rowHeight, names, at, link, columns, card }: SlotProps<Row>) {
  const place = useMemo(
    () =>
      computed(() => {
        const from = Math.min(first.value, Math.max(0, names.value.length - slots));
        return from + ((((slot - from) % slots) + slots) % slots);
      }),
    [slot, slots, first, names],
  );
  const called = useMemo(() => computed(() => names.value[place.value]), [place, names]);
  const [index, name] = [place.value, called.value];
  const row = name === undefined ? undefined : at(name).value;
  if (name === undefined || row === undefined) return null;
  const open = (event: MouseEvent) => {
    if (event.target instanceof Element && event.target.closest("a, button, input")) return;
    if (getSelection()?.isCollapsed ?? true) go(link(name));
  };
  return (
    <div
      class={cursor.value === name ? "table-row here" : "table-row"}
      role="row"
      aria-rowindex={index + 2}
      style={{ transform: `translateY(${index * rowHeight}px)` }}
      onClick={open}
    >
      {isNarrow.value ? (
        <div class="card-cell" role="gridcell">
          {card(row)}
        </div>
      ) : (
        columns.map((column) => (
          <div key={column.key} class={column.end ? "cell end" : "cell"} role="gridcell">
            {column.cell(row)}
          </div>
        ))
      )}
    </div>
  );
}

function Heading<Row>({ column, order, sort }: { column: Column<Row>; order: Order; sort: (order: Order) => void }) {
  const up = order === column.key;
  const down = order === `-${column.key}`;
  const sorted = up ? "ascending" : down ? "descending" : "none";
  return (
    <div
      class={column.end ? "cell end" : "cell"}
      role="columnheader"
      aria-sort={column.sorts ? sorted : undefined}
    >
      {column.sorts ? (
        <button type="button" onClick={() => sort(down ? column.key : up ? "" : `-${column.key}`)}>
          {column.title}
          {(up || down) && <Icon name={up ? "up" : "down"} />}
        </button>
      ) : (
        column.title
      )}
    </div>
  );
}

function show(port: HTMLElement, top: number, height: number): void {
  if (top < port.scrollTop) port.scrollTop = top;
  else if (top + height > port.scrollTop + port.clientHeight) port.scrollTop = top + height - port.clientHeight;
}
