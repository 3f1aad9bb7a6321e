// Dialogs. One that ends or deletes something names what that is, in its title and on its button.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { sentence } from "../api/problem";
import { words } from "../words";
import { Failure } from "./failure";

export function Dialog(props: { title: string; close: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="dialog-title" onClose={props.close} onClick={outside}>
      <div class="dialog">
        <h2 id="dialog-title">{props.title}</h2>
        {props.children}
      </div>
    </dialog>
  );
}

/** A click beside a dialog closes it. */
function outside(event: MouseEvent): void {
  if (event.target instanceof HTMLDialogElement) event.target.close();
}

interface Question {
  title: string;
  text: string;
  /** What the button says: the verb and what it does it to. */
  does: string;
  run: () => Promise<void>;
}

const question = signal<Question | null>(null);
const running = signal(false);
const failed = signal("");

/** Ask before something that cannot be undone. */
export function confirm(asked: Question): void {
  failed.value = "";
  question.value = asked;
}

/** The question that is open, if there is one; the shell has it once. */
export function OpenQuestion() {
  const asked = question.value;
  if (!asked) return null;
  const close = () => (question.value = null);
  const run = async () => {
    running.value = true;
    try {
      await asked.run();
      close();
    } catch (error) {
      failed.value = sentence(error);
    } finally {
      running.value = false;
    }
  };
  return (
    <Dialog title={asked.title} close={close}>
      <p>{asked.text}</p>
      {failed.value && <Failure text={failed.value} />}
      <div class="actions">
        <button type="button" class="button" autofocus onClick={close}>
          {words.dialog.cancel}
        </button>
        <button type="button" class="button danger" disabled={running.value} onClick={() => void run()}>
          {asked.does}
        </button>
      </div>
    </Dialog>
  );
}
