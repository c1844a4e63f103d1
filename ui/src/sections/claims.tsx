import { studyFigure, testedOn } from "../analysis/claims.ts";
import { change, changeBounds, UNKNOWN } from "../format/number.ts";
import type { Report, StudyClaim } from "../model.ts";
import { Cell, DataTable } from "../parts/data-table.tsx";
import { OutcomeMark } from "../parts/outcome-mark.tsx";
import { Section } from "../parts/section.tsx";

function Row({ claim, titles }: { claim: StudyClaim; titles: ReadonlyMap<string, string> }) {
  const pairs = testedOn(claim, titles);
  const { effect } = claim;
  return (
    <tr role="row">
      <th scope="row" role="rowheader">
        <span class="step-title">{claim.text}</span>
        <span class="step-reason">{claim.sentence}</span>
      </th>
      <Cell label="Outcome">
        <OutcomeMark claim={claim} />
      </Cell>
      <Cell label="The study" number>
        {studyFigure(claim)}
      </Cell>
      <Cell label="Here" number>
        <span class="figure-main">{effect === null ? UNKNOWN : change(effect.ratio)}</span>
        {effect === null ? null : <span class="interval">{changeBounds(effect.ratio_low, effect.ratio_high)}</span>}
      </Cell>
      <Cell label="Tested on">
        {pairs.length === 0 ? (
          <span class="quiet">nothing</span>
        ) : (
          <ul class="remarks">
            {pairs.map((pair, place) => (
              <li key={place}>{pair}</li>
            ))}
          </ul>
        )}
      </Cell>
    </tr>
  );
}

/** What a published study found, compared with this host. */
export function Claims({ report }: { report: Report }) {
  const { study, claims = [] } = report;
  if (study === undefined || study === null) return null;
  const titles = new Map(report.treatments.map(({ name, title }) => [name, title]));
  return (
    <Section id="claims" lede={`The experiment repeats ${study.title} [${study.source}].`}>
      {study.summary === null ? null : (
        <p class="summary">
          <strong>{study.summary}.</strong>
        </p>
      )}
      {claims.length === 0 ? (
        <p class="empty">Its file names no findings.</p>
      ) : (
        <DataTable class="cards claim-table" captionHidden caption="Findings of the study and their outcome here" headings={["Finding", "Outcome", "The study", "Here", "Tested on"]}>
          {claims.map((claim, place) => (
            <Row key={place} claim={claim} titles={titles} />
          ))}
        </DataTable>
      )}
    </Section>
  );
}
