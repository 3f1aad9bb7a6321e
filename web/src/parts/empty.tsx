// What stands where nothing is: what would stand there, and the one thing to do.
import type { ComponentChildren } from "preact";
import { Command } from "./command";

export function Empty(props: { title: string; text: string; command?: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{props.title}</h2>
      <p>{props.text}</p>
      {props.command && <Command text={props.command} />}
      {props.children}
    </div>
  );
}
