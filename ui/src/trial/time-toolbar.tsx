import { useEffect, useState } from "preact/hooks";
import type { Range, TimeAxis } from "./axis.ts";

/** Texts and tables follow so often: nobody reads faster, and drawing them each frame takes
 * longer than the charts. */
const TEXTS_MS = 150;

/** The stretch in view, for texts and tables. */
export function useRange(axis: TimeAxis): Range | null {
  const [range, setRange] = useState(axis.range);
  useEffect(() => {
    let timer: number | null = null;
    let last_ms = -Infinity;
    // Charts follow at once; the first change is passed on at once too, and the last one always.
    const stop = axis.listen(() => {
      timer ??= window.setTimeout(() => {
        timer = null;
        last_ms = performance.now();
        setRange(axis.range);
      }, Math.max(0, last_ms + TEXTS_MS - performance.now()));
    });
    setRange(axis.range);
    return () => {
      if (timer !== null) window.clearTimeout(timer);
      stop();
    };
  }, [axis]);
  return range;
}

/** For the element that takes the keys. */
export function pressOn(axis: TimeAxis): (event: KeyboardEvent) => void {
  return (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target instanceof HTMLInputElement) return;
    if (axis.press(event.key)) event.preventDefault();
  };
}

const BUTTONS = [["−", "-", "Zoom out"], ["+", "+", "Zoom in"], ["←", "ArrowLeft", "Earlier"], ["→", "ArrowRight", "Later"]] as const;

interface Props {
  axis: TimeAxis;
  range: Range | null;
  /** An instant in words. */
  instant: (seconds: number) => string;
  /** Id of the text that says how it is used. */
  helpId: string;
  /** What a drag moves: "the chart" or "all charts". */
  charts: string;
}

/** Which stretch of time is in view, and how that is changed by mouse, keyboard and touch. */
export function TimeToolbar({ axis, range, instant, helpId, charts }: Props) {
  const [from, to] = range ?? axis.whole;
  return (
    <div class="time-toolbar">
      <div class="time-buttons" role="group" aria-label="Stretch of time">
        {BUTTONS.map(([sign, key, name]) => (
          <button key={key} type="button" class="button" aria-label={name} onClick={() => { axis.press(key); }}>
            {sign}
          </button>
        ))}
        <button type="button" class="button" disabled={range === null} onClick={() => { axis.look(null); }}>
          All
        </button>
      </div>
      <span class="time-range" role="status">
        {instant(from)} – {instant(to)} <span class="quiet">since the load began</span>
      </span>
      <span class="quiet time-help" id={helpId}>
        Drag across to look closer at {charts}, double-click for everything. With the keyboard: ← → move, + − zoom, Home shows all.
      </span>
    </div>
  );
}
