// What stands in the place of a list or text while it loads, in the layout that it will have.
import { words } from "../words";

export function SkeletonRows({ rows = 12 }: { rows?: number }) {
  return (
    <div class="skeleton" role="status" aria-label={words.live.connecting}>
      {Array.from({ length: rows }, (_, row) => (
        <span key={row} />
      ))}
    </div>
  );
}
