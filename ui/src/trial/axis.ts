import type uPlot from "uplot";

/** A stretch of time in seconds. */
export type Range = readonly [number, number];

/** Nobody looks closer than at two seconds of values a second apart. */
const WIDTH_MIN_S = 2;
const STEP = 0.2;
const CLOSER = 0.6;

/** Keeps a stretch within the whole and wide enough; null where it is all of it. */
export function within([from, to]: Range, [low, high]: Range): Range | null {
  const width = Math.max(WIDTH_MIN_S, to - from);
  if (width >= high - low) return null;
  const begin = Math.min(Math.max(low, from), high - width);
  return [begin, begin + width];
}

/** What a key does to the stretch in view; undefined for keys that do nothing. */
export function byKey(key: string, range: Range, whole: Range): Range | null | undefined {
  const [from, to] = range;
  const width = to - from;
  const moved = (by: number) => within([from + by * width, to + by * width], whole);
  switch (key) {
    case "ArrowLeft":
      return moved(-STEP);
    case "ArrowRight":
      return moved(STEP);
    case "+":
    case "=":
      return within([from + (width * (1 - CLOSER)) / 2, to - (width * (1 - CLOSER)) / 2], whole);
    case "-":
    case "_":
      return within([from - (width / CLOSER - width) / 2, to + (width / CLOSER - width) / 2], whole);
    case "Home":
    case "0":
    case "Escape":
      return null;
    default:
      return undefined;
  }
}

/** The one axis of time that all charts of a trial share: what one of them shows, all do. Charts
 * are turned directly, without drawing the page again, and it outlives them. */
export class TimeAxis {
  /** Charts that are in view are turned at once, the others when they come into it. */
  private readonly charts = new Map<uPlot, { inView: boolean; late: boolean }>();
  private readonly listeners = new Set<(range: Range | null) => void>();
  private looked: Range | null;

  /** The stretch that was in view stays, as far as it is there. */
  constructor(
    readonly whole: Range,
    looked: Range | null = null,
  ) {
    this.looked = looked === null ? null : within(looked, whole);
  }

  get range(): Range | null {
    return this.looked;
  }

  add(chart: uPlot): () => void {
    const state = { inView: true, late: false };
    this.charts.set(chart, state);
    const watch = new IntersectionObserver((entries) => {
      state.inView = entries.at(-1)?.isIntersecting ?? true;
      if (state.inView && state.late) this.turn(chart);
    });
    watch.observe(chart.root);
    return () => {
      watch.disconnect();
      this.charts.delete(chart);
    };
  }

  private turn(chart: uPlot): void {
    const [min, max] = this.looked ?? this.whole;
    const state = this.charts.get(chart);
    if (state !== undefined) state.late = false;
    chart.setScale("x", { min, max });
  }

  listen(listener: (range: Range | null) => void): () => void {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  }

  look(range: Range | null): void {
    this.looked = range === null ? null : within(range, this.whole);
    for (const [chart, state] of this.charts) {
      if (state.inView) this.turn(chart);
      else state.late = true;
    }
    for (const listener of this.listeners) listener(this.looked);
  }

  /** Whether the key meant anything. */
  press(key: string): boolean {
    const next = byKey(key, this.looked ?? this.whole, this.whole);
    if (next === undefined) return false;
    this.look(next);
    return true;
  }
}
