import { type Matrix, type Row, requestOrder } from './matrix.ts'
import type { StepName } from './stage.ts'

/** The columns of the page: the request-side stages that do not run for every operation. */
const columns = requestOrder.slice(2)

/** Renders the stage matrix as `docs/reference/matrix.md`. */
export function matrixPage(matrix: Matrix): string {
  const head = ['operation', ...columns, 'reviews', 'record', 'reply', 'note']
  const rows = Object.entries(matrix).map(([operation, row]) => cells(operation, row))
  // Padded, as the formatter of the repository would write it.
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (texts: readonly string[]) => `| ${texts.map((text, at) => text.padEnd(widths[at] ?? 0)).join(' | ')} |`
  const rule = widths.map((width) => '-'.repeat(width))
  return `# Stages of each operation

Generated from the stage matrix of the gateway (\`services/gateway/pipeline/matrix.ts\`); a test compares the two.

Every call is authenticated and read first. Then the stages run from left to right: \`revoked\` and \`resolve\` for every
operation, then those marked ●; f: the stage judges each entry of the response instead of the request; –: it does not run. Before
the call is forwarded, the conditions under which the stages admitted it are checked again. Reviews check each frame of the
response, in the order given. A full record is an outcome for every call, with an intent before it if the audit failure policy is
\`closed\`, money is held, or the call is long; _denials_ means that only calls that were refused or failed are recorded. An operation that is not
built yet, or that has no row, is refused with \`not_built\`.

${[line(head), line(rule), ...rows.map(line)].join('\n')}
`
}

function cells(operation: string, row: Row): readonly string[] {
  const cell = (stage: StepName) => (row.stages.includes(stage) ? '●' : row.filters.includes(stage) ? 'f' : '–')
  const traits = [row.record, row.long ? 'long' : '', row.parent ? 'names its parent' : '']
  return [
    `\`${operation}\` (${row.covers})`,
    ...columns.map(cell),
    row.reviews.length === 0 ? '–' : row.reviews.join(', '),
    traits.filter((trait) => trait !== '').join(', '),
    row.reply,
    row.note,
  ]
}
