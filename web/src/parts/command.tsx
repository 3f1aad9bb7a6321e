// A command to copy.
import { words } from "../words";
import { Icon } from "./icons";
import { tell } from "./toast";

export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <CopyButton text={text} what={text} />
    </div>
  );
}

export function CopyButton({ text, what }: { text: string; what: string }) {
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => tell(words.copied(what)),
      (error: unknown) => tell(String(error), "failed"),
    );
  return (
    <button type="button" class="quiet-button" aria-label={words.copy(what)} title={words.copy(what)} onClick={copy}>
      <Icon name="copy" />
    </button>
  );
}
