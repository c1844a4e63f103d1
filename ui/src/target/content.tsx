import type { ComponentChildren } from "preact";
import { plural } from "../format/number.ts";
import { dateTime } from "../format/time.ts";
import type { Journal, Target, Targets } from "../model.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { addressOf } from "../router.ts";
import { Facts } from "../sections/facts.tsx";
import { Part } from "../trial/part.tsx";
import { adviceOf, keptInWords, notJudgedOf, stateInWords, type AdviceItem } from "./shape.ts";

function JournalTable({ journal }: { journal: Journal }) {
  return (
    <DataTable class="cards" caption={`${journal.purpose}, ${dateTime(journal.since_unix_ms)}`} headings={["Setting", "Was", "Set to", "Now", "State"]}>
      {journal.changes.map((line, row) => (
        <tr role="row" key={row}>
          <th scope="row" role="rowheader">
            <code>{line.knob}</code>
            {line.place === "" || line.place === line.knob ? null : <span class="interval">{line.place}</span>}
          </th>
          <Cell label="Was"><code>{line.was}</code></Cell>
          <Cell label="Set to"><code>{line.set_to}</code></Cell>
          <Cell label="Now"><code>{line.now}</code></Cell>
          <Cell label="State">
            {stateInWords(line.state)}
            {line.why === undefined || line.why === null ? null : <span class="interval">{line.why}</span>}
            {line.until_reboot ? <span class="interval">a reboot resets it</span> : null}
          </Cell>
        </tr>
      ))}
    </DataTable>
  );
}

/** The changes of each process that has not restored them. */
function Changed({ changed, unknown }: { changed: readonly Journal[] | null; unknown: string }) {
  if (changed === null) return <p class="quiet">{unknown}</p>;
  if (changed.length === 0) return <p class="quiet">Nothing: everything that pgdyno has set was restored.</p>;
  return (
    <>
      {changed.map((journal) => (
        <div key={journal.number}>
          <JournalTable journal={journal} />
          <p class="quiet">
            {journal.by === null ? "" : `By ${journal.by}; `}
            {keptInWords(journal)}.
          </p>
        </div>
      ))}
      <p class="copy-line">
        Restore everything with <code>pgdyno restore</code> <CopyButton text="pgdyno restore" what="Restore command" />
      </p>
    </>
  );
}

function Item({ item }: { item: AdviceItem }) {
  return (
    <li class={`advice advice-${item.severity ?? "none"}`}>
      <p class="advice-head">
        <strong>{item.title}</strong>
        {item.severity === null ? null : <span class="risk">{item.severity}</span>}
      </p>
      {item.recommended === null ? null : (
        <p>
          {item.now === null ? null : <><code>{item.now}</code> <span class="arrow" aria-label="to">→</span> </>}
          {item.is_value ? <code>{item.recommended}</code> : item.recommended}
        </p>
      )}
      {item.why === null ? null : <p class="lede">{item.why}</p>}
      {item.steps.length === 0 ? null : <ol>{item.steps.map((step, place) => <li key={place}>{step}</li>)}</ol>}
      {item.commands.map((command, place) => (
        <p key={place} class="copy-line">
          <code>{command}</code> <CopyButton text={command} what={`Command for ${item.title}`} />
        </p>
      ))}
    </li>
  );
}

function Advice({ advice, isDue }: { advice: unknown; isDue: boolean }): ComponentChildren {
  const items = adviceOf(advice);
  const unjudged = notJudgedOf(advice);
  if (items === null && isDue) return <p class="quiet">It is being worked out from the stored trials, and appears here by itself.</p>;
  if (items === null) return <p class="quiet">None is stored. “pgdyno advise” gives it for a target that can be reached.</p>;
  return (
    <>
      {items.length === 0 ? <p class="quiet">Nothing to change was found.</p> : null}
      {items.length === 0 ? null : (
        <ol class="advice-list">
          {items.map((item, row) => (
            <Item key={row} item={item} />
          ))}
        </ol>
      )}
      {unjudged === 0 ? null : (
        <p class="quiet">{plural(unjudged, "rule")} could not be judged by what is stored: settings of a server are not. “pgdyno advise” asks the server.</p>
      )}
    </>
  );
}

/** Why it is not known what is changed. */
function notKnown(why: string | null): string {
  return `Not known: ${why ?? "the server does not say why"}. “pgdyno status” asks for itself.`;
}

/** All that is changed from this machine, on it and on servers, whether an experiment knows them
 * or not. */
export function OnHost({ all }: { all: Targets }) {
  const { changed_on_host: changed, why_not_known: why, servers_asked: isAsked } = all;
  return (
    <Part id="changed-on-host" title="What is changed from this machine now">
      <Changed changed={changed} unknown={notKnown(why)} />
      {isAsked || changed === null || changed.length === 0 ? null : <p class="quiet">Some states are unknown: servers are not asked about their settings while an experiment runs, because that would disturb it.</p>}
    </Part>
  );
}

export function TargetContent({ target }: { target: Target }) {
  return (
    <>
      <Part id="changed" title="What is changed now">
        <Changed changed={target.changed} unknown={notKnown(target.why_not_known)} />
      </Part>
      <Part id="advice" title="Advice">
        <Advice advice={target.advice} isDue={target.is_advice_due} />
      </Part>
      <Part id="experiments" title="Experiments on it">
        <ul class="target-list">
          {target.experiments.toSorted((a, b) => b - a).map((id) => (
            <li key={id}>
              <a href={addressOf.experiment("serve", id)}>experiment {id}</a>
            </li>
          ))}
        </ul>
      </Part>
      <Facts facts={target.facts ?? []} />
    </>
  );
}
