// Submits a held job, reads it, is told of a fault and deletes it; prints what it has seen as JSON.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { env: Record<string, string | undefined> };

const client = createClient<paths, "application/json" | "application/problem+json">({
  baseUrl: process.env.URL!,
  headers: { Authorization: `Bearer ${process.env.TOKEN}` },
});

const job: components["schemas"]["JobFile"] = { name: "typed", command: "true", hold: true };
const submitted = await client.POST("/v1/jobs", { body: job, params: { query: { queue_anyway: true } } });
const id: string = submitted.data!.id;
const seen = await client.GET("/v1/jobs/{job}", { params: { path: { job: id } } });
const missing = await client.GET("/v1/jobs/{job}", { params: { path: { job: "nothing" } } });
const listed = await client.GET("/v1/jobs", { params: { query: { page_size: 10 } } });
const deleted = await client.DELETE("/v1/jobs/{job}", { params: { path: { job: id }, query: { force: true } } });
console.log(
  JSON.stringify({
    name: seen.data!.spec.name,
    phase: seen.data!.phase,
    missing: missing.error!.type,
    listed: listed.data!.items!.map((each) => each.id === id),
    deleted: deleted.response.status,
  }),
);
