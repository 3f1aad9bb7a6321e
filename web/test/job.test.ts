import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttemptView, ExecutionView, LogLine, State } from "../src/api/types";
import { barsOf, lastOf, rangeOf } from "../src/pages/job/bars";
import { plain, runsOf } from "../src/parts/ansi";
import { Lines } from "../src/store/logs";
import { yaml } from "../src/yaml";

test("colours of terminals become names of classes, and nothing else of what a terminal does is left", () => {
  assert.deepEqual(runsOf("step \x1b[34m12\x1b[0m \x1b[1;91mbad\x1b[22m!\x1b[39m ok"), [
    { text: "step ", style: "" },
    { text: "12", style: "ansi-4" },
    { text: " ", style: "" },
    { text: "bad", style: "ansi-1 bold" },
    { text: "!", style: "ansi-1" },
    { text: " ok", style: "" },
  ]);
  const hostile = "\x1b]0;title\x07\x1b[2J\x1b[1;1H\x1b[?25la\x1b]8;;file:///etc/passwd\x1b\\b\x08\x1bPq\x9b1mc\x00";
  assert.equal(plain(hostile), "abq1mc");
  assert.equal(plain("\x1b[38;5;1mred\x1b[38;2;1;2;3mother\x1b[48;5;3mon\x1b[0m"), "redotheron");
});

test("a bar that was drawn again stands as it was last", () => {
  assert.equal(plain("10 %\r55 %\r100 %\r"), "100 %");
});

test("addresses of the web are links, and no others", () => {
  assert.deepEqual(
    runsOf("see https://a.example/b?c=1). javascript:alert(1) file:///x").filter((run) => run.link),
    [{ text: "https://a.example/b?c=1", style: "", link: "https://a.example/b?c=1" }],
  );
});

const line = (rank: number, second: number, text: string, more: Partial<LogLine> = {}): LogLine => ({
  rank, text, stream: "stdout", time: new Date(second * 1000).toISOString(), partial: false, attempt: 1, ...more,
});
const texts = (lines: Lines) => lines.all.map((each) => `${each.rank} ${each.text}`);

test("pieces of a line are one line, whatever other ranks print meanwhile", () => {
  const lines = new Lines((missed) => `${missed} missing`);
  lines.take({ anew: true, lines: [line(0, 1, "lo", { partial: true }), line(1, 1, "other"), line(0, 2, "ss")] });
  lines.take({ missed: 7, lines: [line(0, 3, "end")] });
  assert.deepEqual(texts(lines), ["0 loss", "1 other", "-1 7 missing", "0 end"]);
  lines.take({ anew: true, lines: [] });
  assert.deepEqual([texts(lines), lines.known.value], [[], true]);
});

test("earlier lines take the place of what is there, and later ones stay", () => {
  const lines = new Lines(String);
  lines.take({ anew: true, lines: [line(0, 5, "five"), line(1, 6, "six"), line(0, 7, "seven")] });
  lines.takeEarlier([line(0, 1, "one"), line(1, 2, "two"), line(0, 5, "five")]);
  assert.deepEqual(texts(lines), ["0 one", "1 two", "0 five", "1 six", "0 seven"]);
});

const steps = (rank: number, node: string | null, ...times: [State, number][]): ExecutionView =>
  ({ rank, node, transitions: times.map(([state, at]) => ({ state, at: new Date(at).toISOString() })) }) as unknown as ExecutionView;

test("bars tell how ranks came together, and who came last", () => {
  const executions = [
    steps(0, "a", ["placed", 1000], ["checked_in", 2000], ["armed", 4000], ["running", 5000]),
    steps(1, "b", ["placed", 1000], ["checked_in", 3500], ["armed", 4000], ["running", 5000]),
    steps(2, null, ["queued", 1000]),
  ];
  const bars = barsOf({ executions } as unknown as AttemptView, 9000);
  assert.deepEqual(bars[0]?.steps, [
    { step: "preparing", from: 1000, to: 2000 },
    { step: "waiting", from: 2000, to: 4000 },
    { step: "armed", from: 4000, to: 5000 },
    { step: "running", from: 5000, to: 9000 },
  ]);
  assert.deepEqual([bars.length, lastOf(bars).rank, rangeOf(bars)], [2, 1, { begin: 1000, end: 5800 }]);
});

test("a rank that prepares still has a bar until now, and one that has failed until then", () => {
  const executions = [
    steps(0, "a", ["placed", 0]),
    steps(1, "b", ["placed", 0], ["checked_in", 500], ["failed", 800]),
  ];
  const bars = barsOf({ executions } as unknown as AttemptView, 2000);
  assert.deepEqual(bars.map((bar) => bar.steps.at(-1)?.to), [2000, 800]);
});

test("job files are written as a person would write them", () => {
  const spec = {
    name: "train", command: ["torchrun", "--nproc=8", "train.py"], workers: 4, env: { MODE: "no", N: "8", TEXT: "a: b" },
    files: [{ path: "a", content: "one\n\n  two\n" }], roles: [], spread: true, note: "", odd: "a\tb\nc",
  };
  assert.equal(
    yaml(spec),
    [
      "name: train",
      'command: [torchrun, "--nproc=8", train.py]',
      "workers: 4",
      "env:",
      '  MODE: "no"',
      '  "N": "8"',
      '  TEXT: "a: b"',
      "files:",
      "  - path: a",
      "    content: |",
      "      one",
      "",
      "        two",
      "roles: []",
      "spread: true",
      'note: ""',
      "odd: |-",
      "  a\tb",
      "  c",
      "",
    ].join("\n"),
  );
});
