import { isKnown } from "../format/number.ts";
import type { Layer, TrialColumn, TrialDocument, Waits, WaitSessions } from "../model.ts";

/** One chart: lines of one unit on the common axis of time. */
export interface Panel {
  id: string;
  title: string;
  unit: string;
  layer: Layer;
  lines: Line[];
  /** Lines that are stacked on one another. */
  stacked: boolean;
  /** Lines that are there beyond those drawn. */
  more: number;
  /** In CSS pixels; that of a trial's charts where this is not said. */
  height?: number;
  /** How each line is drawn; by its place where this is not said. */
  styles?: readonly LineStyle[];
}

export interface LineStyle {
  /** Name of the CSS variable that holds the colour. */
  variable: string;
  dash: number[];
}

export interface Line {
  title: string;
  t_ms: readonly number[];
  values: readonly (number | null)[];
}

/** So many lines can be distinguished by colour and dash. */
const LINES_MAX = 8;
export const LAYERS: readonly Layer[] = ["load", "host", "server"];
export const LAYER_TITLE: Record<Layer, string> = { load: "Load", host: "Host", server: "Server" };
export const WAITS = "waits";
const WAIT_TYPES = "wait-types";
/** What the smallest of many are together. */
const OTHER = "other";

interface Composed {
  id: string;
  title: string;
  layer: Layer;
  /** Metric, label that is wanted (none: all), and what the line is called (none: its label). */
  lines: [metric: string, label: string | null, title: string | null][];
  stacked?: boolean;
}

/** Charts that say more together than each of their metrics alone. They are shown first, in this
 * order. */
const COMPOSED: readonly Composed[] = [
  { id: "tps", title: "Throughput", layer: "load", lines: [["tps", null, "committed"]] },
  { id: "p95_ms", title: "Response time", layer: "load", lines: [["p95_ms", null, "p95"]] },
  {
    id: "cpu", title: "CPU, of all", layer: "host", stacked: true,
    lines: [["cpu.user_ratio", "all", "user"], ["cpu.system_ratio", "all", "system"], ["cpu.softirq_ratio", "all", "softirq"], ["cpu.iowait_ratio", "all", "iowait"], ["cpu.steal_ratio", "all", "steal"]],
  },
  { id: "wal", title: "WAL written", layer: "server", lines: [["wal.bytes_per_s", null, "records"], ["wal.position_bytes_per_s", null, "position"]] },
  { id: "disk", title: "Disks", layer: "host", lines: [["disk.read_bytes_per_s", null, null], ["disk.write_bytes_per_s", null, null]] },
  { id: "checkpoints", title: "Blocks written", layer: "server", lines: [["checkpoints.blocks_written_per_s", null, "by checkpoints"], ["bgwriter.blocks_written_per_s", null, "by the background writer"], ["bgwriter.backend_blocks_written_per_s", null, "by backends"]] },
  { id: "memory", title: "Memory", layer: "host", lines: [["memory.available_bytes", null, "available"], ["memory.cached_bytes", null, "cached"], ["memory.dirty_bytes", null, "dirty"]] },
];

function mean(column: TrialColumn): number {
  let sum = 0;
  let amount = 0;
  for (const value of column.values) {
    if (value === null) continue;
    sum += value;
    amount += 1;
  }
  return amount === 0 ? 0 : sum / amount;
}

function isBusy(column: TrialColumn): boolean {
  return column.values.some((value) => isKnown(value) && value !== 0);
}

const SHORT: Record<string, string> = { "disk.read_bytes_per_s": "read", "disk.write_bytes_per_s": "written" };

function composed(document: TrialDocument, { lines, ...panel }: Composed): Panel | null {
  const found = lines.flatMap(([metric, label, title]) =>
    document.series
      .filter((column) => column.metric === metric && (label === null || column.label === label || column.label === null))
      // Idle devices among several say nothing.
      .filter((column) => title !== null || isBusy(column))
      .map((column) => ({ column, title: title ?? [column.label ?? "", SHORT[metric] ?? ""].join(" ").trim() })),
  );
  const first = found[0];
  if (first === undefined) return null;
  const kept = found.slice(0, LINES_MAX);
  return {
    ...panel,
    stacked: panel.stacked ?? false,
    unit: first.column.unit,
    lines: kept.map(({ column, title }) => ({ title, t_ms: column.t_ms, values: column.values })),
    more: found.length - kept.length,
  };
}

