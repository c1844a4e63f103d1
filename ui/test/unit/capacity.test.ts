import { describe, expect, test } from "vitest";
import { boundsAlone, capacityCommand, capacityQuery, costPerMillion, estimateBounds, measuredP99, rowName, storedAnswer, typedNumber } from "../../src/analysis/capacity.ts";
import { tick } from "../../src/format/number.ts";
import type { CapacityQuestion, CapacityRow, Found } from "../../src/model.ts";
import { cores, coresDocument } from "../sample/capacity.ts";

const PLAIN: CapacityQuestion = { tps: 60_000, cpus: null, p99_ms: null, price: null };

function row(found: Found): CapacityRow {
  return { of: [["type", "write"], ["storage", "disk"]], model: "usl", measured: [], found, gives: null, remark: "", notes: [] };
}

function needs(value: number, high: number | null, extrapolates: number): CapacityRow {
  return row({ kind: "needs", cpus: { value, low: value / 2, high }, connections: { value: 16, low: 12, high: null }, extrapolates, cost_per_million: null });
}

describe("what a throughput takes", () => {
  test("beyond what was measured there are bounds alone", () => {
    const beyond = { kind: "beyond", cpus_low: 61.2, cpus_high: null, peak_tps: null, peak_cpus: null, peak_extrapolates: null } as const;
    expect(boundsAlone(row(beyond))).toEqual({ low: 61.2, high: null });
    expect(boundsAlone(row({ ...beyond, cpus_low: null }))).toBeNull();
    expect(boundsAlone(needs(4, 5, 0.5))).toBeNull();
  });

  test("no bound is said to be none, and no other factor to be all", () => {
    expect(estimateBounds({ low: 1, high: 3 }, tick)).toBe("1 … 3");
    expect(estimateBounds({ low: 1, high: null }, tick)).toBe("1 and up, no upper bound");
    expect(rowName(needs(1, 2, 1))).toBe("write, disk");
    expect(rowName({ ...needs(1, 2, 1), of: [] })).toBe("all");
  });

  test("the p99 is that of the numbers of clients that did best", () => {
    const measured = [4.1, null, 7.3].map((p99_ms, place) => ({ cpus: place + 1, clients: 4, tps: 100, p99_ms, blocks: 2 }));
    expect(measuredP99({ ...needs(1, 2, 1), measured })).toEqual([4.1, 7.3]);
    expect(measuredP99(needs(1, 2, 1))).toBeNull();
  });

  test("a price of CPUs goes by their number, that of a host does not", () => {
    const million = 1e6 / (60_000 * 3600);
    expect(costPerMillion(needs(12, 14, 1.5), 60_000, { per: "cpu", an_hour: 0.04 })?.value).toBeCloseTo(0.04 * 12 * million, 12);
    expect(costPerMillion(needs(12, 14, 1.5), 60_000, { per: "cpu", an_hour: 0.04 })?.high).toBeCloseTo(0.04 * 14 * million, 12);
    expect(costPerMillion(needs(12, null, 1.5), 60_000, { per: "host", an_hour: 2 })).toEqual({ value: 2 * million, low: 2 * million, high: null });
    expect(costPerMillion(row({ kind: "no", why: "" }), 60_000, { per: "host", an_hour: 2 })).toBeNull();
    expect(costPerMillion(needs(12, 14, 1.5), 60_000, null)).toBeNull();
  });

  test("the same is asked of the server and by the command", () => {
    const question = { tps: 30_000, cpus: null, p99_ms: 20, price: { per: "host", an_hour: 1.5 } } as const;
    expect(capacityQuery(question)).toBe("tps=30000&p99_ms=20&price_per_host_hour=1.5");
    expect(capacityCommand(7, question)).toBe("pgdyno capacity 7 --tps 30000 --p99 20ms --price-per-host-hour 1.5");
    expect(capacityCommand(7, PLAIN)).toBe("pgdyno capacity 7 --tps 60000");
    expect(capacityQuery({ ...PLAIN, cpus: 8 })).toBe("tps=60000&cpus=8");
    expect(capacityCommand(7, { ...PLAIN, cpus: 8 })).toBe("pgdyno capacity 7 --tps 60000 --cpus 8");
  });

  test("only what is stored is taken for an answer", () => {
    const stored = cores().capacity ?? [];
    expect(storedAnswer(stored, PLAIN)).toEqual(coresDocument(60_000));
    expect(storedAnswer(stored, { ...PLAIN, tps: 61_000 })).toBeNull();
    expect(storedAnswer(stored, { ...PLAIN, p99_ms: 20 })).toBeNull();
    expect(storedAnswer(stored, { ...PLAIN, cpus: 8 })).toBeNull();
  });

  test.each([["60000", 60_000], [" 0,04 ", 0.04], ["0", null], ["-1", null], ["many", null], ["", null], ["1e400", null]])("typed: %j", (text, expected) => {
    expect(typedNumber(text)).toBe(expected);
  });
});
