import { useState } from "preact/hooks";
import { boundsAlone, capacityCommand, capacityQuery, costPerMillion, estimateBounds, measuredP99, modelInWords, rowName, storedAnswer } from "../analysis/capacity.ts";
import { bareFigure } from "../analysis/metric.ts";
import { useSource } from "../data/context.ts";
import { useLoaded } from "../data/use-loaded.ts";
import { bounds, count, roundShare, tick, tps, UNKNOWN } from "../format/number.ts";
import { bareMilliseconds } from "../format/span.ts";
import type { CapacityDocument, CapacityQuestion, CapacityRow, Estimate, Report } from "../model.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { Section } from "../parts/section.tsx";
import { Loaded } from "../parts/state.tsx";
import { CapacityForm } from "./capacity-form.tsx";

function Bounds({ estimate, figure }: { estimate: Estimate | null; figure: (value: number) => string }) {
  if (estimate === null) return <>{UNKNOWN}</>;
  return (
    <>
      <span class="figure-main">{figure(estimate.value)}</span>
      <span class="interval">{estimateBounds(estimate, figure)}</span>
    </>
  );
}

function P99({ row }: { row: CapacityRow }) {
  const range = measuredP99(row);
  if (range === null) return <>{UNKNOWN}</>;
  return <>{range[0] === range[1] ? bareMilliseconds(range[0]) : bounds(range[0], range[1], bareMilliseconds)}</>;
}

/** A line for each combination of the other factors, as `pgdyno capacity` prints it. */
function Needs({ document, cost }: { document: CapacityDocument; cost: ((row: CapacityRow) => Estimate | null) | null }) {
  const { cpus } = document;
  const given = cpus === null ? null : `TPS with ${tick(cpus)} CPUs`;
  const headings = ["For", "CPUs", "Connections", ...(given === null ? [] : [given]), "Measured p99, ms", ...(cost === null ? [] : ["Cost per million"]), "Curve", "How sure"];
  return (
    <DataTable class="cards capacity-table" captionHidden caption={`CPUs and connections for ${tps(document.tps)} transactions per second`} headings={headings}>
      {document.answer.rows.map((row) => {
        const { found } = row;
        const needs = found.kind === "needs" ? found : null;
        const beyond = boundsAlone(row);
        return (
          <tr role="row" key={rowName(row)}>
            <th scope="row" role="rowheader">{rowName(row)}</th>
            <Cell label="CPUs" number>{beyond === null ? <Bounds estimate={needs?.cpus ?? null} figure={tick} /> : <span class="interval">{estimateBounds(beyond, tick)}</span>}</Cell>
            <Cell label="Connections" number><Bounds estimate={needs?.connections ?? null} figure={tick} /></Cell>
            {given === null ? null : <Cell label={given} number><Bounds estimate={row.gives?.tps ?? null} figure={tps} /></Cell>}
            <Cell label="Measured p99, ms" number><P99 row={row} /></Cell>
            {cost === null ? null : <Cell label="Cost per million" number><Bounds estimate={cost(row)} figure={bareFigure} /></Cell>}
            <Cell label="Curve">{modelInWords(row.model)}</Cell>
            <Cell label="How sure">{found.kind === "beyond" ? <span class="interval attention">{row.remark}</span> : row.remark}</Cell>
          </tr>
        );
      })}
    </DataTable>
  );
}

/** Where only clients were varied. */
function Zones({ document }: { document: CapacityDocument }) {
  return (
    <>
      <DataTable class="cards capacity-table" captionHidden caption={`Whether ${tps(document.tps)} transactions per second are reached`} headings={["For", "Peak, TPS", "Clients there", "Happy zone, clients", "Answer"]}>
        {document.answer.rows.map((row) => {
          const { found } = row;
          const zone = found.kind === "zone" ? found : null;
          const low = zone?.peak_tps_low ?? null;
          return (
            <tr role="row" key={rowName(row)}>
              <th scope="row" role="rowheader">{rowName(row)}</th>
              <Cell label="Peak, TPS" number>{zone === null || low === null ? tps(zone?.peak_tps) : <Bounds estimate={{ value: zone.peak_tps, low, high: zone.peak_tps_high }} figure={tps} />}</Cell>
              <Cell label="Clients there" number>{count(zone?.peak_clients)}</Cell>
              <Cell label="Happy zone, clients">{zone === null ? UNKNOWN : `${count(zone.lowest_clients)} to ${count(zone.highest_clients)}${zone.open ? " or more" : ""}`}</Cell>
              <Cell label="Answer">{row.remark}</Cell>
            </tr>
          );
        })}
      </DataTable>
      <p class="copy-line quiet">CPUs were not varied, so the result says nothing about other numbers of CPUs.</p>
    </>
  );
}

