import { quantileOf } from "../analysis/heat.ts";
import { treatmentStyle } from "../charts/style.ts";
import { isKnown } from "../format/number.ts";
import type { Heat, Layer, Trial, TrialColumn, TrialDocument } from "../model.ts";
import type { Choice, Line, Panel } from "../trial/panels.ts";

/** What is drawn of a side over time. */
export interface Drawn {
  /** Place among the sides, for its colour and dash. */
  place: number;
  title: string;
  trial: number;
  warmup_s: number;
  measured_s: number;
  series: readonly TrialColumn[];
}

const P99 = "p99_ms";
/** Lines of many sides want more room than those of one trial. */
const HEIGHT = 260;

/** The 99th percentile of each stretch of a heat map, read off inside its class. */
function p99Of({ t_s, edges_ms, counts }: Heat): TrialColumn {
  const values = counts.map((column) => quantileOf(edges_ms, column, 0.99));
  return { metric: P99, label: null, unit: "ms", layer: "load", title: "response time, p99 by classes", t_ms: t_s.map((end) => end * 1000), values };
}

/** All series of a trial's document, with waits and, where only classes were kept, the p99 among
 * them. */
export function seriesOf({ series, waits, latency_heat }: TrialDocument): TrialColumn[] {
  const of_waits = (waits?.types ?? []).map(({ name, values }): TrialColumn => ({ metric: "waits.sessions", label: name, unit: "sessions", layer: "server", title: "sessions by wait", t_ms: waits?.t_ms ?? [], values }));
  const p99 = latency_heat === null || series.some(({ metric }) => metric === P99) ? [] : [p99Of(latency_heat)];
  return [...series, ...p99, ...of_waits];
}

/** What a report itself has of a trial, for files without its details. */
export function seriesOfReport({ series }: Trial): TrialColumn[] {
  const t_ms = series.t_s.map((end) => end * 1000);
  const column = (metric: string, unit: string, title: string, values: (number | null)[]): TrialColumn[] => (values.some(isKnown) ? [{ metric, label: null, unit, layer: "load", title, t_ms, values }] : []);
  return [...column("tps", "TPS", "throughput", series.tps), ...column("p95_ms", "ms", "response time, p95", series.p95_ms)];
}

function idOf({ metric, label }: TrialColumn): string {
  return label === null ? metric : `${metric} ${label}`;
}

function titleOf({ title, label }: TrialColumn): string {
  const bare = title.charAt(0).toUpperCase() + title.slice(1);
  return label === null ? bare : `${bare}, ${label}`;
}

const ORDER: readonly Layer[] = ["load", "host", "server"];

/** Everything that at least one side has recorded. */
export function choicesOf(sides: readonly Drawn[]): Choice[] {
  const found = new Map<string, Choice>();
  for (const column of sides.flatMap(({ series }) => series)) {
    const id = idOf(column);
    if (!found.has(id)) found.set(id, { id, title: titleOf(column), layer: column.layer, name: id });
  }
  return [...found.values()].toSorted((a, b) => ORDER.indexOf(a.layer) - ORDER.indexOf(b.layer));
}

/** Throughput, and response times by the most informative percentile of those recorded. */
export function firstChoice(sides: readonly Drawn[]): string[] {
  const all = new Set(choicesOf(sides).map(({ id }) => id));
  return ["tps", all.has(P99) ? P99 : "p95_ms"].filter((id) => all.has(id));
}

/** One series of all sides; a line for each that has it, in its side's colour. */
export function panelOfSides(sides: readonly Drawn[], id: string): Panel | null {
  const own = sides.flatMap((side) => {
    const column = side.series.find((each) => idOf(each) === id);
    return column === undefined ? [] : [{ side, column }];
  });
  const first = own[0]?.column;
  if (first === undefined) return null;
  const lines = own.map(({ side, column }): Line => ({ title: side.title, t_ms: column.t_ms, values: column.values }));
  return { id, title: titleOf(first), unit: first.unit, layer: first.layer, lines, stacked: false, more: 0, height: HEIGHT, styles: own.map(({ side }) => treatmentStyle(side.place)) };
}

/** End of the longest, in seconds. */
export function endOf(sides: readonly Drawn[]): number {
  const ends = sides.flatMap(({ warmup_s, measured_s, series }) => [warmup_s + measured_s, ...series.map(({ t_ms }) => (t_ms.at(-1) ?? 0) / 1000)]);
  return Math.max(1, ...ends.filter(isKnown));
}

/** The warm-up, where all have the same. */
export function commonWarmup(sides: readonly Drawn[]): number | null {
  const [first, ...others] = sides.map(({ warmup_s }) => warmup_s);
  return first !== undefined && others.every((each) => each === first) ? first : null;
}
