// Plain data as YAML, as a person would write a job file.

/** A value as lines of YAML. */
export function yaml(value: unknown): string {
  return `${lines(value, "").join("\n")}\n`;
}

function lines(value: unknown, indent: string): string[] {
  if (Array.isArray(value)) return value.flatMap((each) => led(`${indent}-`, each, `${indent}  `));
  return Object.entries(value as Record<string, unknown>).flatMap(([key, each]) =>
    led(`${indent}${scalar(key)}:`, each, `${indent}  `),
  );
}

/** A value behind what leads to it: on the same line, or below. */
function led(lead: string, value: unknown, indent: string): string[] {
  if (typeof value === "string" && value.includes("\n") && !/[\x00-\x08\x0b-\x1f]|^\s|[^\n]\n{2,}$/.test(value)) {
    const mark = value.endsWith("\n") ? "|" : "|-";
    return [`${lead} ${mark}`, ...value.replace(/\n$/, "").split("\n").map((line) => (line ? indent + line : ""))];
  }
  if (typeof value !== "object" || value === null) return [`${lead} ${scalar(value)}`];
  if (Array.isArray(value) ? !value.length : !Object.keys(value).length) return [`${lead} ${Array.isArray(value) ? "[]" : "{}"}`];
  if (Array.isArray(value) && value.every(isShort)) {
    const written = `${lead} [${value.map((each) => scalar(each, true)).join(", ")}]`;
    if (written.length <= 100) return [written];
  }
  const below = lines(value, indent);
  const [first = "", ...rest] = below;
  return lead.endsWith("-") ? [`${lead} ${first.trimStart()}`, ...rest] : [lead, ...below];
}

function isShort(value: unknown): boolean {
  return (typeof value !== "object" || value === null) && !(typeof value === "string" && value.includes("\n"));
}

const PLAIN_TEXT = /^[A-Za-z_./][\w ./@=+-]*$/;
const OTHERWISE_READ = /^(?:true|false|yes|no|on|off|null|~|y|n)$/i;

function scalar(value: unknown, within = false): string {
  if (typeof value !== "string") return String(value);
  const isPlain = PLAIN_TEXT.test(value) && !OTHERWISE_READ.test(value) && !value.endsWith(" ");
  return isPlain && !(within && value.includes(",")) ? value : JSON.stringify(value);
}