/** Of a stack nothing may be missing: the smallest of too many are one. */
export function folded(all: readonly WaitSessions[]): WaitSessions[] {
  if (all.length <= LINES_MAX) return [...all];
  const named = all.filter(({ name }) => name !== OTHER).slice(0, LINES_MAX - 1);
  const rest = all.filter((each) => !named.includes(each));
  const values = (rest[0]?.values ?? []).map((_, place) => rest.reduce((sum, each) => sum + (each.values[place] ?? 0), 0));
  return [...named, { name: OTHER, values }];
}

function stackOf(found: Waits, all: readonly WaitSessions[], id: string, title: string): Panel | null {
  const lines = folded(all).map(({ name, values }) => ({ title: name, t_ms: found.t_ms, values }));
  return lines.length === 0 ? null : { id, title, unit: "sessions", layer: "server", stacked: true, lines, more: 0 };
}

/** By event where events are known, else by type. */
function waits({ waits: found }: TrialDocument): Panel | null {
  if (found === null) return null;
  const events = found.events ?? [];
  return events.length === 0 ? waitTypes(found) : stackOf(found, events, WAITS, "Sessions by wait event");
}

function waitTypes(found: Waits): Panel | null {
  return stackOf(found, found.types, (found.events ?? []).length === 0 ? WAITS : WAIT_TYPES, "Sessions by type of wait");
}

/** Not shown until chosen. */
function more(document: TrialDocument): Panel[] {
  const types = document.waits === null ? null : waitTypes(document.waits);
  return types === null || types.id === WAITS ? [] : [types];
}

/** Every metric as a chart of its own: a line for each label, the largest first. */
export function single(document: TrialDocument, metric: string): Panel | null {
  const columns = document.series.filter((column) => column.metric === metric);
  const first = columns[0];
  if (first === undefined) return null;
  const ranked = columns.length > 1 ? columns.toSorted((a, b) => mean(b) - mean(a)) : columns;
  const lines = ranked.slice(0, LINES_MAX).map((column) => ({ title: column.label ?? column.title, t_ms: column.t_ms, values: column.values }));
  return { id: metric, title: first.title, unit: first.unit, layer: first.layer, lines, stacked: false, more: ranked.length - lines.length };
}

export interface Choice {
  id: string;
  title: string;
  layer: Layer;
  /** What is searched beside the title: the metric's name. */
  name: string;
}

/** Charts that are shown until others are chosen. */
export function defaultPanels(document: TrialDocument): Panel[] {
  const all = COMPOSED.map((each) => composed(document, each));
  const [load, rest] = [all.slice(0, 2), all.slice(2)];
  return [...load, rest[0] ?? null, waits(document), ...rest.slice(1)].filter((panel) => panel !== null);
}

/** What can be chosen: the composed ones first, then every metric by name. */
export function choices(document: TrialDocument): Choice[] {
  const first = [...defaultPanels(document), ...more(document)].map(({ id, title, layer }) => ({ id, title, layer, name: id }));
  const known = new Set(first.map(({ id }) => id));
  const metrics = new Map<string, Choice>();
  for (const { metric, title, layer, unit } of document.series) {
    if (known.has(metric) || metrics.has(metric)) continue;
    metrics.set(metric, { id: metric, title: unit === "" ? title : `${title}, ${unit}`, layer, name: metric });
  }
  return [...first, ...metrics.values()];
}

export function panelOf(document: TrialDocument, id: string): Panel | null {
  return [...defaultPanels(document), ...more(document)].find((panel) => panel.id === id) ?? single(document, id);
}

/** Choices whose title or name has all the words; by layer. */
export function searched(all: readonly Choice[], words: string): { layer: Layer; choices: Choice[] }[] {
  const wanted = words.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const fits = ({ title, name }: Choice) => wanted.every((word) => `${title} ${name}`.toLowerCase().includes(word));
  return LAYERS.map((layer) => ({ layer, choices: all.filter((choice) => choice.layer === layer && fits(choice)) })).filter(({ choices: found }) => found.length > 0);
}
