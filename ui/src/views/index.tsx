import { useEffect, useMemo, useState } from "preact/hooks";
import { useSource } from "../data/context.ts";
import { useFresh, useLoaded } from "../data/use-loaded.ts";
import { useRest } from "../data/use-rest.ts";
import { count, isKnown, plural } from "../format/number.ts";
import { duration, isoTime, shortDateTime, zoneName } from "../format/time.ts";
import { askedOf, filtered, queryOf, sortedBy, statusesOf, tagsOf, type Filter, type Order, type Sorting } from "../index/filter.ts";
import { useNotesSearch } from "../index/use-notes-search.ts";
import { FilterBar } from "../index/filter-bar.tsx";
import type { Listed } from "../model.ts";
import { Loaded } from "../parts/state.tsx";
import { TopBar } from "../parts/top-bar.tsx";
import { addressOf, replaceAddress } from "../router.ts";

const ROWS_FIRST = 200;

function Trials({ row }: { row: Listed }) {
  const { trials_finished: done, trials_planned: planned, trials_failed: failed } = row;
  return (
    <>
      {count(done)}
      {isKnown(planned) && planned !== done ? <span class="quiet"> of {count(planned)}</span> : null}
      {failed > 0 ? <span class="interval attention">{count(failed)} failed</span> : null}
    </>
  );
}

function Row({ row, onTag }: { row: Listed; onTag: (tag: string) => void }) {
  const took = row.finished_unix_ms === null ? null : duration(row.finished_unix_ms - row.started_unix_ms);
  return (
    <tr role="row">
      <th scope="row" role="rowheader">
        <a href={addressOf.experiment("serve", row.id)}>{row.name}</a> <span class="quiet">{row.id}</span>
        <span class="row-answer">{row.answer ?? row.question}</span>
        {row.tags.length === 0 ? null : (
          <span class="tags">
            {row.tags.map((tag) => (
              <button key={tag} type="button" class="tag" aria-label={`Show only ${tag}`} onClick={() => { onTag(tag); }}>
                {tag}
              </button>
            ))}
          </span>
        )}
      </th>
      <td role="cell" data-label="Status">
        <span class={`status status-${row.status.split(" ")[0] ?? ""}`}>{row.status}</span>
      </td>
      <td role="cell" data-label="Started" class="number">
        <time dateTime={isoTime(row.started_unix_ms)}>{shortDateTime(row.started_unix_ms)}</time>
        {took === null ? null : <span class="interval">took {took}</span>}
      </td>
      <td role="cell" data-label="Target">{row.target === "" ? "" : <a href={addressOf.target(row.target)}>{row.target}</a>}</td>
      <td role="cell" data-label="Trials" class="number">
        <Trials row={row} />
      </td>
      <td role="cell" data-label="Notes" class="number">{row.notes === 0 ? "" : count(row.notes)}</td>
    </tr>
  );
}

const COLUMNS: readonly { order: Order; title: string }[] = [
  { order: "name", title: "Experiment" },
  { order: "status", title: "Status" },
  { order: "started", title: "Started" },
  { order: "target", title: "Target" },
  { order: "trials", title: "Trials" },
  { order: "notes", title: "Notes" },
];

/** What is searched for is in the address, so that it can be handed on and the way back leads to
 * it. */
function List({ all, query, received_unix_ms }: { all: readonly Listed[]; query: string; received_unix_ms: number }) {
  const [{ filter, sorting: order }, setAsked] = useState(() => askedOf(query));
  const [shown, setShown] = useState(ROWS_FIRST);
  useEffect(() => {
    setAsked(askedOf(query));
  }, [query]);
  const ask = (next: Filter, sorting: Sorting) => {
    setAsked({ filter: next, sorting });
    replaceAddress(addressOf.index(queryOf(next, sorting)));
  };
  const { found, trouble, isPending } = useNotesSearch(filter.words, received_unix_ms);
  const rows = useMemo(() => sortedBy(filtered(all, filter, found), order.by, order.rising), [all, filter, found, order]);
  if (all.length === 0) {
    return <p class="empty">This store holds no experiment yet. “pgdyno demo” runs the first one, “pgdyno run FILE” your own.</p>;
  }
  const change = (next: Filter) => {
    ask(next, order);
    setShown(ROWS_FIRST);
  };
  return (
    <>
      <FilterBar filter={filter} tags={tagsOf(all)} statuses={statusesOf(all)} found={rows.length} of={all.length} onChange={change} />
      {trouble === null ? null : <p class="attention" role="status">Notes are not searched: {trouble.heading} {trouble.advice}</p>}
      <div class="table-frame cards index-table" role="region" aria-label="Experiments" tabIndex={0}>
        <table role="table">
          <caption class="visually-hidden">Experiments; the headings sort</caption>
          <thead role="rowgroup">
            <tr role="row">
              {COLUMNS.map(({ order: by, title }) => (
                <th key={title} scope="col" role="columnheader" aria-sort={by === order.by ? (order.rising ? "ascending" : "descending") : "none"}>
                  <button type="button" class="sort" onClick={() => { ask(filter, { by, rising: by === order.by ? !order.rising : by === "name" }); }}>
                    {by === "started" ? `${title}, ${zoneName(Date.now())}` : title} <span aria-hidden="true">{by === order.by ? (order.rising ? "▲" : "▼") : ""}</span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup">
            {rows.slice(0, shown).map((row) => (
              <Row key={row.id} row={row} onTag={(tag) => { change({ ...filter, tag }); }} />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length === 0 ? <p class="empty" role="status">{isPending ? "Searching the notes …" : "No experiment fits all of that."}</p> : null}
      {rows.length > shown ? (
        <button type="button" class="button" onClick={() => { setShown(shown + ROWS_FIRST); }}>
          Show {plural(Math.min(ROWS_FIRST, rows.length - shown), "more", "more")}
        </button>
      ) : null}
    </>
  );
}

/** All experiments of the store. */
export function IndexView({ query }: { query: string }) {
  const { server } = useSource();
  const [loading, again] = useLoaded("index", () => server?.list() ?? Promise.resolve({ experiments: [], is_whole: true }));
  useFresh(again);
  useRest(loading, ({ is_whole }) => is_whole, again);
  useEffect(() => {
    document.title = "Experiments – pgdyno";
  }, []);
  return (
    <div class="page page-wide">
      <div class="content">
        <TopBar trail={[{ name: "pgdyno", href: null }]} current="Experiments" />
        <main>
          <h1 class="view-title">Experiments</h1>
          <Loaded loading={loading} again={again} what="the experiments">
            {({ experiments }) => <List all={experiments} query={query} received_unix_ms={loading.state === "here" ? loading.heard_unix_ms : 0} />}
          </Loaded>
        </main>
      </div>
    </div>
  );
}
