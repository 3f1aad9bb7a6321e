// What went wrong, as the API says it (RFC 9457).

/** A fault of a job file, or of a part of the request. */
export interface Issue {
  message: string;
  [more: string]: unknown;
}

export class Problem extends Error {
  constructor(
    /** The last part of its type: `not-found`, `not-allowed`, … */
    readonly word: string,
    /** The status; 0: nobody has answered. */
    readonly status: number,
    readonly title: string,
    /** The sentence that the command line says, too. */
    detail: string,
    readonly issues: readonly Issue[],
  ) {
    super(detail);
  }
}

/** The problem of a document, or of a part of one. */
export function problemFrom(said: Record<string, unknown>, status: number): Problem {
  const text = (name: string, without: string) => (typeof said[name] === "string" ? said[name] : without);
  const title = text("title", `the answer has the status ${status}`);
  const issues = Array.isArray(said["issues"]) ? (said["issues"] as Issue[]) : [];
  return new Problem(text("type", "").split(":").at(-1) ?? "", status, title, text("detail", title), issues);
}

/** The problem of an answer. */
export async function problemOf(answer: Response): Promise<Problem> {
  const said: unknown = await answer.json().catch(() => ({}));
  return problemFrom(typeof said === "object" && said !== null ? (said as Record<string, unknown>) : {}, answer.status);
}

/** The sentence of anything that was thrown. */
export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
