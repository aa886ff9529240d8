import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { requirements } from '../../test/conformance/requirements.ts'
import { LastRuns, SUITE_SCRIPTS } from '../test/results.ts'
import { type Coverage, citationFaults, collectCitations, countShown } from './collect.ts'
import { passedCitations } from './shown.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const FLOOR = path.join(ROOT, 'test/conformance/floor.json')

const USAGE =
  'usage: npm run requirements -- [-o text|json] [--raise]   (--raise commits the number of cited rows as the floor)'

/**
 * `npm run requirements`: per document `shown N of M`, and the ids that no test shows. A row is shown if a test that cites it ran and passed in
 * the last whole run of its suite on this machine; a suite that has not run shows nothing.
 */
function main(args: readonly string[]): number {
  const [shape, raise] = [args.includes('json') ? 'json' : 'text', args.includes('--raise')]
  if (args.some((arg) => !['-o', 'json', 'text', '--raise'].includes(arg))) {
    console.error(USAGE)
    return 2
  }
  const citations = collectCitations(ROOT)
  const runs = new LastRuns(ROOT)
  const coverage = countShown(requirements, passedCitations(ROOT, runs))
  const faults = citationFaults(requirements, citations)
  if (shape === 'json') console.log(JSON.stringify({ documents: coverage.map(idsOnly), faults }, null, 2))
  else for (const line of [...coverage.flatMap(lines), ...faults]) console.log(line)
  for (const suite of runs.missing)
    console.error(`note: ${SUITE_SCRIPTS[suite]} has not run here: its tests show nothing`)
  if (raise) {
    const floor = Object.fromEntries(countShown(requirements, citations).map((it) => [it.document, it.covered]))
    writeFileSync(FLOOR, `${JSON.stringify(floor, null, 2)}\n`)
  }
  return faults.length === 0 ? 0 : 1
}

function idsOnly({ missing, ...counts }: Coverage): object {
  return { ...counts, missing: missing.map(({ id }) => id) }
}

/** One line for the document, then one a section: `  D1.claim: iss sub …`. */
function lines({ document, covered, of, missing }: Coverage): readonly string[] {
  const sections = new Map<string, string[]>()
  for (const { id, key } of missing) {
    const section = id.slice(0, -key.length - 1)
    sections.set(section, [...(sections.get(section) ?? []), key])
  }
  return [
    `${document}: shown ${covered} of ${of}`,
    ...[...sections].map(([section, keys]) => `  ${section}: ${keys.join(' ')}`),
  ]
}

process.exitCode = main(process.argv.slice(2))
