import { tick, tps, type Maybe, isKnown, UNKNOWN } from "../format/number.ts";
import type { Report, Treatment } from "../model.ts";
import { meanTps } from "./throughput.ts";

/** The figure that decides, in words. */
export interface Metric {
  name: string;
  /** As it is in a sentence: "throughput". */
  title: string;
  unit: string;
  isTps: boolean;
}

export function metricOf(report: Report): Metric {
  const { metric = "tps", metric_title = "throughput", metric_unit = "TPS" } = report.decision;
  return { name: metric, title: metric_title, unit: metric_unit, isTps: metric === "tps" };
}

export function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A value of any figure without its unit; small ones keep the digits that count. */
export function bareFigure(value: Maybe): string {
  if (!isKnown(value)) return UNKNOWN;
  return value !== 0 && Math.abs(value) < 0.1 ? String(Number(value.toPrecision(3))).replace("-", "\u2212") : tps(value);
}

/** Mean of the figure that decides; of throughput also where the report gives no interval. */
export function meanMetric(report: Report, treatment: Treatment): number | null {
  const metric = metricOf(report);
  if (metric.isTps) return meanTps(report, treatment);
  return treatment.metric?.mean ?? treatment.figures?.[metric.name] ?? null;
}

/** Whether treatments are compared with one another at all: levels along a curve are not. */
export function compares(report: Report): boolean {
  return report.treatments.some(({ against, step }) => against === undefined || against !== null || step !== null);
}

/** "8 clients", or "1 to 128 clients" where treatments have their own. */
export function clientsInWords(report: Report): string {
  const all = report.treatments.map(({ workload }) => (workload ?? report.experiment.workload).clients);
  const clients = all.length === 0 ? [report.experiment.workload.clients] : all;
  const [low, high] = [Math.min(...clients), Math.max(...clients)];
  if (low !== high) return `${tick(low)} to ${tick(high)} clients`;
  return `${tick(low)} ${low === 1 ? "client" : "clients"}`;
}
