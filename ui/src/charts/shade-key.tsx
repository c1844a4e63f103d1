import { HATCH_STEP } from "./steady.ts";

const WIDTH = 22;
const HEIGHT = 12;

function Hatched() {
  const lines = Array.from({ length: Math.ceil((WIDTH + HEIGHT) / HATCH_STEP) }, (_, place) => place * HATCH_STEP - HEIGHT + 4);
  return (
    <g stroke="var(--ink-3)" opacity="0.7">
      {lines.map((at) => (
        <line key={at} x1={at} y1={HEIGHT} x2={at + HEIGHT} y2="0" />
      ))}
    </g>
  );
}

interface Props {
  warmup_s: number;
  /** What the hatching means, as text; null where nothing is hatched. */
  unsettled: string | null;
}

/** Legend of what is drawn behind the lines of a chart over time. */
export function ShadeKey({ warmup_s, unsettled }: Props) {
  if (warmup_s <= 0 && unsettled === null) return null;
  return (
    <ul class="shade-key" aria-label="Behind the lines">
      {warmup_s <= 0 ? null : (
        <li>
          <svg width={WIDTH} height={HEIGHT} viewBox={`0 0 ${String(WIDTH)} ${String(HEIGHT)}`} aria-hidden="true">
            <rect width={WIDTH} height={HEIGHT} fill="var(--shade)" stroke="var(--line-strong)" />
          </svg>
          <span>warm-up, which does not count</span>
        </li>
      )}
      {unsettled === null ? null : (
        <li>
          <svg width={WIDTH} height={HEIGHT} viewBox={`0 0 ${String(WIDTH)} ${String(HEIGHT)}`} aria-hidden="true">
            <rect width={WIDTH} height={HEIGHT} fill="none" stroke="var(--line-strong)" />
            <Hatched />
          </svg>
          <span>{unsettled}</span>
        </li>
      )}
    </ul>
  );
}
