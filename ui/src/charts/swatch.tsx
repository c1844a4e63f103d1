import { markerPath } from "./markers.ts";
import { treatmentStyle } from "./style.ts";

/** A short piece of the treatment's line; plain, without dash and marker, for charts that name
 * their lines. */
export function Swatch({ index, plain }: { index: number; plain: boolean }) {
  const { variable, dash, marker } = treatmentStyle(index);
  const colour = `var(${variable})`;
  return (
    <svg class="swatch" width="36" height="14" viewBox="0 0 36 14" aria-hidden="true">
      <line x1="0" x2="36" y1="7" y2="7" stroke={colour} stroke-width="2" stroke-dasharray={plain ? undefined : dash.join(" ")} />
      {plain ? null : <path d={markerPath(marker, 3.6)} transform="translate(18 7)" fill="var(--page)" stroke={colour} stroke-width="1.5" />}
    </svg>
  );
}
