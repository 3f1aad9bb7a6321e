// What went wrong: the coordinator's own sentence, and a way to try again.
import { words } from "../words";
import { Icon } from "./icons";

export function Failure({ text, again }: { text: string; again?: () => void }) {
  return (
    <div class="bar failed" role="alert">
      <Icon name="alerts" />
      <span>{text}</span>
      {again && (
        <button type="button" class="button" onClick={again}>
          {words.problem.again}
        </button>
      )}
    </div>
  );
}
