import assert from "node:assert/strict";
import { test } from "node:test";
import { address } from "../src/api/ask";
import { EventReader } from "../src/api/events";
import { problemFrom } from "../src/api/problem";
import type { JobPhase } from "../src/api/types";
import { counted, filtersOf, ordered } from "../src/pages/jobs/filters";
import { matched } from "../src/router";
import { rowOf, type JobRow } from "../src/store/jobs";
import { ago, shortSpan, size, span } from "../src/when";

test("events are the same in whatever pieces they come", () => {
  const text = 'id: 1.2\nevent: changes\ndata: {"a":"ä"}\n\n: still here\n\nevent: end\ndata: {}\n\n';
  for (let piece = 1; piece < text.length; piece += 7) {
    const reader = new EventReader();
    const found = [];
    for (let at = 0; at < text.length; at += piece) found.push(...reader.read(text.slice(at, at + piece)));
    assert.deepEqual(found, [
      { name: "changes", data: '{"a":"ä"}', id: "1.2" },
      { name: "end", data: "{}", id: "" },
    ]);
  }
});

test("addresses of calls have names encoded and parameters that are there", () => {
  const query = { phase: ["running", "queued"], sort: undefined, force: true };
  assert.equal(address("/v1/jobs/{job}", { in: { job: "a b/c" }, query }), "/v1/jobs/a%20b%2Fc?phase=running&phase=queued&force=true");
  assert.throws(() => address("/v1/jobs/{job}", {}), /needs job/);
});

test("a problem says the coordinator's own sentence, and what is known where there is none", () => {
  const said = { type: "urn:muster:problem:not-found", title: "nothing has that name", detail: "no job x", issues: [] };
  assert.deepEqual([problemFrom(said, 404).word, problemFrom(said, 404).message], ["not-found", "no job x"]);
  assert.equal(problemFrom({}, 502).message, "the answer has the status 502");
});

test("paths are found by their patterns", () => {
  assert.deepEqual(matched("/jobs/:job", "/jobs/tvpdtfjd"), { job: "tvpdtfjd" });
  assert.deepEqual(matched("/jobs/:job", "/jobs/a%2Fb/"), { job: "a/b" });
  assert.equal(matched("/jobs/:job", "/jobs"), null);
  assert.equal(matched("/jobs", "/nodes"), null);
});

test("times, spans and sizes are written as the command line writes them", () => {
  assert.deepEqual([0, 28.9, 229, 11_520, 180_000].map(span), ["0 s", "28 s", "3 m 49 s", "3 h 12 m", "2 d 2 h"]);
  assert.deepEqual([2.34, 61].map(shortSpan), ["2.3 s", "1 m 1 s"]);
  assert.deepEqual([ago(0, 4000), ago(0, 240_000)], ["now", "4 m ago"]);
  assert.deepEqual([512, 85_520_809_984].map(size), ["512 B", "79.6 GiB"]);
});

const row = (id: string, sequence: number, phase: JobPhase, more: Partial<JobRow> = {}): JobRow => ({
  id, sequence, phase, name: id, project: "red", owner: "ada", summary: "", executions: 1, running: 0, gpus: 0,
  attempt: 1, priority: 0, submitted: sequence, started: null, ended: null, ...more,
});
const JOBS = [
  row("a", 1, "running", { gpus: 8, project: "blue" }),
  row("b", 2, "failed"),
  row("c", 3, "running", { owner: "bob" }),
];
const of = (written: string) => filtersOf(new URLSearchParams(written));

test("jobs are filtered and sorted as the address says, the newest first among those that are alike", () => {
  const shown = (written: string, order = "") => ordered(JOBS, of(written), order, 0).join("");
  assert.deepEqual(
    [shown(""), shown("phase=running"), shown("q=RED"), shown("owner=bob&phase=failed"), shown("", "-gpus"), shown("", "name")],
    ["cba", "ca", "cb", "", "acb", "abc"],
  );
});

test("phases are counted among the jobs that the other filters leave", () => {
  const { all, phases, projects } = counted(JOBS, of("project=red&phase=running"));
  assert.deepEqual([all, [...phases], projects], [2, [["failed", 1], ["running", 1]], ["blue", "red"]]);
});

test("a row has the executions and GPUs of all roles", () => {
  const job = {
    id: "x", phase: "queued", summary: "", submitted_at: "2026-11-28T15:00:23Z", owner: "ada", sequence: 4,
    started_at: null, ended_at: null, attempts: [], states: {}, failure: null, reasons: [], images: [],
    spec: { name: "ps", roles: [{ name: "ps", count: 2 }, { name: "worker", count: 4, resources: { gpus: 8 } }] },
  } as unknown as Parameters<typeof rowOf>[0];
  const { executions, gpus, submitted } = rowOf(job);
  assert.deepEqual([executions, gpus, submitted], [6, 32, Date.UTC(2026, 10, 28, 15, 0, 23)]);
});
