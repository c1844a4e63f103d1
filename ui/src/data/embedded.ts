import { loadReport } from "../load.ts";
import type { Details, Report, TrialDocument } from "../model.ts";
import type { Source } from "./source.ts";
import { asTrouble, Trouble } from "./trouble.ts";
import { unpackTrial } from "./unpack.ts";

function textOf(id: string): string | null {
  return document.getElementById(id)?.textContent ?? null;
}

function detailsOf(): Details | null {
  try {
    return JSON.parse(textOf("pgdyno-details") ?? "null") as Details | null;
  } catch {
    return null;
  }
}

function reportOf(): Report {
  const loaded = loadReport(textOf("pgdyno-data"));
  if (!loaded.ok) throw new Trouble("damaged", loaded.heading, loaded.advice);
  return loaded.report;
}

/** Reads what is in the page; each trial is unpacked when it is first shown. */
export function embeddedSource(): Source {
  const trials = new Map<number, Promise<TrialDocument>>();
  const elementOf = (trial: number) => `pgdyno-trial-${String(trial)}`;
  const hasTrial = (trial: number) => document.getElementById(elementOf(trial)) !== null;
  const trial = (_experiment: number | null, id: number): Promise<TrialDocument> => {
    if (!hasTrial(id)) {
      const advice = "This file was written without it, or the trial is of another experiment. “pgdyno report --trials all” writes all of them, “pgdyno serve” shows any.";
      return Promise.reject(new Trouble("missing", `The series of trial ${String(id)} are not in this file.`, advice));
    }
    const known = trials.get(id) ?? unpackTrial(textOf(elementOf(id)) ?? "");
    trials.set(id, known);
    return known;
  };
  return {
    mode: "file",
    report: () => {
      try {
        return Promise.resolve(reportOf());
      } catch (error) {
        return Promise.reject(asTrouble(error));
      }
    },
    trial,
    hasTrial,
    details: detailsOf(),
    server: null,
  };
}
