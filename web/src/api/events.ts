// Server-sent events, read from an answer: unlike EventSource this has the status and the reason of a refusal.

export interface StreamEvent {
  name: string;
  data: string;
  /** Shown again, the stream goes on after this event; empty: it has none. */
  id: string;
}

/** Takes text as it comes, in pieces of any size; the events that are whole. */
export class EventReader {
  #left = "";

  read(text: string): StreamEvent[] {
    const blocks = (this.#left + text).split("\n\n");
    this.#left = blocks.pop() ?? "";
    return blocks.map(eventOf).filter((event) => event.data !== "");
  }
}

function eventOf(block: string): StreamEvent {
  const event = { name: "message", data: "", id: "" };
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    if (at <= 0) continue; // a comment: the stream is still there
    const value = line.slice(line[at + 1] === " " ? at + 2 : at + 1);
    const field = line.slice(0, at);
    if (field === "event") event.name = value;
    else if (field === "data") event.data += event.data ? `\n${value}` : value;
    else if (field === "id") event.id = value;
  }
  return event;
}
