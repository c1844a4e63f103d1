import type { CurvePoint, Report } from "../../src/model.ts";
import { coresDocument, zoneDocument } from "./capacity.ts";
import { ladder } from "./factors.ts";

/** A ladder up to ten thousand clients, sixty steps, with values that nobody expects: nothing,
 * far too much, far apart. */
export function hugeLadder(): Report {
  const report = ladder();
  const like = report.treatments[0];
  const curve = report.curves?.[0];
  const trial = report.trials[0];
  if (like === undefined || curve === undefined || trial === undefined) throw new Error("the sample has no ladder");
  const xs = Array.from({ length: 60 }, (_, step) => Math.round(10_000 ** (step / 59)));
  const clients = [...new Set(xs)];
  const one = (mean: number) => ({ mean, low: mean, high: mean });
  const points = clients.map((x, step): CurvePoint => {
    const mean = step === 3 ? 0 : step === 7 ? 1e12 : 40_000 / (1 + 4000 / x);
    return { x, treatment: `clients=${String(x)}`, tps: { mean, low: step === 9 ? -5000 : mean * 0.9, high: mean * 1.1 }, p99_ms: step === 5 ? null : one(step === 11 ? 3_600_000 : x / 40), n: step === 20 ? 1 : 3 };
  });
  report.treatments = points.map(({ x, treatment, tps }) => ({ ...like, name: treatment, title: `${String(x)} clients`, levels: [{ factor: "clients", level: String(x) }], tps, metric: tps, figures: { tps: tps.mean }, workload: { ...report.experiment.workload, clients: x } }));
  report.trials = points.map(({ treatment, tps }, place) => ({ ...trial, id: place + 1, position: place + 1, treatment, tps: tps.mean, figures: { tps: tps.mean } }));
  report.experiment = { ...report.experiment, id: 13, name: "Ten thousand clients", reference: points[0]?.treatment ?? "", headline: points.at(-1)?.treatment ?? null };
  const far = { value: null, low: 1, high: null };
  const exact = (value: number) => ({ value, low: value, high: value });
  report.curves = [
    {
      ...curve, title: null, points, why_no_usl: null, highest: { x: clients[7] ?? 1, tps: { mean: 1e12, low: 0, high: 2e12 } },
      usl: { lambda: exact(10), sigma: exact(2.5e-4), kappa: exact(0), peak_x: far, peak_tps: far, spread: 4.2 },
      zone: { lowest: 1, highest: 10_000, best: 10_000, knee: null, why_no_knee: "there is none", lower_edge: "unmeasured", upper_edge: "unmeasured", past_knee: false },
      why_no_zone: null,
    },
  ];
  const absurd = coresDocument(60_000);
  absurd.answer.rows = absurd.answer.rows.map((row) => ({ ...row, found: { kind: "needs", cpus: { value: 4.2e9, low: 0, high: null }, connections: { value: 1e12, low: 0, high: 9e15 }, extrapolates: 1.9, cost_per_million: { value: 1e-9, low: 0, high: null } }, remark: "extrapolated to 1.9 times the largest measured" }));
  report.capacity = [absurd, zoneDocument(1e12)];
  return report;
}