function MeasuredTable({ rows }: { rows: readonly CapacityRow[] }) {
  return (
    <details>
      <summary>What the curves go by: the best of each number of CPUs</summary>
      <DataTable class="result-table" captionHidden caption="The best that each number of CPUs did" headings={["For", "CPUs", "Best clients", "TPS", "p99, ms", "Blocks"]}>
        {rows.flatMap((row) =>
          row.measured.map((measured) => (
            <tr role="row" key={`${rowName(row)} ${String(measured.cpus)}`}>
              <th scope="row" role="rowheader">{rowName(row)}</th>
              <Cell label="CPUs" number>{tick(measured.cpus)}</Cell>
              <Cell label="Best clients" number>{count(measured.clients)}</Cell>
              <Cell label="TPS" number>{tps(measured.tps)}</Cell>
              <Cell label="p99, ms" number>{bareMilliseconds(measured.p99_ms)}</Cell>
              <Cell label="Blocks" number>{count(measured.blocks)}</Cell>
            </tr>
          )),
        )}
      </DataTable>
    </details>
  );
}

function Answer({ document, price }: { document: CapacityDocument; price: CapacityQuestion["price"] }) {
  const { answer } = document;
  if (answer.rows.length === 0) return <p class="empty">No trial of it is finished.</p>;
  const priced = document.price_per_cpu_hour !== null || document.price_per_host_hour !== null;
  const own = (row: CapacityRow) => (row.found.kind === "needs" ? row.found.cost_per_million : null);
  const cost = priced ? own : price === null ? null : (row: CapacityRow) => costPerMillion(row, document.tps, price);
  const notes = answer.rows.flatMap((row) => row.notes.map((note) => `${rowName(row)}: ${note}`));
  if (answer.cpu_factors.length === 0) return <Zones document={document} />;
  return (
    <>
      <Needs document={document} cost={cost} />
      <p class="copy-line quiet">
        Intervals are at {roundShare(answer.confidence)}, each by itself.{cost === null ? "" : " The cost is that of a million transactions at this rate, in the currency of the price."}
      </p>
      {notes.length === 0 ? null : (
        <ul class="remarks curve-remarks">
          {notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
      <MeasuredTable rows={answer.rows} />
    </>
  );
}

/** CPUs and connections for a throughput: what `pgdyno capacity` answers, by the same
 * computation. */
export function Capacity({ report }: { report: Report }) {
  const documents = report.capacity ?? [];
  const first = documents[0];
  // Where neither CPUs nor clients were varied nothing is asked either.
  return first === undefined ? null : <Answers report={report} documents={documents} first={first} />;
}

function Answers({ report, documents, first }: { report: Report; documents: readonly CapacityDocument[]; first: CapacityDocument }) {
  const { server } = useSource();
  const [question, setQuestion] = useState<CapacityQuestion>({ tps: first.tps, cpus: null, p99_ms: first.p99_ms, price: null });
  const id = report.experiment.id;
  const ask = () => {
    // A price alone changes nothing of what is stored; a report file adds it up by itself.
    const stored = storedAnswer(documents, server === null ? { ...question, price: null } : question);
    return stored === null && server !== null ? server.capacity(id, capacityQuery(question)) : Promise.resolve(stored);
  };
  // A report that is still growing gives new answers to the same question.
  const [loading, again] = useLoaded(`capacity/${String(id)}/${capacityQuery(question)}/${String(report.generated_unix_ms)}`, ask);
  const command = capacityCommand(id, question);
  return (
    <Section
      id="capacity"
      lede={`CPUs and connections by the ladder that was measured: for each number of CPUs the clients that did best, and a curve through these points.${question.p99_ms === null ? "" : " Slower numbers of clients do not count."}`}
    >
      <CapacityForm documents={documents} question={question} isServed={server !== null} onAsk={setQuestion} />
      <Loaded loading={loading} again={again} what="the answer">
        {(document) => (document === null ? <p class="empty">This file has no answer for that throughput; the command below has.</p> : <Answer document={document} price={question.price} />)}
      </Loaded>
      <p class="copy-line quiet">
        {server === null ? "Any other throughput, or a limit of response time: " : "The same: "}
        <code>{command}</code> <CopyButton text={command} what="Capacity command" />
      </p>
    </Section>
  );
}
