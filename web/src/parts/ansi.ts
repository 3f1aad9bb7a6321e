// Colours of terminals in text (SGR). All other sequences, and signs that nobody can see, are dropped: what a job prints
// is text and nothing else.

export interface Run {
  text: string;
  /** Names of classes: `ansi-1` to `ansi-7`, `bold`, `dim`, `italic`, `underline`. */
  style: string;
  /** Where it leads, if it is an address. */
  link?: string;
}

const SEQUENCE = /\x1b\[([0-?]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]|\x1b|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
const LINK = /https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}]/g;

interface Look {
  colour: number; // 0 to 7; -1: that of the text
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
}

const PLAIN: Look = { colour: -1, bold: false, dim: false, italic: false, underline: false };

/** A line as runs of one look each. */
export function runsOf(line: string): Run[] {
  const shown = line.slice(line.replace(/\r+$/, "").lastIndexOf("\r") + 1); // a bar that was drawn again stands as it was last
  const runs: Run[] = [];
  let look = PLAIN;
  let at = 0;
  for (const found of shown.matchAll(SEQUENCE)) {
    add(runs, shown.slice(at, found.index), look);
    at = found.index + found[0].length;
    if (found[2] === "m") look = looked(look, found[1] ?? "");
  }
  add(runs, shown.slice(at), look);
  return runs;
}

/** A line as it is read, without colours. */
export function plain(line: string): string {
  return runsOf(line)
    .map((run) => run.text)
    .join("");
}

function add(runs: Run[], text: string, look: Look): void {
  if (!text) return;
  const style = styleOf(look);
  let at = 0;
  for (const found of text.matchAll(LINK)) {
    if (found.index > at) runs.push({ text: text.slice(at, found.index), style });
    runs.push({ text: found[0], style, link: found[0] });
    at = found.index + found[0].length;
  }
  if (at < text.length) runs.push({ text: text.slice(at), style });
}

function styleOf(look: Look): string {
  const words = look.colour >= 0 ? [`ansi-${look.colour}`] : [];
  for (const name of ["bold", "dim", "italic", "underline"] as const) if (look[name]) words.push(name);
  return words.join(" ");
}

function looked(before: Look, parameters: string): Look {
  const look = { ...before };
  const codes = parameters.split(/[;:]/).map(Number);
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] ?? 0;
    if (code === 0) Object.assign(look, PLAIN);
    else if (code === 1) look.bold = true;
    else if (code === 2) look.dim = true;
    else if (code === 3) look.italic = true;
    else if (code === 4) look.underline = true;
    else if (code === 22) look.bold = look.dim = false;
    else if (code === 23) look.italic = false;
    else if (code === 24) look.underline = false;
    else if (code >= 30 && code <= 37) look.colour = code - 30;
    else if (code >= 90 && code <= 97) look.colour = code - 90;
    else if (code === 39) look.colour = -1;
    else if (code === 38 || code === 48) {
      const isPalette = codes[index + 1] === 5;
      const number = codes[index + 2] ?? 0;
      if (code === 38) look.colour = isPalette && number < 16 ? number % 8 : -1;
      index += isPalette ? 2 : 4;
    }
  }
  return look;
}
