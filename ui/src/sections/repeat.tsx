import type { Report } from "../model.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Section } from "../parts/section.tsx";

function Copyable({ text, what }: { text: string; what: string }) {
  return (
    <div class="copyable">
      <CopyButton text={text} what={what} />
      <pre tabIndex={0} aria-label={what}>
        <code>{text}</code>
      </pre>
    </div>
  );
}

export function Repeat({ experiment }: { experiment: Report["experiment"] }) {
  return (
    <Section id="repeat" lede="On the same host, with the experiment file below.">
      <h3>Commands</h3>
      {experiment.repeat.length === 0 ? (
        <p class="empty">No commands are recorded.</p>
      ) : (
        experiment.repeat.map((command, index) => <Copyable key={index} text={command} what={`Command ${String(index + 1)}`} />)
      )}
      <h3>Experiment file</h3>
      <Copyable text={experiment.file} what="Experiment file" />
    </Section>
  );
}
