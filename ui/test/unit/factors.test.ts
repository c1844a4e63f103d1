import { describe, expect, test } from "vitest";
import { excludedTrials, doubtfulTrials, notices } from "../../src/analysis/badges.ts";
import { OUTCOME, studyFigure, testedOn } from "../../src/analysis/claims.ts";
import { tpsDomain, usesLog, uslAt, uslLine, zoneBand, zoneInWords } from "../../src/analysis/curves.ts";
import { effectRows, factorRows } from "../../src/analysis/effects.ts";
import { headlineTreatment } from "../../src/analysis/headline.ts";
import { bareFigure, clientsInWords, compares, meanMetric, metricOf } from "../../src/analysis/metric.ts";
import { heldAgainst } from "../../src/analysis/throughput.ts";
import { sectionsOf } from "../../src/parts/section.tsx";
import type { Curve, Report, StudyClaim } from "../../src/model.ts";
import { factors, jobs, ladder } from "../sample/factors.ts";
import { sampleReport } from "../sample/report.ts";

function first<T>(items: readonly T[] | undefined): T {
  const [item] = items ?? [];
  if (item === undefined) throw new Error("there is none");
  return item;
}

function curve(): Curve {
  return first(factors().curves);
}

describe("the figure that decides", () => {
  test("is throughput in reports that do not say", () => {
    const report = sampleReport();
    expect(metricOf(report)).toEqual({ name: "tps", title: "throughput", unit: "TPS", isTps: true });
    expect(compares(report)).toBe(true);
  });

  test("may be the time of a job", () => {
    const report = jobs();
    expect(meanMetric(report, first(report.treatments))).toBe(15.6);
    expect(effectRows(report).map(({ title }) => title)).toEqual(["parallel"]);
  });

  test("small values keep the digits that count", () => {
    expect([bareFigure(0.012_345), bareFigure(-0.001), bareFigure(0), bareFigure(null), bareFigure(1234.5)]).toEqual(["0.0123", "\u22120.001", "0", "–", "1,235"]);
  });
});

describe("factors", () => {
  test("the answer's treatment is the report's own, held against its own reference", () => {
    const report = factors();
    const headline = headlineTreatment(report);
    expect(headline?.name).toBe("clients=128, pooler=pgbouncer");
    expect(heldAgainst(report, headline)?.name).toBe("clients=128, pooler=none");
    expect(heldAgainst(sampleReport(), null)?.name).toBe("reference");
  });

  test("rows are what is held against something, and effects what a factor is worth", () => {
    const report = factors();
    expect(effectRows(report)).toHaveLength(6);
    expect(factorRows(report).map(({ missing, effect }) => effect === null && missing)).toEqual([false, false, "not known"]);
    expect(clientsInWords(report)).toBe("1 to 128 clients");
    expect(clientsInWords(sampleReport())).toBe("32 clients");
  });

  test("a ladder compares nothing", () => {
    expect(compares(ladder())).toBe(false);
  });

  test("sections are there for what there is", () => {
    const added = (report: Report) => sectionsOf(report, false).filter((id) => ["claims", "timelines", "charts", "effects", "curves", "tables"].includes(id));
    expect(added(sampleReport())).toEqual([]);
    expect(added(ladder())).toEqual(["curves"]);
    expect(added(factors())).toEqual(["claims", "timelines", "charts", "effects", "curves", "tables"]);
  });

  test("trials that are left out are said to be, and are not doubtful", () => {
    const report = factors();
    expect(excludedTrials(report).map(({ id }) => id)).toEqual([3]);
    expect(doubtfulTrials(report)).toEqual([]);
    expect(notices(report).map(({ word }) => word)).toEqual(["1 trial excluded"]);
  });
});

describe("curves", () => {
  test("the law goes through its points", () => {
    const { usl, points } = curve();
    const found = usl === null ? [] : points.map(({ x }) => uslAt(usl, x));
    found.forEach((tps, place) => {
      expect(tps).toBeCloseTo(points[place]?.tps.mean ?? 0);
    });
    expect(uslLine(curve()).at(-1)?.x).toBeCloseTo(128);
    expect(uslLine({ ...curve(), usl: null })).toEqual([]);
  });

  test("ladders that double have a logarithmic axis", () => {
    expect(usesLog(curve().points)).toBe(true);
    expect(usesLog(curve().points.slice(2, 4))).toBe(false);
  });

  test("the zone reaches half way to its neighbours, and ends where nothing was measured", () => {
    const [low, high] = zoneBand(curve()) ?? [0, 0];
    expect(low).toBeCloseTo(Math.sqrt(16 * 32));
    expect(high).toBeCloseTo(Math.sqrt(64 * 128));
    expect(zoneBand({ ...curve(), zone: null })).toBeNull();
    const [, bouncer] = factors().curves ?? [];
    expect(bouncer && zoneBand(bouncer)?.[1]).toBe(128);
  });

  test("the zone in words says why it ends", () => {
    const { zone } = curve();
    if (zone === null) throw new Error("the sample has no zone");
    expect(zoneInWords(zone)).toBe("32 to 64 clients; beyond it throughput falls below 95\u202f% of the peak");
    expect(zoneInWords({ ...zone, lowest: 64, past_knee: true })).toBe("64 clients, where response times are past their knee already");
    expect(zoneInWords({ ...zone, upper_edge: "unmeasured" })).toContain("may go on");
    expect(zoneInWords({ ...zone, upper_edge: "knee" })).toContain("knee");
  });

  test("throughput begins at zero, also of nothing", () => {
    expect(tpsDomain(curve())[0]).toBe(0);
    expect(tpsDomain({ ...curve(), points: [], usl: null })).toEqual([0, 1]);
  });
});

describe("findings", () => {
  const claims = (): StudyClaim[] => factors().claims ?? [];

  test("each outcome has a symbol and a word of its own", () => {
    const marks = claims().map(({ outcome }) => `${OUTCOME[outcome].symbol} ${OUTCOME[outcome].word}`);
    expect(marks).toEqual(["✓ agrees", "✗ disagrees", "? not decided", "– not tested"]);
  });

  test("what the study reports is a ratio or a word", () => {
    expect(claims().map(studyFigure)).toEqual(["+60.0\u202f%", "no difference that matters", "better", "better"]);
  });

  test("many pairs are counted, few named by title", () => {
    const report = factors();
    const titles = new Map(report.treatments.map(({ name, title }) => [name, title]));
    expect(claims().map((claim) => testedOn(claim, titles))).toEqual([
      ["128 clients, pgbouncer against 128 clients, no pooler"], ["1 clients, pgbouncer against 1 clients, no pooler"], ["6 pairs of treatments"], [],
    ]);
  });
});
