import { CAPACITY_FORMAT, type CapacityDocument, type CapacityRow, type Found, type Measured } from "../../src/model.ts";
import type { Report } from "../../src/model.ts";
import { ladder } from "./factors.ts";

const CPUS = [1, 2, 4, 8];

function measured(tps_of_one: number, p99_ms: number): Measured[] {
  return CPUS.map((cpus) => ({ cpus, clients: cpus * 4, tps: (tps_of_one * cpus) / (1 + 0.03 * (cpus - 1)), p99_ms: p99_ms * (1 + 0.1 * cpus), blocks: 3 }));
}

function needs(tps: number, tps_of_one: number): [Found, string] {
  const value = tps / (tps_of_one - 0.03 * tps);
  const high = value > 12 ? null : value * 1.27;
  const extrapolates = value / 8;
  if (extrapolates > 2 || value < 0) {
    const found: Found = { kind: "beyond", cpus_low: Math.abs(value) * 0.82, cpus_high: null, peak_tps: null, peak_cpus: null, peak_extrapolates: null };
    return [found, "beyond 2 times the largest measured: bounds alone"];
  }
  const remark = extrapolates > 1 ? `extrapolated to ${extrapolates.toFixed(1)} times the largest measured` : "within what was measured";
  const cpus = { value, low: value * 0.82, high };
  return [{ kind: "needs", cpus, connections: { value: value * 4, low: value * 3.1, high: high === null ? null : value * 5.6 }, extrapolates, cost_per_million: null }, remark];
}

function row(type: string, storage: string, tps_of_one: number, [found, remark]: [Found, string], notes: string[] = []): CapacityRow {
  return { of: [["type", type], ["storage", storage]], model: found.kind === "no" ? null : "usl", measured: measured(tps_of_one, 60_000 / tps_of_one), found, gives: null, remark, notes };
}

/** Two types of transaction on two kinds of storage, of which each ends otherwise. */
export function coresDocument(tps: number): CapacityDocument {
  return {
    format: CAPACITY_FORMAT, tps, cpus: null, p99_ms: null, price_per_cpu_hour: null, price_per_host_hour: null,
    answer: {
      experiment: 12, name: "How many CPUs?", cpu_factors: ["cores"], client_factors: ["clients"], confidence: 0.95,
      rows: [
        row("read", "nvme", 21_000, needs(tps, 21_000)),
        row("write", "nvme", 5_200, needs(tps, 5_200), ["with 8 CPUs the most clients that were measured, 32, did best: more might do better"]),
        row("write", "network disk", 2_100, [
          { kind: "beyond", cpus_low: 61.2, cpus_high: null, peak_tps: 21_400, peak_cpus: 35.1, peak_extrapolates: 4.4 },
          "never reached by the curve, extrapolated: its peak is 21,400 TPS with 35.1 CPUs, 4.4 times the largest measured",
        ]),
        row("read", "<b>tape</b>", 90, [{ kind: "no", why: "a curve needs two numbers of CPUs, and there is 1" }, "a curve needs two numbers of CPUs, and there is 1"], ["4 CPUs are excluded: no number of clients kept the response time"]),
      ],
    },
  };
}

/** What a ladder of clients alone has to say. */
export function zoneDocument(tps: number): CapacityDocument {
  const found = { kind: "zone", peak_tps: 1850, peak_tps_low: 1820, peak_tps_high: 1880, peak_clients: 32, lowest_clients: 32, highest_clients: 64, open: true, reaches: tps <= 1850 } as const;
  return {
    format: CAPACITY_FORMAT, tps, cpus: null, p99_ms: null, price_per_cpu_hour: null, price_per_host_hour: null,
    answer: { experiment: 8, name: "ladder", cpu_factors: [], client_factors: ["clients"], confidence: 0.95, rows: [{ of: [], model: null, measured: [], found, gives: null, remark: found.reaches ? "reached with these CPUs" : "not reached with these CPUs", notes: [] }] },
  };
}

/** A ladder of CPUs and clients. */
export function cores(): Report {
  const report = ladder();
  report.experiment = { ...report.experiment, id: 12, name: "How many CPUs?", question: "How many CPUs do 60,000 transactions per second take?" };
  report.capacity = [60_000, 18_000, 35_000, 70_000, 180_000].map(coresDocument);
  return report;
}
